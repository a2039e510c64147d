/* SPDX-License-Identifier: MIT */
#include "fleet/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/saturate.h"
#include "fleet/loader.h"
#include "fleet/sql.h"
#include "stats/peak.h"

#undef sp_fleet_load_fail_memory
int sp_fleet_load_fail_memory(struct loader *l)
{
	return sp_error_memory(l->err, l->db->path);
}

int sp_fleet_load_fail_changed(struct loader *l)
{
	return sp_error_set(
		l->err, -EAGAIN, l->db->path,
		"lacks a part of a process: it was changed while it was read, "
		"or a part of the database is away; try again");
}

int sp_fleet_load_fail_number(struct loader *l)
{
	return sp_fleet_damaged(l->db, "a number of a process", l->err);
}

int sp_fleet_load_compare(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	return (x->process > y->process) - (x->process < y->process);
}

struct sp_fleet_value sp_fleet_load_list(const struct loader *l, size_t from)
{
	const size_t left = l->chosen->n - from;

	return sp_fleet_list(&l->chosen->processes[from],
			     left < SP_FLEET_LIST_MAX ? left
						      : SP_FLEET_LIST_MAX);
}

struct loader *sp_fleet_load_whose(struct loader *l, struct sp_fleet_rows *s)
{
	const struct numbered key = {sp_fleet_get(s, 0), 0}, *found;

	if (!l->n_each)
		return l;
	found = bsearch(&key, l->by_process, l->n_each, sizeof(key),
			sp_fleet_load_compare);
	return found ? &l->each[found->part] : NULL;
}

int sp_fleet_load_finish(struct loader *l, sp_fleet_load_fn *fn)
{
	int r = l->n_each ? 0 : fn(l);

	for (size_t i = 0; i < l->n_each && r >= 0; i++)
		r = fn(&l->each[i]);
	return r;
}

static int load_some(struct loader *l, const char *sql, size_t from,
		     sp_fleet_take_fn *take)
{
	const struct sp_fleet_value list = sp_fleet_load_list(l, from);
	struct sp_fleet_rows *rows;
	int r = sp_fleet_ask(l->db, sql, &list, 1, &rows, l->err);

	while (r >= 0 && (r = sp_fleet_next(rows, l->err)) > 0) {
		struct loader *to = sp_fleet_load_whose(l, rows);

		r = to ? take(to, rows) : sp_fleet_load_fail_number(l);
	}
	sp_fleet_rows_free(rows);
	return r;
}

int sp_fleet_load_table(struct loader *l, const char *sql,
			sp_fleet_take_fn *take)
{
	int r = 0;

	for (size_t i = 0; i < l->chosen->n && r >= 0; i += SP_FLEET_LIST_MAX)
		r = load_some(l, sql, i, take);
	return r;
}

const char *sp_fleet_load_text(struct loader *l, struct sp_fleet_rows *s, int i)
{
	const char *text = sp_fleet_get_text(s, i);

	return sp_blocks_text(&l->p->storage, text, strlen(text));
}

/* ---- processes ---- */

/* Columns of the table, from 0. */
enum column {
	AT_PROCESS,
	AT_FILE_ID,
	AT_FILE,
	AT_PROGRAM,
	AT_COMMAND,
	AT_HOST,
	AT_PID = 8,
	AT_START,
	AT_DURATION,
	AT_ENDING,
	AT_FORMAT,
	AT_FRACTION,
	AT_DRAW,
	AT_PERIOD,
	AT_LAW,
	AT_SEED,
	AT_HAS_FREES,
	AT_HAS_CLASSES,
	AT_BYTES,
	AT_OBJECTS,
	AT_MISSING,
	AT_CLASS_SLACK,
	AT_UNSAMPLED_BYTES,
	AT_UNSAMPLED_OBJECTS,
	AT_DISCARDED_BYTES,
	AT_DISCARDED_OBJECTS,
	AT_WINDOW,
	AT_CHECK_IN,
	AT_MAX_FILE,
	AT_TIME_ERROR,
	AT_THREADS,
	AT_UNMATCHED,
	AT_DAMAGED,
	AT_IGNORED,
	AT_UNFINISHED,
	AT_DAMAGE,
	AT_SAMPLES,
	AT_MAY_HAVE_RSS,
};

