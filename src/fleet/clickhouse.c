/* SPDX-License-Identifier: MIT */
/* The fleet on ClickHouse, by HTTP. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <zlib.h>

#include "fleet/clickhouse_tables.h"
#include "fleet/clickhouse_url.h"
#include "fleet/engine.h"
#include "fleet/http.h"
#include "fleet/rowbinary.h"

/*
 * There are no transactions, and a row that was sent twice is there twice.  So
 * every attempt to add a file has a number of its own, drawn by chance, which
 * its rows bear, and which counts only once there is a row of `processes` with
 * it: that is sent last.  The rows of an attempt that failed are in no answer.
 * If several senders have added one file, there are several rows of
 * `processes`; all readers take the same one.
 *
 * A request costs as much as many rows, so that what several files have is
 * gathered and sent together, a table at a time, with `processes` last.  If a
 * request fails, it is not known whether its rows are there: they are not sent
 * again under the same numbers, and all files that waited have failed.
 */

/* So many rows and bytes of a table are sent together, at most. */
#define ROWS_MAX  65536u
#define BYTES_MAX ((size_t)8 << 20)

/* deflateInit2(): the fastest, within the frame of gzip. */
#define LEVEL     1
#define GZIP_BITS (15 + 16)

struct clickhouse {
	struct sp_clickhouse_url url;
	struct sp_http *http;
	void *body; /* of the request, which may still be on its way */
	struct sp_rowbinary rows[SP_FLEET_TABLES];
	/* Of the files before the one at hand. */
	struct mark {
		size_t n_bytes, n;
	} marks[SP_FLEET_TABLES];
	size_t n_waiting;  /* commits that are not sent */
	bool is_broken;    /* rows of some file may be there, or not */
	bool has_database; /* it is there: requests are about it */
};

struct rows {
	struct sp_fleet_rows base;
	struct sp_rowbinary_row row;
};

static struct clickhouse *state_of(struct sp_fleet_db *db)
{
	return db->state;
}

/* ---- requests ---- */

