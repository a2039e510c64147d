/* SPDX-License-Identifier: MIT */
#include "compare/check_period.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <jansson.h>

#define PERIOD_MAX ((json_int_t)1 << 40)

static bool has_schema(const json_t *json, const char *schema)
{
	const char *is = json_string_value(json_object_get(json, "schema"));

	return is && strcmp(is, schema) == 0;
}

/* 0: none that may be. */
static json_int_t period_of(const json_t *object, const char *key)
{
	const json_int_t n = json_integer_value(json_object_get(object, key));

	return n > 0 && n <= PERIOD_MAX ? n : 0;
}

int sp_check_period_read(const char *path, uint64_t *ret_bytes,
			 struct sp_error *err)
{
	json_error_t why;
	json_t *json = json_load_file(path, 0, &why);
	const json_t *limits = json_object_get(json, "limits"), *limit;
	json_int_t period = period_of(json, "period_bytes");
	size_t i;

	if (!json)
		return sp_error_set(err, -EINVAL, path, "%s", why.text);
	if (!has_schema(json, "sampleprof-check") &&
	    !has_schema(json, "sampleprof-baseline"))
		period = 0;
	json_array_foreach(limits, i, limit)
	{
		const json_int_t needed =
			period_of(limit, "period_needed_bytes");

		if (needed && needed < period)
			period = needed;
	}
	json_decref(json);
	if (!period)
		return sp_error_set(err, -EINVAL, path,
				    "is neither a baseline nor what check "
				    "--format json=FILE writes");
	*ret_bytes = (uint64_t)period;
	return 0;
}
