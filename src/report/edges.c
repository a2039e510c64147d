/* SPDX-License-Identifier: MIT */
/* Each stack gives one pair of caller and callee for each of its functions; the
 * pairs are sorted and the equal ones summed up. */
#include "report/edges.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/order.h"
#include "symbols/pattern.h"

struct saying {
	uint32_t function; /* row */
	uint32_t is_callee;
	uint32_t other; /* row, or SP_EDGE_NOBODY */
	uint32_t stack; /* of the aggregate */
};

struct builder {
	const struct sp_aggregate *aggregate;
	struct saying *sayings;
	size_t n;
	size_t room;
	uint32_t *rows;    /* of the stack */
	uint64_t *seen_in; /* of each row: the last reading it came up in */
};

static int say_edge(struct builder *b, struct saying saying)
{
	if (sp_array_reserve((void **)&b->sayings, &b->room, b->n,
			     sizeof(*b->sayings)) < 0)
		return -ENOMEM;
	b->sayings[b->n++] = saying;
	return 0;
}

/* The functions of a stack from the innermost on, but those outside of the flat
 * one that are neither the program's own nor asked for.  Returns how many. */
static uint32_t visible_rows(struct builder *b, const bool *wants,
			     const struct sp_aggregate_stack *stack)
{
	const struct sp_aggregate *a = b->aggregate;
	const size_t first = stack->first_row - stack->n_inner;
	uint32_t n = 0;

	for (uint32_t i = 0; i < stack->n_inner + stack->n_rows; i++) {
		const uint32_t row = a->rows[first + i];

		if (i < stack->n_inner || !a->is_foreign[first + i] ||
		    wants[row])
			b->rows[n++] = row;
	}
	return n;
}

/* Add stack number `s` to callees, walking from inside, or to callers, walking
 * from outside: only the first occurrence of a row counts. */
static int read_stack(struct builder *b, const bool *wants, uint32_t s,
		      bool is_callee)
{
	const uint32_t n = visible_rows(b, wants, &b->aggregate->stacks[s]);
	const uint32_t *rows = b->rows;
	const uint64_t mark = 2 * (uint64_t)s + 1 + is_callee;

	for (uint32_t k = 0; k < n; k++) {
		const uint32_t i = is_callee ? k : n - 1 - k;
		struct saying saying = {.function = rows[i],
					.is_callee = is_callee,
					.other = SP_EDGE_NOBODY,
					.stack = s};

		if (!wants[rows[i]] || b->seen_in[rows[i]] == mark)
			continue;
		b->seen_in[rows[i]] = mark;
		if (k)
			saying.other = rows[is_callee ? i - 1 : i + 1];
		if (say_edge(b, saying) < 0)
			return -ENOMEM;
	}
	return 0;
}

SP_ORDER(compare_sayings, struct saying,
	 SP_UP(function) || SP_UP(is_callee) || SP_UP(other));

static int compare_edges(const void *a, const void *b, void *arg)
{
	const struct sp_aggregate *g = arg;
	const struct sp_edge *x = a, *y = b;
	const int c = sp_aggregate_compare_values(x->bytes, y->bytes);

	if (c)
		return c;
	if (x->row == SP_EDGE_NOBODY || y->row == SP_EDGE_NOBODY)
		return x->row == SP_EDGE_NOBODY ? -1 : 1;
	return sp_aggregate_compare(sp_aggregate_at(g, x->row),
				    sp_aggregate_at(g, y->row));
}

