/* SPDX-License-Identifier: MIT */
/* Stacks to functions, flat and cumulative, with intervals. */
#include "report/aggregate.h"
#include "support/close.h"
#include "support/report_fixture.h"
#include "support/test.h"

#define APP  "/bin/app"
#define LIBZ "/lib/libz.so.1"
#define R    4096

/* Offsets of the symbols that every test starts with. */
enum {
	MAIN,
	F,
	G,
	H_IN_G,     /* h inlined into g */
	F_IN_F,     /* f inlined into f: recursion without a frame */
	OTHER_MAIN, /* main again, from another address */
	NEW,        /* operator new */
	NEW_IN_F,   /* operator new behind an allocator, both inlined into f */
	CALLOC,     /* of another library */
	MALLOC_OF,  /* malloc_of: only its name begins so */
};

static int setup(void **state)
{
	struct fixture *x = fixture_new(R);

	fixture_symbol(x, MAIN, "main", "main.c", 10);
	fixture_symbol(x, F, "f", "f.c", 20);
	fixture_symbol(x, G, "g", "g.c", 30);
	fixture_symbol(x, H_IN_G, "h", "h.c", 40);
	fixture_symbol(x, H_IN_G, "g", "g.c", 31);
	fixture_symbol(x, F_IN_F, "f", "f.c", 21);
	fixture_symbol(x, F_IN_F, "f", "f.c", 22);
	fixture_symbol(x, NEW, "operator new", "new.cc", 50);
	fixture_symbol(x, NEW_IN_F, "std::__new_allocator<int>::allocate",
		       "new_allocator.h", 60);
	fixture_symbol(x, NEW_IN_F, "f", "f.c", 23);
	fixture_symbol(x, CALLOC, "calloc", "rtld.c", 70);
	fixture_symbol(x, MALLOC_OF, "malloc_of", "m.c", 80);
	/* Another pointer, so that only the text can match. */
	fixture_symbol(x, OTHER_MAIN, strdup("main"), "main.c", 11);
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *x = *state;

	free((void *)(uintptr_t)x->symbolizer.symbols[OTHER_MAIN][0].function);
	fixture_free(x);
	return 0;
}

static void add(struct fixture *x, size_t n, const size_t *offsets,
		uint64_t samples)
{
	fixture_stack(x, offsets, n, samples, 100);
}

#define ADD(x, samples, ...)                                                   \
	add(x, sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t),               \
	    (size_t[]){__VA_ARGS__}, samples)

static void assert_function(const struct sp_aggregate *a, const char *name,
			    uint64_t flat, uint64_t cum)
{
	const struct sp_aggregate_function *f = fixture_find(a, name, APP);

	assert_non_null(f);
	assert_int_equal(f->flat.all.samples, flat);
	assert_int_equal(f->cum.all.samples, cum);
	assert_int_equal(f->flat.all.size_bytes, 100 * flat);
	assert_int_equal(f->cum.all.size_bytes, 100 * cum);
}

TEST_OF(struct fixture *x, flat_goes_to_innermost, setup, teardown)
{
	struct sp_aggregate *a;

	ADD(x, 3, G, F, MAIN);
	ADD(x, 5, F, MAIN);
	a = fixture_aggregate(x);
	assert_int_equal(a->n_functions, 3);
	assert_function(a, "g", 3, 3);
	assert_function(a, "f", 5, 8);
	assert_function(a, "main", 0, 8);
}

TEST_OF(struct fixture *x, flat_passes_plumbing, setup, teardown)
{
	struct sp_aggregate *a;

	ADD(x, 3, NEW, NEW_IN_F, MAIN);
	ADD(x, 2, NEW, G, MAIN);
	ADD(x, 1, NEW);
	ADD(x, 4, CALLOC, G, MAIN);
	ADD(x, 5, MALLOC_OF, MAIN);
	a = fixture_aggregate(x);
	assert_function(a, "f", 3, 3);
	assert_function(a, "g", 6, 6);
	assert_function(a, "calloc", 0, 4);
	assert_function(a, "malloc_of", 5, 5);
	assert_function(a, "main", 0, 14);
	assert_function(a, "operator new", 1, 6);
}

TEST_OF(struct fixture *x, recursion_counts_once, setup, teardown)
{
	struct sp_aggregate *a;

	ADD(x, 3, F, G, F, G, F, MAIN);
	ADD(x, 2, MAIN, F, OTHER_MAIN);
	a = fixture_aggregate(x);
	assert_function(a, "f", 3, 5);
	assert_function(a, "g", 0, 3);
	assert_function(a, "main", 2, 5);
}

