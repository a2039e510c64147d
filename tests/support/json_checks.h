/* SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdlib.h>

#include "stats/estimator.h"
#include "text/figures.h"
#include "support/test.h"

/* What stands at a place in a JSON document. */

/* The value at a path like "functions.0.name". */
static inline const json_t *at(const json_t *node, const char *path)
{
	char key[64];

	for (const char *p = path; *p; p += strlen(key), p += *p == '.') {
		snprintf(key, sizeof(key), "%.*s", (int)strcspn(p, "."), p);
		node = json_is_array(node)
			       ? json_array_get(node, strtoul(key, NULL, 10))
			       : json_object_get(node, key);
		if (!node)
			print_error("no %s\n", path);
		assert_non_null(node);
	}
	return node;
}

static inline json_int_t integer(const json_t *root, const char *path)
{
	assert_true(json_is_integer(at(root, path)));
	return json_integer_value(at(root, path));
}

static inline double real(const json_t *root, const char *path)
{
	assert_true(json_is_real(at(root, path)));
	return json_real_value(at(root, path));
}

static inline const char *string(const json_t *root, const char *path)
{
	assert_true(json_is_string(at(root, path)));
	return json_string_value(at(root, path));
}

static inline void assert_null_at(const json_t *root, const char *path)
{
	assert_true(json_is_null(at(root, path)));
}

/* All digits that are written of it. */
static inline double as_written(double value)
{
	return strtod(sp_figure_digits(value).text, NULL);
}

static inline void assert_interval(const json_t *root, const char *path,
				   struct sp_interval want)
{
	const json_t *got = at(root, path);

	const struct sp_figure_limits cells = sp_figure_limits(want);

	assert_true(real(got, "value") == atof(cells.value.text));
	assert_true(real(got, "lo") == atof(cells.lo.text));
	assert_true(real(got, "hi") == atof(cells.hi.text));
}
