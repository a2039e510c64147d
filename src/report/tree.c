/* SPDX-License-Identifier: MIT */
/*
 * Stacks sorted by their callers make the tree without building it: a place is
 * a run of stacks that begin alike.  Sums of values decide which places are
 * large enough; only for these are sums merged, which estimates with limits
 * need.
 */
#include "report/tree.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

/* A run of the sorted stacks. */
struct run {
	size_t begin;
	size_t end;
	double bytes; /* sum of the values */
	uint32_t row;
};

/* A stack from its outermost caller on, without what is left out. */
struct path {
	const struct sp_aggregate_stack *stack;
	const uint32_t *rows;
	uint32_t n;
};

struct builder {
	const struct sp_aggregate *aggregate;
	struct path *paths; /* by callers */
	uint32_t *rows;     /* of all of them */
	struct sp_tree *tree;
	size_t room;
	double least; /* bytes of a place that is shown */
};

static int compare_paths(const void *a, const void *b)
{
	const struct path *pa = a, *pb = b;

	for (uint32_t i = 0; i < pa->n && i < pb->n; i++)
		if (pa->rows[i] != pb->rows[i])
			return pa->rows[i] < pb->rows[i] ? -1 : 1;
	return (pa->n > pb->n) - (pa->n < pb->n);
}

static int compare_runs(const void *a, const void *b, void *arg)
{
	const struct run *ra = a, *rb = b;
	const struct sp_aggregate *g = arg;
	const int c = sp_aggregate_compare_values(ra->bytes, rb->bytes);

	return c ? c
		 : sp_aggregate_compare(sp_aggregate_at(g, ra->row),
					sp_aggregate_at(g, rb->row));
}

/* Merge the stacks begin..end - 1 into sums that are empty. */
static int merge_paths(const struct builder *b, size_t begin, size_t end,
		       struct sp_class_sums *sum)
{
	for (size_t i = begin; i < end; i++)
		if (sp_class_sums_merge(sum, b->paths[i].stack->sums) < 0)
			return -ENOMEM;
	return 0;
}

static struct sp_tree_node *add_node(struct builder *b, enum sp_tree_kind kind,
				     uint32_t depth)
{
	struct sp_tree *tree = b->tree;
	struct sp_tree_node *node;

	if (sp_array_reserve((void **)&tree->nodes, &b->room, tree->n_nodes,
			     sizeof(*tree->nodes)) < 0)
		return NULL;
	node = &tree->nodes[tree->n_nodes++];
	*node = (struct sp_tree_node){.kind = kind, .depth = depth};
	return node;
}

static void set_bytes(const struct builder *b, struct sp_tree_node *node,
		      const struct sp_class_sums *sums)
{
	node->bytes = sp_estimate_bytes(&b->aggregate->how, sums);
	node->samples = sums->all.samples;
}

/* A node that is to be written, and the stacks below a place. */
struct pending {
	struct sp_tree_node node;
	size_t begin;
	size_t end;
};

struct agenda {
	struct pending *items; /* the last is the next */
	size_t n;
	size_t room;
	struct run *runs; /* of the place that is being looked at */
	size_t runs_room;
};

static struct pending *push_node(struct agenda *agenda, enum sp_tree_kind kind,
				 uint32_t depth)
{
	struct pending *item;

	if (sp_array_reserve((void **)&agenda->items, &agenda->room, agenda->n,
			     sizeof(*agenda->items)) < 0)
		return NULL;
	item = &agenda->items[agenda->n++];
	*item = (struct pending){.node = {.kind = kind, .depth = depth}};
	return item;
}

/* The runs of begin..end - 1 by the row at `depth`, largest first. */
static int find_runs(const struct builder *b, struct agenda *agenda,
		     size_t begin, size_t end, uint32_t depth, size_t *ret_n)
{
	size_t n = 0;

	for (size_t i = begin; i < end; i++) {
		const uint32_t row = b->paths[i].rows[depth];

		if (!n || agenda->runs[n - 1].row != row) {
			if (sp_array_reserve((void **)&agenda->runs,
					     &agenda->runs_room, n,
					     sizeof(*agenda->runs)) < 0)
				return -ENOMEM;
			agenda->runs[n++] =
				(struct run){.begin = i, .row = row};
		}
		agenda->runs[n - 1].end = i + 1;
		agenda->runs[n - 1].bytes += b->paths[i].stack->bytes;
	}
	if (n)
		qsort_r(agenda->runs, n, sizeof(*agenda->runs), compare_runs,
			(void *)(uintptr_t)b->aggregate);
	*ret_n = n;
	return 0;
}

static int push_others(const struct builder *b, struct agenda *agenda,
		       size_t first, size_t n, uint32_t depth)
{
	struct pending *item;
	struct sp_class_sums sum;
	int r = 0;

	if (first == n)
		return 0;
	item = push_node(agenda, SP_TREE_OTHERS, depth);
	if (!item)
		return -ENOMEM;
	sp_class_sums_init(&sum, b->aggregate->analysis->profile->period_bytes);
	for (size_t i = first; i < n && !r; i++)
		r = merge_paths(b, agenda->runs[i].begin, agenda->runs[i].end,
				&sum);
	if (!r)
		set_bytes(b, &item->node, &sum);
	item->node.n_others = n - first;
	sp_class_sums_free(&sum);
	return r;
}

