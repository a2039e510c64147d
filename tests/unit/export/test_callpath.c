/* SPDX-License-Identifier: MIT */
/*
 * Call paths as texts for Valgrind's formats: distinct paths stay apart; order,
 * address zero, no stack.
 */
#include "export/callpath.h"
#include "support/report_fixture.h"
#include "support/test.h"

#define R 4096

enum {
	MAIN = 0x10,
	F = 0x20,
	H_IN_G = 0x30,
	ANONYMOUS = 0x40,
};

struct test {
	struct fixture *x;
	struct sp_callpaths paths;
};

static int setup(void **state)
{
	struct test *t = calloc(1, sizeof(*t));
	struct fixture *x = fixture_new(R);

	x->modules[0].start_pc = 0x400000;
	fixture_symbol(x, MAIN, "main", "src/main.c", 10);
	fixture_symbol(x, F, "app+0x20", NULL, 0);
	fixture_symbol(x, H_IN_G, "h", "h.c", 40);
	fixture_symbol(x, H_IN_G, "g", "g.c", 31);
	fixture_symbol(x, ANONYMOUS, "0x40", NULL, 0);
	t->x = x;
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct test *t = *state;

	sp_callpaths_done(&t->paths);
	fixture_free(t->x);
	free(t);
	return 0;
}

static void make(struct test *t)
{
	struct sp_aggregate *a = fixture_aggregate(t->x);

	assert_int_equal(
		sp_callpaths_init(&t->paths, a, &a->analysis->selection, NULL),
		0);
}

/* Text of frame `k` of the path of a stack. */
static const char *text(const struct test *t, const struct sp_stack *stack,
			uint32_t k)
{
	const uint32_t at = t->paths.path_of_stack[stack - t->x->stacks];

	assert_true(at < t->paths.n_paths);
	assert_true(k < t->paths.paths[at].n_frames);
	assert_true(t->paths.paths[at].frames[k] < t->paths.n_texts);
	return t->paths.texts[t->paths.paths[at].frames[k]];
}

static uint32_t length(const struct test *t, const struct sp_stack *stack)
{
	return t->paths.paths[t->paths.path_of_stack[stack - t->x->stacks]]
		.n_frames;
}

TEST_OF(struct test *t, texts, setup, teardown)
{
	const struct sp_stack *s;
	struct sp_stack *anonymous;

	s = fixture_stack(t->x, (size_t[]){H_IN_G, F, MAIN}, 3, 1, 100);
	anonymous = fixture_stack(t->x, (size_t[]){ANONYMOUS}, 1, 1, 100);
	anonymous->frames[0].module = 0;
	make(t);
	assert_int_equal(length(t, s), 4);
	assert_string_equal(text(t, s, 0), "0x40002f: h (h.c:40)");
	assert_string_equal(text(t, s, 1), "0x40002f: g (g.c:31)");
	assert_string_equal(text(t, s, 2), "0x40001f: app+0x20 (in /bin/app)");
	assert_string_equal(text(t, s, 3), "0x40000f: main (main.c:10)");
	assert_string_equal(text(t, anonymous, 0), "0x3f: 0x40");
	assert_string_equal(t->paths.texts[SP_CALLPATH_ROOT], "[root]");
}

/* Nothing comes before address 0. */
TEST_OF(struct test *t, address_zero, setup, teardown)
{
	struct sp_stack *s;

	fixture_symbol(t->x, 0, "zero", NULL, 0);
	s = fixture_stack(t->x, (size_t[]){0}, 1, 1, 100);
	s->frames[0].module = 0;
	make(t);
	assert_string_equal(text(t, s, 0), "0x0: zero");
}

TEST_OF(struct test *t, no_stack, setup, teardown)
{
	const struct sp_stack *s = fixture_stack(t->x, NULL, 0, 1, 100);

	make(t);
	assert_int_equal(length(t, s), 1);
	assert_string_equal(text(t, s, 0), SP_LABEL_NO_STACK);
}

/* Two stacks of the file with the same frames are one path: readers refuse a
 * path that comes twice.  A stack without samples has none. */
TEST_OF(struct test *t, distinct, setup, teardown)
{
	const struct sp_stack *a, *b, *c;

	a = fixture_stack(t->x, (size_t[]){F, MAIN}, 2, 1, 100);
	b = fixture_stack(t->x, (size_t[]){F, F, MAIN}, 3, 1, 100);
	c = fixture_stack(t->x, (size_t[]){F, MAIN}, 2, 1, 100);
	fixture_stack(t->x, (size_t[]){MAIN}, 1, 0, 100);
	make(t);
	assert_int_equal(t->paths.n_paths, 2);
	assert_int_equal(t->paths.path_of_stack[a - t->x->stacks],
			 t->paths.path_of_stack[c - t->x->stacks]);
	assert_int_not_equal(t->paths.path_of_stack[a - t->x->stacks],
			     t->paths.path_of_stack[b - t->x->stacks]);
	assert_int_equal(t->paths.path_of_stack[3], UINT32_MAX);
}

static int compare(const struct sp_callpath *x, const struct sp_callpath *y)
{
	uint32_t i = 0;

	while (i < x->n_frames && i < y->n_frames &&
	       x->frames[i] == y->frames[i])
		i++;
	if (i == x->n_frames || i == y->n_frames)
		return (x->n_frames > y->n_frames) -
		       (x->n_frames < y->n_frames);
	return x->frames[i] < y->frames[i] ? -1 : 1;
}

/* In strict order, whatever the file's: all stacks of up to four frames. */
TEST_BETWEEN(order, setup, teardown)
{
	static const size_t symbols[] = {MAIN, F, H_IN_G};
	struct test *t = *test_state;
	size_t n = 0;

	for (size_t code = 0; code < 81; code++) {
		size_t frames[4], at = 0;

		for (size_t rest = (code * 37) % 81; rest; rest /= 3)
			frames[at++] = symbols[rest % 3];
		if (at) {
			fixture_stack(t->x, frames, at, 1, 100);
			n++;
		}
	}
	make(t);
	assert_int_equal(n, 80);
	assert_int_equal(t->paths.n_paths, 80);
	for (uint32_t i = 1; i < t->paths.n_paths; i++)
		assert_true(compare(&t->paths.paths[i - 1],
				    &t->paths.paths[i]) < 0);
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0, f = 0; k < t->x->stacks[i].n_frames;
		     k++, f++) {
			const bool is_inline =
				t->x->stacks[i].frames[k].offset == H_IN_G;
			const char *got =
				text(t, &t->x->stacks[i], f += is_inline);

			assert_non_null(strstr(
				got, t->x->stacks[i].frames[k].offset == MAIN
					     ? ": main ("
				     : is_inline ? ": g ("
						 : ": app+0x20 ("));
		}
}

TEST_OF(struct test *t, empty, setup, teardown)
{
	make(t);
	assert_int_equal(t->paths.n_paths, 0);
}

TEST_MAIN(NULL, NULL)
