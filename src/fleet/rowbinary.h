/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fleet/db.h"
#include "fleet/http.h"

/*
 * ClickHouse's format RowBinary: rows, and nothing else.  A row is the values
 * of its columns: of what may be null first a byte, 1 for null, with nothing
 * behind it, or 0; then 8 bytes of a number, one of a flag, or a text behind
 * its length as a varint.
 */

/* ---- writing ---- */

/* Rows of a table that are to be sent.  Zero-initialise; bytes are freed by
 * their owner. */
struct sp_rowbinary {
	unsigned char *bytes;
	size_t n_bytes, room, n;
};

/* 0 or -ENOMEM. */
int sp_rowbinary_put(struct sp_rowbinary *rows,
		     const struct sp_fleet_schema *table,
		     const struct sp_fleet_value *row);

/* ---- reading ---- */

/* The columns of its answer, by the words of a question (fleet/sql.c); how
 * many. What is of no table is text. */
size_t sp_rowbinary_columns(const char *sql,
			    struct sp_fleet_column ret[SP_FLEET_COLUMNS_MAX]);

/* A row of an answer.  Zero-initialise, but for the columns. */
struct sp_rowbinary_row {
	struct sp_fleet_column columns[SP_FLEET_COLUMNS_MAX];
	size_t n_columns;
	struct sp_rowbinary_value {
		bool is_null;
		uint64_t bits; /* number, bits of a real, bytes of a text */
		size_t at;     /* where that begins */
	} values[SP_FLEET_COLUMNS_MAX];
	char *text; /* all of them, each followed by a zero; to be freed */
	size_t n_text, text_room;
};

/* 1: the next row is there; 0: there is no more; -EUCLEAN (nonsense) and others
 * and *err. */
int sp_rowbinary_next(struct sp_rowbinary_row *row, struct sp_http *http,
		      const char *name, struct sp_error *err);
