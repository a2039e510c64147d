/* SPDX-License-Identifier: MIT */
/*
 * The golden profiles, cut at every length and with every byte flipped (in the
 * long form every bit):
 * an error that names offset and field, or a part that is said to be damaged or
 * unfinished, or no change where a byte has no meaning; never a number that is
 * silently different.
 */
#include <unistd.h>

#include "format/decode.h"
#include "read/load.h"
#include "support/memfile.h"
#include "support/memory_limit.h"
#include "support/sums_of.h"
#include "support/test.h"

#define LENGTH     (1u << 20) /* max_file_bytes in both headers */
#define CHUNK      SP_FORMAT_CHUNK_BYTES
#define STATUS(i)  (SP_FORMAT_STATUS_OFFSET + (i)*SP_FORMAT_STATUS_STRIDE)
#define SLOT(i)    (SP_FORMAT_SLOTS_OFFSET + (i) * sizeof(struct sp_slot))
#define MEMORY     (64u << 20)
#define CHUNKS_MAX 4u

/* A golden file, and what is in it that is passed over. */
struct subject {
	const char *name;
	unsigned int chunks;
	bool is_clean;
	bool has_torn_totals;    /* status copy 0, slot 1 copy 0 */
	unsigned int unknown;    /* a chunk of an unknown kind; 0: none */
	unsigned int unfinished; /* the chunk of an unfinished record */
	unsigned int classes;    /* the chunk of class totals */
	uint64_t torn_page;      /* in it, from its beginning */
};

static const struct subject clean = {
	.name = "v1/clean.sprof", .chunks = 3, .is_clean = true};
static const struct subject killed = {.name = "v1/killed.sprof",
				      .chunks = 3,
				      .has_torn_totals = true,
				      .unknown = 1,
				      .unfinished = 2};
static const struct subject live = {.name = "v1-live/exit.sprof",
				    .chunks = 4,
				    .is_clean = true,
				    .classes = 2};
static const struct subject live_killed = {.name = "v1-live/killed.sprof",
					   .chunks = 3,
					   .unfinished = 1,
					   .classes = 2,
					   .torn_page = 4096 + 8192};

/* What is in the file, in its whole length and with nothing wrong. */
static struct {
	const struct subject *subject;
	struct memfile file;
	uint8_t *bytes;
	uint64_t n_bytes;
	uint64_t records_end[CHUNKS_MAX]; /* behind the last record */
	struct sp_profile *profile;
	struct sp_sums *sums;
} whole;

static int load(struct sp_profile **ret, struct sp_error *err)
{
	return sp_profile_load(whole.file.path, NULL, NULL, ret, err);
}

/* Where the committed records of a chunk end; its header if it has none. */
static uint64_t find_end(uint64_t chunk)
{
	const uint8_t *at = whole.bytes + chunk * CHUNK;
	size_t offset = SP_FORMAT_CHUNK_RECORDS_OFFSET;
	struct sp_chunk_state state;
	struct sp_file_header header;
	struct sp_decoded record;

	memcpy(&header, whole.bytes, sizeof(header));
	sp_chunk_state_init(&state, header.file_id, chunk);
	while (sp_decode_next(&state, at, CHUNK, &offset, &record) ==
	       SP_DECODE_RECORD)
		;
	return chunk * CHUNK + offset;
}

static void begin_with(const struct subject *subject)
{
	char path[1024];
	struct sp_error err;

	snprintf(path, sizeof(path), "%s/format/golden/%s", SP_TESTS_DIR,
		 subject->name);
	whole.subject = subject;
	memfile_open(&whole.file);
	memfile_copy(&whole.file, path);
	memfile_resize(&whole.file, LENGTH);
	whole.bytes = memfile_read(&whole.file, &whole.n_bytes);
	assert_int_equal(load(&whole.profile, &err), 0);
	assert_true(whole.profile->n_samples > 0);
	whole.sums = sums_of(whole.profile);
	for (uint64_t i = 1; i < subject->chunks; i++)
		whole.records_end[i] = find_end(i);
}

static void end(void)
{
	sp_sums_free(whole.sums, whole.profile);
	sp_profile_free(whole.profile);
	free(whole.bytes);
	memfile_close(&whole.file);
}

