/* SPDX-License-Identifier: MIT */
#include "fleet/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/order.h"
#include "control/ending.h"
#include "fleet/batch.h"
#include "fleet/watched.h"
#include "text/log.h"
#include "text/text.h"

#define SECOND_NS 1000000000ull
#define RETRY_NS  SECOND_NS /* after a failure; twice that after the next */
#define RETRY_MAX (60 * SECOND_NS)
/* A state that did not change is looked at less and less often, down to: */
#define UNCHANGED_MAX_NS (3600 * SECOND_NS)

struct watch {
	const struct sp_watch_options *options;
	FILE *log;
	struct sp_watched_files files;
	struct sp_fleet_db db;
	bool is_away;            /* as this round found out */
	bool cannot_look;        /* said already */
	bool cannot_keep;        /* likewise */
	unsigned int n_failures; /* of the database, one after the other */
	uint64_t retry_ns;       /* not before that moment */
	uint64_t n_running;      /* states of this round that go without a line
				  */
	uint64_t n_added, n_updated, n_same, n_lost, bytes_lost;
};

static const char *state_text(enum sp_watched_state state)
{
	switch (state) {
	case SP_WATCHED_RUNNING:
		return "running";
	case SP_WATCHED_SILENT:
		return "no end recorded";
	case SP_WATCHED_ENDED:
		break;
	}
	return "ended";
}

/* ---- a file ---- */

static bool is_changed(const struct sp_watched *f)
{
	return f->bytes != f->sent_bytes ||
	       f->mtime.tv_sec != f->sent_mtime.tv_sec ||
	       f->mtime.tv_nsec != f->sent_mtime.tv_nsec;
}

/* A mapped file may change without another time, and while a process runs it
 * always has another: of such a file the moment decides.  An end does at once.
 */
static bool is_wanted(const struct watch *w, const struct sp_watched *f,
		      enum sp_watched_state *ret_state, uint64_t at_ns)
{
	if (f->is_refused || (f->is_sent && f->sent_state == SP_WATCHED_ENDED))
		if (!is_changed(f))
			return false;
	*ret_state = sp_watched_state(f);
	if (*ret_state == SP_WATCHED_RUNNING && !w->options->running_ns)
		return false;
	return !f->is_sent || *ret_state != f->sent_state ||
	       *ret_state == SP_WATCHED_ENDED || at_ns >= f->due_ns;
}

static void note_sent(struct watch *w, struct sp_watched *f,
		      enum sp_watched_state state, enum sp_fleet_added added)
{
	const uint64_t least_ns = w->options->running_ns
					  ? w->options->running_ns
					  : SP_WATCH_RUNNING_NS;
	const bool is_news = !f->is_sent || state != f->sent_state;

	if (added == SP_FLEET_ADDED || (added == SP_FLEET_UPDATED && is_news))
		sp_log(w->log, "%s %s (%s)",
		       added == SP_FLEET_ADDED ? "added" : "updated",
		       sp_watched_name(f), state_text(state));
	else if (added == SP_FLEET_UPDATED)
		w->n_running++;
	w->n_added += added == SP_FLEET_ADDED;
	w->n_updated += added == SP_FLEET_UPDATED;
	w->n_same += added == SP_FLEET_SAME;
	f->wait_ns = added == SP_FLEET_SAME ? 2 * f->wait_ns : 0;
	if (f->wait_ns < least_ns)
		f->wait_ns = least_ns;
	if (f->wait_ns > UNCHANGED_MAX_NS && f->wait_ns > least_ns)
		f->wait_ns = UNCHANGED_MAX_NS;
	f->due_ns = sp_clock_ns() + f->wait_ns;
	f->is_sent = true;
	f->is_refused = false;
	f->sent_state = state;
	f->n_failures = 0;
	if (f->waits || f->link)
		sp_watched_release(&w->files, f);
	f->waits = false;
}

static size_t count_waiting(const struct watch *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->files.n; i++)
		n += w->files.list[i]->waits;
	return n;
}

static void note_away(struct watch *w, struct sp_watched *f,
		      const struct sp_error *err)
{
	uint64_t wait_ns = RETRY_NS << (w->n_failures < 6 ? w->n_failures : 6);
	char text[600], next[96] = "";

	if (wait_ns > RETRY_MAX)
		wait_ns = RETRY_MAX;
	w->n_failures++;
	w->retry_ns = sp_clock_ns() + wait_ns;
	f->n_failures++;
	sp_error_describe(err, text, sizeof(text));
	/* At the end there is none. */
	if (!sp_ending_has_come())
		snprintf(next, sizeof(next), "; next try in %.40s",
			 sp_text_duration(wait_ns).text);
	sp_log(w->log, "cannot send %s: %s%s, %zu waiting", sp_watched_name(f),
	       text, next, count_waiting(w));
}

