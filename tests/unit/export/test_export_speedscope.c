/* SPDX-License-Identifier: MIT */
/* speedscope's JSON: stacks, views, hostile names. */

#include <jansson.h>

#include "support/export_fixture.h"
#include "support/json_checks.h"
#include "support/test.h"
#include "support/text_checks.h"

#define OTHER_FILE (NAMES_MAIN_AGAIN + 1)

static int setup(void **state)
{
	struct fixture *x =
		export_fixture_of_names("</script>\"\n\x1b[2J\xff", "\\\n");

	fixture_symbol(x, OTHER_FILE, "main", "other.c", 20);
	*state = x;
	return 0;
}

static json_t *export(struct fixture *x)
{
	size_t n;
	char *text = export_text(x, sp_export_speedscope_write, NULL, &n);
	json_t *json;

	assert_has_not(text, "</script>");
	assert_has_not(text, "\x1b");
	json = json_loadb(text, n, 0, NULL);
	assert_non_null(json);
	free(text);
	return json;
}

/* The names of a stack, as "outermost;...;innermost". */
static void assert_stack(const json_t *json, size_t profile, size_t i,
			 const char *want, json_int_t weight)
{
	const json_t *p = json_array_get(at(json, "profiles"), profile);
	const json_t *stack = json_array_get(at(p, "samples"), i);
	char text[256] = "";

	for (size_t k = 0; k < json_array_size(stack); k++) {
		const size_t frame =
			(size_t)json_integer_value(json_array_get(stack, k));
		const json_t *f =
			json_array_get(at(json, "shared.frames"), frame);

		if (k)
			strcat(text, ";");
		strcat(text, string(f, "name"));
	}
	assert_string_equal(text, want);
	assert_int_equal(
		json_integer_value(json_array_get(at(p, "weights"), i)),
		weight);
}

TEST_OF(struct fixture *x, stacks, setup, fixture_teardown)
{
	json_t *json;

	fixture_stack(x, (size_t[]){NAMES_F, NAMES_MAIN}, 2, 3, 100);
	fixture_stack(x, (size_t[]){NAMES_INLINED, NAMES_F, NAMES_MAIN_AGAIN},
		      3, 2, 1000);
	fixture_stack(x, NULL, 0, 1, 9);
	fixture_stack(x, (size_t[]){NAMES_F, OTHER_FILE}, 2, 1, 5);
	json = export(x);
	assert_int_equal(json_array_size(at(json, "profiles")), 1);
	assert_string_equal(string(json, "profiles.0.name"), "alloc");
	assert_string_equal(string(json, "profiles.0.type"), "sampled");
	assert_string_equal(string(json, "profiles.0.unit"), "bytes");
	assert_int_equal(integer(json, "profiles.0.endValue"), 2314);
	assert_stack(json, 0, 0, "main;f", 300);
	assert_stack(json, 0, 1, "main;f;h;g", 2000);
	assert_stack(json, 0, 2, "[no stack]", 9);
	assert_stack(json, 0, 3, "main;f", 5);
	/* one frame for each function, whatever its line */
	assert_int_equal(json_array_size(at(json, "shared.frames")), 6);
	json_decref(json);
}

TEST_OF(struct fixture *x, views, setup, fixture_teardown)
{
	json_t *json;

	x->profile.has_frees = true;
	fixture_stack(x, (size_t[]){NAMES_F}, 1, 1, 50);
	x->next.freed_ns = 100;
	fixture_stack(x, (size_t[]){NAMES_MAIN}, 1, 1, 70);
	json = export(x);
	assert_string_equal(string(json, "profiles.1.name"), "live");
	assert_int_equal(integer(json, "activeProfileIndex"), 0);
	assert_int_equal(json_array_size(at(json, "profiles.0.samples")), 2);
	assert_int_equal(json_array_size(at(json, "profiles.1.samples")), 1);
	assert_stack(json, 1, 0, "f", 50);
	json_decref(json);
	x->question.has_view = true;
	x->question.view = SP_VIEW_PEAK;
	json = export(x);
	assert_string_equal(string(json, "profiles.1.name"), "peak");
	assert_int_equal(integer(json, "activeProfileIndex"), 1);
	json_decref(json);
}

TEST_OF(struct fixture *x, hostile, setup, fixture_teardown)
{
	json_t *json;

	x->profile.command = "\xc3\x28 </script>";
	fixture_stack(x, (size_t[]){NAMES_HOSTILE}, 1, 1, 9);
	json = export(x);
	assert_string_equal(string(json, "shared.frames.1.name"),
			    "</script>\"\n\x1b[2J\xef\xbf\xbd");
	assert_string_equal(string(json, "shared.frames.1.file"), "\\\n");
	assert_string_equal(string(json, "name"), "\xef\xbf\xbd( </script>");
	json_decref(json);
}

TEST_MAIN(NULL, NULL)
