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
#include "rss/pages.h"
#include "stats/amounts.h"

/*
 * Pinned memory by call site: the free memory of the allocator that cannot go
 * back to the kernel because a live object of that site lies beside it.  Half
 * of the free memory between two objects counts for each, so that the sites add
 * up to all of it (E70).
 */

enum sp_rss_pins_state {
	SP_RSS_PINS_KNOWN,
	SP_RSS_PINS_NO_PROFILE,
	SP_RSS_PINS_UNSEEN, /* the library does not see the program's malloc */
	SP_RSS_PINS_NO_FREES,   /* frees were not recorded */
	SP_RSS_PINS_SEVERAL,    /* files: each has its own memory */
	SP_RSS_PINS_NO_ADDRESS, /* the file does not say where objects are */
	SP_RSS_PINS_UNREADABLE, /* the memory of the process */
	SP_RSS_PINS_CANNOT_ASK, /* its allocator, or not of every object */
	SP_RSS_PINS_NO_ANSWER,  /* the process does not answer */
};

/* How free memory beside objects was found. */
enum sp_rss_pins_rule {
	SP_RSS_PINS_BY_HEADERS, /* glibc's: the chunks beside an object */
	SP_RSS_PINS_BY_ASKING,  /* jemalloc's own figures of each slab */
};

#define SP_RSS_PINS_LEFT 3

struct sp_rss_pin_site {
	const struct sp_aggregate_function *function;
	uint64_t samples; /* beside which something is free */
	struct sp_interval pinned;
	struct sp_interval
		trim; /* what malloc_trim(0) would return to the kernel */
	/* The period that gives an error of SP_RSS_PINS_ERROR; 0: this one
	 * does. */
	uint64_t needs_period_bytes;
	/* The call stack that pins most of it, and its share. */
	const struct sp_aggregate_stack *stack;
	double stack_share;
	/* The sites of the freed objects that were last there, largest share
	 * first; shares are of the bytes whose last object is known. */
	struct {
		const struct sp_aggregate_function *function;
		double share;
	} left[SP_RSS_PINS_LEFT];
	size_t n_left;
};

/* The relative half width of a 95 % interval that is good enough. */
#define SP_RSS_PINS_ERROR 0.2

struct sp_rss_pins {
	enum sp_rss_pins_state state; /* if not KNOWN, the rest is not set */
	enum sp_rss_pins_rule rule;
	double confidence;
	bool is_exact; /* every object was recorded */
	bool has_trim; /* else `trim` is unknown */
	bool can_tell; /* there are enough samples for any statement */
	struct sp_interval pinned, trim; /* of all sites */
	uint64_t needs_period_bytes;     /* for all together */
	uint64_t samples;                /* beside which something is free */
	/* Numbers of objects: used; and left out because they were freed
	 * meanwhile; their headers do not agree; they have a mapping of their
	 * own; the allocator was not asked for them; their addresses are
	 * unknown. */
	uint64_t looked, gone, torn, large, odd, unknown;
	/* The allocator's counts, if they were used. */
	bool is_held;
	uint64_t free_bytes;   /* in holes */
	uint64_t top_bytes;    /* at the ends of arenas, which a trim returns */
	uint64_t fast_bytes;   /* in freed objects that look alive */
	uint64_t fast_objects; /* their number, without those in caches of
				  threads */
	uint64_t cached_objects_max; /* at most so many in caches of threads */
	uint64_t cached_bytes; /* in caches of threads, if that is counted */
	struct sp_rss_pin_site *sites; /* most pinned first */
	size_t n_sites;
	struct sp_profile *profile; /* owned, as all that follows */
	struct sp_answer answer;
	struct sp_aggregate *aggregate;
	/* For `left`: the same for everything that was allocated. */
	struct sp_answer left_answer;
	struct sp_aggregate *left_aggregate;
	struct sp_question question; /* of `answer`: live objects */
};

/* A running process. */
struct sp_rss_pins_process {
	struct sp_rss_pages *pages;
	bool is_glibc;
	uint64_t threads;
	uint64_t free_bytes;           /* as the process answered */
	struct sp_control_glibc glibc; /* the same, if has_more */
	/* glibc's arenas except the main one. */
	const uint64_t *arenas; /* addresses at which their heaps begin */
	size_t n_arenas;
	bool was_asked; /* and answered */
	/* jemalloc's figures of slabs; `objects` sorted by addresses, with
	 * duplicates; NULL: none. */
	struct sp_control_slabs slabs;
	const struct sp_control_object *objects;
};

struct sp_rss_pins_question {
	const char *path; /* the profile */
	enum sp_granularity granularity;
	const struct sp_symbolizer_options *symbols;
	double confidence;
	sp_progress_fn *progress; /* may be NULL */
};

/* 0 and *ret, to be freed by the caller; negative errno and *err. */
int sp_rss_pins_find(const struct sp_rss_pins_question *question,
		     const struct sp_rss_pins_process *process,
		     struct sp_rss_pins **ret, struct sp_error *err);

/* The result where no profile tells; NULL without memory. */
struct sp_rss_pins *sp_rss_pins_unknown(enum sp_rss_pins_state state);

void sp_rss_pins_free(struct sp_rss_pins *pins);

/* `top` is the number of sites; 0: all. */
void sp_rss_pins_print(FILE *out, const struct sp_rss_pins *pins, uint64_t top);

struct sp_json;
void sp_rss_pins_write_json(struct sp_json *json,
			    const struct sp_rss_pins *pins);

/* Why there is no result, and a remedy, in one or two sentences; NULL if the
 * state is SP_RSS_PINS_KNOWN. */
const char *sp_rss_pins_why_not(const struct sp_rss_pins *pins);
