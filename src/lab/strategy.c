/* SPDX-License-Identifier: MIT */
#include "lab/strategy.h"

#include <string.h>

#include "lab/other_estimators.h"
#include "stats/special.h"

void sp_lab_add_chance(struct sp_acc *acc, uint64_t size_bytes, double chance)
{
	const double z = (double)size_bytes, q = 1 - chance, w = z / chance;

	acc->samples++;
	acc->size_bytes += size_bytes;
	acc->est_bytes += w;
	acc->k2 += w * w * q;
	acc->k3 += w * w * w * q * (1 + q);
	acc->kz += w * w * q * z;
	acc->est_count += 1 / chance;
}

void sp_lab_add_weight(struct sp_acc *acc, uint64_t size_bytes,
		       double weight_bytes)
{
	acc->samples++;
	acc->size_bytes += size_bytes;
	acc->est_bytes += weight_bytes;
	acc->est_count += weight_bytes / (double)size_bytes;
}

/* h hits that weigh `each`, beside `sure` bytes. */
static struct sp_interval poisson_interval(double h, double each, double sure,
					   double confidence)
{
	const double a = (1 - confidence) / 2;

	return sp_interval_around(
		sure + h * each, sure + each * sp_special_gamma_quantile(h, a),
		sure + each * sp_special_gamma_quantile(h + 1, 1 - a));
}

/* Without a sample nothing is known of the weight of one but the parameter,
 * which is the stride or the like. */
struct sp_interval sp_lab_counted(const struct sp_acc *acc, double parameter,
				  double confidence)
{
	const double n = (double)acc->samples;

	(void)parameter;
	return poisson_interval(n, acc->samples ? acc->est_bytes / n : 0, 0,
				confidence);
}

static struct sp_interval weighted_interval(const struct sp_acc *acc,
					    double parameter, double confidence)
{
	(void)parameter;
	return sp_other_weighted(acc, confidence);
}

static struct sp_interval failed_trials(const struct sp_acc *acc,
					double parameter, double confidence)
{
	(void)parameter;
	return sp_other_negbinom(acc, SP_COMPENSATE_NONE, confidence);
}

/* est_bytes are hits times the period, but for the bytes that are certain. */
static struct sp_interval hits_interval(const struct sp_acc *acc,
					double parameter, double confidence)
{
	const double sure = (double)acc->sure_bytes;

	return poisson_interval((acc->est_bytes - sure) / parameter, parameter,
				sure, confidence);
}

static struct sp_interval three_cumulants(const struct sp_acc *acc,
					  double parameter, double confidence)
{
	(void)parameter;
	return sp_estimate_bytes_p3(acc, confidence);
}

const struct sp_lab_strategy sp_lab_strategies[SP_LAB_STRATEGIES + 1] = {
	{"stride", "an object every so many bytes (.NET's AllocationTick)",
	 SP_LAB_FIT_STRIDE, sp_lab_run_stride, sp_lab_counted},
	{"tlab", "the first object of each thread-local buffer (JDK 11)",
	 SP_LAB_FIT_STRIDE, sp_lab_run_tlab, sp_lab_counted},
	{"jfr", "such buffers, throttled to a rate (JDK 16)", SP_LAB_FIT_RATE,
	 sp_lab_run_jfr, sp_lab_counted},
	{"objects", "each object with the same probability", SP_LAB_FIT_CHANCE,
	 sp_lab_run_objects, weighted_interval},
	{"dotnet-weighted", ".NET: each byte; each object by its probability",
	 SP_LAB_FIT_PERIOD, sp_lab_run_dotnet, weighted_interval},
	{"dotnet-trials", ".NET: each byte; failed trials, as published",
	 SP_LAB_FIT_PERIOD, sp_lab_run_dotnet, failed_trials},
	{"heapprofd", "Perfetto: each byte; all hits of an object count",
	 SP_LAB_FIT_PERIOD, sp_lab_run_heapprofd, hits_interval},
	{"heapprofd-cut", "the same, objects of 99 % and more as they are",
	 SP_LAB_FIT_PERIOD, sp_lab_run_heapprofd_cut, hits_interval},
	{"jemalloc-summed", "each byte; the sum of a site is divided once",
	 SP_LAB_FIT_PERIOD, sp_lab_run_summed, sp_lab_counted},
	{"best", "the least variance of all laws by size (E38)",
	 SP_LAB_FIT_THRESHOLD, sp_lab_run_best, three_cumulants},
	{"sampleprof", "this profiler: its sampler, default intervals",
	 SP_LAB_FIT_PERIOD, sp_lab_run_sampleprof, three_cumulants},
	{"sampleprof-rate", "the same with SAMPLEPROF_RATE", SP_LAB_FIT_RATE,
	 sp_lab_run_sampleprof_rate, three_cumulants},
	{0},
};

const struct sp_lab_strategy *sp_lab_strategy_find(const char *name)
{
	for (const struct sp_lab_strategy *s = sp_lab_strategies; s->name; s++)
		if (strcmp(s->name, name) == 0)
			return s;
	return NULL;
}
