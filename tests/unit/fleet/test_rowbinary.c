/* SPDX-License-Identifier: MIT */
/* Rows of ClickHouse's format RowBinary: what is written is read again, every
 * type and size; cut, endless and too long ones are refused, and take no memory
 * for what does not come; the columns of every kind of question. */
#include "fleet/rowbinary.h"

#include <errno.h>
#include <math.h>

#include "fleet/sql.h"
#include "support/http_of_bytes.h"
#include "support/memory_limit.h"
#include "support/test.h"

static const struct sp_fleet_column columns[] = {
	{"a", SP_FLEET_U64, false},  {"b", SP_FLEET_U64, true},
	{"c", SP_FLEET_FLAG, false}, {"d", SP_FLEET_REAL, false},
	{"e", SP_FLEET_TEXT, true},  {"f", SP_FLEET_BYTES, false},
};
static const struct sp_fleet_schema table = {"t", columns, 6, 1};
static struct sp_error err;

static struct sp_rowbinary_row row_of(const struct sp_fleet_schema *schema)
{
	struct sp_rowbinary_row row = {.n_columns = schema->n_columns};

	memcpy(row.columns, schema->columns,
	       schema->n_columns * sizeof(*schema->columns));
	return row;
}

/* ---- what this side writes ---- */

/* Longer than the reader takes at once. */
#define LONG (3u << 20)
#define ROWS 2000u

static struct sp_fleet_value long_text(size_t i)
{
	static char text[LONG];

	memset(text, (int)('a' + i % 26), sizeof(text));
	return sp_fleet_bytes(text, i == 1000 ? LONG : i % 5000);
}

static void put_rows(struct sp_rowbinary *rows)
{
	for (size_t i = 0; i < ROWS; i++) {
		const struct sp_fleet_value row[] = {
			sp_fleet_number(i << 52),
			sp_fleet_number_but(i % 3, 0),
			sp_fleet_number(i % 16),
			sp_fleet_real(sqrt((double)i)),
			i % 7 ? long_text(i) : sp_fleet_text(NULL),
			sp_fleet_bytes("a\0\xff", i % 4),
		};

		assert_int_equal(sp_rowbinary_put(rows, &table, row), 0);
	}
}

static void check_row(const struct sp_rowbinary_row *row, size_t i)
{
	const struct sp_fleet_value text = long_text(i);
	const struct sp_rowbinary_value *v = row->values;
	double real;

	assert_true(v[0].bits == (uint64_t)i << 52);
	assert_int_equal(v[1].is_null, i % 3 == 0);
	assert_int_equal(v[1].bits, i % 3);
	assert_int_equal(v[2].bits, i % 16);
	memcpy(&real, &v[3].bits, sizeof(real));
	assert_true(real == sqrt((double)i));
	assert_int_equal(v[4].is_null, i % 7 == 0);
	if (i % 7) {
		assert_int_equal(v[4].bits, text.n);
		assert_memory_equal(row->text + v[4].at, text.bytes, text.n);
		assert_int_equal(row->text[v[4].at + text.n], 0);
	}
	assert_int_equal(v[5].bits, i % 4);
	assert_memory_equal(row->text + v[5].at, "a\0\xff", i % 4);
	assert_int_equal(row->text[v[5].at + i % 4], 0);
}

TEST(what_is_written)
{
	struct sp_rowbinary rows = {.n = 0};
	struct sp_rowbinary_row row = row_of(&table);
	struct sp_http http;

	put_rows(&rows);
	assert_int_equal(rows.n, ROWS);
	http = (struct sp_http){rows.bytes, rows.n_bytes, 0};
	for (size_t i = 0; i < ROWS; i++) {
		assert_int_equal(sp_rowbinary_next(&row, &http, "s", &err), 1);
		check_row(&row, i);
	}
	assert_int_equal(sp_rowbinary_next(&row, &http, "s", &err), 0);
	free(row.text);
	free(rows.bytes);
}

/* ---- what is hostile ---- */

/* What the reader says of all of it: rows, or a negative errno. */
static int rows_of(const void *bytes, size_t n)
{
	struct sp_http http = {bytes, n, 0};
	struct sp_rowbinary_row row = row_of(&table);
	int rows = 0, r;

	err.message[0] = '\0';
	while ((r = sp_rowbinary_next(&row, &http, "server", &err)) > 0)
		rows++;
	free(row.text);
	return r < 0 ? r : rows;
}

