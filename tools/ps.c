/* SPDX-License-Identifier: MIT */
/* sampleprof ps: the programs that run under the library. */
#include <inttypes.h>
#include <stdio.h>

#include "control/target.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"

struct ps_options {
	bool help;    /* asked for; nothing else counts */
	bool version; /* likewise */
};

static const struct sp_argument arguments[] = {
	SP_ARGUMENTS_ABOUT(struct ps_options)};

static const struct sp_argument_group group = {"Options", arguments, NULL};

static bool is_done(const void *options)
{
	const struct ps_options *o = options;

	return o->help || o->version;
}

const struct sp_command_line ps_line = {
	.forms = "ps",
	.about = "Process id, command and profile of each process that is "
		 "being profiled.\n",
	.parts = (const struct sp_argument_part[]){{&group, 0}, {0}},
	.ending = "Exit status: 0 fine, 1 error, 2 usage.\n",
	.is_done = is_done,
};

static void print_command(uint64_t pid)
{
	char path[64], text[512];
	size_t n;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/cmdline", pid);
	in = fopen(path, "re");
	n = in ? fread(text, 1, sizeof(text) - 1, in) : 0;
	if (in)
		fclose(in);
	for (size_t i = 0; i + 1 < n; i++)
		if (!text[i])
			text[i] = ' ';
	text[n] = '\0';
	sp_text_print(stdout, text);
}

static void print_target(void *arg, const struct sp_target *target)
{
	(void)arg;
	printf("%8" PRIu64 "  ", target->pid);
	print_command(target->pid);
	fputs("  ", stdout);
	sp_text_print(stdout, target->path);
	putchar('\n');
}

int run_ps(int argc, char **argv)
{
	struct ps_options options = {0};
	const char *const *words;
	struct sp_error err;
	size_t n;

	if (sp_arguments_parse(&ps_line, argc, argv, &options, &words, &n,
			       &err) < 0)
		return sp_console_fail_usage(err.message, "ps");
	if (options.help)
		return sp_console_print_help(&ps_line);
	if (options.version)
		return sp_console_print_version();
	if (n)
		return sp_console_fail_usage("ps has no arguments", "ps");
	printf("%8s  %s  %s\n", "pid", "command", "profile");
	if (sp_target_list(print_target, NULL, &err) < 0)
		return sp_console_fail_with(&err);
	return sp_console_finish();
}
