/* SPDX-License-Identifier: MIT */
#include "fleet/choose.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int apply_label(struct sp_fleet_db *db, enum sp_fleet_statement which,
		       const char *label, struct sp_error *err)
{
	sqlite3_stmt *s = sp_fleet_statement(db, which, err);
	const char *value = strchr(label, '=') + 1;

	if (s) {
		sqlite3_bind_text(s, 1, label, (int)(value - 1 - label),
				  SQLITE_STATIC);
		sp_fleet_bind_text(s, 2, value);
	}
	return sp_fleet_run(db, s, err);
}

static int apply_host(struct sp_fleet_db *db, const char *host,
		      struct sp_error *err)
{
	sqlite3_stmt *s = sp_fleet_statement(db, SP_FLEET_KEEP_HOST, err);

	if (s)
		sp_fleet_bind_text(s, 1, host);
	return sp_fleet_run(db, s, err);
}

static int apply_time(struct sp_fleet_db *db, const struct sp_fleet_filter *f,
		      struct sp_error *err)
{
	sqlite3_stmt *s = sp_fleet_statement(db, SP_FLEET_KEEP_TIME, err);

	if (s) {
		sp_fleet_bind(s, 1, f->from_unix_ns);
		sp_fleet_bind(s, 2, f->to_unix_ns);
	}
	return sp_fleet_run(db, s, err);
}

static int count_chosen(struct sp_fleet_db *db, uint64_t *ret_n,
			struct sp_error *err)
{
	sqlite3_stmt *s = sp_fleet_statement(db, SP_FLEET_COUNT_CHOSEN, err);
	int r = s ? sp_fleet_step(db, s, err) : -EIO;

	if (r <= 0)
		return r;
	*ret_n = sp_fleet_u64(s, 0);
	sqlite3_reset(s);
	return 0;
}

static int fail_none(struct sp_fleet_db *db, const struct sp_fleet_filter *f,
		     uint64_t all, struct sp_error *err)
{
	if (!all)
		return sp_error_set(err, -ENOENT, db->path,
				    "has no process yet: sampleprof fleet add "
				    "FILE... puts profiles into it");
	return sp_error_set(err, -ENOENT, db->path,
			    "has %" PRIu64 " process%s, and none of them "
			    "matches%s%.80s%s%.80s",
			    all, all == 1 ? "" : "es",
			    f->n_labels ? " --label " : "",
			    f->n_labels ? f->labels[f->n_labels - 1] : "",
			    f->host ? " --host " : "", f->host ? f->host : "");
}

int sp_fleet_choose(struct sp_fleet_db *db, const struct sp_fleet_filter *f,
		    uint64_t *ret_n, struct sp_error *err)
{
	uint64_t all = 0;
	int r = sp_fleet_exec(db, SP_FLEET_CHOOSE_NONE, err);

	if (r >= 0)
		r = sp_fleet_exec(db, SP_FLEET_CHOOSE_ALL, err);
	if (r >= 0)
		r = count_chosen(db, &all, err);
	for (size_t i = 0; i < f->n_labels && r >= 0; i++)
		r = apply_label(db, SP_FLEET_KEEP_LABEL, f->labels[i], err);
	for (size_t i = 0; i < f->n_without && r >= 0; i++)
		r = apply_label(db, SP_FLEET_DROP_LABEL, f->without[i], err);
	if (r >= 0 && f->host)
		r = apply_host(db, f->host, err);
	if (r >= 0)
		r = apply_time(db, f, err);
	if (r >= 0)
		r = count_chosen(db, ret_n, err);
	return r >= 0 && !*ret_n ? fail_none(db, f, all, err) : r;
}
