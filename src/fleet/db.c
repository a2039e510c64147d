/* SPDX-License-Identifier: MIT */
#include "fleet/db.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How long to wait for another process that writes. */
#define BUSY_MS 30000

static const char temporary[] =
	"CREATE TEMP TABLE chosen (process INTEGER PRIMARY KEY)";

static int parse_url(const char *url, const char **ret_path,
		     struct sp_error *err)
{
	static const char scheme[] = "sqlite:";

	if (strncmp(url, scheme, sizeof(scheme) - 1) != 0 ||
	    !url[sizeof(scheme) - 1])
		return sp_error_set(err, -EINVAL, NULL,
				    "--db %.80s: sqlite:PATH is wanted, such "
				    "as " SP_FLEET_URL,
				    url);
	*ret_path = url + sizeof(scheme) - 1;
	return 0;
}

int sp_fleet_db_fail(struct sp_fleet_db *db, struct sp_error *err)
{
	const int code = sqlite3_errcode(db->sqlite) & 0xff;
	const char *what = sqlite3_errmsg(db->sqlite);

	switch (code) {
	case SQLITE_NOMEM:
		return sp_error_set(err, -ENOMEM, db->path,
				    "not enough memory");
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

int sp_fleet_damaged(struct sp_fleet_db *db, const char *what,
		     struct sp_error *err)
{
	return sp_error_set(err, -EUCLEAN, db->path,
			    "is damaged: %s; make another from the profiles",
			    what);
}

static int exec_sql(struct sp_fleet_db *db, const char *sql,
		    struct sp_error *err)
{
	return sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : sp_fleet_db_fail(db, err);
}

static int get_pragma(struct sp_fleet_db *db, const char *sql, int64_t *ret,
		      struct sp_error *err)
{
	sqlite3_stmt *s = NULL;
	int r = 0;

	if (sqlite3_prepare_v2(db->sqlite, sql, -1, &s, NULL) != SQLITE_OK ||
	    sqlite3_step(s) != SQLITE_ROW)
		r = sp_fleet_db_fail(db, err);
	else
		*ret = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return r;
}

/* Is it one of ours, of this version?  *ret_is_empty: it has nothing yet. */
static int check_version(struct sp_fleet_db *db, bool *ret_is_empty,
			 struct sp_error *err)
{
	int64_t id = 0, version = 0, tables = 0;
	int r = get_pragma(db, "PRAGMA application_id", &id, err);

	if (r >= 0)
		r = get_pragma(db, "PRAGMA user_version", &version, err);
	if (r >= 0)
		r = get_pragma(db, "SELECT count(*) FROM sqlite_master",
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
	snprintf(db->path, sizeof(db->path), "%s", path);
	if (strlen(path) >= sizeof(db->path))
		return sp_error_set(err, -ENAMETOOLONG, NULL,
				    "--db: the path is too long");
	if (sqlite3_open_v2(path, &db->sqlite, flags, NULL) != SQLITE_OK)
		return sp_fleet_db_fail(db, err);
	sqlite3_extended_result_codes(db->sqlite, 1);
	sqlite3_busy_timeout(db->sqlite, BUSY_MS);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	return 0;
}

static int make_schema(struct sp_fleet_db *db, struct sp_error *err)
{
	char marks[128];
	bool is_empty;
	int r = exec_sql(db, "BEGIN IMMEDIATE", err);

	if (r >= 0)
		r = check_version(db, &is_empty, err);
	if (r >= 0 && is_empty) {
		snprintf(marks, sizeof(marks),
			 "PRAGMA application_id = %d; PRAGMA user_version = %d",
			 SP_FLEET_APPLICATION_ID, SP_FLEET_VERSION);
		r = exec_sql(db, sp_fleet_schema, err);
		if (r >= 0)
			r = exec_sql(db, marks, err);
	}
	return r < 0 ? r : exec_sql(db, "COMMIT", err);
}

int sp_fleet_db_init(const char *url, struct sp_error *err)
{
	struct sp_fleet_db db = {.path = ""};
	const char *path = "";
	int r = parse_url(url, &path, err);

	if (r >= 0)
		r = open_file(&db, path,
			      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
	if (r >= 0)
		r = make_schema(&db, err);
	/* The error may name the path. */
	if (r < 0 && err->file == db.path)
		err->file = path;
	sp_fleet_db_close(&db);
	return r;
}

int sp_fleet_db_open(struct sp_fleet_db *db, const char *url,
		     struct sp_error *err)
{
	bool is_empty = false;
	const char *path = "";
	int r;

	*db = (struct sp_fleet_db){.path = ""};
	r = parse_url(url, &path, err);
	if (r < 0)
		return r;
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
	return r < 0 ? r : exec_sql(db, temporary, err);
}

void sp_fleet_db_close(struct sp_fleet_db *db)
{
	for (unsigned int i = 0; i < SP_FLEET_STATEMENTS; i++)
		sqlite3_finalize(db->statements[i]);
	sqlite3_close(db->sqlite);
	db->sqlite = NULL;
}

sqlite3_stmt *sp_fleet_statement(struct sp_fleet_db *db,
				 enum sp_fleet_statement which,
				 struct sp_error *err)
{
	sqlite3_stmt **s = &db->statements[which];

	if (*s) {
		sqlite3_reset(*s);
		sqlite3_clear_bindings(*s);
	} else if (sqlite3_prepare_v3(db->sqlite, sp_fleet_sql[which], -1,
				      SQLITE_PREPARE_PERSISTENT, s,
				      NULL) != SQLITE_OK) {
		sp_fleet_db_fail(db, err);
		return NULL;
	}
	return *s;
}

int sp_fleet_step(struct sp_fleet_db *db, sqlite3_stmt *s, struct sp_error *err)
{
	switch (sqlite3_step(s)) {
	case SQLITE_ROW:
		return 1;
	case SQLITE_DONE:
		sqlite3_reset(s);
		return 0;
	default:
		return sp_fleet_db_fail(db, err);
	}
}

int sp_fleet_run(struct sp_fleet_db *db, sqlite3_stmt *s, struct sp_error *err)
{
	int r;

	if (!s)
		return -EIO;
	r = sp_fleet_step(db, s, err);
	sqlite3_reset(s);
	return r < 0 ? r : 0;
}

int sp_fleet_exec(struct sp_fleet_db *db, enum sp_fleet_statement which,
		  struct sp_error *err)
{
	return sp_fleet_run(db, sp_fleet_statement(db, which, err), err);
}