static void refuse(const void *bytes, size_t n)
{
	assert_int_equal(rows_of(bytes, n), -EUCLEAN);
	assert_non_null(strstr(err.message, "makes no sense"));
}

#define NUMBER "\1\2\3\4\5\6\7\x88"
/* A row without nulls, up to its text. */
#define BEFORE NUMBER "\0" NUMBER "\1" NUMBER "\0"

/* Wherever it ends but between rows. */
TEST(cut)
{
	static const char rows[] =
		BEFORE "\5hello\0" NUMBER "\1\0" NUMBER "\1\3\0\1\2";
	const size_t second = sizeof(BEFORE) - 1 + 7;

	assert_int_equal(rows_of(rows, sizeof(rows) - 1), 2);
	for (size_t n = 0; n < sizeof(rows) - 1; n++)
		if (n == 0 || n == second)
			assert_int_equal(rows_of(rows, n), n == second);
		else
			refuse(rows, n);
}

/* A null that is neither 0 nor 1, flags that are none, lengths that do not
 * end, and a text of 64 MB, one byte more, which does not come: the test has
 * little memory. */
TEST(nonsense)
{
	static const char null[] = NUMBER "\2" NUMBER "\1" NUMBER "\0\0\0";
	static const char flag[] = NUMBER "\0" NUMBER "\20" NUMBER "\0\0\0";
	static const char endless[] = BEFORE "\x80\x80\x80\x80\x80\x80\1";
	static const char announced[] = BEFORE "\x80\x80\x80\x20 abc";
	static const char large[] = BEFORE "\x81\x80\x80\x20 abc";

	refuse(null, sizeof(null) - 1);
	refuse(flag, sizeof(flag) - 1);
	refuse(endless, sizeof(endless) - 1);
	refuse(announced, sizeof(announced) - 1);
	refuse(large, sizeof(large) - 1);
}

/* ---- questions ---- */

/* u: a number, f: a flag, r: a real, t: text or bytes; large: may be null. */
static void check_columns(const char *sql, const char *want)
{
	struct sp_fleet_column got[SP_FLEET_COLUMNS_MAX];
	char letters[SP_FLEET_COLUMNS_MAX + 1];
	const size_t n = sp_rowbinary_columns(sql, got);

	for (size_t i = 0; i < n; i++)
		letters[i] =
			(got[i].may_be_null ? "UFRTT" : "ufrtt")[got[i].type];
	letters[n] = '\0';
	assert_string_equal(letters, want);
}

TEST(questions)
{
	static const char samples[] = "uuuuUuuuUUUuf";
	static const char processes[] =
		"uuttttTTuuuuurUuuuffuuuuuuuuuuuuuuuuuTuf";

	check_columns("SELECT name FROM system.tables WHERE x = ?", "t");
	check_columns(sp_fleet_find_file, "uuuuu");
	check_columns(sp_fleet_find_modules, "uttuuu");
	check_columns(sp_fleet_find_stacks, "uut");
	check_columns(sp_fleet_find_names, "ufu");
	check_columns(sp_fleet_count_processes, "u");
	check_columns(sp_fleet_choose_running, "uu");
	check_columns(sp_fleet_get_facts, "tt");
	check_columns(sp_fleet_get_each_facts, "utt");
	check_columns(sp_fleet_get_lacks, "utt");
	check_columns(sp_fleet_get_totals, "uuuu");
	check_columns(sp_fleet_get_losses, "uuu");
	check_columns(sp_fleet_get_threads, "uuuutffuu");
	check_columns(sp_fleet_get_samples, samples);
	check_columns(sp_fleet_get_stacks, "uut");
	check_columns(sp_fleet_get_hours, "uuufuu");
	check_columns(sp_fleet_get_hour_stacks, "uut");
	check_columns(sp_fleet_get_rss, "uuuu");
	check_columns(sp_fleet_get_stretches, "uuuuUtuuuuuuu");
	check_columns(sp_fleet_get_snapshots, "uutuuuu");
	check_columns(sp_fleet_get_modules, "uttuuuf");
	check_columns(sp_fleet_get_names, "uutTuffu");
	check_columns(sp_fleet_get_processes, processes);
}

static int have_little(void **state)
{
	(void)state;
	memory_limit(48 << 20);
	return 0;
}

TEST_MAIN(have_little, NULL)