TEST_OF(struct fixture *x, inlines, setup, teardown)
{
	struct sp_aggregate *a;

	ADD(x, 7, H_IN_G, MAIN);
	ADD(x, 2, F_IN_F, H_IN_G);
	a = fixture_aggregate(x);
	assert_function(a, "h", 7, 9);
	assert_function(a, "g", 0, 9);
	assert_function(a, "f", 2, 2);
	assert_function(a, "main", 0, 7);
}

TEST_OF(struct fixture *x, identity_is_name_and_module, setup, teardown)
{
	struct sp_aggregate *a;

	ADD(x, 1, F, MAIN);
	ADD(x, 2, F, OTHER_MAIN);
	ADD(x, 4, F);
	x->stacks[2].frames[0].module = 2;
	ADD(x, 8, F);
	x->stacks[3].frames[0].module = 0;
	a = fixture_aggregate(x);
	assert_int_equal(a->n_functions, 4);
	assert_function(a, "f", 3, 3);
	assert_function(a, "main", 0, 3);
	assert_int_equal(fixture_find(a, "f", LIBZ)->flat.all.samples, 4);
	assert_int_equal(fixture_find(a, "f", "")->flat.all.samples, 8);
}

TEST_OF(struct fixture *x, estimates_come_from_merged_sums, setup, teardown)
{
	const struct sp_aggregate_function *f;
	FREED_BY(sp_class_sums_free) struct sp_class_sums merged;
	struct sp_interval got, want;
	double sum_lo = 0, sum_hi = 0;
	struct sp_aggregate *a;

	sp_class_sums_init(&merged, R);
	for (size_t i = 0; i < 4; i++) {
		size_t offsets[] = {F, i % 2 ? G : MAIN};

		fixture_stack(x, offsets, 2, 3 + i, 10 << (2 * i));
	}
	a = fixture_aggregate(x);
	for (size_t i = 0; i < 4; i++) {
		const struct sp_class_sums *t = fixture_sums(x, &x->stacks[i]);
		struct sp_interval one = sp_estimate_bytes(&a->how, t);

		assert_int_equal(sp_class_sums_merge(&merged, t), 0);
		sum_lo += one.lo;
		sum_hi += one.hi;
	}
	f = fixture_find(a, "f", APP);
	want = sp_estimate_bytes(&a->how, &merged);
	got = sp_estimate_bytes(&a->how, &f->flat);
	assert_close(got.value, want.value, 1e-12);
	assert_close(got.lo, want.lo, 1e-12);
	assert_close(got.hi, want.hi, 1e-12);
	assert_close(f->flat_bytes, want.value, 1e-12);
	assert_true(got.lo > 1.05 * sum_lo && got.hi < 0.95 * sum_hi);
}

static void assert_order(const struct sp_aggregate *a, const char *names)
{
	char got[64] = "";

	for (size_t i = 0; i < a->n_functions; i++) {
		strcat(got, a->functions[i].name);
		strcat(got, " ");
	}
	assert_string_equal(got, names);
}

TEST_OF(struct fixture *x, function_order, setup, teardown)
{
	struct sp_aggregate *a;

	/* flat: g 5, f 2, h 2, main 0; cum: main 8, g 7, f 3, h 2 */
	ADD(x, 5, G, MAIN);
	ADD(x, 2, F, MAIN);
	ADD(x, 2, H_IN_G);
	ADD(x, 1, MAIN, F);
	a = fixture_aggregate(x);
	assert_order(a, "g f h main ");
	sp_aggregate_sort(a, SP_AGGREGATE_BY_CUM);
	assert_order(a, "main g f h ");
	sp_aggregate_sort(a, SP_AGGREGATE_BY_FLAT);
	assert_order(a, "g f h main ");
}

TEST_OF(struct fixture *x, order_of_equals_is_by_name, setup, teardown)
{
	struct sp_aggregate *a;

	ADD(x, 2, MAIN);
	ADD(x, 2, H_IN_G);
	ADD(x, 2, F);
	ADD(x, 2, F, MAIN);
	a = fixture_aggregate(x);
	assert_order(a, "f main h g ");
	/* Names from inside out; the shorter first. */
	assert_ptr_equal(a->stacks[0].stack, &x->stacks[2]);
	assert_ptr_equal(a->stacks[1].stack, &x->stacks[3]);
	assert_ptr_equal(a->stacks[2].stack, &x->stacks[1]);
	assert_ptr_equal(a->stacks[3].stack, &x->stacks[0]);
}

