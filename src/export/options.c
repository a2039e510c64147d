/* SPDX-License-Identifier: MIT */
#include "export/options.h"

#include <errno.h>
#include <string.h>

#include "cli/nearest.h"
#include "base/parse.h"
#include "cli/arguments.h"
#include "cli/options.h"

static bool take_max_samples(void *part, const char *text)
{
	struct sp_export_request *o = part;

	return sp_parse_u64(text, &o->how.max_samples) &&
	       o->how.max_samples > 0;
}

static bool take_base(void *part, const char *text)
{
	struct sp_export_options *how =
		&((struct sp_export_request *)part)->how;

	if (!*text || how->n_base_files == SP_EXPORT_BASE_MAX)
		return false;
	how->base_files[how->n_base_files++] = text;
	return true;
}

#define FLAG(name, member, help)                                               \
	SP_ARGUMENT_FLAG(struct sp_export_request, name, member, help)

#define PART(group, member)                                                    \
	SP_ARGUMENT_PART(struct sp_export_request, group, member)

static const struct sp_argument export_arguments[] = {
	{"output", 'o', "OUT", "a path, or - for standard output",
	 sp_argument_text, offsetof(struct sp_export_request, output),
	 "file to write; - for standard output"},
	FLAG("own-frames", question.filter.only_own,
	     "only the program's own functions: without those of standard\n"
	     "libraries and wrappers of allocators"),
	FLAG("pprof-error", how.pprof_error,
	     "two more sample types: variance of the bytes, samples"),
	{"max-samples", 0, "N", "a number above 0", take_max_samples, 0,
	 "fold the samples with fewest bytes (pprof, otlp)"},
	{"base", 0, "OLD", "a path, at most 1024 times", take_base, 0,
	 "what FILE is compared with (html); several are added up"},
	{0},
};

static const struct sp_argument_group how_to_write = {"How to write",
						      export_arguments, NULL};

static int refuse_in_export(const char *name, struct sp_error *err)
{
	return sp_options_are(&sp_options_report, name)
		       ? sp_error_set(err, -EINVAL, NULL,
				      "an export cannot be used with --%s",
				      name)
		       : 0;
}

static const char *format_word(size_t i)
{
	return sp_export_formats[i].name;
}

static void describe_formats(FILE *out)
{
	fputs("\nFormats:\n", out);
	for (const struct sp_export_format *f = sp_export_formats; f->name; f++)
		fprintf(out, "  %-18s %s\n", f->name, f->what);
}

const struct sp_command_line sp_export_line = {
	.forms = "export FORMAT [OPTION]... FILE... -o OUT",
	.brief = "Formats:\n"
		 "  html               a page for a browser: flame graph, "
		 "timeline, tables\n"
		 "  pprof              profile.proto, gzip: go tool pprof, "
		 "Parca, Pyroscope\n"
		 "  otlp               OpenTelemetry's profiles.proto: "
		 "collectors, Pyroscope\n"
		 "  speedscope         speedscope's JSON: alloc and live, "
		 "inlines kept\n"
		 "  collapsed          one line per stack: flamegraph.pl, "
		 "inferno\n"
		 "  dhat, massif, heap_v2\n"
		 "                     for dh_view.html, ms_print, jeprof\n"
		 "  json, csv, jsonl   everything; functions; a line for each "
		 "sample\n"
		 "\n"
		 "  -o, --output OUT   file to write; - for standard output\n"
		 "  --view VIEW        alloc, live, peak, leaks, temporary, "
		 "mapped: help report\n"
		 "  --at TIME|NAME     the moment of live and leaks: 2s, 50%, "
		 "end, a snapshot\n"
		 "  --from, --to TIME  only what was allocated then\n"
		 "  --focus, --ignore REGEX\n"
		 "                     only call stacks with a match, or "
		 "without one\n"
		 "  --base OLD         what FILE is compared with (html)\n"
		 "  --help-all         all options\n",
	.about = "Write a profile for another program.\n",
	.describe = describe_formats,
	.parts =
		(const struct sp_argument_part[]){
			{&how_to_write, 0},
			PART(sp_options_question, question),
			PART(sp_options_filter, question),
			PART(sp_options_method, question),
			PART(sp_options_functions, symbols),
			PART(sp_options_symbols, symbols),
			{&sp_arguments_about, 0},
			{0}},
	.ending = "Exit status: 0 fine, 1 error, 2 usage.\n",
	.listed_word = 1,
	.word = format_word,
	.refuse = refuse_in_export,
};

