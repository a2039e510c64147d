/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/arguments.h"
#include "model/profile.h"
#include "read/load.h"
#include "report/aggregate.h"
#include "stats/period_model.h"
#include "stats/estimator.h"
#include "symbols/symbolizer.h"

/* The advise command: which sampling period a program needs, judged by one
 * recording of it (docs/statistics.md, E34 to E39). */
struct sp_advise_options {
	const char *file;
	struct sp_symbolizer_options symbols;
	double error;   /* wanted: half an interval, relative; in (0, 1) */
	uint64_t top;   /* functions to give it to, >= 1 */
	bool json, csv; /* not both */
};

/* As sp_options_parse(). */
int sp_advise_parse(int argc, char **argv, struct sp_advise_options *ret,
		    struct sp_error *err);

extern const struct sp_command_line sp_advise_line;

/* What is reckoned with: processor time, and bytes of the file, of one sample
 * and its free (docs/benchmarks.md; docs/guide.md, "How to choose the period").
 */
#define SP_ADVISE_SAMPLE_NS    530
#define SP_ADVISE_SAMPLE_BYTES 35

/* Fewer samples than that say nothing about a function, or about a program. */
#define SP_ADVISE_SITE_SAMPLES 6
#define SP_ADVISE_SAMPLES      30

#define SP_ADVISE_CONFIDENCE 0.95

/* A share of the bytes that everybody might want to see. */
#define SP_ADVISE_SMALL 0.01

struct sp_advise_site {
	const char *name;
	const char *module; /* path; "" if the code is in no module */
	uint64_t samples;
	struct sp_interval bytes;
	bool can_tell;                /* are the samples enough? */
	struct sp_period_model sizes; /* as estimated */
	double error;                 /* expected with the period of now */
	struct sp_interval period;    /* that gives the error wanted: if it has
				       * bytes.value, .lo, .hi */
};

/* What a period gives, if the program does again what it did. */
struct sp_advise_row {
	uint64_t period_bytes;
	/* Rates; NAN of a run that is too short for them. */
	double samples_per_s;
	double processor; /* share of one */
	double bytes_per_hour;
	double error_all;   /* bytes of the program */
	double error_first; /* of the first site that can be told, and of the */
	double error_last;  /* last; NAN if there is none */
	double error_small; /* of any 1 % of the bytes, at most */
};

#define SP_ADVISE_ROWS 6

struct sp_advice {
	const struct sp_profile *profile;        /* borrowed */
	const struct sp_advise_options *options; /* borrowed */
	uint64_t samples;
	double seconds;
	bool has_rates;               /* the run was long enough for them */
	uint64_t period_bytes;        /* of now, the largest; 1: everything */
	bool is_mixed;                /* there were shorter ones */
	uint64_t try_bytes;           /* period to record with first; 0: none */
	struct sp_period_model sizes; /* of the program */
	bool is_exact;                /* they were counted, not estimated */
	struct sp_advise_site *sites; /* most bytes first */
	size_t n_sites;               /* at most options->top */
	size_t n_told;                /* of these, that can be told */
	size_t first; /* their positions, from 1; 0: there is none */
	size_t last;
	/* Powers of two, for all sites that can be told, and for 1 % of the
	 * bytes; 0: cannot be told. */
	uint64_t sites_period_bytes;
	uint64_t small_period_bytes;
	/* That with which `rss --pins` tells who pins, if each object that is
	 * alive at the end lies beside something free (E70); a power of two.
	 * 0: nothing is alive, or that is not known. */
	uint64_t pins_period_bytes;
	struct sp_advise_row rows[SP_ADVISE_ROWS]; /* ascending periods */
	/* Standard errors of the law by bytes over those of the best law by
	 * size with as many samples, >= 1: of all bytes, and of the number of
	 * objects, with the period of row `compared` (E38, E39). */
	double worse_bytes;
	double worse_objects;
	double worse_samples; /* as many more samples would make up for it */
	uint64_t compared_bytes;
	struct sp_period_model_class *classes; /* of all models; owned */
};

/*
 * Advise by what was allocated: the aggregate is by functions, and, like the
 * options, is borrowed.  0 and *ret, to be freed by the caller; -ENOMEM and
 * *err.
 */
int sp_advise_new(const struct sp_aggregate *aggregate,
		  const struct sp_advise_options *options,
		  struct sp_advice **ret, struct sp_error *err);

void sp_advise_free(struct sp_advice *advice);

/* Are there enough samples to say anything? */
bool sp_advise_can_tell(const struct sp_advice *advice);

/* What a period would give. */
struct sp_advise_row sp_advise_row(const struct sp_advice *advice,
				   uint64_t period_bytes);

/*
 * All at once: advise by the profile and write it to `out`.  `progress` may be
 * NULL.  0 and *ret_can_tell; negative errno and *err.
 */
int sp_advise_print(FILE *out, const struct sp_profile *profile,
		    const struct sp_advise_options *options,
		    sp_progress_fn *progress, void *progress_arg,
		    bool *ret_can_tell, struct sp_error *err);

/* As text, or, if the options say so, as JSON.  Write errors stay in the
 * stream.  0 or -ENOMEM. */
int sp_advise_write(FILE *out, const struct sp_advice *advice);
