/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_AGENT_H
#define SP_AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/layout.h"

/* A thread publishes its exact totals at least that often, in bytes. */
#define SP_AGENT_CHECK_IN_BYTES (1ull << 20)

/*
 * What interpose.c calls when an allocation takes the cold path:
 *
 *     struct sp_event event;
 *     sp_agent_charge(n, &event);
 *     p = the real call;
 *     sp_agent_finish(&event, p, entry, return address);
 *
 * Between the two the thread is in its normal state, so that the real call may
 * throw, jump out, or never return.
 */
struct sp_event {
	bool counted;
	bool sampled;
	uint64_t size_bytes;
	uint64_t offset_bytes;
	uint64_t period_bytes;
};

/* The thread's word was charged with n bytes and borrowed. */
void sp_agent_charge(uint64_t n, struct sp_event *event);

/* The allocation succeeded with address p, or failed (NULL): then it is not
 * counted after all.  Errno is as before. */
void sp_agent_finish(const struct sp_event *event, void *p, enum sp_entry entry,
		     const void *caller);

/* Set this thread up, so that it has an identity; for thread names. */
void sp_agent_attach(void);

/* Exact totals of this thread, and of the process as far as they are known;
 * false if nothing is being counted. */
bool sp_agent_thread_totals(uint64_t *ret_bytes, uint64_t *ret_objects);
bool sp_agent_process_totals(uint64_t *ret_bytes, uint64_t *ret_objects);

#endif
