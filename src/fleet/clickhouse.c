/* SPDX-License-Identifier: MIT */
/* The fleet on ClickHouse, by HTTP. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "fleet/clickhouse_url.h"
#include "fleet/engine.h"
#include "fleet/http.h"
#include "fleet/native.h"

/*
 * There are no transactions, and a row that was sent twice is there twice.  So
 * every attempt to add a file has a number of its own, drawn by chance, which
 * its rows bear, and which counts only once there is a row of `processes` with
 * it: that is sent last.  An attempt that failed leaves rows that nobody asks
 * for.  Of several rows of processes for one file, whoever sent them, readers
 * take the same one.
 */

/* So many rows and bytes of a table are sent together, at most. */
#define ROWS_MAX  65536u
#define BYTES_MAX ((size_t)8 << 20)

struct clickhouse {
	struct sp_clickhouse_url url;
	struct sp_http *http;
	struct sp_native_rows rows[SP_FLEET_TABLES];
	bool has_database; /* it is there: requests are about it */
};

struct rows {
	struct sp_fleet_rows base;
	struct sp_native_block *block;
	size_t row; /* 1 + its number in the block */
	char *body; /* of the request, which may still be on its way */
};

static struct clickhouse *state_of(struct sp_fleet_db *db)
{
	return db->state;
}

static int fail_memory(struct sp_fleet_db *db, struct sp_error *err)
{
	return sp_error_set(err, -ENOMEM, db->path, "not enough memory");
}

/* ---- requests ---- */

/* Begins one: `statement` (NULL: none) goes into its address, `body` behind. */
static int post(struct sp_fleet_db *db, const char *statement,
		const char *settings, const void *body, size_t n,
		struct sp_error *err)
{
	struct clickhouse *c = state_of(db);
	char *escaped = sp_http_escape(statement ? statement : "");
	char *query = NULL;
	int r;

	if (!escaped || asprintf(&query, "?max_query_size=16777216%s%s%s%s%s",
				 settings, c->has_database ? "&database=" : "",
				 c->has_database ? c->url.database : "",
				 statement ? "&query=" : "", escaped) < 0)
		query = NULL;
	free(escaped);
	if (!query)
		return fail_memory(db, err);
	r = sp_http_post(c->http, query, body, n, err);
	free(query);
	return r;
}

/* Waits for the end of an answer that says nothing. */
static int finish(struct sp_fleet_db *db, struct sp_error *err)
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
	const int r = post(db, NULL, "", sql, strlen(sql), err);

	return r < 0 ? r : finish(db, err);
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

	sp_native_free(rows->block);
	free(rows->body);
	free(rows);
}

/* The server sorts large answers on its disk. */
static int ask(struct sp_fleet_db *db, const char *sql,
	       const struct sp_fleet_value *values, size_t n,
	       struct sp_fleet_rows **ret, struct sp_error *err)
{
	struct rows *rows = calloc(1, sizeof(*rows));
	char *text = sp_fleet_render(db->engine, sql, values, write_scalar);
	int r;

	(void)n;
	if (!rows || !text ||
	    asprintf(&rows->body, "%s FORMAT Native", text) < 0) {
		free(rows);
		free(text);
		return fail_memory(db, err);
	}
	free(text);
	rows->base.db = db;
	r = post(db, NULL, "&max_bytes_before_external_sort=2000000000",
		 rows->body, strlen(rows->body), err);
	if (r < 0)
		free_rows(&rows->base);
	else
		*ret = &rows->base;
	return r;
}

static int next(struct sp_fleet_rows *base, struct sp_error *err)
{
	struct rows *rows = (struct rows *)base;
	int r;

	if (rows->block && rows->row < sp_native_rows_of(rows->block)) {
		rows->row++;
		return 1;
	}
	r = sp_native_next(&rows->block, state_of(base->db)->http,
			   base->db->path, err);
	rows->row = r > 0;
	return r;
}

static bool is_null(struct sp_fleet_rows *base, int i)
{
	const struct rows *rows = (const struct rows *)base;

	return sp_native_is_null(rows->block, rows->row - 1, i);
}

static uint64_t get(struct sp_fleet_rows *base, int i)
{
	const struct rows *rows = (const struct rows *)base;

	return sp_native_get(rows->block, rows->row - 1, i);
}

static double get_real(struct sp_fleet_rows *base, int i)
{
	const struct rows *rows = (const struct rows *)base;

	return sp_native_get_real(rows->block, rows->row - 1, i);
}

