/* SPDX-License-Identifier: MIT */
/* What is sent to ClickHouse, and when: more rows than a request takes, files
 * that wait for each other, requests that fail, tables that have a column
 * more. */
#include <errno.h>
#include <zlib.h>

#include "fleet/db.h"
#include "fleet/http.h"
#include "fleet/rowbinary.h"
#include "fleet/sql.h"
#include "support/http_of_bytes.h"
#include "support/test.h"

/* As fleet/clickhouse.c has them. */
#define ROWS_MAX  65536u
#define BYTES_MAX (8u << 20)

/* ---- a server that takes everything, but for one request ---- */

static const char version[] = "\x12sampleprof_fleet_4";

/* What it was sent, a request each. */
static struct request {
	char table[32];
	size_t rows;
	uint64_t first, last; /* first columns but one: processes have one */
	uint64_t process;     /* of all rows; 0: they differ */
} requests[32];
static size_t n_requests, failing; /* 1 + the number of that */

int sp_http_new(const struct sp_http_server *server, struct sp_http **ret,
		struct sp_error *err)
{
	(void)err;
	assert_string_equal(server->url, "http://host:8123/");
	*ret = calloc(1, sizeof(**ret));
	assert_non_null(*ret);
	return 0;
}

void sp_http_free(struct sp_http *http)
{
	free(http);
}

void sp_http_stop(struct sp_http *http)
{
	(void)http;
}

int sp_http_expect(struct sp_http *http, const char *type, struct sp_error *err)
{
	(void)http;
	(void)err;
	assert_string_equal(type, "application/octet-stream");
	return 0;
}

char *sp_http_escape(const char *text)
{
	return strdup(text);
}

/* Numbers of samples follow each other. */
static void take_row(struct request *to, const struct sp_rowbinary_row *row)
{
	const uint64_t process = row->values[0].bits;

	to->last = row->values[1].bits;
	if (!to->rows) {
		to->first = to->last;
		to->process = process;
	}
	if (process != to->process)
		to->process = 0;
	if (strcmp(to->table, "samples") == 0 && to->process)
		assert_int_equal(to->last, to->first + to->rows);
	to->rows++;
}

/* What gzip made it of. */
static void *unpack(const void *body, size_t n, size_t *ret_n)
{
	static unsigned char bytes[16 << 20];
	z_stream z = {.next_in = (Bytef *)(uintptr_t)body,
		      .avail_in = (uInt)n,
		      .next_out = bytes,
		      .avail_out = sizeof(bytes)};

	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	*ret_n = z.total_out;
	inflateEnd(&z);
	return bytes;
}

/* Of a table here, which has one of its own in front: those that are named, or
 * all of it. */
static size_t columns_of(const char *table, const char *named, size_t n,
			 struct sp_fleet_column *ret)
{
	const bool is_all = !n || *named == '*';
	char *question;

	ret[0] = (struct sp_fleet_column){"own", SP_FLEET_U64, false};
	assert_true(asprintf(&question, "SELECT %.*s FROM %s",
			     is_all ? 1 : (int)n, is_all ? "*" : named,
			     table) > 0);
	n = is_all + sp_rowbinary_columns(question, ret + is_all);
	free(question);
	return n;
}

/* `named`: the columns, and what is behind them. */
static void take_rows(struct request *to, const char *named, const void *body,
		      size_t n)
{
	struct sp_rowbinary_row row = {.n_text = 0};
	struct sp_http http = {.at = 0};
	struct sp_error err;
	int r;

	row.n_columns = columns_of(to->table, named + (*named == '('),
				   *named == '(' ? strcspn(named, ")") - 1 : 0,
				   row.columns);
	http.bytes = unpack(body, n, &http.n);
	while ((r = sp_rowbinary_next(&row, &http, "server", &err)) > 0)
		take_row(to, &row);
	assert_int_equal(r, 0);
	free(row.text);
}

/* Which version it is of; or one row, the values of which are what their
 * columns are in the schema: 1 for the first. */
