/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "fleet/db.h"

/*
 * What a database engine does.  Functions are those of fleet/db.h; state is
 * the engine's own, made by open() and released by close().
 */

/* Words of SQL that are not the same everywhere. */
enum sp_fleet_word {
	SP_FLEET_WORD_PROCESSES, /* {processes}: the latest state of each */
	SP_FLEET_WORD_IN,        /* {in}: of rows that a table anywhere has */
	SP_FLEET_WORD_REAL,      /* {real}: CAST(x AS {real}) */
	SP_FLEET_WORD_UNIQUE,    /* {unique}: rows that may be there twice */
	SP_FLEET_WORDS
};

struct sp_fleet_engine {
	const char *scheme; /* its URLs begin with it */
	const char *words[SP_FLEET_WORDS];
	bool is_signed; /* numbers from 2^63 on are negative */
	/* `rest` is the URL behind the scheme. */
	int (*init)(struct sp_fleet_db *db, const char *rest,
		    struct sp_error *err);
	int (*open)(struct sp_fleet_db *db, const char *rest,
		    struct sp_error *err);
	void (*close)(struct sp_fleet_db *db);
	int (*ask)(struct sp_fleet_db *db, const char *sql,
		   const struct sp_fleet_value *values, size_t n,
		   struct sp_fleet_rows **ret, struct sp_error *err);
	int (*next)(struct sp_fleet_rows *rows, struct sp_error *err);
	void (*rows_free)(struct sp_fleet_rows *rows);
	bool (*is_null)(struct sp_fleet_rows *rows, int i);
	uint64_t (*get)(struct sp_fleet_rows *rows, int i);
	double (*get_real)(struct sp_fleet_rows *rows, int i);
	const char *(*get_bytes)(struct sp_fleet_rows *rows, int i,
				 size_t *ret_n);
	int (*begin)(struct sp_fleet_db *db, uint64_t *ret_process,
		     struct sp_error *err);
	int (*commit)(struct sp_fleet_db *db, struct sp_error *err);
	void (*rollback)(struct sp_fleet_db *db);
	/* NULL: nothing waits. */
	size_t (*waiting)(const struct sp_fleet_db *db);
	int (*flush)(struct sp_fleet_db *db, struct sp_error *err);
	int (*put)(struct sp_fleet_db *db, enum sp_fleet_table table,
		   const struct sp_fleet_value *row, struct sp_error *err);
	int (*erase)(struct sp_fleet_db *db, enum sp_fleet_table table,
		     const uint64_t *key, size_t n, struct sp_error *err);
};

/* The first member of the rows of every engine. */
struct sp_fleet_rows {
	struct sp_fleet_db *db;
};

extern const struct sp_fleet_engine sp_fleet_sqlite;
extern const struct sp_fleet_engine sp_fleet_clickhouse;

/*
 * `sql` in the engine's words, with lists, and the columns that * stands for,
 * written out.  Of other values the ?
 * stays, if `scalar` is NULL; else scalar() writes them.  NULL: not enough
 * memory; to be freed.
 */
typedef void sp_fleet_scalar_fn(FILE *out, const struct sp_fleet_value *value);
char *sp_fleet_render(const struct sp_fleet_engine *engine, const char *sql,
		      const struct sp_fleet_value *values,
		      sp_fleet_scalar_fn *scalar);
