/* SPDX-License-Identifier: MIT */
#include "serve/push.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/patience.h"
#include "base/regular.h"
#include "control/ending.h"
#include "control/files.h"
#include "export/export.h"
#include "serve/deltas.h"
#include "serve/series.h"
#include "read/source.h"
#include "text/log.h"
#include "text/text.h"

#define SECOND_NS 1000000000ull
#define RETRY_MAX (60 * SECOND_NS)
/* Files are given up after so many failures one after the other: 31 s. */
#define TRIES_MAX 6
/* What servers take of one profile, by their default. */
#define ROWS_MAX 16000

#define SYMBOLS_BYTES  (64u << 20)
#define SYMBOLS_AGE_NS (3600 * SECOND_NS)

/* By its name; another file of the same process is another of these. */
struct file {
	char *path;
	struct stat seen;
	bool is_done; /* until it changes */
};

struct process {
	uint64_t file_id;
	struct sp_deltas *deltas;
	uint64_t until_unix_ns; /* what was allocated before was sent */
	uint64_t round;         /* in which it was looked at */
	uint64_t n_sent;
};

struct push {
	const struct sp_push_options *options;
	FILE *log;
	struct sp_receiver *server;
	struct sp_symbol_cache *symbols;
	struct file **files;
	size_t n_files, files_room;
	struct process **processes;
	size_t n_processes, processes_room;
	uint64_t round;
	unsigned int n_failures; /* one after the other */
	uint64_t n_sent, n_unknown, bytes_sent, bytes_unknown;
	bool cannot_look; /* said already */
	size_t first;     /* where a round begins: behind what failed last */
	/* What is wrong in the end: of what cannot be mended, and of a server
	 * that was away. */
	int code, away_code;
	struct sp_error err, away;
};

/* ---- files and processes ---- */

static struct file *file_of(struct push *w, const char *path)
{
	struct file *f;

	for (size_t i = 0; i < w->n_files; i++)
		if (strcmp(w->files[i]->path, path) == 0)
			return w->files[i];
	if (sp_array_reserve((void **)&w->files, &w->files_room, w->n_files,
			     sizeof(*w->files)))
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f || !(f->path = strdup(path))) {
		free(f);
		return NULL;
	}
	w->files[w->n_files++] = f;
	return f;
}

static struct process *process_of(struct push *w, uint64_t file_id)
{
	struct process *p;

	for (size_t i = 0; i < w->n_processes; i++)
		if (w->processes[i]->file_id == file_id)
			return w->processes[i];
	if (sp_array_reserve((void **)&w->processes, &w->processes_room,
			     w->n_processes, sizeof(*w->processes)))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p || !(p->deltas = sp_deltas_new())) {
		free(p);
		return NULL;
	}
	p->file_id = file_id;
	w->processes[w->n_processes++] = p;
	return p;
}

