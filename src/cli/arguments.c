/* SPDX-License-Identifier: MIT */
/* Tables of options, with getopt_long_only() to take the words apart. */
#include "cli/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/nearest.h"

#define FIRST_CODE 256 /* beyond every character */

/* One command's options as getopt_long_only() wants them. */
struct table {
	const struct sp_argument **known;        /* n of them, as in `longs` */
	const struct sp_argument_group **groups; /* that they are of */
	size_t *offsets;                         /* of their parts */
	struct option *longs;                    /* and an empty one */
	char *letters;
	size_t n;
};

static void table_done(struct table *table)
{
	free(table->known);
	free(table->groups);
	free(table->offsets);
	free(table->longs);
	free(table->letters);
}

static int table_init(struct table *table, const struct sp_command_line *line)
{
	const struct sp_argument_part *part;
	const struct sp_argument *k;
	size_t n = 0;
	char *letter;

	for (part = line->parts; part->group; part++)
		for (k = part->group->option; k->name; k++)
			n++;
	*table = (struct table){
		.known = calloc(n + 1, sizeof(*table->known)),
		.groups = calloc(n + 1, sizeof(*table->groups)),
		.offsets = calloc(n + 1, sizeof(*table->offsets)),
		.longs = calloc(n + 1, sizeof(*table->longs)),
		.letters = calloc(2 * n + 3, 1),
	};
	if (!table->known || !table->groups || !table->offsets ||
	    !table->longs || !table->letters)
		return -ENOMEM;
	letter = table->letters;
	if (line->stops_at_word)
		*letter++ = '+';
	*letter++ = ':';
	for (part = line->parts; part->group; part++) {
		for (k = part->group->option; k->name; k++) {
			const size_t i = table->n++;

			table->known[i] = k;
			table->groups[i] = part->group;
			table->offsets[i] = part->offset;
			table->longs[i] = (struct option){
				k->name,
				k->takes ? required_argument : no_argument,
				NULL, FIRST_CODE + (int)i};
			if (!k->letter)
				continue;
			*letter++ = k->letter;
			if (k->takes)
				*letter++ = ':';
		}
	}
	return 0;
}

/* The option that getopt_long_only() means; table->n if it is none of ours. */
static size_t find_option(const struct table *table, int code)
{
	if (code >= FIRST_CODE)
		return (size_t)(code - FIRST_CODE);
	for (size_t i = 0; i < table->n; i++)
		if (code && table->known[i]->letter == code)
			return i;
	return table->n;
}

/* "size, sizes": options that begin with `name`; how many there are. */
static size_t list_options(const struct table *table, const char *name,
			   char *list, size_t room)
{
	size_t n = 0, used = 0;

	list[0] = '\0';
	for (size_t i = 0; i < table->n; i++) {
		const struct sp_argument *k = table->known[i];

		if (!k->help || strncmp(k->name, name, strlen(name)) != 0)
			continue;
		if (used < room)
			used += (size_t)snprintf(list + used, room - used,
						 "%s--%s", n ? ", " : "",
						 k->name);
		n++;
	}
	return n;
}

/* A value given as an option: "--view live" in `room` bytes, for "live". */
static bool find_value(const struct table *table, const char *name, char *meant,
		       size_t room)
{
	const struct sp_argument_values *v;
	const char *word;

	for (size_t i = 0; i < table->n; i++) {
		v = table->groups[i]->values;
		while (v && v->name &&
		       strcmp(v->name, table->known[i]->name) != 0)
			v++;
		for (size_t n = 0; v && v->name && (word = v->word(n)); n++) {
			if (!name[0] || !name[1] ||
			    strncmp(word, name, strlen(name)) != 0)
				continue;
			snprintf(meant, room, "--%s %s", v->name, word);
			return true;
		}
	}
	return false;
}

static int refuse_unknown(const struct sp_command_line *line,
			  const struct table *table, const char *text,
			  struct sp_error *err)
{
	const char *word = text + strspn(text, "-");
	struct sp_nearest nearest;
	char name[32], list[160], meant[64];
	const char *here;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	if (line->refuse && line->refuse(name, err) < 0)
		return -EINVAL;
	snprintf(meant, sizeof(meant), "%.*s", (int)strcspn(line->forms, " \n"),
		 line->forms);
	here = sp_nearest_elsewhere(meant, name);
	if (!here && *name && list_options(table, name, list, sizeof(list)) > 1)
		return sp_error_set(err, -EINVAL, NULL,
				    "option %.40s is ambiguous: %s", text,
				    list);
	if (!here && find_value(table, name, meant, sizeof(meant)))
		here = meant;
	if (here)
		return sp_error_set(err, -EINVAL, NULL,
				    "unknown option %.40s: did you mean %s?",
				    text, here);
	sp_nearest_init(&nearest, name);
	for (size_t i = 0; i < table->n; i++)
		if (table->known[i]->help)
			sp_nearest_try(&nearest, table->known[i]->name);
	return sp_nearest_name(&nearest)
		       ? sp_error_set(err, -EINVAL, NULL,
				      "unknown option %.80s: did you mean "
				      "--%s?",
				      text, sp_nearest_name(&nearest))
		       : sp_error_set(err, -EINVAL, NULL,
				      "unknown option %.80s", text);
}

