/* SPDX-License-Identifier: MIT */
/* The command line of sampleprof serve. */
#include <stddef.h>

#include "tools/commands.h"
#include "tools/serve.h"

static const struct sp_argument arguments[] = {
	{"listen", 0, "HOST:PORT", "an address and a port, 127.0.0.1:9400",
	 NULL, offsetof(struct serve_options, listen),
	 "address and port as numbers, 127.0.0.1:9400 by\n"
	 "default; port 0 is any free port"},
	{"keep", 0, "TIME", "a time such as 10m or 1h", sp_argument_duration,
	 offsetof(struct serve_options, keep_ns),
	 "how long /metrics shows a process that has ended; 10m\n"
	 "by default"},
	{0}};

static const struct sp_argument_group group = {"Options", arguments, NULL};

const struct sp_command_line serve_line = {
	.forms = "serve [OPTION]... [DIR]",
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
		"meanwhile. There is no password: whoever reaches the address "
		"reads the profiles.\n",
	.parts = (const struct sp_argument_part[]){{&group, 0},
						   {&sp_arguments_about, 0},
						   {0}},
	.ending = "Exit status: 0 interrupted, 1 error, 2 usage.\n",
};