/* A mapped file may change without another time, but gets more blocks. */
static bool is_changed(const struct stat *a, const struct stat *b)
{
	return a->st_ino != b->st_ino || a->st_size != b->st_size ||
	       a->st_blocks != b->st_blocks ||
	       a->st_mtim.tv_sec != b->st_mtim.tv_sec ||
	       a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

/* ---- a delta ---- */

struct delta {
	struct process *process;
	size_t n_rows;
};

static size_t choose_rows(void *arg, const struct sp_profile *profile,
			  struct sp_row *rows, size_t n)
{
	struct delta *d = arg;

	d->n_rows = sp_deltas_take(d->process->deltas, profile, rows, n);
	return d->n_rows;
}

/* The delta as the server takes it, into memory. */
static int write_delta(struct push *w, const struct sp_profile *profile,
		       const struct sp_question *question, struct delta *delta,
		       struct sp_receiver_profile *ret, char **ret_text,
		       struct sp_error *err)
{
	const uint64_t from_ns = ret->from_unix_s * SECOND_NS;
	const struct sp_export_part part = {
		.start_unix_ns = from_ns,
		.duration_ns = ret->until_unix_s * SECOND_NS - from_ns,
		.choose = choose_rows,
		.arg = delta,
	};
	const struct sp_export_request request = {
		.format = sp_export_find(w->options->to.is_otlp ? "otlp"
								: "pprof"),
		.how = {.max_samples = ROWS_MAX, .part = &part},
		.question = *question,
		.symbols = {.cache = w->symbols},
	};
	FILE *out = open_memstream(ret_text, &ret->bytes);
	int r;

	if (!out)
		return sp_error_memory(err, NULL);
	r = sp_export_write(out, profile, &request, NULL, NULL, err);
	if (fclose(out) != 0 && r >= 0)
		r = sp_error_memory(err, NULL);
	ret->data = *ret_text;
	return r;
}

static void note_failure(struct push *w, const char *path, int code,
			 const struct sp_error *err)
{
	w->n_failures++;
	w->away_code = code;
	w->away = *err;
	w->away.file = NULL; /* it may be gone by then */
	sp_log(w->log, "cannot send %s to %s: %s", sp_text_base_name(path),
	       w->options->to.url, err->message);
}

/* True: it counts as sent. */
static bool note_answer(struct push *w, const char *path, struct process *p,
			enum sp_receiver_answer answer,
			const struct sp_error *err)
{
	const uint64_t bytes = sp_deltas_bytes(p->deltas);

	if (answer == SP_RECEIVER_NOT_TAKEN) {
		note_failure(w, path, -EIO, err);
		return false;
	}
	sp_deltas_commit(p->deltas);
	if (answer == SP_RECEIVER_TAKEN) {
		w->n_failures = 0;
		w->n_sent++;
		w->bytes_sent += bytes;
		if (!p->n_sent++)
			sp_log(w->log, "sending %s", sp_text_base_name(path));
		return true;
	}
	/* To send it again might count it twice. */
	w->code = -EIO;
	w->err = *err;
	w->n_unknown++;
	w->bytes_unknown += bytes;
	note_failure(w, path, -EIO, err);
	sp_log(w->log, "the server %s these %s bytes: they are not sent again",
	       answer == SP_RECEIVER_UNKNOWN ? "may have got"
					     : "did not keep all of",
	       sp_text_count(bytes).text);
	return true;
}

/* True: it was sent, or there is nothing. */
static bool send_delta(struct push *w, const char *path,
		       const struct sp_profile *profile,
		       const struct sp_question *question, struct process *p,
		       struct sp_error *err)
{
	struct delta delta = {.process = p};
	struct sp_receiver_profile part = {0};
	const uint64_t until_ns =
		profile->end == SP_PROFILE_END_RUNNING
			? sp_clock_unix_ns()
			: profile->start_unix_ns + profile->duration_ns;
	char *text = NULL, *name = sp_series_name(profile);
	bool is_sent = true;

	part.name = name;
	part.from_unix_s =
		(p->until_unix_ns ? p->until_unix_ns : profile->start_unix_ns) /
		SECOND_NS;
	part.until_unix_s = until_ns / SECOND_NS;
	if (part.until_unix_s <= part.from_unix_s)
		part.until_unix_s = part.from_unix_s + 1;
	if (!name ||
	    write_delta(w, profile, question, &delta, &part, &text, err) < 0) {
		if (!name)
			sp_error_memory(err, NULL);
		note_failure(w, path, -EIO, err);
		is_sent = false;
	} else if (delta.n_rows) {
		is_sent = note_answer(w, path, p,
				      sp_receiver_send(w->server, &part, err),
				      err);
		if (is_sent)
			p->until_unix_ns = until_ns;
	}
	free(text);
	free(name);
	return is_sent;
}

/* What was allocated before this began is not sent. */
static int skip_past(struct push *w, const struct sp_profile *profile,
		     const struct sp_question *question, struct process *p,
		     struct sp_error *err)
{
	struct delta delta = {.process = p};
	struct sp_receiver_profile part = {.until_unix_s = 1};
	char *text = NULL;
	int r = write_delta(w, profile, question, &delta, &part, &text, err);

	free(text);
	if (r >= 0)
		sp_deltas_commit(p->deltas);
	p->until_unix_ns = sp_clock_unix_ns();
	return r;
}

static void note_end(struct push *w, const struct file *f,
		     const struct sp_profile *profile, const struct process *p)
{
	const uint64_t missing = sp_deltas_missing(p->deltas, profile);

	if (missing)
		sp_log(w->log,
		       "%s ended; %" PRIu64 " bytes of it have no sample, and "
		       "were not sent",
		       sp_text_base_name(f->path), missing);
	else
		sp_log(w->log, "%s ended", sp_text_base_name(f->path));
}

static bool send_profile(struct push *w, struct file *f,
			 const struct sp_profile *profile,
			 const struct sp_question *question,
			 struct sp_error *err)
{
	struct process *p = process_of(w, profile->file_id);
	const bool is_past = w->options->dir && w->round == 1;

	if (!p) {
		sp_error_memory(err, NULL);
		note_failure(w, f->path, -ENOMEM, err);
		return false;
	}
	/* A copy of it has another name. */
	if (p->round == w->round)
		return f->is_done = true;
	p->round = w->round;
	if (is_past && skip_past(w, profile, question, p, err) < 0) {
		note_failure(w, f->path, -EIO, err);
		return false;
	}
	if (!is_past && !send_delta(w, f->path, profile, question, p, err))
		return false;
	f->is_done = profile->end != SP_PROFILE_END_RUNNING;
	if (f->is_done && !is_past)
		note_end(w, f, profile, p);
	return !w->n_failures;
}

/* The same: false ends the round. */
static bool send_file(struct push *w, const char *path)
{
	static const struct sp_load_needs needs = {.peak = false};
	struct file *f = file_of(w, path);
	struct sp_question question;
	struct sp_profile *profile;
	struct sp_error err = {0};
	struct stat now = {0};
	bool goes_on;
	int r;

	sp_question_init(&question);
	if (!f || (sp_regular_look_found(path, &now) == 0 && f->is_done &&
		   !is_changed(&f->seen, &now)))
		return true;
	f->seen = now;
	f->is_done = false;
	r = sp_load(&path, 1, &question, &needs, NULL, NULL, &profile, &err);
	if (r < 0) {
		f->is_done = true;
		w->code = r;
		w->err = err;
		w->err.file = NULL;
		sp_log(w->log, "cannot read %s: %s", sp_text_base_name(path),
		       err.message);
		return true;
	}
	goes_on = send_profile(w, f, profile, &question, &err);
	sp_profile_free(profile);
	return goes_on;
}

/* ---- all of them ---- */

static void send_list(struct push *w, const char *const *paths, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const size_t at = (w->first + i) % n;

		if (!send_file(w, paths[at])) {
			w->first = at + 1;
			break;
		}
		if (sp_ending_has_come())
			break;
	}
}

