/* SPDX-License-Identifier: MIT */
/* What agent/event/agent.c does about a sample, without the file. */
#include "one_thread.h"

#include "agent/thread/thread.h"

#define CHECK_IN_BYTES 4096

_Thread_local struct sp_thread sp_thread;

static void next_limit(struct sp_thread *t)
{
	t->limit = t->sampler.gap < CHECK_IN_BYTES ? t->sampler.gap
						   : CHECK_IN_BYTES;
	if (t->ended)
		t->limit = 0;
	t->remaining = t->limit;
}

/* What was used of the limit; it has passed. */
static uint64_t settle(struct sp_thread *t)
{
	uint64_t used = t->limit - t->remaining;

	t->bytes += used;
	return used;
}

void thread_begin(const struct sp_law *law, uint64_t seed, uint32_t thread)
{
	sp_thread = (struct sp_thread){.remaining = 0};
	sp_sampler_begin(&sp_thread.sampler, law, seed, 1, thread);
	next_limit(&sp_thread);
}

void thread_change(const struct sp_law *law)
{
	sp_sampler_skip(&sp_thread.sampler, settle(&sp_thread));
	sp_sampler_change(&sp_thread.sampler, law);
	next_limit(&sp_thread);
}

void thread_ends(void)
{
	sp_sampler_skip(&sp_thread.sampler, settle(&sp_thread));
	sp_thread.ended = 1;
	next_limit(&sp_thread);
}

bool thread_allocate(uint64_t size_bytes, uint64_t *ret_offset)
{
	struct sp_thread *t = &sp_thread;
	uint64_t charge = size_bytes, used;
	bool is_sampled;

	if (!sp_thread_charge(charge))
		return false;
	used = settle(t);
	is_sampled = sp_sampler_pass(&t->sampler, used, charge, ret_offset);
	t->bytes += charge;
	next_limit(t);
	return is_sampled;
}

uint64_t thread_bytes(void)
{
	return sp_thread.bytes + sp_thread.limit - sp_thread.remaining;
}
