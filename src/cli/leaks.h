/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/arguments.h"
#include "model/profile.h"
#include "read/load.h"
#include "report/leak_sites.h"
#include "report/question.h"
#include "symbols/symbolizer.h"

/* The leaks command: of each call site whether it leaks (docs/statistics.md,
 * E51 to E55). */
struct sp_leaks_options {
	const char *file;
	struct sp_question question; /* its from and to */
	struct sp_symbolizer_options symbols;
	enum sp_granularity granularity;
	uint64_t top;   /* sites of each kind; 0: all */
	bool json, csv; /* not both */
};

/* As sp_options_parse(). */
int sp_leaks_parse(int argc, char **argv, struct sp_leaks_options *ret,
		   struct sp_error *err);

extern const struct sp_command_line sp_leaks_line;

/* All at once: judge the sites of the profile and write that to `out`.
 * `progress` may be NULL.  0; negative errno and *err. */
int sp_leaks_print(FILE *out, const struct sp_profile *profile,
		   const struct sp_leaks_options *options,
		   sp_progress_fn *progress, void *progress_arg,
		   struct sp_error *err);

/* Verdicts as text or as JSON.  Write errors stay in the stream. */
void sp_leaks_write_text(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_leak_sites *sites,
			 const struct sp_leaks_options *options);
void sp_leaks_write_json(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_leak_sites *sites);
void sp_leaks_write_csv(FILE *out, const struct sp_leak_sites *sites);
