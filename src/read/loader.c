/* SPDX-License-Identifier: MIT */
/*
 * From records to one profile in memory.  Records of a chunk may refer to a
 * stack or thread that another chunk introduces, earlier or later in the file,
 * so both are made on first mention and filled in when their record comes.
 */
#include "read/loader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/index.h"
#include "base/order.h"
#include "base/saturate.h"
#include "model/command.h"
#include "model/whole.h"
#include "read/totals.h"

static struct sp_stack *get_stack(struct sp_loader *l, uint32_t id)
{
	struct sp_profile *p = l->p;
	uint32_t i = sp_idmap_find(&l->stacks, id);
	struct sp_stack *s;

	if (i != UINT32_MAX)
		return &p->stacks[i];
	if (sp_array_reserve((void **)&p->stacks, &l->stacks_room, p->n_stacks,
			     sizeof(*s)) ||
	    sp_idmap_add(&l->stacks, id, (uint32_t)p->n_stacks))
		return NULL;
	s = &p->stacks[p->n_stacks++];
	memset(s, 0, sizeof(*s));
	s->id = id;
	return s;
}

static struct sp_thread_info *get_thread(struct sp_loader *l, uint32_t index)
{
	struct sp_profile *p = l->p;
	uint32_t i = sp_idmap_find(&l->threads, index);
	struct sp_thread_info *t;

	if (i != UINT32_MAX)
		return &p->thread_infos[i];
	if (sp_array_reserve((void **)&p->thread_infos, &l->threads_room,
			     p->n_thread_infos, sizeof(*t)) ||
	    sp_idmap_add(&l->threads, index, (uint32_t)p->n_thread_infos))
		return NULL;
	t = &p->thread_infos[p->n_thread_infos++];
	memset(t, 0, sizeof(*t));
	t->index = index;
	return t;
}

/* The name that a thread had last: records of different chunks come in any
 * order. */
static void take_name(struct sp_thread_info *t, uint64_t time_ns,
		      const char *name, size_t n)
{
	if (!n || time_ns < t->name_time_ns)
		return;
	if (n > SP_FORMAT_THREAD_NAME_MAX - 1)
		n = SP_FORMAT_THREAD_NAME_MAX - 1;
	memcpy(t->name, name, n);
	t->name[n] = '\0';
	t->name_time_ns = time_ns;
}

static int take_info(struct sp_loader *l, const struct sp_record_info *r)
{
	struct sp_profile *p = l->p;
	struct sp_info info;

	if (sp_array_reserve((void **)&p->infos, &l->infos_room, p->n_infos,
			     sizeof(info)))
		return -ENOMEM;
	info.key = sp_blocks_text(&p->storage, r->key, r->key_bytes);
	info.value = sp_blocks_text(&p->storage, r->value, r->value_bytes);
	if (!info.key || !info.value)
		return -ENOMEM;
	if (strcmp(info.key, "command") != 0) {
		if (!sp_loader_is_known_fact(l, &info))
			p->infos[p->n_infos++] = info;
	} else if (!l->command) {
		l->command = info.value;
		l->command_bytes = r->value_bytes;
	}
	return 0;
}

static int take_module(struct sp_loader *l, const struct sp_record_module *r)
{
	struct sp_profile *p = l->p;
	struct sp_module *m;
	uint32_t id = (uint32_t)r->id;

	/* Two threads may have written the same one. */
	if (sp_idmap_find(&l->modules, id) != UINT32_MAX)
		return 0;
	if (sp_array_reserve((void **)&p->modules, &l->modules_room,
			     p->n_modules, sizeof(*m)) ||
	    sp_idmap_add(&l->modules, id, (uint32_t)p->n_modules))
		return -ENOMEM;
	m = &p->modules[p->n_modules];
	memset(m, 0, sizeof(*m));
	m->id = id;
	m->start_pc = r->start_pc;
	m->end_pc = r->end_pc;
	m->bias = r->bias;
	m->is_main = r->flags & SP_MODULE_MAIN;
	m->build_id_len = (uint32_t)r->build_id_bytes;
	if (r->build_id_bytes)
		memcpy(m->build_id, r->build_id, r->build_id_bytes);
	m->path = sp_blocks_text(&p->storage, r->path, r->path_bytes);
	if (!m->path)
		return -ENOMEM;
	p->n_modules++;
	return 0;
}

