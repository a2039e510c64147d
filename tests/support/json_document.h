/* SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "support/json_checks.h"
#include "support/report_fixture.h"
#include "support/test.h"
#include "view/view.h"

/* A small profile, exported and read back. */
#define R 4096

enum {
	MAIN,
	F,
	H_IN_G,
};

struct document {
	struct fixture *x;
	char *text;
	size_t size;
	json_t *root;
	struct sp_estimation how; /* of rows in what was exported last */
};

static inline int setup(void **state)
{
	struct document *d = calloc(1, sizeof(*d));
	struct fixture *x = fixture_new(R);

	fixture_symbol(x, MAIN, "main", "src/main.c", 10);
	fixture_symbol(x, F, "app+0x1f", NULL, 0);
	fixture_symbol(x, H_IN_G, "h", "h.c", 40);
	fixture_symbol(x, H_IN_G, "g", "g.c", 31);
	d->x = x;
	*state = d;
	return 0;
}

static inline int teardown(void **state)
{
	struct document *d = *state;

	json_decref(d->root);
	free(d->text);
	fixture_free(d->x);
	free(d);
	return 0;
}

/* Export and read back, in the place of what was exported before. */
static inline json_t *export(struct document *d)
{
	struct sp_aggregate *a = fixture_aggregate(d->x);
	json_error_t error;
	FILE *out;

	json_decref(d->root);
	free(d->text);
	out = open_memstream(&d->text, &d->size);
	assert_int_equal(sp_view_json_write(out, a, 2, NULL), 0);
	fclose(out);
	d->how = a->how;
	assert_int_equal(strlen(d->text), d->size);
	d->root = json_loads(d->text, JSON_REJECT_DUPLICATES, &error);
	if (!d->root)
		print_error("line %d: %s\n%s\n", error.line, error.text,
			    d->text);
	assert_non_null(d->root);
	return d->root;
}

static inline void assert_bytes(const struct document *d, const json_t *root,
				const char *path,
				const struct sp_class_sums *sums)
{
	assert_interval(root, path, sp_estimate_bytes(&d->how, sums));
}

static inline void assert_objects(const struct document *d, const json_t *root,
				  const char *path,
				  const struct sp_class_sums *sums)
{
	assert_interval(root, path, sp_estimate_objects(&d->how, sums));
}
