/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "model/profile.h"
#include "report/analysis.h"
#include "stats/size_class_sums.h"

/*
 * The phases of a profile: all stretches of the same name together, in the
 * order in which they first began.
 */
struct sp_phase {
	const char *name; /* "" before the first mark; untrusted text */
	size_t n_stretches;
	size_t n_times; /* how often it began; a change of the period is no
			   beginning */
	uint64_t duration_ns;
	/* Exact totals of its allocations; sums stop at UINT64_MAX. */
	uint64_t alloc_bytes;
	uint64_t alloc_objects;
	uint64_t unsampled_bytes;
	uint64_t discarded_bytes; /* of unsampled_bytes */
	uint64_t slack_bytes; /* at most so many bytes belong to a neighbouring
				 phase */
	struct sp_class_sums sums; /* samples that were born in it */
	/* The stretch with the longest delay between command and beginning;
	 * NULL: none. */
	const struct sp_stretch *late;
};

struct sp_phases {
	struct sp_phase *phases;
	size_t n;
	bool has_names; /* the program named a phase */
};

/*
 * Sums are of the analysis' view (`of_view`), or of all samples of the selected
 * births, sizes and threads. 0 and *ret, to be freed by the caller; -ENOMEM and
 * *err.  A profile without stretches has no phases.
 */
int sp_phases_new(const struct sp_analysis *analysis, bool of_view,
		  struct sp_phases **ret, struct sp_error *err);
void sp_phases_free(struct sp_phases *phases);

/* The name for messages: that of the first phase is "(start)". */
const char *sp_phase_name(const char *name);

/* The profile's own copy of the phase name `wanted`, or NULL. */
const char *sp_phase_find(const struct sp_profile *profile, const char *wanted);

/* Exact totals of the phase of that name. */
struct sp_class_total sp_phase_total(const struct sp_profile *profile,
				     const char *name);
