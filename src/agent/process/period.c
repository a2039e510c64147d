/* SPDX-License-Identifier: MIT */
#include "agent/process/period.h"

#include <stddef.h>

#include "agent/process/rate_limit.h"
#include "agent/sys/arena.h"
#include "agent/sys/clock.h"
#include "agent/sys/diag.h"

#include "agent/sys/poison.h"

const struct sp_law sp_period_off;

_Atomic(const struct sp_law *) sp_period_now = &sp_period_off;

/* Every law that was ever in force: as many as there were different periods,
 * and of one base no more than SP_RATE_LIMIT_STEPS_MAX. */
struct known {
	const struct known *next;
	struct sp_law law;
};

static enum sp_law_kind kind;
static const struct sp_law *first; /* of the start */
static const struct known *known_laws;
static struct sp_rate_limit rate_limit;
static _Atomic uint64_t due_ns; /* rate_limit.h */

/* Written under the lock of marks.c. */
static _Atomic uint64_t base_bytes;
static _Atomic unsigned int step; /* of the period above the base */
static _Atomic uint64_t ceiling_bytes;
/* How often the period is doubled for the file: in force, and wanted. */
static _Atomic unsigned int doublings;
static _Atomic unsigned int wanted_doublings;
static unsigned int last_percent; /* sp_period_fit */

/* Near the limit of memory: in force, and wanted. */
static atomic_bool was_pressed;
static atomic_bool is_pressed;
static atomic_bool has_alarm; /* has come there */

#define PRESSED_SHARE 8u
#define PRESSED_MIN   4096u

void sp_period_init(const struct sp_law *law, enum sp_law_kind of_kind,
		    bool is_on, uint64_t samples_per_s)
{
	if (of_kind != kind)
		known_laws = NULL;
	kind = of_kind;
	first = law;
	sp_rate_limit_init(&rate_limit, samples_per_s);
	atomic_store(&due_ns, 0);
	atomic_store(&is_pressed, false);
	atomic_store(&was_pressed, false);
	atomic_store(&has_alarm, false);
	atomic_store(&base_bytes, law->period_bytes);
	atomic_store(&step, 0);
	atomic_store(&doublings, 0);
	sp_period_reset();
	sp_period_use(is_on ? law : &sp_period_off, law->period_bytes);
}

static const struct sp_law *find_law(uint64_t period_bytes)
{
	struct known *fresh;

	if (first->period_bytes == period_bytes)
		return first;
	for (const struct known *k = known_laws; k; k = k->next)
		if (k->law.period_bytes == period_bytes)
			return &k->law;
	fresh = sp_arena_get(SP_ARENA_LAWS, sizeof(*fresh));
	if (!fresh) {
		sp_diag_lose(SP_LOSS_PERIOD, 1);
		return NULL;
	}
	sp_law_init(&fresh->law, kind, period_bytes);
	fresh->next = known_laws;
	known_laws = fresh;
	return &fresh->law;
}

/* ---- the target ---- */

void sp_period_charge(void)
{
	uint64_t now_ns, due, next;

	if (!rate_limit.interval_ns)
		return;
	now_ns = sp_clock_now_ns();
	due = atomic_load_explicit(&due_ns, memory_order_relaxed);
	do
		next = sp_rate_limit_charge(&rate_limit, due, now_ns);
	while (!atomic_compare_exchange_weak(&due_ns, &due, next));
}

void sp_period_press(bool is_near)
{
	if (!atomic_exchange(&is_pressed, is_near) && is_near)
		atomic_store(&has_alarm, true);
}

bool sp_period_take_alarm(void)
{
	return atomic_load_explicit(&has_alarm, memory_order_relaxed) &&
	       atomic_exchange(&has_alarm, false);
}

static bool is_near_limit(void)
{
	return atomic_load_explicit(&is_pressed, memory_order_relaxed);
}

static uint64_t period_under_pressure(uint64_t base, bool is_near)
{
	const uint64_t share = base / PRESSED_SHARE;

	if (!is_near || base <= PRESSED_MIN)
		return base;
	return share > PRESSED_MIN ? share : PRESSED_MIN;
}

