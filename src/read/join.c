/* SPDX-License-Identifier: MIT */
#include "read/join.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/saturate.h"
#include "model/whole.h"

/* ---- one file ---- */

/* The frame of a file in the profile's terms. */
static struct sp_frame map_frame(const struct sp_profile *file,
				 const uint32_t *module_ids,
				 struct sp_frame frame)
{
	const struct sp_module *m = sp_profile_module(file, frame.module);

	if (frame.module)
		frame.module = m ? module_ids[m - file->modules]
				 : SP_CODEMAP_NO_MODULE;
	return frame;
}

/* Addresses outside of modules are another function in another process. */
static int add_stored(struct sp_join *j, const struct sp_profile *file,
		      const uint32_t *module_ids)
{
	for (size_t i = 0; i < file->n_embedded; i++) {
		const struct sp_embedded_frame *s = &file->embedded[i];

		if (s->frame.module &&
		    sp_embedded_copy(&j->stored, &j->p->storage,
				     map_frame(file, module_ids, s->frame), s))
			return -ENOMEM;
	}
	sp_embedded_forget_pointers(&j->stored);
	return 0;
}

/* ret[i] is the position of file->stacks[i] in the profile. */
static int add_stacks(struct sp_join *j, const struct sp_profile *file,
		      const uint32_t *module_ids, uint32_t *ret)
{
	for (size_t i = 0; i < file->n_stacks; i++) {
		const struct sp_stack *s = &file->stacks[i];
		int r;

		for (uint32_t k = 0; k < s->n_frames; k++)
			s->frames[k] =
				map_frame(file, module_ids, s->frames[k]);
		r = sp_codemap_add_stack(&j->code, s, &ret[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Of modules, stacks and their symbols; *ret_stacks is the profile's. */
static int add_code(struct sp_join *j, const struct sp_profile *file,
		    uint32_t **ret_stacks)
{
	uint32_t *modules = calloc(file->n_modules + 1, sizeof(*modules));
	uint32_t *stacks = sp_blocks_get(
		&j->p->storage, (file->n_stacks + 1) * sizeof(*stacks));
	int r = modules && stacks ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < file->n_modules; i++)
		r = sp_codemap_add_module(&j->code, &file->modules[i],
					  &modules[i]);
	if (!r)
		r = add_stacks(j, file, modules, stacks);
	if (!r)
		r = add_stored(j, file, modules);
	free(modules);
	*ret_stacks = stacks;
	return r;
}

/* n items behind the *n_items of that kind that are there.  0 or -ENOMEM. */
static int append_items(struct sp_join *j, size_t i, enum sp_join_kind kind,
			void **items, size_t *n_items, const void *more,
			size_t n, size_t item_bytes)
{
	j->files[i].spans[kind] = (struct sp_join_span){*n_items, n};
	if (n > UINT32_MAX - *n_items)
		return -ENOMEM;
	while (j->room[kind] < *n_items + n)
		if (sp_array_reserve(items, &j->room[kind], j->room[kind],
				     item_bytes))
			return -ENOMEM;
	if (n)
		memcpy((char *)*items + *n_items * item_bytes, more,
		       n * item_bytes);
	*n_items += n;
	return 0;
}

#define APPEND(j, i, kind, field, file)                                        \
	append_items(j, i, kind, (void **)&(j)->p->field, &(j)->p->n_##field,  \
		     (file)->field, (file)->n_##field, sizeof(*(file)->field))

static int add_groups(struct sp_join *j, const struct sp_profile *file)
{
	struct sp_profile *p = j->p;

	for (size_t i = 0; i < file->n_groups; i++) {
		if (sp_array_reserve((void **)&p->groups, &j->groups_room,
				     p->n_groups, sizeof(*p->groups)))
			return -ENOMEM;
		p->groups[p->n_groups++] = file->groups[i];
	}
	p->n_grouped += file->n_grouped;
	return 0;
}

/* Ids and threads stay those of the file until all files are there. */
static int add_samples(struct sp_join *j, size_t i, struct sp_profile *file,
		       const uint32_t *stacks)
{
	for (size_t k = 0; k < file->n_samples; k++)
		file->samples[k].stack = stacks[file->samples[k].stack];
	for (size_t k = 0; k < file->n_groups; k++) {
		struct sp_sample *one = &file->groups[k].one;

		one->part = (uint16_t)i;
		one->stack = stacks[one->stack];
		/* The first stretch of the file begins then. */
		sp_raise(&one->born_ns, file->parts->start_ns);
		sp_raise(&one->freed_ns, one->born_ns);
	}
	if (APPEND(j, i, SP_JOIN_SAMPLES, samples, file) < 0)
		return -ENOMEM;
	free(file->samples);
	file->samples = NULL;
	file->n_samples = 0;
	return add_groups(j, file);
}

static int add_rss(struct sp_join *j, size_t i, const struct sp_profile *file)
{
	const char *setting = sp_profile_info(file, "setting.rss");

	/* A process that was short may have recorded none. */
	j->files[i].may_have_rss =
		file->n_rss || (setting && strcmp(setting, "off") != 0);
	return APPEND(j, i, SP_JOIN_RSS, rss, file);
}

static int copy_text(struct sp_profile *p, const char **text)
{
	*text = sp_blocks_text(&p->storage, *text, strlen(*text));
	return *text ? 0 : -ENOMEM;
}

/* Each file has a stretch at least. */
static int add_stretches(struct sp_join *j, size_t i,
			 const struct sp_profile *file)
{
	const uint64_t by_ns = file->parts->start_ns;
	struct sp_stretch whole = {
		.to_ns = SP_NEVER,
		.phase = "",
		.period_bytes = file->period_bytes,
		.alloc_bytes = file->exact_alloc_bytes,
		.alloc_objects = file->exact_alloc_objects,
	};
	const struct sp_profile only = {.stretches = &whole, .n_stretches = 1};
	struct sp_profile *p = j->p;
	const size_t at = p->n_stretches;
	int r = APPEND(j, i, SP_JOIN_STRETCHES, stretches,
		       file->n_stretches ? file : &only);

	for (size_t k = at; !r && k < p->n_stretches; k++) {
		struct sp_stretch *s = &p->stretches[k];

		s->part = (uint16_t)i;
		s->from_ns = sp_join_time(s->from_ns, by_ns);
		s->asked_ns = sp_join_time(s->asked_ns, by_ns);
		if (s->to_ns != SP_NEVER)
			s->to_ns = sp_join_time(s->to_ns, by_ns);
		r = copy_text(p, &s->phase);
	}
	return r;
}

static int add_snapshots(struct sp_join *j, size_t i,
			 const struct sp_profile *file)
{
	const uint64_t by_ns = file->parts->start_ns;
	struct sp_profile *p = j->p;
	const size_t at = p->n_snapshots;
	int r = APPEND(j, i, SP_JOIN_SNAPSHOTS, snapshots, file);

	for (size_t k = at; !r && k < p->n_snapshots; k++) {
		struct sp_snapshot *s = &p->snapshots[k];

		s->part = (uint16_t)i;
		s->time_ns = sp_join_time(s->time_ns, by_ns);
		s->asked_ns = sp_join_time(s->asked_ns, by_ns);
		r = copy_text(p, &s->name);
	}
	return r;
}

static void add_mapped(struct sp_mapped *sum, const struct sp_mapped *m)
{
	sum->is_known |= m->is_known;
	sp_sat_add(&sum->bytes, m->bytes);
	sp_sat_add(&sum->live, m->live);
	sp_sat_add(&sum->made, m->made);
	sp_sat_add(&sum->made_bytes, m->made_bytes);
	sp_sat_add(&sum->reserved_bytes, m->reserved_bytes);
}

/* Until when all are known. */
static void add_whole(struct sp_profile *p, const struct sp_profile *file)
{
	const uint64_t by_ns = file->parts->start_ns;
	const struct sp_whole w = sp_whole_of(file);
	const uint64_t full_ns =
		w.is_full ? sp_join_time(file->full_ns, by_ns) : 0;
	const uint64_t known_ns =
		w.known_ns ? sp_join_time(w.known_ns, by_ns) : 0;

	if (full_ns && (!p->full_ns || full_ns < p->full_ns))
		p->full_ns = full_ns;
	if (!w.is_damaged)
		return;
	if ((!p->is_cut && !p->damaged_records && !p->ignored_bytes) ||
	    known_ns < p->known_ns)
		p->known_ns = known_ns;
	p->is_cut |= w.is_cut;
}

static void add_totals(struct sp_join *j, size_t i,
		       const struct sp_profile *file)
{
	struct sp_profile *p = j->p;

	sp_raise(&p->period_bytes, file->period_bytes);
	sp_raise(&p->check_in_bytes, file->check_in_bytes);
	sp_raise(&p->max_file_bytes, file->max_file_bytes);
	sp_raise(&p->time_error_ns, file->time_error_ns);
	sp_sat_add(&p->exact_alloc_bytes, file->exact_alloc_bytes);
	add_mapped(&p->mapped, &file->mapped);
	sp_sat_add(&p->exact_alloc_objects, file->exact_alloc_objects);
	sp_sat_add(&p->missing_bytes_max, file->missing_bytes_max);
	p->has_unseen |= file->has_unseen;
	if (!p->brought)
		p->brought = file->brought;
	add_whole(p, file);
	sp_sat_add(&p->unsampled_bytes, file->unsampled_bytes);
	sp_sat_add(&p->unsampled_objects, file->unsampled_objects);
	sp_sat_add(&p->discarded_bytes, file->discarded_bytes);
	sp_sat_add(&p->discarded_objects, file->discarded_objects);
	sp_sat_add(&p->threads, file->threads);
	sp_sat_add(&p->class_slack_bytes, file->class_slack_bytes);
	sp_sat_add(&p->unmatched_frees, file->unmatched_frees);
	sp_sat_add(&p->damaged_records, file->damaged_records);
	sp_sat_add(&p->ignored_bytes, file->ignored_bytes);
	sp_sat_add(&p->unfinished_records, file->unfinished_records);
	for (unsigned int k = 0; k < SP_LOSS_COUNT; k++)
		sp_sat_add(&p->losses[k], file->losses[k]);
	for (unsigned int k = 0; k < SP_FORMAT_CLASSES; k++) {
		sp_sat_add(&p->classes[k].bytes, file->classes[k].bytes);
		sp_sat_add(&p->classes[k].objects, file->classes[k].objects);
	}
	p->has_classes &= file->has_classes;
	p->has_no_code |= file->has_no_code;
	p->is_unordered |= file->is_unordered;
	p->seed ^= file->seed;
	if (!file->damage[0] || i > j->damaged)
		return;
	j->damaged = i;
	snprintf(p->damage, sizeof(p->damage), "%.100s: %.140s", file->path,
		 file->damage);
}

/* The facts that all files agree on. */
static int keep_common_infos(struct sp_join *j, const struct sp_profile *file)
{
	struct sp_profile *p = j->p;
	size_t kept = 0;

	if (!j->n_added) {
		p->infos = calloc(file->n_infos + 1, sizeof(*p->infos));
		if (!p->infos)
			return -ENOMEM;
		for (; p->n_infos < file->n_infos; p->n_infos++) {
			struct sp_info *to = &p->infos[p->n_infos];

			*to = file->infos[p->n_infos];
			if (copy_text(p, &to->key) || copy_text(p, &to->value))
				return -ENOMEM;
		}
		return 0;
	}
	for (size_t i = 0; i < p->n_infos; i++) {
		const char *value = sp_profile_info(file, p->infos[i].key);

		if (value && strcmp(value, p->infos[i].value) == 0)
			p->infos[kept++] = p->infos[i];
	}
	p->n_infos = kept;
	return 0;
}

static int add_part(struct sp_profile *p, size_t i,
		    const struct sp_profile *file, const uint32_t *stacks)
{
	const struct sp_whole whole = sp_whole_of(file);
	struct sp_part *part = &p->parts[i];

	*part = *file->parts;
	part->window_ns = sp_join_time(part->window_ns, part->start_ns);
	/* One file alone is known until then (model/whole.h). */
	if (p->n_parts > 1 && whole.known_ns != SP_NEVER)
		part->lost_ns = whole.known_ns ? sp_join_time(whole.known_ns,
							      part->start_ns) +
							 1
					       : 1;
	part->stacks = stacks;
	return copy_text(p, &part->path) || copy_text(p, &part->program) ||
			       copy_text(p, &part->command)
		       ? -ENOMEM
		       : 0;
}

int sp_join_add(struct sp_join *j, size_t i, struct sp_profile *file,
		uint64_t last_id)
{
	uint32_t *stacks;
	int r = add_code(j, file, &stacks);

	j->files[i].last_id = last_id;
	if (!r)
		r = add_samples(j, i, file, stacks);
	if (!r)
		r = APPEND(j, i, SP_JOIN_THREADS, thread_infos, file);
	if (!r)
		r = add_rss(j, i, file);
	if (!r)
		r = add_stretches(j, i, file);
	if (!r)
		r = add_snapshots(j, i, file);
	if (!r)
		r = keep_common_infos(j, file);
	if (!r)
		r = add_part(j->p, i, file, stacks);
	if (r < 0)
		return r;
	if (!i)
		j->p->format_version = file->format_version;
	add_totals(j, i, file);
	j->n_added++;
	return 0;
}

/* ---- when all are there ---- */

/* Files were added as they ended: their items in the order of the files.  0 or
 * -ENOMEM. */
static int put_in_order(struct sp_join *j, enum sp_join_kind kind, void **items,
			size_t n_items, size_t item_bytes)
{
	size_t at = 0;
	char *ordered;

	for (size_t i = 0; i < j->p->n_parts; i++) {
		const struct sp_join_span *s = &j->files[i].spans[kind];

		if (s->n && s->at != at)
			break;
		at += s->n;
	}
	if (at == n_items)
		return 0;
	ordered = calloc(n_items, item_bytes);
	if (!ordered)
		return -ENOMEM;
	at = 0;
	for (size_t i = 0; i < j->p->n_parts; i++) {
		struct sp_join_span *s = &j->files[i].spans[kind];

		if (s->n)
			memcpy(ordered + at * item_bytes,
			       (char *)*items + s->at * item_bytes,
			       s->n * item_bytes);
		s->at = at;
		at += s->n;
	}
	free(*items);
	*items = ordered;
	return 0;
}

#define PUT_IN_ORDER(j, kind, field)                                           \
	put_in_order(j, kind, (void **)&(j)->p->field, (j)->p->n_##field,      \
		     sizeof(*(j)->p->field))

static int put_all_in_order(struct sp_join *j)
{
	return PUT_IN_ORDER(j, SP_JOIN_THREADS, thread_infos) ||
			       PUT_IN_ORDER(j, SP_JOIN_SAMPLES, samples) ||
			       PUT_IN_ORDER(j, SP_JOIN_STRETCHES, stretches) ||
			       PUT_IN_ORDER(j, SP_JOIN_SNAPSHOTS, snapshots) ||
			       PUT_IN_ORDER(j, SP_JOIN_RSS, rss)
		       ? -ENOMEM
		       : 0;
}

static void shift_threads(const struct sp_profile *p, struct sp_sample *s)
{
	const struct sp_part *part = &p->parts[s->part];

	if (s->thread != UINT32_MAX)
		s->thread += part->first_thread;
	if (s->freed_by != UINT32_MAX)
		s->freed_by += part->first_thread;
}

/* Everything gets the number that it has in the profile. */
static void number_all(struct sp_join *j)
{
	struct sp_profile *p = j->p;
	uint64_t first_id = 0;

	for (size_t i = 0; i < p->n_parts; i++) {
		p->parts[i].first_id = first_id;
		p->parts[i].first_thread =
			(uint32_t)j->files[i].spans[SP_JOIN_THREADS].at;
		first_id += j->files[i].last_id;
	}
	for (size_t i = 0; i < p->n_samples; i++) {
		shift_threads(p, &p->samples[i]);
		p->samples[i].id += p->parts[p->samples[i].part].first_id;
	}
	for (size_t i = 0; i < p->n_groups; i++)
		shift_threads(p, &p->groups[i].one);
	for (size_t i = 0; i < p->n_thread_infos; i++)
		p->thread_infos[i].index = (uint32_t)i + 1;
}

static void set_ends(struct sp_profile *p)
{
	for (size_t i = 0; i < p->n_parts; i++) {
		const struct sp_part *part = &p->parts[i];

		sp_raise(&p->duration_ns, part->stop_ns);
		if (part->end == SP_PROFILE_END_RUNNING ||
		    p->end == SP_PROFILE_END_CLEAN)
			p->end = part->end;
	}
	for (size_t i = 0; i < p->n_parts; i++)
		if (p->parts[i].end == SP_PROFILE_END_RUNNING ||
		    p->parts[i].stop_ns == p->duration_ns)
			p->parts[i].stop_ns = SP_NEVER;
}

/* No phase and no change of the sampling was recorded. */
static bool has_no_marks(const struct sp_profile *p)
{
	for (size_t i = 0; i < p->n_stretches; i++)
		if (p->stretches[i].to_ns != SP_NEVER ||
		    !p->stretches[i].period_bytes)
			return false;
	return true;
}

/* "3 profiles: app -x; app -y": of equal neighbours the first. */
static char *join_commands(struct sp_profile *p)
{
	const char *last = NULL;
	size_t room = 64, n;
	char *text;

	for (size_t i = 0; i < p->n_parts; i++)
		room += strlen(p->parts[i].command) + 2;
	text = sp_blocks_get(&p->storage, room);
	if (!text)
		return NULL;
	n = (size_t)snprintf(text, room, "%zu profiles: ", p->n_parts);
	for (size_t i = 0; i < p->n_parts; i++) {
		const char *command = p->parts[i].command;

		if (last && strcmp(last, command) == 0)
			continue;
		n += (size_t)snprintf(text + n, room - n, "%s%s",
				      last ? "; " : "", command);
		last = command;
	}
	return text;
}

static const char *name_program(const struct sp_profile *p)
{
	for (size_t i = 1; i < p->n_parts; i++)
		if (strcmp(p->parts[i].program, p->parts[0].program) != 0)
			return "(several programs)";
	return p->parts[0].program;
}

static const char *name_files(struct sp_profile *p)
{
	const char *first = p->parts[0].path;
	const size_t room = strlen(first) + 64;
	char *text = sp_blocks_get(&p->storage, room);

	if (text)
		snprintf(text, room, "%s and %zu more", first, p->n_parts - 1);
	return text;
}

int sp_join_finish(struct sp_join *j)
{
	struct sp_profile *p = j->p;
	int r = put_all_in_order(j);

	if (r < 0)
		return r;
	number_all(j);
	set_ends(p);
	if (has_no_marks(p))
		p->n_stretches = 0;
	sp_embedded_finish(&j->stored, p);
	r = sp_join_sum_rss(j);
	if (!r)
		r = sp_codemap_spread(&j->code);
	if (r < 0)
		return r;
	if (!p->has_classes) {
		memset(p->classes, 0, sizeof(p->classes));
		p->class_slack_bytes = 0;
	}
	p->pid = p->parts[0].pid;
	p->program = name_program(p);
	p->command = join_commands(p);
	p->host = sp_profile_info(p, "host");
	if (!p->host)
		p->host = "several hosts";
	p->path = name_files(p);
	return p->command && p->path ? 0 : -ENOMEM;
}

int sp_join_init(struct sp_join *j, struct sp_profile *p, size_t n)
{
	*j = (struct sp_join){
		.p = p,
		.files = calloc(n, sizeof(*j->files)),
		.damaged = n,
	};
	p->has_classes = true;
	sp_codemap_init(&j->code, p);
	return j->files ? 0 : -ENOMEM;
}

void sp_join_done(struct sp_join *j)
{
	sp_codemap_done(&j->code);
	sp_embedded_done(&j->stored);
	free(j->files);
}
