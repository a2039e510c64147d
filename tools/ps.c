/* SPDX-License-Identifier: MIT */
/* sampleprof ps: the programs that run under the library. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "control/target.h"
#include "text/table.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"

struct ps_options {
	bool json, csv; /* not both */
};

static const struct sp_argument arguments[] = {
	SP_ARGUMENT_FLAG(struct ps_options, "json", json, "the same as JSON"),
	SP_ARGUMENT_FLAG(struct ps_options, "csv", csv, "the same as CSV"),
	{0}};

static const struct sp_argument_group group = {"Options", arguments, NULL};

const struct sp_command_line ps_line = {
	.forms = "ps [OPTION]...",
	.about = "List the processes that are being profiled: id, name, "
		 "command and profile. Name\n"
		 "and command are those that the process has now.\n",
	.parts = (const struct sp_argument_part[]){{&group, 0},
						   {&sp_arguments_about, 0},
						   {0}},
	.ending = "Exit status: 0 fine, 1 error, 2 usage.\n",
};

struct process {
	uint64_t pid;
	char name[32]; /* the kernel's, which a program may change */
	char *command; /* its arguments, as they are by now */
	char *profile;
};

struct processes {
	struct process *list;
	size_t n;
	bool is_short; /* of memory */
	bool is_silent;
};

/* Of what /proc says: spaces for the zero bytes that are between words. */
static void clean_text(char *text, long n)
{
	while (n > 0 && (!text[n - 1] || text[n - 1] == '\n'))
		text[--n] = '\0';
	for (long i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
}

/* No command line is longer: a process may say that any of its memory is it. */
#define COMMAND_MAX (8u << 20)

/* To be freed; "" if it is not to be read; NULL: no memory. */
static char *read_command(uint64_t pid)
{
	const pid_t thread = sp_proc_thread(pid);
	size_t size = 1024;
	char *text = NULL, *grown;
	long n = (long)size;

	while (n + 1 >= (long)size && size < COMMAND_MAX) {
		size *= 2;
		grown = realloc(text, size);
		if (!grown) {
			free(text);
			return NULL;
		}
		text = grown;
		n = sp_proc_read(text, size, "/proc/%d/cmdline", thread);
	}
	clean_text(text, n);
	return text;
}

static void say_silence(void *arg, const struct sp_error *why)
{
	struct processes *all = arg;

	sp_console_fail_with(why);
	all->is_silent = true;
}

/* The columns are for what differs. */
static const char *without_directory(const char *command)
{
	const char *at = command + strcspn(command, " ");

	while (at > command && at[-1] != '/')
		at--;
	return at;
}

static void add_process(void *arg, const struct sp_target *target)
{
	struct processes *all = arg;
	struct process *grown =
		realloc(all->list, (all->n + 1) * sizeof(*grown));
	struct process *p;

	if (!grown) {
		all->is_short = true;
		return;
	}
	all->list = grown;
	p = &grown[all->n++];
	p->pid = target->pid;
	clean_text(p->name, sp_proc_read(p->name, sizeof(p->name),
					 "/proc/%" PRIu64 "/comm", p->pid));
	p->command = read_command(p->pid);
	p->profile = strdup(target->path);
	all->is_short |= !p->command || !p->profile;
}

#define NAME_COLUMNS    15u
#define COMMAND_COLUMNS 54u

/* Profiles are what is copied from here, so they are never cut: they have lines
 * of their own, as in `ls`. */
static void print_processes(const struct processes *all)
{
	printf("%7s  %-*s  %s\n", "pid", (int)NAME_COLUMNS, "name", "command");
	for (size_t i = 0; i < all->n; i++) {
		const struct process *p = &all->list[i];

		printf("%7" PRIu64 "  ", p->pid);
		sp_console_print_cell(stdout, p->name, NAME_COLUMNS);
		fputs("  ", stdout);
		sp_console_print_cut(stdout, without_directory(p->command),
				     COMMAND_COLUMNS);
		fputs("\n        ", stdout);
		sp_text_print(stdout, p->profile);
		putchar('\n');
	}
}

/* ---- for programs ---- */

struct row {
	uint64_t pid;
	const char *name, *command, *profile;
};

static const struct sp_table_column columns[] = {
	SP_TABLE_COLUMN(struct row, U64, "pid", pid),
	SP_TABLE_COLUMN(struct row, TEXT, "name", name),
	SP_TABLE_COLUMN(struct row, TEXT, "command", command),
	SP_TABLE_COLUMN(struct row, TEXT, "profile", profile),
	{0},
};

static void write_processes(const struct processes *all, bool as_json)
{
	struct sp_table table;

	sp_table_begin(&table, stdout, columns, as_json);
	for (size_t i = 0; i < all->n; i++) {
		const struct process *p = &all->list[i];
		const struct row row = {p->pid, p->name, p->command,
					p->profile};

		sp_table_row(&table, &row);
	}
	sp_table_end(&table);
}

static int list_processes(const struct ps_options *options)
{
	struct processes all = {.n = 0};
	struct sp_error err;
	int r = sp_target_list(add_process, say_silence, &all, &err);

	if (r >= 0 && all.is_short)
		r = sp_error_memory(&err, NULL);
	if (r >= 0 && (options->json || options->csv))
		write_processes(&all, options->json);
	else if (r >= 0)
		print_processes(&all);
	for (size_t i = 0; i < all.n; i++) {
		free(all.list[i].command);
		free(all.list[i].profile);
	}
	free(all.list);
	if (r < 0)
		return sp_console_fail_with(&err);
	r = sp_console_finish();
	return all.is_silent ? EXIT_ERROR : r;
}

int run_ps(int argc, char **argv)
{
	struct ps_options options = {0};
	const char *const *words;
	size_t n;
	int code;

	code = sp_console_parse(&ps_line, "ps", argc, argv, &options, &words,
				&n);
	if (code >= 0)
		return code;
	if (n)
		return sp_console_fail_usage("ps has no arguments", "ps");
	if (options.json && options.csv)
		return sp_console_fail_usage("--json or --csv, not both", "ps");
	return list_processes(&options);
}