static bool same_stack(const struct sp_stack *a, const struct sp_stack *b)
{
	if (a->flags != b->flags || a->n_frames != b->n_frames)
		return false;
	for (uint32_t i = 0; i < a->n_frames; i++)
		if (a->frames[i].module != b->frames[i].module ||
		    a->frames[i].offset != b->frames[i].offset)
			return false;
	return true;
}

static bool is_part(const struct sp_class_sums *part,
		    const struct sp_class_sums *all)
{
	const struct sp_acc *a = &part->all, *b = &all->all;

	return a->samples <= b->samples && a->size_bytes <= b->size_bytes &&
	       a->tail_bytes <= b->tail_bytes &&
	       a->est_bytes <= b->est_bytes * (1 + 1e-12) &&
	       (a->samples < b->samples || a->size_bytes == b->size_bytes);
}

static void check_stacks(const struct sp_profile *p, const struct sp_sums *sums)
{
	for (size_t i = 0; i < p->n_stacks; i++) {
		const struct sp_stack *s = &p->stacks[i], *known = NULL;

		for (size_t k = 0; k < whole.profile->n_stacks; k++)
			if (whole.profile->stacks[k].id == s->id)
				known = &whole.profile->stacks[k];
		assert_non_null(known);
		assert_true(is_part(
			&sums->stacks[i],
			&whole.sums->stacks[known - whole.profile->stacks]));
		assert_true(!s->frames || same_stack(s, known));
	}
}

static void check_threads(const struct sp_profile *p,
			  const struct sp_sums *sums)
{
	const struct sp_thread_info *all = whole.profile->thread_infos;

	for (size_t i = 0; i < p->n_thread_infos; i++) {
		const struct sp_thread_info *t = &p->thread_infos[i];
		const struct sp_thread_info *known = NULL;

		for (size_t k = 0; k < whole.profile->n_thread_infos; k++)
			if (all[k].index == t->index)
				known = &all[k];
		assert_non_null(known);
		assert_true(is_part(&sums->threads[i],
				    &whole.sums->threads[known - all]));
		assert_true(t->exact_alloc_bytes <= known->exact_alloc_bytes);
		assert_true(t->tid == 0 || t->tid == known->tid);
		assert_true(t->name[0] == '\0' ||
			    strcmp(t->name, known->name) == 0 ||
			    (t->index == 2 && !strcmp(t->name, "worker")));
	}
}

static uint32_t thread_of(const struct sp_profile *p, uint32_t i)
{
	return i == UINT32_MAX ? 0 : p->thread_infos[i].index;
}

/* A sample is as it was, but its end may not be known. */
static void check_sample(const struct sp_profile *p, const struct sp_sample *s)
{
	const struct sp_profile *all = whole.profile;
	const struct sp_sample *known = NULL;

	for (size_t i = 0; i < all->n_samples; i++)
		if (all->samples[i].id == s->id)
			known = &all->samples[i];
	assert_non_null(known);
	assert_true(s->born_ns == known->born_ns &&
		    s->size_bytes == known->size_bytes &&
		    s->offset_bytes == known->offset_bytes &&
		    s->period_bytes == known->period_bytes &&
		    s->entry == known->entry &&
		    p->stacks[s->stack].id == all->stacks[known->stack].id &&
		    thread_of(p, s->thread) == thread_of(all, known->thread));
	if (s->freed_ns == SP_NEVER)
		return;
	assert_true(s->freed_ns == known->freed_ns &&
		    s->age_bytes == known->age_bytes &&
		    s->free_missed == known->free_missed);
	assert_int_equal(thread_of(p, s->freed_by),
			 thread_of(all, known->freed_by));
}

static size_t count_alive(const struct sp_profile *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_samples; i++)
		n += p->samples[i].freed_ns == SP_NEVER;
	return n;
}

static void check_live(const struct sp_profile *p)
{
	const struct sp_profile *all = whole.profile;

	assert_true(p->n_samples <= all->n_samples);
	for (size_t i = 0; i < p->n_samples; i++)
		check_sample(p, &p->samples[i]);
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
		assert_true(p->classes[i].bytes <= all->classes[i].bytes);
		assert_true(p->classes[i].objects <= all->classes[i].objects);
	}
	for (size_t i = 0, k = 0; i < p->n_rss; i++, k++) {
		while (k < all->n_rss &&
		       memcmp(&p->rss[i], &all->rss[k], sizeof(p->rss[i])) != 0)
			k++;
		assert_true(k < all->n_rss);
	}
}

