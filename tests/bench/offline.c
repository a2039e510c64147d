/* SPDX-License-Identifier: MIT */
/*
 * A long recording made from a short one: its call stacks, sizes and lifetimes
 * again and again, until there are as many samples as wanted.  Each round
 * follows the last in time; what was alive at the end of a round is freed at
 * the beginning of the next, so that the live heap does not grow with the
 * rounds.  The same events also as a file for heaptrack_print.  Or, with an id,
 * the recording of another process that did the same.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "format/encode.h"
#include "model/profile.h"
#include "read/load.h"

/* Another process began up to a day earlier. */
#define DAY_NS 86400000000000u

struct event {
	uint64_t time_ns;
	uint32_t sample; /* its position */
	bool is_birth;
};

/* A thread's chunk, and the file that it goes to. */
struct lane {
	struct sp_chunk_state state;
	uint64_t index;
	size_t used; /* 0: there is none yet */
	uint8_t chunk[SP_FORMAT_CHUNK_BYTES];
};

struct maker {
	const struct sp_profile *p;
	struct event *events; /* of one round */
	size_t n_events;
	struct lane *lanes; /* by position of the thread, the last: no thread */
	FILE *out;
	FILE *heaptrack;   /* NULL: not wanted */
	const char *group; /* a label, or NULL */
	uint32_t *rows;    /* for heaptrack: by sample, its stack and size */
	uint64_t file_id;
	uint64_t n_chunks;
	uint64_t rounds;
};