static const char *get_bytes(struct sp_fleet_rows *base, int i, size_t *ret_n)
{
	const struct rows *rows = (const struct rows *)base;

	return sp_native_get_bytes(rows->block, rows->row - 1, i, ret_n);
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
		return fail_memory(db, err);
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
		sp_native_done(&c->rows[i]);
	sp_clickhouse_url_done(&c->url);
	free(c);
	db->state = NULL;
}

/* A table of that name and no rows says which version the others are of. */
#define MARK "sampleprof_fleet_"

/* The version that the database is of, 0: none; and how many tables it has. */
static int get_version(struct sp_fleet_db *db, uint64_t *ret_version,
		       uint64_t *ret_tables, struct sp_error *err)
{
	const struct sp_fleet_value name =
		sp_fleet_text(state_of(db)->url.database);
	struct sp_fleet_rows *rows;
	int r = ask(db, "SELECT name FROM system.tables WHERE database = ?",
		    &name, 1, &rows, err);

	*ret_version = *ret_tables = 0;
	if (r < 0)
		return r;
	while ((r = next(rows, err)) > 0) {
		const char *table = get_bytes(rows, 0, NULL);

		++*ret_tables;
		if (strncmp(table, MARK, sizeof(MARK) - 1) == 0)
			*ret_version =
				strtoul(table + sizeof(MARK) - 1, NULL, 10);
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

/* Where that is not by their keys, and in a cluster by the first column: how
 * rows are sorted, which is what they are searched by, and which shard has
 * them.  Rows of code that are the same may become one. */
static const struct layout {
	const char *order, *shard;
	bool is_code;
	unsigned int granularity; /* rows that are read for one, at least */
} layouts[SP_FLEET_TABLES] = {
	[SP_FLEET_PROCESSES] = {"file_id, process", "file_id", false, 1024},
	[SP_FLEET_LABELS] = {"key, value, process", NULL, false, 0},
	[SP_FLEET_MODULES] = {"module, path, build_id", NULL, true, 256},
	[SP_FLEET_STACKS] = {"stack, flags, frames", NULL, true, 256},
	[SP_FLEET_NAMES] = {"module, offset, depth, source", "offset", true,
			    1024},
};

#define GRANULARITY 8192u

static void write_columns(FILE *out, const struct sp_fleet_schema *table)
{
	char type[32];

	for (size_t i = 0; i < table->n_columns; i++) {
		sp_native_type(&table->columns[i], type);
		fprintf(out, "%s%s %s", i ? ", " : " (", table->columns[i].name,
			type);
	}
	putc(')', out);
}

/* The table of one server, or of one shard with its replicas. */
static void write_table(FILE *out, const struct clickhouse *c, unsigned int i)
{
	const struct sp_fleet_schema *table = &sp_fleet_schema[i];
	const bool is_cluster = *c->url.cluster;

	fprintf(out, "CREATE TABLE IF NOT EXISTS %s.%s%s%s%s", c->url.database,
		table->name, is_cluster ? "_local" : "",
		is_cluster ? " ON CLUSTER " : "", c->url.cluster);
	write_columns(out, table);
	fprintf(out, " ENGINE = %s%sMergeTree", is_cluster ? "Replicated" : "",
		layouts[i].is_code ? "Replacing" : "");
	if (is_cluster)
		fprintf(out,
			"('/clickhouse/tables/{shard}/%s/%s', '{replica}')",
			c->url.database, table->name);
	else
		fputs("()", out);
	fputs(" ORDER BY (", out);
	if (layouts[i].order)
		fputs(layouts[i].order, out);
	for (size_t k = 0; k < table->n_key && !layouts[i].order; k++)
		fprintf(out, "%s%s", k ? ", " : "", table->columns[k].name);
	fprintf(out, ") SETTINGS index_granularity = %u",
		layouts[i].granularity ? layouts[i].granularity : GRANULARITY);
}

static void write_distributed(FILE *out, const struct clickhouse *c,
			      unsigned int i)
{
	const struct sp_fleet_schema *table = &sp_fleet_schema[i];

	fprintf(out, "CREATE TABLE IF NOT EXISTS %s.%s ON CLUSTER %s",
		c->url.database, table->name, c->url.cluster);
	write_columns(out, table);
	fprintf(out, " ENGINE = Distributed(%s, %s, %s_local, %s)",
		c->url.cluster, c->url.database, table->name,
		layouts[i].shard ? layouts[i].shard : table->columns[0].name);
}

static void write_on_cluster(FILE *out, const struct clickhouse *c,
			     const char *before, const char *behind)
{
	fprintf(out, "%s%s%s%s", before, *c->url.cluster ? " ON CLUSTER " : "",
		c->url.cluster, behind);
}

typedef void write_fn(FILE *out, const struct clickhouse *c, unsigned int i);

static void write_database(FILE *out, const struct clickhouse *c,
			   unsigned int i)
{
	(void)i;
	fprintf(out, "CREATE DATABASE IF NOT EXISTS %s", c->url.database);
	write_on_cluster(out, c, "", "");
}

static void write_mark(FILE *out, const struct clickhouse *c, unsigned int i)
{
	(void)i;
	fprintf(out, "CREATE TABLE IF NOT EXISTS %s." MARK "%d",
		c->url.database, SP_FLEET_VERSION);
	write_on_cluster(out, c, "", " (version UInt64) ENGINE = Null");
}

static int create(struct sp_fleet_db *db, write_fn *write, unsigned int i,
		  struct sp_error *err)
{
	char *sql = NULL;
	size_t n;
	FILE *out = open_memstream(&sql, &n);
	int r;

	if (!out)
		return fail_memory(db, err);
	write(out, state_of(db), i);
	r = fclose(out) == 0 ? run_sql(db, sql, err) : fail_memory(db, err);
	free(sql);
	return r;
}

static int make_tables(struct sp_fleet_db *db, struct sp_error *err)
{
	int r = create(db, write_database, 0, err);

	for (unsigned int i = 0; i < SP_FLEET_TABLES && r >= 0; i++)
		r = create(db, write_table, i, err);
	for (unsigned int i = 0;
	     i < SP_FLEET_TABLES && r >= 0 && *state_of(db)->url.cluster; i++)
		r = create(db, write_distributed, i, err);
	return r < 0 ? r : create(db, write_mark, 0, err);
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

static int send_rows(struct sp_fleet_db *db, unsigned int i,
		     struct sp_error *err)
{
	struct clickhouse *c = state_of(db);
	char statement[128];
	size_t n;
	void *block;
	int r;

	if (!c->rows[i].n)
		return 0;
	block = sp_native_block(&c->rows[i], &sp_fleet_schema[i], &n);
	if (!block)
		return fail_memory(db, err);
	snprintf(statement, sizeof(statement), "INSERT INTO %s FORMAT Native",
		 sp_fleet_schema[i].name);
	r = post(db, statement,
		 "&decompress=1&insert_distributed_sync=1"
		 "&http_native_compression_disable_checksumming_on_decompress"
		 "=1",
		 block, n, err);
	if (r >= 0)
		r = finish(db, err);
	free(block);
	if (r >= 0)
		sp_native_clear(&c->rows[i]);
	return r;
}

static void forget_rows(struct sp_fleet_db *db)
{
	struct clickhouse *c = state_of(db);

	for (unsigned int i = 0; i < SP_FLEET_TABLES; i++)
		sp_native_clear(&c->rows[i]);
	sp_fleet_forget(&db->known);
}

/* Code first, and last what makes processes count. */
static int flush(struct sp_fleet_db *db, struct sp_error *err)
{
	int r = 0;

	for (unsigned int i = SP_FLEET_TABLES; i-- > 0 && r >= 0;)
		r = send_rows(db, i, err);
	if (r < 0)
		forget_rows(db);
	return r;
}

static int begin(struct sp_fleet_db *db, uint64_t *ret_process,
		 struct sp_error *err)
{
	if (getrandom(ret_process, sizeof(*ret_process), 0) !=
	    sizeof(*ret_process))
		return sp_error_set(err, -EIO, db->path,
				    "the system has no random numbers");
	/* SQL's other engines know 63 bits of it. */
	*ret_process >>= 1;
	return 0;
}

static int commit(struct sp_fleet_db *db, struct sp_error *err)
{
	return flush(db, err);
}

static void rollback(struct sp_fleet_db *db)
{
	forget_rows(db);
}

static int put(struct sp_fleet_db *db, enum sp_fleet_table which,
	       const struct sp_fleet_value *row, struct sp_error *err)
{
	struct sp_native_rows *rows = &state_of(db)->rows[which];

	if (sp_native_put(rows, &sp_fleet_schema[which], row) < 0)
		return fail_memory(db, err);
	return which != SP_FLEET_PROCESSES &&
			       (rows->n >= ROWS_MAX || rows->bytes >= BYTES_MAX)
		       ? send_rows(db, which, err)
		       : 0;
}

/* Rows stay: what replaces them is asked for first. */
static int erase(struct sp_fleet_db *db, enum sp_fleet_table which,
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
	.ask = ask,
	.next = next,
	.rows_free = free_rows,
	.is_null = is_null,
	.get = get,
	.get_real = get_real,
	.get_bytes = get_bytes,
	.begin = begin,
	.commit = commit,
	.rollback = rollback,
	.put = put,
	.erase = erase,
};
