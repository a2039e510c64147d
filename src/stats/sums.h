/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"
#include "stats/size_class_sums.h"

/* Which question a report answers. */
enum sp_view {
	SP_VIEW_ALLOC,     /* what was allocated */
	SP_VIEW_LIVE,      /* what is alive at at_ns */
	SP_VIEW_PEAK,      /* what was alive at peak_ns (E43) */
	SP_VIEW_LEAKS,     /* alive at at_ns and older than tail_ns */
	SP_VIEW_TEMPORARY, /* freed soon, by the thread that allocated it */
};

/* A set of samples, chosen without looking at what was sampled. */
struct sp_selection {
	enum sp_view view;
	uint64_t from_ns; /* born at or after */
	uint64_t to_ns;   /* born before; SP_NEVER: no limit */
	uint64_t at_ns;   /* LIVE, LEAKS; SP_NEVER: the end */
	uint64_t peak_ns; /* PEAK: of struct sp_peak; SP_NEVER: the end */
	uint64_t tail_ns; /* LEAKS: born at least that long before at_ns */
	/* TEMPORARY: at most one of the two is not SP_NEVER. */
	uint64_t within_bytes; /* age_bytes <= it */
	uint64_t within_ns;    /* freed_ns - born_ns <= it, by its own thread */
	uint64_t min_size_bytes;
	uint64_t max_size_bytes; /* inclusive */
	uint32_t thread;         /* index of a thread; 0: all */
	const char *phase;       /* born in a phase of that name; NULL: all */
	/* ALLOC: also those of which others of their time were discarded. */
	bool has_survivors;
	const bool *keeps; /* which of profile->stacks; NULL: all */
};

/* Everything that was allocated. */
void sp_selection_init(struct sp_selection *selection);

/* Do both name the same objects by birth, size, thread and stack? */
bool sp_selection_is_same(const struct sp_selection *a,
			  const struct sp_selection *b);

bool sp_selection_has(const struct sp_selection *selection,
		      const struct sp_profile *profile,
		      const struct sp_sample *sample);

/* PEAK: did samples choose the moment, so that only the others measure it? */
bool sp_selection_is_measured(const struct sp_selection *selection);

/* That of sums over its samples, and whether it is of what was alive at a
 * moment of which the profile does not know that (model/whole.h). */
void sp_selection_judge(const struct sp_selection *selection,
			const struct sp_profile *profile,
			struct sp_class_sums *sums);

/* What samples that the selection has add to a sum. */
struct sp_acc sp_selection_terms(const struct sp_selection *selection,
				 const struct sp_profile *profile,
				 const struct sp_alike *samples);

/* Was it freed soon, by the thread that allocated it?  The limits are those of
 * a selection. */
bool sp_sample_is_temporary(const struct sp_sample *sample,
			    uint64_t within_bytes, uint64_t within_ns);

/* The selected samples, summed up. */
struct sp_sums {
	struct sp_class_sums all;
	struct sp_class_sums *stacks; /* one for each of profile->stacks */
	struct sp_class_sums
		*threads; /* one for each of profile->thread_infos */
};

/* 0 and *ret_table, to be freed by the caller, or -ENOMEM and *err. */
int sp_sums_new(const struct sp_profile *profile,
		const struct sp_selection *selection, struct sp_sums **ret_sums,
		struct sp_error *err);

void sp_sums_free(struct sp_sums *sums, const struct sp_profile *profile);

/* Which of profile->stacks have samples that are selected, to be freed by the
 * caller (free()); NULL: no memory.  A table of what was allocated (struct
 * sp_analysis) may lack some: see has_survivors. */
bool *sp_selection_stacks(const struct sp_selection *selection,
			  const struct sp_profile *profile);
