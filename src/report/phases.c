/* SPDX-License-Identifier: MIT */
#include "report/phases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/saturate.h"
#include "model/profile.h"

#define START "(start)"

const char *sp_phase_name(const char *name)
{
	return *name ? name : START;
}

const char *sp_phase_find(const struct sp_profile *profile, const char *wanted)
{
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < profile->n_stretches; i++) {
			const char *name = profile->stretches[i].phase;

			if (strcmp(pass ? sp_phase_name(name) : name, wanted) ==
			    0)
				return name;
		}
	return NULL;
}

struct sp_class_total sp_phase_total(const struct sp_profile *profile,
				     const char *name)
{
	struct sp_class_total total = {0, 0};

	for (size_t i = 0; i < profile->n_stretches; i++) {
		const struct sp_stretch *s = &profile->stretches[i];

		if (strcmp(s->phase, name) != 0)
			continue;
		sp_sat_add(&total.bytes, s->alloc_bytes);
		sp_sat_add(&total.objects, s->alloc_objects);
	}
	return total;
}

/* Rows by name: open addressing, at most half full. */
struct builder {
	struct sp_phases *phases;
	const struct sp_profile *profile;
	uint32_t *slots; /* 0: free; else 1 + position of a phase */
	size_t n_slots;  /* a power of two */
	uint32_t *of_stretch;
};

static size_t find(struct builder *b, const char *name)
{
	struct sp_phases *p = b->phases;
	size_t at = sp_hash_bytes(0, name, strlen(name)) & (b->n_slots - 1);

	while (b->slots[at]) {
		const size_t i = b->slots[at] - 1;

		if (strcmp(p->phases[i].name, name) == 0)
			return i;
		at = (at + 1) & (b->n_slots - 1);
	}
	p->phases[p->n] = (struct sp_phase){.name = name};
	sp_tally_init(&p->phases[p->n].tally, b->profile->period_bytes);
	p->has_names |= *name != '\0';
	b->slots[at] = (uint32_t)++p->n;
	return p->n - 1;
}

/* When the process of a stretch ended. */
static uint64_t stop_ns(const struct sp_profile *profile,
			const struct sp_stretch *s)
{
	return profile->n_parts ? profile->parts[s->part].stop_ns
				: profile->duration_ns;
}

/* Does it only have another period than the one before? */
static bool goes_on(const struct sp_profile *profile, size_t i)
{
	const struct sp_stretch *s = &profile->stretches[i];

	return i && s[-1].part == s->part &&
	       s[-1].period_bytes != s->period_bytes &&
	       strcmp(s[-1].phase, s->phase) == 0;
}

static uint64_t delay_ns(const struct sp_stretch *s)
{
	return s ? s->from_ns - s->asked_ns : 0;
}

static void add_stretch(struct builder *b, size_t i)
{
	const struct sp_stretch *s = &b->profile->stretches[i];
	const uint64_t to =
		s->to_ns == SP_NEVER ? stop_ns(b->profile, s) : s->to_ns;
	const uint64_t ns = to > s->from_ns ? to - s->from_ns : 0;
	const size_t at = find(b, s->phase);
	struct sp_phase *phase = &b->phases->phases[at];

	b->of_stretch[i] = (uint32_t)at;
	phase->n_stretches++;
	phase->n_times += !goes_on(b->profile, i);
	if (delay_ns(s) > delay_ns(phase->late))
		phase->late = s;
	sp_sat_add(&phase->duration_ns, ns);
	sp_sat_add(&phase->alloc_bytes, s->alloc_bytes);
	sp_sat_add(&phase->alloc_objects, s->alloc_objects);
	sp_sat_add(&phase->unsampled_bytes, s->unsampled_bytes);
	sp_sat_add(&phase->discarded_bytes, s->discarded_bytes);
	sp_sat_add(&phase->slack_bytes, s->slack_bytes);
	if (!s->period_bytes) {
		sp_sat_add(&b->phases->off_ns, ns);
		b->phases->n_off++;
	} else if (s->period_bytes != b->profile->period_bytes) {
		b->phases->has_periods = true;
	}
}

static int add_samples(struct builder *b, const struct sp_analysis *a,
		       bool of_view)
{
	const struct sp_profile *p = a->profile;
	struct sp_selection chosen = a->selection;

	if (!of_view)
		chosen.view = SP_VIEW_ALLOC;
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sp_sample *s = &p->samples[i];
		const struct sp_stretch *stretch =
			sp_stretch_at(p, s->part, s->born_ns);
		struct sp_tally *tally;
		struct sp_acc terms;

		if (!stretch || !sp_selection_has(&chosen, p, s))
			continue;
		tally = &b->phases
				 ->phases[b->of_stretch[stretch - p->stretches]]
				 .tally;
		terms = sp_selection_terms(&chosen, p, s, 1,
					   s->size_bytes - s->offset_bytes);
		if (sp_tally_add_acc(tally, s->size_bytes, &terms) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < b->phases->n && sp_selection_is_mean(&chosen);
	     i++)
		sp_tally_halve(&b->phases->phases[i].tally);
	return 0;
}

static int build(struct builder *b, const struct sp_analysis *a, bool of_view)
{
	const size_t n = b->profile->n_stretches;

	b->n_slots = 4;
	while (b->n_slots < 2 * n)
		b->n_slots *= 2;
	b->phases->phases = calloc(n + 1, sizeof(*b->phases->phases));
	b->slots = calloc(b->n_slots, sizeof(*b->slots));
	b->of_stretch = calloc(n + 1, sizeof(*b->of_stretch));
	if (!b->phases->phases || !b->slots || !b->of_stretch)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		add_stretch(b, i);
	return n ? add_samples(b, a, of_view) : 0;
}

int sp_phases_new(const struct sp_analysis *analysis, bool of_view,
		  struct sp_phases **ret, struct sp_error *err)
{
	struct builder b = {.profile = analysis->profile};
	int r = -ENOMEM;

	b.phases = calloc(1, sizeof(*b.phases));
	if (b.phases)
		r = build(&b, analysis, of_view);
	free(b.slots);
	free(b.of_stretch);
	if (r < 0) {
		sp_phases_free(b.phases);
		return sp_error_set(err, r, analysis->profile->path,
				    "not enough memory for %zu phases",
				    analysis->profile->n_stretches);
	}
	*ret = b.phases;
	return 0;
}

void sp_phases_free(struct sp_phases *phases)
{
	if (!phases)
		return;
	for (size_t i = 0; i < phases->n; i++)
		sp_tally_free(&phases->phases[i].tally);
	free(phases->phases);
	free(phases);
}
