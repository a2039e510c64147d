/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "format/layout.h"
#include "report/aggregate.h"
#include "report/answer.h"
#include "resident/pages.h"
#include "resident/rounding.h"
#include "stats/amounts.h"

/*
 * Pinned memory by call site: the free memory of the allocator that cannot go
 * back to the kernel because a live object of that site lies beside it.  Free
 * memory between two objects counts half for either, so that all sites together
 * have all of it (E70).
 */

enum sp_rss_pins_state {
	SP_RSS_PINS_KNOWN,
	SP_RSS_PINS_NO_PROFILE,
	SP_RSS_PINS_NO_FREES,   /* what is alive was not recorded */
	SP_RSS_PINS_SEVERAL,    /* files: each has its own memory */
	SP_RSS_PINS_NO_ADDRESS, /* the file does not say where objects are */
	SP_RSS_PINS_UNREADABLE, /* the memory of the process */
	SP_RSS_PINS_NEEDS_ALL,  /* period 1: the allocator has no headers */
	SP_RSS_PINS_ENDED,      /* likewise: the process is not there to ask */
	SP_RSS_PINS_NO_ANSWER,  /* it is, and does not answer */
};

/* How it was found. */
enum sp_rss_pins_rule {
	SP_RSS_PINS_BY_HEADERS, /* glibc's: the chunks beside an object */
	SP_RSS_PINS_BY_SLABS,   /* jemalloc's: all objects of a slab */
	SP_RSS_PINS_BY_PAGES,   /* all objects of a page */
	SP_RSS_PINS_BY_ASKING,  /* jemalloc says it of each slab */
};

#define SP_RSS_PINS_LEFT 3

struct sp_rss_pin_site {
	const struct sp_aggregate_function *function;
	uint64_t samples; /* beside which something is free */
	struct sp_interval pinned;
	struct sp_interval trim; /* what malloc_trim(0) would give back */
	/* The period that would tell it to SP_RSS_PINS_ERROR; 0: this does. */
	uint64_t needs_period_bytes;
	/* The call stack that pins most of it, and its share. */
	const struct sp_aggregate_stack *stack;
	double stack_share;
	/* Whose objects were there before they were freed, most first, by their
	 * share in what was seen of that. */
	struct {
		const struct sp_aggregate_function *function;
		double share;
	} left[SP_RSS_PINS_LEFT];
	size_t n_left;
};

/* Half of a 95 % interval, relative, that is good enough. */
#define SP_RSS_PINS_ERROR 0.2

struct sp_rss_pins {
	enum sp_rss_pins_state state; /* of other states nothing is below */
	enum sp_rss_pins_rule rule;
	double confidence;
	bool is_exact; /* every object was recorded */
	bool has_trim; /* else it is not known what a trim gives back */
	bool can_tell; /* there are samples enough to tell anything */
	struct sp_interval pinned, trim; /* of all sites */
	uint64_t needs_period_bytes;     /* for all together */
	uint64_t samples;                /* beside which something is free */
	/* Objects that were looked at; and of all: freed meanwhile; with
	 * headers that did not agree; mapped by themselves; in no place that
	 * the allocator has, or has told of; whose addresses are not known. */
	uint64_t looked, gone, torn, large, odd, unknown;
	/* What the allocator counts, if it was used. */
	bool is_held;
	uint64_t free_bytes;         /* in holes */
	uint64_t top_bytes;          /* behind them, which a trim gives back */
	uint64_t fast_bytes;         /* in objects that look alive */
	uint64_t fast_objects;       /* so many, without those of threads */
	uint64_t cached_objects_max; /* so many in caches of threads */
	uint64_t cached_bytes;       /* in these, if that is counted */
	struct sp_rss_pin_site *sites; /* most pinned first */
	size_t n_sites;
	struct sp_profile *profile; /* owned, and what follows */
	struct sp_answer answer;
	struct sp_aggregate *aggregate;
	const struct sp_aggregate_function **by_row;
	/* Those that may have left holes: of all that was allocated. */
	struct sp_answer left_answer;
	struct sp_aggregate *left_aggregate;
	const struct sp_aggregate_function **left_by_row;
	struct sp_question question; /* of `answer`: what is alive */
};

/* A process that is there. */
struct sp_rss_pins_process {
	struct sp_rss_pages *pages;
	const struct sp_rss_rounding *rounding;
	uint64_t allocator; /* enum sp_allocator */
	bool is_glibc;
	uint64_t threads;
	uint64_t free_bytes;           /* as it was asked */
	struct sp_control_glibc glibc; /* likewise, if has_more */
	/* Ends of glibc's arenas but the main one. */
	const uint64_t *arenas; /* where their heaps begin */
	size_t n_arenas;
	bool was_asked; /* and has answered */
	/* What jemalloc says of slabs; `objects` by addresses, some of them
	 * twice, NULL: it does not say. */
	struct sp_control_slabs slabs;
	const struct sp_control_object *objects;
};

struct sp_rss_pins_question {
	const char *path; /* the profile */
	enum sp_granularity granularity;
	const struct sp_symbolizer_options *symbols;
	const struct sp_question
		*question; /* filter, threads, times; or NULL */
	double confidence;
	sp_progress_fn *progress; /* may be NULL */
};

/* `process` is NULL if it has ended, or is not to be looked at.  0 and *ret, to
 * be freed by the caller; negative errno and *err. */
int sp_rss_pins_find(const struct sp_rss_pins_question *question,
		     const struct sp_rss_pins_process *process,
		     struct sp_rss_pins **ret, struct sp_error *err);

/* Of a process that has none; NULL without memory. */
struct sp_rss_pins *sp_rss_pins_without_profile(void);

void sp_rss_pins_free(struct sp_rss_pins *pins);

/* As the question of a page: top: sites, 0: all. */
void sp_rss_pins_print(FILE *out, const struct sp_rss_pins *pins, uint64_t top);

struct sp_json;
void sp_rss_pins_write_json(struct sp_json *json,
			    const struct sp_rss_pins *pins);

/* Why not, and what would help: a sentence or two; NULL if it is known. */
const char *sp_rss_pins_why_not(const struct sp_rss_pins *pins);
