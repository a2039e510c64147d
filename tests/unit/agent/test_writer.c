/* SPDX-License-Identifier: MIT */
/* What the writer wrote, read back by the reader. */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/file/chunks.h"
#include "agent/file/slots.h"
#include "agent/file/writer.h"
#include "agent/sys/diag.h"
#include "base/rng.h"
#include "model/profile.h"
#include "support/agent_fixture.h"
#include "support/load_profile.h"
#include "support/sample_list.h"
#include "support/test.h"

#define CHUNK 65536u

static struct sp_lane *take_lane(void)
{
	uint8_t hint = 0;
	struct sp_lane *lane = sp_lane_take(&hint);

	assert_non_null(lane);
	return lane;
}

/* Sample number `id`, with fields that take many bytes now and then. */
static struct sp_record_sample sample_of(uint64_t id)
{
	struct sp_rng rng;
	uint64_t v, size;

	sp_rng_init(&rng, 15, id);
	v = sp_rng_next(&rng);
	size = 1 + (v >> 50 << (v & 15));
	return (struct sp_record_sample){
		.id = id,
		.time_ns = id * 1000,
		.address = sp_rng_next(&rng) >> 17,
		.size_bytes = size,
		.offset_bytes = (v >> 32) % size,
		.period_bytes = 1 + (v >> 33 & 0xfff),
		.stack = v >> 20 & 0xfffff,
		.thread = 1 + (v & 3),
		.entry = (uint8_t)(v % SP_ENTRY_COUNT),
	};
}

static bool append_sample(struct sp_lane *lane, uint64_t id)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	r.u.sample = sample_of(id);
	return sp_writer_append(lane, &r);
}

/* Samples 1..n, each once and as it was written. */
static void check_samples(const char *path, uint64_t n)
{
	struct sample_list list = sample_list_read(path);

	assert_string_equal(list.damage.text, "");
	assert_int_equal(list.n, n);
	for (uint64_t id = 1; id <= n; id++) {
		const struct sp_record_sample *got = &list.at[id - 1];
		struct sp_record_sample want = sample_of(id);

		assert_true(got->id == id);
		assert_true(got->time_ns == want.time_ns);
		assert_true(got->address == want.address);
		assert_true(got->size_bytes == want.size_bytes);
		assert_true(got->offset_bytes == want.offset_bytes);
		assert_true(got->period_bytes == want.period_bytes);
		assert_true(got->stack == want.stack);
		assert_true(got->thread == want.thread);
		assert_int_equal(got->entry, want.entry);
	}
	free(list.at);
}

TEST_BETWEEN(header, NULL, agent_fixture_teardown)
{
	const char *path = agent_fixture_open(1 << 20);
	struct sp_writer_options again = {0};
	struct sample_list list = sample_list_read(path);

	assert_int_equal(list.n, 0);
	assert_string_equal(list.damage.text, "");
	assert_int_equal(list.header.version, SP_FORMAT_VERSION);
	assert_true(list.header.file_id == FIXTURE_FILE_ID);
	assert_true(list.header.pid == UINT32_MAX);
	assert_in_range(list.header.process_start_ticks, FIXTURE_TICKS,
			FIXTURE_TICKS + 100);
	assert_true(list.header.start_unix_ns == 1700000000000000000u);
	assert_int_equal(list.header.period_bytes, FIXTURE_PERIOD);
	assert_int_equal(list.header.seed, 42);
	assert_int_equal(list.header.max_file_bytes, 1 << 20);
	assert_int_equal(list.header.check_in_bytes, 1 << 20);
	assert_int_equal(list.header.flags,
			 SP_HEADER_ALWAYS_LARGE | SP_HEADER_FREES |
				 SP_HEADER_SEGMENTS | SP_HEADER_STACK_STEPS);
	assert_int_equal(list.status.seq, 1);
	free(list.at);
	/* Open it is, and once only. */
	assert_true(sp_writer_is_open());
	assert_int_equal(sp_writer_open(&again), 0);
	assert_true(sp_writer_file_id() == FIXTURE_FILE_ID);
	agent_fixture_close();
	assert_false(sp_writer_is_open());
}