static int take_stack(struct sp_loader *l, const struct sp_decoded *d)
{
	struct sp_stack *s = get_stack(l, (uint32_t)d->u.stack.id);
	uint32_t n = d->u.stack.n_frames;

	if (!s)
		return -ENOMEM;
	s->innermost = sp_decode_innermost(d);
	if (s->frames || l->p->has_no_code)
		return 0;
	s->frames = sp_blocks_get(&l->p->storage, n * sizeof(*s->frames));
	if (!s->frames)
		return -ENOMEM;
	sp_decode_frames(d, l->frames);
	for (uint32_t i = 0; i < n; i++)
		s->frames[i] = (struct sp_frame){(uint32_t)l->frames[i].module,
						 l->frames[i].offset};
	s->n_frames = n;
	s->flags = (uint32_t)d->u.stack.flags;
	return 0;
}

static int take_thread(struct sp_loader *l, const struct sp_record_thread *r)
{
	struct sp_thread_info *t = get_thread(l, (uint32_t)r->index);

	if (!t)
		return -ENOMEM;
	t->tid = r->tid;
	take_name(t, r->time_ns, r->name, r->name_bytes);
	return 0;
}

static void take_time(struct sp_loader *l, uint64_t time_ns)
{
	if (time_ns > l->last_time_ns)
		l->last_time_ns = time_ns;
}

/* Of what is born or ends; in a packed file other records come first. */
static void take_event_time(struct sp_loader *l, uint64_t time_ns)
{
	take_time(l, time_ns);
	sp_raise(&l->last_event_ns, time_ns);
}

static int take_thread_end(struct sp_loader *l,
			   const struct sp_record_thread_end *r)
{
	struct sp_thread_info *t = get_thread(l, (uint32_t)r->index);

	if (!t)
		return -ENOMEM;
	take_name(t, r->time_ns, r->name, r->name_bytes);
	t->exited = true;
	t->has_totals = true;
	t->exact_alloc_bytes = r->alloc_bytes;
	t->exact_alloc_objects = r->alloc_objects;
	take_time(l, r->time_ns);
	return 0;
}

/* The position of a thread that a record refers to by its index, UINT32_MAX if
 * it does not say which. */
static int find_thread(struct sp_loader *l, uint64_t index, uint32_t *ret)
{
	struct sp_thread_info *t;

	*ret = UINT32_MAX;
	if (!index)
		return 0;
	if (index != l->last_index) {
		t = get_thread(l, (uint32_t)index);
		if (!t)
			return -ENOMEM;
		l->last_index = index;
		l->last_thread = (uint32_t)(t - l->p->thread_infos);
	}
	*ret = l->last_thread;
	return 0;
}

static int find_stack(struct sp_loader *l, uint32_t id, uint32_t *ret)
{
	const struct sp_stack *s;

	if (!l->last_stack || id != l->last_stack_id) {
		s = get_stack(l, id);
		if (!s)
			return -ENOMEM;
		l->last_stack_id = id;
		l->last_stack = 1 + (uint32_t)(s - l->p->stacks);
	}
	*ret = l->last_stack - 1;
	return 0;
}

static int take_sample(struct sp_loader *l, const struct sp_record_sample *r)
{
	struct sp_sample sample;
	uint32_t stack;

	if (find_stack(l, (uint32_t)r->stack, &stack))
		return -ENOMEM;
	/* Nothing was discarded: the first record of it is there. */
	if (r->is_again && !l->reader->window.oldest)
		return 0;
	take_event_time(l, r->time_ns);
	sample = (struct sp_sample){
		.id = r->id,
		.born_ns = r->time_ns,
		.freed_ns = SP_NEVER,
		.size_bytes = r->size_bytes,
		.offset_bytes = r->offset_bytes,
		.period_bytes = r->period_bytes,
		.age_bytes = SP_UNKNOWN,
		.stack = stack,
		.freed_by = UINT32_MAX,
		.entry = r->entry,
	};
	if (find_thread(l, r->thread, &sample.thread))
		return -ENOMEM;
	return sp_stream_sample(l->stream, &sample, r->address);
}