/* What a sum is depends on the order of its terms, in its last bits. */
TEST_BETWEEN(order_of_almost_equals_is_by_name, setup, teardown)
{
	const double sum = 0.1 + 0.2 + 0.3, other = 0.3 + 0.2 + 0.1;

	assert_true(sum > other);
	assert_int_equal(sp_aggregate_compare_values(sum, other), 0);
	assert_int_equal(sp_aggregate_compare_values(sum * 1e9, other * 1e9),
			 0);
	assert_int_equal(sp_aggregate_compare_values(1e9, 1e9 + 1), 1);
	assert_int_equal(sp_aggregate_compare_values(1e9 + 1, 1e9), -1);
	assert_int_equal(sp_aggregate_compare_values(0, 1e-300), 1);
	assert_int_equal(sp_aggregate_compare_values(-1, 1), 1);
}

TEST_OF(struct fixture *x, stacks_by_bytes, setup, teardown)
{
	struct sp_aggregate *a;

	ADD(x, 2, F);
	ADD(x, 0, G, MAIN);
	ADD(x, 9, MAIN);
	a = fixture_aggregate(x);
	assert_int_equal(a->n_stacks, 2);
	assert_ptr_equal(a->stacks[0].stack, &x->stacks[2]);
	assert_ptr_equal(a->stacks[1].stack, &x->stacks[0]);
	assert_null(fixture_find(a, "g", APP));
}

TEST_OF(struct fixture *x, no_stack, setup, teardown)
{
	struct sp_aggregate *a;

	ADD(x, 1, F);
	fixture_stack(x, NULL, 0, 4, 100);
	a = fixture_aggregate(x);
	assert_int_equal(
		fixture_find(a, SP_LABEL_NO_STACK, "")->flat.all.samples, 4);
}

TEST_BETWEEN(empty, setup, teardown)
{
	struct sp_aggregate *a = fixture_aggregate(*test_state);

	assert_int_equal(a->n_functions, 0);
	assert_int_equal(a->n_stacks, 0);
}

TEST_OF(struct fixture *x, line_of_heaviest_stack, setup, teardown)
{
	struct sp_aggregate *a;

	ADD(x, 2, F, MAIN);
	ADD(x, 5, G, OTHER_MAIN);
	ADD(x, 3, H_IN_G, MAIN);
	a = fixture_aggregate(x);
	assert_int_equal(fixture_find(a, "main", APP)->line, 11);
	assert_int_equal(fixture_find(a, "g", APP)->line, 30);
	assert_string_equal(fixture_find(a, "h", APP)->file, "h.c");
}

static void count_progress(void *arg, uint64_t done, uint64_t total)
{
	uint64_t *calls = arg;

	++*calls;
	assert_int_equal(done, *calls);
	assert_int_equal(total, 2);
}

TEST_OF(struct fixture *x, progress, setup, teardown)
{
	struct sp_aggregate *a = NULL;
	uint64_t calls = 0;

	ADD(x, 1, F);
	ADD(x, 1, G);
	assert_int_equal(sp_aggregate_new(fixture_analysis(x), &x->symbolizer,
					  count_progress, &calls, &a, NULL),
			 0);
	assert_int_equal(calls, 2);
	sp_aggregate_free(a);
}

/* Alive at the end: 2 of f's and all of g's; main's are gone. */
static void add_lives(struct fixture *x)
{
	x->profile.has_frees = true;
	x->next.born_ns = 1000;
	x->next.freed_ns = 2000;
	ADD(x, 5, F, MAIN);
	ADD(x, 3, MAIN);
	x->next.freed_ns = SP_NEVER;
	fixture_samples(x, &x->stacks[0], 2, 100);
	ADD(x, 4, NEW, G, MAIN);
}

TEST_OF(struct fixture *x, live_beside_allocated, setup, teardown)
{
	struct sp_aggregate *a;

	add_lives(x);
	a = fixture_aggregate(x);
	assert_function(a, "f", 7, 7);
	assert_int_equal(fixture_find(a, "f", APP)->live.all.samples, 2);
	assert_int_equal(fixture_find(a, "g", APP)->live.all.samples, 4);
	assert_int_equal(fixture_find(a, "main", APP)->live.all.samples, 0);
	for (size_t i = 0; i < a->n_stacks; i++) {
		assert_non_null(a->stacks[i].live);
		assert_true(a->stacks[i].live->all.samples <=
			    a->stacks[i].sums->all.samples);
	}
}

