/* SPDX-License-Identifier: MIT */
/*
 * pprof's profile.proto: types, samples, mappings, anonymous code, errors,
 * rounding, profiles with groups, hostile names.
 */
#include "export/format.h"
#include "support/close.h"
#include "support/pprof_walk.h"
#include "support/report_fixture.h"
#include "support/test.h"

/* Everything is recorded: estimates are exact. */
#define EVERYTHING 1

enum {
	MAIN = 0x10,
	F,
	INLINED,
	HOSTILE,
	UNKNOWN,
	LIB_UNKNOWN,
};

struct file {
	struct fixture *x;
	struct sp_export_options options;
	uint8_t *bytes; /* of the last export */
	size_t n;
};

static int setup(void **state)
{
	struct file *f = calloc(1, sizeof(*f));
	struct fixture *x = fixture_new(EVERYTHING);

	x->modules[0].start_pc = 0x10000;
	x->modules[0].end_pc = 0x20000;
	x->modules[1].start_pc = 0x30000;
	x->modules[1].end_pc = 0x40000;
	x->modules[1].build_id_len = 2;
	x->modules[1].build_id[0] = 0xab;
	x->modules[1].is_main = true;
	fixture_symbol(x, MAIN, "main", "main.c", 10);
	fixture_symbol(x, F, "f", NULL, 0);
	fixture_symbol(x, INLINED, "g", "g.h", 5);
	fixture_symbol(x, INLINED, "h", "main.c", 20);
	fixture_symbol(x, HOSTILE, "a\n\x1b[2J\xff\xc3", "\xed\xa0\x80", 3);
	fixture_symbol(x, UNKNOWN, "app+0x14", NULL, 0);
	fixture_symbol(x, LIB_UNKNOWN, "libz+0x15", NULL, 0);
	x->symbolizer.symbols[UNKNOWN][0].is_fallback = true;
	x->symbolizer.symbols[LIB_UNKNOWN][0].is_fallback = true;
	f->x = x;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct file *f = *state;

	free(f->bytes);
	fixture_free(f->x);
	free(f);
	return 0;
}

static void export(struct file *f)
{
	struct sp_aggregate *a = fixture_aggregate(f->x);
	FREED char *data = NULL;
	const char *problem;
	size_t n;
	FILE *out = open_memstream(&data, &n);

	assert_int_equal(sp_export_pprof_write(out, a, &f->options, NULL), 0);
	fclose(out);
	free(f->bytes);
	f->bytes = pb_gunzip(data, n, &f->n);
	assert_non_null(f->bytes);
	problem = pprof_problem(f->bytes, f->n);
	if (problem)
		print_error("%s\n", problem);
	assert_null(problem);
}

static struct pb_field nth(const struct file *f, unsigned int number, size_t k)
{
	struct pb_field found;

	assert_true(pb_find(f->bytes, f->n, number, k, &found));
	return found;
}

/* A number in a message; 0 if it is not there. */
static uint64_t number(struct pb_field message, unsigned int field)
{
	struct pb_field found;

	return pb_find(message.bytes, message.value, field, 0, &found)
		       ? found.value
		       : 0;
}

static void assert_text(const struct file *f, uint64_t index, const char *want)
{
	const struct pb_field s = nth(f, 6, index);

	assert_int_equal(s.value, strlen(want));
	assert_memory_equal(s.bytes, want, s.value);
}

static uint64_t value(const struct file *f, size_t sample, size_t k)
{
	const struct pb_field s = nth(f, 2, sample);
	struct pb_field values;
	uint64_t v = 0;

	assert_true(pb_find(s.bytes, s.value, 2, 0, &values));
	assert_true(pb_packed(&values, k, &v));
	return v;
}

/* The location of frame k of a sample, innermost first. */
static struct pb_field location(const struct file *f, size_t sample, size_t k)
{
	const struct pb_field s = nth(f, 2, sample);
	struct pb_field ids;
	uint64_t id = 0;

	assert_true(pb_find(s.bytes, s.value, 1, 0, &ids));
	assert_true(pb_packed(&ids, k, &id));
	return nth(f, 4, id - 1);
}

static void assert_line(const struct file *f, struct pb_field loc, size_t k,
			const char *name, uint64_t line)
{
	struct pb_field found, function;

	assert_true(pb_find(loc.bytes, loc.value, 4, k, &found));
	function = nth(f, 5, number(found, 1) - 1);
	assert_text(f, number(function, 2), name);
	assert_int_equal(number(found, 2), line);
}