/* What getopt_long_only() made of an option that it does not like. */
static int refuse_value(const struct sp_command_line *line,
			const struct table *table, int result, const char *text,
			struct sp_error *err)
{
	const size_t i = find_option(table, optopt);

	if (i < table->n && result == ':')
		return sp_error_set(err, -EINVAL, NULL, "--%s takes %s",
				    table->known[i]->name,
				    table->known[i]->takes);
	if (i < table->n)
		return sp_error_set(err, -EINVAL, NULL, "--%s takes no value",
				    table->known[i]->name);
	return refuse_unknown(line, table, text, err);
}

bool sp_argument_text(void *field, const char *text)
{
	*(const char **)field = text;
	return *text != '\0';
}

bool sp_argument_number(void *field, const char *text)
{
	return sp_parse_u64(text, field);
}

bool sp_argument_duration(void *field, const char *text)
{
	return sp_parse_duration(text, field);
}

/* A process has one command line. */
static bool wants_all;

static bool take_about(void *part, const char *text)
{
	(void)part;
	(void)text;
	return true;
}

static bool take_help_all(void *part, const char *text)
{
	wants_all = true;
	return take_about(part, text);
}

static const struct sp_argument about[] = {
	{"help", 'h', NULL, NULL, take_about, 0, "this text"},
	{"help-all", 0, NULL, NULL, take_help_all, 0,
	 "the same with all options"},
	{"version", 0, NULL, NULL, take_about, 0, "the version"},
	{0},
};

const struct sp_argument_group sp_arguments_about = {NULL, about, NULL};
const struct sp_argument_group sp_arguments_alone = {"Options", about, NULL};

/* The word of the option's list that a mistyped value was meant to be, or
 * NULL. */
static const char *nearest_value(const struct table *table, size_t i,
				 const char *text)
{
	const struct sp_argument_values *v = table->groups[i]->values;
	struct sp_nearest nearest;
	const char *word;

	while (v && v->name && strcmp(v->name, table->known[i]->name) != 0)
		v++;
	if (!v || !v->name || !text)
		return NULL;
	sp_nearest_init(&nearest, text);
	for (size_t n = 0; (word = v->word(n)); n++)
		if (word[0] && word[1]) /* any word is near to a letter */
			sp_nearest_try(&nearest, word);
	return sp_nearest_name(&nearest);
}

static int refuse_taken(const struct table *table, size_t i,
			struct sp_error *err)
{
	const struct sp_argument *k = table->known[i];
	const char *nearest = nearest_value(table, i, optarg);

	return sp_error_set(err, -EINVAL, NULL, "--%s takes %s%s%s%s", k->name,
			    k->takes, nearest ? ": did you mean " : "",
			    nearest ? nearest : "", nearest ? "?" : "");
}

static int take_option(const struct table *table, size_t i, void *options,
		       struct sp_error *err)
{
	const struct sp_argument *k = table->known[i];
	void *field = (char *)options + table->offsets[i] + k->field;

	if (!k->take && k->takes)
		*(const char **)field = optarg;
	else if (!k->take)
		*(bool *)field = true;
	else if (!k->take(field, k->takes ? optarg : NULL))
		return refuse_taken(table, i, err);
	return 0;
}

/* SP_ARGUMENTS_HELP, SP_ARGUMENTS_VERSION; 0: neither. */
static int about_of(const struct sp_argument *argument)
{
	if (argument == &about[2])
		return SP_ARGUMENTS_VERSION;
	return argument == &about[0] || argument == &about[1]
		       ? SP_ARGUMENTS_HELP
		       : 0;
}

