/* SPDX-License-Identifier: MIT */
/* The call tree and the call graph against sums over all stacks. */
#include <errno.h>
#include <math.h>

#include "base/rng.h"
#include "report/edges.h"
#include "report/tree.h"
#include "support/close.h"
#include "support/report_fixture.h"
#include "support/test.h"

#define R       4096
#define APP     "/bin/app"
#define N_NAMES 6 /* so that there is recursion */

static const char *const names[N_NAMES] = {"a", "b", "c", "d", "e", "f"};

static int setup(void **state)
{
	struct fixture *x = fixture_new(R);

	for (size_t i = 0; i < N_NAMES; i++)
		fixture_symbol(x, i, names[i], NULL, 0);
	*state = x;
	return 0;
}

static void add_random(struct fixture *x, uint64_t seed, int n_stacks)
{
	struct sp_rng rng;

	sp_rng_init(&rng, seed, 0);
	for (int i = 0; i < n_stacks; i++) {
		size_t offsets[FIXTURE_FRAMES];
		size_t n = 1 + sp_rng_next(&rng) % 7;

		for (size_t k = 0; k < n; k++)
			offsets[k] = sp_rng_next(&rng) % N_NAMES;
		fixture_stack(x, offsets, n, 1 + sp_rng_next(&rng) % 4,
			      1 + sp_rng_next(&rng) % 20000);
	}
}

/* Samples of the stacks that begin with that path of n names, outermost first;
 * if `whole`, of those that are it. */
static uint64_t count_path(const struct fixture *x, const char *const *path,
			   size_t n, bool whole)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < x->profile.n_stacks; i++) {
		const struct sp_stack *s = &x->stacks[i];
		bool is_same = whole ? s->n_frames == n : s->n_frames >= n;

		for (size_t k = 0; is_same && k < n; k++)
			is_same = !strcmp(
				names[s->frames[s->n_frames - 1 - k].offset],
				path[k]);
		if (is_same)
			samples += fixture_sums(x, s)->all.samples;
	}
	return samples;
}

/* What stands directly below node i adds up to it. */
static void assert_adds_up(const struct sp_tree *tree, size_t i)
{
	const struct sp_tree_node *node = &tree->nodes[i];
	uint64_t samples = 0;
	double bytes = 0;
	bool has_any = false;

	for (size_t k = i + 1; k < tree->n_nodes; k++) {
		const struct sp_tree_node *below = &tree->nodes[k];

		if (below->depth <= node->depth)
			break;
		if (below->depth != node->depth + 1)
			continue;
		has_any = true;
		samples += below->samples;
		bytes += below->bytes.value;
	}
	if (!has_any) {
		assert_int_equal(node->flat_samples, node->samples);
		return;
	}
	assert_int_equal(samples, node->samples);
	assert_close(bytes, node->bytes.value, 1e-9 * node->bytes.value);
}

TEST_BETWEEN(tree_against_model, setup, fixture_teardown)
{
	const char *path[FIXTURE_FRAMES];
	struct fixture *x = *test_state;
	struct sp_aggregate *a;
	struct sp_tree *tree;
	size_t n_places = 0;

	add_random(x, 3, 300);
	a = fixture_aggregate(x);
	assert_int_equal(sp_tree_new(a, 0, &tree, NULL), 0);
	for (size_t i = 0; i < tree->n_nodes; i++) {
		const struct sp_tree_node *node = &tree->nodes[i];

		assert_true(node->bytes.lo <= node->bytes.value);
		assert_true(node->bytes.value <= node->bytes.hi);
		assert_int_not_equal(node->kind, SP_TREE_OTHERS);
		if (node->kind == SP_TREE_ITSELF)
			continue;
		n_places++;
		path[node->depth] = sp_aggregate_at(a, node->row)->name;
		assert_int_equal(node->samples,
				 count_path(x, path, node->depth + 1, false));
		assert_int_equal(node->flat_samples,
				 count_path(x, path, node->depth + 1, true));
		assert_adds_up(tree, i);
	}
	assert_true(n_places > 500);
	sp_tree_free(tree);
}

