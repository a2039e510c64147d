/* SPDX-License-Identifier: MIT */
/*
 * heap_v2 of gperftools: rows, paths, periods, period 1, no stack, profiles
 * without frees, hostile sizes.
 */
#include <errno.h>

#include "export/format.h"
#include "support/export_fixture.h"
#include "support/page.h"
#include "symbols/elffile.h"
#include "support/test.h"

enum { AT_MAIN = 0x10, AT_F = 0x20 };

static int setup(void **state)
{
	struct page *d = page_new(4096);
	struct fixture *x = d->x;

	x->profile.has_frees = true;
	x->modules[0].start_pc = 0x400000;
	x->modules[0].end_pc = 0x402000;
	x->modules[0].path = "/nonexistent/app";
	x->modules[1].start_pc = 0x7f0000000000;
	x->modules[1].end_pc = 0x7f0000001000;
	x->modules[1].path = "/nonexistent/libz.so.1";
	fixture_symbol(x, AT_MAIN, "main", "src/main.c", 10);
	fixture_symbol(x, AT_F, "f", "f.c", 1);
	*state = d;
	return 0;
}

static int write_it(struct page *d, struct sp_error *err)
{
	return export_into(d->x, sp_export_heap_v2_write, NULL, &d->text,
			   &d->size, err);
}

static void assert_text(struct page *d, const char *want)
{
	assert_int_equal(write_it(d, NULL), 0);
	assert_string_equal(d->text, want);
}

#define MAPS                                                                   \
	"\nMAPPED_LIBRARIES:\n"                                                \
	"00400000-00402000 r-xp 00000000 00:00 0 /nonexistent/app\n"           \
	"7f0000000000-7f0000001000 r-xp 00000000 00:00 0 "                     \
	"/nonexistent/libz.so.1\n"

TEST_BETWEEN(empty, setup, page_teardown)
{
	assert_text(*test_state,
		    "heap profile:      0:        0 [     0:        "
		    "0] @ heap_v2/4096\n" MAPS);
}

/* A row for each stack and size, as sampled; the first address is in the call,
 * the others are where calls return to. */
TEST_OF(struct page *d, rows, setup, page_teardown)
{
	struct fixture *x = d->x;

	fixture_stack(x, (size_t[]){AT_F, AT_MAIN}, 2, 3, 100);
	x->next.freed_ns = 5;
	fixture_samples(x, &x->stacks[0], 2, 100);
	fixture_samples(x, &x->stacks[0], 1, 70000);
	x->next.freed_ns = SP_NEVER;
	fixture_stack(x, (size_t[]){AT_MAIN}, 1, 1, 100)->frames[0].module = 2;
	assert_text(
		d,
		"heap profile:      4:      400 [     7:    70600] @ "
		"heap_v2/4096\n"
		"     3:      300 [     5:      500] @ 0x40001f 0x400010\n"
		"     0:        0 [     1:    70000] @ 0x40001f 0x400010\n"
		"     1:      100 [     1:      100] @ 0x7f000000000f\n" MAPS);
}

/* Readers need an address: no row may be lost. */
TEST_OF(struct page *d, no_stack, setup, page_teardown)
{
	fixture_stack(d->x, NULL, 0, 2, 100);
	assert_int_equal(write_it(d, NULL), 0);
	assert_non_null(strstr(
		d->text, "\n     2:      200 [     2:      200] @ 0x1\n"));
}

TEST_OF(struct page *d, without_frees, setup, page_teardown)
{
	d->x->profile.has_frees = false;
	fixture_stack(d->x, (size_t[]){AT_F}, 1, 2, 100);
	assert_int_equal(write_it(d, NULL), 0);
	assert_non_null(strstr(
		d->text, "\n     2:      200 [     2:      200] @ 0x40001f\n"));
}

/* Everything was recorded: a reader must not unbias it. */
TEST_OF(struct page *d, period_one, setup, page_teardown)
{
	d->x->next.period_bytes = 1;
	fixture_stack(d->x, (size_t[]){AT_F}, 1, 2, 3);
	assert_int_equal(write_it(d, NULL), 0);
	assert_memory_equal(d->text,
			    "heap profile:      2:        6 [     2:        6] "
			    "@ heapprofile\n",
			    61);
}

/* The period is that of the samples, which need not be the first one. */
TEST_OF(struct page *d, periods, setup, page_teardown)
{
	struct sp_error err;

	d->x->next.period_bytes = 512;
	fixture_stack(d->x, (size_t[]){AT_F}, 1, 2, 100);
	assert_int_equal(write_it(d, NULL), 0);
	assert_non_null(strstr(d->text, "@ heap_v2/512\n"));
	d->x->next.period_bytes = 1024;
	d->x->next.born_ns = 1000000000;
	fixture_samples(d->x, &d->x->stacks[0], 1, 100);
	assert_int_equal(write_it(d, &err), -EINVAL);
	assert_non_null(strstr(err.message, "512 and 1024"));
	assert_non_null(strstr(err.message, "export pprof"));
	assert_int_equal(d->size, 0);
	/* A part of the run has one. */
	d->x->question.from =
		(struct sp_moment){.kind = SP_MOMENT_TIME, .ns = 500000000};
	assert_int_equal(write_it(d, NULL), 0);
	assert_non_null(strstr(d->text, "@ heap_v2/1024\n"));
}

/* A path on one line. */
TEST_OF(struct page *d, paths, setup, page_teardown)
{
	d->x->modules[0].path = "[vdso]";
	d->x->modules[1].path = "/tmp/a b\n\xff\x1b\xc2\x9b.so";
	assert_int_equal(write_it(d, NULL), 0);
	assert_non_null(
		strstr(d->text, "00402000 r-xp 00000000 00:00 0 [vdso]\n"));
	assert_non_null(
		strstr(d->text, " 0 /tmp/a b\\012\\377\\033\\302\\233.so\n"));
}

/* The code of a module that is there is what the file says. */
TEST_BETWEEN(a_file, setup, page_teardown)
{
	static const struct sp_build_id any = {NULL, 0};
	struct page *d = *test_state;
	struct sp_module *m = &d->x->modules[1];
	struct sp_elf_segment code;
	char want[128];

	m->path = "/proc/self/exe";
	m->bias = 0x10000;
	assert_int_equal(sp_elffile_code(m->path, &any, &code, 1), 1);
	assert_true(code.bytes > 0);
	snprintf(want, sizeof(want),
		 "\n%08llx-%08llx r-xp %08llx 00:00 0 /proc/self/exe\n",
		 (unsigned long long)code.address + 0x10000,
		 (unsigned long long)(code.address + code.bytes) + 0x10000,
		 (unsigned long long)code.offset);
	assert_int_equal(write_it(d, NULL), 0);
	assert_non_null(strstr(d->text, want));
}

TEST_OF(struct page *d, hostile_sizes, setup, page_teardown)
{
	fixture_stack(d->x, (size_t[]){AT_F}, 1, 3, UINT64_MAX);
	assert_int_equal(write_it(d, NULL), 0);
	assert_non_null(strstr(d->text, "3: 9223372036854775807 ["));
}

TEST_MAIN(NULL, NULL)
