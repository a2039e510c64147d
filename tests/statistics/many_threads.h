/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "agent/thread/sampler.h"

/*
 * Threads of a process with a target of samples per second, as
 * agent/event/agent.c treats their events, without memory behind their
 * allocations and on a clock that the test moves.  The sampler, the rate and
 * its throttle are the agent's.
 */
struct worker {
	struct sp_sampler sampler;
	uint64_t pending_bytes; /* since its last check-in */
};

/* The agent's clock at time 0: no process is started when a clock is. */
#define WORKERS_START_NS 1000000000000u

/* A process begins, at time 0. */
void workers_begin(uint64_t base_bytes, uint64_t samples_per_s);

/* Its thread `index`, 1... */
void worker_begin(struct worker *worker, uint64_t seed, uint32_t index);

/* What is told of each sample, in the order of time. */
typedef void worker_sample(void *arg, uint64_t size_bytes,
			   uint64_t offset_bytes, uint64_t period_bytes,
			   uint64_t now_ns);

/* n objects of size_bytes >= 1, evenly between two times; those do not go back
 * in a process. */
void worker_allocate(struct worker *worker, uint64_t size_bytes, uint64_t n,
		     uint64_t from_ns, uint64_t to_ns, worker_sample *sample,
		     void *arg);

/* How often the period was changed, and the largest one, since the process
 * began. */
uint64_t workers_changes(void);
uint64_t workers_longest(void);