/* How many places of the whole tree have that much. */
static size_t count_places(const struct sp_aggregate *a, double least)
{
	struct sp_tree *tree;
	size_t n = 0;

	assert_int_equal(sp_tree_new(a, 0, &tree, NULL), 0);
	for (size_t i = 0; i < tree->n_nodes; i++)
		n += tree->nodes[i].kind == SP_TREE_PLACE &&
		     tree->nodes[i].bytes.value >= least;
	sp_tree_free(tree);
	return n;
}

/* Small places are summed up, largest first, and nothing is lost. */
TEST_OF(struct fixture *x, tree_of_large_places, setup, fixture_teardown)
{
	struct sp_aggregate *a;
	struct sp_tree *tree;
	size_t n_others = 0, n_places = 0;
	uint64_t samples = 0;
	double whole, last = INFINITY;

	add_random(x, 4, 300);
	a = fixture_aggregate(x);
	whole = sp_estimate_bytes(&a->how, a->analysis->whole).value;
	assert_int_equal(sp_tree_new(a, 0.02, &tree, NULL), 0);
	for (size_t i = 0; i < tree->n_nodes; i++) {
		const struct sp_tree_node *node = &tree->nodes[i];

		n_others += node->kind == SP_TREE_OTHERS;
		if (node->kind == SP_TREE_PLACE) {
			n_places++;
			assert_true(node->bytes.value >= 0.02 * whole * 0.999);
			assert_adds_up(tree, i);
		}
		if (node->depth)
			continue;
		samples += node->samples;
		if (node->kind == SP_TREE_PLACE)
			assert_true(node->bytes.value <= last);
		last = node->bytes.value;
	}
	assert_true(n_others > 5);
	assert_int_equal(n_places, count_places(a, 0.02 * whole));
	assert_int_equal(samples, a->analysis->whole->all.samples);
	sp_tree_free(tree);
}

TEST_BETWEEN(empty_tree, setup, fixture_teardown)
{
	struct sp_aggregate *a = fixture_aggregate(*test_state);
	struct sp_tree *tree;

	assert_int_equal(sp_tree_new(a, 0, &tree, NULL), 0);
	assert_int_equal(tree->n_nodes, 0);
	sp_tree_free(tree);
}

/* What is inside of operator new is its caller's. */
TEST_OF(struct fixture *x, tree_without_plumbing, setup, fixture_teardown)
{
	struct sp_aggregate *a;
	struct sp_tree *tree;

	fixture_symbol(x, 10, "operator new", NULL, 0);
	fixture_stack(x, (size_t[]){10, 1, 0}, 3, 2, 100);
	a = fixture_aggregate(x);
	assert_int_equal(sp_tree_new(a, 0, &tree, NULL), 0);
	assert_int_equal(tree->n_nodes, 2);
	assert_int_equal(tree->nodes[1].flat_samples, 2);
	sp_tree_free(tree);
}

/* Functions of libraries between the program's own are left out, unless all
 * frames are wanted. */
TEST_OF(struct fixture *x, tree_of_own_functions, setup, fixture_teardown)
{
	static const char *const own[] = {"a", "b"};
	static const char *const all[] = {"std::x", "a", "std::x", "b"};

	fixture_symbol(x, 10, "operator new", NULL, 0);
	fixture_symbol(x, 11, "std::x", NULL, 0);
	fixture_stack(x, (size_t[]){10, 11, 1, 11, 0, 11}, 6, 2, 100);
	for (int is_all = 0; is_all < 2; is_all++) {
		const char *const *want = is_all ? all : own;
		const size_t n = is_all ? 4 : 2;
		struct sp_aggregate *a;
		struct sp_tree *tree;

		x->symbolizer.options.see_through.all_frames = is_all;
		a = fixture_aggregate(x);
		assert_int_equal(sp_tree_new(a, 0, &tree, NULL), 0);
		assert_int_equal(tree->n_nodes, n);
		for (size_t i = 0; i < n; i++)
			assert_string_equal(
				sp_aggregate_at(a, tree->nodes[i].row)->name,
				want[i]);
		sp_tree_free(tree);
	}
}

/* ---- edges ---- */

/* Samples of the stacks in which `other` is the caller of the outermost call
 * of `name`, or the callee of the innermost; NULL: nobody. */
