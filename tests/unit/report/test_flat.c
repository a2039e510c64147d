/* SPDX-License-Identifier: MIT */
/*
 * Whose bytes are flat: the program's own functions, not those of libraries;
 * random stacks against a search through every stack for each function.
 */
#include "base/rng.h"
#include "report/aggregate.h"
#include "report/callers.h"
#include "report/edges.h"
#include "support/acc.h"
#include "support/close.h"
#include "support/report_fixture.h"
#include "support/test.h"
#include "text/lines.h"

#define APP "/bin/app"
#define R   4096

/* Offsets of the symbols that every test starts with. */
enum {
	MAIN,
	F,
	G,
	NEW,     /* operator new */
	PUSH,    /* of the standard library, behind an allocator */
	XMALLOC, /* a wrapper */
	N_OFFSETS,
};

static int setup(void **state)
{
	struct fixture *x = fixture_new(R);

	fixture_symbol(x, MAIN, "main", NULL, 0);
	fixture_symbol(x, F, "f", NULL, 0);
	fixture_symbol(x, G, "g", NULL, 0);
	fixture_symbol(x, NEW, "operator new", NULL, 0);
	fixture_symbol(x, PUSH, "std::allocator<int>::allocate(int)", NULL, 0);
	fixture_symbol(x, PUSH, "std::vector<int>::push_back(int&&)", NULL, 0);
	fixture_symbol(x, XMALLOC, "xmalloc", NULL, 0);
	*state = x;
	return 0;
}

#define ADD(x, samples, ...)                                                   \
	fixture_stack(x, (size_t[]){__VA_ARGS__},                              \
		      sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t),        \
		      samples, 100)

static void assert_function(const struct sp_aggregate *a, const char *name,
			    uint64_t flat, uint64_t cum)
{
	const struct sp_aggregate_function *f = fixture_find(a, name, APP);

	assert_non_null(f);
	assert_int_equal(f->flat.all.samples, flat);
	assert_int_equal(f->cum.all.samples, cum);
}

/* To the program's own function; where there is none, to the innermost that is
 * no allocator. */
TEST_OF(struct fixture *x, flat_sees_through, setup, fixture_teardown)
{
	struct sp_aggregate *a;

	ADD(x, 3, NEW, PUSH, PUSH, F, MAIN);
	ADD(x, 2, XMALLOC, G, PUSH, MAIN);
	ADD(x, 1, NEW, PUSH, XMALLOC);
	ADD(x, 4, XMALLOC, PUSH);
	a = fixture_aggregate(x);
	assert_function(a, "f", 3, 3);
	assert_function(a, "g", 2, 2);
	assert_function(a, "std::vector<int>::push_back", 1, 10);
	assert_function(a, "xmalloc", 4, 7);
	assert_function(a, "main", 0, 5);
	assert_function(a, "operator new", 0, 4);
}

static void assert_callers(const struct sp_aggregate *a, double share,
			   const char *want)
{
	FREED char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	sp_callers_print(out, a, &a->stacks[0], 2, share);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, want);
}

/* A few own ones, whole, rather than what lies between them. */
TEST_OF(struct fixture *x, callers_are_own, setup, fixture_teardown)
{
	struct sp_aggregate *a;

	ADD(x, 3, NEW, PUSH, G, PUSH, XMALLOC, PUSH, F, PUSH, MAIN);
	a = fixture_aggregate(x);
	assert_callers(a, 1, "  < f < main\n");
	assert_callers(a, 0.507, "  < f < main  (50.7% of its bytes)\n");
	sp_lines_set_terminal(14);
	assert_callers(a, 1, "  < f < ...\n");
	sp_lines_set_terminal(5);
	assert_callers(a, 1, "  < f < ...\n");
	assert_callers(a, 0.507, "  < f < ...  (50.7% of its bytes)\n");
	sp_lines_set_terminal(0);
}

TEST_OF(struct fixture *x, callers_of_a_library, setup, fixture_teardown)
{
	ADD(x, 1, NEW, G, PUSH);
	assert_callers(fixture_aggregate(x), 0.5, "");
}