static void die(const char *what)
{
	fprintf(stderr, "bench_offline: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void write_at(FILE *out, uint64_t offset, const void *data, size_t n)
{
	if (fseeko(out, (off_t)offset, SEEK_SET) != 0 ||
	    fwrite(data, 1, n, out) != n)
		die("write");
}

/* ---- chunks ---- */

static void flush(struct maker *m, struct lane *lane)
{
	if (lane->used)
		write_at(m->out, lane->index * SP_FORMAT_CHUNK_BYTES,
			 lane->chunk, SP_FORMAT_CHUNK_BYTES);
	lane->used = 0;
}

static void begin(struct maker *m, struct lane *lane)
{
	struct sp_chunk_header h = {.magic = SP_FORMAT_CHUNK_MAGIC,
				    .kind = SP_CHUNK_RECORDS,
				    .index = m->n_chunks++};

	flush(m, lane);
	lane->index = h.index;
	h.check = sp_format_check(m->file_id, SP_CHECK_CHUNK, &h, sizeof(h));
	memset(lane->chunk, 0, sizeof(lane->chunk));
	memcpy(lane->chunk, &h, sizeof(h));
	lane->used = sizeof(h);
	sp_chunk_state_init(&lane->state, m->file_id, h.index);
	lane->state.has_stack_steps = true;
}

static void put(struct maker *m, struct lane *lane,
		const struct sp_record *record)
{
	for (;;) {
		uint8_t *at = lane->chunk + lane->used;
		struct sp_encoded e = {0};

		if (lane->used)
			e = sp_encode(&lane->state, at,
				      sizeof(lane->chunk) - lane->used - 1,
				      record);
		if (e.bytes) {
			*at = e.type;
			lane->used += e.bytes;
			return;
		}
		begin(m, lane);
	}
}

/* ---- what does not repeat ---- */

static void put_code(struct maker *m, struct lane *lane)
{
	static struct sp_record_frame frames[SP_FORMAT_FRAMES_MAX];

	for (size_t i = 0; i < m->p->n_modules; i++) {
		const struct sp_module *x = &m->p->modules[i];

		put(m, lane,
		    &(struct sp_record){
			    .type = SP_RECORD_MODULE,
			    .u.module = {.id = x->id,
					 .start_pc = x->start_pc,
					 .end_pc = x->end_pc,
					 .bias = x->bias,
					 .flags = x->is_main ? SP_MODULE_MAIN
							     : 0,
					 .build_id = x->build_id,
					 .build_id_bytes = x->build_id_len,
					 .path = x->path,
					 .path_bytes = strlen(x->path)}});
	}
	for (size_t i = 0; i < m->p->n_stacks; i++) {
		const struct sp_stack *s = &m->p->stacks[i];

		if (!s->id)
			continue;
		for (uint32_t k = 0; k < s->n_frames; k++)
			frames[k] = (struct sp_record_frame){
				.module = s->frames[k].module,
				.offset = s->frames[k].offset};
		put(m, lane,
		    &(struct sp_record){.type = SP_RECORD_STACK,
					.u.stack = {.id = s->id,
						    .flags = s->flags,
						    .frames = frames,
						    .n_frames = s->n_frames}});
	}
}

static void put_facts(struct maker *m, struct lane *lane)
{
	const struct sp_profile *p = m->p;

	for (size_t i = 0; i < p->n_infos; i++)
		put(m, lane,
		    &(struct sp_record){.type = SP_RECORD_INFO,
					.u.info = {p->infos[i].key,
						   strlen(p->infos[i].key),
						   p->infos[i].value,
						   strlen(p->infos[i].value)}});
	if (m->group) {
		put(m, lane,
		    &(struct sp_record){.type = SP_RECORD_INFO,
					.u.info = {"label.group", 11, m->group,
						   strlen(m->group)}});
	}
	for (size_t i = 0; i < p->n_thread_infos; i++) {
		const struct sp_thread_info *t = &p->thread_infos[i];

		put(m, lane,
		    &(struct sp_record){
			    .type = SP_RECORD_THREAD,
			    .u.thread = {.index = t->index,
					 .tid = t->tid,
					 .name = t->name,
					 .name_bytes = strlen(t->name)}});
	}
}

/* Chunk 0 of the short recording, with totals that fit the long one. */
static void put_head(struct maker *m, const char *path)
{
	static uint8_t chunk[SP_FORMAT_CHUNK_BYTES];
	struct sp_file_header h;
	struct sp_status s = {.seq = 2, .end_kind = SP_END_CLEAN};
	struct sp_slot_copy slot = {.seq = 2};
	FILE *from = fopen(path, "rb");

	if (!from || fread(&h, sizeof(h), 1, from) != 1)
		die(path);
	fclose(from);
	h.flags |= SP_HEADER_STACK_STEPS;
	/* Frees know their samples here. */
	h.flags &= ~SP_HEADER_ADDRESSES;
	if (h.file_id != m->file_id)
		h.start_unix_ns -= m->file_id % DAY_NS;
	h.file_id = m->file_id;
	h.max_file_bytes = m->n_chunks * SP_FORMAT_CHUNK_BYTES;
	h.check = sp_format_check(h.file_id, SP_CHECK_HEADER, &h, sizeof(h));
	memcpy(chunk, &h, sizeof(h));
	s.time_ns = m->rounds * (m->p->duration_ns + 1);
	s.chunks = m->n_chunks;
	s.threads = m->p->threads;
	s.check = sp_format_check(h.file_id, SP_CHECK_STATUS, &s, sizeof(s));
	memcpy(chunk + SP_FORMAT_STATUS_OFFSET, &s, sizeof(s));
	slot.alloc_bytes = m->rounds * m->p->exact_alloc_bytes;
	slot.alloc_objects = m->rounds * m->p->exact_alloc_objects;
	slot.check =
		sp_format_check(h.file_id, SP_CHECK_SLOT, &slot, sizeof(slot));
	memcpy(chunk + SP_FORMAT_SLOTS_OFFSET, &slot, sizeof(slot));
	write_at(m->out, 0, chunk, sizeof(chunk));
}

/* ---- what does ---- */

/* The birth of an object that lived no time comes first. */
SP_ORDER(compare_events, struct event,
	 SP_UP(time_ns) || SP_UP(sample) || SP_DOWN(is_birth));

static void make_events(struct maker *m)
{
	const struct sp_profile *p = m->p;

	m->events = malloc((2 * p->n_samples + 1) * sizeof(*m->events));
	if (!m->events)
		die("events");
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sp_sample *s = &p->samples[i];
		const uint64_t end =
			s->freed_ns == SP_NEVER ? p->duration_ns : s->freed_ns;

		m->events[m->n_events++] =
			(struct event){s->born_ns, (uint32_t)i, true};
		m->events[m->n_events++] =
			(struct event){end, (uint32_t)i, false};
	}
	qsort(m->events, m->n_events, sizeof(*m->events), compare_events);
}

static void put_event(struct maker *m, const struct event *e, uint64_t round,
		      bool is_last)
{
	const struct sp_sample *s = &m->p->samples[e->sample];
	const uint64_t id = round * m->p->n_samples + e->sample + 1;
	const uint64_t time = round * (m->p->duration_ns + 1) + e->time_ns;
	const uint32_t by = e->is_birth ? s->thread : s->freed_by;
	const size_t lane = by == UINT32_MAX ? m->p->n_thread_infos : by;
	const uint64_t thread =
		by == UINT32_MAX ? 0 : m->p->thread_infos[by].index;
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	if (!e->is_birth && is_last && s->freed_ns == SP_NEVER)
		return;
	if (e->is_birth) {
		r.u.sample = (struct sp_record_sample){
			.id = id,
			.time_ns = time,
			.address = 0x5555000000 + 64 * (uint64_t)e->sample,
			.size_bytes = s->size_bytes,
			.offset_bytes = s->offset_bytes,
			.period_bytes = s->period_bytes,
			.stack = m->p->stacks[s->stack].id,
			.thread = thread,
			.entry = s->entry};
	} else {
		r.type = SP_RECORD_FREE;
		r.u.free = (struct sp_record_free){.id = id,
						   .time_ns = time,
						   .thread = thread,
						   .has_age = s->age_bytes !=
							      SP_UNKNOWN,
						   .age_bytes = s->age_bytes};
	}
	put(m, &m->lanes[lane], &r);
	if (m->heaptrack)
		fprintf(m->heaptrack, "%c %" PRIx32 "\n",
			e->is_birth ? '+' : '-', m->rows[e->sample]);
}

/* ---- heaptrack's text, as heaptrack_interpret writes it ---- */

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct sp_sample *samples = arg;
	const struct sp_sample *x = &samples[*(const uint32_t *)a];
	const struct sp_sample *y = &samples[*(const uint32_t *)b];

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return (x->size_bytes > y->size_bytes) -
	       (x->size_bytes < y->size_bytes);
}

