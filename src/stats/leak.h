/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "stats/growth.h"

/*
 * A verdict for each call site (docs/statistics.md, "Leak or not").  Undecided
 * is what is left: no verdict is given for want of samples.
 */
enum sp_leak_verdict {
	SP_LEAK_UNDECIDED,
	SP_LEAK_STEADY,  /* it keeps what it has, or little of what it makes */
	SP_LEAK_FILLING, /* it grows, and slows down */
	SP_LEAK_LEAK,    /* it grows, and does not slow down */
};

/* "undecided", "steady", "filling", "leak" */
const char *sp_leak_verdict_name(enum sp_leak_verdict verdict);

/* The clocks that windows are cut by. */
enum { SP_LEAK_BY_TIME, SP_LEAK_BY_BYTES, SP_LEAK_BY_ALL, SP_LEAK_CLOCKS };

/* The false-discovery rate among what is called a leak. */
#define SP_LEAK_RATE 0.05
/* Samples that have to become old before a site is tested. */
#define SP_LEAK_SAMPLES 20

struct sp_leak {
	/* By each clock; that by bytes is used where the run is uneven. */
	struct sp_growth growth[SP_LEAK_CLOCKS];
	enum sp_leak_verdict verdict;
	bool is_tested; /* it had SP_LEAK_SAMPLES */
	bool grows;     /* seen to, at the level 2.5 % */
	bool in_steps;  /* it grew in few windows, or by few objects */
	double p;       /* of "no leak"; 1 if it was not tested */
	/* By time, after the start: growth, of all and of the second half. */
	struct sp_interval bytes;
	struct sp_interval half_bytes;
	/* Undecided: so many times as long a run would tell most times, or with
	 * a period so many times as short; 0: neither would, or unknown. */
	double longer;
	double shorter;
};

/* Those of a run in which the samples of all sites are. */
struct sp_leak_judging {
	size_t n_tests;
	size_t n_leaks;
};

/* How the windows of all rows were cut. */
struct sp_leak_clocks {
	bool is_uneven;   /* both clocks say what is a leak; else time alone */
	bool is_own;      /* of all bytes, many are of what grows */
	bool is_load;     /* windows are cut by what is freed soon alone */
	bool has_all;     /* if so: those by all bytes may show a leak, too */
	double gap_bytes; /* any row may have them: samples were lost (E61) */
};

/* Set what is behind `growth` in each row, by both clocks.  The first
 * `n_sites` of the n rows are judged together, the others are sums of them and
 * each by itself.  0 or -ENOMEM. */
int sp_leak_judge(struct sp_leak *rows, size_t n, size_t n_sites,
		  const struct sp_leak_clocks *clocks,
		  struct sp_leak_judging *ret);