static void note_refused(struct watch *w, struct sp_watched *f,
			 enum sp_watched_state state,
			 const struct sp_error *err)
{
	/* The next look reports files that were deleted meanwhile. */
	if (state == f->sent_state && f->is_refused)
		return;
	sp_log(w->log, "cannot add %s: %s; next try when it changes",
	       sp_watched_name(f), err->message);
	f->is_refused = true;
	f->sent_state = state;
	f->waits = false;
}

/* ---- all files ---- */

struct task {
	struct sp_watched *file;
	enum sp_watched_state state;
};

/* Taken before the file is read, so that later data are new. */
static void note_state(struct sp_watched *f)
{
	f->read_mtime = f->mtime;
	f->read_bytes = f->bytes;
}

static void settle_file(struct watch *w, struct sp_watched *f)
{
	w->n_failures = 0;
	f->sent_mtime = f->read_mtime;
	f->sent_bytes = f->read_bytes;
}

static void note_done(void *arg, void *item, enum sp_fleet_added added)
{
	const struct task *t = item;

	settle_file(arg, t->file);
	note_sent(arg, t->file, t->state, added);
}

/* Of files that wait for each other the first speaks. */
static void note_failed(void *arg, void *item, int code,
			const struct sp_error *err)
{
	const struct task *t = item;
	struct watch *w = arg;

	if (!err->file || strcmp(err->file, t->file->path) != 0) {
		if (!w->is_away)
			note_away(w, t->file, err);
		w->is_away = true;
		return;
	}
	settle_file(w, t->file);
	if (code != -ENOENT)
		note_refused(w, t->file, t->state, err);
}

/* Fewest failures first, then the oldest. */
SP_ORDER(compare_tasks, struct task,
	 SP_UP(file->n_failures) || SP_UP(file->mtime.tv_sec) ||
		 SP_BY(strcmp(x->file->path, y->file->path)));

/* The files to be sent; NULL without memory. */
static struct task *list_tasks(struct watch *w, size_t *ret_n)
{
	const uint64_t at_ns = sp_clock_ns();
	struct task *tasks = calloc(w->files.n + 1, sizeof(*tasks));
	size_t n = 0;

	for (size_t i = 0; tasks && i < w->files.n; i++) {
		struct sp_watched *f = w->files.list[i];

		f->waits = is_wanted(w, f, &tasks[n].state, at_ns);
		tasks[n].file = f;
		n += f->waits;
	}
	if (n)
		qsort(tasks, n, sizeof(*tasks), compare_tasks);
	*ret_n = n;
	return tasks;
}

/* True: this ends.  After a failure one is sent at a time, lest one that the
 * database cannot take holds up the others. */
static bool send_tasks(struct watch *w, struct task *tasks, size_t n)
{
	const struct sp_symbolizer_options symbols = {.debug_path = NULL};
	struct sp_fleet_batch batch = {.db = &w->db,
				       .done = note_done,
				       .failed = note_failed,
				       .arg = w};
	struct sp_error err = {0};
	bool ends = false;

	w->is_away = false;
	if (sp_fleet_db_open(&w->db, w->options->url, &err) < 0) {
		note_away(w, tasks->file, &err);
		n = 0;
	}
	for (size_t i = 0; i < n && !ends && !w->is_away; i++) {
		note_state(tasks[i].file);
		sp_fleet_batch_add(&batch, tasks[i].file->path, &symbols,
				   &tasks[i], &err);
		if (w->n_failures)
			sp_fleet_batch_flush(&batch, &err);
		ends = sp_ending_has_come();
	}
	if (n)
		sp_fleet_batch_flush(&batch, &err);
	sp_fleet_db_close(&w->db);
	return ends;
}

/* True: this ends. */
static bool send_files(struct watch *w)
{
	struct task *tasks;
	bool ends = false;
	size_t n;

	tasks = list_tasks(w, &n);
	if (!tasks) {
		sp_log(w->log, "not enough memory");
		return false;
	}
	w->n_running = 0;
	if (n && sp_clock_ns() >= w->retry_ns)
		ends = send_tasks(w, tasks, n);
	if (w->n_running)
		sp_log(w->log,
		       "updated %" PRIu64 " process%s that ha%s not ended",
		       w->n_running, w->n_running == 1 ? "" : "es",
		       w->n_running == 1 ? "s" : "ve");
	free(tasks);
	return ends;
}

