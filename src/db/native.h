/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/db.h"
#include "db/http.h"

/*
 * ClickHouse's format Native: blocks of rows, column by column.  A block is the
 * numbers of columns and of rows as varints, and of each column its name, its
 * type and its values; of a Nullable first a byte each, 1 for null.
 */

/* ---- writing ---- */

/* Rows of a table that are to be sent.  Zero-initialise. */
struct sp_native_rows {
	struct sp_native_put {
		unsigned char *bytes; /* values, as the format has them */
		unsigned char *nulls;
		size_t n, room, nulls_room;
	} columns[SP_FLEET_COLUMNS_MAX];
	size_t n;     /* rows */
	size_t bytes; /* of all of them, about */
};

/* 0 or -ENOMEM. */
int sp_native_put(struct sp_native_rows *rows,
		  const struct sp_fleet_schema *table,
		  const struct sp_fleet_value *row);
void sp_native_clear(struct sp_native_rows *rows);

/* What is there now, to return to by sp_native_cut(): what was put since is
 * forgotten, also half of a row. */
struct sp_native_mark {
	size_t columns[SP_FLEET_COLUMNS_MAX];
	size_t n, bytes;
};
void sp_native_mark(const struct sp_native_rows *rows,
		    struct sp_native_mark *ret);
void sp_native_cut(struct sp_native_rows *rows,
		   const struct sp_native_mark *mark);
void sp_native_done(struct sp_native_rows *rows);

/* The type of a column. */
void sp_native_type(const struct sp_fleet_column *column, char to[32]);

/* A block of them, compressed as the server expects it with decompress=1 (zstd,
 * whose own checksum is in it); to be freed, *ret_n bytes.  NULL: no memory. */
void *sp_native_block(const struct sp_native_rows *rows,
		      const struct sp_fleet_schema *table, size_t *ret_n);

/* ---- reading ---- */

struct sp_native_block;

/* *block is made, and filled with the next block that has rows.  1; 0: there
 * is no more; -EUCLEAN (nonsense), -EIO (the server's exception) and others and
 * *err. */
int sp_native_next(struct sp_native_block **block, struct sp_http *http,
		   const char *name, struct sp_error *err);
void sp_native_free(struct sp_native_block *block);

/* As those of db/db.h, of a row below sp_native_rows_of(). */
size_t sp_native_rows_of(const struct sp_native_block *block);
bool sp_native_is_null(const struct sp_native_block *b, size_t row, int i);
uint64_t sp_native_get(const struct sp_native_block *b, size_t row, int i);
double sp_native_get_real(const struct sp_native_block *b, size_t row, int i);
const char *sp_native_get_bytes(const struct sp_native_block *b, size_t row,
				int i, size_t *ret_n);
