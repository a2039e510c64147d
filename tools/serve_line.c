/* SPDX-License-Identifier: MIT */
/* The command line of sampleprof serve. */
#include <stddef.h>
#include <string.h>

#include "base/parse.h"
#include "tools/commands.h"
#include "tools/serve.h"

static bool take_connections(void *part, const char *text)
{
	struct serve_options *o = part;
	uint64_t n;

	if (!sp_parse_u64(text, &n) || n < 1 || n > SP_SERVER_CONNECTIONS_MAX)
		return false;
	o->server.connections = (unsigned int)n;
	return true;
}

static bool take_host(void *part, const char *text)
{
	struct sp_server_options *o = &((struct serve_options *)part)->server;

	if (!*text || strpbrk(text, ":/ ") || o->n_hosts == SP_SERVER_HOSTS_MAX)
		return false;
	o->hosts[o->n_hosts++] = text;
	return true;
}

static const struct sp_argument arguments[] = {
	{"listen", 0, "HOST:PORT", "an address and a port, 127.0.0.1:9400",
	 sp_argument_text, offsetof(struct serve_options, server.listen),
	 "address and port as numbers, 127.0.0.1:9400 by\n"
	 "default; port 0 is any free port. unix:PATH is a\n"
	 "socket for your user alone"},
	{"keep", 0, "TIME", "a time such as 10m or 1h", sp_argument_duration,
	 offsetof(struct serve_options, server.keep_ns),
	 "how long /metrics shows a process that has ended; 10m\n"
	 "by default"},
	{"token-file", 0, "FILE", "the name of a file", sp_argument_text,
	 offsetof(struct serve_options, token_file),
	 "a file whose first line is a token, which each request\n"
	 "must have as Authorization: Bearer"},
	{"host", 0, "NAME", "a name without a port, at most 16 times",
	 take_host, 0,
	 "a name by which requests may call this server, besides\n"
	 "its own, localhost and numbers"},
	{"connections", 0, "N", "a number from 1 to 50000", take_connections, 0,
	 "how many at a time, 1000 by default; beyond it requests\n"
	 "are told to come again"},
	SP_ARGUMENT_FLAG(struct serve_options, "no-classes", server.no_classes,
			 "no totals by size class in /metrics"),
	{0}};

static const struct sp_argument_group group = {"Options", arguments, NULL};

const struct sp_command_line serve_line = {
	.forms = "serve [OPTION]... [DIR]",
	.brief =
		"Serve the profiles in a directory, here by default, over "
		"HTTP until it is\n"
		"interrupted:\n"
		"\n"
		"  /metrics               exact totals, estimates with limits, "
		"RSS: OpenMetrics\n"
		"  /debug/pprof/allocs    what was allocated: go tool pprof, "
		"Parca, Grafana\n"
		"  /debug/pprof/heap      what is alive; also peak; ?pid=N, "
		"?seconds=N\n"
		"\n"
		"  --listen HOST:PORT     as numbers, 127.0.0.1:9400 by "
		"default; or unix:PATH\n"
		"  --token-file FILE      answer only to the bearer token in "
		"its first line\n"
		"  --host NAME            another name of this server in "
		"requests\n"
		"  --keep TIME            how long a process that has ended is "
		"in /metrics (10m)\n"
		"  --help-all             all options\n",
	.about =
		"Serve the profiles in a directory, here by default, over "
		"HTTP until it is\n"
		"interrupted:\n"
		"\n"
		"  /metrics               exact totals, estimates with limits, "
		"RSS: OpenMetrics\n"
		"  /debug/pprof/allocs    what was allocated: go tool pprof, "
		"Parca, Grafana\n"
		"  /debug/pprof/heap      what is alive\n"
		"  /debug/pprof/peak      what was alive at the peak\n"
		"\n"
		"?pid=N chooses a process, ?seconds=N waits so long and has "
		"what was allocated\n"
		"meanwhile. Without --token-file whoever reaches the address "
		"reads the profiles.\n",
	.parts = (const struct sp_argument_part[]){{&group, 0},
						   {&sp_arguments_about, 0},
						   {0}},
	.ending = "Exit status: 0 interrupted, 1 error, 2 usage.\n",
};
