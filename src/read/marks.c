/* SPDX-License-Identifier: MIT */
#include "read/marks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/order.h"
#include "base/parse.h"
#include "base/saturate.h"

int sp_marks_add(struct sp_marks *marks, const struct sp_record_mark *mark)
{
	const char *name =
		sp_blocks_text(&marks->names, mark->name, mark->name_bytes);

	if (!name || sp_array_reserve((void **)&marks->marks, &marks->room,
				      marks->n, sizeof(*marks->marks)))
		return -ENOMEM;
	marks->marks[marks->n] = *mark;
	marks->marks[marks->n++].name = name;
	return 0;
}

int sp_marks_add_asked(struct sp_marks *marks,
		       const struct sp_record_asked *asked)
{
	if (sp_array_reserve((void **)&marks->asked, &marks->asked_room,
			     marks->n_asked, sizeof(*marks->asked)))
		return -ENOMEM;
	marks->asked[marks->n_asked++] = *asked;
	return 0;
}

void sp_marks_done(struct sp_marks *marks)
{
	free(marks->marks);
	free(marks->asked);
	sp_blocks_free(&marks->names);
}

SP_ORDER(compare_marks, struct sp_record_mark, SP_UP(number));

SP_ORDER(compare_asked, struct sp_record_asked, SP_UP(number));

static void sort_marks(struct sp_marks *marks)
{
	if (marks->n)
		qsort(marks->marks, marks->n, sizeof(*marks->marks),
		      compare_marks);
	if (marks->n_asked)
		qsort(marks->asked, marks->n_asked, sizeof(*marks->asked),
		      compare_asked);
}

/* When that mark was asked for: when it was made, unless the file says more. */
static uint64_t find_asked(const struct sp_marks *marks,
			   const struct sp_record_mark *mark)
{
	const struct sp_record_asked key = {.number = mark->number};
	const struct sp_record_asked *found =
		marks->n_asked ? bsearch(&key, marks->asked, marks->n_asked,
					 sizeof(key), compare_asked)
			       : NULL;

	return found && found->time_ns < mark->time_ns ? found->time_ns
						       : mark->time_ns;
}

/* What was in force when the file was made. */
static uint64_t first_period(const struct sp_profile *profile)
{
	const char *text = sp_profile_info(profile, "sampling");
	uint64_t period_bytes;

	return text && sp_parse_u64(text, &period_bytes) &&
			       period_bytes <= SP_FORMAT_PERIOD_MAX
		       ? period_bytes
		       : profile->period_bytes;
}

/* Marks one after another; `last` is where the present stretch began. */
struct walk {
	struct sp_profile *profile;
	size_t stretches_room, snapshots_room;
	struct sp_record_mark last;
	const struct sp_marks *marks;
	uint64_t asked_ns; /* for `last` */
	uint64_t period_max_bytes;
};

static bool is_later(const struct sp_record_mark *a,
		     const struct sp_record_mark *b)
{
	return a->number > b->number && a->time_ns >= b->time_ns &&
	       a->alloc_bytes >= b->alloc_bytes &&
	       a->alloc_objects >= b->alloc_objects &&
	       a->unsampled_bytes >= b->unsampled_bytes &&
	       a->unsampled_objects >= b->unsampled_objects;
}

/* The present stretch ends at `end`. */
static int close_stretch(struct walk *w, const struct sp_record_mark *end,
			 uint64_t to_ns)
{
	struct sp_profile *p = w->profile;
	const struct sp_record_mark *begin = &w->last;

	if (sp_array_reserve((void **)&p->stretches, &w->stretches_room,
			     p->n_stretches, sizeof(*p->stretches)))
		return -ENOMEM;
	p->stretches[p->n_stretches] = (struct sp_stretch){
		.from_ns = begin->time_ns,
		.asked_ns = w->asked_ns,
		.to_ns = to_ns,
		.phase = sp_blocks_text(&p->storage, begin->name,
					strlen(begin->name)),
		.period_bytes = begin->period_bytes,
		.alloc_bytes = end->alloc_bytes - begin->alloc_bytes,
		.alloc_objects = end->alloc_objects - begin->alloc_objects,
		.unsampled_bytes =
			end->unsampled_bytes - begin->unsampled_bytes,
		.unsampled_objects =
			end->unsampled_objects - begin->unsampled_objects,
		.slack_bytes = begin->slack_bytes > end->slack_bytes
				       ? begin->slack_bytes
				       : end->slack_bytes,
	};
	if (begin->period_bytes > w->period_max_bytes)
		w->period_max_bytes = begin->period_bytes;
	return p->stretches[p->n_stretches++].phase ? 0 : -ENOMEM;
}

static int add_snapshot(struct walk *w, const struct sp_record_mark *mark)
{
	struct sp_profile *p = w->profile;

	if (sp_array_reserve((void **)&p->snapshots, &w->snapshots_room,
			     p->n_snapshots, sizeof(*p->snapshots)))
		return -ENOMEM;
	p->snapshots[p->n_snapshots] = (struct sp_snapshot){
		.name = sp_blocks_text(&p->storage, mark->name,
				       strlen(mark->name)),
		.time_ns = mark->time_ns,
		.asked_ns = find_asked(w->marks, mark),
		.alloc_bytes = mark->alloc_bytes,
		.alloc_objects = mark->alloc_objects,
	};
	return p->snapshots[p->n_snapshots++].name ? 0 : -ENOMEM;
}

