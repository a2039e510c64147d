/* SPDX-License-Identifier: MIT */
/*
 * DHAT's JSON: head, program points, repeated stacks, rounding, frees that come
 * first, profiles without frees, refused views, hostile names.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>

#include "export/format.h"
#include "support/json_checks.h"
#include "support/report_fixture.h"
#include "support/test.h"

#define MS 1000000u

enum { MAIN = 0x10, F = 0x20, G = 0x30 };

struct document {
	struct fixture *x;
	char *text;
	size_t size;
	json_t *root;
};

/* Every object is known, so that all figures are exact. */
static int setup(void **state)
{
	struct document *d = calloc(1, sizeof(*d));

	d->x = fixture_new(1);
	d->x->profile.has_frees = true;
	d->x->profile.duration_ns = 100 * MS;
	fixture_symbol(d->x, MAIN, "main", "src/main.c", 10);
	fixture_symbol(d->x, F, "f", "f.c", 1);
	fixture_symbol(d->x, G, "g", NULL, 0);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct document *d = *state;

	json_decref(d->root);
	free(d->text);
	fixture_free(d->x);
	free(d);
	return 0;
}

static void add(struct document *d, const struct sp_stack *stack,
		uint64_t samples, uint64_t size_bytes, uint64_t born_ms,
		uint64_t freed_ms)
{
	d->x->next.born_ns = born_ms * MS;
	d->x->next.freed_ns = freed_ms ? freed_ms * MS : SP_NEVER;
	fixture_samples(d->x, stack, samples, size_bytes);
}

static int write_it(struct document *d, struct sp_error *err)
{
	const struct sp_export_options options = {0};
	struct sp_aggregate *a = fixture_aggregate(d->x);
	FILE *out = open_memstream(&d->text, &d->size);
	int r = sp_export_dhat_write(out, a, &options, err);

	fclose(out);
	return r;
}

static json_t *export(struct document *d)
{
	json_error_t error;

	assert_int_equal(write_it(d, NULL), 0);
	d->root = json_loads(d->text, JSON_REJECT_DUPLICATES, &error);
	if (!d->root)
		print_error("line %d: %s\n%s\n", error.line, error.text,
			    d->text);
	assert_non_null(d->root);
	return d->root;
}

TEST_OF(struct document *d, head, setup, teardown)
{
	json_t *root;

	root = export(d);
	assert_int_equal(integer(root, "dhatFileVersion"), 2);
	assert_string_equal(string(root, "mode"), "heap");
	assert_true(json_is_true(at(root, "bklt")));
	assert_true(json_is_false(at(root, "bkacc")));
	assert_string_equal(string(root, "cmd"), "app -x");
	assert_int_equal(integer(root, "pid"), 7);
	assert_int_equal(integer(root, "te"), 100000);
	assert_int_equal(integer(root, "tg"), 0);
	assert_int_equal(json_array_size(at(root, "pps")), 0);
	assert_string_equal(string(root, "ftbl.0"), "[root]");
}

/*
 *   stack 0   2 x 100 from 10 to 30 ms, 3 x 50 from 40 ms on
 *   stack 1   1 x 1000 from 20 to 50 ms, 1 x 10 from 1 to 5 ms
 */
TEST_OF(struct document *d, points, setup, teardown)
{
	const struct sp_stack *a, *b;
	const json_t *p;

	a = fixture_stack(d->x, (size_t[]){F, MAIN}, 2, 0, 1);
	b = fixture_stack(d->x, (size_t[]){G, MAIN}, 2, 0, 1);
	add(d, a, 2, 100, 10, 30);
	add(d, a, 3, 50, 40, 0);
	add(d, b, 1, 1000, 20, 50);
	add(d, b, 1, 10, 1, 5);
	export(d);
	assert_int_equal(integer(d->root, "tg"), 20000);
	p = at(d->root, "pps");
	assert_int_equal(json_array_size(p), 2);
	assert_int_equal(integer(p, "0.tb"), 350);
	assert_int_equal(integer(p, "0.tbk"), 5);
	assert_int_equal(integer(p, "0.tl"), 2 * 20000 + 3 * 60000);
	assert_int_equal(integer(p, "0.mb"), 200);
	assert_int_equal(integer(p, "0.mbk"), 2);
	assert_int_equal(integer(p, "0.gb"), 200);
	assert_int_equal(integer(p, "0.gbk"), 2);
	assert_int_equal(integer(p, "0.eb"), 150);
	assert_int_equal(integer(p, "0.ebk"), 3);
	assert_int_equal(json_array_size(at(p, "0.fs")), 2);
	assert_int_equal(integer(p, "1.tb"), 1010);
	assert_int_equal(integer(p, "1.mb"), 1000);
	assert_int_equal(integer(p, "1.gb"), 1000);
	assert_int_equal(integer(p, "1.eb"), 0);
	assert_int_equal(integer(p, "1.ebk"), 0);
	assert_string_equal(string(d->root, "ftbl.2"), "0xf: main (main.c:10)");
}

