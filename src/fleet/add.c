/* SPDX-License-Identifier: MIT */
#include "fleet/add.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "fleet/code.h"
#include "model/profile.h"
#include "model/walk.h"
#include "read/load.h"

struct adding {
	struct sp_fleet_db *db;
	const struct sp_profile *profile;
	const uint64_t *stacks; /* id of each of the profile's */
	uint64_t process;
	struct sp_error *err;
};

/* ---- the process ---- */

static void bind_build_id(sqlite3_stmt *s, int i, const struct sp_profile *p)
{
	for (size_t k = 0; k < p->n_modules; k++)
		if (p->modules[k].is_main && p->modules[k].build_id_len)
			sqlite3_bind_blob(s, i, p->modules[k].build_id,
					  (int)p->modules[k].build_id_len,
					  SQLITE_STATIC);
}

static void bind_origin(sqlite3_stmt *s, const struct sp_profile *p)
{
	const char *draw = sp_profile_info(p, "draw");
	uint64_t number;

	sp_fleet_bind(s, 2, p->file_id);
	sp_fleet_bind_text(s, 3, p->path);
	sp_fleet_bind_text(s, 4, p->program);
	sp_fleet_bind_text(s, 5, p->command);
	sp_fleet_bind_text(s, 6, p->host);
	sp_fleet_bind_text(s, 7, sp_profile_info(p, "container"));
	bind_build_id(s, 8, p);
	sp_fleet_bind(s, 9, p->pid);
	sp_fleet_bind(s, 10, p->start_unix_ns);
	sp_fleet_bind(s, 11, p->duration_ns);
	sp_fleet_bind(s, 12, p->end);
	sp_fleet_bind(s, 13, p->format_version);
	sqlite3_bind_double(s, 14, sp_profile_fraction(p));
	if (draw && sp_parse_u64(draw, &number))
		sp_fleet_bind(s, 15, number);
}

static void bind_figures(sqlite3_stmt *s, const struct sp_profile *p)
{
	const uint64_t figures[] = {
		p->period_bytes,
		p->law.is_dotnet | (p->law.always_large ? 2u : 0u),
		p->seed,
		p->has_frees,
		p->has_classes,
		p->exact_alloc_bytes,
		p->exact_alloc_objects,
		p->missing_bytes_max,
		p->class_slack_bytes,
		p->unsampled_bytes,
		p->unsampled_objects,
		p->discarded_bytes,
		p->discarded_objects,
		p->window_ns,
		p->check_in_bytes,
		p->max_file_bytes,
		p->time_error_ns,
		p->threads,
		p->unmatched_frees,
		p->damaged_records,
		p->ignored_bytes,
		p->unfinished_records,
	};
	const int first = 16, n = (int)(sizeof(figures) / sizeof(*figures));

	for (int i = 0; i < n; i++)
		sp_fleet_bind(s, first + i, figures[i]);
	sp_fleet_bind_text(s, first + n, *p->damage ? p->damage : NULL);
	sp_fleet_bind(s, first + n + 1, sp_profile_samples(p));
}

static int put_process(struct adding *a)
{
	sqlite3_stmt *s =
		sp_fleet_statement(a->db, SP_FLEET_PUT_PROCESS, a->err);
	int r;

	if (s) {
		bind_origin(s, a->profile);
		bind_figures(s, a->profile);
	}
	r = sp_fleet_run(a->db, s, a->err);
	a->process = (uint64_t)sqlite3_last_insert_rowid(a->db->sqlite);
	return r;
}

/* ---- what belongs to it ---- */

static int put_text(struct adding *a, enum sp_fleet_statement which,
		    const char *key, const char *value)
{
	sqlite3_stmt *s = sp_fleet_statement(a->db, which, a->err);

	if (s) {
		sp_fleet_bind(s, 1, a->process);
		sp_fleet_bind_text(s, 2, key);
		sp_fleet_bind_text(s, 3, value);
	}
	return sp_fleet_run(a->db, s, a->err);
}

static int put_facts(struct adding *a)
{
	const struct sp_profile *p = a->profile;
	const char *key, *value;
	int r = 0;

	for (size_t i = 0; i < p->n_infos && r >= 0; i++)
		r = put_text(a, SP_FLEET_PUT_FACT, p->infos[i].key,
			     p->infos[i].value);
	for (size_t i = 0; r >= 0 && (key = sp_profile_label(p, i, &value));
	     i++)
		r = put_text(a, SP_FLEET_PUT_LABEL, key, value);
	return r;
}

/* A row of numbers, after the process. */
static int put_numbers(struct adding *a, enum sp_fleet_statement which,
		       const uint64_t *numbers, int n)
{
	sqlite3_stmt *s = sp_fleet_statement(a->db, which, a->err);

	if (s) {
		sp_fleet_bind(s, 1, a->process);
		for (int i = 0; i < n; i++)
			sp_fleet_bind(s, 2 + i, numbers[i]);
	}
	return sp_fleet_run(a->db, s, a->err);
}

static int put_totals(struct adding *a)
{
	const struct sp_profile *p = a->profile;
	int r = 0;

	for (unsigned int i = 0; i < SP_FORMAT_CLASSES && r >= 0; i++) {
		const uint64_t row[] = {i, p->classes[i].bytes,
					p->classes[i].objects};

		if (row[1] || row[2])
			r = put_numbers(a, SP_FLEET_PUT_TOTAL, row, 3);
	}
	for (unsigned int i = 0; i < SP_LOSS_COUNT && r >= 0; i++) {
		const uint64_t row[] = {i, p->losses[i]};

		if (p->losses[i])
			r = put_numbers(a, SP_FLEET_PUT_LOSS, row, 2);
	}
	return r;
}