/* The edges of one list from its sayings: one for each other function. */
static int fill_edges(const struct builder *b, const struct saying *sayings,
		      size_t n, struct sp_edge **ret, size_t *ret_n)
{
	const struct sp_aggregate *a = b->aggregate;
	struct sp_edge *edge = NULL;

	*ret = calloc(n + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (!edge || edge->row != sayings[i].other) {
			edge = &(*ret)[(*ret_n)++];
			edge->row = sayings[i].other;
			sp_class_sums_init(&edge->sums,
					   a->analysis->profile->period_bytes);
		}
		if (sp_class_sums_merge(&edge->sums,
					a->stacks[sayings[i].stack].sums) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < *ret_n; i++)
		(*ret)[i].bytes =
			sp_estimate_bytes_value(&a->how, &(*ret)[i].sums);
	qsort_r(*ret, *ret_n, sizeof(**ret), compare_edges,
		(void *)(uintptr_t)a);
	return 0;
}

static size_t run_length(const struct builder *b, size_t begin, bool is_callee)
{
	size_t end = begin;

	while (end < b->n &&
	       b->sayings[end].function == b->sayings[begin].function &&
	       b->sayings[end].is_callee == is_callee)
		end++;
	return end - begin;
}

/* Every function that has callers has callees, if only itself. */
static int fill_all(const struct builder *b, struct sp_edges *edges,
		    size_t *ret_n)
{
	for (size_t i = 0; i < b->n;) {
		struct sp_edges *e = &edges[(*ret_n)++];
		size_t length = run_length(b, i, false);

		e->function =
			sp_aggregate_at(b->aggregate, b->sayings[i].function);
		if (fill_edges(b, &b->sayings[i], length, &e->callers,
			       &e->n_callers) < 0)
			return -ENOMEM;
		i += length;
		length = run_length(b, i, true);
		if (fill_edges(b, &b->sayings[i], length, &e->callees,
			       &e->n_callees) < 0)
			return -ENOMEM;
		i += length;
	}
	return 0;
}

/* Functions lie in one array, in their order. */
SP_ORDER(compare_positions, struct sp_edges, SP_UP(function));

static int build_edges(struct builder *b, const bool *wants,
		       struct sp_edges **ret_edges, size_t *ret_n)
{
	const struct sp_aggregate *a = b->aggregate;
	const size_t n_rows = a->n_functions + a->n_dropped;

	b->seen_in = calloc(n_rows + 1, sizeof(*b->seen_in));
	*ret_edges = calloc(n_rows + 1, sizeof(**ret_edges));
	b->rows = calloc(a->n_rows + 1, sizeof(*b->rows));
	if (!b->seen_in || !*ret_edges || !b->rows)
		return -ENOMEM;
	for (uint32_t s = 0; s < a->n_stacks; s++)
		if (read_stack(b, wants, s, false) < 0 ||
		    read_stack(b, wants, s, true) < 0)
			return -ENOMEM;
	if (b->n)
		qsort(b->sayings, b->n, sizeof(*b->sayings), compare_sayings);
	if (fill_all(b, *ret_edges, ret_n) < 0)
		return -ENOMEM;
	qsort(*ret_edges, *ret_n, sizeof(**ret_edges), compare_positions);
	return 0;
}

/* Of the functions for which wants[row] is true. */
static int make_edges(const struct sp_aggregate *aggregate, const bool *wants,
		      struct sp_edges **ret_edges, size_t *ret_n,
		      struct sp_error *err)
{
	struct builder b = {.aggregate = aggregate};
	struct sp_edges *edges = NULL;
	size_t n = 0;
	int r = build_edges(&b, wants, &edges, &n);

	free(b.seen_in);
	free(b.rows);
	free(b.sayings);
	if (r < 0) {
		sp_edges_free(edges, n);
		return sp_error_memory(err, aggregate->analysis->profile->path);
	}
	*ret_edges = edges;
	*ret_n = n;
	return 0;
}

int sp_edges_match(const struct sp_aggregate *aggregate, const char *regex,
		   struct sp_edges **ret_edges, size_t *ret_n,
		   struct sp_error *err)
{
	const char *path = aggregate->analysis->profile->path;
	const size_t n_rows = aggregate->n_functions + aggregate->n_dropped;
	bool *wants = calloc(n_rows + 1, sizeof(*wants));
	struct sp_pattern *pattern = NULL;
	bool is_any = false;
	int r;

	if (!wants)
		return sp_error_memory(err, path);
	r = sp_pattern_new("REGEX", regex, &pattern, err);
	for (size_t i = 0; i < n_rows && r >= 0; i++) {
		const struct sp_aggregate_function *f =
			&aggregate->functions[i];

		r = sp_aggregate_matches(f, pattern, err);
		wants[f->row] = r > 0;
		is_any |= r > 0;
	}
	if (r >= 0 && !is_any)
		r = sp_error_set(err, -ENOENT, path,
				 "no function of this view matches %.80s",
				 regex);
	if (r >= 0)
		r = make_edges(aggregate, wants, ret_edges, ret_n, err);
	sp_pattern_free(pattern);
	free(wants);
	return r;
}

static void free_list(struct sp_edge *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sp_class_sums_free(&list[i].sums);
	free(list);
}

void sp_edges_free(struct sp_edges *edges, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free_list(edges[i].callers, edges[i].n_callers);
		free_list(edges[i].callees, edges[i].n_callees);
	}
	free(edges);
}
