/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/arguments.h"
#include "lab/trial.h"
#include "symbols/symbolizer.h"

/* The command line of the lab. */
struct sp_lab_options {
	struct sp_lab_trial trial;
	struct sp_symbolizer_options symbols; /* of a recording */
	const char *file;     /* a recording; NULL: made-up workloads */
	const char *workload; /* one of them; NULL: all */
	const char *strategy; /* one; NULL: all */
	const char *site;     /* what tables are about; NULL: see the trace */
	bool json;
};

/* argv[0] is the program.  As sp_options_parse(), or -ENOMEM. */
int sp_lab_options_parse(int argc, char **argv, struct sp_lab_options *ret,
			 struct sp_error *err);

extern const struct sp_command_line sp_lab_line;
