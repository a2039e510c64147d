/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"
#include "base/parse.h"
#include "base/saturate.h"
#include "fleet/loader.h"
#include "fleet/sql.h"
#include "stats/peak.h"

/* ---- what belongs to each ---- */

int sp_fleet_load_find_part(struct loader *l, struct sp_fleet_rows *s,
			    size_t *ret)
{
	const uint64_t process = sp_fleet_get(s, 0);
	size_t at;

	SP_LOWER_BOUND(at, l->p->n_parts, l->by_process[at].process < process);
	if (at == l->p->n_parts || l->by_process[at].process != process)
		return sp_fleet_load_fail_number(l);
	*ret = l->by_process[at].part;
	return 0;
}

static int add_class(struct loader *l, struct sp_fleet_rows *s)
{
	const uint64_t class = sp_fleet_get(s, 1);

	if (class >= SP_FORMAT_CLASSES)
		return sp_fleet_damaged(l->db, "a size class", l->err);
	sp_sat_add(&l->p->classes[class].bytes, sp_fleet_get(s, 2));
	sp_sat_add(&l->p->classes[class].objects, sp_fleet_get(s, 3));
	return 0;
}

/* A later version may know more of them. */
static int add_loss(struct loader *l, struct sp_fleet_rows *s)
{
	const uint64_t kind = sp_fleet_get(s, 1);

	if (kind < SP_LOSS_COUNT)
		sp_sat_add(&l->p->losses[kind], sp_fleet_get(s, 2));
	return 0;
}

/* What model/whole.h asks for, in the order of the keys. */
static int add_lack(struct loader *l, struct sp_fleet_rows *s)
{
	const char *key = sp_fleet_get_text(s, 1);
	struct sp_profile *p = l->p;
	struct sp_part *part;
	uint64_t ns = 0;
	size_t at = 0;
	int r = sp_fleet_load_find_part(l, s, &at);

	if (r < 0)
		return r;
	part = &p->parts[at];
	if (strcmp(key, "attached.age_ms") == 0)
		part->unseen = SP_UNSEEN_ATTACH;
	else if (strcmp(key, "forked") == 0)
		part->unseen = SP_UNSEEN_FORK;
	else if (strcmp(key, "unseen") == 0)
		part->has_unseen = p->has_unseen = true;
	else if (sp_parse_u64(sp_fleet_get_text(s, 2), &ns) && ns) {
		sp_sat_add(&ns, part->start_ns);
		if (p->n_parts > 1 && !p->is_timeless && !part->lost_ns)
			part->lost_ns = ns + (ns < SP_NEVER);
		if (!p->full_ns || ns < p->full_ns)
			p->full_ns = ns;
	}
	return 0;
}

/* As they come; sort_threads() puts them in the order of the parts. */
static int add_thread(struct loader *l, struct sp_fleet_rows *s)
{
	struct sp_profile *p = l->p;
	struct sp_thread_info *t;
	size_t n, part = 0;
	const char *name = sp_fleet_get_bytes(s, 4, &n);
	int r = sp_fleet_load_find_part(l, s, &part);

	if (r < 0)
		return r;
	if (n > SP_FORMAT_THREAD_NAME_MAX ||
	    p->n_thread_infos >= UINT32_MAX - 1)
		return sp_fleet_damaged(l->db, "a thread", l->err);
	if (sp_array_reserve((void **)&p->thread_infos, &l->threads_room,
			     p->n_thread_infos, sizeof(*t)))
		return sp_fleet_load_fail_memory(l);
	t = &p->thread_infos[p->n_thread_infos++];
	*t = (struct sp_thread_info){
		.tid = sp_fleet_get(s, 3),
		.has_totals = sp_fleet_get(s, 5) == 1,
		.exited = sp_fleet_get(s, 6) == 1,
		.exact_alloc_bytes = sp_fleet_get(s, 7),
		.exact_alloc_objects = sp_fleet_get(s, 8),
	};
	memcpy(t->name, name, n);
	if (!l->places[part].n_threads++)
		l->places[part].first_thread = p->n_thread_infos - 1;
	return 0;
}

/* Threads came in the order of their processes' numbers, each process's
 * together: now in that of the parts. */
