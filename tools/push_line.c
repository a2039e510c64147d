/* SPDX-License-Identifier: MIT */
/* The command line of sampleprof push. */
#include <stddef.h>
#include <string.h>

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

/* A name, a colon, and a printable value? */
static bool is_header(const char *header)
{
	static const char name[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	const size_t n = strspn(header, name);

	if (!n || header[n] != ':')
		return false;
	for (const char *c = header; *c; c++)
		if (*c < ' ' || *c > '~')
			return false;
	return true;
}

static bool take_header(void *part, const char *text)
{
	struct sp_receiver_options *to = &((struct push_options *)part)->to;

	if (to->n_headers == SP_RECEIVER_HEADERS_MAX || !is_header(text))
		return false;
	to->headers[to->n_headers++] = text;
	return true;
}

static const struct sp_argument arguments[] = {
	{"otlp", 0, "URL", "a URL such as http://127.0.0.1:4318",
	 sp_argument_text, offsetof(struct push_options, otlp),
	 "an OpenTelemetry collector, such as\n"
	 "http://127.0.0.1:4318"},
	{"pyroscope", 0, "URL", "a URL such as http://127.0.0.1:4040",
	 sp_argument_text, offsetof(struct push_options, pyroscope),
	 "a Pyroscope server, such as http://127.0.0.1:4040"},
	{"interval", 0, "TIME", "a time of 100ms to 1h", take_interval, 0,
	 "between two profiles of a process; 15s by default"},
	{"token-file", 0, "FILE", "the name of a file", sp_argument_text,
	 offsetof(struct push_options, token_file),
	 "a file whose first line is the bearer token for the\n"
	 "server (default with --pyroscope: $PYROSCOPE_AUTH_TOKEN)"},
	{"header", 0, "LINE", "a line such as X-Scope-OrgID: 7, at most 16",
	 take_header, 0,
	 "one more header of each request; a secret belongs into\n"
	 "--token-file"},
	{"ca-file", 0, "FILE", "the name of a file", sp_argument_text,
	 offsetof(struct push_options, to.ca_file),
	 "certificates of who signs the server's, as PEM; by\n"
	 "default the system's"},
	{0}};

static const struct sp_argument_group group = {"Options", arguments, NULL};

const struct sp_command_line push_line = {
	.forms = "push --otlp|--pyroscope URL [OPTION]... [DIR]\n"
		 "push --otlp|--pyroscope URL [OPTION]... FILE...",
	.brief =
		"Send profiles to a server: what processes allocate, and what "
		"is alive. Of a\n"
		"directory, here by default, what is allocated from now on, "
		"until it is\n"
		"interrupted; of files all, until their processes end.\n"
		"\n"
		"  --otlp URL         an OpenTelemetry collector: "
		"http://127.0.0.1:4318\n"
		"  --pyroscope URL    a Pyroscope server: "
		"http://127.0.0.1:4040\n"
		"  --interval TIME    between two profiles of a process (15s)\n"
		"  --token-file FILE  a bearer token, in its first line\n"
		"  --header LINE      one more header of each request\n"
		"  --ca-file FILE     who signs the server's certificate, as "
		"PEM\n"
		"  --help-all         all options\n",
	.about = "Send profiles to a server: what processes allocate, and what "
		 "is alive. With\n"
		 "--otlp it takes OpenTelemetry's profiles at "
		 "URL/v1development/profiles.\n"
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
