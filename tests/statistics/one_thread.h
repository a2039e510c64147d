/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/thread/sampler.h"

/*
 * One thread as the agent sees it, without memory behind its allocations: the
 * word of agent/thread/thread.h and its charge decide, the sampler answers.
 */

/* A new thread in the place of the one before. */
void thread_begin(const struct sp_law *law, uint64_t seed, uint32_t thread);

/* Over to another period, in the middle of a countdown. */
void thread_change(const struct sp_law *law);

/* From now on every allocation is an event, as at the end of a thread. */
void thread_ends(void);

/* An allocation of size_bytes >= 1: true if it is sampled, at *ret_offset. */
bool thread_allocate(uint64_t size_bytes, uint64_t *ret_offset);

/* Bytes allocated since thread_begin(), as counted. */
uint64_t thread_bytes(void);