static void assert_types(const struct file *f, const char *const *types,
			 const char *by_default)
{
	size_t n = 0;

	for (; types[n]; n++)
		assert_text(f, number(nth(f, 1, n), 1), types[n]);
	assert_int_equal(pb_count(f->bytes, f->n, 1), n);
	assert_text(f, nth(f, 14, 0).value, by_default);
}

TEST_BETWEEN(types, setup, teardown)
{
	static const char *const alloc[] = {"alloc_objects", "alloc_space",
					    NULL};
	static const char *const all[] = {"alloc_objects", "alloc_space",
					  "inuse_objects", "inuse_space", NULL};
	static const char *const error[] = {"alloc_objects",
					    "alloc_space",
					    "inuse_objects",
					    "inuse_space",
					    "inuse_space_variance",
					    "inuse_samples",
					    NULL};
	struct file *f = *test_state;

	export(f);
	assert_types(f, alloc, "alloc_space");
	f->x->profile.has_frees = true;
	export(f);
	assert_types(f, all, "alloc_space");
	f->x->question.has_view = true;
	f->x->question.view = SP_VIEW_PEAK;
	f->options.pprof_error = true;
	export(f);
	assert_types(f, error, "inuse_space");
	assert_text(f, number(nth(f, 1, 4), 2), "KiB^2");
	assert_int_equal(nth(f, 9, 0).value, f->x->profile.start_unix_ns);
	assert_int_equal(nth(f, 10, 0).value, f->x->profile.duration_ns);
	assert_int_equal(nth(f, 12, 0).value, EVERYTHING);
}

TEST_OF(struct file *f, samples, setup, teardown)
{
	struct sp_stack *s;
	struct pb_field label;

	f->x->profile.has_frees = true;
	s = fixture_stack(f->x, (size_t[]){INLINED, MAIN}, 2, 3, 100);
	fixture_samples(f->x, s, 1, 7);
	f->x->next.freed_ns = 5;
	fixture_samples(f->x, s, 2, 100);
	export(f);
	assert_int_equal(pb_count(f->bytes, f->n, 2), 2);
	assert_int_equal(value(f, 0, 0), 1);
	assert_int_equal(value(f, 0, 1), 7);
	assert_int_equal(value(f, 0, 3), 7);
	assert_int_equal(value(f, 1, 0), 5);
	assert_int_equal(value(f, 1, 1), 500);
	assert_int_equal(value(f, 1, 2), 3);
	assert_int_equal(value(f, 1, 3), 300);
	label = nth(f, 2, 1);
	assert_true(pb_find(label.bytes, label.value, 3, 0, &label));
	assert_text(f, number(label, 1), "bytes");
	assert_int_equal(number(label, 3), 100);
	assert_int_equal(number(nth(f, 3, 1), 10), 1);
	assert_line(f, location(f, 0, 0), 0, "g", 5);
	assert_line(f, location(f, 0, 0), 1, "h", 20);
	assert_line(f, location(f, 0, 1), 0, "main", 10);
	assert_int_equal(number(location(f, 0, 0), 3), 0x10000 + INLINED - 1);
}

/* The program is first, though it is the module with number 2. */
TEST_OF(struct file *f, mappings, setup, teardown)
{
	struct sp_stack *s = fixture_stack(
		f->x, (size_t[]){LIB_UNKNOWN, UNKNOWN, MAIN}, 3, 1, 8);

	s->frames[0].module = 2;
	export(f);
	assert_int_equal(pb_count(f->bytes, f->n, 3), 2);
	assert_text(f, number(nth(f, 3, 0), 5), "/lib/libz.so.1");
	assert_text(f, number(nth(f, 3, 0), 6), "ab00");
	assert_int_equal(number(nth(f, 3, 0), 2), 0x30000);
	assert_int_equal(number(nth(f, 3, 0), 3), 0x40000);
	assert_int_equal(number(nth(f, 3, 0), 7), 0);
	assert_text(f, number(nth(f, 3, 1), 5), "/bin/app");
	assert_int_equal(number(nth(f, 3, 1), 7), 1);
	assert_int_equal(number(nth(f, 3, 1), 10), 0);
	/* Nothing is known of the first: its addresses can be looked up. */
	assert_int_equal(number(location(f, 0, 0), 2), 1);
	assert_int_equal(number(location(f, 0, 0), 3),
			 0x30000 + LIB_UNKNOWN - 1);
	assert_int_equal(number(location(f, 0, 0), 4), 0);
	assert_line(f, location(f, 0, 1), 0, "app+0x14", 0);
}

