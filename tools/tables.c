/* SPDX-License-Identifier: MIT */
/*
 * Writes what is made from the tables that the commands are parsed with:
 *
 *	sampleprof-tables completion	what completion.bash completes: a
 *					function _sampleprof_table
 *	sampleprof-tables options	every option, for the man pages:
 *					tests/lint/man_options.py
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/advise.h"
#include "cli/leaks.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/symbolize.h"
#include "export/options.h"
#include "fleet/options.h"
#include "compare/gate_options.h"
#include "lab/options.h"
#include "rss/options.h"
#include "tools/commands.h"

static const struct {
	const char *command; /* "": none yet */
	const struct sp_command_line *line;
} lines[] = {
	{"", &help_line},
	{"run", &run_line},
	{"preload-path", &preload_path_line},
	{"ps", &ps_line},
	{"ctl", &ctl_line},
	{"rss", &sp_rss_line},
	{"attach", &attach_line},
	{"detach", &detach_line},
	{"ls", &ls_line},
	{"serve", &serve_line},
	{"push", &push_line},
	{"report", &sp_report_line},
	{"export", &sp_export_line},
	{"symbolize", &sp_symbolize_line},
	{"diff", &sp_diff_line},
	{"check", &sp_check_line},
	{"advise", &sp_advise_line},
	{"leaks", &sp_leaks_line},
	{"fleet", &sp_fleet_line},
	{"lab", &sp_lab_line},
};

static void print_words(sp_argument_word_fn *word)
{
	const char *text;

	for (size_t i = 0; (text = word(i)); i++)
		printf("%s%s", i ? " " : "", text);
}

/* Words are letters, digits and dashes: they need no quotes inside. */
static void print_options(const char *command,
			  const struct sp_command_line *line)
{
	const char *space = "";

	printf("\t'%s') words='", command);
	for (const struct sp_argument_part *p = line->parts; p->group; p++) {
		for (const struct sp_argument *k = p->group->option; k->name;
		     k++) {
			if (!k->help)
				continue;
			printf("%s--%s", space, k->name);
			space = " ";
			if (k->letter)
				printf(" -%c", k->letter);
		}
	}
	puts("' ;;");
}

static const struct sp_argument_values *find_values(
	const struct sp_argument_group *group, const char *name)
{
	for (const struct sp_argument_values *v = group->values; v && v->name;
	     v++)
		if (strcmp(v->name, name) == 0)
			return v;
	return NULL;
}

/* Options with a value, which may be one of a list. */
static void print_values(const char *command,
			 const struct sp_argument_group *group)
{
	for (const struct sp_argument *k = group->option; k->name; k++) {
		const struct sp_argument_values *values =
			find_values(group, k->name);

		if (!k->takes)
			continue;
		printf("\t'%s --%s'", command, k->name);
		if (k->letter)
			printf(" | '%s -%c'", command, k->letter);
		fputs(") takes=1", stdout);
		if (values) {
			fputs(" words='", stdout);
			print_words(values->word);
			putchar('\'');
		}
		puts(" ;;");
	}
}

static void print_line(const char *command, const struct sp_command_line *line)
{
	print_options(command, line);
	for (const struct sp_argument_part *p = line->parts; p->group; p++)
		print_values(command, p->group);
	if (!line->listed_word)
		return;
	printf("\t'%s %u') words='", command, line->listed_word);
	print_words(line->word);
	puts("' ;;");
}

static bool is_any(const struct sp_command *command)
{
	(void)command;
	return true;
}

static bool is_reading(const struct sp_command *command)
{
	return command->place == SP_COMMAND_PAGE ||
	       command->place == SP_COMMAND_OTHER;
}

static bool is_page(const struct sp_command *command)
{
	return command->place == SP_COMMAND_PAGE;
}

static void print_commands(const char *name,
			   bool (*is_one)(const struct sp_command *command),
			   const char *others)
{
	printf("_sampleprof_%s='", name);
	for (const struct sp_command *c = sp_commands; c->name; c++)
		if (is_one(c))
			printf(" %s", c->name);
	printf("%s'\n", others);
}

static void print_completion(void)
{
	puts("# bash completion of sampleprof, made from its tables of "
	     "options.\n"
	     "# shellcheck shell=bash\n"
	     "\n"
	     "# _sampleprof_table KEY: sets words, and takes=1 if KEY is an "
	     "option with a\n"
	     "# value. KEY is \"COMMAND\" for its options, \"COMMAND OPTION\" "
	     "for the values,\n"
	     "# \"COMMAND N\" for its Nth word.\n"
	     "_sampleprof_table()\n"
	     "{\n"
	     "\twords='' takes=''\n"
	     "\tcase $1 in");
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		print_line(lines[i].command, lines[i].line);
	puts("\tesac\n"
	     "}\n");
	print_commands("commands", is_any, " help");
	print_commands("reading", is_reading, "");
	puts("# Those that share the options of report.");
	print_commands("pages", is_page, "");
}

/* "COMMAND<TAB>NAME<TAB>LETTER<TAB>VALUE", then its lines of help behind a
 * space. */
static void print_option(const char *command, const struct sp_argument *k)
{
	printf("%s\t%s\t%.1s\t%s\n ", command, k->name, &k->letter,
	       k->meta ? k->meta : "");
	for (const char *p = k->help; *p; p++)
		fputs(*p == '\n' ? "\n " : (char[]){*p, '\0'}, stdout);
	putchar('\n');
}

static void print_all_options(void)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		for (const struct sp_argument_part *p = lines[i].line->parts;
		     p->group; p++)
			for (const struct sp_argument *k = p->group->option;
			     k->name; k++)
				if (k->help)
					print_option(lines[i].command, k);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "completion") == 0)
		print_completion();
	else if (argc == 2 && strcmp(argv[1], "options") == 0)
		print_all_options();
	else
		return 2;
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
