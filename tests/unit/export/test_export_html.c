/* SPDX-License-Identifier: MIT */
/*
 * The data of the page: whole and with a base, hostile names, refusals, paths,
 * profiles with groups.
 */
#include <errno.h>

#include <jansson.h>

#include "export/format.h"
#include "export/html_paths.h"
#include "support/json_checks.h"
#include "support/report_fixture.h"
#include "support/test.h"
#include "support/text_checks.h"

enum {
	MAIN,
	F,
	NEW,
	HOSTILE,
	F_AGAIN,
};

static int setup(void **state)
{
	struct fixture *x = fixture_new(1);
	const size_t plain[] = {F, MAIN}, again[] = {F_AGAIN, MAIN};
	const size_t new[] = {NEW, F, MAIN}, hostile[] = {HOSTILE};

	fixture_symbol(x, MAIN, "main", "main.c", 10);
	fixture_symbol(x, F, "f", NULL, 0);
	fixture_symbol(x, NEW, "operator new", NULL, 0);
	fixture_symbol(x, HOSTILE, "</script><!--\"\n\x1b[2J\xff", "\\\n", 3);
	fixture_symbol(x, F_AGAIN, "f", NULL, 0);
	fixture_stack(x, plain, 2, 3, 100);
	fixture_stack(x, again, 2, 2, 100);
	fixture_stack(x, new, 3, 1, 50);
	fixture_stack(x, hostile, 1, 1, 7);
	fixture_stack(x, NULL, 0, 1, 5);
	*state = x;
	return 0;
}

static char *page_of_both(struct fixture *x, const struct sp_aggregate *base,
			  int want)
{
	struct sp_aggregate *a = fixture_aggregate(x);
	struct sp_export_options options = {.base = base};
	struct sp_error err = {0};
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	assert_int_equal(sp_export_html_write(out, a, &options, &err), want);
	fclose(out);
	return text;
}

static char *page_of(struct fixture *x, int want)
{
	return page_of_both(x, NULL, want);
}

static json_t *data_of(const char *page)
{
	const char *from = strstr(page, "id=\"data\">");
	const char *to;
	json_t *json;

	assert_non_null(from);
	from += strlen("id=\"data\">");
	to = strstr(from, "</script>");
	assert_non_null(to);
	json = json_loadb(from, (size_t)(to - from), 0, NULL);
	assert_non_null(json);
	return json;
}

/* Two stacks read the same and are one path; kinds are counted. */
TEST_BETWEEN(data, setup, fixture_teardown)
{
	FREED char *page = page_of(*test_state, 0);
	json_t *json = data_of(page);

	assert_int_equal(json_integer_value(at(json, "n_paths")), 4);
	assert_int_equal(json_integer_value(at(json, "n_kinds")), 4);
	assert_int_equal(json_integer_value(at(json, "n_cells")), 4);
	assert_int_equal(json_integer_value(at(json, "folded_paths")), 0);
	assert_int_equal(json_array_size(at(json, "timeline")), 201);
	assert_int_equal(json_integer_value(at(json, "alloc_samples")), 8);
	assert_string_equal(string(json, "method"), "p3t");
	json_decref(json);
}

/* What it is compared with is there as it would be alone. */
TEST_BETWEEN(base, setup, fixture_teardown)
{
	struct sp_aggregate *base;
	char *page, *alone;
	json_t *json, *want;
	void *other;

	setup(&other);
	base = fixture_aggregate(other);
	page = page_of_both(*test_state, base, 0);
	alone = page_of(other, 0);
	fixture_free(other);
	json = data_of(page);
	want = data_of(alone);
	json_object_del(want, "generator");
	assert_true(json_equal(at(json, "base"), want));
	assert_null(json_object_get(want, "base"));
	assert_int_equal(json_integer_value(at(want, "files")), 1);
	json_decref(json);
	json_decref(want);
	free(page);
	free(alone);
}

/* No name leaves the text that it is part of, and all else is the build's. */
TEST_BETWEEN(hostile, setup, fixture_teardown)
{
	char *page = page_of(*test_state, 0), *at = page;
	size_t ends = 0;

	while ((at = strstr(at, "</script>"))) {
		at++;
		ends++;
	}
	assert_int_equal(ends, 2);
	assert_has_not(page, "<!--");
	assert_has_not(page, "\x1b");
	assert_non_null(strstr(page, "\\u003c/script\\u003e"));
	free(page);
}

TEST_OF(struct fixture *x, refusals, setup, fixture_teardown)
{
	x->profile.has_frees = true;
	x->question.has_view = true;
	x->question.view = SP_VIEW_LIVE;
	free(page_of(x, -EINVAL));
	x->question.view = SP_VIEW_ALLOC;
	x->question.method = SP_METHOD_P3;
	free(page_of(x, 0));
}

static uint32_t number(struct sp_html_paths *paths, const char *name,
		       const char *module)
{
	uint32_t n;

	assert_int_equal(sp_html_paths_function(paths, name, module, &n), 0);
	return n;
}

TEST_OF(struct fixture *x, paths, setup, fixture_teardown)
{
	struct sp_aggregate *a = fixture_aggregate(x);
	FREED_BY(sp_html_paths_done) struct sp_html_paths paths;
	const struct sp_html_path *path;

	assert_int_equal(
		sp_html_paths_init(&paths, a, &a->analysis->selection, NULL),
		0);
	assert_int_equal(paths.n_paths, 4);
	assert_int_equal(paths.of_stack[0], paths.of_stack[1]);
	/* main, f, operator new: flat for f */
	path = &paths.paths[paths.of_stack[2]];
	assert_int_equal(path->n_frames, 3);
	assert_int_equal(path->flat, 1);
	assert_int_equal(paths.frames[path->at],
			 2 * number(&paths, "main", "/bin/app"));
	assert_int_equal(paths.frames[path->at + 1],
			 2 * number(&paths, "f", "/bin/app"));
	assert_int_equal(paths.frames[path->at + 2] % 2, 1);
	path = &paths.paths[paths.of_stack[4]];
	assert_int_equal(path->n_frames, 1);
	assert_int_equal(paths.frames[path->at],
			 2 * number(&paths, SP_LABEL_NO_STACK, ""));
}

TEST_BETWEEN(fold, setup, fixture_teardown)
{
	struct sp_aggregate *a = fixture_aggregate(*test_state);
	FREED_BY(sp_html_paths_done) struct sp_html_paths paths;
	bool keep[4] = {false};
	uint32_t place[4], other;

	assert_int_equal(
		sp_html_paths_init(&paths, a, &a->analysis->selection, NULL),
		0);
	keep[paths.of_stack[0]] = true;
	assert_int_equal(sp_html_paths_fold(&paths, keep, place), 0);
	assert_int_equal(paths.n_paths, 2);
	other = place[paths.of_stack[2]];
	assert_int_not_equal(place[paths.of_stack[0]], other);
	assert_int_equal(place[paths.of_stack[3]], other);
	assert_int_equal(place[paths.of_stack[4]], other);
	assert_int_equal(paths.frames[paths.paths[other].at],
			 2 * number(&paths, SP_HTML_PATHS_OTHER, ""));
	assert_int_equal(paths.paths[other].n_frames, 1);
}

TEST_MAIN(NULL, NULL)