static void check_names(const struct sp_profile *p)
{
	for (size_t i = 0; i < p->n_modules; i++) {
		const struct sp_module *m = &p->modules[i];
		const struct sp_module *known =
			sp_profile_module(whole.profile, m->id);

		assert_non_null(known);
		assert_true(m->start_pc == known->start_pc &&
			    m->end_pc == known->end_pc &&
			    m->bias == known->bias &&
			    m->is_main == known->is_main &&
			    m->build_id_len == known->build_id_len);
		assert_memory_equal(m->build_id, known->build_id,
				    sizeof(m->build_id));
		assert_string_equal(m->path, known->path);
	}
	for (size_t i = 0; i < p->n_infos; i++) {
		assert_string_equal(p->infos[i].key,
				    whole.profile->infos[i].key);
		assert_string_equal(p->infos[i].value,
				    whole.profile->infos[i].value);
	}
}

/* Nothing in p that is not in the whole. */
static void check_part(const struct sp_profile *p)
{
	const struct sp_profile *all = whole.profile;
	struct sp_sums *sums = sums_of(p);

	assert_int_equal(p->pid, all->pid);
	assert_int_equal(p->start_unix_ns, all->start_unix_ns);
	assert_int_equal(p->period_bytes, all->period_bytes);
	assert_int_equal(p->seed, all->seed);
	assert_true(p->duration_ns <= all->duration_ns);
	assert_true(p->threads <= all->threads);
	assert_true(p->exact_alloc_bytes <= all->exact_alloc_bytes);
	assert_true(p->exact_alloc_objects <= all->exact_alloc_objects);
	assert_true(p->end == all->end || p->end == SP_PROFILE_END_KILLED);
	for (unsigned int i = 0; i < SP_LOSS_COUNT; i++)
		assert_true(p->losses[i] <= all->losses[i]);
	assert_true(p->law.is_dotnet == all->law.is_dotnet &&
		    p->law.always_large == all->law.always_large &&
		    p->has_frees == all->has_frees);
	assert_true(is_part(&sums->all, &whole.sums->all));
	check_stacks(p, sums);
	check_threads(p, sums);
	check_names(p);
	check_live(p);
	sp_sums_free(sums, p);
}

/* All that is in the whole. */
static void check_same(const struct sp_profile *p)
{
	const struct sp_profile *all = whole.profile;

	check_part(p);
	assert_int_equal(p->exact_alloc_bytes, all->exact_alloc_bytes);
	assert_int_equal(p->exact_alloc_objects, all->exact_alloc_objects);
	assert_int_equal(p->end, all->end);
	assert_int_equal(p->duration_ns, all->duration_ns);
	assert_int_equal(p->threads, all->threads);
	assert_memory_equal(p->losses, all->losses, sizeof(p->losses));
	assert_string_equal(p->command, all->command);
	assert_int_equal(p->n_infos, all->n_infos);
	assert_int_equal(p->n_modules, all->n_modules);
	assert_int_equal(p->n_stacks, all->n_stacks);
	assert_int_equal(p->n_thread_infos, all->n_thread_infos);
	assert_int_equal(p->n_samples, all->n_samples);
	assert_int_equal(count_alive(p), count_alive(all));
	assert_int_equal(p->unmatched_frees, all->unmatched_frees);
	assert_int_equal(p->n_rss, all->n_rss);
	assert_int_equal(p->has_classes, all->has_classes);
	assert_memory_equal(p->classes, all->classes, sizeof(p->classes));
	assert_int_equal(p->class_slack_bytes, all->class_slack_bytes);
	for (size_t i = 0; i < p->n_stacks; i++)
		assert_true(same_stack(&p->stacks[i], &all->stacks[i]));
	for (size_t i = 0; i < p->n_thread_infos; i++)
		assert_memory_equal(&p->thread_infos[i], &all->thread_infos[i],
				    sizeof(p->thread_infos[i]));
}

