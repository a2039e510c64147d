/* SPDX-License-Identifier: MIT */
#include "model/whole.h"

#include <math.h>

#include "base/saturate.h"

/* Samples are missing by chance, too: their number has a deviation of its
 * square root, of which a tenth is never seen. */
#define UNSEEN_PART 10

static uint64_t sum_of(const struct sp_profile *profile,
		       const enum sp_loss *kinds, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sp_sat_add(&sum, profile->losses[kinds[i]]);
	return sum;
}

uint64_t sp_profile_lost_samples(const struct sp_profile *profile)
{
	static const enum sp_loss kinds[] = {
		SP_LOSS_NO_LANE, SP_LOSS_FILE_FULL,  SP_LOSS_NO_FILE,
		SP_LOSS_NESTED,  SP_LOSS_UNRECORDED,
	};

	return sum_of(profile, kinds, sizeof(kinds) / sizeof(kinds[0]));
}

/* Objects that count as alive for want of a record; where samples are not in
 * the file, frees are not, either. */
static uint64_t lost_frees(const struct sp_profile *profile)
{
	static const enum sp_loss kinds[] = {
		SP_LOSS_LIVE_TABLE,
		SP_LOSS_FREE_DROPPED,
		SP_LOSS_UNRECORDED,
	};

	return sum_of(profile, kinds, sizeof(kinds) / sizeof(kinds[0]));
}

double sp_whole_uncounted_bytes(const struct sp_profile *p)
{
	if (p->period_bytes > 1)
		return 0;
	return p->missing_bytes_max == UINT64_MAX
		       ? INFINITY
		       : (double)p->missing_bytes_max;
}

bool sp_whole_may_lack(const struct sp_profile *profile, uint64_t lost)
{
	const uint64_t samples = sp_profile_samples(profile);
	const uint64_t parts = lost * UNSEEN_PART;

	/* Without chance nothing hides anything. */
	if (!lost || profile->period_bytes == 1)
		return !lost;
	if (lost <= samples / 1000)
		return true;
	return lost < UINT32_MAX / UNSEEN_PART && parts * parts <= samples;
}

struct sp_whole sp_whole_of(const struct sp_profile *p)
{
	struct sp_whole w = {
		.is_cut = p->is_cut,
		.is_damaged =
			p->is_cut || p->damaged_records || p->ignored_bytes,
		.is_full = p->full_ns > 0,
		.is_low = p->losses[SP_LOSS_PAGE] > 0,
		.is_starved = !sp_whole_may_lack(p, sp_profile_lost_samples(p)),
		.lacks_frees =
			p->has_frees && !sp_whole_may_lack(p, lost_frees(p)),
		.is_turned = sp_profile_has_forgotten(p),
		.known_ns = SP_NEVER,
		.n_parts = p->n_parts,
	};

	if (w.is_full)
		w.known_ns = p->full_ns;
	else if (w.lacks_frees)
		w.known_ns = 0;
	if (w.is_damaged && p->known_ns < w.known_ns)
		w.known_ns = p->known_ns;
	for (size_t i = 0; w.n_parts > 1 && i < p->n_parts; i++) {
		w.n_lacking += p->parts[i].lost_ns != 0;
		w.n_cut += p->parts[i].lost_ns && p->parts[i].is_cut;
	}
	if (w.n_parts <= 1)
		w.n_lacking = w.known_ns != SP_NEVER;
	w.has_rest = w.n_parts > 1 && w.n_lacking && w.n_lacking < w.n_parts;
	return w;
}

bool sp_whole_is_all(const struct sp_whole *w)
{
	return !w->is_damaged && !w->is_full && !w->is_starved &&
	       !w->lacks_frees;
}

bool sp_whole_peak_is_least(const struct sp_whole *w)
{
	return w->is_turned || !sp_whole_is_all(w);
}

bool sp_whole_is_unknown_at(const struct sp_whole *w, uint64_t at_ns)
{
	return w->known_ns != SP_NEVER && at_ns > w->known_ns;
}

bool sp_whole_is_least_at(const struct sp_whole *w, uint64_t at_ns)
{
	return sp_whole_is_unknown_at(w, at_ns) ||
	       (w->is_turned && w->is_starved);
}

uint64_t sp_profile_off_bytes(const struct sp_profile *p)
{
	return sp_sat_sub(p->unsampled_bytes, p->discarded_bytes);
}

enum sp_unseen sp_profile_unseen(const struct sp_profile *p)
{
	/* Of several, facts that differ are in their parts alone. */
	for (size_t i = 0; p->n_parts > 1 && i < p->n_parts; i++)
		if (p->parts[i].unseen)
			return p->parts[i].unseen;
	if (sp_profile_info(p, "forked"))
		return SP_UNSEEN_FORK;
	if (sp_profile_info(p, "attached.age_ms"))
		return SP_UNSEEN_ATTACH;
	return sp_profile_off_bytes(p) ? SP_UNSEEN_OFF : SP_UNSEEN_NONE;
}
