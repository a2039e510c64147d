/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "stats/estimator.h"
#include "text/json.h"

/*
 * Columns of a table for programs, declared once and written as JSON or as CSV:
 * that as in RFC 4180 but with '\n' at the end of lines, a head and then rows,
 * unknown values empty.  Write errors stay in the stream.
 */

enum sp_table_kind {
	SP_TABLE_TEXT, /* const char *, untrusted; NULL: unknown */
	SP_TABLE_U64,
	SP_TABLE_NONZERO, /* uint64_t; 0: unknown */
	SP_TABLE_DOUBLE,
	SP_TABLE_INTERVAL, /* in CSV KEY, KEY_lo and KEY_hi */
	SP_TABLE_BOOL,     /* in CSV 0 or 1 */
};

/* The last one has no key. */
struct sp_table_column {
	const char *key;
	enum sp_table_kind kind;
	size_t offset; /* of the value, in the row */
};

#define SP_TABLE_COLUMN(type, kind, key, member)                               \
	{                                                                      \
		key, SP_TABLE_##kind, offsetof(type, member)                   \
	}

/* A whole table: an array of objects, or CSV with its head.  It is UTF-8, and
 * so is what comes behind it: the mode of text/text.h is set. */
struct sp_table {
	const struct sp_table_column *columns;
	bool is_json;
	struct sp_json json; /* .out in any case */
};

void sp_table_begin(struct sp_table *table, FILE *out,
		    const struct sp_table_column *columns, bool as_json);
void sp_table_row(struct sp_table *table, const void *row);
void sp_table_end(struct sp_table *table);

/* The members of an open object. */
void sp_table_json_row(struct sp_json *json,
		       const struct sp_table_column *columns, const void *row);

void sp_table_csv_head(FILE *out, const struct sp_table_column *columns);
void sp_table_csv_row(FILE *out, const struct sp_table_column *columns,
		      const void *row);

/* Parts of a row of CSV: text is quoted, and escaped as by sp_text_print(); an
 * apostrophe precedes what a spreadsheet would take for a formula. */
void sp_table_csv_text(FILE *out, const char *text);
void sp_table_csv_interval(FILE *out,
			   struct sp_interval interval); /* ",value,lo,hi" */