/* More is said to be wrong than with the whole. */
static bool is_marked(const struct sp_profile *p)
{
	assert_int_equal(p->damage[0] != '\0', p->damaged_records > 0);
	return p->damaged_records > whole.profile->damaged_records ||
	       p->unfinished_records > whole.profile->unfinished_records ||
	       p->ignored_bytes > whole.profile->ignored_bytes;
}

enum outcome { REFUSED, MARKED, UNCHANGED };

/* Load the file as it is now, check what comes of it, and say which. */
static enum outcome try_file(void)
{
	struct sp_error err = {0};
	struct sp_profile *p = NULL;
	enum outcome outcome;

	if (load(&p, &err) < 0) {
		assert_true(err.has_offset);
		assert_non_null(err.field);
		assert_true(err.offset < SP_FORMAT_SLOTS_OFFSET);
		assert_true(err.message[0]);
		return REFUSED;
	}
	outcome = is_marked(p) ? MARKED : UNCHANGED;
	if (outcome == MARKED)
		check_part(p);
	else
		check_same(p);
	sp_profile_free(p);
	return outcome;
}

static bool within(uint64_t at, uint64_t begin, uint64_t bytes)
{
	return at >= begin && at - begin < bytes;
}

/* What there is of an unfinished record. */
static uint64_t unfinished_bytes(void)
{
	uint64_t end = whole.records_end[whole.subject->unfinished], n = 64;

	while (n && !whole.bytes[end + n - 1])
		n--;
	return n;
}

/* In the chunk of class totals: between the copies, and a torn copy. */
static bool is_meaningless_class_byte(uint64_t at)
{
	const size_t page = sizeof(struct sp_class_page);

	if (at < SP_FORMAT_PAGE_BYTES)
		return at >= sizeof(struct sp_chunk_header);
	if (at >= 15 * SP_FORMAT_PAGE_BYTES ||
	    at % SP_FORMAT_PAGE_BYTES >= page)
		return true;
	return whole.subject->torn_page &&
	       within(at, whole.subject->torn_page, page);
}

/* Bytes that docs/format.md gives no meaning: they are zero, or in a chunk of
 * an unknown kind, or what was torn already. */
static bool is_meaningless(uint64_t at)
{
	const struct subject *s = whole.subject;
	const size_t status = sizeof(struct sp_status);
	uint64_t end = whole.records_end[s->unfinished];

	if (within(at, sizeof(struct sp_file_header), STATUS(0) - 96) ||
	    within(at, STATUS(0) + status, STATUS(1) - STATUS(0) - status) ||
	    within(at, STATUS(1) + status, SLOT(0) - STATUS(1) - status)) {
		assert_int_equal(whole.bytes[at], 0);
		return true;
	}
	if (s->classes && at / CHUNK == s->classes)
		return is_meaningless_class_byte(at % CHUNK);
	if (s->unknown && within(at, s->unknown * CHUNK + 24, CHUNK - 24))
		return true;
	if (s->has_torn_totals &&
	    (within(at, STATUS(0), status) ||
	     within(at, SLOT(1), sizeof(struct sp_slot_copy))))
		return true;
	return s->unfinished && within(at, end + 1, unfinished_bytes() - 1);
}

/* Of the class totals: both ends of each copy. */
static bool is_interesting_class_byte(uint64_t at)
{
	uint64_t in_page = at % SP_FORMAT_PAGE_BYTES;

	return at < 64 || (at >= SP_FORMAT_PAGE_BYTES && in_page < 72) ||
	       within(in_page, sizeof(struct sp_class_page) - 10, 20);
}

/* Is the position one of those that are tried?  All that is used, some of what
 * is not, and the edges of everything. */
static bool is_interesting(uint64_t at)
{
	const struct subject *s = whole.subject;

	/* What all files have was tried with those without classes. */
	if (s->classes && at < CHUNK)
		return at < sizeof(struct sp_file_header);
	if (s->classes && at / CHUNK == s->classes)
		return is_interesting_class_byte(at % CHUNK);
	for (uint64_t i = 1; i < s->chunks; i++)
		if (within(at, i * CHUNK,
			   whole.records_end[i] + 40 - i * CHUNK))
			/* The length of an unfinished record may be any. */
			return i != s->unfinished ||
			       at != whole.records_end[i] + 1;
	return at < 128 || within(at, STATUS(0) - 1, 320) ||
	       within(at, STATUS(1) - 1, 320) ||
	       within(at, SLOT(0) - 1, 3 * sizeof(struct sp_slot) + 2) ||
	       within(at, SLOT(447), sizeof(struct sp_slot)) ||
	       (at + 1) % SP_FORMAT_PAGE_BYTES < 3;
}