static unsigned int next_step(void)
{
	return sp_rate_limit_step(
		&rate_limit, atomic_load_explicit(&step, memory_order_relaxed),
		atomic_load_explicit(&due_ns, memory_order_relaxed),
		rate_limit.interval_ns ? sp_clock_now_ns() : 0);
}

/* ---- the file ---- */

/* From CROWDED on the period rises with each rotation, unless there is less
 * than with the one before: at 37 percent rotations follow each other without
 * room for more.  Below ROOMY half the period keeps clear of CROWDED. */
#define CROWDED_PERCENT 16u
#define ROOMY_PERCENT   6u
#define RISE            2u  /* doublings */
#define DOUBLINGS_MAX   40u /* from a period of 1 to 2^40 */

bool sp_period_fit(unsigned int live_percent)
{
	const unsigned int n = atomic_load(&wanted_doublings);
	unsigned int to = n;

	if (live_percent >= CROWDED_PERCENT && live_percent >= last_percent)
		to += RISE;
	else if (live_percent < ROOMY_PERCENT && n)
		to--;
	if (to > DOUBLINGS_MAX)
		to = DOUBLINGS_MAX;
	last_percent = live_percent;
	atomic_store(&wanted_doublings, to);
	return to > n;
}

void sp_period_reset(void)
{
	last_percent = 0;
	atomic_store(&wanted_doublings, 0);
}

static unsigned int wanted_steps(void)
{
	return atomic_load_explicit(&wanted_doublings, memory_order_relaxed);
}

static uint64_t period_of(uint64_t base, unsigned int of_target,
			  unsigned int of_file)
{
	const unsigned int steps = of_target + 4 * of_file;

	return sp_rate_limit_period(base, steps < SP_RATE_LIMIT_STEPS_MAX
						  ? steps
						  : SP_RATE_LIMIT_STEPS_MAX);
}

bool sp_period_is_due(void)
{
	const struct sp_law *now = sp_period_law();

	if (now == &sp_period_off)
		return atomic_load_explicit(&has_alarm, memory_order_relaxed);
	if (atomic_load_explicit(&doublings, memory_order_relaxed) !=
		    wanted_steps() ||
	    atomic_load_explicit(&was_pressed, memory_order_relaxed) !=
		    is_near_limit())
		return true;
	return rate_limit.interval_ns &&
	       now->period_bytes !=
		       period_of(period_under_pressure(
					 atomic_load_explicit(
						 &base_bytes,
						 memory_order_relaxed),
					 is_near_limit()),
				 next_step(), wanted_steps());
}

/* ---- changes ---- */

static const struct sp_law *find_step(uint64_t base, unsigned int to)
{
	const unsigned int of_file = wanted_steps();
	const bool is_near = is_near_limit();
	const struct sp_law *law = find_law(
		period_of(period_under_pressure(base, is_near), to, of_file));

	if (law) {
		atomic_store_explicit(&base_bytes, base, memory_order_relaxed);
		atomic_store_explicit(&step, to, memory_order_relaxed);
		atomic_store_explicit(&doublings, of_file,
				      memory_order_relaxed);
		atomic_store_explicit(&was_pressed, is_near,
				      memory_order_relaxed);
	}
	return law;
}

const struct sp_law *sp_period_find(bool is_on, uint64_t base)
{
	const struct sp_law *law =
		find_step(base ? base : atomic_load(&base_bytes), next_step());

	return law && !is_on ? &sp_period_off : law;
}

const struct sp_law *sp_period_adapt(void)
{
	const struct sp_law *now = sp_period_law(), *law;

	if (now == &sp_period_off)
		return NULL;
	law = find_step(atomic_load(&base_bytes), next_step());
	return law == now ? NULL : law;
}

void sp_period_use(const struct sp_law *law, uint64_t most_bytes)
{
	atomic_store_explicit(&ceiling_bytes, most_bytes, memory_order_relaxed);
	atomic_store_explicit(&sp_period_now, law, memory_order_release);
}

uint64_t sp_period_ceiling(void)
{
	return sp_period_law() == &sp_period_off
		       ? 0
		       : atomic_load_explicit(&ceiling_bytes,
					      memory_order_relaxed);
}
