/* SPDX-License-Identifier: MIT */
#ifndef SP_TOOLS_SAMPLEPROF_H
#define SP_TOOLS_SAMPLEPROF_H

#include "base/error.h"

/* What the commands of sampleprof share: the one place that prints their errors
 * and knows their exit codes. */
#define PROGRAM "sampleprof"

enum exit_code {
	EXIT_FINE = 0,
	EXIT_ERROR = 1,
	EXIT_USAGE = 2,
	/* Of ctl: the order is queued, and was not carried out yet. */
	EXIT_QUEUED = 3,
};

/* Print it; `code`. */
int fail(const struct sp_error *err, int code);

/* What is wrong with the arguments, at which word or NULL; EXIT_USAGE. */
int usage(const char *what, const char *word);
int point_to_help(void);

/* Is all of standard output written?  An exit code. */
int finish_output(void);

/* ctl.c; argv[0] is what getopt begins its errors with. */
int command_ctl(int argc, char **argv);

#endif