static struct sp_module_entry module = {
	.id = 1,
	.start = 0x400000,
	.end = 0x480000,
	.bias = 0x3ff000,
	.name = "test",
	.path = "/usr/bin/test",
	.build_id = {0xde, 0xad, 0xbe, 0xef},
	.build_id_bytes = 4,
};

static uint32_t stack_id;

/* One of everything. */
static void write_all(struct sp_lane *lane)
{
	uint16_t slot = agent_fixture_claim(1);
	struct sp_record thread = {.type = SP_RECORD_THREAD};
	struct sp_record end = {.type = SP_RECORD_THREAD_END};
	struct sp_record sample = {.type = SP_RECORD_SAMPLE};
	struct sp_record other;

	sp_writer_info(lane, "exe", "/usr/bin/test", 13);
	sp_writer_info(lane, "command", "test\0a b\0it's", 14);
	sp_writer_info(lane, "host", "node", 4);
	sp_writer_module(lane, &module);
	lane->frames[0] = (struct sp_record_frame){1, 0x1234};
	lane->frames[1] = (struct sp_record_frame){0, 0x7fff12345678};
	stack_id = sp_chunks_append_stack(lane, SP_STACK_TRUNCATED, 2, 0);
	assert_int_not_equal(stack_id, 0);
	thread.u.thread = (struct sp_record_thread){1, 100, 5, "main", 4};
	assert_true(sp_writer_append(lane, &thread));
	thread.u.thread = (struct sp_record_thread){2, 101, 6, "", 0};
	assert_true(sp_writer_append(lane, &thread));
	sample.u.sample = (struct sp_record_sample){
		1,        1000000, 0x5000, 100,  40, FIXTURE_PERIOD,
		stack_id, 2,       0,      false};
	assert_true(sp_writer_append(lane, &sample));
	sample.u.sample.id = 2;
	sample.u.sample.size_bytes = 1;
	sample.u.sample.offset_bytes = 0;
	assert_true(sp_writer_append(lane, &sample));
	end.u.thread_end =
		(struct sp_record_thread_end){2, 2000000, 9000, 3, "job", 3};
	assert_true(sp_writer_append(lane, &end));
	other.type = SP_RECORD_FREE;
	other.u.free = (struct sp_record_free){1, 1500000, 2, 0, true, 77};
	assert_true(sp_writer_append(lane, &other));
	other.type = SP_RECORD_RSS;
	other.u.rss = (struct sp_record_rss){1600000, 5u << 20};
	assert_true(sp_writer_append(lane, &other));
	sp_slots_add(slot, 12345, 67);
	sp_diag_lose(SP_LOSS_NO_LANE, 4);
}

static void check_all(const struct sp_profile *p)
{
	const struct sp_module *m = sp_profile_module(p, 1);

	assert_string_equal(p->damage, "");
	assert_string_equal(p->program, "/usr/bin/test");
	assert_string_equal(p->command, "test 'a b' 'it'\\''s'");
	assert_string_equal(p->host, "node");
	assert_int_equal(p->n_modules, 1);
	assert_non_null(m);
	assert_true(m->start_pc == 0x400000 && m->end_pc == 0x480000);
	assert_true(m->bias == 0x3ff000 && m->is_main);
	assert_string_equal(m->path, "/usr/bin/test");
	assert_int_equal(m->build_id_len, 4);
	assert_memory_equal(m->build_id, "\xde\xad\xbe\xef", 4);
	assert_int_equal(p->n_stacks, 1);
	assert_int_equal(p->stacks[0].id, stack_id);
	assert_int_equal(p->stacks[0].flags, SP_STACK_TRUNCATED);
	assert_int_equal(p->stacks[0].n_frames, 2);
	assert_int_equal(p->stacks[0].frames[0].module, 1);
	assert_true(p->stacks[0].frames[1].offset == 0x7fff12345678);
	assert_int_equal(p->n_samples, 2);
	assert_int_equal(p->samples[0].stack, 0);
	assert_int_equal(p->samples[0].size_bytes, 100);
	assert_int_equal(p->samples[0].offset_bytes, 40);
	assert_true(p->samples[0].freed_ns == 1500000);
	assert_int_equal(p->samples[0].age_bytes, 77);
	assert_int_equal(p->samples[1].size_bytes, 1);
	assert_true(p->samples[1].freed_ns == SP_NEVER);
	assert_int_equal(p->n_rss, 1);
	assert_true(p->rss[0].rss_bytes == 5u << 20);
	assert_true(p->exact_alloc_bytes == 12345);
	assert_true(p->exact_alloc_objects == 67);
	assert_int_equal(p->losses[SP_LOSS_NO_LANE], 4);
	assert_int_equal(p->threads, 2);
}