static void answer(struct sp_http *http, const char *sql, size_t n)
{
	static const char select[] = "SELECT ";
	static struct sp_rowbinary rows;
	struct sp_fleet_column columns[SP_FLEET_COLUMNS_MAX];
	struct sp_fleet_value row[SP_FLEET_COLUMNS_MAX];
	struct sp_fleet_schema schema = {.columns = columns};
	const struct sp_fleet_schema *table;
	char *text = strndup(sql, n);
	const char *named = text + sizeof(select) - 1;
	const char *end = strstr(text, " FROM ");

	assert_non_null(end);
	assert_int_equal(strncmp(text, select, sizeof(select) - 1), 0);
	table = sp_fleet_table_asked(text);
	if (!table) {
		free(text);
		http->bytes = (const unsigned char *)version;
		http->n = sizeof(version) - 1;
		return;
	}
	schema.n_columns =
		columns_of(table->name, named, (size_t)(end - named), columns);
	for (size_t i = 0; i < schema.n_columns; i++) {
		row[i] = sp_fleet_number(0);
		for (size_t k = 0; k < table->n_columns; k++)
			if (strcmp(columns[i].name, table->columns[k].name) ==
			    0)
				row[i] = sp_fleet_number(k + 1);
	}
	rows.n_bytes = 0;
	assert_int_equal(sp_rowbinary_put(&rows, &schema, row), 0);
	http->bytes = rows.bytes;
	http->n = rows.n_bytes;
	free(text);
}

int sp_http_post(struct sp_http *http, const char *query, const void *body,
		 size_t n, struct sp_error *err)
{
	static const char insert[] = "&query=INSERT INTO ";
	const char *at = strstr(query, insert);
	struct request *to = &requests[n_requests];

	*http = (struct sp_http){.n = 0};
	if (!at) {
		answer(http, unpack(body, n, &n), n);
		return 0;
	}
	at += sizeof(insert) - 1;
	assert_true(n_requests < sizeof(requests) / sizeof(*requests));
	*to = (struct request){.rows = 0};
	assert_int_equal(sscanf(at, "%31s", to->table), 1);
	take_rows(to, at + strlen(to->table) + 1, body, n);
	return ++n_requests == failing
		       ? sp_error_set(err, -EIO, "host", "it was cut")
		       : 0;
}

static void check_request(size_t i, const char *table, size_t rows,
			  uint64_t process)
{
	assert_true(i < n_requests);
	assert_string_equal(requests[i].table, table);
	assert_int_equal(requests[i].rows, rows);
	assert_int_equal(requests[i].process, process);
}

/* ---- files ---- */

static struct sp_fleet_db db;
static struct sp_error err;

static void open_db(size_t fail_at)
{
	n_requests = 0;
	failing = fail_at;
	assert_int_equal(sp_fleet_db_open(&db, "clickhouse://host/d", &err), 0);
}

static uint64_t begin_file(void)
{
	uint64_t process;

	assert_int_equal(sp_fleet_begin(&db, &process, &err), 0);
	assert_true(process);
	return process;
}

/* The rest of a row is 0. */
static int put(enum sp_fleet_table table, uint64_t process, uint64_t second)
{
	struct sp_fleet_value row[SP_FLEET_COLUMNS_MAX];
	const struct sp_fleet_schema *schema = &sp_fleet_schema[table];

	for (size_t i = 0; i < schema->n_columns; i++)
		row[i] = schema->columns[i].type == SP_FLEET_TEXT ||
					 schema->columns[i].type ==
						 SP_FLEET_BYTES
				 ? sp_fleet_text("")
			 : schema->columns[i].type == SP_FLEET_REAL
				 ? sp_fleet_real(0)
				 : sp_fleet_number(0);
	row[0] = sp_fleet_number(process);
	row[1] = sp_fleet_number(second);
	return sp_fleet_put(&db, table, row, &err);
}

/* The number of the first that could not be put, or n. */
static size_t put_samples(uint64_t process, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (put(SP_FLEET_SAMPLES, process, i) < 0)
			return i;
	return n;
}

static void end_file(uint64_t process, uint64_t file)
{
	assert_int_equal(put(SP_FLEET_PROCESSES, process, file), 0);
	assert_int_equal(sp_fleet_commit(&db, file, &err), 0);
}

/* Rows that are as many as a request takes go at once; what makes them count
 * goes last. */
TEST(many_rows)
{
	const size_t n = 2 * ROWS_MAX + 10;
	uint64_t process;

	open_db(0);
	process = begin_file();
	assert_int_equal(put_samples(process, ROWS_MAX - 1), ROWS_MAX - 1);
	assert_int_equal(n_requests, 0);
	for (size_t i = ROWS_MAX - 1; i < n; i++)
		assert_int_equal(put(SP_FLEET_SAMPLES, process, i), 0);
	assert_int_equal(n_requests, 2);
	end_file(process, 7);
	assert_int_equal(sp_fleet_waiting(&db), 1);
	assert_int_equal(n_requests, 2);
	assert_int_equal(sp_fleet_flush(&db, &err), 0);
	assert_int_equal(n_requests, 4);
	check_request(0, "samples", ROWS_MAX, process);
	check_request(1, "samples", ROWS_MAX, process);
	check_request(2, "samples", 10, process);
	check_request(3, "processes", 1, process);
	assert_int_equal(requests[1].first, ROWS_MAX);
	assert_int_equal(requests[2].last, n - 1);
	/* Nothing of it is sent again. */
	assert_int_equal(sp_fleet_flush(&db, &err), 0);
	assert_int_equal(n_requests, 4);
	sp_fleet_db_close(&db);
}

