/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "agent/thread/sampler.h"

/*
 * OpenTelemetry's memory probes, as notes for eBPF profilers, perf and gdb:
 *
 *     otel_memory:alloc(address, size_bytes, weight_bytes)
 *     otel_memory:free(address)
 *
 * of sampled objects.  weight_bytes is an integer whose mean is the size
 * divided by the probability that it was sampled (E3), so that sums are
 * estimates. `number` differs from sample to sample, and decides how it is
 * rounded.  While nobody watches, a probe is a load of its semaphore.  Context:
 * sampled.
 */
void sp_probes_alloc(const void *p, uint64_t size_bytes,
		     const struct sp_law *law, uint64_t number);
void sp_probes_free(const void *p);
