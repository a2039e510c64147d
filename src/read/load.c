/* SPDX-License-Identifier: MIT */
#include "read/load.h"

#include <errno.h>
#include <stdlib.h>

#include "base/saturate.h"
#include "read/loader.h"

/* So often is a file read: what has to be known before may turn out otherwise,
 * or its process discards samples meanwhile. */
#define TRIES 5

/* What a reading takes for granted, and finds out. */
struct guess {
	uint64_t duration_ns;  /* 0: what the status says */
	uint64_t period_bytes; /* the largest; 0: that of the header */
	bool is_unordered;     /* chunks are not in the order of time */
	bool is_wrong;         /* this reading is of no use */
};

/* All records of the file, or until it turns out to be in no order. */
static int take_all(struct sp_loader *l, sp_progress_fn *progress,
		    void *progress_arg, struct sp_error *err)
{
	struct sp_reader *r = l->reader;
	const uint64_t chunks = r->status.chunks * SP_FORMAT_CHUNK_BYTES;
	uint64_t last_chunk = 0;
	struct sp_decoded d;
	int code = 0;

	while (!code && !sp_stream_is_late(l->stream) &&
	       (code = sp_reader_next(r, &d, err)) > 0) {
		code = 0;
		if (r->chunk_index != last_chunk) {
			uint64_t total,
				done = sp_source_progress(
					&r->source,
					r->chunk_index * SP_FORMAT_CHUNK_BYTES,
					&total);

			last_chunk = r->chunk_index;
			/* What a library has not used yet is not there. */
			if (!r->source.unpacker && chunks && chunks < total)
				total = chunks;
			if (progress)
				progress(progress_arg,
					 done < total ? done : total, total);
			code = sp_stream_chunk(l->stream);
		}
		if (!code)
			code = sp_loader_take(l, &d);
	}
	return code;
}

/* Was everything as it was taken for?  Else the next reading knows. */
static void check_guess(struct sp_loader *l, struct guess *guess)
{
	struct sp_profile *p = l->p;
	uint64_t period_bytes = sp_stream_period_bytes(l->stream);

	sp_raise(&period_bytes, p->period_bytes);
	guess->is_wrong =
		(p->n_curve && p->duration_ns != guess->duration_ns) ||
		(p->peak && period_bytes != guess->period_bytes);
	p->is_unordered = guess->is_unordered;
	guess->duration_ns = p->duration_ns;
	guess->period_bytes = period_bytes;
}

/* The guess has to be right in what sinks need to know from the beginning. */
static struct sp_stream *begin_stream(struct sp_loader *l,
				      const struct sp_plan *plan,
				      struct guess *guess)
{
	const struct sp_reader *r = l->reader;
	struct sp_profile *p = l->p;

	if (!guess->duration_ns)
		guess->duration_ns = r->status.time_ns;
	if (!guess->period_bytes)
		guess->period_bytes = r->header.period_bytes;
	p->duration_ns = guess->duration_ns;
	p->period_bytes = guess->period_bytes;
	if (r->window.oldest)
		p->window_ns = r->window.time_ns;
	/* Segments of a ring are not in the order of time. */
	return sp_stream_new(p, plan,
			     guess->is_unordered || r->is_running ||
				     r->window.oldest);
}

static int load(struct sp_loader *l, const struct sp_plan *wanted,
		struct guess *guess, sp_progress_fn *progress,
		void *progress_arg, struct sp_error *err)
{
	struct sp_plan plan = *wanted;
	struct sp_reader *r = l->reader;
	int code = sp_reader_open(r, l->p->path, err);

	if (code)
		return code;
	sp_loader_begin(l);
	plan.every_sample |= r->is_running;
	l->stream = begin_stream(l, &plan, guess);
	code = l->stream ? take_all(l, progress, progress_arg, err) : -ENOMEM;
	if (!code && !sp_stream_is_late(l->stream))
		code = sp_loader_finish(l);
	/* It may also have turned out in the end. */
	if (!code && sp_stream_is_late(l->stream))
		guess->is_unordered = guess->is_wrong = true;
	else if (!code)
		check_guess(l, guess);
	if (!code && sp_reader_is_outdated(r))
		code = sp_error_set(err, -EAGAIN, l->p->path,
				    "old samples were discarded while it was "
				    "read: the process writes faster than "
				    "that; try again, or give it a larger "
				    "SAMPLEPROF_MAX_FILE");
	if (code == -ENOMEM)
		sp_error_set(err, code, l->p->path, "not enough memory");
	return code;
}

static int load_file(const char *path, const struct sp_plan *plan,
		     struct guess *guess, sp_progress_fn *progress,
		     void *progress_arg, struct sp_profile **ret_profile,
		     struct sp_error *err)
{
	struct sp_loader l = {.p = NULL};
	int code = -ENOMEM;

	l.p = calloc(1, sizeof(*l.p));
	l.reader = calloc(1, sizeof(*l.reader));
	if (l.p && l.reader) {
		l.p->path = path;
		code = load(&l, plan, guess, progress, progress_arg, err);
		sp_reader_close(l.reader);
	} else {
		sp_error_set(err, code, path, "not enough memory");
	}
	sp_loader_done(&l);
	sp_stream_destroy(l.stream);
	free(l.reader);
	if (code || guess->is_wrong)
		sp_profile_free(l.p);
	else
		*ret_profile = l.p;
	return code;
}

int sp_profile_read(const char *path, const struct sp_plan *plan,
		    sp_progress_fn *progress, void *progress_arg,
		    struct sp_profile **ret_profile, struct sp_error *err)
{
	struct guess guess = {.is_unordered = plan->is_unordered};
	int r = 0;

	for (int i = 0; i < TRIES; i++) {
		guess.is_wrong = false;
		r = load_file(path, plan, &guess, progress, progress_arg,
			      ret_profile, err);
		if (r != -EAGAIN && !guess.is_wrong)
			return r;
		if (guess.is_wrong && plan->tell)
			break; /* it was told of something else */
	}
	return r < 0 ? r
		     : sp_error_set(err, -EAGAIN, path,
				    "it changed while it was read: try again");
}

int sp_profile_load(const char *path, sp_progress_fn *progress,
		    void *progress_arg, struct sp_profile **ret_profile,
		    struct sp_error *err)
{
	const struct sp_plan plan = {.every_sample = true};

	return sp_profile_read(path, &plan, progress, progress_arg, ret_profile,
			       err);
}
