/* SPDX-License-Identifier: MIT */
#include "fleet/add.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "fleet/code.h"
#include "fleet/hours.h"
#include "fleet/sql.h"
#include "model/profile.h"
#include "model/walk.h"
#include "read/load.h"
#include "report/ledgers.h"

struct adding {
	struct sp_fleet_db *db;
	const struct sp_profile *profile;
	const uint64_t *stacks; /* id of each of the profile's */
	uint64_t process;       /* its number in the database */
	struct sp_fleet_hours hours;
	struct sp_error *err;
};

/* ---- the process ---- */

static struct sp_fleet_value build_id_of(const struct sp_profile *p)
{
	for (size_t i = 0; i < p->n_modules; i++)
		if (p->modules[i].is_main && p->modules[i].build_id_len)
			return sp_fleet_bytes(p->modules[i].build_id,
					      p->modules[i].build_id_len);
	return sp_fleet_text(NULL);
}

static struct sp_fleet_value draw_of(const struct sp_profile *p)
{
	const char *draw = sp_profile_info(p, "draw");
	uint64_t number;

	return draw && sp_parse_u64(draw, &number) ? sp_fleet_number(number)
						   : sp_fleet_text(NULL);
}

/* A process that was short may have recorded none. */
static bool may_have_rss(const struct sp_profile *p)
{
	const char *setting = sp_profile_info(p, "setting.rss");

	return p->n_rss || (setting && strcmp(setting, "off") != 0);
}

static int put_process(struct adding *a)
{
	const struct sp_profile *p = a->profile;
	const struct sp_fleet_value row[] = {
		sp_fleet_number(a->process),
		sp_fleet_number(p->file_id),
		sp_fleet_text(p->path),
		sp_fleet_text(p->program),
		sp_fleet_text(p->command),
		sp_fleet_text(p->host),
		sp_fleet_text(sp_profile_info(p, "container")),
		build_id_of(p),
		sp_fleet_number(p->pid),
		sp_fleet_number(p->start_unix_ns),
		sp_fleet_number(p->duration_ns),
		sp_fleet_number(p->end),
		sp_fleet_number(p->format_version),
		sp_fleet_real(sp_profile_fraction(p)),
		draw_of(p),
		sp_fleet_number(p->period_bytes),
		sp_fleet_number(p->law.is_dotnet |
				(p->law.always_large ? 2u : 0u)),
		sp_fleet_number(p->seed),
		sp_fleet_number(p->has_frees),
		sp_fleet_number(p->has_classes),
		sp_fleet_number(p->exact_alloc_bytes),
		sp_fleet_number(p->exact_alloc_objects),
		sp_fleet_number(p->missing_bytes_max),
		sp_fleet_number(p->class_slack_bytes),
		sp_fleet_number(p->unsampled_bytes),
		sp_fleet_number(p->unsampled_objects),
		sp_fleet_number(p->discarded_bytes),
		sp_fleet_number(p->discarded_objects),
		sp_fleet_number(p->window_ns),
		sp_fleet_number(p->check_in_bytes),
		sp_fleet_number(p->max_file_bytes),
		sp_fleet_number(p->time_error_ns),
		sp_fleet_number(p->threads),
		sp_fleet_number(p->unmatched_frees),
		sp_fleet_number(p->damaged_records),
		sp_fleet_number(p->ignored_bytes),
		sp_fleet_number(p->unfinished_records),
		sp_fleet_text(*p->damage ? p->damage : NULL),
		sp_fleet_number(sp_profile_samples(p)),
		sp_fleet_number(may_have_rss(p)),
	};

	return sp_fleet_put(a->db, SP_FLEET_PROCESSES, row, a->err);
}

/* ---- what belongs to it ---- */

static int put_pair(struct adding *a, enum sp_fleet_table table,
		    const char *key, const char *value)
{
	const struct sp_fleet_value row[] = {sp_fleet_number(a->process),
					     sp_fleet_text(key),
					     sp_fleet_text(value)};

	return sp_fleet_put(a->db, table, row, a->err);
}

/* A file may have a key twice: the report takes the first. */
static int put_facts(struct adding *a)
{
	const struct sp_profile *p = a->profile;
	const char *key, *value;
	char full[24];
	int r = 0;

	for (size_t i = 0; i < p->n_infos && r >= 0; i++)
		if (!sp_ledger_is_one(&p->infos[i]) &&
		    sp_profile_info(p, p->infos[i].key) == p->infos[i].value)
			r = put_pair(a, SP_FLEET_FACTS, p->infos[i].key,
				     p->infos[i].value);
	snprintf(full, sizeof(full), "%" PRIu64, p->full_ns);
	if (r >= 0 && p->full_ns && !sp_profile_info(p, "full_ns"))
		r = put_pair(a, SP_FLEET_FACTS, "full_ns", full);
	for (size_t i = 0; r >= 0 && (key = sp_profile_label(p, i, &value));
	     i++)
		r = put_pair(a, SP_FLEET_LABELS, key, value);
	return r;
}

