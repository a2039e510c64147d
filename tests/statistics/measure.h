/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "program.h"

/* How often intervals contain the truth, in many runs of one program. */
enum answer {
	ANSWER_P3,          /* bytes, three cumulants */
	ANSWER_P3T,         /* bytes, with exact class totals */
	ANSWER_NEGBINOM,    /* bytes, negative binomial with s + 1 above */
	ANSWER_AS_WRITTEN,  /* bytes, negative binomial with s above */
	ANSWER_OBJECTS,     /* number of objects, three cumulants */
	ANSWER_OBJECTS_P3T, /* the same with exact class totals */
	ANSWER_SHARE,       /* share of the bytes, totals unknown */
	ANSWERS,
};

/* "p3", ...; the least coverage that is claimed at a level, 0: none. */
const char *answer_name(enum answer answer);
double answer_claim(enum answer answer, double confidence);

#define LEVELS 5
extern const double levels[LEVELS]; /* 0.95 first */

struct question {
	const struct workload *subset;
	const struct workload *rest; /* NULL: the subset is everything */
	double periods;              /* bytes of all, in periods */
	double share;                /* of the subset in that */
	bool two_periods;            /* the period changes as it runs */
	double late;                 /* periods that the totals may lack */
	unsigned int answers;        /* 1 << answer, and so on */
	unsigned int levels;         /* the first so many */
};

struct measured {
	unsigned int replicates;
	unsigned int covered[ANSWERS][LEVELS];
	double width[ANSWERS][LEVELS]; /* mean, divided by the truth */
	double samples;                /* mean */
	double periods;                /* of the subset, as it came out */
	/* Mean estimate minus truth, divided by its exact standard error. */
	double z_bytes, z_objects;
};

/* False if the program cannot have so few bytes. */
bool measure(const struct question *q, unsigned int replicates, uint64_t seed,
	     struct measured *ret);