static void add_totals(struct sp_profile *p, struct sp_fleet_rows *s)
{
	const struct {
		uint64_t *sum;
		int column;
	} sums[] = {
		{&p->exact_alloc_bytes, AT_BYTES},
		{&p->exact_alloc_objects, AT_OBJECTS},
		{&p->missing_bytes_max, AT_MISSING},
		{&p->class_slack_bytes, AT_CLASS_SLACK},
		{&p->unsampled_bytes, AT_UNSAMPLED_BYTES},
		{&p->unsampled_objects, AT_UNSAMPLED_OBJECTS},
		{&p->discarded_bytes, AT_DISCARDED_BYTES},
		{&p->discarded_objects, AT_DISCARDED_OBJECTS},
		{&p->threads, AT_THREADS},
		{&p->unmatched_frees, AT_UNMATCHED},
		{&p->damaged_records, AT_DAMAGED},
		{&p->ignored_bytes, AT_IGNORED},
		{&p->unfinished_records, AT_UNFINISHED},
	};

	for (size_t i = 0; i < sizeof(sums) / sizeof(*sums); i++)
		sp_sat_add(sums[i].sum, sp_fleet_get(s, sums[i].column));
	sp_raise(&p->period_bytes, sp_fleet_get(s, AT_PERIOD));
	sp_raise(&p->check_in_bytes, sp_fleet_get(s, AT_CHECK_IN));
	sp_raise(&p->max_file_bytes, sp_fleet_get(s, AT_MAX_FILE));
	sp_raise(&p->time_error_ns, sp_fleet_get(s, AT_TIME_ERROR));
	p->has_classes &= sp_fleet_get(s, AT_HAS_CLASSES) == 1;
	p->has_frees &= sp_fleet_get(s, AT_HAS_FREES) == 1;
	p->seed ^= sp_fleet_get(s, AT_SEED);
	if (*sp_fleet_get_text(s, AT_DAMAGE) && !*p->damage)
		snprintf(p->damage, sizeof(p->damage), "%.100s: %.140s",
			 sp_fleet_get_text(s, AT_FILE),
			 sp_fleet_get_text(s, AT_DAMAGE));
}

static void begin_profile(struct sp_profile *p, struct sp_fleet_rows *s)
{
	const uint64_t law = sp_fleet_get(s, AT_LAW);

	p->law = (struct sp_law_used){law & 1, law & 2};
	p->has_classes = p->has_frees = true;
	p->format_version = (uint32_t)sp_fleet_get(s, AT_FORMAT);
	p->pid = sp_fleet_get(s, AT_PID);
	p->start_unix_ns = sp_fleet_get(s, AT_START);
}

static int check_row(struct loader *l, struct sp_fleet_rows *s)
{
	const struct sp_law_used *law = &l->p->law;
	const double fraction = sp_fleet_get_real(s, AT_FRACTION);

	if (sp_fleet_get(s, AT_LAW) !=
	    (law->is_dotnet | (law->always_large ? 2u : 0u)))
		return sp_error_set(
			l->err, -EINVAL, l->db->path,
			"the processes were not sampled by the same law "
			"(SAMPLEPROF_LAW, or another version): choose with "
			"--label or --host");
	if (!(fraction > 0 && fraction <= 1) ||
	    sp_fleet_get(s, AT_ENDING) > SP_PROFILE_END_DETACHED ||
	    !sp_fleet_get(s, AT_PERIOD) ||
	    sp_fleet_get(s, AT_PERIOD) > SP_FORMAT_PERIOD_MAX ||
	    sp_fleet_get(s, AT_START) < l->p->start_unix_ns)
		return sp_fleet_damaged(l->db, "a row of processes", l->err);
	return 0;
}

static int reserve_part(struct loader *l)
{
	struct sp_profile *p = l->p;

	return sp_array_reserve((void **)&l->parts, &l->ours_room, p->n_parts,
				sizeof(*l->parts)) ||
			       sp_array_reserve((void **)&l->places,
						&l->places_room, p->n_parts,
						sizeof(*l->places)) ||
			       sp_array_reserve((void **)&p->parts,
						&l->parts_room, p->n_parts,
						sizeof(*p->parts))
		       ? sp_fleet_load_fail_memory(l)
		       : 0;
}