static int put_totals(struct adding *a)
{
	const struct sp_profile *p = a->profile;
	int r = 0;

	for (unsigned int i = 0; i < SP_FORMAT_CLASSES && r >= 0; i++) {
		const struct sp_fleet_value row[] = {
			sp_fleet_number(a->process), sp_fleet_number(i),
			sp_fleet_number(p->classes[i].bytes),
			sp_fleet_number(p->classes[i].objects)};

		if (p->classes[i].bytes || p->classes[i].objects)
			r = sp_fleet_put(a->db, SP_FLEET_TOTALS, row, a->err);
	}
	for (unsigned int i = 0; i < SP_LOSS_COUNT && r >= 0; i++) {
		const struct sp_fleet_value row[] = {
			sp_fleet_number(a->process), sp_fleet_number(i),
			sp_fleet_number(p->losses[i])};

		if (p->losses[i])
			r = sp_fleet_put(a->db, SP_FLEET_LOSSES, row, a->err);
	}
	return r;
}

static int put_threads(struct adding *a)
{
	int r = 0;

	for (size_t i = 0; i < a->profile->n_thread_infos && r >= 0; i++) {
		const struct sp_thread_info *t = &a->profile->thread_infos[i];
		const struct sp_fleet_value row[] = {
			sp_fleet_number(a->process),
			sp_fleet_number(i),
			sp_fleet_number(t->index),
			sp_fleet_number(t->tid),
			sp_fleet_bytes(t->name,
				       strnlen(t->name, sizeof(t->name))),
			sp_fleet_number(t->has_totals),
			sp_fleet_number(t->exited),
			sp_fleet_number(t->exact_alloc_bytes),
			sp_fleet_number(t->exact_alloc_objects),
		};

		r = sp_fleet_put(a->db, SP_FLEET_THREADS, row, a->err);
	}
	return r;
}

static int put_rss(struct adding *a)
{
	const struct sp_profile *p = a->profile;
	int r = 0;

	for (size_t i = 0; i < p->n_rss && r >= 0; i++) {
		const struct sp_fleet_value row[] = {
			sp_fleet_number(a->process), sp_fleet_number(i),
			sp_fleet_number(p->rss[i].time_ns),
			sp_fleet_number(p->rss[i].rss_bytes)};

		r = sp_fleet_put(a->db, SP_FLEET_RSS, row, a->err);
	}
	return r;
}

static int put_stretches(struct adding *a)
{
	const struct sp_profile *p = a->profile;
	int r = 0;

	for (size_t i = 0; i < p->n_stretches && r >= 0; i++) {
		const struct sp_stretch *s = &p->stretches[i];
		const struct sp_fleet_value row[] = {
			sp_fleet_number(a->process),
			sp_fleet_number(i),
			sp_fleet_number(s->from_ns),
			sp_fleet_number(s->asked_ns),
			sp_fleet_number_but(s->to_ns, SP_NEVER),
			sp_fleet_text(s->phase),
			sp_fleet_number(s->period_bytes),
			sp_fleet_number(s->alloc_bytes),
			sp_fleet_number(s->alloc_objects),
			sp_fleet_number(s->unsampled_bytes),
			sp_fleet_number(s->unsampled_objects),
			sp_fleet_number(s->discarded_bytes),
			sp_fleet_number(s->slack_bytes),
		};

		r = sp_fleet_put(a->db, SP_FLEET_STRETCHES, row, a->err);
	}
	return r;
}

static int put_snapshots(struct adding *a)
{
	const struct sp_profile *p = a->profile;
	int r = 0;

	for (size_t i = 0; i < p->n_snapshots && r >= 0; i++) {
		const struct sp_snapshot *s = &p->snapshots[i];
		const struct sp_fleet_value row[] = {
			sp_fleet_number(a->process),
			sp_fleet_number(i),
			sp_fleet_text(s->name),
			sp_fleet_number(s->time_ns),
			sp_fleet_number(s->asked_ns),
			sp_fleet_number(s->alloc_bytes),
			sp_fleet_number(s->alloc_objects),
		};

		r = sp_fleet_put(a->db, SP_FLEET_SNAPSHOTS, row, a->err);
	}
	return r;
}

static int put_sample(void *arg, enum sp_sample_event event,
		      const struct sp_sample *sample)
{
	struct adding *a = arg;
	const struct sp_fleet_value row[] = {
		sp_fleet_number(a->process),
		sp_fleet_number(sample->id),
		sp_fleet_number(a->stacks[sample->stack]),
		sp_fleet_number(sample->born_ns),
		sp_fleet_number_but(sample->freed_ns, SP_NEVER),
		sp_fleet_number(sample->size_bytes),
		sp_fleet_number(sample->offset_bytes),
		sp_fleet_number(sample->period_bytes),
		sp_fleet_number_but(sample->age_bytes, SP_UNKNOWN),
		sp_fleet_number_but(sample->thread, UINT32_MAX),
		sp_fleet_number_but(sample->freed_by, UINT32_MAX),
		sp_fleet_number(sample->entry),
		sp_fleet_number(sample->free_missed),
	};

	int r;

	if (event != SP_SAMPLE_SETTLED)
		return 0;
	r = sp_fleet_put(a->db, SP_FLEET_SAMPLES, row, a->err);
	return r < 0 ? r
		     : sp_fleet_hours_add(&a->hours, a->profile, sample,
					  a->stacks[sample->stack], a->err);
}