static int put_threads(struct adding *a)
{
	int r = 0;

	for (size_t i = 0; i < a->profile->n_thread_infos && r >= 0; i++) {
		const struct sp_thread_info *t = &a->profile->thread_infos[i];
		sqlite3_stmt *s =
			sp_fleet_statement(a->db, SP_FLEET_PUT_THREAD, a->err);

		if (!s)
			return -EIO;
		sp_fleet_bind(s, 1, a->process);
		sp_fleet_bind(s, 2, i);
		sp_fleet_bind(s, 3, t->index);
		sp_fleet_bind(s, 4, t->tid);
		sqlite3_bind_blob(s, 5, t->name,
				  (int)strnlen(t->name, sizeof(t->name)),
				  SQLITE_STATIC);
		sp_fleet_bind(s, 6, t->has_totals);
		sp_fleet_bind(s, 7, t->exited);
		sp_fleet_bind(s, 8, t->exact_alloc_bytes);
		sp_fleet_bind(s, 9, t->exact_alloc_objects);
		r = sp_fleet_run(a->db, s, a->err);
	}
	return r;
}

static int put_sample(void *arg, enum sp_sample_event event,
		      const struct sp_sample *sample)
{
	struct adding *a = arg;
	sqlite3_stmt *s;

	if (event != SP_SAMPLE_SETTLED)
		return 0;
	s = sp_fleet_statement(a->db, SP_FLEET_PUT_SAMPLE, a->err);
	if (!s)
		return -EIO;
	sp_fleet_bind(s, 1, a->process);
	sp_fleet_bind(s, 2, sample->id);
	sp_fleet_bind(s, 3, a->stacks[sample->stack]);
	sp_fleet_bind(s, 4, sample->born_ns);
	sp_fleet_bind_but(s, 5, sample->freed_ns, SP_NEVER);
	sp_fleet_bind(s, 6, sample->size_bytes);
	sp_fleet_bind(s, 7, sample->offset_bytes);
	sp_fleet_bind(s, 8, sample->period_bytes);
	sp_fleet_bind_but(s, 9, sample->age_bytes, SP_UNKNOWN);
	sp_fleet_bind_but(s, 10, sample->thread, UINT32_MAX);
	sp_fleet_bind_but(s, 11, sample->freed_by, UINT32_MAX);
	sp_fleet_bind(s, 12, sample->entry);
	sp_fleet_bind(s, 13, sample->free_missed);
	return sp_fleet_run(a->db, s, a->err);
}

/* ---- a file ---- */

/* A later state of a process has all that an earlier one had. */
static bool is_later(const struct sp_profile *p, sqlite3_stmt *s)
{
	const bool was_running = sp_fleet_u64(s, 1) == SP_PROFILE_END_RUNNING;

	if (sp_profile_samples(p) != sp_fleet_u64(s, 2))
		return sp_profile_samples(p) > sp_fleet_u64(s, 2);
	return p->exact_alloc_bytes > sp_fleet_u64(s, 3) ||
	       p->duration_ns > sp_fleet_u64(s, 4) ||
	       (was_running && p->end != SP_PROFILE_END_RUNNING);
}

static int drop_process(struct adding *a, uint64_t process)
{
	int r = 0;

	for (unsigned int i = SP_FLEET_DROP_PROCESS;
	     i <= SP_FLEET_DROP_SAMPLES && r >= 0; i++) {
		sqlite3_stmt *s = sp_fleet_statement(
			a->db, (enum sp_fleet_statement)i, a->err);

		if (s)
			sp_fleet_bind(s, 1, process);
		r = sp_fleet_run(a->db, s, a->err);
	}
	return r;
}

/* What is there of the file, and whether this is more. */
static int look_for(struct adding *a, enum sp_fleet_added *ret)
{
	sqlite3_stmt *s = sp_fleet_statement(a->db, SP_FLEET_FIND_FILE, a->err);
	uint64_t process;
	bool later;
	int r;

	if (!s)
		return -EIO;
	sp_fleet_bind(s, 1, a->profile->file_id);
	r = sp_fleet_step(a->db, s, a->err);
	*ret = SP_FLEET_ADDED;
	if (r <= 0)
		return r;
	process = sp_fleet_u64(s, 0);
	later = is_later(a->profile, s);
	sqlite3_reset(s);
	*ret = later ? SP_FLEET_UPDATED : SP_FLEET_SAME;
	return later ? drop_process(a, process) : 0;
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
	return r < 0 ? r
		     : sp_profile_walk(a->profile, NULL, NULL, put_sample, a,
				       a->err);
}

/* Names are looked for also if the file was there: a copy may bring them. */
static int add_profile(struct adding *a,
		       const struct sp_symbolizer_options *symbols,
		       enum sp_fleet_added *ret)
{
	uint64_t *stacks = NULL;
	int r = sp_fleet_exec(a->db, SP_FLEET_BEGIN, a->err);

	if (r < 0)
		return r;
	r = look_for(a, ret);
	if (r >= 0)
		r = sp_fleet_put_code(a->db, a->profile, symbols, &stacks,
				      a->err);
	a->stacks = stacks;
	if (r >= 0 && *ret != SP_FLEET_SAME)
		r = put_profile(a);
	if (r >= 0)
		r = sp_fleet_exec(a->db, SP_FLEET_COMMIT, a->err);
	if (r < 0 && !sqlite3_get_autocommit(a->db->sqlite))
		sp_fleet_exec(a->db, SP_FLEET_ROLLBACK, NULL);
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
