/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "fleet/known.h"
#include "fleet/schema.h"

/*
 * A database of profiles, on any engine (fleet/engine.h).  What is in it is
 * untrusted: it may come from another machine.  One thread uses it; other
 * processes may at the same time.
 *
 * Questions are written once, in fleet/sql.c, in the SQL that the engines have
 * in common.  Where they differ, a word in braces stands for what each of them
 * has (`words` of its struct sp_fleet_engine).  Values take the place of ?, in
 * turn; they are bound or escaped, and a list is written as (1, 2, 3).
 */
struct sp_fleet_db {
	char path[4096]; /* to name it in messages; no password is in it */
	const struct sp_fleet_engine *engine;
	void *state; /* the engine's */
	/* Code that is there for certain, or waits (fleet/code.c). */
	struct sp_fleet_known known;
	struct sp_fleet_known waiting; /* files that were committed and wait */
};

/* The default of --db. */
#define SP_FLEET_URL "sqlite:fleet.db"

/* Make an empty database; one that is there stays as it is.  0; negative errno
 * and *err. */
int sp_fleet_db_init(const char *url, struct sp_error *err);

/* Open one.  0; -ENOENT, -EINVAL (no fleet database, or one of another version)
 * and others, and *err; to be closed in every case. */
int sp_fleet_db_open(struct sp_fleet_db *db, const char *url,
		     struct sp_error *err);
void sp_fleet_db_close(struct sp_fleet_db *db);

/* ---- values ---- */

enum sp_fleet_kind {
	SP_FLEET_IS_NULL,
	SP_FLEET_IS_NUMBER,
	SP_FLEET_IS_REAL,
	SP_FLEET_IS_BYTES,
	SP_FLEET_IS_LIST,
};

/* Bytes and lists are borrowed until the call that they are given to ended. */
struct sp_fleet_value {
	enum sp_fleet_kind kind;
	size_t n; /* bytes, or numbers of the list */
	union {
		uint64_t number;
		double real;
		const void *bytes;
		const uint64_t *list;
	};
};

/* A list of at most so many is given at once: longer ones are asked for in
 * parts. */
#define SP_FLEET_LIST_MAX 1000u

static inline struct sp_fleet_value sp_fleet_number(uint64_t v)
{
	return (struct sp_fleet_value){SP_FLEET_IS_NUMBER, .number = v};
}

/* SQL's null for the number that stands for "not known". */
static inline struct sp_fleet_value sp_fleet_number_but(uint64_t v,
							uint64_t unknown)
{
	return (struct sp_fleet_value){v == unknown ? SP_FLEET_IS_NULL
						    : SP_FLEET_IS_NUMBER,
				       .number = v};
}

static inline struct sp_fleet_value sp_fleet_real(double v)
{
	return (struct sp_fleet_value){SP_FLEET_IS_REAL, .real = v};
}

static inline struct sp_fleet_value sp_fleet_bytes(const void *bytes, size_t n)
{
	return (struct sp_fleet_value){SP_FLEET_IS_BYTES, n, .bytes = bytes};
}

/* NULL is SQL's null. */
static inline struct sp_fleet_value sp_fleet_text(const char *text)
{
	return (struct sp_fleet_value){text ? SP_FLEET_IS_BYTES
					    : SP_FLEET_IS_NULL,
				       text ? strlen(text) : 0, .bytes = text};
}

static inline struct sp_fleet_value sp_fleet_list(const uint64_t *list,
						  size_t n)
{
	return (struct sp_fleet_value){SP_FLEET_IS_LIST, n, .list = list};
}

/* ---- asking ---- */

/* Rows of an answer.  One answer of a database is open at a time. */
struct sp_fleet_rows;

/* 0 and *ret, to be released (sp_fleet_rows_free()); negative errno and *err.
 * `n` is the number of ? in `sql`. */
int sp_fleet_ask(struct sp_fleet_db *db, const char *sql,
		 const struct sp_fleet_value *values, size_t n,
		 struct sp_fleet_rows **ret, struct sp_error *err);

/* 1: there is a row, 0: no more; negative errno and *err. */
int sp_fleet_next(struct sp_fleet_rows *rows, struct sp_error *err);

/* May be NULL. */
void sp_fleet_rows_free(struct sp_fleet_rows *rows);

/* Columns of the row, from 0.  What is of another type is converted or 0. */
bool sp_fleet_is_null(struct sp_fleet_rows *rows, int i);
uint64_t sp_fleet_get(struct sp_fleet_rows *rows, int i);
double sp_fleet_get_real(struct sp_fleet_rows *rows, int i);
/* Never NULL; terminated; until the next row.  *ret_n may be NULL. */
const char *sp_fleet_get_bytes(struct sp_fleet_rows *rows, int i,
			       size_t *ret_n);

static inline const char *sp_fleet_get_text(struct sp_fleet_rows *rows, int i)
{
	return sp_fleet_get_bytes(rows, i, NULL);
}

static inline uint64_t sp_fleet_get_or(struct sp_fleet_rows *rows, int i,
				       uint64_t unknown)
{
	return sp_fleet_is_null(rows, i) ? unknown : sp_fleet_get(rows, i);
}

/* The answer does not make sense: -EUCLEAN and *err. */
int sp_fleet_damaged(struct sp_fleet_db *db, const char *what,
		     struct sp_error *err);

/* ---- writing ---- */

/*
 * What is written from here on belongs together: with sp_fleet_commit() all of
 * it counts, else nothing does, whatever is killed or cut in between.  Only the
 * code of programs (modules, stacks, names), which means nothing by itself, may
 * stay.  *ret_process is a number that no process has.  0; negative errno and
 * *err.
 */
int sp_fleet_begin(struct sp_fleet_db *db, uint64_t *ret_process,
		   struct sp_error *err);
int sp_fleet_commit(struct sp_fleet_db *db, uint64_t file_id,
		    struct sp_error *err);
/* After an error of any of these; forgets it.  And what waits, if nobody can
 * say how much of it the server has. */
void sp_fleet_rollback(struct sp_fleet_db *db);

/*
 * An engine may gather what several commits have, and send it together: it
 * counts after sp_fleet_flush(), or not at all.  How many files wait; to close
 * the database forgets them.
 */
size_t sp_fleet_waiting(const struct sp_fleet_db *db);
/* 0; negative errno and *err, and nothing waits any more. */
int sp_fleet_flush(struct sp_fleet_db *db, struct sp_error *err);

/* Put a row, of all columns; a key that is there is -EIO.  0; negative errno
 * and *err. */
int sp_fleet_put(struct sp_fleet_db *db, enum sp_fleet_table table,
		 const struct sp_fleet_value *row, struct sp_error *err);

/*
 * The rows whose key begins with these numbers are to be replaced.  An engine
 * that keeps them ranks them below those that follow: readers take of a file
 * the latest state, and of an address the best names.
 */
int sp_fleet_erase(struct sp_fleet_db *db, enum sp_fleet_table table,
		   const uint64_t *key, size_t n, struct sp_error *err);
