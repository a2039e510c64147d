/* SPDX-License-Identifier: MIT */
#ifndef SP_GATE_DIFF_H
#define SP_GATE_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "gate/comparable.h"
#include "gate/match.h"

/* What changed between two sides, row by row. */

struct sp_diff_row {
	char *name; /* untrusted text; owned */
	struct sp_interval old;
	struct sp_interval new;
	struct sp_interval change;
	uint64_t old_samples;
	uint64_t new_samples;
	bool is_told; /* the change can be told from noise */
};

struct sp_diff_total {
	const char *name; /* "alloc_bytes" */
	bool is_bytes;    /* else objects */
	bool is_exact;
	struct sp_interval old;
	struct sp_interval new;
	struct sp_interval change;
};

struct sp_diff {
	struct sp_comparable comparable;
	const char *old_program; /* borrowed from the pair */
	const char *new_program;
	size_t n_old, n_new;
	uint64_t old_period_bytes, new_period_bytes;
	enum sp_view view;
	double level; /* of the intervals; 1 - it is the false-discovery rate */
	struct sp_diff_total totals[5];
	size_t n_totals;
	/* Told ones first, then the largest change first. */
	struct sp_diff_row *functions; /* flat */
	size_t n_functions;
	struct sp_diff_row *paths;
	size_t n_paths;
	char **renamed; /* "old -> new"; owned */
	size_t n_renamed;
};

/*
 * Both sides have runs, with the view.  Totals are those of whole runs:
 * `has_totals` is false where only a part of them was asked for.  0 and
 * *ret_diff, to be freed; -ENOMEM and *err.
 */
int sp_diff_new(struct sp_pair *pair, enum sp_view view, double level,
		bool has_totals, struct sp_diff **ret_diff,
		struct sp_error *err);

void sp_diff_free(struct sp_diff *diff);

/* top, stacks: 0 for all.  Write errors stay in the stream. */
void sp_diff_text_write(FILE *out, const struct sp_diff *diff, uint64_t top,
			bool has_stacks, uint64_t stacks);
void sp_diff_json_write(FILE *out, const struct sp_diff *diff);
void sp_diff_csv_write(FILE *out, const struct sp_diff *diff);

/* The totals as lines of text. */
void sp_diff_totals_write(FILE *out, const struct sp_diff *diff);

#endif
