/* SPDX-License-Identifier: MIT */
#include "text/table.h"

#include <inttypes.h>
#include <string.h>

#include "text/figures.h"
#include "text/text.h"

/* A value of a row, by the kind of its column. */
union value {
	const char *text;
	uint64_t number;
	double real;
	struct sp_interval interval;
	bool is_so;
};

static union value value_of(const struct sp_table_column *c, const void *row)
{
	static const size_t bytes[] = {
		[SP_TABLE_TEXT] = sizeof(const char *),
		[SP_TABLE_U64] = sizeof(uint64_t),
		[SP_TABLE_NONZERO] = sizeof(uint64_t),
		[SP_TABLE_DOUBLE] = sizeof(double),
		[SP_TABLE_INTERVAL] = sizeof(struct sp_interval),
		[SP_TABLE_BOOL] = sizeof(bool),
	};
	union value v;

	memcpy(&v, (const char *)row + c->offset, bytes[c->kind]);
	return v;
}

void sp_table_json_row(struct sp_json *json, const struct sp_table_column *c,
		       const void *row)
{
	for (; c->key; c++) {
		const union value v = value_of(c, row);

		if (c->kind == SP_TABLE_TEXT)
			sp_json_string(json, c->key, v.text);
		else if (c->kind == SP_TABLE_DOUBLE)
			sp_json_double(json, c->key, v.real);
		else if (c->kind == SP_TABLE_INTERVAL)
			sp_json_interval(json, c->key, v.interval);
		else if (c->kind == SP_TABLE_BOOL)
			sp_json_bool(json, c->key, v.is_so);
		else if (c->kind == SP_TABLE_NONZERO && !v.number)
			sp_json_null(json, c->key);
		else
			sp_json_u64(json, c->key, v.number);
	}
}

void sp_table_csv_head(FILE *out, const struct sp_table_column *columns)
{
	for (const struct sp_table_column *c = columns; c->key; c++) {
		fprintf(out, "%s%s", c > columns ? "," : "", c->key);
		if (c->kind == SP_TABLE_INTERVAL)
			fprintf(out, ",%s_lo,%s_hi", c->key, c->key);
	}
	putc('\n', out);
}

static void put_interval(FILE *out, struct sp_interval i)
{
	const struct sp_figure_limits cells = sp_figure_limits(i);

	fprintf(out, "%s,%s,%s", cells.value.text, cells.lo.text,
		cells.hi.text);
}

void sp_table_csv_row(FILE *out, const struct sp_table_column *columns,
		      const void *row)
{
	for (const struct sp_table_column *c = columns; c->key; c++) {
		const union value v = value_of(c, row);

		if (c > columns)
			putc(',', out);
		if (c->kind == SP_TABLE_TEXT)
			sp_table_csv_text(out, v.text ? v.text : "");
		else if (c->kind == SP_TABLE_DOUBLE)
			fputs(sp_figure_digits(v.real).text, out);
		else if (c->kind == SP_TABLE_INTERVAL)
			put_interval(out, v.interval);
		else if (c->kind == SP_TABLE_BOOL)
			fputs(v.is_so ? "1" : "0", out);
		else if (c->kind == SP_TABLE_U64 || v.number)
			fprintf(out, "%" PRIu64, v.number);
	}
	putc('\n', out);
}

void sp_table_csv_text(FILE *out, const char *text)
{
	putc('"', out);
	if (*text && strchr("=+-@", *text))
		putc('\'', out);
	while (*text) {
		char one[5] = "";
		uint32_t code;
		unsigned int n = sp_text_decode_utf8(text, &code);

		memcpy(one, text, n ? n : 1);
		sp_text_print(out, *one == '"' ? "\"\"" : one);
		text += n ? n : 1;
	}
	putc('"', out);
}

void sp_table_csv_interval(FILE *out, struct sp_interval interval)
{
	putc(',', out);
	put_interval(out, interval);
}

void sp_table_begin(struct sp_table *table, FILE *out,
		    const struct sp_table_column *columns, bool as_json)
{
	sp_text_set_ascii(false);
	*table = (struct sp_table){.columns = columns,
				   .is_json = as_json,
				   .json = {.out = out, .is_first = true}};
	if (as_json)
		sp_json_open(&table->json, NULL, '[');
	else
		sp_table_csv_head(out, columns);
}

void sp_table_row(struct sp_table *table, const void *row)
{
	if (!table->is_json) {
		sp_table_csv_row(table->json.out, table->columns, row);
		return;
	}
	sp_json_open(&table->json, NULL, '{');
	sp_table_json_row(&table->json, table->columns, row);
	sp_json_close(&table->json, '}');
}

void sp_table_end(struct sp_table *table)
{
	if (!table->is_json)
		return;
	sp_json_close(&table->json, ']');
	putc('\n', table->json.out);
}
