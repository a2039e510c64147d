/* SPDX-License-Identifier: MIT */
#include "fleet/rowbinary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What claims more is nonsense. */
#define TEXT_MAX ((uint64_t)64 << 20)
/* A text takes memory as it comes, not as it is announced. */
#define STEP_BYTES ((size_t)256 << 10)
/* Of a value, besides those of a text. */
#define VALUE_MAX 11u

static bool is_text(const struct sp_fleet_column *c)
{
	return c->type == SP_FLEET_TEXT || c->type == SP_FLEET_BYTES;
}

/* ---- writing ---- */

/* All this is for little-endian machines, as the agent is. */
static unsigned char *put_value(unsigned char *to,
				const struct sp_fleet_column *column,
				const struct sp_fleet_value *v)
{
	const uint64_t number = v->kind == SP_FLEET_IS_NUMBER ? v->number : 0;
	const double real = v->kind == SP_FLEET_IS_REAL ? v->real : 0;
	size_t n = v->kind == SP_FLEET_IS_BYTES ? v->n : 0;

	if (column->may_be_null) {
		*to++ = v->kind == SP_FLEET_IS_NULL;
		if (v->kind == SP_FLEET_IS_NULL)
			return to;
	}
	if (column->type == SP_FLEET_FLAG) {
		/* Readers refuse more than SP_FLEET_FLAG_MAX. */
		*to++ = (unsigned char)number;
		return to;
	}
	if (!is_text(column)) {
		memcpy(to,
		       column->type == SP_FLEET_REAL ? (const void *)&real
						     : &number,
		       8);
		return to + 8;
	}
	for (; n >= 128; n >>= 7)
		*to++ = (unsigned char)(n | 128);
	*to++ = (unsigned char)n;
	if (v->kind == SP_FLEET_IS_BYTES && v->n) {
		memcpy(to, v->bytes, v->n);
		to += v->n;
	}
	return to;
}

int sp_rowbinary_put(struct sp_rowbinary *rows,
		     const struct sp_fleet_schema *table,
		     const struct sp_fleet_value *row)
{
	size_t needed = rows->n_bytes + table->n_columns * VALUE_MAX;
	unsigned char *to;

	for (size_t i = 0; i < table->n_columns; i++)
		needed += row[i].kind == SP_FLEET_IS_BYTES ? row[i].n : 0;
	if (needed > rows->room) {
		to = realloc(rows->bytes, 2 * needed);
		if (!to)
			return -ENOMEM;
		rows->bytes = to;
		rows->room = 2 * needed;
	}
	to = rows->bytes + rows->n_bytes;
	for (size_t i = 0; i < table->n_columns; i++)
		to = put_value(to, &table->columns[i], &row[i]);
	rows->n_bytes = (size_t)(to - rows->bytes);
	rows->n++;
	return 0;
}

/* ---- the columns of an answer ---- */

/* A word of the list: a column, or "count(*)" or "sum(x)". */
static struct sp_fleet_column find_column(const struct sp_fleet_schema *table,
					  const char *word)
{
	const size_t n = strcspn(word, "(, ");

	for (size_t i = 0; table && i < table->n_columns; i++)
		if (strlen(table->columns[i].name) == n && word[n] != '(' &&
		    strncmp(table->columns[i].name, word, n) == 0)
			return table->columns[i];
	return (struct sp_fleet_column){
		.name = "",
		.type = word[n] == '(' ? SP_FLEET_U64 : SP_FLEET_TEXT,
	};
}

size_t sp_rowbinary_columns(const char *sql,
			    struct sp_fleet_column ret[SP_FLEET_COLUMNS_MAX])
{
	static const char unique[] = "{unique} ";
	const struct sp_fleet_schema *table = sp_fleet_table_asked(sql);
	const char *word = sql + strlen("SELECT ");
	const char *end = strstr(sql, " FROM ");
	size_t n = 0;