static int take_all(const struct sp_command_line *line,
		    const struct table *table, int argc, char **argv,
		    void *options, struct sp_error *err)
{
	int code, r = 0;
	size_t i;

	optind = 0; /* begin anew */
	opterr = 0;
	while (!r) {
		/* One dash is enough, as for pprof. */
		code = getopt_long_only(argc, argv, table->letters,
					table->longs, NULL);
		if (code < 0)
			break;
		i = code == '?' || code == ':' ? table->n
					       : find_option(table, code);
		r = i < table->n ? take_option(table, i, options, err)
				 : refuse_value(line, table, code,
						argv[optind - 1], err);
		if (!r && line->note)
			line->note(options, table->known[i],
				   table->known[i]->takes ? optarg : NULL);
		if (!r)
			r = about_of(table->known[i]);
	}
	return r;
}

/* POSIXLY_CORRECT is for the programs that we run: options may stand behind
 * other words all the same. */
static int take_anywhere(const struct sp_command_line *line,
			 const struct table *table, int argc, char **argv,
			 void *options, struct sp_error *err)
{
	const char *set = getenv("POSIXLY_CORRECT");
	char *strict = set ? strdup(set) : NULL;
	int r;

	if (set && !strict)
		return sp_error_memory(err, NULL);
	unsetenv("POSIXLY_CORRECT");
	r = take_all(line, table, argc, argv, options, err);
	if (strict && setenv("POSIXLY_CORRECT", strict, 1) < 0)
		r = sp_error_memory(err, NULL);
	free(strict);
	return r;
}

int sp_arguments_parse(const struct sp_command_line *line, int argc,
		       char **argv, void *options,
		       const char *const **ret_words, size_t *ret_n,
		       struct sp_error *err)
{
	struct table table;
	int r = table_init(&table, line);

	if (r < 0)
		sp_error_memory(err, NULL);
	else
		r = take_anywhere(line, &table, argc, argv, options, err);
	table_done(&table);
	*ret_words = (const char *const *)argv + optind;
	*ret_n = (size_t)(argc - optind);
	return r;
}

int sp_arguments_take_file(const char *const *words, size_t n,
			   const char **ret_file, struct sp_error *err)
{
	if (n != 1)
		return sp_error_set(err, -EINVAL, NULL, "%s",
				    n ? "one profile at a time: there is more "
					"than one FILE"
				      : "which profile? no FILE was given");
	*ret_file = words[0];
	return 0;
}

void sp_arguments_print_lines(FILE *out, const char *text)
{
	for (;;) {
		size_t n = strcspn(text, "\n");

		fprintf(out, "%.*s\n", (int)n, text);
		if (!text[n])
			return;
		text += n + 1;
		fprintf(out, "%*s", SP_ARGUMENTS_HELP_COLUMN, "");
	}
}

static void print_option(FILE *out, const struct sp_argument *k)
{
	int n = 2;

	fputs("  ", out);
	if (k->letter)
		n += fprintf(out, "-%c, ", k->letter);
	n += fprintf(out, "--%s%s%s", k->name, k->meta ? " " : "",
		     k->meta ? k->meta : "");
	if (n + 1 > SP_ARGUMENTS_HELP_COLUMN) {
		putc('\n', out);
		n = 0;
	}
	fprintf(out, "%*s", SP_ARGUMENTS_HELP_COLUMN - n, "");
	sp_arguments_print_lines(out, k->help);
}

/* A program named after a command is called without it. */
static void print_forms(FILE *out, const char *forms, const char *program)
{
	const char *implied = sp_command_implied(program);
	const size_t len = implied ? strlen(implied) : 0;
	const char *form = forms, *start = "usage: ";

	while (form) {
		const char *end = strchr(form, '\n');

		if (implied && strncmp(form, implied, len) == 0 &&
		    form[len] == ' ')
			form += len + 1;
		fprintf(out, "%s%s %.*s\n", start, program,
			(int)strcspn(form, "\n"), form);
		start = "       ";
		form = end ? end + 1 : NULL;
	}
}

void sp_arguments_print_help(FILE *out, const struct sp_command_line *line,
			     const char *program)
{
	print_forms(out, line->forms, program);
	if (line->brief && !wants_all) {
		fprintf(out, "\n%s", line->brief);
		return;
	}
	fprintf(out, "\n%s", line->about);
	if (line->describe)
		line->describe(out);
	for (const struct sp_argument_part *part = line->parts; part->group;
	     part++) {
		if (part->group->title)
			fprintf(out, "\n%s:\n", part->group->title);
		for (const struct sp_argument *k = part->group->option; k->name;
		     k++)
			if (k->help && (wants_all || k->take != take_help_all))
				print_option(out, k);
	}
	fprintf(out, "\n%s", line->ending);
}
