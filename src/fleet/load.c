/* SPDX-License-Identifier: MIT */
#include "fleet/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/saturate.h"
#include "fleet/load_code.h"
#include "stats/peak.h"

struct loader {
	struct sp_fleet_db *db;
	struct sp_profile *p;
	struct sp_fleet_part *parts;
	size_t parts_room, facts_room, threads_room, samples_room, infos_room;
	struct sp_fleet_code code;
	struct sp_error *err;
};

static int fail_memory(struct loader *l)
{
	return sp_error_set(l->err, -ENOMEM, l->db->path,
			    "not enough memory for %zu samples of %zu "
			    "processes: choose fewer with --label, --host, "
			    "--from and --to",
			    l->p->n_samples, l->p->n_parts);
}

static const char *keep_text(struct loader *l, sqlite3_stmt *s, int i)
{
	const char *text = sp_fleet_text(s, i);

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
};

static void add_totals(struct sp_profile *p, sqlite3_stmt *s)
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
		sp_sat_add(sums[i].sum, sp_fleet_u64(s, sums[i].column));
	sp_raise(&p->period_bytes, sp_fleet_u64(s, AT_PERIOD));
	sp_raise(&p->check_in_bytes, sp_fleet_u64(s, AT_CHECK_IN));
	sp_raise(&p->max_file_bytes, sp_fleet_u64(s, AT_MAX_FILE));
	sp_raise(&p->time_error_ns, sp_fleet_u64(s, AT_TIME_ERROR));
	p->has_classes &= sqlite3_column_int(s, AT_HAS_CLASSES) == 1;
	p->has_frees &= sqlite3_column_int(s, AT_HAS_FREES) == 1;
	p->seed ^= sp_fleet_u64(s, AT_SEED);
	if (*sp_fleet_text(s, AT_DAMAGE) && !*p->damage)
		snprintf(p->damage, sizeof(p->damage), "%.100s: %.140s",
			 sp_fleet_text(s, AT_FILE),
			 sp_fleet_text(s, AT_DAMAGE));
}

static void begin_profile(struct sp_profile *p, sqlite3_stmt *s)
{
	const uint64_t law = sp_fleet_u64(s, AT_LAW);

	p->law = (struct sp_law_used){law & 1, law & 2};
	p->has_classes = p->has_frees = true;
	p->format_version = (uint32_t)sp_fleet_u64(s, AT_FORMAT);
	p->pid = sp_fleet_u64(s, AT_PID);
	p->start_unix_ns = sp_fleet_u64(s, AT_START);
}

static int check_row(struct loader *l, sqlite3_stmt *s)
{
	const struct sp_law_used *law = &l->p->law;
	const double fraction = sqlite3_column_double(s, AT_FRACTION);

	if (sp_fleet_u64(s, AT_LAW) !=
	    (law->is_dotnet | (law->always_large ? 2u : 0u)))
		return sp_error_set(
			l->err, -EINVAL, l->db->path,
			"the processes were not sampled by the same law "
			"(SAMPLEPROF_LAW, or another version): choose with "
			"--label or --host");
	if (!(fraction > 0 && fraction <= 1) ||
	    sp_fleet_u64(s, AT_ENDING) > SP_PROFILE_END_RUNNING ||
	    !sp_fleet_u64(s, AT_PERIOD) ||
	    sp_fleet_u64(s, AT_PERIOD) > SP_FORMAT_PERIOD_MAX ||
	    sp_fleet_u64(s, AT_START) < l->p->start_unix_ns)
		return sp_fleet_damaged(l->db, "a row of processes", l->err);
	return 0;
}

static int add_part(struct loader *l, sqlite3_stmt *s)
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
	if (r < 0)
		return r;
	if (sp_array_reserve((void **)&l->parts, &l->facts_room, p->n_parts,
			     sizeof(*l->parts)) ||
	    sp_array_reserve((void **)&p->parts, &l->parts_room, p->n_parts,
			     sizeof(*p->parts)))
		return fail_memory(l);
	l->parts[p->n_parts] = (struct sp_fleet_part){
		sp_fleet_u64(s, AT_PROCESS),
		sqlite3_column_double(s, AT_FRACTION), sp_fleet_u64(s, AT_DRAW),
		sp_peak_coins(sp_fleet_u64(s, AT_SEED),
			      sp_fleet_u64(s, AT_START))};
	to = &p->parts[p->n_parts++];
	*to = (struct sp_part){
		.path = keep_text(l, s, AT_FILE),
		.program = keep_text(l, s, AT_PROGRAM),
		.command = keep_text(l, s, AT_COMMAND),
		.file_id = sp_fleet_u64(s, AT_FILE_ID),
		.pid = sp_fleet_u64(s, AT_PID),
		.period_bytes = sp_fleet_u64(s, AT_PERIOD),
		.exact_alloc_bytes = sp_fleet_u64(s, AT_BYTES),
		.exact_alloc_objects = sp_fleet_u64(s, AT_OBJECTS),
		.missing_bytes_max = sp_fleet_u64(s, AT_MISSING),
		.end = (enum sp_profile_end)sp_fleet_u64(s, AT_ENDING),
		.start_ns = sp_fleet_u64(s, AT_START) - p->start_unix_ns,
		.window_ns = sp_fleet_u64(s, AT_WINDOW),
	};
	to->stop_ns = to->start_ns;
	sp_sat_add(&to->stop_ns, sp_fleet_u64(s, AT_DURATION));
	if (to->stop_ns == SP_NEVER)
		return sp_fleet_damaged(l->db, "a duration", l->err);
	if (to->window_ns)
		sp_sat_add(&to->window_ns, to->start_ns);
	sp_raise(&p->duration_ns, to->stop_ns);
	add_totals(p, s);
	if (to->end == SP_PROFILE_END_RUNNING || p->end == SP_PROFILE_END_CLEAN)
		p->end = to->end;
	return to->path && to->program && to->command ? 0 : fail_memory(l);
}

