/* SPDX-License-Identifier: MIT */
#include "fleet/db.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "fleet/engine.h"

static const struct sp_fleet_engine *const engines[] = {&sp_fleet_sqlite,
							&sp_fleet_clickhouse};

#define N_ENGINES (sizeof(engines) / sizeof(*engines))

/* ---- opening ---- */

static int find_engine(struct sp_fleet_db *db, const char *url,
		       const char **ret_rest, struct sp_error *err)
{
	*db = (struct sp_fleet_db){.path = ""};
	for (size_t i = 0; i < N_ENGINES; i++) {
		const size_t n = strlen(engines[i]->scheme);

		if (strncmp(url, engines[i]->scheme, n) == 0 && url[n]) {
			db->engine = engines[i];
			*ret_rest = url + n;
			return 0;
		}
	}
	return sp_error_set(err, -EINVAL, NULL,
			    "--db %.80s: sqlite:PATH is wanted, such "
			    "as " SP_FLEET_URL
			    ", or clickhouse://HOST/DATABASE",
			    url);
}

int sp_fleet_db_init(const char *url, struct sp_error *err)
{
	static char path[sizeof(((struct sp_fleet_db *)0)->path)];
	struct sp_fleet_db db;
	const char *rest = NULL;
	int r = find_engine(&db, url, &rest, err);

	if (r >= 0)
		r = db.engine->init(&db, rest, err);
	/* The error may name the path. */
	if (r < 0 && err->file == db.path)
		err->file = memcpy(path, db.path, sizeof(path));
	sp_fleet_db_close(&db);
	return r;
}

int sp_fleet_db_open(struct sp_fleet_db *db, const char *url,
		     struct sp_error *err)
{
	const char *rest = NULL;
	int r = find_engine(db, url, &rest, err);

	return r < 0 ? r : db->engine->open(db, rest, err);
}

void sp_fleet_db_close(struct sp_fleet_db *db)
{
	if (db->engine)
		db->engine->close(db);
	sp_fleet_forget(&db->known);
	sp_fleet_forget(&db->waiting);
	db->engine = NULL;
}

int sp_fleet_damaged(struct sp_fleet_db *db, const char *what,
		     struct sp_error *err)
{
	return sp_error_set(err, -EUCLEAN, db->path,
			    "is damaged: %s; make another from the profiles",
			    what);
}

/* ---- the engine's words ---- */

static const char *const words[SP_FLEET_WORDS] = {
	[SP_FLEET_WORD_PROCESSES] = "{processes}",
	[SP_FLEET_WORD_IN] = "{in}",
	[SP_FLEET_WORD_REAL] = "{real}",
	[SP_FLEET_WORD_UNIQUE] = "{unique}",
};

static const char *write_word(FILE *out, const struct sp_fleet_engine *engine,
			      const char *at)
{
	for (size_t i = 0; i < SP_FLEET_WORDS; i++) {
		const size_t n = strlen(words[i]);

		if (strncmp(at, words[i], n) == 0) {
			fputs(engine->words[i], out);
			return at + n;
		}
	}
	putc(*at, out);
	return at + 1;
}

static void write_list(FILE *out, const struct sp_fleet_engine *engine,
		       const struct sp_fleet_value *list)
{
	putc('(', out);
	for (size_t i = 0; i < list->n; i++) {
		if (i)
			putc(',', out);
		if (engine->is_signed)
			fprintf(out, "%" PRId64, (int64_t)list->list[i]);
		else
			fprintf(out, "%" PRIu64, list->list[i]);
	}
	putc(')', out);
}

char *sp_fleet_render(const struct sp_fleet_engine *engine, const char *sql,
		      const struct sp_fleet_value *values,
		      sp_fleet_scalar_fn *scalar)
{
	const struct sp_fleet_schema *table;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	while (*sql) {
		if (*sql == '{') {
			sql = write_word(out, engine, sql);
			continue;
		}
		if (strncmp(sql, "* FROM", 6) == 0 &&
		    (table = sp_fleet_table_asked(sql)) != NULL) {
			sp_fleet_write_columns(out, table);
			sql++;
			continue;
		}
		if (*sql != '?')
			putc(*sql, out);
		else if (values->kind == SP_FLEET_IS_LIST)
			write_list(out, engine, values++);
		else if (scalar)
			scalar(out, values++);
		else
			putc('?', out), values++;
		sql++;
	}
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- what the engine does ---- */

int sp_fleet_ask(struct sp_fleet_db *db, const char *sql,
		 const struct sp_fleet_value *values, size_t n,
		 struct sp_fleet_rows **ret, struct sp_error *err)
{
	*ret = NULL;
	return db->engine->ask(db, sql, values, n, ret, err);
}

int sp_fleet_next(struct sp_fleet_rows *rows, struct sp_error *err)
{
	return rows->db->engine->next(rows, err);
}

void sp_fleet_rows_free(struct sp_fleet_rows *rows)
{
	if (rows)
		rows->db->engine->rows_free(rows);
}

bool sp_fleet_is_null(struct sp_fleet_rows *rows, int i)
{
	return rows->db->engine->is_null(rows, i);
}

uint64_t sp_fleet_get(struct sp_fleet_rows *rows, int i)
{
	return rows->db->engine->get(rows, i);
}

double sp_fleet_get_real(struct sp_fleet_rows *rows, int i)
{
	return rows->db->engine->get_real(rows, i);
}

const char *sp_fleet_get_bytes(struct sp_fleet_rows *rows, int i, size_t *ret_n)
{
	return rows->db->engine->get_bytes(rows, i, ret_n);
}

int sp_fleet_begin(struct sp_fleet_db *db, uint64_t *ret_process,
		   struct sp_error *err)
{
	return db->engine->begin(db, ret_process, err);
}

int sp_fleet_commit(struct sp_fleet_db *db, uint64_t file_id,
		    struct sp_error *err)
{
	const size_t before = sp_fleet_waiting(db);
	int r = db->engine->commit(db, err);

	if (r >= 0 && sp_fleet_waiting(db) > before)
		sp_fleet_learn(&db->waiting, file_id);
	return r;
}

void sp_fleet_rollback(struct sp_fleet_db *db)
{
	sp_fleet_forget(&db->known);
	db->engine->rollback(db);
	if (!sp_fleet_waiting(db))
		sp_fleet_forget(&db->waiting);
}

size_t sp_fleet_waiting(const struct sp_fleet_db *db)
{
	return db->engine->waiting ? db->engine->waiting(db) : 0;
}

int sp_fleet_flush(struct sp_fleet_db *db, struct sp_error *err)
{
	int r = db->engine->flush ? db->engine->flush(db, err) : 0;

	sp_fleet_forget(&db->waiting);
	if (r < 0)
		sp_fleet_forget(&db->known);
	return r;
}

int sp_fleet_put(struct sp_fleet_db *db, enum sp_fleet_table table,
		 const struct sp_fleet_value *row, struct sp_error *err)
{
	return db->engine->put(db, table, row, err);
}

int sp_fleet_erase(struct sp_fleet_db *db, enum sp_fleet_table table,
		   const uint64_t *key, size_t n, struct sp_error *err)
{
	return db->engine->erase(db, table, key, n, err);
}
