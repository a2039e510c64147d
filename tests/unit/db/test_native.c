/* SPDX-License-Identifier: MIT */
/* Blocks of ClickHouse's format Native: what is written is read again, every
 * type and size; cut, too long, too wide and endless ones are refused, and take
 * no memory for what does not come. */
#include "db/native.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "support/http_of_bytes.h"
#include "support/memory_limit.h"
#include "support/native_frames.h"
#include "support/test.h"

static struct sp_error err;

/* ---- by hand ---- */

struct text {
	unsigned char bytes[1 << 16];
	size_t n;
};

static void add(struct text *t, const void *bytes, size_t n)
{
	assert_true(t->n + n <= sizeof(t->bytes));
	memcpy(t->bytes + t->n, bytes, n);
	t->n += n;
}

static void add_varint(struct text *t, uint64_t v)
{
	unsigned char c;

	for (; v >= 128; v >>= 7) {
		c = (unsigned char)(v | 128);
		add(t, &c, 1);
	}
	c = (unsigned char)v;
	add(t, &c, 1);
}

static void add_text(struct text *t, const char *text)
{
	add_varint(t, strlen(text));
	add(t, text, strlen(text));
}

static void begin(struct text *t, uint64_t columns, uint64_t rows)
{
	t->n = 0;
	add_varint(t, columns);
	add_varint(t, rows);
}

static void add_head(struct text *t, const char *type)
{
	add_text(t, "c");
	add_text(t, type);
}

/* ---- what they say ---- */

/* What the reader says of all of it: rows, or a negative errno. */
static int64_t rows_of(const void *bytes, size_t n)
{
	struct sp_http http = {bytes, n, 0};
	struct sp_native_block *block = NULL;
	int64_t rows = 0;
	int r;

	err.message[0] = '\0';
	while ((r = sp_native_next(&block, &http, "server", &err)) > 0)
		rows += (int64_t)sp_native_rows_of(block);
	sp_native_free(block);
	return r < 0 ? r : rows;
}

/* One column of one row of that type. */
static struct sp_native_block *one_of(const char *type, const void *value,
				      size_t n)
{
	static struct text t;
	struct sp_http http;
	struct sp_native_block *block = NULL;

	begin(&t, 1, 1);
	add_head(&t, type);
	add(&t, value, n);
	http = (struct sp_http){t.bytes, t.n, 0};
	assert_int_equal(sp_native_next(&block, &http, "server", &err), 1);
	assert_int_equal(sp_native_rows_of(block), 1);
	return block;
}

static void check_number(const char *type, const void *value, size_t n,
			 uint64_t want, double want_real)
{
	struct sp_native_block *b = one_of(type, value, n);

	assert_false(sp_native_is_null(b, 0, 0));
	assert_int_equal(sp_native_get(b, 0, 0), want);
	assert_true(sp_native_get_real(b, 0, 0) == want_real);
	assert_string_equal(sp_native_get_bytes(b, 0, 0, NULL), "");
	/* There is no other column. */
	assert_true(sp_native_is_null(b, 0, 1));
	assert_int_equal(sp_native_get(b, 0, 63), 0);
	sp_native_free(b);
}

TEST(types)
{
	const double half = 0.5;

	check_number("UInt8", "\xff", 1, 255, 255);
	check_number("UInt16", "\xfe\xff", 2, 65534, 65534);
	check_number("UInt32", "\xff\xff\xff\xff", 4, UINT32_MAX, UINT32_MAX);
	check_number("UInt64", "\xff\xff\xff\xff\xff\xff\xff\xff", 8,
		     UINT64_MAX, 0x1p64);
	check_number("Int8", "\xff", 1, UINT64_MAX, -1);
	check_number("Int16", "\x00\x80", 2, (uint64_t)INT64_C(-32768), -32768);
	check_number("Int32", "\x01\x00\x00\x00", 4, 1, 1);
	check_number("Int64", "\xff\xff\xff\xff\xff\xff\xff\xff", 8, UINT64_MAX,
		     -1);
	check_number("Float64", &half, 8, 0, 0.5);
	check_number("Nullable(UInt8)", "\x00\x07", 2, 7, 7);
}

