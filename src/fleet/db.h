/* SPDX-License-Identifier: MIT */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "fleet/sql.h"

/*
 * A database of profiles.  What is in it is untrusted: it may come from another
 * machine.  One thread uses it; other processes may at the same time.
 */
struct sp_fleet_db {
	char path[4096];
	sqlite3 *sqlite;
	sqlite3_stmt *statements[SP_FLEET_STATEMENTS]; /* NULL: not yet */
};

/* The default of --db. */
#define SP_FLEET_URL "sqlite:fleet.db"

/* Make an empty database at "sqlite:PATH"; one that is there stays as it is. 0;
 * negative errno and *err. */
int sp_fleet_db_init(const char *url, struct sp_error *err);

/* Open one.  0; -ENOENT, -EINVAL (no fleet database, or one of another version)
 * and others, and *err; to be closed in every case. */
int sp_fleet_db_open(struct sp_fleet_db *db, const char *url,
		     struct sp_error *err);
void sp_fleet_db_close(struct sp_fleet_db *db);

/* What SQLite said last, as an error: negative errno. */
int sp_fleet_db_fail(struct sp_fleet_db *db, struct sp_error *err);

/* The statement, ready to be bound from 1 on; NULL and *err. */
sqlite3_stmt *sp_fleet_statement(struct sp_fleet_db *db,
				 enum sp_fleet_statement which,
				 struct sp_error *err);

/* Run a statement that gives no row, and forget its values.  0; negative errno
 * and *err.  NULL is passed on as an error that was told. */
int sp_fleet_run(struct sp_fleet_db *db, sqlite3_stmt *s, struct sp_error *err);

/* The same without values. */
int sp_fleet_exec(struct sp_fleet_db *db, enum sp_fleet_statement which,
		  struct sp_error *err);

/* 1: there is a row, 0: no more; negative errno and *err. */
int sp_fleet_step(struct sp_fleet_db *db, sqlite3_stmt *s,
		  struct sp_error *err);

/* The row does not make sense: -EUCLEAN and *err. */
int sp_fleet_damaged(struct sp_fleet_db *db, const char *what,
		     struct sp_error *err);

static inline void sp_fleet_bind(sqlite3_stmt *s, int i, uint64_t v)
{
	sqlite3_bind_int64(s, i, (sqlite3_int64)v);
}

/* SQL's null for the value that stands for "not known". */
static inline void sp_fleet_bind_but(sqlite3_stmt *s, int i, uint64_t v,
				     uint64_t unknown)
{
	if (v == unknown)
		sqlite3_bind_null(s, i);
	else
		sp_fleet_bind(s, i, v);
}

/* Borrowed until the statement ran; NULL is SQL's null. */
static inline void sp_fleet_bind_text(sqlite3_stmt *s, int i, const char *text)
{
	sqlite3_bind_text(s, i, text, -1, SQLITE_STATIC);
}

static inline uint64_t sp_fleet_u64(sqlite3_stmt *s, int i)
{
	return (uint64_t)sqlite3_column_int64(s, i);
}

static inline uint64_t sp_fleet_u64_or(sqlite3_stmt *s, int i, uint64_t unknown)
{
	return sqlite3_column_type(s, i) == SQLITE_NULL ? unknown
							: sp_fleet_u64(s, i);
}

/* Never NULL; until the next step. */
static inline const char *sp_fleet_text(sqlite3_stmt *s, int i)
{
	const char *text = (const char *)sqlite3_column_text(s, i);

	return text ? text : "";
}
