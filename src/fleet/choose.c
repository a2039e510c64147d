/* SPDX-License-Identifier: MIT */
#include "fleet/choose.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "fleet/sql.h"

/* A question that is put together, with its values. */
struct asked {
	char sql[2048 + 2 * SP_FLEET_LABELS_MAX * 128];
	struct sp_fleet_value values[3 + 4 * SP_FLEET_LABELS_MAX];
	size_t n;
};

static void add_words(struct asked *q, const char *sql)
{
	strncat(q->sql, sql, sizeof(q->sql) - strlen(q->sql) - 1);
}

static void add_label(struct asked *q, const char *sql,
		      const struct sp_label *l)
{
	add_words(q, sql);
	q->values[q->n++] = sp_fleet_bytes(l->key, l->key_bytes);
	q->values[q->n++] = sp_fleet_bytes(l->value, l->value_bytes);
}

static void write_question(struct asked *q, const struct sp_fleet_filter *f)
{
	add_words(q, sp_fleet_choose_running);
	q->values[q->n++] = sp_fleet_number(f->from_unix_ns);
	q->values[q->n++] = sp_fleet_number(f->to_unix_ns);
	if (f->host) {
		add_words(q, sp_fleet_choose_host);
		q->values[q->n++] = sp_fleet_text(f->host);
	}
	for (size_t i = 0; i < f->n_labels; i++)
		add_label(q, sp_fleet_choose_label, &f->labels[i]);
	for (size_t i = 0; i < f->n_without; i++)
		add_label(q, sp_fleet_choose_without, &f->without[i]);
	add_words(q, sp_fleet_choose_order);
}

static int read_numbers(struct sp_fleet_db *db, struct sp_fleet_rows *rows,
			struct sp_fleet_chosen *to, struct sp_error *err)
{
	size_t room = 0, samples_room = 0;
	int r;

	while ((r = sp_fleet_next(rows, err)) > 0) {
		if (sp_array_reserve((void **)&to->processes, &room, to->n,
				     sizeof(*to->processes)) ||
		    sp_array_reserve((void **)&to->samples, &samples_room,
				     to->n, sizeof(*to->samples)))
			return sp_error_memory(err, db->path);
		to->samples[to->n] = sp_fleet_get(rows, 1);
		to->processes[to->n++] = sp_fleet_get(rows, 0);
	}
	return r;
}

static int fail_none(struct sp_fleet_db *db, const struct sp_fleet_filter *f,
		     uint64_t all, struct sp_error *err)
{
	/* The last one says enough. */
	const struct sp_label *l =
		f->n_labels ? &f->labels[f->n_labels - 1] : NULL;
	const int l_bytes = l ? (int)(l->value + l->value_bytes - l->key) : 0;

	if (!all)
		return sp_error_set(err, -ENOENT, db->path,
				    "has no process yet: sampleprof fleet add "
				    "FILE... puts profiles into it");
	return sp_error_set(err, -ENOENT, db->path,
			    "has %" PRIu64 " process%s, and none of them "
			    "matches%s%.*s%s%.80s",
			    all, all == 1 ? "" : "es", l ? " --label " : "",
			    l_bytes, l ? l->key : "", f->host ? " --host " : "",
			    f->host ? f->host : "");
}

static int fail_unmatched(struct sp_fleet_db *db,
			  const struct sp_fleet_filter *f, struct sp_error *err)
{
	struct sp_fleet_rows *rows;
	uint64_t all = 0;
	int r = sp_fleet_ask(db, sp_fleet_count_processes, NULL, 0, &rows, err);

	if (r < 0)
		return r;
	r = sp_fleet_next(rows, err);
	if (r > 0)
		all = sp_fleet_get(rows, 0);
	sp_fleet_rows_free(rows);
	return r < 0 ? r : fail_none(db, f, all, err);
}

int sp_fleet_choose(struct sp_fleet_db *db, const struct sp_fleet_filter *f,
		    struct sp_fleet_chosen *ret, struct sp_error *err)
{
	struct asked *q = calloc(1, sizeof(*q));
	struct sp_fleet_rows *rows = NULL;
	int r;

	*ret = (struct sp_fleet_chosen){.n = 0};
	if (!q)
		return sp_error_memory(err, db->path);
	write_question(q, f);
	r = sp_fleet_ask(db, q->sql, q->values, q->n, &rows, err);
	if (r >= 0)
		r = read_numbers(db, rows, ret, err);
	sp_fleet_rows_free(rows);
	free(q);
	if (r >= 0 && !ret->n)
		r = fail_unmatched(db, f, err);
	if (r < 0)
		sp_fleet_chosen_done(ret);
	return r;
}

void sp_fleet_chosen_done(struct sp_fleet_chosen *chosen)
{
	free(chosen->processes);
	free(chosen->samples);
	*chosen = (struct sp_fleet_chosen){.n = 0};
}
