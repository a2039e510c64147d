/* SPDX-License-Identifier: MIT */
/*
 * Files as one stream: each gives its own events in the order of time, and the
 * file whose next event is the earliest goes on.  A file is open from its start
 * to its end, so that memory is proportional to files that overlap.
 */
#include "read/load.h"

#include <errno.h>
#include <stdlib.h>

#include "base/patience.h"
#include "base/saturate.h"
#include "read/input.h"
#include "read/join.h"
#include "read/order.h"

/* So often are files read: what has to be known before may turn out otherwise,
 * or a process discards samples meanwhile. */
#define TRIES 5

/* A file takes up to a fifth of a MiB while it is open, a compressed one up to
 * 8 MiB as we write them.  Where more overlap, every sample is kept, and one
 * file is read after the other. */
#define OPEN_MAX 64

/* Of more than 1 MiB that much memory is made that the child which looks for
 * what they name begins before. */
#define MANY_BLOCKS 2048u

/* Files that are read together. */
struct reading {
	struct sp_input *inputs;
	size_t n;
	struct sp_plan plan;
	struct sp_profile *p;
	struct sp_sinks sinks;
	struct sp_join join;    /* of several */
	struct sp_input **heap; /* those that are not finished, by `when` */
	size_t n_heap, n_open;
	/* What is taken for granted, and found out. */
	uint64_t duration_ns;  /* 0: what the files' status says */
	uint64_t period_bytes; /* the largest; 0: that of the headers */
	bool overlaps_much;    /* more than OPEN_MAX files */
	bool is_wrong;         /* this time was of no use */
	sp_progress_fn *progress;
	void *progress_arg;
	uint64_t shown;
	size_t n_finished;
};

/* ---- which file goes on ---- */

static bool is_before(const struct sp_input *a, const struct sp_input *b)
{
	return a->when < b->when || (a->when == b->when && a->part < b->part);
}

static void sift_down(struct reading *r, size_t i)
{
	struct sp_input *in = r->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= r->n_heap)
			break;
		if (child + 1 < r->n_heap &&
		    is_before(r->heap[child + 1], r->heap[child]))
			child++;
		if (!is_before(r->heap[child], in))
			break;
		r->heap[i] = r->heap[child];
		i = child;
	}
	r->heap[i] = in;
}

/* The first may pass what is no later than the events of the others. */
static uint64_t limit_of(const struct reading *r)
{
	uint64_t limit = UINT64_MAX;

	for (size_t i = 1; i < 3 && i < r->n_heap; i++)
		if (r->heap[i]->when < limit)
			limit = r->heap[i]->when + 1;
	return limit;
}

/* ---- one reading ---- */

#define PER_FILE 10000u

/* In bytes; of several files a share of each, for how long they all are is not
 * known. */
static void show_progress(struct reading *r, struct sp_input *in)
{
	uint64_t total, done = sp_input_progress(in, &total);

	if (r->n > 1) {
		const double share = total ? (double)done / (double)total : 1;

		done = (uint64_t)(share * PER_FILE);
		total = r->n * PER_FILE;
	}
	if (done <= in->shown)
		return;
	r->shown += done - in->shown;
	in->shown = done;
	if (r->progress)
		r->progress(r->progress_arg, r->shown, total);
}

/* Does it end while others go on? */
static void find_stop(const struct reading *r, struct sp_input *in)
{
	in->when = UINT64_MAX;
	if (r->n > 1 && !in->is_running && in->stop_ns < r->duration_ns)
		in->when = in->stop_ns << 1;
}

static int finish_input(struct reading *r, struct sp_input *in,
			struct sp_error *err)
{
	struct sp_profile *p;
	uint64_t last_id;
	int code = sp_input_finish(in, &p, &last_id, err);

	if (code < 0)
		return code;
	r->n_finished++;
	if (r->n == 1) {
		r->p = p;
		return 0;
	}
	p->parts->stop_ns = in->stop_ns;
	code = sp_join_add(&r->join, in->part, p, last_id);
	sp_profile_free(p);
	return code < 0 ? sp_error_set(err, code, in->path,
				       "not enough memory to add it")
			: 0;
}

/* Open it, if that was not done, and go on up to the limit.  The caller has to
 * take it out once it has no file any more. */
static int advance_input(struct reading *r, struct sp_input *in, uint64_t limit,
			 struct sp_error *err)
{
	int code = 0;

