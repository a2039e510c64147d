/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "base/rng.h"
#include "lab/trace.h"
#include "stats/estimator.h"

/*
 * Ways to sample allocations, each with the weights and the interval that come
 * with it.  One run of a strategy over a trace fills an accumulator for each
 * site; those of strategies that have weights of their own hold those weights
 * in est_bytes and est_count.
 */
struct sp_lab_run {
	const struct sp_lab_trace *trace;
	double parameter;     /* see struct sp_lab_strategy */
	struct sp_rng rng;    /* of this run */
	struct sp_acc *sites; /* by trace->sites, initialised */
	uint64_t second;      /* of the last sample */
	uint64_t in_second;   /* samples in it so far */
	uint64_t most_in_second;
};

/* What a strategy is told to keep to `samples` on average. */
enum sp_lab_fit {
	SP_LAB_FIT_PERIOD,    /* the period in bytes that expects as many */
	SP_LAB_FIT_STRIDE,    /* so many bytes, found by trying */
	SP_LAB_FIT_CHANCE,    /* the probability of each object */
	SP_LAB_FIT_THRESHOLD, /* of sp_period_model_best_threshold() */
	SP_LAB_FIT_RATE,      /* samples per second, a target; by trying */
};

struct sp_lab_strategy {
	const char *name;
	const char *about; /* one line of at most 59 columns */
	enum sp_lab_fit fit;
	/* 0 or -ENOMEM. */
	int (*run)(struct sp_lab_run *run);
	/* What its users are told; `parameter` is that of the run. */
	struct sp_interval (*bytes)(const struct sp_acc *acc, double parameter,
				    double confidence);
};

#define SP_LAB_STRATEGIES 12

/* The one behind the last has no name. */
extern const struct sp_lab_strategy sp_lab_strategies[SP_LAB_STRATEGIES + 1];

/* NULL: there is none of that name. */
const struct sp_lab_strategy *sp_lab_strategy_find(const char *name);

/* ---- to write one ---- */

/* The accumulator for a sample of that allocation, which is counted; samples
 * come in the order of time. */
static inline struct sp_acc *sp_lab_take(struct sp_lab_run *run,
					 const struct sp_lab_alloc *alloc)
{
	const uint64_t second = alloc->time_ns / 1000000000;

	if (second != run->second)
		run->in_second = 0;
	run->second = second;
	if (++run->in_second > run->most_in_second)
		run->most_in_second = run->in_second;
	return &run->sites[alloc->site];
}

/* Add an object that was taken with probability chance in (0, 1] (E3, E4). */
void sp_lab_add_chance(struct sp_acc *acc, uint64_t size_bytes, double chance);

/* Add an object that stands for so many bytes. */
void sp_lab_add_weight(struct sp_acc *acc, uint64_t size_bytes,
		       double weight_bytes);

/* The value with the limits of a Poisson number of samples that weigh the same:
 * for strategies that come without an interval. */
struct sp_interval sp_lab_counted(const struct sp_acc *acc, double parameter,
				  double confidence);

/* Each strategy, by file. */
int sp_lab_run_stride(struct sp_lab_run *run);
int sp_lab_run_tlab(struct sp_lab_run *run);
int sp_lab_run_jfr(struct sp_lab_run *run);
int sp_lab_run_objects(struct sp_lab_run *run);
int sp_lab_run_dotnet(struct sp_lab_run *run);
int sp_lab_run_heapprofd(struct sp_lab_run *run);
int sp_lab_run_heapprofd_cut(struct sp_lab_run *run);
int sp_lab_run_summed(struct sp_lab_run *run);
int sp_lab_run_best(struct sp_lab_run *run);
int sp_lab_run_sampleprof(struct sp_lab_run *run);
int sp_lab_run_sampleprof_rate(struct sp_lab_run *run);