/* What a format is called elsewhere, or was meant to be called; else NULL. */
static const char *other_name(const char *word)
{
	const char *here = sp_nearest_elsewhere("format", word);
	struct sp_nearest nearest;

	if (here)
		return here;
	sp_nearest_init(&nearest, word);
	for (const struct sp_export_format *f = sp_export_formats; f->name; f++)
		sp_nearest_try(&nearest, f->name);
	return sp_nearest_name(&nearest);
}

/* The format, which is the first of the words that are no options. */
static int take_format(const char *word, struct sp_export_request *o,
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
	if (!o->format && other_name(word))
		return sp_error_set(err, -EINVAL, NULL,
				    "there is no format %.20s: did you mean "
				    "%s?",
				    word, other_name(word));
	if (!o->format)
		return sp_error_set(err, -EINVAL, NULL,
				    "there is no format %.20s: use one of %s",
				    word, names);
	return 0;
}

static int check_export(const struct sp_export_request *o, struct sp_error *err)
{
	const unsigned int knows = o->format->knows;

	if (o->question.of_objects && !(knows & SP_EXPORT_KNOWS_METRIC))
		return sp_error_set(err, -EINVAL, NULL,
				    "%s cannot be used with --metric objects",
				    o->format->name);
	if ((o->how.pprof_error || o->how.max_samples) &&
	    !(knows & SP_EXPORT_KNOWS_PPROF))
		return sp_error_set(
			err, -EINVAL, NULL,
			"%s cannot be used with --pprof-error or --max-samples",
			o->format->name);
	if (o->how.n_base_files && !(knows & SP_EXPORT_KNOWS_BASE))
		return sp_error_set(err, -EINVAL, NULL,
				    "%s cannot be used with --base: html shows "
				    "two sides, and so does diff",
				    o->format->name);
	if (o->question.samples_of && !(knows & SP_EXPORT_KNOWS_MAPPED))
		return sp_error_set(
			err, -EINVAL, NULL,
			"%s is about allocated objects: it cannot be used with "
			"--view mapped or reserved",
			o->format->name);
	if (o->question.of_resident && !(knows & SP_EXPORT_KNOWS_RESIDENT))
		return sp_error_set(
			err, -EINVAL, NULL,
			"%s shows several moments, and resident bytes are "
			"known for one: pprof, speedscope, collapsed, json, "
			"csv and jsonl can be used with --metric resident",
			o->format->name);
	if (!o->output)
		return sp_error_set(err, -EINVAL, NULL,
				    "where to? no -o OUT was given (- is "
				    "standard output)");
	return 0;
}

int sp_export_options_parse(int argc, char **argv,
			    struct sp_export_request *ret, struct sp_error *err)
{
	const char *const *words;
	size_t n;
	int r;

	*ret = (struct sp_export_request){0};
	sp_question_init(&ret->question);
	r = sp_arguments_parse(&sp_export_line, argc, argv, ret, &words, &n,
			       err);
	if (r)
		return r;
	r = sp_options_settle(&ret->question, err);
	if (r >= 0)
		r = sp_options_settle_functions(&ret->symbols, err);
	if (r >= 0)
		r = take_format(n ? words[0] : NULL, ret, err);
	ret->how.of_objects = ret->question.of_objects;
	if (r >= 0)
		r = check_export(ret, err);
	if (r < 0)
		return r;
	if (n < 2)
		return sp_error_set(err, -EINVAL, NULL,
				    "which profile? no FILE was given");
	ret->files = words + 1;
	ret->n_files = n - 1;
	return 0;
}