static int load_processes(struct loader *l)
{
	sqlite3_stmt *s =
		sp_fleet_statement(l->db, SP_FLEET_GET_PROCESSES, l->err);
	int r = -EIO;

	while (s && (r = sp_fleet_step(l->db, s, l->err)) > 0) {
		r = add_part(l, s);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < l->p->n_parts; i++)
		if (l->p->parts[i].end == SP_PROFILE_END_RUNNING ||
		    l->p->parts[i].stop_ns == l->p->duration_ns)
			l->p->parts[i].stop_ns = SP_NEVER;
	return r;
}

static int load_facts(struct loader *l)
{
	sqlite3_stmt *s = sp_fleet_statement(l->db, SP_FLEET_GET_FACTS, l->err);
	struct sp_profile *p = l->p;
	int r = -EIO;

	while (s && (r = sp_fleet_step(l->db, s, l->err)) > 0) {
		if (sp_array_reserve((void **)&p->infos, &l->infos_room,
				     p->n_infos, sizeof(*p->infos)))
			return fail_memory(l);
		p->infos[p->n_infos++] = (struct sp_info){keep_text(l, s, 0),
							  keep_text(l, s, 1)};
		if (!p->infos[p->n_infos - 1].key ||
		    !p->infos[p->n_infos - 1].value)
			return fail_memory(l);
	}
	return r;
}

/* ---- what belongs to each ---- */

/* The statement for the rows of a part; NULL and *err. */
static sqlite3_stmt *rows_of(struct loader *l, enum sp_fleet_statement which,
			     size_t part)
{
	sqlite3_stmt *s = sp_fleet_statement(l->db, which, l->err);

	if (s)
		sp_fleet_bind(s, 1, l->parts[part].process);
	return s;
}

static int load_totals(struct loader *l, size_t part)
{
	sqlite3_stmt *s = rows_of(l, SP_FLEET_GET_TOTALS, part);
	int r = -EIO;

	while (s && (r = sp_fleet_step(l->db, s, l->err)) > 0) {
		const uint64_t class = sp_fleet_u64(s, 0);

		if (class >= SP_FORMAT_CLASSES)
			return sp_fleet_damaged(l->db, "a size class", l->err);
		sp_sat_add(&l->p->classes[class].bytes, sp_fleet_u64(s, 1));
		sp_sat_add(&l->p->classes[class].objects, sp_fleet_u64(s, 2));
	}
	s = r < 0 ? NULL : rows_of(l, SP_FLEET_GET_LOSSES, part);
	while (s && (r = sp_fleet_step(l->db, s, l->err)) > 0) {
		const uint64_t kind = sp_fleet_u64(s, 0);

		/* A later version may know more of them. */
		if (kind < SP_LOSS_COUNT)
			sp_sat_add(&l->p->losses[kind], sp_fleet_u64(s, 1));
	}
	return s ? r : -EIO;
}

static int load_threads(struct loader *l, size_t part)
{
	sqlite3_stmt *s = rows_of(l, SP_FLEET_GET_THREADS, part);
	struct sp_profile *p = l->p;
	int r = -EIO;

	while (s && (r = sp_fleet_step(l->db, s, l->err)) > 0) {
		const int n = sqlite3_column_bytes(s, 4);
		struct sp_thread_info *t;

		if (n > SP_FORMAT_THREAD_NAME_MAX ||
		    p->n_thread_infos >= UINT32_MAX - 1)
			return sp_fleet_damaged(l->db, "a thread", l->err);
		if (sp_array_reserve((void **)&p->thread_infos,
				     &l->threads_room, p->n_thread_infos,
				     sizeof(*t)))
			return fail_memory(l);
		t = &p->thread_infos[p->n_thread_infos++];
		*t = (struct sp_thread_info){
			.index = (uint32_t)p->n_thread_infos,
			.tid = sp_fleet_u64(s, 3),
			.has_totals = sqlite3_column_int(s, 5) == 1,
			.exited = sqlite3_column_int(s, 6) == 1,
			.exact_alloc_bytes = sp_fleet_u64(s, 7),
			.exact_alloc_objects = sp_fleet_u64(s, 8),
		};
		if (n > 0)
			memcpy(t->name, sqlite3_column_blob(s, 4), (size_t)n);
	}
	return r;
}