static void keep_files(struct watch *w)
{
	struct sp_error err;

	for (size_t i = 0; i < w->files.n; i++) {
		struct sp_watched *f = w->files.list[i];

		if (!f->waits || f->link ||
		    sp_watched_keep(&w->files, f, &err) >= 0)
			continue;
		if (!w->cannot_keep)
			sp_log(w->log,
			       "cannot keep %s: %s; it is lost if it is "
			       "deleted before it is sent",
			       sp_watched_name(f), err.message);
		w->cannot_keep = true;
	}
}

static void note_gone(void *arg, const struct sp_watched *f)
{
	struct watch *w = arg;

	if (f->is_refused || (f->is_sent && !f->waits))
		return;
	sp_log(w->log, "%s was deleted before it was sent%s",
	       sp_watched_name(f),
	       f->is_sent ? "; an earlier state of it is there"
			  : "; it is lost");
	w->n_lost += !f->is_sent;
	w->bytes_lost += f->is_sent ? 0 : f->disk_bytes;
}

static void note_dropped(void *arg, const struct sp_watched *f)
{
	struct watch *w = arg;

	sp_log(w->log,
	       "dropped %s (%s): the backlog is above its limit of %s%s",
	       sp_watched_name(f), sp_text_size(f->disk_bytes).text,
	       sp_text_size(w->options->backlog_bytes).text,
	       f->is_sent ? "; an earlier state of it is there"
			  : "; it is lost");
	w->n_lost += !f->is_sent;
	w->bytes_lost += f->is_sent ? 0 : f->disk_bytes;
}

/* A round.  True: this ends. */
static bool look_and_send(struct watch *w)
{
	struct sp_error err;
	bool ends;

	if (sp_watched_look(&w->files, note_gone, w, &err) < 0) {
		if (!w->cannot_look)
			sp_log(w->log, "cannot look into %s: %s; trying again",
			       *w->options->dir ? w->options->dir : ".",
			       err.message);
		w->cannot_look = true;
		return false;
	}
	w->cannot_look = false;
	ends = send_files(w);
	/* Only a database that is away leaves files waiting, and an end. */
	if (w->n_failures)
		keep_files(w);
	sp_watched_limit(&w->files, note_dropped, w);
	return ends;
}

static void watch_until_end(struct watch *w)
{
	uint64_t wait_ns, at_ns;

	while (!look_and_send(w)) {
		wait_ns = w->options->interval_ns;
		at_ns = sp_clock_ns();
		if (w->n_failures && w->retry_ns < at_ns + wait_ns)
			wait_ns = w->retry_ns > at_ns ? w->retry_ns - at_ns : 0;
		if (sp_ending_wait(wait_ns))
			break;
	}
}

static void say_end(const struct watch *w)
{
	sp_log(w->log,
	       "ended: %" PRIu64 " added, %" PRIu64 " updated, %" PRIu64
	       " there already, %zu waiting, %" PRIu64 " lost (%s)",
	       w->n_added, w->n_updated, w->n_same, count_waiting(w), w->n_lost,
	       sp_text_size(w->bytes_lost).text);
}

/* Errors that waiting does not mend.  A database that cannot be reached is
 * none. */
static int check_database(struct watch *w, struct sp_error *err)
{
	struct sp_error away;
	int r = sp_fleet_db_open(&w->db, w->options->url, &away);

	sp_fleet_db_close(&w->db);
	if (r != -EINVAL && r != -ENOENT)
		return 0;
	*err = away;
	/* It borrows the path. */
	if (err->file == w->db.path)
		err->file = w->options->url;
	return r;
}

int sp_watch_run(const struct sp_watch_options *options, FILE *log,
		 struct sp_error *err)
{
	struct watch w = {.options = options, .log = log};
	int r = sp_watched_init(&w.files, options->dir, options->backlog_bytes,
				err);

	if (r >= 0)
		r = sp_watched_look(&w.files, note_gone, &w, err);
	if (r >= 0) {
		sp_ending_block();
		r = check_database(&w, err);
	}
	if (r >= 0) {
		sp_log(w.log, "watching %s every %s, for %s",
		       *options->dir ? options->dir : "this directory",
		       sp_text_duration(options->interval_ns).text,
		       options->url);
		watch_until_end(&w);
		say_end(&w);
	}
	sp_watched_done(&w.files);
	return r;
}