/* Add the callees of the place that is `begin`..`end` - 1, at `depth`; `itself`
 * has its own allocations, no samples if there are none. */
static int push_callees(const struct builder *b, struct agenda *agenda,
			size_t begin, size_t end, uint32_t depth,
			const struct sp_class_sums *itself)
{
	size_t n, n_shown = 0;
	struct pending *item;

	if (find_runs(b, agenda, begin, end, depth, &n) < 0)
		return -ENOMEM;
	while (n_shown < n && agenda->runs[n_shown].bytes >= b->least)
		n_shown++;
	if (push_others(b, agenda, n_shown, n, depth) < 0)
		return -ENOMEM;
	if (n && itself->all.samples) {
		item = push_node(agenda, SP_TREE_ITSELF, depth);
		if (!item)
			return -ENOMEM;
		set_bytes(b, &item->node, itself);
	}
	while (n_shown-- > 0) {
		item = push_node(agenda, SP_TREE_PLACE, depth);
		if (!item)
			return -ENOMEM;
		item->begin = agenda->runs[n_shown].begin;
		item->end = agenda->runs[n_shown].end;
		item->node.row = agenda->runs[n_shown].row;
	}
	return 0;
}

static int add_place(struct builder *b, struct agenda *agenda,
		     const struct pending *item)
{
	const uint64_t period = b->aggregate->analysis->profile->period_bytes;
	const uint32_t depth = item->node.depth;
	struct sp_tree_node *node = add_node(b, SP_TREE_PLACE, depth);
	size_t callees = item->begin;
	struct sp_class_sums all, itself;
	int r = -ENOMEM;

	sp_class_sums_init(&all, period);
	sp_class_sums_init(&itself, period);
	sp_class_sums_judge(&itself, &b->aggregate->analysis->view->all);
	/* Shorter paths come first. */
	while (callees < item->end && b->paths[callees].n == depth + 1)
		callees++;
	if (node && !merge_paths(b, item->begin, callees, &itself) &&
	    !merge_paths(b, item->begin, item->end, &all)) {
		node->row = item->node.row;
		node->flat_bytes =
			sp_estimate_bytes(&b->aggregate->how, &itself);
		node->flat_samples = itself.all.samples;
		set_bytes(b, node, &all);
		r = push_callees(b, agenda, callees, item->end, depth + 1,
				 &itself);
	}
	sp_class_sums_free(&all);
	sp_class_sums_free(&itself);
	return r;
}

static int add_all(struct builder *b)
{
	const struct sp_class_sums nothing = {.n_classes = 0};
	struct agenda agenda = {.n = 0};
	int r = push_callees(b, &agenda, 0, b->aggregate->n_stacks, 0,
			     &nothing);

	while (!r && agenda.n) {
		const struct pending item = agenda.items[--agenda.n];
		struct sp_tree_node *node;

		if (item.node.kind == SP_TREE_PLACE) {
			r = add_place(b, &agenda, &item);
			continue;
		}
		node = add_node(b, item.node.kind, item.node.depth);
		if (node)
			*node = item.node;
		else
			r = -ENOMEM;
	}
	free(agenda.items);
	free(agenda.runs);
	return r;
}

/* Write the rows of the path; returns how many. */
static uint32_t own_rows(const struct sp_aggregate *a,
			 const struct sp_aggregate_stack *stack, uint32_t *rows)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < stack->n_rows;
	     i = sp_aggregate_next_own(a, stack, i))
		rows[n++] = a->rows[stack->first_row + i];
	for (uint32_t i = 0; i < n / 2; i++) {
		const uint32_t row = rows[i];

		rows[i] = rows[n - 1 - i];
		rows[n - 1 - i] = row;
	}
	return n;
}

static int prepare_paths(struct builder *b)
{
	const struct sp_aggregate *a = b->aggregate;
	uint32_t *rows;

	b->paths = calloc(a->n_stacks + 1, sizeof(*b->paths));
	b->rows = rows = calloc(a->n_rows + 1, sizeof(*b->rows));
	b->tree = calloc(1, sizeof(*b->tree));
	if (!b->paths || !b->rows || !b->tree)
		return -ENOMEM;
	for (size_t i = 0; i < a->n_stacks; i++) {
		const uint32_t n = own_rows(a, &a->stacks[i], rows);

		b->paths[i] = (struct path){&a->stacks[i], rows, n};
		rows += n;
	}
	qsort(b->paths, a->n_stacks, sizeof(*b->paths), compare_paths);
	return 0;
}

int sp_tree_new(const struct sp_aggregate *aggregate, double share,
		struct sp_tree **ret_tree, struct sp_error *err)
{
	const struct sp_analysis *a = aggregate->analysis;
	struct builder b = {
		.aggregate = aggregate,
		.least = share * sp_estimate_bytes(&a->how, a->whole).value,
	};
	int r = prepare_paths(&b);

	if (!r)
		r = add_all(&b);
	free(b.paths);
	free(b.rows);
	if (r < 0) {
		sp_tree_free(b.tree);
		return sp_error_memory(err, a->profile->path);
	}
	*ret_tree = b.tree;
	return 0;
}

void sp_tree_free(struct sp_tree *tree)
{
	if (!tree)
		return;
	free(tree->nodes);
	free(tree);
}
