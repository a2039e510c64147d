/* SPDX-License-Identifier: MIT */
/*
 * Massif's text: trees, threshold, rounding, a path within a path, refusals,
 * hostile names, deep stacks.
 */
#include <errno.h>

#include "export/format.h"
#include "support/export_fixture.h"
#include "support/page.h"
#include "support/test.h"

#define MS 1000000u

enum { AT_MAIN = 0x10, AT_F = 0x20, AT_G = 0x30 };

static int setup(void **state)
{
	struct page *d = page_new(1);

	d->x->profile.has_frees = true;
	d->x->profile.duration_ns = 72 * MS;
	fixture_symbol(d->x, AT_MAIN, "main", "src/main.c", 10);
	fixture_symbol(d->x, AT_F, "f", "f.c", 1);
	fixture_symbol(d->x, AT_G, "g", "g.c", 2);
	*state = d;
	return 0;
}

static void add(struct page *d, const struct sp_stack *stack,
		uint64_t size_bytes, uint64_t born_ns, uint64_t freed_ns)
{
	d->x->next.born_ns = born_ns;
	d->x->next.freed_ns = freed_ns ? freed_ns : SP_NEVER;
	fixture_samples(d->x, stack, 1, size_bytes);
}

static int write_it(struct page *d, struct sp_error *err)
{
	return export_into(d->x, sp_export_massif_write, NULL, &d->text,
			   &d->size, err);
}

static void assert_has(const struct page *d, const char *want)
{
	if (!strstr(d->text, want))
		print_error("no\n%s\nin\n%s\n", want, d->text);
	assert_non_null(strstr(d->text, want));
}

TEST_OF(struct page *d, empty, setup, page_teardown)
{
	assert_int_equal(write_it(d, NULL), 0);
	assert_memory_equal(d->text, "desc: ", 6);
	assert_has(d, "\ncmd: app -x\ntime_unit: ms\n"
		      "#-----------\nsnapshot=0\n#-----------\ntime=0.000\n"
		      "mem_heap_B=0\nmem_heap_extra_B=0\nmem_stacks_B=0\n"
		      "heap_tree=empty\n");
	assert_has(d, "heap_tree=peak\nn0: 0 (heap allocation functions) "
		      "malloc/new/new[], --alloc-fns, etc.\n");
	assert_has(d, "snapshot=73\n");
	assert_null(strstr(d->text, "snapshot=74\n"));
}

/* 1000 and 500 bytes from 10 ms on, of which 1000 are freed at 20 ms. */
TEST_OF(struct page *d, trees, setup, page_teardown)
{
	const struct sp_stack *a, *b;

	a = fixture_stack(d->x, (size_t[]){AT_F, AT_MAIN}, 2, 0, 1);
	b = fixture_stack(d->x, (size_t[]){AT_F, AT_G, AT_MAIN}, 3, 0, 1);
	add(d, a, 500, 10 * MS, 0);
	add(d, b, 1000, 10 * MS + 7000, 20 * MS);
	assert_int_equal(write_it(d, NULL), 0);
	assert_has(d,
		   "snapshot=10\n#-----------\ntime=10.000\nmem_heap_B=500\n");
	assert_has(d, "snapshot=11\n#-----------\ntime=10.007\n"
		      "mem_heap_B=1500\nmem_heap_extra_B=0\nmem_stacks_B=0\n"
		      "heap_tree=peak\n"
		      "n1: 1500 (heap allocation functions) malloc/new/new[], "
		      "--alloc-fns, etc.\n"
		      " n2: 1500 0x1f: f (f.c:1)\n"
		      "  n1: 1000 0x2f: g (g.c:2)\n"
		      "   n0: 1000 0xf: main (main.c:10)\n"
		      "  n0: 500 0xf: main (main.c:10)\n"
		      "#-----------\nsnapshot=12\n");
	assert_has(d, "snapshot=73\n#-----------\ntime=72.000\n"
		      "mem_heap_B=500\nmem_heap_extra_B=0\nmem_stacks_B=0\n"
		      "heap_tree=detailed\n"
		      "n1: 500 (heap allocation functions) malloc/new/new[], "
		      "--alloc-fns, etc.\n"
		      " n1: 500 0x1f: f (f.c:1)\n"
		      "  n0: 500 0xf: main (main.c:10)\n");
}

/* A path may end where another goes on. */
TEST_OF(struct page *d, a_path_within_a_path, setup, page_teardown)
{
	d->x->next.born_ns = 5;
	fixture_stack(d->x, (size_t[]){AT_F}, 1, 1, 300);
	fixture_stack(d->x, (size_t[]){AT_F, AT_MAIN}, 2, 1, 700);
	assert_int_equal(write_it(d, NULL), 0);
	assert_has(d, " n2: 1000 0x1f: f (f.c:1)\n"
		      "  n0: 700 0xf: main (main.c:10)\n"
		      "  n0: 300 (caller unknown)\n");
}