/* Only what is in the view has a row. */
TEST_OF(struct fixture *x, rows_of_a_view, setup, teardown)
{
	struct sp_aggregate *a;

	add_lives(x);
	x->question.has_view = true;
	x->question.view = SP_VIEW_LIVE;
	a = fixture_aggregate(x);
	assert_int_equal(a->n_stacks, 2);
	assert_function(a, "f", 2, 2);
	assert_function(a, "g", 4, 4);
	assert_function(a, "main", 0, 6);
	assert_int_equal(a->row_of_stack[1], UINT32_MAX);
}

TEST_OF(struct fixture *x, without_frees_nothing_is_live, setup, teardown)
{
	struct sp_aggregate *a;

	ADD(x, 3, F, MAIN);
	a = fixture_aggregate(x);
	assert_null(a->analysis->live);
	assert_null(a->stacks[0].live);
}

TEST_OF(struct fixture *x, lifetimes, setup, teardown)
{
	struct sp_lifetime *functions = NULL, *stacks = NULL;
	struct sp_aggregate *a;
	const struct sp_lifetime *f;

	add_lives(x);
	a = fixture_aggregate(x);
	assert_int_equal(sp_aggregate_lifetimes(a, &functions, &stacks, NULL),
			 0);
	/* The rows stay with their functions, however these are sorted. */
	sp_aggregate_sort(a, SP_AGGREGATE_BY_CUM);
	f = &functions[fixture_find(a, "f", APP)->row];
	assert_int_equal(f->samples, 7);
	assert_int_equal(f->alive, 2);
	assert_int_equal(f->median_ns, 1000);
	f = &functions[fixture_find(a, "g", APP)->row];
	assert_int_equal(f->samples, 4);
	assert_int_equal(f->alive, 4);
	assert_true(f->median_ns == SP_NEVER);
	f = &functions[fixture_find(a, "operator new", APP)->row];
	assert_int_equal(f->samples, 0);
	assert_int_equal(stacks[0].samples, 7);
	assert_int_equal(stacks[1].samples, 3);
	assert_int_equal(stacks[1].alive, 0);
	assert_int_equal(stacks[2].alive, 4);
	free(functions);
	free(stacks);
}

TEST_OF(struct fixture *x, rows_that_hold_together, setup, teardown)
{
	const struct sp_aggregate_function *f;
	struct sp_interval alone, together;
	struct sp_aggregate *a;

	ADD(x, 30, F, MAIN);
	ADD(x, 20, G, MAIN);
	a = fixture_aggregate(x);
	f = fixture_find(a, "f", APP);
	assert_close(a->how.confidence, 0.95, 1e-12);
	alone = sp_estimate_bytes(&a->how, &f->flat);
	/* main has the samples of both, too */
	sp_aggregate_hold_together(a);
	assert_close(a->how.confidence, 1 - 0.05 / 3, 1e-12);
	together = sp_estimate_bytes(&a->how, &f->flat);
	assert_close(together.value, alone.value, 1e-12);
	assert_true(together.lo < alone.lo && together.hi > alone.hi);
	/* From what was asked for, not from what it is. */
	sp_aggregate_hold_together(a);
	assert_close(a->how.confidence, 1 - 0.05 / 3, 1e-12);
	/* What is not shown counts. */
	assert_int_equal(sp_aggregate_drop(a, 0.5, false, NULL), 0);
	assert_int_equal(a->n_dropped, 1);
	sp_aggregate_hold_together(a);
	assert_close(a->how.confidence, 1 - 0.05 / 3, 1e-12);
}

/* A row of one sample does not make the intervals of others wider: it can miss
 * above if it expects many, and below never. */
TEST_OF(struct fixture *x, rows_of_one_sample, setup, teardown)
{
	const struct sp_aggregate_function *f;
	struct sp_interval i;
	struct sp_aggregate *a;

	ADD(x, 30, F, MAIN);
	ADD(x, 1, G, MAIN);
	a = fixture_aggregate(x);
	sp_aggregate_hold_together(a);
	assert_close(a->how.confidence, 0.975, 1e-12);
	f = fixture_find(a, "g", APP);
	assert_non_null(f);
	i = sp_estimate_bytes(&a->how, &f->flat);
	assert_close(i.lo, (double)f->flat.all.size_bytes, 1e-12);
}

TEST_MAIN(NULL, NULL)
