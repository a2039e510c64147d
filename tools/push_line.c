/* SPDX-License-Identifier: MIT */
/* The command line of sampleprof push. */
#include <stddef.h>

#include "base/parse.h"
#include "tools/commands.h"
#include "tools/push.h"

#define SECOND_NS 1000000000ull

static bool take_interval(void *part, const char *text)
{
	struct push_options *o = part;

	return sp_parse_duration(text, &o->interval_ns) &&
	       o->interval_ns >= SECOND_NS / 10 &&
	       o->interval_ns <= 3600 * SECOND_NS;
}

static const struct sp_argument arguments[] = {
	{"pyroscope", 0, "URL", "a URL such as http://127.0.0.1:4040",
	 sp_argument_text, offsetof(struct push_options, pyroscope),
	 "the server, such as http://127.0.0.1:4040"},
	{"interval", 0, "TIME", "a time of 100ms to 1h", take_interval, 0,
	 "between two profiles of a process; 15s by default"},
	{"token-file", 0, "FILE", "the name of a file", sp_argument_text,
	 offsetof(struct push_options, token_file),
	 "a file whose first line is the bearer token for the\n"
	 "server (default $PYROSCOPE_AUTH_TOKEN)"},
	{0}};

static const struct sp_argument_group group = {"Options", arguments, NULL};

const struct sp_command_line push_line = {
	.forms = "push --pyroscope URL [OPTION]... [DIR]\n"
		 "push --pyroscope URL [OPTION]... FILE...",
	.about = "Send profiles to a Pyroscope server: what processes "
		 "allocate, and what is alive.\n"
		 "With a directory, here by default, push sends what its "
		 "processes allocate from\n"
		 "now on, until it is interrupted. With files it sends all "
		 "that their processes\n"
		 "allocate until they end.\n"
		 "\n"
		 "Each profile has what was allocated since the last one, so "
		 "their sum is the\n"
		 "exact total. What the server did not take is part of the "
		 "next profile. A profile\n"
		 "that the server did not answer is not sent again, so nothing "
		 "counts twice.\n",
	.parts = (const struct sp_argument_part[]){{&group, 0},
						   {&sp_arguments_about, 0},
						   {0}},
	.ending = "Exit status: 0 all was sent, or interrupted; 1 error, 2 "
		  "usage.\n",
};
