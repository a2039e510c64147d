/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/profile.h"
#include "model/whole.h"
#include "stats/strata.h"
#include "stats/size_class_sums.h"

/*
 * From the sums of a set of samples to an estimate with an interval, by the
 * method that the user chose; what every row of a report calls.
 */
enum sp_method {
	SP_METHOD_P3T, /* the default: three cumulants, exact class totals */
	SP_METHOD_P3,  /* three cumulants */
	SP_METHOD_COUNT,
};

/* "p3t", ...; one line on what it assumes; false for an unknown name. */
const char *sp_method_name(enum sp_method method);
const char *sp_method_assumes(enum sp_method method);
bool sp_method_parse(const char *name, enum sp_method *ret);

/* What the samples of a size class gain by the exact totals (E46). */
struct sp_gain {
	double by_k2; /* to their value, for each unit of their variance */
	double k2;    /* factors of their cumulants */
	double k3;
};

/* All samples of a profile, against which subsets are held. */
struct sp_population {
	struct sp_class_sums all;
	bool has_totals;         /* class totals are there and can be used */
	const char *why_without; /* if not: one clause for people */
	/* What was allocated in each class lies between `low` and `low` plus
	 * the slack. */
	struct sp_class_total low[SP_FORMAT_CLASSES];
	uint64_t slack_bytes;
	/* All that was allocated, at most: no estimate exceeds it.  INFINITY
	 * if the file does not know. */
	double most_bytes;
	double most_objects;
	/* (E61) Of what was allocated, no sample can have seen so much: each
	 * subset may have all of it.  0 of a whole profile; INFINITY: not
	 * known. */
	double gap_bytes;
	double gap_objects;
	struct sp_smallest smallest; /* of all that was allocated */
	/* Which classes are held against their totals together: all that
	 * expect too few samples share stratum 0 (E17). */
	uint8_t stratum[SP_FORMAT_CLASSES];
	/* (E46) in bytes and in objects; without totals nothing. */
	struct sp_gain bytes_gain[SP_FORMAT_CLASSES];
	struct sp_gain objects_gain[SP_FORMAT_CLASSES];
};

/* 0 or -ENOMEM.  Borrows nothing from the profile. */
int sp_population_init(struct sp_population *population,
		       const struct sp_profile *profile);
void sp_population_free(struct sp_population *population);

/* The strata in which the subset has samples, and before them, if there are
 * others, those as one; `strata` has room for SP_STRATA_MAX.  Returns how many.
 */
uint32_t sp_population_strata(const struct sp_population *population,
			      const struct sp_class_sums *sums,
			      struct sp_stratum *strata);

struct sp_estimation {
	enum sp_method method;
	double confidence;                      /* in (0, 1), 0.95 */
	const struct sp_population *population; /* borrowed; NULL: no totals */
	/* Lower limits may fail in that share of the runs in which the row has
	 * so many samples (E41); 0 is 1: any. */
	unsigned int samples_min;
};

/*
 * Bytes, and objects, of the subset of allocations whose samples the sums
 * are; the subset was chosen without looking at the samples.  Always
 * lo <= value <= hi.
 */
struct sp_interval sp_estimate_bytes(const struct sp_estimation *how,
				     const struct sp_class_sums *sums);
struct sp_interval sp_estimate_objects(const struct sp_estimation *how,
				       const struct sp_class_sums *sums);

/* Their values, to the bit, at a fraction of the time. */
double sp_estimate_bytes_value(const struct sp_estimation *how,
			       const struct sp_class_sums *sums);
double sp_estimate_objects_value(const struct sp_estimation *how,
				 const struct sp_class_sums *sums);