static uint32_t thread_at(sqlite3_stmt *s, int i, size_t first, size_t n)
{
	const uint64_t v = sp_fleet_u64_or(s, i, UINT64_MAX);

	return v < n ? (uint32_t)(first + v) : UINT32_MAX;
}

static bool is_sane(const struct sp_sample *s, const struct sp_profile *p)
{
	return s->size_bytes && s->offset_bytes < s->size_bytes &&
	       s->period_bytes && s->period_bytes <= p->period_bytes &&
	       s->born_ns < SP_NEVER && s->freed_ns >= s->born_ns &&
	       s->entry < SP_ENTRY_COUNT;
}

static int add_sample(struct loader *l, sqlite3_stmt *s, size_t part,
		      size_t first_thread)
{
	struct sp_profile *p = l->p;
	const size_t n_threads = p->n_thread_infos - first_thread;
	const uint64_t start_ns = p->parts[part].start_ns;
	struct sp_sample *to;

	if (sp_array_reserve((void **)&p->samples, &l->samples_room,
			     p->n_samples, sizeof(*to)))
		return fail_memory(l);
	to = &p->samples[p->n_samples];
	*to = (struct sp_sample){
		.id = p->n_samples + 1,
		.born_ns = sp_fleet_u64(s, 3),
		.freed_ns = sp_fleet_u64_or(s, 4, SP_NEVER),
		.size_bytes = sp_fleet_u64(s, 5),
		.offset_bytes = sp_fleet_u64(s, 6),
		.period_bytes = sp_fleet_u64(s, 7),
		.age_bytes = sp_fleet_u64_or(s, 8, SP_UNKNOWN),
		.thread = thread_at(s, 9, first_thread, n_threads),
		.freed_by = thread_at(s, 10, first_thread, n_threads),
		.part = (uint16_t)part,
		.entry = (uint8_t)sp_fleet_u64(s, 11),
		.free_missed = sqlite3_column_int(s, 12) == 1,
	};
	if (!is_sane(to, p) ||
	    !sp_fleet_code_find(&l->code, sp_fleet_u64(s, 2), &to->stack))
		return sp_fleet_damaged(l->db, "a sample", l->err);
	sp_sat_add(&to->born_ns, start_ns);
	if (to->freed_ns != SP_NEVER)
		sp_sat_add(&to->freed_ns, start_ns);
	if (to->born_ns == SP_NEVER)
		return sp_fleet_damaged(l->db, "a time of a sample", l->err);
	to->half = (uint8_t)((1 + sp_peak_toss(l->parts[part].coins,
					       sp_fleet_u64(s, 1),
					       to->offset_bytes)) &
			     3);
	p->n_samples++;
	return 0;
}

static int load_part(struct loader *l, size_t part)
{
	const size_t first_thread = l->p->n_thread_infos;
	sqlite3_stmt *s;
	int r = load_totals(l, part);

	if (r >= 0)
		r = load_threads(l, part);
	s = r < 0 ? NULL : rows_of(l, SP_FLEET_GET_SAMPLES, part);
	if (!s)
		return r < 0 ? r : -EIO;
	while ((r = sp_fleet_step(l->db, s, l->err)) > 0) {
		r = add_sample(l, s, part, first_thread);
		if (r < 0)
			return r;
	}
	return r;
}

/* ---- all of it ---- */

static int name_profile(struct loader *l)
{
	struct sp_profile *p = l->p;
	char text[64];

	snprintf(text, sizeof(text), "%zu process%s of ", p->n_parts,
		 p->n_parts == 1 ? "" : "es");
	p->command = sp_blocks_get(&p->storage,
				   strlen(text) + strlen(l->db->path) + 1);
	p->path = sp_blocks_text(&p->storage, l->db->path, strlen(l->db->path));
	if (!p->command || !p->path)
		return fail_memory(l);
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

int sp_fleet_load(struct sp_fleet_db *db, struct sp_profile **ret,
		  struct sp_fleet_part **ret_parts, struct sp_error *err)
{
	struct loader l = {.db = db, .err = err};
	int r;

	l.p = calloc(1, sizeof(*l.p));
	if (!l.p)
		return sp_error_set(err, -ENOMEM, db->path,
				    "not enough memory");
	r = load_processes(&l);
	if (r >= 0)
		r = load_facts(&l);
	if (r >= 0)
		r = sp_fleet_code_load(&l.code, db, l.p, err);
	for (size_t i = 0; i < l.p->n_parts && r >= 0; i++)
		r = load_part(&l, i);
	if (r >= 0)
		r = name_profile(&l);
	sp_fleet_code_done(&l.code);
	if (r < 0) {
		sp_profile_free(l.p);
		free(l.parts);
		return r;
	}
	*ret = l.p;
	*ret_parts = l.parts;
	return 0;
}