	if (in->is_over) {
		code = finish_input(r, in, err);
		sp_input_close(in);
		r->n_open--;
		return code;
	}
	if (!in->file) {
		r->n_open++;
		code = sp_input_open(in, err);
	}
	if (!code && !in->file->loader.stream)
		code = sp_input_begin(in, &r->sinks, err);
	if (!code)
		code = sp_input_advance(in, limit, err);
	if (code < 0)
		return code;
	show_progress(r, in);
	if (in->is_over)
		find_stop(r, in);
	/* The others are looked at, too. */
	if (in->is_unordered && sp_stream_is_late(in->file->loader.stream)) {
		r->is_wrong = true;
		sp_input_close(in);
		r->n_open--;
	}
	return 0;
}

/* In the order of time. */
static int take_in_order(struct reading *r, struct sp_error *err)
{
	int code = 0;

	for (size_t i = r->n_heap; i--;)
		sift_down(r, i);
	while (!code && r->n_heap && !r->overlaps_much) {
		struct sp_input *in = r->heap[0];

		code = advance_input(r, in, limit_of(r), err);
		if (!in->file)
			r->heap[0] = r->heap[--r->n_heap];
		if (r->n_heap)
			sift_down(r, 0);
		r->overlaps_much = r->n_open > OPEN_MAX;
	}
	return code;
}

static int take_one_by_one(struct reading *r, struct sp_error *err)
{
	int code = 0;

	for (size_t i = 0; !code && i < r->n; i++)
		do
			code = advance_input(r, &r->inputs[i], UINT64_MAX, err);
		while (!code && r->inputs[i].file);
	return code;
}

static int check_input(const struct reading *r, size_t i, struct sp_error *err)
{
	const struct sp_input *in = &r->inputs[i];

	for (size_t k = 0; k < i; k++)
		if (r->inputs[k].file_id == in->file_id)
			return sp_error_set(err, -EINVAL, in->path,
					    "is the same recording as %.150s: "
					    "name each file once",
					    r->inputs[k].path);
	if (in->law.is_dotnet != r->inputs[0].law.is_dotnet ||
	    in->law.always_large != r->inputs[0].law.always_large)
		return sp_error_set(err, -EINVAL, in->path,
				    "was not sampled by the same law as "
				    "%.120s (SAMPLEPROF_LAW, or another "
				    "version): report them one by one",
				    r->inputs[0].path);
	return 0;
}

/* The headers of all: what has to be known before the first event. */
static int look_at_inputs(struct reading *r, struct sp_error *err)
{
	uint64_t start_unix_ns = UINT64_MAX, blocks = 0;

	for (size_t i = 0; i < r->n; i++) {
		struct sp_input *in = &r->inputs[i];
		int code = sp_input_open(in, err);

		if (!code)
			code = check_input(r, i, err);
		if (code < 0)
			return code;
		blocks += (uint64_t)in->file->reader.source.stat.st_blocks;
		if (in->start_unix_ns < start_unix_ns)
			start_unix_ns = in->start_unix_ns;
		r->plan.every_sample |=
			in->is_running && !r->plan.while_written;
		in->is_over = false;
		in->shown = 0;
		if (r->n > 1)
			sp_input_close(in);
		else
			r->p = in->file->loader.p;
		r->n_open = r->n == 1;
	}
	if (blocks > MANY_BLOCKS)
		sp_patience_begin();
	for (size_t i = 0; i < r->n; i++) {
		struct sp_input *in = &r->inputs[i];

		in->start_ns = in->start_unix_ns - start_unix_ns;
		in->when = in->start_ns < SP_EVENT_LAST_NS
				   ? in->start_ns << 1
				   : SP_EVENT_LAST_NS << 1;
	}
	r->p->start_unix_ns = start_unix_ns;
	return 0;
}

/* The guess has to be right in what sinks need to know from the beginning. */
static void guess_facts(struct reading *r)
{
	struct sp_profile *p = r->p;
	uint64_t duration_ns = 0, period_bytes = 0;

	p->law = r->inputs[0].law;
	p->samples_of = r->plan.samples_of;
	p->has_frees = true;
	for (size_t i = 0; i < r->n; i++) {
		const struct sp_input *in = &r->inputs[i];
		uint64_t end_ns = in->start_ns;

		sp_sat_add(&end_ns, in->published_ns);
		sp_raise(&duration_ns, end_ns);
		sp_raise(&period_bytes, in->period_bytes);
		p->has_frees &= in->has_frees;
	}
	if (!r->duration_ns)
		r->duration_ns = duration_ns;
	if (!r->period_bytes)
		r->period_bytes = period_bytes;
	p->duration_ns = r->duration_ns;
	p->period_bytes = r->period_bytes;
}

