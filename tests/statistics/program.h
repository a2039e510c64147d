/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Simulated programs: kinds of equal objects, and the order in which they are
 * allocated.  The subset is what a question is about, one call site for
 * instance; the rest is everything else.
 */
#define KINDS_MAX 400
#define RUNS_MAX  400

struct kind {
	uint64_t size_bytes;
	uint64_t period_bytes;
	bool in_rest;
};

/* `count` objects of a kind, one after another. */
struct run {
	unsigned int kind;
	uint64_t count;
};

struct program {
	struct kind kind[KINDS_MAX];
	struct run run[RUNS_MAX]; /* allocated in this order ... */
	uint64_t turns;           /* ... so many times */
	unsigned int kinds, runs;
};

/* The period of all programs here, unless they have two. */
#define PERIOD 65536

/* Sizes of a subset or of a rest. */
enum sizes {
	SIZES_FIXED,     /* a: the size in bytes */
	SIZES_PARETO,    /* a: the exponent; 16 bytes and more */
	SIZES_LOGNORMAL, /* a: sigma; median 64 bytes */
	SIZES_PAIR,     /* half of the bytes each in objects of a and b bytes */
	SIZES_JEMALLOC, /* half each in 8 bytes and in one object */
	SIZES_SINGLE,   /* one object */
	SIZES_PERIODIC, /* a: the size; in turns with a period's worth of rest
			 */
};

struct workload {
	const char *name;
	enum sizes sizes;
	double a, b;
};

/* Empty, of one turn. */
void program_init(struct program *p);

/*
 * Add objects of the workload until they have about `bytes`; one at least.
 * Sizes that have a distribution are its quantiles, the larger ones one by one
 * and the others in groups of nearly equal ones.
 */
void program_add(struct program *p, const struct workload *w, double bytes,
		 bool in_rest);

/* Bytes and number of the objects of the subset, or of the rest. */
double program_bytes(const struct program *p, bool in_rest);
double program_objects(const struct program *p, bool in_rest);
