/* SPDX-License-Identifier: MIT */
#ifndef SP_REPORT_OPTIONS_H
#define SP_REPORT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "profile/symbolizer.h"
#include "report/aggregate.h"
#include "report/export.h"
#include "report/question.h"

/* The command line of the report: what to show, of what, and how. */
struct sp_options {
	const char *program; /* as it was called, for the next command */
	const char *file;
	struct sp_question question;
	struct sp_symbolizer_options symbols;
	enum sp_aggregate_order order;
	bool has_top; /* --top was given */
	uint64_t top; /* functions; 0: all */
	bool has_stacks;
	uint64_t stacks; /* call stacks; 0: all */
	bool has_order;
	bool simultaneous;
	bool timeline;
	bool sizes;
	bool json;
	bool csv;
	bool ascii;
	uint64_t watch_ns; /* 0: once */
	unsigned int
		columns; /* of the screen, set by the caller; 0: no limit */
	/* Of an export alone. */
	bool is_export;
	bool has_metric;
	const struct sp_export_format *format;
	struct sp_export_options export;
	const char *output; /* path; "-": standard output */
	bool help;          /* asked for; nothing else counts */
	bool version;       /* likewise */
};

/* All text of --help. */
extern const char sp_options_help[];

/*
 * Parse; argv[0] is the program.  0 and *ret, which borrows from argv; -EINVAL
 * and *err, whose message says what is wrong and what would be right.  Options
 * may stand after the file.
 */
int sp_options_parse(int argc, char **argv, struct sp_options *ret,
		     struct sp_error *err);

/*
 * The same for the command line of an export: what follows are a format and
 * the file.
 */
int sp_options_parse_export(int argc, char **argv, struct sp_options *ret,
			    struct sp_error *err);

/* All text of export --help. */
void sp_options_print_export_help(FILE *out);

/* The view if none was asked for: what is alive where that is news, in a
 * process that runs or was killed; for programs always SP_VIEW_ALLOC, so that
 * keys and columns do not change their meaning. */
enum sp_view sp_options_fallback(const struct sp_options *options,
				 const struct sp_profile *profile);

#endif
