/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "control/brought.h"
#include "format/layout.h"
#include "report/ledgers.h"
#include "rss/absent.h"
#include "rss/objects.h"
#include "rss/pins.h"
#include "stats/estimator.h"

/*
 * The composition of a process's resident memory: rows that add up to the
 * kernel's figure.
 */
enum sp_rss_row_name {
	SP_RSS_ROW_ALIVE, /* live objects, in bytes that the program asked for
			   */
	SP_RSS_ROW_KEPT,  /* free, and kept by the allocator */
	SP_RSS_ROW_ROUNDING, /* bytes of these objects beyond that */
	SP_RSS_ROW_REST, /* rest of the heap: caches, the allocator's own data,
			    unknown */
	SP_RSS_ROW_BEFORE, /* live objects that the profile never saw */
	SP_RSS_ROW_HEAP,   /* the whole heap, if the rows above are unknown */
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
	/* Bytes, with limits if estimated; else both limits are the value. */
	struct sp_interval bytes;
	uint64_t
		swap; /* bytes in swap; for the heap all are in its first row */
	bool is_there; /* false: it cannot have any bytes */
};

struct sp_rss_ledger {
	/* When it was made, if it is from a profile. */
	enum sp_ledger_why why;
	uint64_t time_ns;
	char mark[SP_FORMAT_MARK_NAME_MAX + 1]; /* untrusted text */
	uint64_t pid;
	char name[32]; /* untrusted text */
	uint64_t rss;  /* the sum of all rows */
	uint64_t vm_rss, swap, hugetlb;
	uint64_t threads, stacks; /* `stacks` of threads were found */
	struct sp_rss_row rows[SP_RSS_ROWS];
	double confidence;
	/* Which allocator was asked (enum sp_allocator), and its answer. */
	struct sp_control_memory memory;
	/* Bytes of live objects in pages that are not resident: in no row. */
	struct sp_interval untouched;
	/* Reasons for missing rows. */
	bool has_profile, has_objects;
	/* Why the library sees no allocation of it: a sentence; or NULL. */
	const char *why_unseen;
	char brought[SP_BROUGHT_TEXT]; /* sp_brought_by_process(), or "" */
	bool was_asked;                /* the allocator has answered */
	bool is_unreadable;            /* the memory of the process */
	bool is_32_bit;
	uint64_t waited_ns;    /* how long for the answer, at most */
	bool is_stopped;       /* so it was not asked */
	bool has_other_malloc; /* an allocator other than glibc's, as it seems
				*/
	uint64_t unsampled_bytes, before_bytes;
	enum sp_unseen before;
	/* The call sites that pin free memory (rss/pins.h); the caller frees
	 * it (sp_rss_pins_free()).  NULL: not asked for. */
	struct sp_rss_pins *pins;
	/* The sampled objects that are not all resident, if asked for; the
	 * caller frees it (free()). */
	struct sp_absent_object *absent;
	size_t n_absent;
	uint64_t pins_top; /* sites of these to print; 0: all */
};

/* An allocator's counts, as the process itself wrote them. */
struct sp_rss_answer {
	struct sp_control_memory memory;
	uint64_t classes; /* address of its size classes; 0: none */
};

struct sp_rss_options {
	uint64_t pid;
	const char *path; /* of a profile instead; or NULL */
	const char *when; /* which of its ledgers; NULL: the one at the end */
	/* The allocator's answer; NULL: the process is asked for it. */
	const struct sp_rss_answer *answer;
	/* Called if the answer does not come at once; or NULL. */
	void (*on_wait)(uint64_t pid);
	uint64_t timeout_ns; /* how long to wait for the allocator's answer */
	double confidence;   /* in (0, 1) */
	bool pins;           /* by call site, with their names */
	bool absent;         /* list objects that are not all resident */
	bool has_top;
	uint64_t top;             /* sites of these; 0: all */
	sp_progress_fn *progress; /* of their names; may be NULL */
	bool has_granularity;
	enum sp_granularity granularity;             /* what a site is */
	const struct sp_symbolizer_options *symbols; /* or NULL */
	bool json;
	const char *html; /* the file for a page; NULL: none */
};

/* 0 and *ret; negative errno and *err.  If the profile cannot be read, this is
 * no error: the rows are those without a profile. */
int sp_rss_ledger_make(const struct sp_rss_options *options,
		       struct sp_rss_ledger *ret, struct sp_error *err);

/* "glibc", ...; NULL: no such allocator. */
const char *sp_rss_allocator_name(uint64_t allocator);

/* "heap_alive", ... */
const char *sp_rss_row_name(enum sp_rss_row_name row);

void sp_rss_print(FILE *out, const struct sp_rss_ledger *ledger);
/* A page for the browser. */
void sp_rss_print_html(FILE *out, const struct sp_rss_ledger *ledger);
/* `absent` and `left_out` are results of sp_absent_write(); NULL: none. */
void sp_rss_print_json(FILE *out, const struct sp_rss_ledger *ledger,
		       const char *absent, double left_out);
