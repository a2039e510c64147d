/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "model/profile.h"
#include "report/aggregate.h"
#include "report/load.h"

/* Limit of files on one side of a comparison. */
#define SP_EXPORT_BASE_MAX 1024u

struct sp_row;

/* A part of a profile, for a caller that sends it in parts. */
struct sp_export_part {
	uint64_t start_unix_ns; /* instead of the process's */
	uint64_t duration_ns;
	/* Change the values of `rows`, one for each stack, and move those that
	 * are wanted to the front.  Returns how many; SIZE_MAX: no memory. */
	size_t (*choose)(void *arg, const struct sp_profile *profile,
			 struct sp_row *rows, size_t n);
	void *arg;
};

/* The options that only exports have. */
struct sp_export_options {
	bool of_objects;      /* --metric objects: weights count objects */
	bool pprof_error;     /* two more sample types: variance, samples */
	uint64_t max_samples; /* pprof: at most so many samples; 0: no limit */
	const struct sp_export_part *part; /* of pprof; NULL: all of it */
	/* --base: what to compare with; several files are added up. */
	const char *base_files[SP_EXPORT_BASE_MAX];
	size_t n_base_files;
	/* The answer for these files, set by sp_export_write(); NULL without
	 * them. */
	const struct sp_aggregate *base;
};

/* The options that a format supports. */
enum sp_export_knows {
	SP_EXPORT_KNOWS_METRIC = 1,
	SP_EXPORT_KNOWS_PPROF = 2, /* --pprof-error, --max-samples */
	SP_EXPORT_KNOWS_BASE = 4,  /* --base */
	/* No option: the format also shows call stacks that are not in the
	 * view. */
	SP_EXPORT_KNOWS_OTHERS = 8,
	SP_EXPORT_KNOWS_MAPPED = 16,   /* --view mapped, reserved */
	SP_EXPORT_KNOWS_RESIDENT = 32, /* --metric resident */
};

/*
 * A format for other programs.  `write` gets the answer with names of
 * functions; the profile is aggregate->analysis->profile.  It returns 0, or
 * negative errno and *err, with nothing or a part written.  Write errors stay
 * in the stream.
 */
struct sp_export_format {
	const char *name;
	const char *what;   /* for --help, at most 58 columns */
	bool is_binary;     /* not for a terminal */
	unsigned int knows; /* enum sp_export_knows */
	int (*write)(FILE *out, const struct sp_aggregate *aggregate,
		     const struct sp_export_options *options,
		     struct sp_error *err);
	struct sp_load_needs needs; /* of the profile */
};

/*
 * Round a non-negative estimate to an integer without bias: it is rounded up
 * with a probability equal to its fraction, which the hash decides.  Rounding
 * to the nearest integer, or down, would bias the sum over many profiles.  At
 * most `max` >= 0.
 */
int64_t sp_export_round(double value, uint64_t hash, int64_t max);

/* The seed of such hashes.  It differs between profiles of the same program, so
 * that they round independently. */
uint64_t sp_export_seed(const struct sp_profile *profile);