static int sort_threads(struct loader *l)
{
	struct sp_profile *p = l->p;
	struct sp_thread_info *sorted =
		calloc(p->n_thread_infos + 1, sizeof(*sorted));
	size_t n = 0;

	if (!sorted)
		return sp_fleet_load_fail_memory(l);
	for (size_t i = 0; i < p->n_parts; i++) {
		struct place *place = &l->places[i];

		for (size_t k = 0; k < place->n_threads; k++) {
			sorted[n + k] =
				p->thread_infos[place->first_thread + k];
			sorted[n + k].index = (uint32_t)(n + k + 1);
		}
		place->first_thread = n;
		n += place->n_threads;
	}
	free(p->thread_infos);
	p->thread_infos = sorted;
	return 0;
}

static uint32_t thread_at(struct sp_fleet_rows *s, int i,
			  const struct place *place)
{
	const uint64_t v = sp_fleet_get_or(s, i, UINT64_MAX);

	return v < place->n_threads ? (uint32_t)(place->first_thread + v)
				    : UINT32_MAX;
}

static bool is_sane(const struct sp_sample *s, const struct sp_profile *p)
{
	return s->size_bytes && s->offset_bytes < s->size_bytes &&
	       s->period_bytes && s->period_bytes <= p->period_bytes &&
	       s->born_ns < SP_NEVER && s->freed_ns >= s->born_ns &&
	       s->entry < SP_ENTRY_COUNT;
}

static int add_sample(struct loader *l, struct sp_fleet_rows *s)
{
	struct sp_profile *p = l->p;
	size_t part = 0;
	int r = sp_fleet_load_find_part(l, s, &part);
	struct place *place = r < 0 ? NULL : &l->places[part];
	const uint64_t number = sp_fleet_get(s, 1);
	struct sp_sample *to;

	if (r < 0)
		return r;
	/* Duplicate rows count once. */
	if (place->filled && place->last_sample == number)
		return 0;
	if (place->filled == place->n_samples)
		return sp_fleet_load_fail_changed(l);
	to = &p->samples[place->first_sample + place->filled];
	*to = (struct sp_sample){
		.id = place->first_sample + place->filled + 1,
		.born_ns = sp_fleet_get(s, 3),
		.freed_ns = sp_fleet_get_or(s, 4, SP_NEVER),
		.size_bytes = sp_fleet_get(s, 5),
		.offset_bytes = sp_fleet_get(s, 6),
		.period_bytes = sp_fleet_get(s, 7),
		.age_bytes = sp_fleet_get_or(s, 8, SP_UNKNOWN),
		.thread = thread_at(s, 9, place),
		.freed_by = thread_at(s, 10, place),
		.part = (uint16_t)part,
		.entry = (uint8_t)sp_fleet_get(s, 11),
		.free_missed = sp_fleet_get(s, 12) == 1,
	};
	if (!is_sane(to, p) ||
	    !sp_fleet_code_find(&l->code, sp_fleet_get(s, 2), &to->stack))
		return sp_fleet_damaged(l->db, "a sample", l->err);
	sp_sat_add(&to->born_ns, p->parts[part].start_ns);
	if (to->freed_ns != SP_NEVER)
		sp_sat_add(&to->freed_ns, p->parts[part].start_ns);
	if (to->born_ns == SP_NEVER)
		return sp_fleet_damaged(l->db, "a time of a sample", l->err);
	to->role = (uint8_t)((1 + sp_peak_toss(l->parts[part].coins, number,
					       to->offset_bytes)) &
			     3);
	place->last_sample = number;
	place->filled++;
	return 0;
}

static int check_samples(struct loader *l)
{
	for (size_t i = 0; i < l->p->n_parts; i++)
		if (l->places[i].filled != l->places[i].n_samples)
			return sp_fleet_load_fail_changed(l);
	return 0;
}

static int load_samples(struct loader *l)
{
	const int r = sp_fleet_load_table(l, sp_fleet_get_samples, add_sample);

	return r < 0 ? r : sp_fleet_load_finish(l, check_samples);
}

int sp_fleet_load_rows(struct loader *l)
{
	int r = sp_fleet_load_table(l, sp_fleet_get_totals, add_class);

	if (r >= 0)
		r = sp_fleet_load_table(l, sp_fleet_get_losses, add_loss);
	if (r >= 0)
		r = sp_fleet_load_table(l, sp_fleet_get_lacks, add_lack);
	if (r >= 0)
		r = sp_fleet_load_table(l, sp_fleet_get_threads, add_thread);
	if (r >= 0)
		r = sp_fleet_load_finish(l, sort_threads);
	if (r < 0)
		return r;
	if (l->hours)
		return sp_fleet_load_hours(l);
	r = sp_fleet_load_times(l);
	return r < 0 ? r : load_samples(l);
}
