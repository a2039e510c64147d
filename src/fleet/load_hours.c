/* SPDX-License-Identifier: MIT */

#include "base/array.h"
#include "base/saturate.h"
#include "fleet/hours.h"
#include "fleet/loader.h"
#include "fleet/sql.h"

bool sp_fleet_span_is_hours(const struct sp_fleet_span *span)
{
	return span->from_unix_ns % SP_FLEET_HOUR_NS == 0 &&
	       (span->to_unix_ns == INT64_MAX ||
		span->to_unix_ns % SP_FLEET_HOUR_NS == 0);
}

/* A time that all samples of the span may have, since the start. */
static uint64_t some_time(const struct loader *l)
{
	return sp_sat_sub(l->hours->from_unix_ns, l->p->start_unix_ns);
}

static int add_group(struct loader *l, struct sp_fleet_rows *s)
{
	struct sp_profile *p = l->p;
	struct sp_sample_group *to;
	const bool is_alive = sp_fleet_get(s, 3) == 1;

	if (sp_array_reserve((void **)&p->groups, &l->groups_room, p->n_groups,
			     sizeof(*to)))
		return sp_fleet_load_fail_memory(l);
	to = &p->groups[p->n_groups];
	*to = (struct sp_sample_group){
		.one = {.born_ns = some_time(l),
			.freed_ns = is_alive ? SP_NEVER : some_time(l),
			.size_bytes = sp_fleet_get(s, 1),
			.period_bytes = sp_fleet_get(s, 2),
			.age_bytes = SP_UNKNOWN,
			.thread = UINT32_MAX,
			.freed_by = UINT32_MAX},
		.samples = sp_fleet_get(s, 4),
		.tail_bytes = sp_fleet_get(s, 5),
	};
	if (!to->one.size_bytes || !to->one.period_bytes ||
	    to->one.period_bytes > p->period_bytes || !to->samples ||
	    to->samples > INT64_MAX - p->n_grouped ||
	    !sp_fleet_code_find(&l->code, sp_fleet_get(s, 0), &to->one.stack))
		return sp_fleet_damaged(l->db, "an hour", l->err);
	p->n_grouped += to->samples;
	p->n_groups++;
	return 0;
}

static int load_some(struct loader *l, size_t from)
{
	const uint64_t to = l->hours->to_unix_ns;
	const struct sp_fleet_value values[] = {
		sp_fleet_load_list(l, from),
		sp_fleet_number(l->hours->from_unix_ns / SP_FLEET_HOUR_NS),
		sp_fleet_number(to / SP_FLEET_HOUR_NS + (to == INT64_MAX)),
	};
	struct sp_fleet_rows *rows;
	int r = sp_fleet_ask(l->db, sp_fleet_get_hours, values, 3, &rows,
			     l->err);

	while (r >= 0 && (r = sp_fleet_next(rows, l->err)) > 0)
		r = add_group(l, rows);
	sp_fleet_rows_free(rows);
	return r;
}

/* Of hours that were not asked for nothing is known. */
static int check_number(struct loader *l)
{
	const bool is_whole =
		!l->hours->from_unix_ns && l->hours->to_unix_ns == INT64_MAX;
	uint64_t samples = 0;

	for (size_t i = 0; i < l->p->n_parts; i++)
		sp_sat_add(&samples, l->places[i].n_samples);
	return l->p->n_grouped == samples ||
			       (!is_whole && l->p->n_grouped < samples)
		       ? 0
		       : sp_fleet_load_fail_changed(l);
}

int sp_fleet_load_hours(struct loader *l)
{
	int r = 0;

	for (size_t i = 0; i < l->chosen->n && r >= 0; i += SP_FLEET_LIST_MAX)
		r = load_some(l, i);
	return r < 0 ? r : check_number(l);
}