static void check_threads(const struct sp_profile *p)
{
	assert_int_equal(p->n_thread_infos, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct sp_thread_info *t = &p->thread_infos[i];
		bool first = t->index == 1;

		assert_string_equal(t->name, first ? "main" : "job");
		assert_true(t->has_totals);
		assert_int_equal(t->exited, !first);
		assert_true(t->exact_alloc_bytes == (first ? 12345u : 9000u));
		assert_true(t->exact_alloc_objects == (first ? 67u : 3u));
	}
}

TEST_BETWEEN(round_trip, NULL, agent_fixture_teardown)
{
	const char *path = agent_fixture_open(1 << 20);
	struct sp_lane *lane = take_lane();
	struct sp_profile *p;

	write_all(lane);
	sp_writer_publish(2);
	p = load_profile(path);
	check_all(p);
	check_threads(p);
	assert_int_equal(p->end, SP_PROFILE_END_KILLED);
	assert_true(p->duration_ns >= 2000000);
	sp_writer_end(2, false);
	p = load_profile(path);
	check_all(p);
	assert_int_equal(p->end, SP_PROFILE_END_CLEAN);
}

/* An object's record is written once per file. */
TEST_BETWEEN(module_once, NULL, agent_fixture_teardown)
{
	const char *path;
	struct sp_profile *p;

	for (int file = 0; file < 2; file++) {
		struct sp_lane *lane;
		size_t at;

		path = agent_fixture_open(1 << 20);
		lane = take_lane();
		sp_writer_module(lane, &module);
		at = lane->tail.at;
		sp_writer_module(lane, &module);
		assert_int_equal(lane->tail.at, at);
		p = load_profile(path);
		assert_int_equal(p->n_modules, 1);
		agent_fixture_close();
	}
}

/* At every moment the file holds what was appended so far. */
TEST_BETWEEN(every_moment, NULL, agent_fixture_teardown)
{
	const char *path = agent_fixture_open(1 << 20);
	struct sp_lane *lane = take_lane();

	for (uint64_t id = 1; id <= 300; id++) {
		assert_true(append_sample(lane, id));
		check_samples(path, id);
	}
}

/* Several lanes, several chunks of each, several windows of 1 MiB. */
TEST_BETWEEN(windows, NULL, agent_fixture_teardown)
{
	const char *path = agent_fixture_open(16 << 20);
	struct sp_lane *lanes[3];
	struct sample_list list;
	uint64_t id = 0;

	for (int i = 0; i < 3; i++)
		lanes[i] = take_lane();
	while (id < 200000) {
		id++;
		assert_true(append_sample(lanes[id % 3], id));
	}
	sp_writer_publish(1);
	list = sample_list_read(path);
	free(list.at);
	assert_true(list.status.chunks > 3 * 16);
	check_samples(path, id);
	assert_true(agent_fixture_losses() == 0);
}

/* The limit: false, for good, and what was accepted is all there. */
static void check_full(uint64_t limit, uint64_t max_chunks)
{
	const char *path = agent_fixture_open(limit);
	struct sp_lane *lanes[2] = {take_lane(), take_lane()};
	struct sample_list list;
	uint64_t id = 0;

	while (append_sample(lanes[id % 2], id + 1))
		id++;
	for (int i = 0; i < 2; i++)
		while (append_sample(lanes[i], id + 1))
			id++;
	for (int i = 0; i < 100; i++)
		assert_false(append_sample(lanes[i % 2], id + 1));
	list = sample_list_read(path);
	free(list.at);
	assert_int_equal(list.header.max_file_bytes, limit);
	check_samples(path, id);
	assert_true(id > (max_chunks - 1) * 2000);
	agent_fixture_close();
}