TEST(nulls_and_texts)
{
	struct sp_native_block *b =
		one_of("Nullable(UInt64)", "\x01\x07\0\0\0\0\0\0\0", 9);
	size_t n;

	assert_true(sp_native_is_null(b, 0, 0));
	assert_int_equal(sp_native_get(b, 0, 0), 0);
	sp_native_free(b);
	b = one_of("String",
		   "\x03"
		   "a\0b",
		   4);
	assert_memory_equal(sp_native_get_bytes(b, 0, 0, &n), "a\0b", 4);
	assert_int_equal(n, 3);
	assert_int_equal(sp_native_get(b, 0, 0), 0);
	assert_true(sp_native_get_real(b, 0, 0) == 0);
	sp_native_free(b);
	b = one_of("Nullable(String)", "\x01\x01x", 3);
	assert_string_equal(sp_native_get_bytes(b, 0, 0, &n), "");
	assert_int_equal(n, 0);
	sp_native_free(b);
}

/* ---- what this side writes ---- */

static const struct sp_fleet_column columns[] = {
	{"a", SP_FLEET_U64, false},  {"b", SP_FLEET_U64, true},
	{"c", SP_FLEET_FLAG, false}, {"d", SP_FLEET_REAL, false},
	{"e", SP_FLEET_TEXT, true},  {"f", SP_FLEET_BYTES, false},
};
static const struct sp_fleet_schema table = {"t", columns, 6, 1};

/* Longer than a frame holds, and than the reader takes at once. */
#define LONG (3u << 20)
#define ROWS 2000u

static struct sp_fleet_value long_text(size_t i)
{
	static char text[LONG];

	memset(text, (int)('a' + i % 26), sizeof(text));
	return sp_fleet_bytes(text, i == 1000 ? LONG : i % 5000);
}

static void put_rows(struct sp_native_rows *rows)
{
	for (size_t i = 0; i < ROWS; i++) {
		const struct sp_fleet_value row[] = {
			sp_fleet_number(i << 52),
			sp_fleet_number_but(i % 3, 0),
			sp_fleet_number(i % 2),
			sp_fleet_real(sqrt((double)i)),
			i % 7 ? long_text(i) : sp_fleet_text(NULL),
			sp_fleet_bytes("a\0\xff", i % 4),
		};

		assert_int_equal(sp_native_put(rows, &table, row), 0);
	}
}

static void check_row(const struct sp_native_block *b, size_t i)
{
	const struct sp_fleet_value text = long_text(i);
	size_t n;
	const char *bytes = sp_native_get_bytes(b, i, 4, &n);

	assert_true(sp_native_get(b, i, 0) == (uint64_t)i << 52);
	assert_int_equal(sp_native_is_null(b, i, 1), i % 3 == 0);
	assert_int_equal(sp_native_get(b, i, 1), i % 3);
	assert_int_equal(sp_native_get(b, i, 2), i % 2);
	assert_true(sp_native_get_real(b, i, 3) == sqrt((double)i));
	assert_int_equal(sp_native_is_null(b, i, 4), i % 7 == 0);
	if (i % 7) {
		assert_int_equal(n, text.n);
		assert_memory_equal(bytes, text.bytes, n);
	}
	bytes = sp_native_get_bytes(b, i, 5, &n);
	assert_int_equal(n, i % 4);
	assert_memory_equal(bytes, "a\0\xff", n);
}

TEST(what_is_written)
{
	struct sp_native_rows rows = {.n = 0};
	struct sp_native_block *block = NULL;
	struct sp_native_mark mark;
	struct sp_http http;
	size_t n, packed;
	void *sent, *bytes;

	/* Twice: what was cleared is not sent again. */
	put_rows(&rows);
	sp_native_clear(&rows);
	put_rows(&rows);
	/* Nor what was taken back. */
	sp_native_mark(&rows, &mark);
	put_rows(&rows);
	sp_native_cut(&rows, &mark);
	sent = sp_native_block(&rows, &table, &packed);
	assert_non_null(sent);
	sp_native_done(&rows);
	bytes = native_unpack(sent, packed, &n);
	assert_true(n > LONG);
	http = (struct sp_http){bytes, n, 0};
	assert_int_equal(sp_native_next(&block, &http, "server", &err), 1);
	assert_int_equal(sp_native_rows_of(block), ROWS);
	for (size_t i = 0; i < ROWS; i++)
		check_row(block, i);
	assert_int_equal(sp_native_next(&block, &http, "server", &err), 0);
	sp_native_free(block);
	free(bytes);
	free(sent);
}

