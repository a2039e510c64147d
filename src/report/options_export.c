/* SPDX-License-Identifier: MIT */
/* The command line of an export. */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "report/options_parts.h"

static bool take_output(void *part, const char *text)
{
	struct sp_options *o = part;

	o->output = text;
	return *text != '\0';
}

static bool take_metric(void *part, const char *text)
{
	struct sp_options *o = part;

	o->has_metric = true;
	o->export.of_objects = strcmp(text, "objects") == 0;
	return o->export.of_objects || strcmp(text, "bytes") == 0;
}

static bool take_max_samples(void *part, const char *text)
{
	struct sp_options *o = part;

	return sp_parse_u64(text, &o->export.max_samples) &&
	       o->export.max_samples > 0;
}

static bool take_base(void *part, const char *text)
{
	struct sp_export_options *export = &((struct sp_options *)part)->export;

	if (!*text || export->n_base_files == SP_EXPORT_BASE_MAX)
		return false;
	export->base_files[export->n_base_files++] = text;
	return true;
}

static const struct sp_argument export_arguments[] = {
	{"output", 'o', "OUT", "a path, or - for standard output", take_output,
	 0, "file to write; - for standard output"},
	{"metric", 0, "bytes|objects", "bytes or objects", take_metric, 0,
	 "what a weight counts (collapsed; default bytes)"},
	SP_OPTIONS_FLAG(
		"pprof-error", export.pprof_error,
		"two more sample types: variance of the bytes, samples"),
	{"max-samples", 0, "N", "a number above 0", take_max_samples, 0,
	 "fold the pprof samples with fewest bytes"},
	{"base", 0, "OLD", "a path, at most 1024 times", take_base, 0,
	 "what FILE is compared with (html); several are added up"},
	{0},
};

const struct sp_argument_group sp_options_export = {"How to write",
						    export_arguments};

static int refuse_in_export(const char *name, struct sp_error *err)
{
	return sp_options_are(&sp_options_report, name)
		       ? sp_error_set(err, -EINVAL, NULL,
				      "an export goes without --%s", name)
		       : 0;
}

static void describe_formats(FILE *out)
{
	fputs("\nFormats:\n", out);
	for (const struct sp_export_format *f = sp_export_formats; f->name; f++)
		fprintf(out, "  %-18s %s\n", f->name, f->what);
}

static const struct sp_command_line export_line = {
	.usage = "usage: sampleprof-report export FORMAT [OPTION]... FILE... "
		 "-o OUT\n"
		 "\n"
		 "Write a profile for another program.\n",
	.describe = describe_formats,
	.parts =
		(const struct sp_argument_part[]){
			{&sp_options_export, 0},
			SP_OPTIONS_PART(sp_options_question, question),
			SP_OPTIONS_PART(sp_options_filter, question),
			SP_OPTIONS_PART(sp_options_method, question),
			SP_OPTIONS_PART(sp_options_symbols, symbols),
			{&sp_options_other, 0},
			{0}},
	.ending = "Exit status: 0 fine, 1 error, 2 usage.\n",
	.is_done = sp_options_is_done,
	.refuse = refuse_in_export,
};

void sp_options_print_export_help(FILE *out)
{
	sp_arguments_print_help(out, &export_line);
}

/* The format, which is the first of the words that are no options. */
static int take_format(const char *word, struct sp_options *o,
		       struct sp_error *err)
{
	char names[160] = "";

	for (const struct sp_export_format *f = sp_export_formats; f->name;
	     f++) {
		size_t used = strlen(names);

		snprintf(names + used, sizeof(names) - used, "%s%s",
			 used ? ", " : "", f->name);
	}
	if (!word)
		return sp_error_set(err, -EINVAL, NULL,
				    "which format? one of %s", names);
	o->format = sp_export_find(word);
	if (!o->format)
		return sp_error_set(err, -EINVAL, NULL, "%.20s is none of %s",
				    word, names);
	return 0;
}

static int check_export(const struct sp_options *o, struct sp_error *err)
{
	const unsigned int knows = o->format->knows;

	if (o->has_metric && !(knows & SP_EXPORT_KNOWS_METRIC))
		return sp_error_set(err, -EINVAL, NULL,
				    "%s goes without --metric",
				    o->format->name);
	if ((o->export.pprof_error || o->export.max_samples) &&
	    !(knows & SP_EXPORT_KNOWS_PPROF))
		return sp_error_set(err, -EINVAL, NULL,
				    "%s goes without --pprof-error and "
				    "--max-samples",
				    o->format->name);
	if (o->export.n_base_files && !(knows & SP_EXPORT_KNOWS_BASE))
		return sp_error_set(err, -EINVAL, NULL,
				    "%s goes without --base: html shows two "
				    "sides, and so does diff",
				    o->format->name);
	if (!o->output)
		return sp_error_set(err, -EINVAL, NULL,
				    "where to? no -o OUT was given (- is "
				    "standard output)");
	return 0;
}

int sp_options_parse_export(int argc, char **argv, struct sp_options *ret,
			    struct sp_error *err)
{
	const char *const *words;
	size_t n;
	int r = sp_options_begin(&export_line, argc, argv, ret, &words, &n,
				 err);

	if (r < 0 || sp_options_is_done(ret))
		return r;
	r = take_format(n ? words[0] : NULL, ret, err);
	if (r >= 0)
		r = check_export(ret, err);
	return r < 0 ? r : sp_options_take_files(words + 1, n - 1, ret, err);
}