TEST_BETWEEN(full, NULL, agent_fixture_teardown)
{
	check_full(3 * CHUNK, 3);
	/* Chunks that do not fit completely are not used. */
	check_full(5 * CHUNK - 1, 4);
	check_full(40 * CHUNK + 17, 40);
}

/* The status never speaks of chunks that the file does not have. */
TEST_BETWEEN(full_status, NULL, agent_fixture_teardown)
{
	const char *path = agent_fixture_open(3 * CHUNK);
	struct sp_lane *lane = take_lane();
	struct sample_list list;
	uint64_t id = 0;

	while (append_sample(lane, id + 1))
		id++;
	sp_writer_end(1, false);
	list = sample_list_read(path);
	assert_string_equal(list.damage.text, "");
	assert_int_equal(list.status.chunks, 3);
	assert_int_equal(list.n, id);
	free(list.at);
}

/* Records of every size at every distance from the end of a chunk. */
TEST_BETWEEN(large, NULL, agent_fixture_teardown)
{
	static char text[SP_FORMAT_INFO_MAX + 100];
	const char *path = agent_fixture_open(16 << 20);
	struct sp_lane *lane = take_lane();
	struct sp_profile *p;
	size_t n_infos = 0;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 26);
	/* The first record of a key counts, so each has its own. */
	for (size_t n = 0; n <= SP_FORMAT_INFO_MAX; n += 463, n_infos++) {
		char key[8];

		snprintf(key, sizeof(key), "%zu", n_infos);
		sp_writer_info(lane, key, text, n);
	}
	sp_writer_info(lane, "cut", text, sizeof(text));
	for (uint32_t i = 0; i < SP_FORMAT_FRAMES_MAX; i++)
		lane->frames[i] =
			(struct sp_record_frame){UINT32_MAX, UINT64_MAX - i};
	for (uint32_t i = 1; i <= 20; i++)
		assert_true(sp_chunks_append_stack(lane, 0,
						   SP_FORMAT_FRAMES_MAX, 0));
	p = load_profile(path);
	assert_string_equal(p->damage, "");
	assert_int_equal(p->n_infos, n_infos + 1);
	for (size_t i = 0; i < n_infos; i++) {
		assert_int_equal(strlen(p->infos[i].value), 463 * i);
		assert_memory_equal(p->infos[i].value, text, 463 * i);
	}
	assert_int_equal(strlen(sp_profile_info(p, "cut")), SP_FORMAT_INFO_MAX);
	assert_int_equal(p->n_stacks, 20);
	for (size_t i = 0; i < 20; i++)
		assert_true(p->stacks[i].frames[1023].offset ==
			    UINT64_MAX - 1023);
	assert_true(agent_fixture_losses() == 0);
}

/* What is written again as a whole counts once, with the most text, in whatever
 * order. */
TEST_BETWEEN(growing_facts, NULL, agent_fixture_teardown)
{
	const char *path = agent_fixture_open(1 << 20);
	struct sp_lane *lane = take_lane();
	struct sp_profile *p;
	size_t n = 0;

	sp_writer_info(lane, "unseen", "malloc calloc", 13);
	sp_writer_info(lane, "diagnosis", "a", 1);
	sp_writer_info(lane, "unseen", "malloc", 6);
	sp_writer_info(lane, "diagnosis", "a; b", 4);
	p = load_profile(path);
	assert_string_equal(sp_profile_info(p, "unseen"), "malloc calloc");
	assert_string_equal(sp_profile_info(p, "diagnosis"), "a; b");
	for (size_t i = 0; i < p->n_infos; i++)
		n += strcmp(p->infos[i].key, "unseen") == 0 ||
		     strcmp(p->infos[i].key, "diagnosis") == 0;
	assert_int_equal(n, 2);
}

/* Publications alternate between two copies; the newest counts, and the first
 * is of the opening. */
