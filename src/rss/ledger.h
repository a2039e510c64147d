/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "format/layout.h"
#include "report/ledgers.h"
#include "resident/absent.h"
#include "pins/pins.h"
#include "stats/estimator.h"

/*
 * What the resident memory of a process is made of: rows that add up to what
 * the kernel says.
 */
enum sp_rss_row_name {
	SP_RSS_ROW_ALIVE,    /* objects of the program, as it asked for them */
	SP_RSS_ROW_KEPT,     /* free, and kept by the allocator */
	SP_RSS_ROW_ROUNDING, /* what each of the objects takes beyond that */
	SP_RSS_ROW_REST, /* of the heap: caches, its own, and what is unknown */
	SP_RSS_ROW_HEAP, /* all of it, where these are not known */
	SP_RSS_ROW_ANONYMOUS,
	SP_RSS_ROW_HUGE, /* zero in huge pages */
	SP_RSS_ROW_THREADS,
	SP_RSS_ROW_STACK,
	SP_RSS_ROW_CODE,
	SP_RSS_ROW_DATA,
	SP_RSS_ROW_FILES,
	SP_RSS_ROW_SHARED,
	SP_RSS_ROW_PROFILE,
	SP_RSS_ROWS
};

struct sp_rss_row {
	/* Bytes: limits where it is estimated, else equal to the value. */
	struct sp_interval bytes;
	uint64_t swap; /* of it, or of all of the heap in its first row */
	bool is_there; /* it may have something */
};

struct sp_rss_ledger {
	/* When it was made, where that is not now. */
	enum sp_ledger_why why;
	uint64_t time_ns;
	char mark[SP_FORMAT_MARK_NAME_MAX + 1]; /* untrusted text */
	uint64_t pid;
	char name[32]; /* untrusted text */
	uint64_t rss;  /* the sum of all rows */
	uint64_t vm_rss, swap, hugetlb;
	uint64_t threads, stacks; /* stacks that were found */
	struct sp_rss_row rows[SP_RSS_ROWS];
	double confidence;
	/* Which allocator was asked (enum sp_allocator), and its answer. */
	struct sp_control_memory memory;
	/* Alive, and not in pages that are resident: in no row. */
	struct sp_interval untouched;
	/* Why there is less than there might be. */
	bool has_profile, has_objects;
	bool was_asked;     /* of the allocator: it has answered */
	bool is_unreadable; /* the memory of the process */
	bool is_32_bit;
	uint64_t waited_ns;    /* at most, for the answer */
	bool is_stopped;       /* so it was not asked */
	bool has_other_malloc; /* not glibc's, as far as one can tell */
	uint64_t unsampled_bytes, before_bytes;
	/* Which call sites pin free memory (pins/pins.h), if that was asked
	 * for: to be freed by sp_rss_pins_free().  NULL: it was not. */
	struct sp_rss_pins *pins;
	/* The sampled objects that are not all resident, if that was asked for:
	 * to be freed by free(). */
	struct sp_absent_object *absent;
	size_t n_absent;
	uint64_t pins_top; /* sites of these to print; 0: all */
};

/* What a process says by itself of its allocator. */
struct sp_rss_answer {
	struct sp_control_memory memory;
	uint64_t classes; /* where its size classes are; 0: nowhere */
};

struct sp_rss_options {
	uint64_t pid;
	const char *path; /* of a profile instead; or NULL */
	const char *when; /* which of its ledgers; NULL: the one at the end */
	/* Then it is not asked; NULL: it is. */
	const struct sp_rss_answer *answer;
	/* Called if the answer does not come at once; or NULL. */
	void (*on_wait)(uint64_t pid);
	uint64_t timeout_ns; /* how long the allocator's answer is waited for */
	double confidence;   /* in (0, 1) */
	bool pins;           /* by call site, with their names */
	bool absent;         /* which objects are not all resident */
	bool has_top;
	uint64_t top;             /* sites of these; 0: all */
	sp_progress_fn *progress; /* of their names; may be NULL */
	bool has_granularity;
	enum sp_granularity granularity;             /* what a site is */
	const struct sp_symbolizer_options *symbols; /* or NULL */
	bool json;
	bool help, version; /* asked for; nothing else counts */
};

/* 0 and *ret; negative errno and *err.  An error of the profile makes none: the
 * rows are those without it. */
int sp_rss_ledger_make(const struct sp_rss_options *options,
		       struct sp_rss_ledger *ret, struct sp_error *err);

/* "glibc", ...; NULL: of no such number. */
const char *sp_rss_allocator_name(uint64_t allocator);

/* "heap_alive", ... */
const char *sp_rss_row_name(enum sp_rss_row_name row);

void sp_rss_print(FILE *out, const struct sp_rss_ledger *ledger);
/* absent: what sp_absent_write() made of that, and left out; NULL: nothing. */
void sp_rss_print_json(FILE *out, const struct sp_rss_ledger *ledger,
		       const char *absent, double left_out);
