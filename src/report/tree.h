/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "report/aggregate.h"

/*
 * The call tree of an aggregate, from the outermost callers down, in
 * depth-first order, of the program's own functions (sp_calls_foreign()).  A
 * place is a row of the aggregate below certain callers, so a recursive
 * function has several places.
 *
 * The nodes below a place add up to it: its callees that are shown, its own
 * allocations if it has callees, and the callees that are not shown.
 */
enum sp_tree_kind {
	SP_TREE_PLACE,
	SP_TREE_ITSELF, /* flat of the place above */
	SP_TREE_OTHERS, /* n_others callees too small to be shown */
};

struct sp_tree_node {
	enum sp_tree_kind kind;
	uint32_t depth;  /* 0: no caller */
	uint32_t row;    /* of a place */
	size_t n_others; /* of OTHERS */
	struct sp_interval bytes;
	uint64_t samples;
	struct sp_interval flat_bytes; /* of a place */
	uint64_t flat_samples;
};

struct sp_tree {
	struct sp_tree_node *nodes;
	size_t n_nodes;
};

/*
 * The tree of the places with at least `share` (0..1) of the whole view.  The
 * callees of a place are in order of descending bytes, then by name. 0 and
 * *ret_tree, to be freed by the caller; -ENOMEM and *err.
 */
int sp_tree_new(const struct sp_aggregate *aggregate, double share,
		struct sp_tree **ret_tree, struct sp_error *err);

void sp_tree_free(struct sp_tree *tree);
