/* SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "support/test.h"

/* The vectors of tests/format/golden/statistics.json.  Each program
 * loads them in its group set-up and drops them at its end. */
static json_t *golden_root;

static inline int golden_load(void **state)
{
	json_error_t error;

	(void)state;
	golden_root = json_load_file(
		SP_TESTS_DIR "/format/golden/statistics.json", 0, &error);
	if (!golden_root)
		print_error("%s:%d: %s\n", error.source, error.line,
			    error.text);
	return golden_root ? 0 : -1;
}

static inline int golden_drop(void **state)
{
	(void)state;
	json_decref(golden_root);
	return 0;
}

/* A member that must be there; borrowed. */
static inline json_t *golden_get(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	if (!value)
		fail_msg("statistics.json: no \"%s\"", key);
	return value;
}

/* A group that must not be empty; borrowed. */
static inline json_t *golden_rows(const json_t *object, const char *key)
{
	json_t *rows = golden_get(object, key);

	assert_true(json_array_size(rows) > 0);
	return rows;
}

static inline double golden_number(const json_t *object, const char *key)
{
	const json_t *value = golden_get(object, key);

	assert_true(json_is_number(value));
	return json_number_value(value);
}