static int add_part(struct loader *l, struct sp_fleet_rows *s)
{
	struct sp_profile *p = l->p;
	struct sp_part *to;
	int r;

	if (p->n_parts == SP_FLEET_PROCESSES_MAX)
		return sp_error_set(l->err, -EINVAL, l->db->path,
				    "more than %u processes were chosen: "
				    "choose fewer with --label, --host, "
				    "--from and --to",
				    SP_FLEET_PROCESSES_MAX);
	if (!p->n_parts)
		begin_profile(p, s);
	r = check_row(l, s);
	if (r >= 0)
		r = reserve_part(l);
	if (r < 0)
		return r;
	l->parts[p->n_parts] = (struct sp_fleet_part){
		sp_fleet_get(s, AT_PROCESS), sp_fleet_get_real(s, AT_FRACTION),
		sp_fleet_get(s, AT_DRAW),
		sp_peak_coins(sp_fleet_get(s, AT_SEED),
			      sp_fleet_get(s, AT_START))};
	l->places[p->n_parts] = (struct place){
		.n_samples = sp_fleet_get(s, AT_SAMPLES),
		.may_have_rss = sp_fleet_get(s, AT_MAY_HAVE_RSS) == 1};
	to = &p->parts[p->n_parts++];
	*to = (struct sp_part){
		.path = sp_fleet_load_text(l, s, AT_FILE),
		.program = sp_fleet_load_text(l, s, AT_PROGRAM),
		.command = sp_fleet_load_text(l, s, AT_COMMAND),
		.file_id = sp_fleet_get(s, AT_FILE_ID),
		.pid = sp_fleet_get(s, AT_PID),
		.period_bytes = sp_fleet_get(s, AT_PERIOD),
		.exact_alloc_bytes = sp_fleet_get(s, AT_BYTES),
		.exact_alloc_objects = sp_fleet_get(s, AT_OBJECTS),
		.missing_bytes_max = sp_fleet_get(s, AT_MISSING),
		.lost_ns = sp_fleet_get(s, AT_DAMAGED) ||
			   sp_fleet_get(s, AT_IGNORED),
		.end = (enum sp_profile_end)sp_fleet_get(s, AT_ENDING),
		.start_ns = sp_fleet_get(s, AT_START) - p->start_unix_ns,
		.window_ns = sp_fleet_get(s, AT_WINDOW),
	};
	to->stop_ns = to->start_ns;
	sp_sat_add(&to->stop_ns, sp_fleet_get(s, AT_DURATION));
	if (to->stop_ns == SP_NEVER)
		return sp_fleet_damaged(l->db, "a duration", l->err);
	if (to->window_ns)
		sp_sat_add(&to->window_ns, to->start_ns);
	sp_raise(&p->duration_ns, to->stop_ns);
	add_totals(p, s);
	if (to->end == SP_PROFILE_END_RUNNING || p->end == SP_PROFILE_END_CLEAN)
		p->end = to->end;
	return to->path && to->program && to->command
		       ? 0
		       : sp_fleet_load_fail_memory(l);
}

/* Room for all samples, and where each part begins. */
static int place_samples(struct loader *l)
{
	struct sp_profile *p = l->p;
	size_t n = 0;

	l->by_process = calloc(p->n_parts + 1, sizeof(*l->by_process));
	if (!l->by_process)
		return sp_fleet_load_fail_memory(l);
	for (size_t i = 0; i < p->n_parts; i++) {
		l->by_process[i] = (struct numbered){l->parts[i].process, i};
		l->places[i].first_sample = n;
		if (__builtin_add_overflow(n, l->places[i].n_samples, &n))
			return sp_fleet_damaged(l->db, "a number of samples",
						l->err);
	}
	qsort(l->by_process, p->n_parts, sizeof(*l->by_process),
	      sp_fleet_load_compare);
	if (l->hours)
		n = 0;
	p->samples = calloc(n + (n < SIZE_MAX), sizeof(*p->samples));
	p->n_samples = n;
	return p->samples ? 0 : sp_fleet_load_fail_memory(l);
}

/* Are numbers of samples enough, without their times and processes? */
static bool hours_do(const struct loader *l)
{
	for (size_t i = 0; i < l->p->n_parts; i++)
		if (l->parts[i].fraction < 1 || l->p->parts[i].window_ns)
			return false;
	return l->hours != NULL;
}

static int end_processes(struct loader *l)
{
	if (l->p->n_parts != l->chosen->n)
		return sp_fleet_load_fail_changed(l);
	for (size_t i = 0; i < l->p->n_parts; i++)
		if (l->p->parts[i].end == SP_PROFILE_END_RUNNING ||
		    l->p->parts[i].stop_ns == l->p->duration_ns)
			l->p->parts[i].stop_ns = SP_NEVER;
	if (!hours_do(l))
		l->hours = NULL;
	l->p->is_timeless = l->hours != NULL;
	/* Hourly sums do not say of which process they are. */
	for (size_t i = 0; i < l->p->n_parts; i++)
		if (l->p->is_timeless || l->p->n_parts == 1)
			l->p->parts[i].lost_ns = 0;
	return place_samples(l);
}

int sp_fleet_load_processes(struct loader *l)
{
	const int r = sp_fleet_load_table(l, sp_fleet_get_processes, add_part);

	return r < 0 ? r : sp_fleet_load_finish(l, end_processes);
}

/* ---- facts that all of them have ---- */

/* Those of some processes, of which all that were asked for have them. */
struct facts {
	struct sp_info *infos;
	size_t n, room;
};

static int read_facts(struct loader *l, const struct sp_fleet_value *list,
		      struct facts *to)
{
	const struct sp_fleet_value values[] = {*list,
						sp_fleet_number(list->n)};
	struct sp_fleet_rows *rows;
	int r = sp_fleet_ask(l->db, sp_fleet_get_facts, values, 2, &rows,
			     l->err);

