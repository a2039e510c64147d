/* SPDX-License-Identifier: MIT */
/* A row of every kind of column as JSON and as CSV: quotes, formulas and
 * control characters in text, what is unknown, and numbers without digits.
 */
#include <math.h>
#include <stdlib.h>

#include "support/test.h"
#include "text/table.h"

struct row {
	const char *name;
	uint64_t n, maybe;
	double share;
	struct sp_interval bytes;
	bool is_so;
};

static const struct sp_table_column columns[] = {
	SP_TABLE_COLUMN(struct row, TEXT, "name", name),
	SP_TABLE_COLUMN(struct row, U64, "n", n),
	SP_TABLE_COLUMN(struct row, NONZERO, "maybe", maybe),
	SP_TABLE_COLUMN(struct row, DOUBLE, "share", share),
	SP_TABLE_COLUMN(struct row, INTERVAL, "bytes", bytes),
	SP_TABLE_COLUMN(struct row, BOOL, "is_so", is_so),
	{0},
};

static const struct row rows[] = {
	{"a \"b\", c", UINT64_MAX, 7, 0.25, {3, 2, 4.5}, true},
	{"=1+1\n", 0, 0, NAN, {1, 0, INFINITY}, false},
	{NULL, 5, 1, -0.0, {0, 0, 0}, false},
};

static char *written(size_t n, bool as_json)
{
	struct sp_table table;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	sp_table_begin(&table, out, columns, as_json);
	for (size_t i = 0; i < n; i++)
		sp_table_row(&table, &rows[i]);
	sp_table_end(&table);
	fclose(out);
	return text;
}

static void check_text(size_t n, bool as_json, const char *wanted)
{
	FREED char *text = written(n, as_json);

	assert_string_equal(text, wanted);
}

#define HEAD "name,n,maybe,share,bytes,bytes_lo,bytes_hi,is_so\n"

TEST(csv)
{
	check_text(0, false, HEAD);
	check_text(3, false,
		   HEAD "\"a \"\"b\"\", c\",18446744073709551615,7,0.25,3,2,"
			"4.5,1\n"
			"\"'=1+1\\x0a\",0,,,1,0,,0\n"
			"\"\",5,1,0,0,0,0,0\n");
}

TEST(json)
{
	check_text(0, true, "[]\n");
	check_text(
		2, true,
		"[\n"
		"  {\n"
		"    \"name\": \"a \\\"b\\\", c\",\n"
		"    \"n\": 18446744073709551615,\n"
		"    \"maybe\": 7,\n"
		"    \"share\": 0.25,\n"
		"    \"bytes\": {\"value\": 3.0, \"lo\": 2.0, \"hi\": 4.5},\n"
		"    \"is_so\": true\n"
		"  },\n"
		"  {\n"
		"    \"name\": \"=1+1\\u000a\",\n"
		"    \"n\": 0,\n"
		"    \"maybe\": null,\n"
		"    \"share\": null,\n"
		"    \"bytes\": {\"value\": 1.0, \"lo\": 0.0, \"hi\": null},\n"
		"    \"is_so\": false\n"
		"  }\n"
		"]\n");
}

TEST_MAIN(NULL, NULL)