TEST_OF(struct page *d, threshold, setup, page_teardown)
{
	d->x->next.born_ns = 5;
	fixture_stack(d->x, (size_t[]){AT_F, AT_MAIN}, 2, 1, 9900);
	fixture_stack(d->x, (size_t[]){AT_G, AT_MAIN}, 2, 1, 60);
	fixture_stack(d->x, (size_t[]){AT_MAIN}, 1, 0, 1);
	assert_int_equal(write_it(d, NULL), 0);
	assert_has(d, "n2: 9960 (heap");
	assert_has(d, "  n0: 9900 0xf: main (main.c:10)\n"
		      " n0: 60 in 1 place, below massif's threshold "
		      "(1.00%)\n#");
	fixture_samples(d->x, &d->x->stacks[2], 1, 40);
	assert_int_equal(write_it(d, NULL), 0);
	assert_has(d, " n0: 100 in 2 places, all below massif's threshold "
		      "(1.00%)\n#");
	/* One percent is not below. */
	fixture_samples(d->x, &d->x->stacks[1], 1, 41);
	assert_int_equal(write_it(d, NULL), 0);
	assert_has(d, " n1: 101 0x2f: g (g.c:2)\n");
	assert_has(d, " n0: 40 in 1 place");
}

/* 300 paths whose weights are no integers: what is printed adds up. */
TEST_OF(struct page *d, rounding, setup, page_teardown)
{
	unsigned long long total = 0, sum = 0, value;
	const char *line;

	d->x->next.period_bytes = 4096;
	d->x->next.born_ns = 5;
	for (size_t i = 0; i < 60; i++) {
		fixture_symbol(d->x, 100 + i, "many", "m.c", 1);
		fixture_stack(d->x, (size_t[]){100 + i, AT_MAIN}, 2, 5,
			      100 + i);
	}
	assert_int_equal(write_it(d, NULL), 0);
	line = strstr(d->text, "heap_tree=peak\n");
	assert_int_equal(sscanf(line, "heap_tree=peak\nn60: %llu (", &total),
			 1);
	while ((line = strstr(line + 1, "\n n1: "))) {
		assert_int_equal(sscanf(line, "\n n1: %llu 0x", &value), 1);
		sum += value;
		if (strstr(line + 1, "#-") < strstr(line + 1, "\n n1: "))
			break;
	}
	assert_int_equal(sum, total);
	assert_int_equal(
		total,
		(unsigned long long)(d->x->analysis->peak.raw_bytes + 0.5));
}

TEST_OF(struct page *d, refusals, setup, page_teardown)
{
	struct sp_error err;

	d->x->question.has_view = true;
	d->x->question.view = SP_VIEW_PEAK;
	assert_int_equal(write_it(d, &err), -EINVAL);
	assert_non_null(strstr(err.message, "leave out --view peak"));
	d->x->question.has_view = false;
	d->x->profile.has_frees = false;
	assert_int_equal(write_it(d, &err), -ENODATA);
	assert_non_null(strstr(err.message, "massif needs"));
	assert_int_equal(d->size, 0);
}

/* A name cannot begin a line or a comment. */
TEST_BETWEEN(hostile, setup, page_teardown)
{
	static const char name[] = "{lambda()#1}\nsnapshot=9\n\x1b]0;\xff";
	static const char want[] = "{lambda()~1}\\x0asnapshot=9\\x0a\\x1b]0;"
				   "\\xff";
	struct page *d = *test_state;
	const char *at;
	int n = 0;

	fixture_symbol(d->x, 0x50, name, name, 1);
	d->x->profile.command = name;
	d->x->next.born_ns = 5;
	fixture_stack(d->x, (size_t[]){0x50}, 1, 1, UINT64_MAX);
	assert_int_equal(write_it(d, NULL), 0);
	for (at = d->text; (at = strstr(at, want)); at++)
		n++;
	/* The command, and name and file in two trees. */
	assert_int_equal(n, 5);
	assert_has(d, "mem_heap_B=9223372036854775808\n");
}

/* A chain that never ends is cut, and its lines do not grow for ever. */
TEST_OF(struct page *d, deep, setup, page_teardown)
{
	struct sp_stack *stack;
	FREED struct sp_frame *frames = calloc(5000, sizeof(*frames));
	char *line, *rest;

	d->x->next.born_ns = 5;
	stack = fixture_stack(d->x, (size_t[]){AT_F}, 1, 1, 100);
	for (size_t i = 0; i < 5000; i++)
		frames[i] = (struct sp_frame){1, AT_F};
	stack->frames = frames;
	stack->n_frames = 5000;
	assert_int_equal(write_it(d, NULL), 0);
	assert_has(d, "\n  n1: 100 0x1f: f (f.c:1)\n");
	for (rest = d->text; (line = strsep(&rest, "\n"));)
		assert_true(strlen(line) < 1100);
}

TEST_MAIN(NULL, NULL)
