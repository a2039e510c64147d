/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/arguments.h"
#include "compare/limit.h"
#include "compare/format.h"
#include "report/question.h"
#include "symbols/symbolizer.h"

/* The command lines of diff and check. */

/* Words in the order in which they came; borrowed. */
struct sp_words {
	const char **at;
	size_t n, room;
};

struct sp_check_output {
	const struct sp_check_format *format;
	const char *path; /* NULL: standard output */
};

struct sp_inputs;

/* The runs of a side from elsewhere: as sp_inputs_load(). */
typedef int sp_gate_source_fn(void *arg, struct sp_inputs *inputs, bool is_new,
			      struct sp_error *err);

struct sp_gate_options {
	sp_gate_source_fn *source; /* NULL: the files below */
	void *source_arg;
	struct sp_words baselines; /* --baseline; diff: the old files */
	const char *const *files;  /* the new ones */
	size_t n_files;
	struct sp_limits limits;         /* check: of the files first */
	struct sp_check_output *outputs; /* check: at least one */
	size_t n_outputs;
	const char *evidence;        /* check: directory, or NULL */
	bool update;                 /* check: write the baseline */
	enum sp_undecided undecided; /* check */
	bool any_program; /* check: whatever the programs are called */
	struct sp_question question;     /* diff: of what */
	struct sp_question old_question; /* diff: of the old side */
	struct sp_moment base_at, base_from, base_to; /* where it differs */
	bool has_base_part;
	struct sp_symbolizer_options symbols;
	uint64_t top; /* diff: functions; 0: all */
	bool has_stacks;
	uint64_t stacks; /* diff: call paths; 0: all */
	bool json;
	bool csv;
	bool no_pager;
	/* as they were written */
	struct sp_words limit_words;
	struct sp_words limit_files;
	struct sp_words format_words;
	char **spread; /* argv, with one --baseline for each; owned */
};

/*
 * As sp_options_parse(), but *ret is to be released; other negative errno and
 * *err if a file of limits cannot be read; -ENOMEM.
 */
int sp_gate_options_parse_diff(int argc, char **argv,
			       struct sp_gate_options *ret,
			       struct sp_error *err);
int sp_gate_options_parse_check(int argc, char **argv,
				struct sp_gate_options *ret,
				struct sp_error *err);

void sp_gate_options_done(struct sp_gate_options *options);

extern const struct sp_command_line sp_diff_line;
extern const struct sp_command_line sp_check_line;