static int take_free(struct sp_loader *l, const struct sp_record_free *r)
{
	struct sp_stream_free event = {
		.id = r->id,
		.time_ns = r->time_ns,
		.age_bytes = r->has_age ? r->age_bytes : SP_UNKNOWN,
		.missed = r->flags & SP_FREE_MISSED,
	};

	take_event_time(l, r->time_ns);
	return find_thread(l, r->thread, &event.thread)
		       ? -ENOMEM
		       : sp_stream_free(l->stream, &event);
}

static int take_free_address(struct sp_loader *l,
			     const struct sp_record_free_address *r)
{
	struct sp_stream_free event = {.id = r->address, .time_ns = r->time_ns};

	if (!l->p->has_addresses)
		return 0;
	take_event_time(l, r->time_ns);
	return find_thread(l, r->thread, &event.thread)
		       ? -ENOMEM
		       : sp_stream_free(l->stream, &event);
}

static int take_rss(struct sp_loader *l, const struct sp_record_rss *r)
{
	struct sp_profile *p = l->p;

	take_time(l, r->time_ns);
	if (sp_array_reserve((void **)&p->rss, &l->rss_room, p->n_rss,
			     sizeof(*p->rss)))
		return -ENOMEM;
	p->rss[p->n_rss++] = (struct sp_rss){r->time_ns, r->rss_bytes};
	return 0;
}

static int take_mark(struct sp_loader *l, const struct sp_record_mark *r)
{
	take_time(l, r->time_ns);
	return sp_stream_mark(l->stream, r->time_ns) < 0
		       ? -ENOMEM
		       : sp_marks_add(&l->marks, r);
}

static int take_map(struct sp_loader *l, const struct sp_record_map *r)
{
	struct sp_stack *s = get_stack(l, (uint32_t)r->stack);
	uint32_t thread;

	if (!s || find_thread(l, r->thread, &thread))
		return -ENOMEM;
	take_event_time(l, r->time_ns);
	return sp_mappings_add(&l->mappings, r, (uint32_t)(s - l->p->stacks),
			       thread);
}

static int take_unmap(struct sp_loader *l, const struct sp_record_unmap *r)
{
	take_event_time(l, r->time_ns);
	return sp_mappings_end(&l->mappings, r);
}

/* Of the objects: what has to do with mappings alone is not there. */
static bool is_left_out(const struct sp_loader *l, const struct sp_decoded *d)
{
	return (l->p->samples_of != SP_SAMPLES_ALLOCATED || l->no_samples) &&
	       (d->type == SP_RECORD_SAMPLE || d->type == SP_RECORD_FREE ||
		d->type == SP_RECORD_FREE_ADDRESS);
}

/* Exact totals are at least what was sampled. */
static int count_sample(struct sp_loader *l, const struct sp_record_sample *r)
{
	uint32_t thread;

	if (r->is_again)
		return 0;
	if (find_thread(l, r->thread, &thread))
		return -ENOMEM;
	sp_profile_count_samples(l->p, thread, r->size_bytes, 1);
	l->p->n_grouped++;
	return 0;
}

static int leave_out(struct sp_loader *l, const struct sp_decoded *d)
{
	const uint64_t time_ns =
		d->type == SP_RECORD_SAMPLE ? d->u.sample.time_ns
		: d->type == SP_RECORD_FREE ? d->u.free.time_ns
					    : d->u.free_address.time_ns;

	if (!l->no_samples) {
		take_time(l, time_ns);
		return 0;
	}
	take_event_time(l, time_ns);
	return d->type == SP_RECORD_SAMPLE ? count_sample(l, &d->u.sample) : 0;
}

