/* SPDX-License-Identifier: MIT */
/*
 * A profile of which old samples were discarded: survivors of that time say
 * nothing about the allocations, but were alive, on call stacks that perhaps no
 * other sample has. Every format has their names.
 */

#include <jansson.h>

#include "support/export_fixture.h"
#include "support/test.h"
#include "support/text_checks.h"

#define WINDOW_NS 1000u

enum { MAIN = 1, YOUNG, OLD, GONE };

/* "old" is alive since before the window; "gone" was until within it. */
static int setup(void **state)
{
	static const size_t young[] = {YOUNG, MAIN};
	static const size_t old[] = {OLD, MAIN};
	static const size_t gone[] = {GONE, MAIN};
	struct fixture *x = fixture_new(1);

	x->profile.has_frees = true;
	x->profile.duration_ns = 10 * WINDOW_NS;
	x->profile.window_ns = WINDOW_NS;
	fixture_symbol(x, MAIN, "main", "main.c", 10);
	fixture_symbol(x, YOUNG, "young_one", "young.c", 1);
	fixture_symbol(x, OLD, "old_one", "old.c", 2);
	fixture_symbol(x, GONE, "gone_one", "gone.c", 3);
	x->next.born_ns = 2 * WINDOW_NS;
	fixture_stack(x, young, 2, 1, 100);
	x->next.born_ns = WINDOW_NS / 2;
	fixture_stack(x, old, 2, 1, 200);
	x->next.freed_ns = 3 * WINDOW_NS;
	fixture_stack(x, gone, 2, 1, 300);
	*state = x;
	return 0;
}

static char *text_of(void **state, const char *format)
{
	return export_text(*state, sp_export_find(format)->write, NULL, NULL);
}

TEST_BETWEEN(names, setup, fixture_teardown)
{
	static const char *const formats[] = {"dhat", "massif", "html",
					      "speedscope"};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		FREED char *text = text_of(test_state, formats[i]);

		assert_has(text, "young_one");
		assert_has(text, "old_one");
	}
}

/* The page says so. */
TEST_BETWEEN(page, setup, fixture_teardown)
{
	struct fixture *x = *test_state;
	char *text;

	text = text_of(test_state, "html");
	assert_has(text, "\"peak_is_least\": false,");
	free(text);
	x->profile.discarded_bytes = 12345;
	text = text_of(test_state, "html");
	assert_has(text, "\"discarded_bytes\": 12345,");
	assert_has(text, "\"peak_is_least\": true,");
	assert_has(text, "\"window_ns\": 1000,");
	free(text);
}

/* Of dhat, "gone" too: it was alive at the peak. */
TEST_BETWEEN(dhat, setup, fixture_teardown)
{
	FREED char *text = text_of(test_state, "dhat");

	assert_has(text, "gone_one");
}

/* Every frame of a stack is one of the table. */
TEST_BETWEEN(speedscope, setup, fixture_teardown)
{
	FREED char *text = text_of(test_state, "speedscope");
	json_t *json = json_loads(text, 0, NULL);
	const json_t *frames =
		json_object_get(json_object_get(json, "shared"), "frames");
	const json_t *profiles = json_object_get(json, "profiles");
	size_t n_seen = 0;

	assert_int_equal(json_array_size(profiles), 2);
	for (size_t i = 0; i < 2; i++) {
		const json_t *stacks =
			json_object_get(json_array_get(profiles, i), "samples");

		for (size_t k = 0; k < json_array_size(stacks); k++) {
			const json_t *stack = json_array_get(stacks, k);

			for (size_t f = 0; f < json_array_size(stack); f++) {
				const json_int_t frame = json_integer_value(
					json_array_get(stack, f));

				assert_in_range(frame, 0,
						json_array_size(frames) - 1);
				n_seen++;
			}
		}
	}
	assert_true(n_seen >= 6);
	json_decref(json);
}

TEST_MAIN(NULL, NULL)