/* Was everything as it was taken for?  Else the next reading knows. */
static void check_guess(struct reading *r)
{
	const struct sp_profile *p = r->p;
	uint64_t period_bytes = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct sp_input *in = &r->inputs[i];
		const bool has_stopped =
			!in->is_running && in->stop_ns < p->duration_ns;

		sp_raise(&period_bytes, in->period_bytes);
		r->is_wrong |= r->n > 1 && r->sinks.walk &&
			       has_stopped != (in->when != UINT64_MAX);
	}
	r->is_wrong |= p->n_curve && p->duration_ns != r->duration_ns;
	r->is_wrong |= p->peak && period_bytes != r->period_bytes;
	r->duration_ns = p->duration_ns;
	r->period_bytes = period_bytes;
}

static int take_all(struct reading *r, struct sp_error *err)
{
	/* Each sample by itself can be put in order afterwards. */
	const bool is_ordered = (r->plan.confidence > 0 || r->plan.tell) &&
				!r->plan.every_sample;
	int code = look_at_inputs(r, err);

	if (code < 0)
		return code;
	guess_facts(r);
	if (sp_sinks_init(&r->sinks, r->p, &r->plan) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < r->n; i++)
		r->heap[i] = &r->inputs[i];
	r->n_heap = r->n;
	return is_ordered ? take_in_order(r, err) : take_one_by_one(r, err);
}

/* ---- the files once more ---- */

/* A profile whose files are read once more. */
struct second {
	const struct sp_profile *profile;
	sp_sample_fn *fn;
	void *arg;
};

/* As it is in the profile.  Another file may be there by now. */
static int pass_on(void *arg, enum sp_sample_event event,
		   const struct sp_sample *s)
{
	const struct second *w = arg;
	const struct sp_part *part = &w->profile->parts[s->part];
	struct sp_sample mapped = *s;

	if (s->stack >= part->n_stacks ||
	    (s->thread != UINT32_MAX && s->thread >= part->n_threads) ||
	    (s->freed_by != UINT32_MAX && s->freed_by >= part->n_threads))
		return -ESTALE;
	mapped.id += part->first_id;
	mapped.stack = part->stacks[s->stack];
	if (s->thread != UINT32_MAX)
		mapped.thread += part->first_thread;
	if (s->freed_by != UINT32_MAX)
		mapped.freed_by += part->first_thread;
	return w->fn(w->arg, event, &mapped);
}

static bool is_same(const struct sp_profile *p, const struct sp_profile *again)
{
	for (size_t i = 0; i < p->n_parts; i++)
		if (p->parts[i].file_id != again->parts[i].file_id)
			return false;
	return sp_profile_samples(p) == sp_profile_samples(again);
}

static int read_once_more(const struct sp_profile *p,
			  const struct sp_plan *plan, struct sp_error *err)
{
	const char **paths = malloc(p->n_parts * sizeof(*paths));
	struct sp_profile *again;
	int r;

	if (!paths)
		return sp_error_memory(err, p->path);
	for (size_t i = 0; i < p->n_parts; i++)
		paths[i] = p->parts[i].path;
	r = sp_profile_read(paths, p->n_parts, plan, NULL, NULL, &again, err);
	free(paths);
	if (r < 0)
		return r;
	if (!is_same(p, again))
		r = -ESTALE;
	sp_profile_free(again);
	return r;
}

/* What sp_profile_walk() says (model/walk.h). */
static int read_again(const struct sp_profile *p, sp_sample_fn *fn, void *arg,
		      struct sp_error *err)
{
	struct second second = {p, fn, arg};
	const struct sp_plan plan = {.is_unordered = p->is_unordered,
				     .duration_ns = p->duration_ns,
				     .tell = pass_on,
				     .tell_arg = &second};
	const int r = read_once_more(p, &plan, err);

	return r == -ESTALE || r == -EAGAIN
		       ? sp_error_set(err, r, p->path,
				      "it changed while it was read: try "
				      "again")
		       : r;
}

/* ---- a reading ---- */

static int read_all(struct reading *r, struct sp_error *err)
{
	int code = take_all(r, err);

	r->is_wrong |= r->overlaps_much;
	r->plan.every_sample |= r->overlaps_much;
	if (code < 0 || r->is_wrong)
		return code;
	if (sp_sinks_end(&r->sinks, r->p) < 0 ||
	    (r->n > 1 && sp_join_finish(&r->join) < 0))
		return -ENOMEM;
	check_guess(r);
	r->p->read_again = read_again;
	return 0;
}