/* ---- a file ---- */

/* A later state of a process has all that an earlier one had. */
static bool is_later(const struct sp_profile *p, struct sp_fleet_rows *rows)
{
	const bool was_running =
		sp_fleet_get(rows, 1) == SP_PROFILE_END_RUNNING;

	if (sp_profile_samples(p) != sp_fleet_get(rows, 2))
		return sp_profile_samples(p) > sp_fleet_get(rows, 2);
	return p->exact_alloc_bytes > sp_fleet_get(rows, 3) ||
	       p->duration_ns > sp_fleet_get(rows, 4) ||
	       (was_running && p->end != SP_PROFILE_END_RUNNING);
}

static int erase_process(struct adding *a, uint64_t process)
{
	int r = sp_fleet_erase(a->db, SP_FLEET_PROCESSES, &process, 1, a->err);

	for (unsigned int i = SP_FLEET_FACTS; i <= SP_FLEET_SNAPSHOTS && r >= 0;
	     i++)
		r = sp_fleet_erase(a->db, (enum sp_fleet_table)i, &process, 1,
				   a->err);
	return r;
}

/* Find the file's rows in the database, and whether this file has more. */
static int look_for(struct adding *a, enum sp_fleet_added *ret)
{
	const struct sp_fleet_value id = sp_fleet_number(a->profile->file_id);
	struct sp_fleet_rows *rows;
	uint64_t process = 0;
	int r;

	if (sp_fleet_knows(&a->db->waiting, a->profile->file_id))
		return sp_error_set(a->err, -EALREADY, a->profile->path,
				    "waits to be sent");
	r = sp_fleet_ask(a->db, sp_fleet_find_file, &id, 1, &rows, a->err);

	if (r < 0)
		return r;
	*ret = SP_FLEET_ADDED;
	r = sp_fleet_next(rows, a->err);
	if (r > 0) {
		process = sp_fleet_get(rows, 0);
		*ret = is_later(a->profile, rows) ? SP_FLEET_UPDATED
						  : SP_FLEET_SAME;
	}
	sp_fleet_rows_free(rows);
	return r > 0 && *ret == SP_FLEET_UPDATED ? erase_process(a, process)
						 : r;
}

static int put_profile(struct adding *a)
{
	int r = put_process(a);

	if (r >= 0)
		r = put_facts(a);
	if (r >= 0)
		r = put_totals(a);
	if (r >= 0)
		r = put_threads(a);
	if (r >= 0)
		r = put_rss(a);
	if (r >= 0)
		r = put_stretches(a);
	if (r >= 0)
		r = put_snapshots(a);
	if (r >= 0)
		r = sp_profile_walk(a->profile, NULL, NULL, put_sample, a,
				    a->err);
	return r < 0 ? r : sp_fleet_hours_write(&a->hours, a->err);
}

/* Names are looked for also if the file was there: a copy may bring them. */
static int add_profile(struct adding *a,
		       const struct sp_symbolizer_options *symbols,
		       enum sp_fleet_added *ret)
{
	uint64_t *stacks = NULL;
	int r = sp_fleet_begin(a->db, &a->process, a->err);

	if (r >= 0)
		r = look_for(a, ret);
	if (r >= 0)
		r = sp_fleet_put_code(a->db, a->profile, a->process, symbols,
				      &stacks, a->err);
	a->stacks = stacks;
	a->hours = (struct sp_fleet_hours){.db = a->db, .process = a->process};
	if (r >= 0 && *ret != SP_FLEET_SAME)
		r = put_profile(a);
	if (r >= 0)
		r = sp_fleet_commit(a->db, a->profile->file_id, a->err);
	if (r < 0)
		sp_fleet_rollback(a->db);
	sp_fleet_hours_done(&a->hours);
	free(stacks);
	return r;
}

static int check_profile(const struct sp_profile *p, const char *path,
			 struct sp_error *err)
{
	if (p->is_cut)
		return sp_error_set(err, -EINVAL, path,
				    "was cut short: send the whole file; "
				    "nothing of it was added");
	return 0;
}

int sp_fleet_add(struct sp_fleet_db *db, const char *path,
		 const struct sp_symbolizer_options *symbols,
		 enum sp_fleet_added *ret, struct sp_error *err)
{
	const struct sp_plan plan = {.every_sample = false};
	struct sp_profile *profile;
	struct adding a = {.db = db, .err = err};
	int r = sp_profile_read(&path, 1, &plan, NULL, NULL, &profile, err);

	if (r < 0)
		return r;
	a.profile = profile;
	r = check_profile(profile, path, err);
	if (r >= 0)
		r = add_profile(&a, symbols, ret);
	/* It borrows the profile's. */
	if (r < 0 && err->file == profile->path)
		err->file = path;
	sp_profile_free(profile);
	return r;
}