int sp_loader_take(struct sp_loader *l, const struct sp_decoded *d)
{
	if (is_left_out(l, d))
		return leave_out(l, d);
	switch (d->type) {
	case SP_RECORD_INFO:
		return take_info(l, &d->u.info);
	case SP_RECORD_MODULE:
		return take_module(l, &d->u.module);
	case SP_RECORD_STACK:
		return take_stack(l, d);
	case SP_RECORD_THREAD:
		return take_thread(l, &d->u.thread);
	case SP_RECORD_THREAD_END:
		return take_thread_end(l, &d->u.thread_end);
	case SP_RECORD_SAMPLE:
		return take_sample(l, &d->u.sample);
	case SP_RECORD_FREE:
		return l->p->has_addresses ? 0 : take_free(l, &d->u.free);
	case SP_RECORD_FREE_ADDRESS:
		return take_free_address(l, &d->u.free_address);
	case SP_RECORD_RSS:
		return take_rss(l, &d->u.rss);
	case SP_RECORD_MARK:
		return take_mark(l, &d->u.mark);
	case SP_RECORD_ASKED:
		return sp_marks_add_asked(&l->marks, &d->u.asked);
	case SP_RECORD_MAP:
		return take_map(l, &d->u.map);
	case SP_RECORD_UNMAP:
		return take_unmap(l, &d->u.unmap);
	case SP_RECORD_NAME:
	case SP_RECORD_SYMBOL:
	case SP_RECORD_CODE:
		if (l->p->has_no_code)
			return 0;
		return sp_embedded_take(&l->stored, &l->p->storage, d);
	default:
		return 0; /* of a later minor version */
	}
}

/* Exact totals, and the threads that were alive at the last publication. */
static int take_totals(struct sp_loader *l)
{
	for (unsigned int i = 0; i < SP_FORMAT_SLOTS; i++) {
		const uint64_t index = l->reader->slots[i].thread;
		struct sp_thread_info *t = NULL;

		if (index && index <= UINT32_MAX) {
			t = get_thread(l, (uint32_t)index);
			if (!t)
				return -ENOMEM;
		}
		sp_totals_take_slot(l->p, l->reader, i, t);
	}
	sp_totals_finish(l->p, l->reader);
	return 0;
}

/* The arguments as one would type them. */
static char *join_command(struct sp_loader *l)
{
	char *out = sp_blocks_get(&l->p->storage,
				  sp_command_room(l->command_bytes));

	if (out)
		sp_command_join(l->command, l->command_bytes, out);
	return out;
}

SP_ORDER(compare_modules, struct sp_module, SP_UP(id));

SP_ORDER(compare_rss, struct sp_rss, SP_UP(time_ns));

/* The file as the only one. */
static void fill_part(struct sp_profile *p)
{
	struct sp_part *part = p->parts;

	part->path = p->path;
	part->program = p->program;
	part->command = p->command;
	part->file_id = p->file_id;
	part->pid = p->pid;
	part->period_bytes = p->period_bytes;
	part->exact_alloc_bytes = p->exact_alloc_bytes;
	part->exact_alloc_objects = p->exact_alloc_objects;
	part->missing_bytes_max = p->missing_bytes_max;
	part->has_unseen = p->has_unseen;
	part->is_cut = p->is_cut;
	part->unseen = sp_profile_unseen(p);
	part->end = p->end;
	part->stop_ns = SP_NEVER;
	part->window_ns = p->window_ns;
	part->n_threads = (uint32_t)p->n_thread_infos;
}

/*
 * Into alike[i] the stack of the smallest id that is like stack i: of the first
 * of these that at once, of the others the first until the end.  0; 1 if each
 * stack is the only one, or -ENOMEM.
 */
static int find_alike(const struct sp_profile *p, struct sp_index *index,
		      uint32_t *alike)
{
	const uint64_t key = sp_index_key(p);
	int r = 1;

	for (uint32_t i = 0; i < p->n_stacks; i++) {
		const struct sp_stack *s = &p->stacks[i];
		struct sp_index_probe probe =
			sp_index_begin(sp_stack_hash(key, s));

		alike[i] = i;
		if (!s->n_frames)
			continue;
		if (sp_index_reserve(index) < 0)
			return -ENOMEM;
		while (alike[i] == i && sp_index_next(index, &probe))
			if (sp_stack_is_same(&p->stacks[probe.position], s))
				alike[i] = probe.position;
		if (alike[i] == i) {
			sp_index_put(index, &probe, i);
			continue;
		}
		r = 0;
		if (s->id < p->stacks[alike[alike[i]]].id)
			alike[alike[i]] = i;
	}
	for (uint32_t i = 0; i < p->n_stacks; i++)
		if (alike[i] < i)
			alike[i] = alike[alike[i]];
	return r;
}

