/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/native.h"

/* A server sends less in one block; what claims more is nonsense. */
#define COLUMNS_MAX 64u
#define ROWS_MAX    ((uint64_t)1 << 20)
#define TEXT_MAX    ((uint64_t)64 << 20)
#define NAME_MAX_   256u
/* Blocks without rows come at the ends of an answer, not for ever. */
#define EMPTY_MAX 1000u
/* A text takes memory as it comes, not as it is announced. */
#define STEP_BYTES ((size_t)256 << 10)

enum kind { NUMBER, REAL, TEXT };

struct column {
	char name[NAME_MAX_], type[NAME_MAX_];
	enum kind kind;
	unsigned int width; /* of a number */
	bool is_signed, has_nulls;
	unsigned char *nulls;
	uint64_t *values; /* numbers, bits of reals, or where a text begins */
	size_t room;      /* rows of both */
	char *text;       /* each followed by a zero */
	size_t n_text, text_room;
};

struct sp_native_block {
	struct column columns[COLUMNS_MAX];
	size_t n_columns, n_rows;
	bool has_head; /* columns are known, and stay */
};

struct reader {
	struct sp_native_block *b;
	struct sp_http *http;
	const char *name;
	struct sp_error *err;
};

static int fail_nonsense(struct reader *r)
{
	const char *said = sp_http_rest(r->http);
	const char *exception = strstr(said, "Exception");

	/* It may break off its rows to tell what went wrong. */
	if (exception)
		return sp_error_set(r->err, -EIO, r->name,
				    "the server gave up: %.170s", exception);
	return sp_error_set(r->err, -EUCLEAN, r->name,
			    "the answer makes no sense: is that the HTTP port "
			    "of a ClickHouse server?");
}

static int fail_memory(struct reader *r)
{
	return sp_error_memory(r->err, r->name);
}

/* 1; 0: the end, where it may be; negative errno. */
static int read_varint(struct reader *r, uint64_t *ret, bool may_end)
{
	unsigned char c;
	int code;

	*ret = 0;
	for (unsigned int shift = 0; shift < 63; shift += 7) {
		code = sp_http_read(r->http, &c, 1, r->err);
		if (code <= 0)
			return code || (may_end && !shift) ? code
							   : fail_nonsense(r);
		*ret |= (uint64_t)(c & 127) << shift;
		if (c < 128)
			return 1;
	}
	return fail_nonsense(r);
}

static int read_bytes(struct reader *r, void *to, size_t n)
{
	const int code = n ? sp_http_read(r->http, to, n, r->err) : 1;

	return code == 0 || code == -EPIPE ? fail_nonsense(r) : code;
}

static int read_name(struct reader *r, char to[NAME_MAX_])
{
	uint64_t n;
	int code = read_varint(r, &n, false);

	if (code > 0 && n >= NAME_MAX_)
		code = fail_nonsense(r);
	if (code > 0)
		code = read_bytes(r, to, (size_t)n);
	if (code > 0)
		to[n] = '\0';
	return code;
}

/* ---- columns ---- */

static bool parse_type(struct column *c)
{
	static const struct {
		const char *name;
		enum kind kind;
		unsigned int width;
		bool is_signed;
	} types[] = {
		{"UInt8", NUMBER, 1, false},  {"UInt16", NUMBER, 2, false},
		{"UInt32", NUMBER, 4, false}, {"UInt64", NUMBER, 8, false},
		{"Int8", NUMBER, 1, true},    {"Int16", NUMBER, 2, true},
		{"Int32", NUMBER, 4, true},   {"Int64", NUMBER, 8, true},
		{"Float64", REAL, 8, false},  {"String", TEXT, 0, false},
	};
	static const char nullable[] = "Nullable(";
	const char *type = c->type;
	size_t n = strlen(type);

	c->has_nulls = strncmp(type, nullable, sizeof(nullable) - 1) == 0 &&
		       type[n - 1] == ')';
	if (c->has_nulls) {
		type += sizeof(nullable) - 1;
		n -= sizeof(nullable);
	}
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strlen(types[i].name) == n &&
		    memcmp(types[i].name, type, n) == 0) {
			c->kind = types[i].kind;
			c->width = types[i].width;
			c->is_signed = types[i].is_signed;
			return true;
		}
	return false;
}

static int read_head(struct reader *r, struct column *c)
{
	char name[NAME_MAX_], type[NAME_MAX_];
	int code = read_name(r, name);

	if (code > 0)
		code = read_name(r, type);
	if (code <= 0)
		return code;
	if (!r->b->has_head) {
		strcpy(c->name, name);
		strcpy(c->type, type);
		return parse_type(c) ? 1 : fail_nonsense(r);
	}
	return strcmp(c->name, name) == 0 && strcmp(c->type, type) == 0
		       ? 1
		       : fail_nonsense(r);
}

static int reserve_text(struct reader *r, struct column *c, size_t n)
{
	char *more;

	if (c->text_room - c->n_text >= n)
		return 1;
	more = realloc(c->text, 2 * (c->n_text + n));
	if (!more)
		return fail_memory(r);
	c->text = more;
	c->text_room = 2 * (c->n_text + n);
	return 1;
}

/* One of n bytes, with a zero behind. */
static int read_text(struct reader *r, struct column *c, size_t n)
{
	int code = 1;

	while (n && code > 0) {
		const size_t some = n < STEP_BYTES ? n : STEP_BYTES;

		code = reserve_text(r, c, some);
		if (code > 0)
			code = read_bytes(r, c->text + c->n_text, some);
		c->n_text += some;
		n -= some;
	}
	if (code > 0)
		code = reserve_text(r, c, 1);
	if (code > 0)
		c->text[c->n_text++] = '\0';
	return code;
}

