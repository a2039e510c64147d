/* SPDX-License-Identifier: MIT */
#include "agent/rate.h"

#include <stddef.h>

#include "agent/arena.h"

#include "agent/poison.h"

const struct sp_law sp_rate_off;

_Atomic(const struct sp_law *) sp_rate_now = &sp_rate_off;

/* Every law that was ever in force: as many as there were different periods. */
struct known {
	const struct known *next;
	struct sp_law law;
};

static enum sp_law_kind kind;
static const struct sp_law *first;   /* of the start */
static const struct sp_law *nominal; /* to be used while sampling is on */
static const struct known *known_laws;

void sp_rate_init(const struct sp_law *law, enum sp_law_kind of_kind,
		  bool is_on)
{
	kind = of_kind;
	first = law;
	nominal = law;
	known_laws = NULL;
	atomic_store_explicit(&sp_rate_now, is_on ? law : &sp_rate_off,
			      memory_order_release);
}

static const struct sp_law *find_law(uint64_t period_bytes)
{
	struct known *fresh;

	if (first->period_bytes == period_bytes)
		return first;
	for (const struct known *k = known_laws; k; k = k->next)
		if (k->law.period_bytes == period_bytes)
			return &k->law;
	fresh = sp_arena_get(sizeof(*fresh));
	if (!fresh)
		return NULL;
	sp_law_init(&fresh->law, kind, period_bytes);
	fresh->next = known_laws;
	known_laws = fresh;
	return &fresh->law;
}

const struct sp_law *sp_rate_find(bool is_on, uint64_t period_bytes)
{
	const struct sp_law *law =
		period_bytes ? find_law(period_bytes) : nominal;

	if (law)
		nominal = law;
	return law && !is_on ? &sp_rate_off : law;
}

void sp_rate_use(const struct sp_law *law)
{
	atomic_store_explicit(&sp_rate_now, law, memory_order_release);
}
