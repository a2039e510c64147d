/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "report/aggregate.h"
#include "support/close.h"
#include "support/report_fixture.h"

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
	/* Another pointer, so that only the text can match. */
	fixture_symbol(x, OTHER_MAIN, strdup("main"), "main.c", 11);
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *x = *state;

	free((void *)(uintptr_t)x->symbolizer.symbols[OTHER_MAIN][0].function);
	free(x);
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
	assert_int_equal(f->flat.samples, flat);
	assert_int_equal(f->cum.samples, cum);
	assert_int_equal(f->flat.size_bytes, 100 * flat);
	assert_int_equal(f->cum.size_bytes, 100 * cum);
}

static void test_flat_goes_to_innermost(void **state)
{
	struct fixture *x = *state;
	struct sp_aggregate *a;

	ADD(x, 3, G, F, MAIN);
	ADD(x, 5, F, MAIN);
	a = fixture_aggregate(x);
	assert_int_equal(a->n_functions, 3);
	assert_function(a, "g", 3, 3);
	assert_function(a, "f", 5, 8);
	assert_function(a, "main", 0, 8);
	sp_aggregate_free(a);
}

static void test_flat_passes_plumbing(void **state)
{
	struct fixture *x = *state;
	struct sp_aggregate *a;

	ADD(x, 3, NEW, NEW_IN_F, MAIN);
	ADD(x, 2, NEW, G, MAIN);
	ADD(x, 1, NEW);
	a = fixture_aggregate(x);
	assert_function(a, "f", 3, 3);
	assert_function(a, "g", 2, 2);
	assert_function(a, "main", 0, 5);
	assert_function(a, "operator new", 1, 6);
	sp_aggregate_free(a);
}

static void test_recursion_counts_once(void **state)
{
	struct fixture *x = *state;
	struct sp_aggregate *a;

	ADD(x, 3, F, G, F, G, F, MAIN);
	ADD(x, 2, MAIN, F, OTHER_MAIN);
	a = fixture_aggregate(x);
	assert_function(a, "f", 3, 5);
	assert_function(a, "g", 0, 3);
	assert_function(a, "main", 2, 5);
	sp_aggregate_free(a);
}

static void test_inlines(void **state)
{
	struct fixture *x = *state;
	struct sp_aggregate *a;

	ADD(x, 7, H_IN_G, MAIN);
	ADD(x, 2, F_IN_F, H_IN_G);
	a = fixture_aggregate(x);
	assert_function(a, "h", 7, 9);
	assert_function(a, "g", 0, 9);
	assert_function(a, "f", 2, 2);
	assert_function(a, "main", 0, 7);
	sp_aggregate_free(a);
}

static void test_identity_is_name_and_module(void **state)
{
	struct fixture *x = *state;
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
	assert_int_equal(fixture_find(a, "f", LIBZ)->flat.samples, 4);
	assert_int_equal(fixture_find(a, "f", "")->flat.samples, 8);
	sp_aggregate_free(a);
}