static int read_texts(struct reader *r, struct column *c)
{
	int code = 1;

	c->n_text = 0;
	for (size_t i = 0; i < r->b->n_rows && code > 0; i++) {
		uint64_t n;

		c->values[i] = c->n_text;
		code = read_varint(r, &n, false);
		if (code > 0 && (n > TEXT_MAX || c->n_text > TEXT_MAX * 4))
			code = fail_nonsense(r);
		if (code > 0)
			code = read_text(r, c, (size_t)n);
	}
	return code;
}

/* Numbers come in their own width, at the end of the room for them. */
static int read_numbers(struct reader *r, struct column *c)
{
	const size_t n = r->b->n_rows, w = c->width;
	unsigned char *from;
	int code;

	if (!n)
		return 1;
	from = (unsigned char *)c->values + n * (8 - w);
	code = read_bytes(r, from, n * w);
	for (size_t i = 0; i < n && code > 0 && w < 8; i++, from += w) {
		uint64_t v = 0;

		memcpy(&v, from, w);
		if (c->is_signed && v >> (8 * w - 1))
			v |= UINT64_MAX << 8 * w;
		c->values[i] = v;
	}
	return code;
}

static int reserve_rows(struct reader *r, struct column *c, size_t n)
{
	void *values, *nulls;

	if (n <= c->room)
		return 1;
	values = realloc(c->values, n * sizeof(*c->values));
	if (!values)
		return fail_memory(r);
	c->values = values;
	nulls = realloc(c->nulls, n);
	if (!nulls)
		return fail_memory(r);
	c->nulls = nulls;
	c->room = n;
	return 1;
}

/* Its memory is there when its turn comes: a number of columns costs nothing
 * that does not come. */
static int read_column(struct reader *r, struct column *c)
{
	int code = read_head(r, c);

	if (code > 0)
		code = reserve_rows(r, c, r->b->n_rows);
	if (code > 0 && c->has_nulls)
		code = read_bytes(r, c->nulls, r->b->n_rows);
	if (code > 0)
		code = c->kind == TEXT ? read_texts(r, c) : read_numbers(r, c);
	return code;
}

/* ---- blocks ---- */

static int read_block(struct reader *r)
{
	uint64_t n_columns, n_rows = 0;
	int code = read_varint(r, &n_columns, true);

	if (code > 0)
		code = read_varint(r, &n_rows, false);
	if (code <= 0)
		return code;
	if (n_columns > COLUMNS_MAX || n_rows > ROWS_MAX ||
	    (r->b->has_head && n_columns != r->b->n_columns))
		return fail_nonsense(r);
	r->b->n_columns = (size_t)n_columns;
	r->b->n_rows = (size_t)n_rows;
	for (size_t i = 0; i < n_columns && code > 0; i++)
		code = read_column(r, &r->b->columns[i]);
	r->b->has_head = true;
	return code;
}

int sp_native_next(struct sp_native_block **block, struct sp_http *http,
		   const char *name, struct sp_error *err)
{
	struct reader r = {.http = http, .name = name, .err = err};
	unsigned int n_empty = 0;
	int code;

	if (!*block)
		*block = calloc(1, sizeof(**block));
	r.b = *block;
	if (!r.b)
		return fail_memory(&r);
	do
		code = n_empty++ < EMPTY_MAX ? read_block(&r)
					     : fail_nonsense(&r);
	while (code > 0 && !r.b->n_rows);
	return code;
}

void sp_native_free(struct sp_native_block *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < COLUMNS_MAX; i++) {
		free(b->columns[i].nulls);
		free(b->columns[i].values);
		free(b->columns[i].text);
	}
	free(b);
}

/* ---- a row ---- */

size_t sp_native_rows_of(const struct sp_native_block *b)
{
	return b->n_rows;
}

/* The column, unless it is not there or null. */
static const struct column *value_at(const struct sp_native_block *b,
				     size_t row, int i)
{
	const struct column *c;

	if ((size_t)i >= b->n_columns)
		return NULL;
	c = &b->columns[i];
	return c->has_nulls && c->nulls[row] ? NULL : c;
}

bool sp_native_is_null(const struct sp_native_block *b, size_t row, int i)
{
	return !value_at(b, row, i);
}

uint64_t sp_native_get(const struct sp_native_block *b, size_t row, int i)
{
	const struct column *c = value_at(b, row, i);

	return c && c->kind == NUMBER ? c->values[row] : 0;
}

double sp_native_get_real(const struct sp_native_block *b, size_t row, int i)
{
	const struct column *c = value_at(b, row, i);
	double v;

	if (!c || c->kind == TEXT)
		return 0;
	if (c->kind == NUMBER)
		return c->is_signed ? (double)(int64_t)c->values[row]
				    : (double)c->values[row];
	memcpy(&v, &c->values[row], sizeof(v));
	return v;
}

const char *sp_native_get_bytes(const struct sp_native_block *b, size_t row,
				int i, size_t *ret_n)
{
	const struct column *c = value_at(b, row, i);
	size_t end;

	if (ret_n)
		*ret_n = 0;
	if (!c || c->kind != TEXT)
		return "";
	end = row + 1 < b->n_rows ? c->values[row + 1] : c->n_text;
	if (ret_n)
		*ret_n = end - 1 - c->values[row];
	return c->text + c->values[row];
}