static enum outcome try_flip(uint64_t at, uint8_t bits)
{
	uint8_t flipped = whole.bytes[at] ^ bits;
	enum outcome outcome;

	memfile_write(&whole.file, at, &flipped, 1);
	outcome = try_file();
	memfile_write(&whole.file, at, &whole.bytes[at], 1);
	return outcome;
}

static void flip_everything(const struct subject *subject)
{
	const unsigned int n_flips = test_rounds(SP_SANITIZED ? 1 : 2, 9);
	unsigned int outcomes[3] = {0};

	begin_with(subject);
	for (uint64_t at = 0; at < whole.n_bytes; at++) {
		if (!is_interesting(at))
			continue;
		for (unsigned int i = 0; i < n_flips; i++) {
			/* All eight, then one of them. */
			uint8_t bits = i ? (uint8_t)(1u << (at + i) % 8) : 0xff;
			enum outcome outcome = try_flip(at, bits);

			outcomes[outcome]++;
			if ((outcome == UNCHANGED) != is_meaningless(at))
				fail_msg("%s: offset %u, bits %02x: outcome %d",
					 subject->name, (unsigned int)at, bits,
					 outcome);
		}
	}
	/* Only the header can make a file useless. */
	assert_int_equal(outcomes[REFUSED],
			 n_flips * sizeof(struct sp_file_header));
	assert_true(outcomes[MARKED] > n_flips * 1000);
	assert_true(outcomes[UNCHANGED] > n_flips * 50);
	end();
}

TEST(flips_clean)
{
	flip_everything(&clean);
}

TEST(flips_killed)
{
	flip_everything(&killed);
}

TEST(flips_live)
{
	flip_everything(&live);
	flip_everything(&live_killed);
}

static enum outcome after_cut(uint64_t n)
{
	if (n < SP_FORMAT_SLOTS_OFFSET)
		return REFUSED;
	/* After an orderly end the number of chunks is known. */
	if (whole.subject->is_clean)
		return n < whole.subject->chunks * CHUNK ? MARKED : UNCHANGED;
	return n < LENGTH ? MARKED : UNCHANGED;
}

static void cut_everywhere(const struct subject *subject)
{
	begin_with(subject);
	for (uint64_t n = whole.n_bytes + 1; n-- > 0;) {
		enum outcome outcome;

		if (!is_interesting(n))
			continue;
		memfile_resize(&whole.file, n);
		outcome = try_file();
		if (outcome != after_cut(n))
			fail_msg("%s: %u bytes: outcome %d", subject->name,
				 (unsigned int)n, outcome);
	}
	end();
}

TEST(cuts_clean)
{
	cut_everywhere(&clean);
}

TEST(cuts_killed)
{
	cut_everywhere(&killed);
}

TEST(cuts_live)
{
	cut_everywhere(&live);
	cut_everywhere(&live_killed);
}

/* Cut when the reader has come to the first chunk of records. */
static void cut_now(void *arg, uint64_t done, uint64_t total)
{
	assert_true(done <= total);
	memfile_resize(&whole.file, *(uint64_t *)arg);
}

TEST(cut_while_read)
{
	uint64_t lengths[] = {0, CHUNK, CHUNK + 500, 2 * CHUNK};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct sp_profile *p = NULL;
		struct sp_error err;

		begin_with(&clean);
		assert_int_equal(sp_profile_load(whole.file.path, cut_now,
						 &lengths[i], &p, &err),
				 0);
		assert_true(is_marked(p));
		assert_non_null(strstr(p->damage, "cut while it was read"));
		assert_true(p->n_samples < whole.profile->n_samples);
		check_part(p);
		sp_profile_free(p);
		end();
	}
}

static int limit_memory(void **state)
{
	(void)state;
	memory_limit(MEMORY + LENGTH);
	alarm(3 * HUNG_S); /* of all tests of this file */
	return 0;
}

TEST_MAIN(limit_memory, NULL)