TEST_BETWEEN(status, NULL, agent_fixture_teardown)
{
	const char *path = agent_fixture_open(1 << 20);
	uint64_t last_time = 0;

	for (uint64_t i = 1; i <= 9; i++) {
		struct sample_list list;

		sp_diag_lose(SP_LOSS_NESTED, i);
		if (i < 9)
			sp_writer_publish(i);
		else
			sp_writer_end(i, false);
		list = sample_list_read(path);
		assert_string_equal(list.damage.text, "");
		assert_int_equal(list.status.seq, i + 1);
		assert_int_equal(list.status.threads, i);
		assert_int_equal(list.status.losses[SP_LOSS_NESTED],
				 i * (i + 1) / 2);
		assert_int_equal(list.status.end_kind,
				 i < 9 ? SP_END_NONE : SP_END_CLEAN);
		assert_true(list.status.time_ns >= last_time);
		last_time = list.status.time_ns;
		free(list.at);
	}
}

/* Slots beyond the first pages, which are backed one by one. */
TEST_BETWEEN(slot_pages, NULL, agent_fixture_teardown)
{
	const char *path = agent_fixture_open(1 << 20);
	struct sp_profile *p;
	uint64_t want = 0;

	for (unsigned int i = 0; i < SP_FORMAT_SLOTS; i += 31) {
		struct sp_slot *slot = sp_writer_slot(i);

		assert_non_null(slot);
		slot->copy[1].seq = 1;
		slot->copy[1].alloc_bytes = 1000 + i;
		slot->copy[1].check =
			sp_format_check(FIXTURE_FILE_ID, SP_CHECK_SLOT,
					&slot->copy[1], sizeof(slot->copy[1]));
		want += 1000 + i;
		p = load_profile(path);
		assert_true(p->exact_alloc_bytes == want);
	}
	assert_null(sp_writer_slot(SP_FORMAT_SLOTS));
	agent_fixture_close();
	assert_null(sp_writer_slot(0));
}

/* A file that cannot be made is not tried again. */
TEST_BETWEEN(failure_is_final, NULL, agent_fixture_teardown)
{
	struct sp_writer_options options = {.max_file_bytes = 1};
	struct sp_lane *lane = take_lane();

	assert_int_equal(sp_writer_open(&options), -EFBIG);
	options.max_file_bytes = 1 << 20;
	assert_int_equal(sp_writer_open(&options), -EIO);
	assert_false(sp_writer_is_open());
	assert_null(sp_writer_slot(0));
	sp_writer_publish(1);
	sp_lane_give(lane);
}

/* A child that was forked in the middle of an append: what it still stores
 * goes nowhere, and it gets a file of its own. */
static void run_child(struct sp_lane *lane)
{
	uint8_t *chunk = lane->tail.chunk;
	size_t at = lane->tail.at;

	sp_writer_detach();
	sp_writer_reset();
	sp_lane_reset();
	sp_slots_reset();
	memset(chunk + at, 0x77, 100);
	if (append_sample(lane, 2) || sp_writer_is_open())
		_exit(1);
	agent_fixture_open(1 << 20);
	if (!append_sample(lane, 1))
		_exit(2);
	sp_writer_end(1, false);
	_exit(0);
}

/* The name with the following sequence number. */
static const char *next_name(const char *path)
{
	static char name[1024];
	const char *number = strstr(path, "/test.") + strlen("/test.");

	snprintf(name, sizeof(name), "%.*s%d.sprof", (int)(number - path), path,
		 atoi(number) + 1);
	return name;
}

TEST_BETWEEN(fork, NULL, agent_fixture_teardown)
{
	char path[1024];
	struct sp_lane *lane;
	pid_t child;
	int status;

	snprintf(path, sizeof(path), "%s", agent_fixture_open(1 << 20));
	lane = take_lane();
	for (uint64_t id = 1; id <= 50; id++)
		assert_true(append_sample(lane, id));
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		run_child(lane);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	check_samples(path, 50);
	assert_true(append_sample(lane, 51));
	check_samples(path, 51);
	/* The next sequence number behind ours. */
	agent_fixture_close();
	check_samples(next_name(path), 1);
}

TEST_MAIN(agent_fixture_begin, agent_fixture_end)