static void send_directory(struct push *w)
{
	struct sp_files files;
	struct sp_error err;

	if (sp_files_list(w->options->dir, 0, &files, &err) < 0) {
		if (!w->cannot_look)
			sp_log(w->log, "cannot look into %s: %s; trying again",
			       *w->options->dir ? w->options->dir : ".",
			       err.message);
		w->cannot_look = true;
		return;
	}
	w->cannot_look = false;
	send_list(w, (const char *const *)files.paths, files.n);
	sp_files_free(&files);
}

static bool is_all_done(const struct push *w)
{
	if (w->n_files < w->options->n_files)
		return false;
	for (size_t i = 0; i < w->n_files; i++)
		if (!w->files[i]->is_done)
			return false;
	return true;
}

static uint64_t wait_of(const struct push *w)
{
	uint64_t wait_ns = SECOND_NS;

	if (!w->n_failures)
		return w->options->interval_ns;
	for (unsigned int i = 1; i < w->n_failures && wait_ns < RETRY_MAX; i++)
		wait_ns *= 2;
	if (sp_receiver_wait_s(w->server) > wait_ns / SECOND_NS)
		wait_ns = sp_receiver_wait_s(w->server) > RETRY_MAX / SECOND_NS
				  ? RETRY_MAX
				  : sp_receiver_wait_s(w->server) * SECOND_NS;
	return wait_ns < RETRY_MAX ? wait_ns : RETRY_MAX;
}

static void push_until_end(struct push *w)
{
	do {
		w->round++;
		sp_symbol_cache_trim(w->symbols, sp_clock_unix_ns(),
				     SYMBOLS_AGE_NS);
		if (w->options->dir)
			send_directory(w);
		else
			send_list(w, w->options->files, w->options->n_files);
		if (w->options->dir && w->round == 1)
			sp_log(w->log, "following %s for %s, every %s",
			       *w->options->dir ? w->options->dir
						: "this directory",
			       w->options->to.url,
			       sp_text_duration(w->options->interval_ns).text);
		if (!w->options->dir &&
		    (is_all_done(w) || w->n_failures >= TRIES_MAX))
			break;
		if (w->n_failures && !sp_ending_has_come())
			sp_log(w->log, "next try in %s",
			       sp_text_duration(wait_of(w)).text);
	} while (!sp_ending_wait(wait_of(w)));
	sp_log(w->log,
	       "ended: %s profile%s sent (%s bytes allocated), %s without an "
	       "answer (%s)",
	       sp_text_count(w->n_sent).text, sp_text_plural(w->n_sent),
	       sp_text_count(w->bytes_sent).text,
	       sp_text_count(w->n_unknown).text,
	       sp_text_count(w->bytes_unknown).text);
}

static void push_done(struct push *w)
{
	for (size_t i = 0; i < w->n_files; i++) {
		free(w->files[i]->path);
		free(w->files[i]);
	}
	for (size_t i = 0; i < w->n_processes; i++) {
		sp_deltas_free(w->processes[i]->deltas);
		free(w->processes[i]);
	}
	free(w->files);
	free(w->processes);
	sp_symbol_cache_free(w->symbols);
	sp_receiver_free(w->server);
}

int sp_push_run(const struct sp_push_options *options, FILE *log,
		struct sp_error *err)
{
	struct push w = {.options = options, .log = log};
	int r = sp_receiver_new(&options->to, &w.server, err);

	w.symbols = sp_symbol_cache_new(SYMBOLS_BYTES);
	if (r >= 0 && !w.symbols)
		r = sp_error_memory(err, NULL);
	if (r >= 0) {
		sp_ending_block();
		/* While there is little memory. */
		sp_patience_begin();
		if (options->dir)
			sp_source_are_found();
		push_until_end(&w);
		/* Of a directory all that was wrong is in the log. */
		if (!options->dir && w.away_code && !is_all_done(&w)) {
			*err = w.away;
			r = w.away_code;
		} else if (!options->dir && w.code) {
			*err = w.err;
			r = w.code;
		}
	}
	push_done(&w);
	return r;
}
