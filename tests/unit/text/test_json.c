/* SPDX-License-Identifier: MIT */
/* The writer by itself: what it puts between values, and how numbers look.
 * What text becomes is tested by test_view_json. */
#include <math.h>

#include "text/json.h"
#include "support/test.h"

struct output {
	struct sp_json json;
	char *text;
	size_t size;
};

static void begin(struct output *o)
{
	*o = (struct output){.json.is_first = true};
	o->json.out = open_memstream(&o->text, &o->size);
}

static void ends_as(struct output *o, const char *want)
{
	fclose(o->json.out);
	assert_string_equal(o->text, want);
	free(o->text);
}

TEST(groups)
{
	struct output o;

	begin(&o);
	sp_json_open(&o.json, NULL, '{');
	sp_json_u64(&o.json, "a", UINT64_MAX);
	sp_json_open(&o.json, "b", '[');
	sp_json_bool(&o.json, NULL, true);
	sp_json_null(&o.json, NULL);
	sp_json_close(&o.json, ']');
	sp_json_open(&o.json, "empty", '[');
	sp_json_close(&o.json, ']');
	sp_json_open_flat(&o.json, "c", '{');
	sp_json_u64(&o.json, "d", 1);
	sp_json_open(&o.json, "e", '[');
	sp_json_bool(&o.json, NULL, false);
	sp_json_close(&o.json, ']');
	sp_json_string(&o.json, "f", NULL);
	sp_json_close(&o.json, '}');
	sp_json_string(&o.json, "g", "x");
	sp_json_close(&o.json, '}');
	ends_as(&o, "{\n  \"a\": 18446744073709551615,\n  \"b\": [\n    true,\n"
		    "    null\n  ],\n  \"empty\": [],\n  \"c\": {\"d\": 1, "
		    "\"e\": [false], \"f\": null},\n  \"g\": \"x\"\n}");
}

static void is_written_as(double value, const char *want)
{
	struct output o;

	begin(&o);
	sp_json_double(&o.json, NULL, value);
	ends_as(&o, want);
}

TEST(doubles)
{
	is_written_as(0, "0.0");
	is_written_as(-0.0, "0.0");
	is_written_as(1, "1.0");
	is_written_as(0.1, "0.1");
	is_written_as(-2.5, "-2.5");
	is_written_as(1e300, "1e+300");
	is_written_as(1.0 / 3, "0.333333333333");
	is_written_as(123456789012345678.0, "1.23456789012e+17");
	is_written_as((double)NAN, "null");
	is_written_as((double)INFINITY, "null");
	is_written_as(-(double)INFINITY, "null");
}

TEST(times)
{
	struct output o;

	begin(&o);
	sp_json_open_flat(&o.json, NULL, '[');
	sp_json_time(&o.json, NULL, 0);
	sp_json_time(&o.json, NULL, UINT64_MAX - 1);
	sp_json_time(&o.json, NULL, UINT64_MAX);
	sp_json_close(&o.json, ']');
	ends_as(&o, "[0, 18446744073709551614, null]");
}

TEST_MAIN(NULL, NULL)
