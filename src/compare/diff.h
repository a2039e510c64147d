/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "compare/caveats.h"
#include "compare/match.h"
#include "compare/moved.h"

/* The changes between two sides: totals, and tables row by row. */

struct sp_diff_row {
	char *name; /* untrusted text; owned */
	/* In a tree "place" or "itself", in edges "caller", "function" or
	 * "callee"; else NULL. */
	const char *kind;
	const char *of; /* of edges: the function; borrowed from the pair */
	uint32_t depth; /* of a tree, else 0 */
	int indent;     /* likewise; columns of the text */
	struct sp_interval old;
	struct sp_interval new;
	struct sp_interval change;
	uint64_t old_samples;
	uint64_t new_samples;
	bool is_told; /* the change is significant */
	/* Its names are known on both sides (sp_names), and the change did not
	 * only move there from callers or callees (sp_moved). */
	bool is_comparable;
};

struct sp_diff_table {
	const char *key;  /* its name in JSON and CSV: "functions" */
	const char *what; /* what a row is: "function (flat)" */
	const char *noun; /* what rows are: "functions" */
	bool is_bytes;    /* else objects */
	bool is_exact;    /* nothing was sampled */
	uint64_t shown;   /* rows of the text; 0: all */
	struct sp_diff_row *rows;
	size_t n;
	size_t n_small; /* rows left out: below the share on both sides */
};

struct sp_diff_total {
	const char *name; /* "alloc_bytes" */
	bool is_bytes;    /* else objects */
	bool is_exact;
	struct sp_interval old;
	struct sp_interval new;
	struct sp_interval change;
};

#define SP_DIFF_TABLES 4

struct sp_diff {
	struct sp_caveats caveats;
	const char *old_program; /* borrowed from the pair */
	const char *new_program;
	size_t n_old, n_new;
	uint64_t old_period_bytes, new_period_bytes;
	struct sp_run_part old_part, new_part;
	enum sp_view view;
	double level; /* of the intervals; 1 - it is the false-discovery rate */
	struct sp_diff_total totals[5];
	size_t n_totals;
	struct sp_diff_table tables[SP_DIFF_TABLES];
	size_t n_tables;
	struct sp_moved moved;
	size_t n_moved; /* rows that are not comparable because of `moved` */
	char **renamed; /* "old -> new"; owned */
	size_t n_renamed;
};

/*
 * Head and totals; both sides must have runs.  Totals are those of whole runs,
 * for the views that the runs have.  `has_totals` is false if only a part of
 * the samples was asked for: then there is their sum.  Functions that were
 * renamed get the new side's names in the old side. 0 and *ret_diff, to be
 * freed; -ENOMEM and *err.
 */
int sp_diff_new(struct sp_pair *pair, enum sp_view view, double level,
		bool has_totals, struct sp_diff **ret_diff,
		struct sp_error *err);

enum sp_diff_rows {
	SP_DIFF_FLAT,  /* frames, of what they allocate directly */
	SP_DIFF_CUM,   /* frames, with what they call */
	SP_DIFF_PATHS, /* whole call paths */
	SP_DIFF_TREE,
	SP_DIFF_EDGES, /* callers and callees */
};

enum sp_diff_order {
	SP_DIFF_BY_CHANGE, /* significant ones first, then the largest change
			      first */
	SP_DIFF_BY_NAME,
	SP_DIFF_AS_LISTED, /* in the order of `names` */
};

/* A table of samples: an entry of sp_diff.tables before it is filled. */
struct sp_diff_plan {
	const char *key, *what, *noun; /* of the table */
	enum sp_diff_rows rows;
	struct sp_match_of of;
	const uint32_t *as; /* of sp_keys_modules(), or NULL */
	const bool *wants;  /* of EDGES: of which frames */
	double share;       /* rows with less on both sides are left out */
	enum sp_diff_order order;
	/* Of AS_LISTED: the name number i, NULL after the last. */
	const char *(*name)(size_t i);
	uint64_t shown;
};

/* 0 or -ENOMEM; SP_DIFF_TABLES at most. */
int sp_diff_add(struct sp_diff *diff, const struct sp_pair *pair,
		const struct sp_diff_plan *plan);

/* A table of exact figures: n rows to be filled, each name NULL; NULL without
 * memory. */
struct sp_diff_table *sp_diff_add_exact(struct sp_diff *diff, const char *key,
					const char *what, bool is_bytes,
					size_t n);

/* Fill a row of it; 0 or -ENOMEM. */
int sp_diff_row_set(const struct sp_diff *diff, struct sp_diff_row *row,
		    const char *name, const struct sp_runs *old,
		    const struct sp_runs *new);

void sp_diff_free(struct sp_diff *diff);

/* Write errors stay in the stream. */
void sp_diff_text_write(FILE *out, const struct sp_diff *diff);
void sp_diff_json_write(FILE *out, const struct sp_diff *diff);
void sp_diff_csv_write(FILE *out, const struct sp_diff *diff);