/* ---- what is hostile ---- */

/* Two blocks of two columns, of one and of three rows, with an empty one
 * between them. */
static void write_some(struct text *t)
{
	static const size_t n_rows[] = {1, 0, 3};

	t->n = 0;
	for (size_t i = 0; i < 3; i++) {
		add_varint(t, 2);
		add_varint(t, n_rows[i]);
		add_head(t, "Nullable(UInt16)");
		for (size_t k = 0; k < 3 * n_rows[i]; k++)
			add(t, "\0", 1);
		add_head(t, "String");
		for (size_t k = 0; k < n_rows[i]; k++)
			add_text(t, "hello");
	}
}

/* Wherever it ends but between blocks. */
TEST(cut)
{
	static struct text t;
	size_t whole = 0;

	write_some(&t);
	assert_int_equal(rows_of(t.bytes, t.n), 4);
	for (size_t n = 0; n < t.n; n++) {
		const int64_t rows = rows_of(t.bytes, n);

		whole += rows >= 0;
		if (rows < 0)
			assert_non_null(strstr(err.message, "makes no sense"));
		assert_true(rows == -EUCLEAN || rows == 0 || rows == 1);
	}
	/* Before all, behind the first, and behind the empty one. */
	assert_int_equal(whole, 3);
}

static void refuse(const struct text *t, const char *why)
{
	assert_int_equal(rows_of(t->bytes, t->n),
			 strstr(why, "gave up") ? -EIO : -EUCLEAN);
	if (!strstr(err.message, why))
		fail_msg("%s, not %s", err.message, why);
}

TEST(nonsense)
{
	static struct text t;
	const char *const types[] = {
		"",           "UInt128",   "UInt",
		"Nullable()", "Nullable(", "Nullable(Nullable(UInt8))",
		"uint8",      "UInt8 ",    "Array(UInt8)"};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		begin(&t, 1, 1);
		add_head(&t, types[i]);
		add(&t, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
		refuse(&t, "makes no sense");
	}
	/* Too many columns and rows, and a number that does not end. */
	begin(&t, 65, 0);
	refuse(&t, "makes no sense");
	begin(&t, 1, (1 << 20) + 1);
	refuse(&t, "makes no sense");
	t.n = 0;
	add(&t, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x01", 13);
	refuse(&t, "makes no sense");
	/* A name of 256 bytes. */
	begin(&t, 1, 1);
	add_varint(&t, 256);
	t.n += 256;
	add_text(&t, "UInt8");
	add(&t, "\0", 1);
	refuse(&t, "makes no sense");
	/* Columns that change from block to block. */
	write_some(&t);
	begin(&t, 1, 1);
	add_head(&t, "UInt8");
	add(&t, "\1", 1);
	add_varint(&t, 1);
	add_varint(&t, 1);
	add_head(&t, "UInt16");
	add(&t, "\1\1", 2);
	refuse(&t, "makes no sense");
	/* It stops to say why. */
	begin(&t, 1, 1);
	add_head(&t, "String");
	add_varint(&t, 1 << 30);
	add(&t, "DB::Exception: memory", 21);
	refuse(&t, "the server gave up: Exception: memory");
}

/* Blocks without rows, for ever. */
TEST(endless)
{
	static struct text t;

	t.n = 0;
	while (t.n + 10 < sizeof(t.bytes)) {
		add_varint(&t, 1);
		add_varint(&t, 0);
		add_head(&t, "UInt8");
	}
	refuse(&t, "makes no sense");
}

/* 64 columns of a million rows, and a text of 64 MB, which do not come: the
 * test has little memory. */
TEST(announced)
{
	static struct text t;

	begin(&t, 64, 1 << 20);
	add_head(&t, "UInt64");
	add(&t, "\0\0\0\0", 4);
	refuse(&t, "makes no sense");
	begin(&t, 1, 1);
	add_head(&t, "String");
	add_varint(&t, 64 << 20);
	add(&t, "abc", 3);
	refuse(&t, "makes no sense");
}

static int have_little(void **state)
{
	(void)state;
	memory_limit(48 << 20);
	return 0;
}

TEST_MAIN(have_little, NULL)