/*
 * A file has a stack once in each of its segments, each time under another id.
 * Have all samples of a stack, and all groups of samples, name the one with the
 * smallest id.  0 or -ENOMEM.
 */
static int join_stacks(struct sp_profile *p)
{
	struct sp_index index = {0};
	uint32_t *alike =
		sp_blocks_get(&p->storage, (p->n_stacks + 1) * sizeof(*alike));
	int r = alike ? find_alike(p, &index, alike) : -ENOMEM;

	sp_index_done(&index);
	if (r < 0)
		return r;
	p->parts->stacks = alike;
	p->parts->n_stacks = p->n_stacks;
	if (r)
		return 0;
	for (size_t i = 0; i < p->n_samples; i++)
		p->samples[i].stack = alike[p->samples[i].stack];
	for (size_t i = 0; i < p->n_groups; i++)
		p->groups[i].one.stack = alike[p->groups[i].one.stack];
	return 0;
}

int sp_loader_finish(struct sp_loader *l)
{
	struct sp_profile *p = l->p;
	const struct sp_reader *r = l->reader;
	int err = sp_profile_drop_infos(p);

	if (err)
		return err;
	err = sp_stream_end(l->stream);
	if (!err)
		err = join_stacks(p);
	if (!err)
		err = take_totals(l);
	if (err)
		return err;
	sp_embedded_finish(&l->stored, p);
	p->period_bytes = r->header.period_bytes;
	if (sp_marks_settle(&l->marks, &r->window, p))
		return -ENOMEM;
	if (p->samples_of != SP_SAMPLES_ALLOCATED)
		sp_loader_set_mapped_totals(l);
	if (p->n_rss)
		qsort(p->rss, p->n_rss, sizeof(p->rss[0]), compare_rss);
	sp_loader_set_end(l);
	p->duration_ns = sp_loader_duration_ns(l);
	p->threads = r->status.threads > p->n_thread_infos ? r->status.threads
							   : p->n_thread_infos;
	memcpy(p->losses, r->status.losses, sizeof(p->losses));
	sp_totals_find_unrecorded(p);
	p->unmatched_frees += r->unmatched_frees;
	if (p->n_modules)
		qsort(p->modules, p->n_modules, sizeof(p->modules[0]),
		      compare_modules);
	p->program = sp_profile_info(p, "exe");
	if (!p->program)
		p->program = "(unknown)";
	p->host = sp_profile_info(p, "host");
	if (!p->host)
		p->host = "";
	p->command = l->command ? join_command(l) : p->program;
	fill_part(p);
	return p->command ? 0 : -ENOMEM;
}

void sp_loader_begin(struct sp_loader *l, enum sp_samples_of samples_of)
{
	struct sp_profile *p = l->p;
	const struct sp_file_header *h = &l->reader->header;

	p->file_id = h->file_id;
	p->format_version = h->version;
	p->pid = h->pid;
	p->start_unix_ns = h->start_unix_ns;
	p->period_bytes = h->period_bytes;
	p->seed = h->seed;
	p->max_file_bytes = h->max_file_bytes;
	p->check_in_bytes = h->check_in_bytes;
	p->law.always_large = h->flags & SP_HEADER_ALWAYS_LARGE;
	p->law.is_dotnet = h->flags & SP_HEADER_LAW_DOTNET;
	p->has_frees = h->flags & SP_HEADER_FREES;
	p->has_addresses = p->has_frees && h->flags & SP_HEADER_ADDRESSES;
	p->samples_of = samples_of;
	if (samples_of == SP_SAMPLES_ALLOCATED)
		return;
	p->has_frees = true;
	p->has_addresses = false;
	p->period_bytes = 1;
}

void sp_loader_done(struct sp_loader *l)
{
	sp_embedded_done(&l->stored);
	sp_marks_done(&l->marks);
	sp_mappings_done(&l->mappings);
	sp_idmap_done(&l->stacks);
	sp_idmap_done(&l->threads);
	sp_idmap_done(&l->modules);
}