TEST_OF(struct file *f, anonymous_code, setup, teardown)
{
	struct sp_stack *s = fixture_stack(f->x, (size_t[]){F, MAIN}, 2, 1, 8);

	s->frames[0].module = 0;
	export(f);
	assert_int_equal(number(location(f, 0, 0), 2), 0);
	assert_int_equal(number(location(f, 0, 0), 3), F - 1);
	assert_line(f, location(f, 0, 0), 0, "f", 0);
}

TEST_OF(struct file *f, no_stack, setup, teardown)
{
	fixture_stack(f->x, NULL, 0, 1, 8);
	export(f);
	assert_line(f, location(f, 0, 0), 0, "[no stack]", 0);
}

TEST_OF(struct file *f, error, setup, teardown)
{
	struct sp_stack *s;

	f->x->profile.has_frees = true;
	f->x->next.period_bytes = f->x->profile.period_bytes = 4096;
	f->options.pprof_error = true;
	s = fixture_stack(f->x, (size_t[]){F}, 1, 3, 2048);
	f->x->next.freed_ns = 5;
	fixture_samples(f->x, s, 4, 2048);
	export(f);
	assert_int_equal(value(f, 0, 5), 7);
	/* w^2 q, with w = 2 KiB / (1 - q) and q = exp(-1/2), in KiB^2 */
	assert_in_range(value(f, 0, 4), 7 * 15.67 - 1, 7 * 15.67 + 1);
	f->x->question.has_view = true;
	f->x->question.view = SP_VIEW_LIVE;
	export(f);
	assert_int_equal(value(f, 0, 5), 3);
	assert_in_range(value(f, 0, 4), 3 * 15.67 - 1, 3 * 15.67 + 1);
}

/* Each row for itself: what 400 of them, of fractions of all sizes, are off in
 * all has a standard deviation of at most 10. */
TEST_OF(struct file *f, rounds_independently, setup, teardown)
{
	struct sp_stack *s = fixture_stack(f->x, (size_t[]){F}, 1, 0, 1);
	const struct sp_analysis *a;
	double objects = 0;

	f->x->next.period_bytes = f->x->profile.period_bytes = 4096;
	for (uint64_t size = 17; size < 417; size++)
		fixture_samples(f->x, s, 1, size);
	export(f);
	a = f->x->analysis;
	for (size_t i = 0; i < 400; i++)
		objects += (double)value(f, i, 0);
	assert_between(a->view->all.all.est_count - 30, objects,
		       a->view->all.all.est_count + 30);
}

TEST_OF(struct file *f, folded, setup, teardown)
{
	f->options.max_samples = 2;
	fixture_stack(f->x, (size_t[]){F}, 1, 1, 8);
	fixture_stack(f->x, (size_t[]){MAIN}, 1, 1, 100);
	fixture_stack(f->x, (size_t[]){F, MAIN}, 2, 1, 16);
	export(f);
	assert_int_equal(pb_count(f->bytes, f->n, 2), 2);
	assert_int_equal(value(f, 0, 1), 100);
	assert_int_equal(value(f, 1, 1), 24);
	assert_line(f, location(f, 1, 0), 0, "[other]", 0);
}

/* export() looks for what is wrong. */
TEST_OF(struct file *f, hostile, setup, teardown)
{
	struct sp_profile *p = &f->x->profile;

	p->command = "\x1b]0;x\x07\xff\nexact";
	p->start_unix_ns = UINT64_MAX;
	p->duration_ns = UINT64_MAX - 1;
	f->x->modules[0].path = "\xf4\x90\x80\x80\n";
	f->x->modules[0].start_pc = UINT64_MAX - 5;
	for (int i = 0; i < 300; i++)
		fixture_stack(f->x, (size_t[]){HOSTILE, MAIN}, 2, 3,
			      UINT64_MAX);
	f->x->frames[1][0].module = UINT32_MAX;
	f->options.pprof_error = true;
	export(f);
	assert_line(f, location(f, 0, 0), 0, "a\\x0a\\x1b[2J\\xff\\xc3", 3);
	assert_text(f, number(nth(f, 5, 0), 4), "\\xed\\xa0\\x80");
	assert_text(f, number(nth(f, 3, 1), 5), "\\xf4\\x90\\x80\\x80\\x0a");
}

TEST_MAIN(NULL, NULL)
