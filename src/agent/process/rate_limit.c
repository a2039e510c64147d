/* SPDX-License-Identifier: MIT */
#include "agent/process/rate_limit.h"

#include "base/wide.h"
#include "format/layout.h"

#include "agent/sys/poison.h"

#define SECOND_NS 1000000000ull
#define CREDIT_NS SECOND_NS
/* The lead that raises the period e-fold: shorter, and bursts are sampled
 * unevenly; longer, and they overshoot (docs/guide.md).  At least these many
 * samples, lest the period follow their noise. */
#define EFOLD_NS      SECOND_NS
#define EFOLD_SAMPLES 32u
#define LN2_Q16       45426u /* ln 2 * 2^16 */

void sp_rate_limit_init(struct sp_rate_limit *ret, uint64_t samples_per_s)
{
	uint64_t efold_ns = EFOLD_NS;

	*ret = (struct sp_rate_limit){0};
	if (!samples_per_s)
		return;
	ret->interval_ns = SECOND_NS / samples_per_s;
	ret->credit_ns = CREDIT_NS;
	if (efold_ns < EFOLD_SAMPLES * ret->interval_ns)
		efold_ns = EFOLD_SAMPLES * ret->interval_ns;
	ret->step_ns = (efold_ns / 4 * LN2_Q16) >> 16;
}

uint64_t sp_rate_limit_charge(const struct sp_rate_limit *rate_limit,
			      uint64_t due_ns, uint64_t now_ns)
{
	const uint64_t credit_ns = rate_limit->credit_ns;
	const uint64_t oldest_ns = now_ns > credit_ns ? now_ns - credit_ns : 0;

	return (due_ns > oldest_ns ? due_ns : oldest_ns) +
	       rate_limit->interval_ns;
}

unsigned int sp_rate_limit_step(const struct sp_rate_limit *rate_limit,
				unsigned int step, uint64_t due_ns,
				uint64_t now_ns)
{
	uint64_t lead_steps;
	unsigned int low;

	if (!rate_limit->interval_ns || due_ns <= now_ns)
		return 0;
	lead_steps = (due_ns - now_ns) / rate_limit->step_ns;
	low = lead_steps < SP_RATE_LIMIT_STEPS_MAX ? (unsigned int)lead_steps
						   : SP_RATE_LIMIT_STEPS_MAX;
	if (step < low)
		return low;
	return step > low + 1 ? low + 1 : step;
}

uint64_t sp_rate_limit_period(uint64_t base_bytes, unsigned int step)
{
	/* 2^(i / 4) with 32 fractional bits. */
	static const uint64_t root[] = {0x100000000, 0x1306fe0a3, 0x16a09e668,
					0x1ae89f996};
	const sp_u128 period =
		(((sp_u128)base_bytes * root[step % 4]) << step / 4) >> 32;

	return period < SP_FORMAT_PERIOD_MAX ? (uint64_t)period
					     : SP_FORMAT_PERIOD_MAX;
}