/* Likewise bytes. */
TEST(many_bytes)
{
	static unsigned char frames[1 << 20];
	uint64_t process;

	open_db(0);
	process = begin_file();
	for (uint64_t i = 0; i < BYTES_MAX / sizeof(frames); i++) {
		const struct sp_fleet_value row[] = {
			sp_fleet_number(process), sp_fleet_number(i),
			sp_fleet_bytes(frames, sizeof(frames))};

		assert_int_equal(n_requests, 0);
		assert_int_equal(sp_fleet_put(&db, SP_FLEET_STACKS, row, &err),
				 0);
	}
	check_request(0, "stacks", BYTES_MAX / sizeof(frames), process);
	sp_fleet_db_close(&db);
}

/* A file that is given up does not take along one that waits, of which some
 * rows were sent with its own. */
TEST(one_gives_up)
{
	uint64_t whole, other;

	open_db(0);
	whole = begin_file();
	assert_int_equal(put_samples(whole, 10), 10);
	end_file(whole, 7);
	other = begin_file();
	assert_true(other != whole);
	assert_int_equal(put_samples(other, ROWS_MAX), ROWS_MAX);
	check_request(0, "samples", ROWS_MAX, 0);
	sp_fleet_rollback(&db);
	assert_int_equal(sp_fleet_waiting(&db), 1);
	assert_int_equal(sp_fleet_flush(&db, &err), 0);
	assert_int_equal(n_requests, 2);
	check_request(1, "processes", 1, whole);
	sp_fleet_db_close(&db);
}

/* Where a request fails nobody knows what of it is there: no row of any file
 * that waited is sent under its number again. */
TEST(a_request_fails)
{
	for (size_t at = 1; at <= 4; at++) {
		uint64_t first, second, third;
		const size_t n = ROWS_MAX + 5;
		size_t before;

		open_db(at);
		first = begin_file();
		assert_int_equal(put_samples(first, 20), 20);
		end_file(first, 7);
		second = begin_file();
		if (at == 1) {
			assert_int_equal(put_samples(second, n), ROWS_MAX - 21);
			sp_fleet_rollback(&db);
		} else {
			assert_int_equal(put_samples(second, n), n);
			assert_int_equal(put(SP_FLEET_STACKS, 1, 0), 0);
			end_file(second, 8);
			assert_int_equal(sp_fleet_flush(&db, &err), -EIO);
			assert_string_equal(requests[at - 1].table,
					    at == 2   ? "stacks"
					    : at == 3 ? "samples"
						      : "processes");
		}
		before = n_requests;
		assert_int_equal(before, at);
		assert_int_equal(sp_fleet_waiting(&db), 0);
		assert_int_equal(sp_fleet_flush(&db, &err), 0);
		assert_int_equal(n_requests, before);
		third = begin_file();
		assert_true(third != first && third != second);
		assert_int_equal(put_samples(third, 3), 3);
		end_file(third, 7);
		assert_int_equal(sp_fleet_flush(&db, &err), 0);
		assert_int_equal(n_requests, before + 2);
		check_request(before, "samples", 3, third);
		check_request(before + 1, "processes", 1, third);
		sp_fleet_db_close(&db);
	}
}

/* Somebody has given the table a column in front of those of the schema: what
 * is sent (in all tests) and what is asked names its own ones. */
TEST(tables_with_more)
{
	const uint64_t one = 1;
	const struct sp_fleet_value list = sp_fleet_list(&one, 1);
	struct sp_fleet_rows *rows;

	open_db(0);
	assert_int_equal(
		sp_fleet_ask(&db, sp_fleet_get_samples, &list, 1, &rows, &err),
		0);
	assert_int_equal(sp_fleet_next(rows, &err), 1);
	for (int i = 0; i < 12; i++)
		assert_int_equal(sp_fleet_get(rows, i), i + 1);
	assert_int_equal(sp_fleet_get(rows, 12), 13);
	assert_int_equal(sp_fleet_next(rows, &err), 0);
	sp_fleet_rows_free(rows);
	sp_fleet_db_close(&db);
}

TEST_MAIN(NULL, NULL)
