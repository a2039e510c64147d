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
 * What the user wants to know, as it was asked: before a profile is there that
 * says how long a run was and which threads it had.
 */

enum sp_moment_kind {
	SP_MOMENT_NONE,  /* not given */
	SP_MOMENT_TIME,  /* `ns` since the start, or that long */
	SP_MOMENT_SHARE, /* `thousandths` of a percent of the run */
	SP_MOMENT_END,
	SP_MOMENT_SNAPSHOT, /* of the snapshot `name` */
	SP_MOMENT_LAST,     /* `ns` before the end, or the start */
	SP_MOMENT_RSS_PEAK, /* near the peak of RSS, of resident bytes */
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

/* What of the profile in that file is in resident pages at the moment that is
 * asked for: sets profile->resident.  0; negative errno and *err. */
typedef int sp_weigh_fn(const char *path, const struct sp_question *question,
			struct sp_profile *profile, struct sp_error *err);

struct sp_question {
	bool has_view;
	enum sp_view view;
	/* "mapped", "reserved": the live view of these. */
	enum sp_samples_of samples_of;
	/* --metric: objects are counted, or what is resident of the bytes of
	 * those that are alive (sp_profile). */
	bool has_metric;
	bool of_objects;
	bool of_resident;
	sp_weigh_fn *weigh; /* says so; NULL: nobody can */
	/* "pinned": the live view, by what it pins (rss/pins.h). */
	bool is_pinned;
	struct sp_moment at;   /* of live, leaks; none: the end */
	struct sp_moment from; /* born at or after */
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

/* Everything, by the default method at 95 %. */
void sp_question_init(struct sp_question *question);

/* Does it ask for all that the view has?  Not for a time, a size, a thread, a
 * phase, or some of the call stacks. */
bool sp_question_is_whole(const struct sp_question *question);

/*
 * The question as a selection of this profile's samples; `fallback` is the
 * view if none was asked for.  The moment of SP_VIEW_PEAK is left open
 * (at_ns is SP_NEVER).  0; -ENODATA and *err if the profile lacks what the
 * view needs; -ERANGE if a time lies outside the run; -ENOENT for a thread
 * that is not there or not the only one of its name.
 */
int sp_question_select(const struct sp_question *question,
		       const struct sp_profile *profile, enum sp_view fallback,
		       struct sp_selection *ret, struct sp_error *err);

/* -ENODATA and *err if the profile has no frees, else 0; `what` begins the
 * sentence ("--view live"). */
int sp_question_needs_frees(const struct sp_profile *profile, const char *what,
			    struct sp_error *err);

/*
 * The same births, sizes and threads, for a format that shows what was
 * allocated and what is alive side by side.  0 and *ret; -EINVAL and *err if
 * another view than SP_VIEW_ALLOC was asked for, which would be lost; `what`
 * begins the sentence.
 */
int sp_selection_births(const struct sp_selection *selection,
			const struct sp_profile *profile, const char *what,
			struct sp_selection *ret, struct sp_error *err);

/* Does the selection leave out anything by birth, size, thread or stack? */
bool sp_selection_is_subset(const struct sp_selection *selection);

/* "alloc", "live", ...; and back. */
const char *sp_view_name(enum sp_view view);
bool sp_view_parse(const char *name, enum sp_view *ret);

/* The same of what the samples of the profile are: also "mapped", "reserved".
 * Words for all that can be asked for, from 0; NULL: there are no more. */
const char *sp_view_name_of(const struct sp_profile *profile,
			    enum sp_view view);
bool sp_question_parse_view(struct sp_question *question, const char *name);
bool sp_question_parse_metric(struct sp_question *question, const char *name);
const char *sp_question_metric_word(size_t i);
const char *sp_question_view_word(size_t i);