/* To be freed; NULL: no memory. */
static void *pack_body(const void *body, size_t n, size_t *ret_n)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)body, .avail_in = (uInt)n};
	size_t room;
	void *to;

	if (n > UINT32_MAX / 2 || deflateInit2(&z, LEVEL, Z_DEFLATED, GZIP_BITS,
					       8, Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	room = deflateBound(&z, n);
	to = malloc(room);
	z.next_out = to;
	z.avail_out = (uInt)room;
	if (to)
		deflate(&z, Z_FINISH);
	*ret_n = z.total_out;
	deflateEnd(&z);
	return to;
}

/* Begins one: `statement` (NULL: none) goes into its address, `body` behind. */
static int post_statement(struct sp_fleet_db *db, const char *statement,
			  const char *settings, const void *body, size_t n,
			  struct sp_error *err)
{
	struct clickhouse *c = state_of(db);
	char *escaped = sp_http_escape(statement ? statement : "");
	char *query = NULL;
	int r;

	/* What was on its way is forgotten. */
	sp_http_stop(c->http);
	free(c->body);
	c->body = pack_body(body, n, &n);
	if (!c->body || !escaped ||
	    asprintf(&query, "?max_query_size=16777216%s%s%s%s%s", settings,
		     c->has_database ? "&database=" : "",
		     c->has_database ? c->url.database : "",
		     statement ? "&query=" : "", escaped) < 0)
		query = NULL;
	free(escaped);
	if (!query)
		return sp_error_memory(err, db->path);
	r = sp_http_post(c->http, query, c->body, n, err);
	free(query);
	return r;
}

/* Waits for the end of an answer that says nothing. */
static int finish_answer(struct sp_fleet_db *db, struct sp_error *err)
{
	char c;
	int r;

	while ((r = sp_http_read(state_of(db)->http, &c, 1, err)) > 0)
		;
	return r;
}

static int run_sql(struct sp_fleet_db *db, const char *sql,
		   struct sp_error *err)
{
	const int r = post_statement(db, NULL, "", sql, strlen(sql), err);

	return r < 0 ? r : finish_answer(db, err);
}

/* ---- asking ---- */

static void write_scalar(FILE *out, const struct sp_fleet_value *v)
{
	const char *bytes = v->bytes;

	switch (v->kind) {
	case SP_FLEET_IS_NUMBER:
		fprintf(out, "%" PRIu64, v->number);
		break;
	case SP_FLEET_IS_REAL:
		fprintf(out, "%.17g", v->real);
		break;
	case SP_FLEET_IS_BYTES:
		putc('\'', out);
		for (size_t i = 0; i < v->n; i++)
			fprintf(out, "\\x%02X", (unsigned char)bytes[i]);
		putc('\'', out);
		break;
	case SP_FLEET_IS_NULL:
	case SP_FLEET_IS_LIST:
		fputs("NULL", out);
		break;
	}
}

static void free_rows(struct sp_fleet_rows *base)
{
	struct rows *rows = (struct rows *)base;

	free(rows->row.text);
	free(rows);
}

/* The server sorts large answers on its disk.  It answers when it has all of
 * it, since an error amid rows would be read as rows. */
static int ask_rows(struct sp_fleet_db *db, const char *sql,
		    const struct sp_fleet_value *values, size_t n,
		    struct sp_fleet_rows **ret, struct sp_error *err)
{
	struct rows *rows = calloc(1, sizeof(*rows));
	char *text = sp_fleet_render(db->engine, sql, values, write_scalar);
	int r;

	(void)n;
	if (!rows || !text) {
		free(rows);
		free(text);
		return sp_error_memory(err, db->path);
	}
	rows->base.db = db;
	rows->row.n_columns = sp_rowbinary_columns(sql, rows->row.columns);
	r = post_statement(db, NULL,
			   "&max_bytes_before_external_sort=2000000000"
			   "&default_format=RowBinary"
			   "&wait_end_of_query=1&buffer_size=16777216",
			   text, strlen(text), err);
	free(text);
	if (r >= 0)
		r = sp_http_expect(state_of(db)->http,
				   "application/octet-stream", err);
	if (r < 0)
		free_rows(&rows->base);
	else
		*ret = &rows->base;
	return r;
}

static int next_row(struct sp_fleet_rows *base, struct sp_error *err)
{
	struct rows *rows = (struct rows *)base;

	return sp_rowbinary_next(&rows->row, state_of(base->db)->http,
				 base->db->path, err);
}

/* NULL: it is null, or there is none. */
static const struct sp_rowbinary_value *find_value(struct sp_fleet_rows *base,
						   int i)
{
	const struct sp_rowbinary_row *row = &((struct rows *)base)->row;

	return (size_t)i < row->n_columns && !row->values[i].is_null
		       ? &row->values[i]
		       : NULL;
}

static enum sp_fleet_type type_of(struct sp_fleet_rows *base, int i)
{
	return ((struct rows *)base)->row.columns[i].type;
}

static bool is_null(struct sp_fleet_rows *base, int i)
{
	return !find_value(base, i);
}

static uint64_t get_value(struct sp_fleet_rows *base, int i)
{
	const struct sp_rowbinary_value *v = find_value(base, i);

	return v && type_of(base, i) <= SP_FLEET_FLAG ? v->bits : 0;
}

static double get_real(struct sp_fleet_rows *base, int i)
{
	const struct sp_rowbinary_value *v = find_value(base, i);
	double real = 0;

	if (v && type_of(base, i) == SP_FLEET_REAL)
		memcpy(&real, &v->bits, sizeof(real));
	return real;
}

static const char *get_bytes(struct sp_fleet_rows *base, int i, size_t *ret_n)
{
	const struct sp_rowbinary_value *v = find_value(base, i);

	if (v && type_of(base, i) < SP_FLEET_TEXT)
		v = NULL;
	if (ret_n)
		*ret_n = v ? (size_t)v->bits : 0;
	return v ? ((struct rows *)base)->row.text + v->at : "";
}

/* ---- opening ---- */

static int open_server(struct sp_fleet_db *db, const char *rest,
		       struct sp_error *err)
{
	struct clickhouse *c = calloc(1, sizeof(*c));
	struct sp_http_server server = {.name = db->path};
	int r;

	db->state = c;
	snprintf(db->path, sizeof(db->path), "clickhouse://%.*s",
		 (int)strcspn(rest, "?"), rest);
	if (!c)
		return sp_error_memory(err, db->path);
	r = sp_clickhouse_url_parse(rest, &c->url, err);
	if (r < 0) {
		/* What it is may be a secret. */
		snprintf(db->path, sizeof(db->path), "clickhouse");
		return r;
	}
	server.url = c->url.server;
	server.user = *c->url.user ? c->url.user : NULL;
	server.password = c->url.password;
	server.ca_file = *c->url.ca_file ? c->url.ca_file : NULL;
	server.timeout_s = c->url.timeout_s;
	return sp_http_new(&server, &c->http, err);
}

static void close_server(struct sp_fleet_db *db)
{
	struct clickhouse *c = state_of(db);

	if (!c)
		return;
	sp_http_free(c->http);
	for (unsigned int i = 0; i < SP_FLEET_TABLES; i++)
		free(c->rows[i].bytes);
	free(c->body);
	sp_clickhouse_url_done(&c->url);
	free(c);
	db->state = NULL;
}

/* The version that the database is of, 0: none; and how many tables it has. */
static int get_version(struct sp_fleet_db *db, uint64_t *ret_version,
		       uint64_t *ret_tables, struct sp_error *err)
{
	const struct sp_fleet_value name =
		sp_fleet_text(state_of(db)->url.database);
	struct sp_fleet_rows *rows;
	int r = ask_rows(db,
			 "SELECT name FROM system.tables WHERE database = ?",
			 &name, 1, &rows, err);

	*ret_version = *ret_tables = 0;
	if (r < 0)
		return r;
	while ((r = next_row(rows, err)) > 0) {
		const char *table = get_bytes(rows, 0, NULL);

		++*ret_tables;
		if (strncmp(table, SP_CLICKHOUSE_MARK,
			    sizeof(SP_CLICKHOUSE_MARK) - 1) == 0)
			*ret_version =
				strtoul(table + sizeof(SP_CLICKHOUSE_MARK) - 1,
					NULL, 10);
	}
	free_rows(rows);
	return r;
}

static int check_version(struct sp_fleet_db *db, uint64_t version,
			 struct sp_error *err)
{
	return version == SP_FLEET_VERSION
		       ? 0
		       : sp_error_set(err, -EINVAL, db->path,
				      "is a fleet database of version %" PRIu64
				      ", and this is sampleprof for version "
				      "%d: use the sampleprof that made it, or "
				      "make another from the profiles",
				      version, SP_FLEET_VERSION);
}

static int open_database(struct sp_fleet_db *db, const char *rest,
			 struct sp_error *err)
{
	uint64_t version, tables;
	int r = open_server(db, rest, err);

	if (r < 0)
		return r;
	r = get_version(db, &version, &tables, err);
	if (r >= 0 && !version)
		return sp_error_set(err, -ENOENT, db->path,
				    "is no fleet database: make one with "
				    "sampleprof fleet init");
	state_of(db)->has_database = true;
	return r < 0 ? r : check_version(db, version, err);
}

/* ---- the tables ---- */

static int create_table(struct sp_fleet_db *db, sp_clickhouse_write_fn *write,
			unsigned int i, struct sp_error *err)
{
	char *sql = NULL;
	size_t n;
	FILE *out = open_memstream(&sql, &n);
	int r;

	if (!out)
		return sp_error_memory(err, db->path);
	write(out, &state_of(db)->url, i);
	r = fclose(out) == 0 ? run_sql(db, sql, err)
			     : sp_error_memory(err, db->path);
	free(sql);
	return r;
}

static int make_tables(struct sp_fleet_db *db, struct sp_error *err)
{
	int r = create_table(db, sp_clickhouse_write_database, 0, err);

	for (unsigned int i = 0; i < SP_FLEET_TABLES && r >= 0; i++)
		r = create_table(db, sp_clickhouse_write_table, i, err);
	for (unsigned int i = 0;
	     i < SP_FLEET_TABLES && r >= 0 && *state_of(db)->url.cluster; i++)
		r = create_table(db, sp_clickhouse_write_distributed, i, err);
	return r < 0 ? r : create_table(db, sp_clickhouse_write_mark, 0, err);
}

/* An init that was cut is finished by another one. */
static int init_database(struct sp_fleet_db *db, const char *rest,
			 struct sp_error *err)
{
	uint64_t version, tables;
	int r = open_server(db, rest, err);

	if (r >= 0)
		r = get_version(db, &version, &tables, err);
	if (r < 0)
		return r;
	if (version)
		return check_version(db, version, err);
	if (tables > 2 * SP_FLEET_TABLES)
		return sp_error_set(err, -EINVAL, db->path,
				    "has tables of something else: give "
				    "another database");
	return make_tables(db, err);
}

/* ---- writing ---- */

static struct mark mark_rows(const struct sp_rowbinary *rows)
{
	return (struct mark){rows->n_bytes, rows->n};
}

/* What was put since is forgotten. */
static void cut_rows(struct sp_rowbinary *rows, struct mark mark)
{
	rows->n_bytes = mark.n_bytes;
	rows->n = mark.n;
}

/* To be freed; NULL: no memory. */
static char *insert_text(const struct sp_fleet_schema *table)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	fprintf(out, "INSERT INTO %s (", table->name);
	sp_fleet_write_columns(out, table);
	fputs(") FORMAT RowBinary", out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static int send_rows(struct sp_fleet_db *db, unsigned int i,
		     struct sp_error *err)
{
	struct clickhouse *c = state_of(db);
	char *statement;
	int r;

	if (!c->rows[i].n)
		return 0;
	statement = insert_text(&sp_fleet_schema[i]);
	r = statement
		    ? post_statement(db, statement,
				     "&insert_distributed_sync=1",
				     c->rows[i].bytes, c->rows[i].n_bytes, err)
		    : sp_error_memory(err, db->path);
	free(statement);
	if (r >= 0)
		r = finish_answer(db, err);
	c->is_broken |= r < 0;
	if (r < 0)
		return r;
	c->marks[i] = (struct mark){0, 0};
	cut_rows(&c->rows[i], c->marks[i]);
	return 0;
}

static void forget_rows(struct sp_fleet_db *db)
{
	struct clickhouse *c = state_of(db);

	for (unsigned int i = 0; i < SP_FLEET_TABLES; i++)
		cut_rows(&c->rows[i], (struct mark){0, 0});
	c->n_waiting = 0;
	c->is_broken = false;
}

/* Code first, and last what makes processes count. */
static int flush_tables(struct sp_fleet_db *db, struct sp_error *err)
{
	int r = 0;

	for (unsigned int i = SP_FLEET_TABLES; i-- > 0 && r >= 0;)
		r = send_rows(db, i, err);
	if (r < 0)
		forget_rows(db);
	state_of(db)->n_waiting = 0;
	return r;
}

static int begin_process(struct sp_fleet_db *db, uint64_t *ret_process,
			 struct sp_error *err)
{
	struct clickhouse *c = state_of(db);

	for (unsigned int i = 0; i < SP_FLEET_TABLES; i++)
		c->marks[i] = mark_rows(&c->rows[i]);
	if (getrandom(ret_process, sizeof(*ret_process), 0) !=
	    sizeof(*ret_process))
		return sp_error_set(err, -EIO, db->path,
				    "the system has no random numbers");
	/* SQL's other engines know 63 bits of it. */
	*ret_process >>= 1;
	return 0;
}

static int commit_process(struct sp_fleet_db *db, struct sp_error *err)
{
	struct clickhouse *c = state_of(db);
	bool has_rows = false;

	(void)err;
	for (unsigned int i = 0; i < SP_FLEET_TABLES; i++)
		has_rows |= c->rows[i].n > c->marks[i].n;
	c->n_waiting += has_rows;
	return 0;
}

static void rollback_process(struct sp_fleet_db *db)
{
	struct clickhouse *c = state_of(db);

	if (c->is_broken) {
		forget_rows(db);
		return;
	}
	for (unsigned int i = 0; i < SP_FLEET_TABLES; i++)
		cut_rows(&c->rows[i], c->marks[i]);
}

static size_t count_waiting(const struct sp_fleet_db *db)
{
	const struct clickhouse *c = db->state;

	return c->n_waiting;
}

static int put_row(struct sp_fleet_db *db, enum sp_fleet_table which,
		   const struct sp_fleet_value *row, struct sp_error *err)
{
	struct sp_rowbinary *rows = &state_of(db)->rows[which];

	if (sp_rowbinary_put(rows, &sp_fleet_schema[which], row) < 0)
		return sp_error_memory(err, db->path);
	return which != SP_FLEET_PROCESSES && (rows->n >= ROWS_MAX ||
					       rows->n_bytes >= BYTES_MAX)
		       ? send_rows(db, which, err)
		       : 0;
}

/* Rows stay: what replaces them is asked for first. */
static int erase_rows(struct sp_fleet_db *db, enum sp_fleet_table which,
		      const uint64_t *key, size_t n, struct sp_error *err)
{
	(void)db;
	(void)which;
	(void)key;
	(void)n;
	(void)err;
	return 0;
}

const struct sp_fleet_engine sp_fleet_clickhouse = {
	.scheme = "clickhouse://",
	.words =
		{
			[SP_FLEET_WORD_PROCESSES] =
				"(SELECT * FROM processes ORDER BY file_id,"
				" samples DESC, alloc_bytes DESC,"
				" duration_ns DESC, ending, process"
				" LIMIT 1 BY file_id)",
			[SP_FLEET_WORD_IN] = "GLOBAL IN",
			[SP_FLEET_WORD_REAL] = "Float64",
			[SP_FLEET_WORD_UNIQUE] = "DISTINCT",
		},
	.init = init_database,
	.open = open_database,
	.close = close_server,
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
	.waiting = count_waiting,
	.flush = flush_tables,
	.put = put_row,
	.erase = erase_rows,
};