/* A path of its own for each stack, with a function for each frame. */
static uint32_t *put_traces(struct maker *m)
{
	const struct sp_profile *p = m->p;
	uint32_t *last = calloc(p->n_stacks + 1, sizeof(*last));
	uint32_t traces = 0, names = 1;

	fprintf(m->heaptrack, "v 10400 2\nX bench\nI 1000 100000\ns bench\n");
	for (size_t i = 0; last && i < p->n_stacks; i++) {
		for (uint32_t k = p->stacks[i].n_frames; k-- > 0;) {
			const struct sp_frame *f = &p->stacks[i].frames[k];
			const bool is_first = k + 1 == p->stacks[i].n_frames;

			fprintf(m->heaptrack,
				"s f%" PRIx32 "_%" PRIx64 "\ni %" PRIx64
				" 1 %" PRIx32 "\nt %" PRIx32 " %" PRIx32 "\n",
				f->module, f->offset,
				f->offset + ((uint64_t)f->module << 32),
				names + 1, traces + 1, is_first ? 0 : last[i]);
			names++;
			last[i] = ++traces;
		}
	}
	return last;
}

static void put_rows(struct maker *m)
{
	const struct sp_profile *p = m->p;
	uint32_t *order = malloc((p->n_samples + 1) * sizeof(*order));
	uint32_t *traces = put_traces(m), n = 0;

	m->rows = malloc((p->n_samples + 1) * sizeof(*m->rows));
	if (!order || !traces || !m->rows)
		die("rows");
	for (size_t i = 0; i < p->n_samples; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, p->n_samples, sizeof(*order), compare_rows, p->samples);
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sp_sample *s = &p->samples[order[i]];

		if (!i ||
		    compare_rows(&order[i - 1], &order[i], p->samples) != 0) {
			fprintf(m->heaptrack, "a %" PRIx64 " %" PRIx32 "\n",
				s->size_bytes, traces[s->stack]);
			n++;
		}
		m->rows[order[i]] = n - 1;
	}
	free(order);
	free(traces);
}

int main(int argc, char **argv)
{
	struct maker m = {.n_chunks = 1};
	struct sp_profile *p;
	struct sp_error err;
	uint64_t wanted;
	const bool has_id = argc >= 5 && strncmp(argv[4], "--id=", 5) == 0;

	if (argc < 4 || argc > 6) {
		fprintf(stderr, "usage: bench_offline PROFILE SAMPLES OUT "
				"[HEAPTRACK_OUT | --id=N [GROUP]]\n");
		return 2;
	}
	if (sp_profile_load(argv[1], NULL, NULL, &p, &err) < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], err.message);
		return 1;
	}
	wanted = strtoull(argv[2], NULL, 10);
	if (!p->n_samples || !wanted) {
		fprintf(stderr, "bench_offline: no samples\n");
		return 1;
	}
	m.p = p;
	m.file_id = has_id ? strtoull(argv[4] + 5, NULL, 10) : p->file_id;
	m.group = has_id ? argv[5] : NULL;
	m.rounds = (wanted + p->n_samples - 1) / p->n_samples;
	m.lanes = calloc(p->n_thread_infos + 1, sizeof(*m.lanes));
	m.out = fopen(argv[3], "wb");
	m.heaptrack = argc == 5 && !has_id ? fopen(argv[4], "w") : NULL;
	if (!m.out || !m.lanes || (argc == 5 && !has_id && !m.heaptrack))
		die(argv[3]);
	if (m.heaptrack)
		put_rows(&m);
	make_events(&m);
	put_facts(&m, &m.lanes[0]);
	put_code(&m, &m.lanes[0]);
	for (uint64_t round = 0; round < m.rounds; round++)
		for (size_t i = 0; i < m.n_events; i++)
			put_event(&m, &m.events[i], round,
				  round + 1 == m.rounds);
	for (size_t i = 0; i <= p->n_thread_infos; i++)
		flush(&m, &m.lanes[i]);
	put_head(&m, argv[1]);
	if (fclose(m.out) != 0 || (m.heaptrack && fclose(m.heaptrack) != 0))
		die(argv[3]);
	printf("%" PRIu64 " %zu\n", m.rounds * p->n_samples, p->n_stacks);
	free(m.lanes);
	free(m.events);
	free(m.rows);
	sp_profile_free(p);
	return 0;
}