/* What becomes of all files; of a single one it is the file's. */
static int begin_profile(struct reading *r)
{
	if (r->n == 1)
		return 0;
	r->p = calloc(1, sizeof(*r->p));
	if (r->p)
		r->p->parts = calloc(r->n, sizeof(*r->p->parts));
	if (!r->p || !r->p->parts)
		return -ENOMEM;
	r->p->n_parts = r->n;
	return sp_join_init(&r->join, r->p, r->n);
}

/* Once.  The profile is the caller's if nothing was wrong. */
static int read_once(struct reading *r, struct sp_profile **ret_profile,
		     struct sp_error *err)
{
	int code = begin_profile(r);
	bool is_mine = r->n > 1;

	r->is_wrong = r->overlaps_much = false;
	r->n_finished = 0;
	r->shown = 0;
	if (!code)
		code = read_all(r, err);
	if (code == -ENOMEM)
		sp_error_set(err, code, r->inputs[0].path, "not enough memory");
	is_mine |= r->n_finished == r->n;
	for (size_t i = 0; i < r->n; i++)
		sp_input_close(&r->inputs[i]);
	sp_sinks_done(&r->sinks);
	sp_join_done(&r->join);
	r->sinks = (struct sp_sinks){.walk = NULL};
	r->join = (struct sp_join){.p = NULL};
	if (!code && !r->is_wrong)
		*ret_profile = r->p;
	else if (is_mine)
		sp_profile_free(r->p);
	r->p = NULL;
	return code;
}

static int reading_init(struct reading *r, const char *const *paths)
{
	r->inputs = calloc(r->n, sizeof(*r->inputs));
	r->heap = calloc(r->n, sizeof(struct sp_input *));
	if (!r->inputs || !r->heap)
		return -ENOMEM;
	for (size_t i = 0; i < r->n; i++)
		r->inputs[i] = (struct sp_input){
			.path = paths[i],
			.part = (uint16_t)i,
			.samples_of = r->plan.samples_of,
			.is_unordered = r->plan.is_unordered,
		};
	r->duration_ns = r->plan.duration_ns;
	return 0;
}

int sp_profile_read(const char *const *paths, size_t n,
		    const struct sp_plan *plan, sp_progress_fn *progress,
		    void *progress_arg, struct sp_profile **ret_profile,
		    struct sp_error *err)
{
	struct reading r = {.n = n,
			    .plan = *plan,
			    .progress = progress,
			    .progress_arg = progress_arg};
	int code = 0;

	if (n > SP_LOAD_FILES_MAX)
		return sp_error_set(err, -EINVAL, paths[0],
				    "and %zu more are too many files: at most "
				    "%u at once",
				    n - 1, SP_LOAD_FILES_MAX);
	if (reading_init(&r, paths) < 0)
		code = sp_error_memory(err, paths[0]);
	r.is_wrong = true;
	for (int i = 0;
	     i < TRIES && (code == -EAGAIN || r.is_wrong) && code != -ENOMEM;
	     i++) {
		code = read_once(&r, ret_profile, err);
		/* It was told of something else. */
		if (r.is_wrong && plan->tell)
			break;
	}
	free(r.inputs);
	free(r.heap);
	return code < 0 || !r.is_wrong
		       ? code
		       : sp_error_set(err, -EAGAIN, paths[0],
				      "it changed while it was read: try "
				      "again");
}

int sp_profile_look(const char *const *paths, size_t n, struct sp_profile *ret,
		    struct sp_error *err)
{
	struct reading r = {.n = n, .p = ret};
	int code = reading_init(&r, paths);

	*ret = (struct sp_profile){.path = paths[0]};
	if (code < 0)
		sp_error_set(err, code, paths[0], "not enough memory");
	else
		code = look_at_inputs(&r, err);
	if (!code) {
		guess_facts(&r);
		ret->has_frees = r.p->has_frees;
		ret->window_ns = r.p->window_ns;
		ret->duration_ns = r.p->duration_ns;
	}
	for (size_t i = 0; r.inputs && i < n; i++)
		sp_input_close(&r.inputs[i]);
	free(r.inputs);
	free(r.heap);
	return code;
}

int sp_profile_load_many(const char *const *paths, size_t n,
			 sp_progress_fn *progress, void *progress_arg,
			 struct sp_profile **ret_profile, struct sp_error *err)
{
	const struct sp_plan plan = {.every_sample = true};

	return sp_profile_read(paths, n, &plan, progress, progress_arg,
			       ret_profile, err);
}

int sp_profile_load(const char *path, sp_progress_fn *progress,
		    void *progress_arg, struct sp_profile **ret_profile,
		    struct sp_error *err)
{
	return sp_profile_load_many(&path, 1, progress, progress_arg,
				    ret_profile, err);
}
