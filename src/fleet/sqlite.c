/* SPDX-License-Identifier: MIT */
/* The fleet in a file, by SQLite. */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet/engine.h"
#include "fleet/sqlite_files.h"

/* How long to wait for another process that writes. */
#define BUSY_MS 30000

struct sqlite {
	sqlite3 *handle;
	sqlite3_stmt *puts[SP_FLEET_TABLES]; /* NULL: not yet */
};

struct rows {
	struct sp_fleet_rows base;
	sqlite3_stmt *statement;
};

static sqlite3 *handle_of(struct sp_fleet_db *db)
{
	struct sqlite *state = db->state;

	return state->handle;
}

static sqlite3_stmt *statement_of(struct sp_fleet_rows *base)
{
	struct rows *rows = (struct rows *)base;

	return rows->statement;
}

/* Why a file is not opened, or not for writing. */
static int fail_refused(struct sp_fleet_db *db, struct sp_error *err)
{
	const struct sp_sqlite_refusal *refused = &sp_sqlite_refusal;
	const char *slash = strrchr(db->path, '/');
	const bool is_database =
		strcmp(refused->name, slash ? slash + 1 : db->path) == 0;

	return sp_error_set(err, -EPERM, db->path, "%.100s%s%s",
			    is_database ? "" : refused->name,
			    is_database ? "" : " ", refused->why);
}

/* What SQLite said last, as an error: negative errno. */
static int fail_statement(struct sp_fleet_db *db, struct sp_error *err)
{
	const int code = sqlite3_errcode(handle_of(db)) & 0xff;
	const char *what = sqlite3_errmsg(handle_of(db));

	/* What it may not write to, SQLite opens for reading. */
	if (*sp_sqlite_refusal.why &&
	    (code == SQLITE_CANTOPEN || code == SQLITE_READONLY ||
	     code == SQLITE_IOERR))
		return fail_refused(db, err);
	switch (code) {
	case SQLITE_NOMEM:
		return sp_error_memory(err, db->path);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return sp_error_set(err, -EBUSY, db->path,
				    "another process writes to it: try again");
	case SQLITE_FULL:
		return sp_error_set(err, -ENOSPC, db->path,
				    "the disk is full: nothing of this file "
				    "was added");
	case SQLITE_READONLY:
		return sp_error_set(err, -EACCES, db->path,
				    "cannot be written");
	case SQLITE_NOTADB:
		return sp_error_set(err, -EINVAL, db->path,
				    "is no SQLite database: give another --db");
	case SQLITE_CORRUPT:
		return sp_error_set(err, -EUCLEAN, db->path,
				    "is damaged (%.120s): make another from "
				    "the profiles",
				    what);
	default:
		return sp_error_set(err, -EIO, db->path, "%.200s", what);
	}
}

static int run_sql(struct sp_fleet_db *db, const char *sql,
		   struct sp_error *err)
{
	return sqlite3_exec(handle_of(db), sql, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : fail_statement(db, err);
}

static int get_number(struct sp_fleet_db *db, const char *sql, int64_t *ret,
		      struct sp_error *err)
{
	sqlite3_stmt *s = NULL;
	int r = 0;

	if (sqlite3_prepare_v2(handle_of(db), sql, -1, &s, NULL) != SQLITE_OK ||
	    sqlite3_step(s) != SQLITE_ROW)
		r = fail_statement(db, err);
	else
		*ret = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return r;
}

/* ---- opening ---- */

/* Is it one of ours, of this version?  *ret_is_empty: it has nothing yet. */
static int check_version(struct sp_fleet_db *db, bool *ret_is_empty,
			 struct sp_error *err)
{
	int64_t id = 0, version = 0, tables = 0;
	int r = get_number(db, "PRAGMA application_id", &id, err);