static void test_estimates_come_from_merged_sums(void **state)
{
	struct fixture *x = *state;
	struct sp_acc merged;
	struct sp_interval got, want;
	double sum_lo = 0, sum_hi = 0;
	struct sp_aggregate *a;

	sp_acc_init(&merged, R);
	for (size_t i = 0; i < 4; i++) {
		size_t offsets[] = {F, i % 2 ? G : MAIN};
		struct sp_stack *s =
			fixture_stack(x, offsets, 2, 3 + i, 10 << (4 * i));
		struct sp_interval one = sp_estimate_bytes(&s->acc, 0.95);

		sp_acc_merge(&merged, &s->acc);
		sum_lo += one.lo;
		sum_hi += one.hi;
	}
	a = fixture_aggregate(x);
	want = sp_estimate_bytes(&merged, 0.95);
	got = sp_estimate_bytes(&fixture_find(a, "f", APP)->flat, 0.95);
	assert_close(got.value, want.value, 1e-12);
	assert_close(got.lo, want.lo, 1e-12);
	assert_close(got.hi, want.hi, 1e-12);
	assert_true(got.lo > 1.05 * sum_lo && got.hi < 0.95 * sum_hi);
	sp_aggregate_free(a);
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

static void test_function_order(void **state)
{
	struct fixture *x = *state;
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
	sp_aggregate_free(a);
}

static void test_order_of_equals_is_by_name(void **state)
{
	struct fixture *x = *state;
	struct sp_aggregate *a;

	ADD(x, 2, MAIN);
	ADD(x, 2, H_IN_G);
	ADD(x, 2, F);
	ADD(x, 2, F, MAIN);
	x->stacks[3].acc = x->stacks[2].acc;
	a = fixture_aggregate(x);
	assert_order(a, "f main h g ");
	/* Names from inside out; the shorter first. */
	assert_ptr_equal(a->stacks[0], &x->stacks[2]);
	assert_ptr_equal(a->stacks[1], &x->stacks[3]);
	assert_ptr_equal(a->stacks[2], &x->stacks[1]);
	assert_ptr_equal(a->stacks[3], &x->stacks[0]);
	sp_aggregate_free(a);
}

static void test_stacks_by_bytes(void **state)
{
	struct fixture *x = *state;
	struct sp_aggregate *a;

	ADD(x, 2, F);
	ADD(x, 0, G, MAIN);
	ADD(x, 9, MAIN);
	a = fixture_aggregate(x);
	assert_int_equal(a->n_stacks, 2);
	assert_ptr_equal(a->stacks[0], &x->stacks[2]);
	assert_ptr_equal(a->stacks[1], &x->stacks[0]);
	assert_null(fixture_find(a, "g", APP));
	sp_aggregate_free(a);
}

static void test_no_stack(void **state)
{
	struct fixture *x = *state;
	struct sp_aggregate *a;

	ADD(x, 1, F);
	fixture_stack(x, NULL, 0, 4, 100);
	a = fixture_aggregate(x);
	assert_int_equal(
		fixture_find(a, SP_AGGREGATE_NO_STACK, "")->flat.samples, 4);
	sp_aggregate_free(a);
}

static void test_empty(void **state)
{
	struct sp_aggregate *a = fixture_aggregate(*state);

	assert_int_equal(a->n_functions, 0);
	assert_int_equal(a->n_stacks, 0);
	sp_aggregate_free(a);
}

static void test_line_of_heaviest_stack(void **state)
{
	struct fixture *x = *state;
	struct sp_aggregate *a;

	ADD(x, 2, F, MAIN);
	ADD(x, 5, G, OTHER_MAIN);
	ADD(x, 3, H_IN_G, MAIN);
	a = fixture_aggregate(x);
	assert_int_equal(fixture_find(a, "main", APP)->line, 11);
	assert_int_equal(fixture_find(a, "g", APP)->line, 30);
	assert_string_equal(fixture_find(a, "h", APP)->file, "h.c");
	sp_aggregate_free(a);
}

/*
 * Random stacks against the naive way: for each function, look through every
 * stack.  With more than 1024 functions, their table has grown twice.
 */
#define N_NAMES 5000

static struct sp_acc naive(const struct fixture *x, const char *name,
			   bool only_innermost)
{
	struct sp_acc acc;

	sp_acc_init(&acc, R);
	for (size_t i = 0; i < x->profile.n_stacks; i++) {
		const struct sp_stack *s = &x->stacks[i];
		size_t n = only_innermost ? 1 : s->n_frames;

		for (size_t k = 0; k < n; k++) {
			size_t offset = s->frames[k].offset;

			if (strcmp(x->symbolizer.symbols[offset][0].function,
				   name))
				continue;
			sp_acc_merge(&acc, &s->acc);
			break;
		}
	}
	return acc;
}

static void assert_same(const struct sp_acc *got, const struct sp_acc *want)
{
	assert_int_equal(got->samples, want->samples);
	assert_int_equal(got->size_bytes, want->size_bytes);
	assert_close(got->est_bytes, want->est_bytes, 1e-12);
	assert_close(got->k2, want->k2, 1e-12);
}

static void test_random_against_naive(void **state)
{
	static char names[N_NAMES][8];
	struct fixture *x = *state;
	struct sp_aggregate *a;
	struct sp_rng rng;

	sp_rng_init(&rng, 22, 0);
	for (size_t i = 0; i < N_NAMES; i++) {
		/* Two addresses in three have a name to themselves. */
		snprintf(names[i], sizeof(names[i]), "n%zu", i - i % 3 / 2);
		fixture_symbol(x, 10 + i, names[i], NULL, 0);
	}
	for (int i = 0; i < FIXTURE_STACKS; i++) {
		size_t offsets[FIXTURE_FRAMES];
		size_t n = 1 + sp_rng_next(&rng) % FIXTURE_FRAMES;
		/* Half of the stacks recurse a lot. */
		size_t range = i % 2 ? 5 : N_NAMES;

		for (size_t k = 0; k < n; k++)
			offsets[k] = 10 + sp_rng_next(&rng) % range;
		fixture_stack(x, offsets, n, 1 + sp_rng_next(&rng) % 4,
			      1 + sp_rng_next(&rng) % 100000);
	}
	a = fixture_aggregate(x);
	assert_true(a->n_functions > 1024);
	for (size_t i = 0; i < a->n_functions; i++) {
		const struct sp_aggregate_function *f = &a->functions[i];
		struct sp_acc flat = naive(x, f->name, true);
		struct sp_acc cum = naive(x, f->name, false);

		assert_same(&f->flat, &flat);
		assert_same(&f->cum, &cum);
		assert_true(i == 0 ||
			    f[-1].flat.est_bytes >= f->flat.est_bytes);
	}
	sp_aggregate_free(a);
}

static void test_flat_adds_up(void **state)
{
	struct fixture *x = *state;
	struct sp_acc sum;
	struct sp_aggregate *a;

	ADD(x, 3, F, G, F, MAIN);
	ADD(x, 4, F_IN_F, MAIN);
	fixture_stack(x, NULL, 0, 5, 100000);
	a = fixture_aggregate(x);
	sp_acc_init(&sum, R);
	for (size_t i = 0; i < a->n_functions; i++)
		sp_acc_merge(&sum, &a->functions[i].flat);
	assert_same(&sum, &x->profile.acc);
	sp_aggregate_free(a);
}

static void count_progress(void *arg, uint64_t done, uint64_t total)
{
	uint64_t *calls = arg;

	++*calls;
	assert_int_equal(done, *calls);
	assert_int_equal(total, 2);
}

static void test_progress(void **state)
{
	struct fixture *x = *state;
	struct sp_aggregate *a = NULL;
	uint64_t calls = 0;

	ADD(x, 1, F);
	ADD(x, 1, G);
	assert_int_equal(sp_aggregate_new(&x->profile, &x->symbolizer,
					  count_progress, &calls, &a, NULL),
			 0);
	assert_int_equal(calls, 2);
	sp_aggregate_free(a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_flat_goes_to_innermost),
		TEST(test_flat_passes_plumbing),
		TEST(test_recursion_counts_once),
		TEST(test_inlines),
		TEST(test_identity_is_name_and_module),
		TEST(test_estimates_come_from_merged_sums),
		TEST(test_function_order),
		TEST(test_order_of_equals_is_by_name),
		TEST(test_stacks_by_bytes),
		TEST(test_no_stack),
		TEST(test_empty),
		TEST(test_line_of_heaviest_stack),
		TEST(test_random_against_naive),
		TEST(test_flat_adds_up),
		TEST(test_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