	if (strncmp(word, unique, sizeof(unique) - 1) == 0)
		word += sizeof(unique) - 1;
	if (*word == '*' && table) {
		memcpy(ret, table->columns,
		       table->n_columns * sizeof(*table->columns));
		return table->n_columns;
	}
	while (word && word < end && n < SP_FLEET_COLUMNS_MAX) {
		ret[n++] = find_column(table, word);
		word = strchr(word, ',');
		word = word ? word + 2 : NULL;
	}
	return n;
}

/* ---- reading ---- */

struct reader {
	struct sp_rowbinary_row *row;
	struct sp_http *http;
	const char *name;
	struct sp_error *err;
	bool has_begun; /* a row, which is not to end now */
};

static int fail_nonsense(struct reader *r)
{
	return sp_error_set(r->err, -EUCLEAN, r->name,
			    "the answer makes no sense: is that the HTTP port "
			    "of a ClickHouse server?");
}

/* 1; 0: the end, where it may be; negative errno. */
static int read_bytes(struct reader *r, void *to, size_t n)
{
	const int code = sp_http_read(r->http, to, n, r->err);

	if (code == -EPIPE || (!code && r->has_begun))
		return fail_nonsense(r);
	r->has_begun = true;
	return code;
}

static int read_flag(struct reader *r, unsigned int most, unsigned char *ret)
{
	const int code = read_bytes(r, ret, 1);

	return code > 0 && *ret > most ? fail_nonsense(r) : code;
}

static int read_length(struct reader *r, uint64_t *ret)
{
	unsigned char c;

	*ret = 0;
	for (unsigned int shift = 0; shift < 35; shift += 7) {
		const int code = read_bytes(r, &c, 1);

		if (code <= 0)
			return code;
		*ret |= (uint64_t)(c & 127) << shift;
		if (c < 128)
			return *ret <= TEXT_MAX ? 1 : fail_nonsense(r);
	}
	return fail_nonsense(r);
}

/* The next n bytes of it, with a zero behind. */
static int read_text(struct reader *r, size_t n)
{
	struct sp_rowbinary_row *row = r->row;
	int code = 1;

	while (code > 0) {
		const size_t some = n < STEP_BYTES ? n : STEP_BYTES;
		const size_t needed = row->n_text + some + 1;

		if (needed > row->text_room) {
			char *more = realloc(row->text, 2 * needed);

			if (!more)
				return sp_error_memory(r->err, r->name);
			row->text = more;
			row->text_room = 2 * needed;
		}
		if (!n)
			break;
		code = read_bytes(r, row->text + row->n_text, some);
		row->n_text += some;
		n -= some;
	}
	if (code > 0)
		row->text[row->n_text++] = '\0';
	return code;
}

static int read_value(struct reader *r, size_t i)
{
	const struct sp_fleet_column *column = &r->row->columns[i];
	struct sp_rowbinary_value *v = &r->row->values[i];
	unsigned char flag = 0;
	int code = column->may_be_null ? read_flag(r, 1, &flag) : 1;

	*v = (struct sp_rowbinary_value){.is_null = flag, .at = r->row->n_text};
	if (code <= 0 || flag)
		return code;
	if (column->type == SP_FLEET_FLAG) {
		code = read_flag(r, SP_FLEET_FLAG_MAX, &flag);
		v->bits = flag;
		return code;
	}
	if (!is_text(column))
		return read_bytes(r, &v->bits, 8);
	code = read_length(r, &v->bits);
	if (code > 0 && v->at > TEXT_MAX)
		code = fail_nonsense(r);
	return code > 0 ? read_text(r, (size_t)v->bits) : code;
}

int sp_rowbinary_next(struct sp_rowbinary_row *row, struct sp_http *http,
		      const char *name, struct sp_error *err)
{
	struct reader r = {row, http, name, err, .has_begun = false};
	int code = row->n_columns ? 1 : fail_nonsense(&r);

	row->n_text = 0;
	for (size_t i = 0; i < row->n_columns && code > 0; i++)
		code = read_value(&r, i);
	return code;
}
