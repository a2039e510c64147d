/* SPDX-License-Identifier: MIT */
#include "base/order.h"
#include "recorded_shapes.h"
#include "support/test.h"

#include "base/rng.h"
#include "support/format_model.h"

#define CHUNKS    60
#define PER_CHUNK 2000
#define THREADS   5 /* of which 0 is not known */
#define PERIOD    512
#define TICK      1000000ull

/* Every third of a second, sixty samples to the millisecond, and so on. */
const struct shape shapes[N_SHAPES] = {
	{.name = "sparse", .objects = 400, .step_ns = 300 * TICK},
	{.name = "dense", .objects = 4000, .step_ns = 16000, .tick_ns = TICK},
	{.name = "many", .objects = 40000, .step_ns = 9000, .tick_ns = TICK},
	{.name = "marks",
	 .objects = 9000,
	 .step_ns = 16000,
	 .tick_ns = TICK,
	 .has_marks = true},
	{.name = "sparse marks",
	 .objects = 300,
	 .step_ns = 300 * TICK,
	 .has_marks = true},
	{.name = "killed",
	 .objects = 4000,
	 .step_ns = 16000,
	 .tick_ns = TICK,
	 .is_killed = true},
	{.name = "window",
	 .objects = 9000,
	 .step_ns = 16000,
	 .tick_ns = TICK,
	 .has_marks = true,
	 .has_window = true},
	{.name = "unmatched",
	 .objects = 4000,
	 .step_ns = 16000,
	 .tick_ns = TICK,
	 .is_killed = true,
	 .has_unmatched = true},
	{.name = "no frees",
	 .objects = 4000,
	 .step_ns = 16000,
	 .tick_ns = TICK,
	 .has_no_frees = true},
	{.name = "nothing"},
};

const struct shape *const many_events = &shapes[2];

static struct sp_rng rng;

static uint64_t below(uint64_t n)
{
	return sp_rng_next(&rng) % n;
}

struct event {
	uint64_t time_ns, id, thread;
	bool is_free;
};

static struct event events[90000];
static size_t n_events;
static uint64_t window_ns;

SP_ORDER(compare_events, struct event,
	 SP_UP(time_ns) || SP_UP(id) || SP_UP(is_free));

/* Two frees are a nanosecond behind the window. */
static void make_window(void)
{
	size_t i = n_events / 3;

	while (!events[i + 1].is_free || !events[i + 2].is_free)
		i++;
	window_ns = events[i].time_ns;
	events[i + 1].time_ns = events[i + 2].time_ns = window_ns + 1;
	assert_true(events[i + 3].time_ns > window_ns + 2);
}

/* Where times are rounded they differ, so that the order of all is known. */
static void make_events(const struct shape *s)
{
	uint64_t now = 5;

	n_events = 0;
	for (uint64_t id = 1; id <= s->objects; id++) {
		const uint64_t life = below(4) ? below(60 * s->step_ns) : 0;

		now += below(3) * s->step_ns;
		/* Ids are not in order, and some are missing. */
		events[n_events++] = (struct event){
			now, (id ^ 1) + id / 50 * 50, below(THREADS), false};
		if (s->has_no_frees || below(9) == 0)
			continue;
		events[n_events] = events[n_events - 1];
		events[n_events].time_ns += life;
		events[n_events].thread = below(THREADS);
		events[n_events++].is_free = true;
	}
	if (s->has_unmatched)
		for (uint64_t i = 0; i < 7; i++)
			events[n_events++] = (struct event){
				1000 * i, 1000000 + i, 1 + i % 3, true};
	qsort(events, n_events, sizeof(events[0]), compare_events);
	for (size_t i = 1; i < n_events && s->tick_ns; i++)
		if (events[i].time_ns <= events[i - 1].time_ns)
			events[i].time_ns = events[i - 1].time_ns + 1;
	if (s->has_window)
		make_window();
}