static int pass_mark(struct walk *w, const struct sp_record_mark *mark)
{
	const char *phase = w->last.name;
	int r = 0;

	if (mark->kind == SP_MARK_SNAPSHOT)
		return add_snapshot(w, mark);
	if (mark->kind == SP_MARK_END)
		return 0;
	if (mark->kind == SP_MARK_PHASE)
		phase = mark->name;
	else if (mark->period_bytes == w->last.period_bytes)
		return 0; /* of a later writer */
	r = close_stretch(w, mark, mark->time_ns);
	w->asked_ns = find_asked(w->marks, mark);
	w->last = *mark;
	w->last.name = phase;
	return r;
}

/* The process has allocated that much at least: so much less may be missing of
 * its totals, or more of what classes have. */
static void raise_exact(struct sp_profile *p, uint64_t bytes)
{
	uint64_t more;

	if (bytes <= p->exact_alloc_bytes)
		return;
	more = bytes - p->exact_alloc_bytes;
	p->exact_alloc_bytes = bytes;
	/* That nobody knows stays so. */
	if (p->missing_bytes_max == UINT64_MAX)
		return;
	if (more <= p->missing_bytes_max) {
		p->missing_bytes_max -= more;
		return;
	}
	more -= p->missing_bytes_max;
	p->missing_bytes_max = 0;
	sp_sat_add(&p->class_slack_bytes, more);
}

/* What is known of the end: `latest` mark, and the totals of the file, which
 * one of them may be behind. */
static struct sp_record_mark find_end(struct walk *w,
				      const struct sp_record_mark *latest)
{
	struct sp_profile *p = w->profile;
	struct sp_record_mark end = *latest;

	raise_exact(p, latest->alloc_bytes);
	if (p->exact_alloc_objects < latest->alloc_objects)
		p->exact_alloc_objects = latest->alloc_objects;
	end.alloc_bytes = p->exact_alloc_bytes;
	end.alloc_objects = p->exact_alloc_objects;
	if (latest->period_bytes)
		return end;
	end.unsampled_bytes += end.alloc_bytes - latest->alloc_bytes;
	end.unsampled_objects += end.alloc_objects - latest->alloc_objects;
	return end;
}

/*
 * The moment of the window, which is no record, comes behind the mark that it
 * names: its stretch is divided there.
 */
static int pass_window(struct walk *w, const struct sp_window *window,
		       struct sp_record_mark *latest)
{
	struct sp_record_mark here = *latest;
	int r;

	if (!window->oldest)
		return 0;
	here.number++;
	here.time_ns = window->time_ns;
	here.alloc_bytes = window->alloc_bytes;
	here.alloc_objects = window->alloc_objects;
	here.unsampled_bytes = window->unsampled_bytes;
	here.unsampled_objects = window->unsampled_objects;
	here.slack_bytes = window->slack_bytes;
	if (!is_later(&here, latest) ||
	    here.unsampled_bytes > here.alloc_bytes ||
	    here.unsampled_objects > here.alloc_objects)
		return 0;
	here.number--;
	here.period_bytes = w->last.period_bytes;
	here.name = w->last.name;
	r = close_stretch(w, &here, here.time_ns);
	w->asked_ns = here.time_ns;
	w->last = *latest = here;
	return r;
}

/* Sums that only a forged file can have stop at the end. */
static void add_up_to(uint64_t *sum, uint64_t n, uint64_t most)
{
	*sum = n < most && *sum < most - n ? *sum + n : most;
}

/* What was allocated before the window is as if it had not been sampled. */
static void discard_stretches(struct sp_profile *p)
{
	const uint64_t bytes = p->exact_alloc_bytes;
	const uint64_t objects = p->exact_alloc_objects;

	for (size_t i = 0; i < p->n_stretches; i++) {
		struct sp_stretch *s = &p->stretches[i];

		if (s->to_ns > p->window_ns)
			continue;
		s->discarded_bytes =
			sp_sat_sub(s->alloc_bytes, s->unsampled_bytes);
		add_up_to(&p->discarded_bytes, s->discarded_bytes, bytes);
		add_up_to(&p->discarded_objects,
			  sp_sat_sub(s->alloc_objects, s->unsampled_objects),
			  objects);
		s->unsampled_bytes = s->alloc_bytes;
		s->unsampled_objects = s->alloc_objects;
	}
	add_up_to(&p->unsampled_bytes, p->discarded_bytes, bytes);
	add_up_to(&p->unsampled_objects, p->discarded_objects, objects);
}

int sp_marks_settle(struct sp_marks *marks, const struct sp_window *window,
		    struct sp_profile *profile)
{
	bool is_passed = false;
	struct walk w = {
		.profile = profile,
		.marks = marks,
		.last = {.period_bytes = first_period(profile), .name = ""},
	};
	struct sp_record_mark latest = w.last, end;

	/* A free without a sample is of one that was discarded. */
	if (window->oldest)
		profile->unmatched_frees = 0;
	if (!marks->n && w.last.period_bytes == profile->period_bytes &&
	    !window->oldest)
		return 0;
	sort_marks(marks);
	for (size_t i = 0; i < marks->n; i++) {
		if (marks->marks[i].number > window->mark && !is_passed) {
			is_passed = true;
			if (pass_window(&w, window, &latest))
				return -ENOMEM;
		}
		if (!is_later(&marks->marks[i], &latest))
			continue;
		latest = marks->marks[i];
		if (pass_mark(&w, &latest))
			return -ENOMEM;
	}
	if (!is_passed && pass_window(&w, window, &latest))
		return -ENOMEM;
	end = find_end(&w, &latest);
	if (close_stretch(&w, &end, SP_NEVER))
		return -ENOMEM;
	profile->unsampled_bytes = end.unsampled_bytes;
	profile->unsampled_objects = end.unsampled_objects;
	if (window->oldest)
		discard_stretches(profile);
	if (w.period_max_bytes)
		profile->period_bytes = w.period_max_bytes;
	return 0;
}