	if (r >= 0)
		r = get_number(db, "PRAGMA user_version", &version, err);
	if (r >= 0)
		r = get_number(db, "SELECT count(*) FROM sqlite_master",
			       &tables, err);
	if (r < 0)
		return r;
	*ret_is_empty = !id && !tables;
	if (*ret_is_empty)
		return 0;
	if (id != SP_FLEET_APPLICATION_ID)
		return sp_error_set(err, -EINVAL, db->path,
				    "is a database of something else: give "
				    "another --db");
	if (version != SP_FLEET_VERSION)
		return sp_error_set(
			err, -EINVAL, db->path,
			"is a fleet database of version %lld, and this is "
			"sampleprof for version %d: use the sampleprof that "
			"made it, or make another from the profiles",
			(long long)version, SP_FLEET_VERSION);
	return 0;
}

/* The database may come from anywhere: nothing in it is to be run. */
static int open_file(struct sp_fleet_db *db, const char *path, int flags,
		     struct sp_error *err)
{
	struct sqlite *state = calloc(1, sizeof(*state));

	snprintf(db->path, sizeof(db->path), "%s", path);
	db->state = state;
	if (!state)
		return sp_error_memory(err, db->path);
	if (strlen(path) >= sizeof(db->path))
		return sp_error_set(err, -ENAMETOOLONG, NULL,
				    "--db: the path is too long");
	sp_sqlite_guard_files();
	if (sqlite3_open_v2(path, &state->handle, flags, NULL) != SQLITE_OK)
		return fail_statement(db, err);
	sqlite3_extended_result_codes(state->handle, 1);
	sqlite3_busy_timeout(state->handle, BUSY_MS);
	sqlite3_db_config(state->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(state->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0,
			  NULL);
	sqlite3_db_config(state->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0,
			  NULL);
	sqlite3_db_config(state->handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	return 0;
}

static void close_file(struct sp_fleet_db *db)
{
	struct sqlite *state = db->state;

	if (!state)
		return;
	for (unsigned int i = 0; i < SP_FLEET_TABLES; i++)
		sqlite3_finalize(state->puts[i]);
	sqlite3_close(state->handle);
	free(state);
	db->state = NULL;
}

static int open_database(struct sp_fleet_db *db, const char *path,
			 struct sp_error *err)
{
	bool is_empty = false;
	int r;

	if (access(path, F_OK) != 0)
		return sp_error_set(err, -errno, path,
				    "cannot be opened: %s; make one with "
				    "sampleprof fleet init",
				    strerror(errno));
	r = open_file(db, path, SQLITE_OPEN_READWRITE, err);
	if (r >= 0)
		r = check_version(db, &is_empty, err);
	if (r >= 0 && is_empty)
		r = sp_error_set(err, -EINVAL, db->path,
				 "is empty: make a fleet database of it with "
				 "sampleprof fleet init");
	return r;
}

/* ---- the tables ---- */

static const char *const types[] = {
	[SP_FLEET_U64] = "INTEGER", [SP_FLEET_FLAG] = "INTEGER",
	[SP_FLEET_REAL] = "REAL",   [SP_FLEET_TEXT] = "TEXT",
	[SP_FLEET_BYTES] = "BLOB",
};

static const char indexes[] =
	"CREATE UNIQUE INDEX processes_file ON processes (file_id);"
	"CREATE INDEX processes_start ON processes (start_unix_ns);"
	"CREATE INDEX labels_value ON labels (key, value, process);";

static void write_table(FILE *out, const struct sp_fleet_schema *table)
{
	const bool is_rowid = table->n_key == 1;

	fprintf(out, "CREATE TABLE %s (", table->name);
	for (size_t i = 0; i < table->n_columns; i++) {
		const struct sp_fleet_column *c = &table->columns[i];

		fprintf(out, "%s%s %s%s", i ? ", " : "", c->name,
			types[c->type],
			is_rowid && !i   ? " PRIMARY KEY"
			: c->may_be_null ? ""
					 : " NOT NULL");
	}
	if (!is_rowid) {
		fputs(", PRIMARY KEY (", out);
		for (size_t i = 0; i < table->n_key; i++)
			fprintf(out, "%s%s", i ? ", " : "",
				table->columns[i].name);
		fputs(")) WITHOUT ROWID;", out);
	} else {
		fputs(");", out);
	}
}

static int make_tables(struct sp_fleet_db *db, struct sp_error *err)
{
	char *sql = NULL;
	size_t size;
	FILE *out = open_memstream(&sql, &size);
	int r;

	if (!out)
		return sp_error_memory(err, db->path);
	for (unsigned int i = 0; i < SP_FLEET_TABLES; i++)
		write_table(out, &sp_fleet_schema[i]);
	fprintf(out, "%sPRAGMA application_id = %d; PRAGMA user_version = %d",
		indexes, SP_FLEET_APPLICATION_ID, SP_FLEET_VERSION);
	r = fclose(out) == 0 ? run_sql(db, sql, err)
			     : sp_error_memory(err, db->path);
	free(sql);
	return r;
}

static int init_database(struct sp_fleet_db *db, const char *path,
			 struct sp_error *err)
{
	bool is_empty = false;
	int r = open_file(db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
			  err);

	if (r >= 0)
		r = run_sql(db, "BEGIN IMMEDIATE", err);
	if (r >= 0)
		r = check_version(db, &is_empty, err);
	if (r >= 0 && is_empty)
		r = make_tables(db, err);
	return r < 0 ? r : run_sql(db, "COMMIT", err);
}

/* ---- asking ---- */

static void bind_value(sqlite3_stmt *s, int i, const struct sp_fleet_value *v)
{
	switch (v->kind) {
	case SP_FLEET_IS_NULL:
	case SP_FLEET_IS_LIST:
		sqlite3_bind_null(s, i);
		break;
	case SP_FLEET_IS_NUMBER:
		sqlite3_bind_int64(s, i, (sqlite3_int64)v->number);
		break;
	case SP_FLEET_IS_REAL:
		sqlite3_bind_double(s, i, v->real);
		break;
	case SP_FLEET_IS_BYTES:
		sqlite3_bind_text(s, i, v->bytes, (int)v->n, SQLITE_STATIC);
		break;
	}
}

static int ask_rows(struct sp_fleet_db *db, const char *sql,
		    const struct sp_fleet_value *values, size_t n,
		    struct sp_fleet_rows **ret, struct sp_error *err)
{
	char *text = sp_fleet_render(db->engine, sql, values, NULL);
	struct rows *rows = calloc(1, sizeof(*rows));
	int at = 1;

	if (!text || !rows) {
		free(text);
		free(rows);
		return sp_error_memory(err, db->path);
	}
	rows->base.db = db;
	if (sqlite3_prepare_v2(handle_of(db), text, -1, &rows->statement,
			       NULL) != SQLITE_OK) {
		free(text);
		free(rows);
		return fail_statement(db, err);
	}
	free(text);
	for (size_t i = 0; i < n; i++)
		if (values[i].kind != SP_FLEET_IS_LIST)
			bind_value(rows->statement, at++, &values[i]);
	*ret = &rows->base;
	return 0;
}

static int next_row(struct sp_fleet_rows *base, struct sp_error *err)
{
	switch (sqlite3_step(statement_of(base))) {
	case SQLITE_ROW:
		return 1;
	case SQLITE_DONE:
		return 0;
	default:
		return fail_statement(base->db, err);
	}
}

static void free_rows(struct sp_fleet_rows *base)
{
	sqlite3_finalize(statement_of(base));
	free(base);
}

static bool is_null(struct sp_fleet_rows *base, int i)
{
	return sqlite3_column_type(statement_of(base), i) == SQLITE_NULL;
}

static uint64_t get_value(struct sp_fleet_rows *base, int i)
{
	return (uint64_t)sqlite3_column_int64(statement_of(base), i);
}

static double get_real(struct sp_fleet_rows *base, int i)
{
	return sqlite3_column_double(statement_of(base), i);
}

static const char *get_bytes(struct sp_fleet_rows *base, int i, size_t *ret_n)
{
	sqlite3_stmt *s = statement_of(base);
	const char *text = (const char *)sqlite3_column_text(s, i);

	if (ret_n)
		*ret_n = text ? (size_t)sqlite3_column_bytes(s, i) : 0;
	return text ? text : "";
}

/* ---- writing ---- */

static int begin_process(struct sp_fleet_db *db, uint64_t *ret_process,
			 struct sp_error *err)
{
	int64_t last = 0;
	int r = run_sql(db, "BEGIN IMMEDIATE", err);

	if (r >= 0)
		r = get_number(db,
			       "SELECT coalesce(max(process), 0) FROM "
			       "processes",
			       &last, err);
	if (r >= 0 && last == INT64_MAX)
		r = sp_fleet_damaged(db, "a number of a process", err);
	*ret_process = (uint64_t)last + 1;
	return r;
}

static int commit_process(struct sp_fleet_db *db, struct sp_error *err)
{
	return run_sql(db, "COMMIT", err);
}

static void rollback_process(struct sp_fleet_db *db)
{
	if (!sqlite3_get_autocommit(handle_of(db)))
		run_sql(db, "ROLLBACK", NULL);
}

/* Binds what has to be text or bytes as that. */
static void bind_row(sqlite3_stmt *s, const struct sp_fleet_schema *table,
		     const struct sp_fleet_value *row)
{
	for (size_t i = 0; i < table->n_columns; i++)
		if (table->columns[i].type == SP_FLEET_BYTES &&
		    row[i].kind == SP_FLEET_IS_BYTES)
			sqlite3_bind_blob(s, (int)i + 1,
					  row[i].n ? row[i].bytes : "",
					  (int)row[i].n, SQLITE_STATIC);
		else
			bind_value(s, (int)i + 1, &row[i]);
}

static int prepare_put(struct sp_fleet_db *db, enum sp_fleet_table which,
		       struct sp_error *err)
{
	const struct sp_fleet_schema *table = &sp_fleet_schema[which];
	struct sqlite *state = db->state;
	char *sql = NULL;
	size_t n;
	FILE *out = open_memstream(&sql, &n);
	int r;

	if (!out)
		return sp_error_memory(err, db->path);
	fprintf(out, "INSERT INTO %s (", table->name);
	sp_fleet_write_columns(out, table);
	fputs(") VALUES (?", out);
	for (size_t i = 1; i < table->n_columns; i++)
		fputs(", ?", out);
	putc(')', out);
	if (fclose(out) != 0) {
		free(sql);
		return sp_error_memory(err, db->path);
	}
	r = sqlite3_prepare_v3(state->handle, sql, -1,
			       SQLITE_PREPARE_PERSISTENT, &state->puts[which],
			       NULL);
	free(sql);
	return r == SQLITE_OK ? 0 : fail_statement(db, err);
}

static int put_row(struct sp_fleet_db *db, enum sp_fleet_table which,
		   const struct sp_fleet_value *row, struct sp_error *err)
{
	struct sqlite *state = db->state;
	sqlite3_stmt *s;
	int r = state->puts[which] ? 0 : prepare_put(db, which, err);

	if (r < 0)
		return r;
	s = state->puts[which];
	bind_row(s, &sp_fleet_schema[which], row);
	r = sqlite3_step(s) == SQLITE_DONE ? 0 : fail_statement(db, err);
	sqlite3_reset(s);
	return r;
}

static int erase_rows(struct sp_fleet_db *db, enum sp_fleet_table which,
		      const uint64_t *key, size_t n, struct sp_error *err)
{
	const struct sp_fleet_schema *table = &sp_fleet_schema[which];
	struct sp_fleet_value values[SP_FLEET_COLUMNS_MAX];
	struct sp_fleet_rows *rows;
	char sql[256];
	int r, at = snprintf(sql, sizeof(sql), "DELETE FROM %s", table->name);

	for (size_t i = 0; i < n; i++) {
		values[i] = sp_fleet_number(key[i]);
		at += snprintf(sql + at, sizeof(sql) - (size_t)at, " %s %s = ?",
			       i ? "AND" : "WHERE", table->columns[i].name);
	}
	r = ask_rows(db, sql, values, n, &rows, err);
	if (r < 0)
		return r;
	r = next_row(rows, err);
	free_rows(rows);
	return r;
}

const struct sp_fleet_engine sp_fleet_sqlite = {
	.scheme = "sqlite:",
	.words =
		{
			[SP_FLEET_WORD_PROCESSES] = "processes",
			[SP_FLEET_WORD_IN] = "IN",
			[SP_FLEET_WORD_REAL] = "REAL",
			[SP_FLEET_WORD_UNIQUE] = "",
		},
	.is_signed = true,
	.init = init_database,
	.open = open_database,
	.close = close_file,
	.ask = ask_rows,
	.next = next_row,
	.rows_free = free_rows,
	.is_null = is_null,
	.get = get_value,
	.get_real = get_real,
	.get_bytes = get_bytes,
	.begin = begin_process,
	.commit = commit_process,
	.rollback = rollback_process,
	.put = put_row,
	.erase = erase_rows,
};