/* What is freed and made at one moment was not there twice. */
TEST_OF(struct document *d, frees_come_first, setup, teardown)
{
	const struct sp_stack *a = fixture_stack(d->x, (size_t[]){F}, 1, 0, 1);

	add(d, a, 1, 100, 20, 30);
	add(d, a, 1, 100, 10, 20);
	add(d, a, 1, 7, 40, 40); /* gone at once */
	export(d);
	assert_int_equal(integer(d->root, "pps.0.mb"), 100);
	assert_int_equal(integer(d->root, "pps.0.tb"), 207);
	assert_int_equal(integer(d->root, "pps.0.tl"), 20000);
}

/* One path for stacks with the same frames: the viewer refuses another. */
TEST_OF(struct document *d, repeated_stacks, setup, teardown)
{
	d->x->next.born_ns = 0;
	fixture_stack(d->x, (size_t[]){F, MAIN}, 2, 1, 100);
	fixture_stack(d->x, (size_t[]){F, MAIN}, 2, 2, 10);
	export(d);
	assert_int_equal(json_array_size(at(d->root, "pps")), 1);
	assert_int_equal(integer(d->root, "pps.0.tb"), 120);
	assert_int_equal(integer(d->root, "pps.0.eb"), 120);
}

TEST_OF(struct document *d, without_frees, setup, teardown)
{
	d->x->profile.has_frees = false;
	fixture_stack(d->x, (size_t[]){F, MAIN}, 2, 1, 100);
	export(d);
	assert_true(json_is_false(at(d->root, "bklt")));
	assert_null(json_object_get(d->root, "tg"));
	assert_null(json_object_get(at(d->root, "pps.0"), "eb"));
	assert_int_equal(integer(d->root, "pps.0.tb"), 100);
}

TEST_OF(struct document *d, a_view_is_refused, setup, teardown)
{
	struct sp_error err;

	d->x->question.has_view = true;
	d->x->question.view = SP_VIEW_LIVE;
	assert_int_equal(write_it(d, &err), -EINVAL);
	assert_non_null(strstr(err.message, "leave out --view live"));
	assert_int_equal(d->size, 0);
}

/*
 * Sums over many paths are those of the weights: each is rounded up with the
 * probability of its fraction.  Of 400 paths with one object of 100 bytes at
 * R = 4096 the sum has standard deviation below 400^(1/2) / 2 = 10; 7 of them
 * are exceeded with probability 3e-12.
 */
TEST_OF(struct document *d, rounding, setup, teardown)
{
	const double weight = 1 / sp_inclusion_probability(100, 4096);
	long long bytes = 0, blocks = 0;
	size_t n_up = 0;
	const json_t *p;
	size_t i;

	d->x->next.period_bytes = 4096;
	for (i = 0; i < 400; i++) {
		fixture_symbol(d->x, 100 + i, "many", NULL, 0);
		fixture_stack(d->x, (size_t[]){100 + i}, 1, 1, 100);
	}
	export(d);
	json_array_foreach(at(d->root, "pps"), i, p)
	{
		const long long one = integer(p, "tbk");

		assert_in_range(one, (long long)weight, (long long)weight + 1);
		n_up += one > (long long)weight;
		blocks += one;
		bytes += integer(p, "tb");
		assert_int_equal(integer(p, "eb"), integer(p, "tb"));
		assert_int_equal(integer(p, "mb"), integer(p, "tb"));
	}
	assert_true(n_up > 0 && n_up < 400);
	assert_true(fabs((double)blocks - 400 * weight) < 70);
	assert_true(fabs((double)bytes - 400 * 100 * weight) < 70);
}

TEST_BETWEEN(hostile, setup, teardown)
{
	static const char name[] = "</script>\"\\\n\x1b]0;\x07\xff#{x}(y:1)";
	struct document *d = *test_state;

	fixture_symbol(d->x, 0x50, name, name, 1);
	d->x->profile.command = name;
	d->x->profile.duration_ns = 0;
	d->x->next.born_ns = UINT64_MAX - 5;
	d->x->profile.period_bytes = UINT64_MAX;
	d->x->next.period_bytes = UINT64_MAX;
	fixture_stack(d->x, (size_t[]){0x50}, 1, 9, UINT64_MAX);
	export(d);
	assert_int_equal(integer(d->root, "te"), 1);
	assert_true(integer(d->root, "pps.0.tb") == (long long)1 << 53);
	assert_null(strchr(d->text, '\x1b'));
	assert_null(strchr(d->text, '<'));
	assert_non_null(strstr(string(d->root, "ftbl.2"), "</script>\"\\\n"));
}

TEST_MAIN(NULL, NULL)