static uint64_t count_edge(const struct fixture *x, const char *name,
			   const char *other, bool is_callee)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < x->profile.n_stacks; i++) {
		const struct sp_stack *s = &x->stacks[i];
		const char *neighbour = NULL;
		bool is_there = false;

		for (uint32_t k = 0; k < s->n_frames; k++) {
			uint32_t at = is_callee ? s->n_frames - 1 - k : k;

			if (strcmp(names[s->frames[at].offset], name) != 0)
				continue;
			/* The last one that is met is the one that counts. */
			is_there = true;
			neighbour = NULL;
			if (is_callee && at > 0)
				neighbour = names[s->frames[at - 1].offset];
			if (!is_callee && at + 1 < s->n_frames)
				neighbour = names[s->frames[at + 1].offset];
		}
		if (is_there && (neighbour && other ? !strcmp(neighbour, other)
						    : neighbour == other))
			samples += fixture_sums(x, s)->all.samples;
	}
	return samples;
}

static void assert_edges(const struct fixture *x, const struct sp_edges *e,
			 const struct sp_edge *list, size_t n,
			 const struct sp_aggregate *a, bool is_callee)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < n; i++) {
		const char *other =
			list[i].row == SP_EDGE_NOBODY
				? NULL
				: sp_aggregate_at(a, list[i].row)->name;

		assert_int_equal(
			list[i].sums.all.samples,
			count_edge(x, e->function->name, other, is_callee));
		assert_true(!i || list[i - 1].bytes >= list[i].bytes);
		samples += list[i].sums.all.samples;
	}
	assert_int_equal(samples, e->function->cum.all.samples);
}

TEST_BETWEEN(edges_against_model, setup, fixture_teardown)
{
	struct fixture *x = *test_state;
	struct sp_aggregate *a;
	struct sp_edges *edges;
	size_t n;

	add_random(x, 5, 300);
	a = fixture_aggregate(x);
	assert_int_equal(sp_edges_match(a, "[a-e]", &edges, &n, NULL), 0);
	assert_int_equal(n, 5);
	for (size_t i = 0; i < n; i++) {
		assert_edges(x, &edges[i], edges[i].callers, edges[i].n_callers,
			     a, false);
		assert_edges(x, &edges[i], edges[i].callees, edges[i].n_callees,
			     a, true);
		assert_true(!i || edges[i - 1].function < edges[i].function);
	}
	sp_edges_free(edges, n);
}

/* Between own functions those of libraries are passed over; what the flat one
 * calls is told, and whatever is asked for. */
TEST_OF(struct fixture *x, edges_of_own_functions, setup, fixture_teardown)
{
	struct sp_aggregate *a;
	struct sp_edges *edges;
	size_t n;

	fixture_symbol(x, 10, "operator new", NULL, 0);
	fixture_symbol(x, 11, "std::x", NULL, 0);
	fixture_symbol(x, 12, "std::y", NULL, 0);
	fixture_stack(x, (size_t[]){10, 11, 1, 12, 0, 12}, 6, 2, 100);
	a = fixture_aggregate(x);
	assert_int_equal(sp_edges_match(a, "^b$", &edges, &n, NULL), 0);
	assert_string_equal(sp_aggregate_at(a, edges->callers[0].row)->name,
			    "a");
	assert_string_equal(sp_aggregate_at(a, edges->callees[0].row)->name,
			    "std::x");
	sp_edges_free(edges, n);
	assert_int_equal(sp_edges_match(a, "^std::y$", &edges, &n, NULL), 0);
	assert_string_equal(sp_aggregate_at(a, edges->callees[0].row)->name,
			    "b");
	sp_edges_free(edges, n);
}

TEST_OF(struct fixture *x, no_such_function, setup, fixture_teardown)
{
	struct sp_edges *edges;
	struct sp_aggregate *a;
	struct sp_error err;
	size_t n;

	add_random(x, 6, 10);
	a = fixture_aggregate(x);
	assert_int_equal(sp_edges_match(a, "^zz", &edges, &n, &err), -ENOENT);
	assert_string_equal(err.message,
			    "no function of this view matches ^zz");
	assert_int_equal(sp_edges_match(a, "(", &edges, &n, &err), -EINVAL);
}

TEST_MAIN(NULL, NULL)
