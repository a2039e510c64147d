/* SPDX-License-Identifier: MIT */
/* The public interface, sampleprof/sampleprof.h. */
#include "sampleprof/sampleprof.h"

#include "agent/agent.h"
#include "agent/export.h"

#include "agent/poison.h"

SP_EXPORT int sampleprof_thread_totals(struct sampleprof_totals *ret)
{
	return sp_agent_thread_totals(&ret->alloc_bytes, &ret->alloc_objects)
		       ? 0
		       : -1;
}

SP_EXPORT int sampleprof_process_totals(struct sampleprof_totals *ret)
{
	return sp_agent_process_totals(&ret->alloc_bytes, &ret->alloc_objects)
		       ? 0
		       : -1;
}