	while (r >= 0 && (r = sp_fleet_next(rows, l->err)) > 0) {
		struct sp_info *info;

		if (sp_array_reserve((void **)&to->infos, &to->room, to->n,
				     sizeof(*to->infos))) {
			r = sp_fleet_load_fail_memory(l);
			break;
		}
		info = &to->infos[to->n++];
		*info = (struct sp_info){sp_fleet_load_text(l, rows, 0),
					 sp_fleet_load_text(l, rows, 1)};
		if (!info->key || !info->value)
			r = sp_fleet_load_fail_memory(l);
	}
	sp_fleet_rows_free(rows);
	return r;
}

static bool has_fact(const struct facts *facts, const struct sp_info *info)
{
	for (size_t i = 0; i < facts->n; i++)
		if (strcmp(facts->infos[i].key, info->key) == 0 &&
		    strcmp(facts->infos[i].value, info->value) == 0)
			return true;
	return false;
}

static int load_facts(struct loader *l)
{
	struct sp_profile *p = l->p;
	int r = 0;

	for (size_t i = 0; i < l->chosen->n && r >= 0; i += SP_FLEET_LIST_MAX) {
		const struct sp_fleet_value list = sp_fleet_load_list(l, i);
		struct facts facts = {.n = 0};
		size_t kept = 0;

		r = read_facts(l, &list, &facts);
		if (!i) {
			p->infos = facts.infos;
			p->n_infos = facts.n;
			continue;
		}
		for (size_t k = 0; k < p->n_infos; k++)
			if (has_fact(&facts, &p->infos[k]))
				p->infos[kept++] = p->infos[k];
		p->n_infos = kept;
		free(facts.infos);
	}
	return r;
}

static int add_fact(struct loader *l, struct sp_fleet_rows *rows)
{
	struct sp_profile *p = l->p;
	struct sp_info *info;

	if (sp_array_reserve((void **)&p->infos, &l->infos_room, p->n_infos,
			     sizeof(*p->infos)))
		return sp_fleet_load_fail_memory(l);
	info = &p->infos[p->n_infos++];
	*info = (struct sp_info){sp_fleet_load_text(l, rows, 1),
				 sp_fleet_load_text(l, rows, 2)};
	return info->key && info->value ? 0 : sp_fleet_load_fail_memory(l);
}

int sp_fleet_load_each_facts(struct loader *l)
{
	return sp_fleet_load_table(l, sp_fleet_get_each_facts, add_fact);
}

/* ---- all of it ---- */

int sp_fleet_load_name(struct loader *l)
{
	struct sp_profile *p = l->p;
	char text[64];

	snprintf(text, sizeof(text), "%zu process%s of ", p->n_parts,
		 p->n_parts == 1 ? "" : "es");
	p->command = sp_blocks_get(&p->storage,
				   strlen(text) + strlen(l->db->path) + 1);
	p->path = sp_blocks_text(&p->storage, l->db->path, strlen(l->db->path));
	if (!p->command || !p->path)
		return sp_fleet_load_fail_memory(l);
	strcat(strcpy((char *)(uintptr_t)p->command, text), l->db->path);
	p->program = p->parts[0].program;
	for (size_t i = 1; i < p->n_parts; i++)
		if (strcmp(p->parts[i].program, p->program) != 0)
			p->program = "(several programs)";
	p->host = sp_profile_info(p, "host");
	if (!p->host)
		p->host = "several hosts";
	if (!p->has_classes) {
		memset(p->classes, 0, sizeof(p->classes));
		p->class_slack_bytes = 0;
	}
	return 0;
}

static int load_all(struct loader *l)
{
	int r = sp_fleet_load_processes(l);

	if (r >= 0)
		r = load_facts(l);
	if (r >= 0)
		r = sp_fleet_code_load(&l->code, l->db, l->chosen,
				       l->hours ? sp_fleet_get_hour_stacks
						: sp_fleet_get_stacks,
				       l->p, l->err);
	if (r >= 0)
		r = sp_fleet_load_rows(l);
	return r < 0 ? r : sp_fleet_load_name(l);
}

int sp_fleet_load(struct sp_fleet_db *db, const struct sp_fleet_chosen *chosen,
		  const struct sp_fleet_span *hours, struct sp_profile **ret,
		  struct sp_fleet_part **ret_parts, struct sp_error *err)
{
	struct loader l = {
		.db = db, .chosen = chosen, .hours = hours, .err = err};
	int r;

	l.p = calloc(1, sizeof(*l.p));
	if (!l.p)
		return sp_error_memory(err, db->path);
	r = load_all(&l);
	sp_fleet_code_done(&l.code);
	free(l.places);
	free(l.by_process);
	if (r < 0) {
		sp_profile_free(l.p);
		free(l.parts);
		return r;
	}
	*ret = l.p;
	*ret_parts = l.parts;
	return 0;
}