/* What was seen through has its callers, and is a callee. */
TEST_OF(struct fixture *x, edges, setup, fixture_teardown)
{
	struct sp_aggregate *a;
	struct sp_edges *edges;
	size_t n;

	ADD(x, 3, NEW, XMALLOC, F, MAIN);
	ADD(x, 2, XMALLOC, G, MAIN);
	ADD(x, 1, NEW, F, MAIN);
	a = fixture_aggregate(x);
	assert_int_equal(sp_edges_match(a, "^xmalloc$", &edges, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(edges->n_callers, 2);
	assert_int_equal(edges->callers[0].sums.all.samples, 3);
	assert_int_equal(edges->n_callees, 1);
	assert_int_equal(edges->callees[0].row, SP_EDGE_NOBODY);
	sp_edges_free(edges, n);
	assert_int_equal(sp_edges_match(a, "^f$", &edges, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(edges->n_callees, 2);
	assert_int_equal(edges->callees[0].sums.all.samples, 3);
	assert_int_equal(edges->callees[1].row, SP_EDGE_NOBODY);
	assert_int_equal(edges->callees[1].sums.all.samples, 1);
	sp_edges_free(edges, n);
}

/*
 * Random stacks against the naive way: for each function, look through every
 * stack.  With more than 1024 functions, their table has grown twice.
 */
#define N_NAMES 5000

static int role_of(const char *name)
{
	return strncmp(name, "std::allocator<", 15) == 0 ? 2
	       : strncmp(name, "std::", 5) == 0          ? 1
							 : 0;
}

static const char *name_at(const struct fixture *x, const struct sp_stack *s,
			   size_t k)
{
	return x->symbolizer.symbols[s->frames[k].offset][0].function;
}

static size_t naive_flat(const struct fixture *x, const struct sp_stack *s)
{
	for (int role = 0; role <= 2; role++)
		for (size_t k = 0; k < s->n_frames; k++)
			if (role_of(name_at(x, s, k)) == role)
				return k;
	return 0;
}

static struct sp_acc naive(const struct fixture *x, const char *name,
			   bool only_flat)
{
	struct sp_acc acc;

	sp_acc_init(&acc, R);
	for (size_t i = 0; i < x->profile.n_samples; i++) {
		const struct sp_sample *sample = &x->profile.samples[i];
		const struct sp_stack *s = &x->stacks[sample->stack];
		const size_t flat = naive_flat(x, s);

		for (size_t k = 0; k < s->n_frames; k++) {
			if ((only_flat && k != flat) ||
			    strcmp(name_at(x, s, k), name) != 0)
				continue;
			sp_acc_add(&acc, &x->profile.law, sample->size_bytes, 0,
				   R);
			break;
		}
	}
	return acc;
}

/* The classes of the sums are the whole once more. */
static void assert_classes_add_up(const struct sp_class_sums *sums)
{
	struct sp_acc sum;

	sp_acc_init(&sum, R);
	for (uint32_t i = 0; i < sums->n_classes; i++)
		sp_acc_merge(&sum, &sums->classes[i].acc);
	assert_same_acc(&sum, &sums->all);
}

TEST_BETWEEN(random_against_naive, setup, fixture_teardown)
{
	static char names[N_NAMES][32];
	struct fixture *x = *test_state;
	struct sp_aggregate *a;
	struct sp_rng rng;

	sp_rng_init(&rng, 22, 0);
	for (size_t i = 0; i < N_NAMES; i++) {
		/* Two addresses in three have a name to themselves. */
		snprintf(names[i], sizeof(names[i]), "%s%zu",
			 i % 5 == 3   ? "std::allocator<int>::n"
			 : i % 5 == 4 ? "std::n"
				      : "n",
			 i - i % 3 / 2);
		fixture_symbol(x, N_OFFSETS + i, names[i], NULL, 0);
	}
	for (int i = 0; i < FIXTURE_STACKS; i++) {
		size_t offsets[FIXTURE_FRAMES];
		size_t n = 1 + sp_rng_next(&rng) % FIXTURE_FRAMES;
		/* Half of the stacks recurse a lot. */
		size_t range = i % 2 ? 5 : N_NAMES;

		for (size_t k = 0; k < n; k++)
			offsets[k] = N_OFFSETS + sp_rng_next(&rng) % range;
		fixture_stack(x, offsets, n, 1 + sp_rng_next(&rng) % 4,
			      1 + sp_rng_next(&rng) % 100000);
	}
	a = fixture_aggregate(x);
	assert_true(a->n_functions > 1024);
	for (size_t i = 0; i < a->n_functions; i++) {
		const struct sp_aggregate_function *f = &a->functions[i];
		struct sp_acc flat = naive(x, f->name, true);
		struct sp_acc cum = naive(x, f->name, false);

		assert_same_acc(&f->flat.all, &flat);
		assert_same_acc(&f->cum.all, &cum);
		assert_classes_add_up(&f->flat);
		assert_classes_add_up(&f->cum);
		assert_true(i == 0 || f[-1].flat_bytes >= f->flat_bytes);
	}
}

TEST_OF(struct fixture *x, flat_adds_up, setup, fixture_teardown)
{
	struct sp_acc sum;
	struct sp_aggregate *a;

	ADD(x, 3, F, G, F, MAIN);
	ADD(x, 4, XMALLOC, PUSH, MAIN);
	fixture_stack(x, NULL, 0, 5, 100000);
	a = fixture_aggregate(x);
	sp_acc_init(&sum, R);
	for (size_t i = 0; i < a->n_functions; i++)
		sp_acc_merge(&sum, &a->functions[i].flat.all);
	assert_same_acc(&sum, &a->analysis->view->all.all);
}

TEST_MAIN(NULL, NULL)
