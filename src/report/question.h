/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"
#include "report/filter.h"
#include "stats/estimate.h"
#include "stats/sums.h"

/*
 * The user's question, as it was given: the profile, which knows the length of
 * the run and its threads, has not been read yet.
 */

enum sp_moment_kind {
	SP_MOMENT_NONE,  /* not given */
	SP_MOMENT_TIME,  /* `ns` since the start, or a duration */
	SP_MOMENT_SHARE, /* `thousandths` of a percent of the run */
	SP_MOMENT_END,
	SP_MOMENT_SNAPSHOT, /* the time of the snapshot `name` */
	SP_MOMENT_LAST,     /* `ns` before the end, or the start */
	SP_MOMENT_RSS_PEAK, /* near the peak of RSS, for resident bytes */
};

struct sp_moment {
	enum sp_moment_kind kind;
	uint64_t ns;
	uint64_t thousandths; /* 0..100000 */
	const char *name;
};

/* "2s", "1m30s", "50%", "end"; false, and *ret untouched, for anything else. */
bool sp_moment_parse(const char *text, struct sp_moment *ret);

struct sp_question;

/* Find the bytes of live objects that are in resident pages at the moment of
 * the question, for the profile in that file: sets profile->resident. 0;
 * negative errno and *err. */
typedef int sp_weigh_fn(const char *path, const struct sp_question *question,
			struct sp_profile *profile, struct sp_error *err);

struct sp_question {
	bool has_view;
	enum sp_view view;
	/* For "mapped" and "reserved": the live view of such memory. */
	enum sp_samples_of samples_of;
	/* --metric: count objects, or the resident bytes of live objects
	 * (sp_profile). */
	bool has_metric;
	bool of_objects;
	bool of_resident;
	sp_weigh_fn *weigh;    /* finds resident bytes; NULL: not available */
	struct sp_moment at;   /* of live, leaks; none: the end */
	struct sp_moment from; /* born at or after */
	bool from_may_be_late; /* after the end: nothing is selected */
	struct sp_moment to;   /* born before */
	struct sp_moment tail; /* of leaks; none: 10 % of the run */
	/* Of temporary: at most one is not SP_NEVER; both: 0 bytes. */
	uint64_t within_bytes;
	uint64_t within_ns;
	uint64_t min_size_bytes;
	uint64_t max_size_bytes; /* inclusive */
	const char *thread;      /* index, thread id or name; NULL: all */
	const char *phase;       /* its name; NULL: all */
	struct sp_filter_patterns filter;
	enum sp_method method;
	double confidence; /* in (0, 1) */
};

/* All samples, the default method, 95 %. */
void sp_question_init(struct sp_question *question);

/* Does it ask for the whole view?  False if it selects a time, sizes, a thread,
 * a phase, or call stacks. */
bool sp_question_is_whole(const struct sp_question *question);

/*
 * The question as a selection of this profile's samples; `fallback` is the view
 * if none was given.  The moment of SP_VIEW_PEAK is left open (at_ns is
 * SP_NEVER) if none was asked for. 0; or *err and -ENODATA if the profile lacks
 * data for the view; -ERANGE if a time lies outside the run; -ENOENT if no
 * thread, or more than one, has that name.
 */
int sp_question_select(const struct sp_question *question,
		       const struct sp_profile *profile, enum sp_view fallback,
		       struct sp_selection *ret, struct sp_error *err);

/* -ENODATA and *err if the profile has no frees, else 0; `what` begins the
 * sentence ("--view live"). */
int sp_question_needs_frees(const struct sp_profile *profile, const char *what,
			    struct sp_error *err);

/*
 * The same births, sizes and threads, for a format that shows allocated and
 * live bytes side by side. 0 and *ret; -EINVAL and *err for views other than
 * SP_VIEW_ALLOC, which such a format cannot show; `what` begins the sentence.
 */
int sp_selection_births(const struct sp_selection *selection,
			const struct sp_profile *profile, const char *what,
			struct sp_selection *ret, struct sp_error *err);

/* Does the selection exclude samples by birth, size, thread or stack? */
bool sp_selection_is_subset(const struct sp_selection *selection);

/* "alloc", "live", ...; and back. */
const char *sp_view_name(enum sp_view view);
bool sp_view_parse(const char *name, enum sp_view *ret);

/* The same with the kind of the profile's samples: also "mapped", "reserved".
 * The _word() functions list all words, from i = 0; NULL after the last. */
const char *sp_view_name_of(const struct sp_profile *profile,
			    enum sp_view view);
bool sp_question_parse_view(struct sp_question *question, const char *name);
bool sp_question_parse_metric(struct sp_question *question, const char *name);
const char *sp_question_metric_word(size_t i);
const char *sp_question_view_word(size_t i);
