/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/blocks.h"
#include "base/error.h"
#include "stats/period_model.h"

/*
 * Every allocation of a program, in order of time: what the truth is known of,
 * so that ways to sample can be held against it.
 */
struct sp_lab_alloc {
	uint64_t time_ns;    /* since the beginning, < duration_ns */
	uint64_t size_bytes; /* >= 1 */
	uint32_t site;       /* position in `sites` */
	uint32_t thread;     /* 0.., < n_threads */
};

struct sp_lab_trace {
	const char *name;            /* of the workload, or of the program */
	const char *about;           /* one line */
	struct sp_lab_alloc *allocs; /* owned */
	size_t n_allocs, room;
	const char **sites; /* what the code is called; owned */
	uint32_t n_sites;
	uint32_t n_threads;
	uint32_t focus;       /* the site that tables are about */
	uint64_t duration_ns; /* > 0 */
	/* By sp_lab_trace_finish(): */
	uint64_t bytes;
	uint64_t focus_bytes;
	struct sp_period_model_class
		*classes;             /* distinct sizes, ascending; owned */
	struct sp_period_model sizes; /* the same */
	struct sp_blocks storage;     /* of names */
};

/* Add one; 0 or -ENOMEM. */
int sp_lab_trace_add(struct sp_lab_trace *trace,
		     const struct sp_lab_alloc *alloc);

/* All are there, in order: add up.  0 or -ENOMEM. */
int sp_lab_trace_finish(struct sp_lab_trace *trace);

/* Make that function the focus: 0, or -ENOENT if none of that name allocated
 * anything itself. */
int sp_lab_trace_look_at(struct sp_lab_trace *trace, const char *site);

void sp_lab_trace_free(struct sp_lab_trace *trace);
