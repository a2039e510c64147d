/* SPDX-License-Identifier: MIT */
#include "agent/event/period.h"

#include <stddef.h>

#include "agent/event/rate_limit.h"
#include "agent/sys/arena.h"
#include "agent/sys/clock.h"
#include "agent/sys/diag.h"
#include "agent/sys/sys.h"

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

void sp_period_init(const struct sp_law *law, enum sp_law_kind of_kind,
		    bool is_on, uint64_t samples_per_s)
{
	if (of_kind != kind)
		known_laws = NULL;
	kind = of_kind;
	first = law;
	sp_rate_limit_init(&rate_limit, samples_per_s);
	atomic_store(&due_ns, 0);
	atomic_store(&base_bytes, law->period_bytes);
	atomic_store(&step, 0);
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

static unsigned int next_step(void)
{
	return sp_rate_limit_step(
		&rate_limit, atomic_load_explicit(&step, memory_order_relaxed),
		atomic_load_explicit(&due_ns, memory_order_relaxed),
		rate_limit.interval_ns ? sp_clock_now_ns() : 0);
}

bool sp_period_is_due(void)
{
	const struct sp_law *now = sp_period_law();

	return rate_limit.interval_ns && now != &sp_period_off &&
	       now->period_bytes !=
		       sp_rate_limit_period(
			       atomic_load_explicit(&base_bytes,
						    memory_order_relaxed),
			       next_step());
}

/* ---- changes ---- */

static const struct sp_law *find_step(uint64_t base, unsigned int to)
{
	const struct sp_law *law = find_law(sp_rate_limit_period(base, to));

	if (law) {
		atomic_store_explicit(&base_bytes, base, memory_order_relaxed);
		atomic_store_explicit(&step, to, memory_order_relaxed);
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