static struct sp_record record_of(const struct event *e)
{
	const uint64_t size = 1 + e->id * 37 % 3000;
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	r.u.sample = (struct sp_record_sample){
		.id = e->id,
		.time_ns = e->time_ns,
		.address = e->id << 20,
		.size_bytes = size,
		.offset_bytes = e->id % 3 ? 0 : e->id % size,
		.period_bytes = e->id % 400 < 300 ? PERIOD : PERIOD / 4,
		/* Of 0 and 8 there is no STACK. */
		.stack = e->id % 9,
		.thread = e->thread,
		.entry = (uint8_t)(e->id % 14)};
	if (!e->is_free)
		return r;
	r.type = SP_RECORD_FREE;
	r.u.free = (struct sp_record_free){.id = e->id,
					   .time_ns = e->time_ns,
					   .thread = e->thread,
					   .flags = e->id % 11 ? 0
							       : SP_FREE_MISSED,
					   .has_age = e->id % 5,
					   .age_bytes = e->id % 7 * 100};
	if (!r.u.free.has_age)
		r.u.free.age_bytes = 0;
	return r;
}

static struct model_file file;
static struct model_bytes records[CHUNKS];
static struct model_chunk chunks[CHUNKS];

static void put(size_t chunk, const struct sp_record *r)
{
	model_encode(&records[chunk], &chunks[chunk], r);
}

static void put_info(const char *key, const char *value, size_t value_bytes)
{
	const struct sp_record r = {
		.type = SP_RECORD_INFO,
		.u.info = {key, strlen(key), value, value_bytes}};

	put(1, &r);
}

static void put_facts(uint64_t last_ns)
{
	const struct sp_record_frame frames[] = {
		{1, 7}, {2, 30}, {0, 1ull << 63}, {1, 99}, {2, 5}};

	put_info("exe", "/bin/true", 9);
	put_info("command", "true\0x y\0", 9);
	put_info("host", "here", 4);
	put_info("setting.x", "1", 1);
	put_info("setting.x", "2", 1);
	for (uint64_t id = 2; id > 0; id--)
		put(1,
		    &(struct sp_record){.type = SP_RECORD_MODULE,
					.u.module = {.id = id,
						     .start_pc = id << 20,
						     .end_pc = (id + 1) << 20,
						     .flags = id == 1,
						     .path = "/bin/true",
						     .path_bytes = 9}});
	for (uint64_t i = 1; i < THREADS; i++)
		put(1, &(struct sp_record){
			       .type = SP_RECORD_THREAD,
			       .u.thread = {i, 4000 + i, 50 * i, "name", 4}});
	for (uint64_t id = 7; id > 0; id--)
		put(1,
		    &(struct sp_record){
			    .type = SP_RECORD_STACK,
			    .u.stack = {id, id % 8, frames + id % 3, id % 4}});
	put(1, &(struct sp_record){
		       .type = SP_RECORD_THREAD_END,
		       .u.thread_end = {3, last_ns / 2, 5000, 7, "late", 4}});
	for (uint64_t i = 0; i < 3; i++)
		put(1,
		    &(struct sp_record){.type = SP_RECORD_RSS,
					.u.rss = {last_ns / (i + 1), i << 20}});
}

/* Two of them a nanosecond apart, others at the moment of an event. */
static void put_marks(const struct shape *s)
{
	uint64_t period = PERIOD;

	for (uint64_t i = 1; s->has_marks && i <= 12; i++) {
		struct sp_record r = {.type = SP_RECORD_MARK};

		if (i % 5 == 0)
			period = period ? 0 : PERIOD;
		r.u.mark = (struct sp_record_mark){
			.number = i,
			.kind = 1 + i % 3,
			.time_ns = events[n_events * (i - i % 2) / 14].time_ns +
				   i % 2,
			.alloc_bytes = 10000 * i,
			.alloc_objects = 10 * i,
			.unsampled_bytes = 100 * i,
			.unsampled_objects = i,
			.slack_bytes = 9,
			.period_bytes = period,
			.name = i % 4 ? "one" : "other",
			.name_bytes = i % 4 ? 3 : 5};
		if (s->has_window && i == 6)
			r.u.mark.time_ns = window_ns + 2;
		put(1, &r);
	}
}

