/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "compare/check.h"

/* A check for people and for the programs that collect such results. */

/* What a limit that cannot be told means for a build. */
enum sp_undecided {
	SP_UNDECIDED_FAIL, /* exit status 4 */
	SP_UNDECIDED_WARN, /* 0, shown as a warning */
	SP_UNDECIDED_PASS, /* 0, shown as what it is, in the text alone */
	SP_UNDECIDED_KINDS,
};

/* "fail", "warn", "pass" */
const char *sp_undecided_name(enum sp_undecided undecided);

/* A figure of the new side, whether a limit speaks of it or not. */
struct sp_amount {
	const char *name; /* "alloc_bytes", "site(^json_)" */
	bool is_bytes;    /* else objects */
	struct sp_interval value;
	struct sp_interval *runs; /* of each run */
};

struct sp_result {
	const struct sp_check *check;
	const struct sp_limits *limits;
	const char *program;      /* untrusted text */
	size_t n_old, n_new;      /* runs */
	uint64_t period_bytes;    /* of the first new run */
	const char *const *files; /* of the new runs; untrusted text */
	const char *evidence;     /* directory, or NULL */
	enum sp_undecided undecided;
	struct sp_amount *amounts;
	size_t n_amounts;
};

struct sp_check_format {
	const char *name;
	const char *what; /* for --help */
	/* The file is one that others write to as well. */
	bool appends;
	/* 0 or -ENOMEM.  Write errors stay in the stream. */
	int (*write)(FILE *out, const struct sp_result *result);
};

/* In the order of --help, text first; the one after the last has no name. */
extern const struct sp_check_format sp_check_formats[];

/* NULL for an unknown name. */
const struct sp_check_format *sp_check_format_find(const char *name);

/* ---- the formats, for the table ---- */

int sp_check_text_write(FILE *out, const struct sp_result *result);
int sp_check_json_write(FILE *out, const struct sp_result *result);
int sp_check_junit_write(FILE *out, const struct sp_result *result);
int sp_check_github_write(FILE *out, const struct sp_result *result);
int sp_check_summary_write(FILE *out, const struct sp_result *result);
int sp_check_action_write(FILE *out, const struct sp_result *result);

/* One line: "1.20 MiB -> 1.24 MiB, +3.1 % (...)", without a line end. */
void sp_check_print_figures(FILE *out, const struct sp_finding *finding,
			    double level);

/* The finding's culprits as lines of text, each after `indent`. */
void sp_check_print_culprits(FILE *out, const struct sp_finding *finding,
			     double level, const char *indent);
