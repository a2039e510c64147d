/* SPDX-License-Identifier: MIT */
#include "report/phases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/index.h"
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

struct builder {
	struct sp_phases *phases;
	const struct sp_profile *profile;
	struct sp_index index; /* of phases, by name */
	uint32_t *of_stretch;
};

/* The position of the phase of that name, UINT32_MAX without memory. */
static uint32_t find_phase(struct builder *b, const char *name)
{
	struct sp_phases *p = b->phases;
	struct sp_index_probe probe =
		sp_index_begin(sp_hash_bytes(0, name, strlen(name)));

	if (sp_index_reserve(&b->index) < 0)
		return UINT32_MAX;
	while (sp_index_next(&b->index, &probe))
		if (strcmp(p->phases[probe.position].name, name) == 0)
			return probe.position;
	p->phases[p->n] = (struct sp_phase){.name = name};
	sp_class_sums_init(&p->phases[p->n].sums, b->profile->period_bytes);
	p->has_names |= *name != '\0';
	sp_index_put(&b->index, &probe, p->n);
	return (uint32_t)p->n++;
}

/* When the process of a stretch ended. */
static uint64_t stop_ns(const struct sp_profile *profile,
			const struct sp_stretch *s)
{
	return sp_part_stop_ns(profile, s->part);
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

static int add_stretch(struct builder *b, size_t i)
{
	const struct sp_stretch *s = &b->profile->stretches[i];
	const uint64_t to =
		s->to_ns == SP_NEVER ? stop_ns(b->profile, s) : s->to_ns;
	const uint64_t ns = to > s->from_ns ? to - s->from_ns : 0;
	const uint32_t at = find_phase(b, s->phase);
	struct sp_phase *phase;

	if (at == UINT32_MAX)
		return -ENOMEM;
	phase = &b->phases->phases[at];
	b->of_stretch[i] = at;
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
	return 0;
}

static int add_to_phase(struct builder *b, const struct sp_selection *chosen,
			const struct sp_alike *samples)
{
	const struct sp_profile *p = b->profile;
	const struct sp_sample *s = samples->one;
	const struct sp_stretch *stretch =
		sp_stretch_at(p, s->part, s->born_ns);
	const struct sp_acc terms = sp_selection_terms(chosen, p, samples);
	struct sp_phase *phase;

	if (!stretch)
		return 0;
	phase = &b->phases->phases[b->of_stretch[stretch - p->stretches]];
	return sp_class_sums_add_acc(&phase->sums, s->size_bytes, &terms);
}

static int add_samples(struct builder *b, const struct sp_analysis *a,
		       bool of_view)
{
	const struct sp_profile *p = a->profile;
	struct sp_selection chosen = a->selection;

	if (!of_view)
		chosen.view = SP_VIEW_ALLOC;
	for (size_t i = 0; i < sp_alike_n(p); i++) {
		const struct sp_alike s = sp_alike_at(p, i);

		if (sp_selection_has(&chosen, p, s.one) &&
		    add_to_phase(b, &chosen, &s) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < b->phases->n; i++)
		sp_selection_judge(&chosen, p, &b->phases->phases[i].sums);
	return 0;
}

static int build_phases(struct builder *b, const struct sp_analysis *a,
			bool of_view)
{
	const size_t n = b->profile->n_stretches;

	b->phases->phases = calloc(n + 1, sizeof(*b->phases->phases));
	b->of_stretch = calloc(n + 1, sizeof(*b->of_stretch));
	if (!b->phases->phases || !b->of_stretch)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (add_stretch(b, i) < 0)
			return -ENOMEM;
	return n ? add_samples(b, a, of_view) : 0;
}

int sp_phases_new(const struct sp_analysis *analysis, bool of_view,
		  struct sp_phases **ret, struct sp_error *err)
{
	struct builder b = {.profile = analysis->profile};
	int r = -ENOMEM;

	b.phases = calloc(1, sizeof(*b.phases));
	if (b.phases)
		r = build_phases(&b, analysis, of_view);
	sp_index_done(&b.index);
	free(b.of_stretch);
	if (r < 0) {
		sp_phases_free(b.phases);
		return sp_error_memory(err, analysis->profile->path);
	}
	*ret = b.phases;
	return 0;
}

void sp_phases_free(struct sp_phases *phases)
{
	if (!phases)
		return;
	for (size_t i = 0; i < phases->n; i++)
		sp_class_sums_free(&phases->phases[i].sums);
	free(phases->phases);
	free(phases);
}