static void put_events(const struct shape *s)
{
	size_t chunk_of[THREADS] = {0}, filled[THREADS] = {0}, n = 2;

	for (size_t i = 0; i < n_events; i++) {
		const struct event *e = &events[i];
		const struct sp_record r = record_of(e);
		const uint64_t t = e->thread;

		if (!chunk_of[t] || filled[t] == PER_CHUNK) {
			assert_true(n < CHUNKS - 1);
			chunk_of[t] = n++;
			filled[t] = 0;
		}
		filled[t]++;
		put(chunk_of[t], &r);
	}
	/* What a process was about to write when it was killed. */
	for (size_t i = 2; i < 5 && s->is_killed; i++)
		model_raw(&records[i], "\0\7\1\2\3", 5);
}

static void put_totals(const struct shape *s)
{
	struct sp_status *status = model_file_status(&file, 1);
	struct sp_window *window =
		(struct sp_window *)(file.bytes.data + SP_FORMAT_WINDOW_OFFSET);
	struct sp_class_page *page;

	model_file_put_classes(&file, CHUNKS - 1);
	page = model_file_class_page(&file, CHUNKS - 1, 1, 1);
	page->seq = 1;
	page->slot = 1;
	page->classes[3] = (struct sp_class_total){6000, 90};
	model_file_seal_classes(&file, page);
	status->end_kind = s->is_killed ? SP_END_NONE : SP_END_CLEAN;
	status->time_ns = s->is_killed || !n_events
				  ? 3
				  : events[n_events - 1].time_ns + 777;
	status->threads = 9;
	status->losses[2] = 5;
	*model_file_slot(&file, 0, 1) = (struct sp_slot_copy){
		.seq = 1, .alloc_bytes = 900000, .alloc_objects = 5000};
	*model_file_slot(&file, 1, 1) =
		(struct sp_slot_copy){.seq = 3,
				      .alloc_bytes = 600000,
				      .alloc_objects = 1000,
				      .base_bytes = 1000,
				      .thread = 2,
				      .tid = 4002};
	model_file_seal(&file);
	if (s->is_killed)
		*model_file_slot(&file, 1, 0) =
			(struct sp_slot_copy){.seq = 4, .alloc_bytes = 600001};
	if (!s->has_window)
		return;
	*window = (struct sp_window){.seq = 2,
				     .oldest = 2,
				     .time_ns = window_ns,
				     .mark = 5,
				     .alloc_bytes = 55000,
				     .alloc_objects = 55,
				     .unsampled_bytes = 550,
				     .unsampled_objects = 5};
	model_seal(file.file_id, SP_CHECK_WINDOW, window, sizeof(*window));
}

void record(const struct shape *s, uint64_t seed, const struct memfile *to)
{
	sp_rng_init(&rng, seed, 0);
	make_events(s);
	model_file_init(&file, CHUNKS, PERIOD);
	model_file_header(&file)->flags =
		SP_HEADER_ALWAYS_LARGE |
		(s->has_no_frees ? 0 : SP_HEADER_FREES) |
		(s->has_window ? SP_HEADER_SEGMENTS : 0);
	model_file_header(&file)->seed = 8;
	for (size_t i = 1; i < CHUNKS; i++)
		model_chunk_begin(&chunks[i], file.file_id, i);
	put_facts(n_events ? events[n_events - 1].time_ns : 1000);
	put_marks(s);
	put_events(s);
	for (size_t i = 1; i < CHUNKS; i++) {
		model_file_put(&file, i, &records[i]);
		model_done(&records[i]);
		records[i] = (struct model_bytes){0};
	}
	put_totals(s);
	memfile_resize(to, 0);
	memfile_write(to, 0, file.bytes.data, file.bytes.n);
	model_done(&file.bytes);
}
