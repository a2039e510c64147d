/* SPDX-License-Identifier: MIT */
/*
 * Exact totals are never lost, whatever adds to them and whenever; marks see
 * totals that threads have not published.
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/file/slots.h"
#include "agent/file/slots_copy.h"
#include "agent/file/slots_total.h"
#include "agent/file/writer.h"
#include "agent/sys/diag.h"
#include "agent/sys/tid.h"
#include "agent/thread/size_counts.h"
#include "base/rng.h"
#include "format/record.h"
#include "support/agent_fixture.h"
#include "support/test.h"

#define OWNED_MAX (SP_FORMAT_SLOTS - 1)

/* The newer valid copy of a slot as it stands in the file; zero if none. */
static struct sp_slot_copy read_slot(const char *path, unsigned int i)
{
	struct sp_slot slot;
	struct sp_slot_copy best;
	FILE *f = fopen(path, "rbe");

	assert_non_null(f);
	assert_int_equal(
		fseek(f, (long)(SP_FORMAT_SLOTS_OFFSET + i * sizeof(slot)),
		      SEEK_SET),
		0);
	assert_int_equal(fread(&slot, sizeof(slot), 1, f), 1);
	fclose(f);
	memset(&best, 0, sizeof(best));
	for (int k = 0; k < 2; k++) {
		const struct sp_slot_copy *c = &slot.copy[k];

		if (c->seq == 0)
			continue;
		assert_int_equal(c->seq & 1, k);
		assert_true(c->check == sp_format_check(FIXTURE_FILE_ID,
							SP_CHECK_SLOT, c,
							sizeof(*c)));
		if (c->seq > best.seq)
			best = *c;
	}
	return best;
}

/* A slot as the model has it. */
struct model_slot {
	uint16_t owner;
	uint64_t bytes, objects, base_bytes, base_objects;
	uint32_t thread; /* 0: free */
};

static void check_slot(const char *path, const struct model_slot *m,
		       unsigned int i)
{
	struct sp_slot_copy c = read_slot(path, i);

	assert_true(c.alloc_bytes == m->bytes);
	assert_true(c.alloc_objects == m->objects);
	assert_int_equal(c.thread, m->thread);
	if (!m->thread)
		return;
	assert_true(c.base_bytes == m->base_bytes);
	assert_true(c.base_objects == m->base_objects);
	assert_int_equal(c.tid, syscall(SYS_gettid));
}

/* Which slot a claim gets: the first that is free. */
static unsigned int model_claim(struct model_slot *model, uint32_t index)
{
	for (unsigned int i = 1; i < 8; i++) {
		if (model[i].thread)
			continue;
		model[i].thread = index;
		model[i].base_bytes = model[i].bytes;
		model[i].base_objects = model[i].objects;
		return i;
	}
	fail();
	return 0;
}

/* Random claims, additions and releases beside an array of plain numbers. */
TEST_BETWEEN(model, NULL, agent_fixture_teardown)
{
	struct model_slot model[8] = {0};
	const char *path = agent_fixture_open(1 << 20);
	struct sp_rng rng;
	uint32_t index = 0;
	unsigned int owned = 0;

	sp_rng_init(&rng, 11, 1);
	for (int i = 0; i < 4000; i++) {
		uint64_t n = sp_rng_next(&rng) >> 34;
		unsigned int at = sp_rng_next(&rng) % 8;
		struct model_slot *m = &model[at];

		if (at && !m->thread && owned < 7) {
			at = model_claim(model, ++index);
			m = &model[at];
			m->owner = agent_fixture_claim(index);
			owned++;
		} else if (at && i % 5 == 0) {
			assert_int_equal(sp_slots_release(m->owner), 0);
			m->thread = 0;
			owned--;
			check_slot(path, m, at);
			continue;
		}
		sp_slots_add(m->owner, n, n % 7);
		m->bytes += n;
		m->objects += n % 7;
		check_slot(path, m, at);
	}
	for (unsigned int i = 0; i < 8; i++) {
		struct sp_slots_totals got;
		uint64_t want_bytes = 0, want = 0;

		check_slot(path, &model[i], i);
		sp_slots_total(&got, 1 << 20);
		for (unsigned int k = 0; k < 8; k++) {
			want_bytes += model[k].bytes;
			want += model[k].objects;
		}
		assert_true(got.bytes == want_bytes && got.objects == want);
		assert_true(!got.unsampled_bytes && !got.unsampled_objects);
	}
	assert_true(agent_fixture_losses() == 0);
}

/* Totals from before there was a file reach it with the next flush. */
TEST_BETWEEN(before_file, NULL, agent_fixture_teardown)
{
	uint16_t slot = agent_fixture_claim(9);
	struct sp_slot_copy c;
	const char *path;

	sp_slots_add(slot, 100, 2);
	path = agent_fixture_open(1 << 20);
	assert_int_equal(read_slot(path, 1).seq, 0);
	sp_slots_copy_all();
	c = read_slot(path, 1);
	assert_true(c.alloc_bytes == 100 && c.alloc_objects == 2);
	assert_int_equal(c.thread, 9);
	/* Of an owner that comes later the file knows at once. */
	slot = agent_fixture_claim(10);
	assert_int_equal(read_slot(path, slot).thread, 10);
	agent_fixture_close();
	c = read_slot(path, 1);
	assert_true(c.alloc_bytes == 100);
}

/* More threads than slots: the last share slot 0 and are counted. */
TEST_BETWEEN(too_many, NULL, agent_fixture_teardown)
{
	static uint16_t slots[OWNED_MAX + 2];
	const char *path = agent_fixture_open(1 << 20);
	struct sp_slots_totals totals;
	uint64_t losses[SP_FORMAT_LOSSES];

	for (uint32_t i = 0; i < OWNED_MAX + 2; i++) {
		slots[i] = agent_fixture_claim(i + 1);
		sp_slots_add(slots[i], 1000 + i, 1);
		for (uint32_t k = 0; k < i && i < OWNED_MAX; k++)
			assert_int_not_equal(slots[k], slots[i]);
	}
	assert_int_equal(slots[OWNED_MAX], 0);
	assert_int_equal(slots[OWNED_MAX + 1], 0);
	sp_diag_read(losses);
	assert_true(losses[SP_LOSS_NO_SLOT] == 2);
	sp_slots_total(&totals, 1 << 20);
	assert_int_equal(totals.objects, OWNED_MAX + 2);
	/* None has size counts, nor have two a slot. */
	assert_int_equal(totals.slack_bytes, (OWNED_MAX + 2) << 20);
	assert_int_equal(sp_slots_total_unseen(slots[0], 1 << 20), 2 << 20);
	assert_int_equal(sp_slots_total_unseen(0, 1 << 20), 1 << 20);
	assert_true(read_slot(path, 0).alloc_bytes ==
		    2000 + OWNED_MAX + OWNED_MAX + 1);
	assert_int_equal(read_slot(path, OWNED_MAX).thread, OWNED_MAX);
	/* Releasing the shared one frees nothing. */
	assert_int_equal(sp_slots_release(0), 0);
	sp_slots_total(&totals, 1 << 20);
	assert_int_equal(totals.slack_bytes, (OWNED_MAX + 1) << 20);
	assert_int_equal(agent_fixture_claim(9999), 0);
	sp_slots_add(0, 1, 1);
	assert_int_equal(read_slot(path, 0).base_bytes, 0);
}

TEST_BETWEEN(tid, NULL, agent_fixture_teardown)
{
	assert_int_equal(sp_tid_own(), syscall(SYS_gettid));
}

#define THREADS 6
#define LIVES   60
#define ROUNDS  300

struct worker {
	unsigned int index;
	uint64_t bytes, objects;
};

/* One thread after another claims, adds, and adds to what all share. */
static void *add_and_release(void *arg)
{
	struct worker *w = arg;
	struct sp_rng rng;

	sp_rng_init(&rng, 12, w->index);
	for (uint32_t life = 0; life < LIVES; life++) {
		uint16_t mine =
			agent_fixture_claim(1 + w->index * LIVES + life);

		for (int i = 0; i < ROUNDS; i++) {
			uint64_t n = sp_rng_next(&rng) >> 40;

			sp_slots_add(i % 4 ? mine : 0, n, 3);
			w->bytes += n;
			w->objects += 3;
		}
		sp_slots_release(mine);
	}
	return NULL;
}

TEST_BETWEEN(threads, NULL, agent_fixture_teardown)
{
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	const char *path = agent_fixture_open(1 << 20);
	struct sp_slots_totals totals;
	uint64_t bytes = 0, objects = 0, in_file = 0;

	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){i, 0, 0};
		assert_int_equal(pthread_create(&threads[i], NULL,
						add_and_release, &workers[i]),
				 0);
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		bytes += workers[i].bytes;
		objects += workers[i].objects;
	}
	sp_slots_total(&totals, 1 << 20);
	assert_true(totals.bytes == bytes);
	assert_true(totals.objects == objects);
	/* The last addition of every slot has reached the file by itself. */
	for (unsigned int i = 0; i < SP_FORMAT_SLOTS; i++) {
		struct sp_slot_copy c = read_slot(path, i);

		in_file += c.alloc_bytes;
		assert_int_equal(c.thread, 0);
		if (i > THREADS + 1)
			assert_int_equal(c.seq, 0);
	}
	assert_true(in_file == bytes);
}

#define MEETINGS 20000u

struct pair {
	pthread_barrier_t barrier;
	const char *path;
	unsigned int missing; /* times that the file was behind */
};

static void *add_together(void *arg)
{
	struct pair *p = arg;

	for (unsigned int i = 1; i <= MEETINGS; i++) {
		pthread_barrier_wait(&p->barrier);
		sp_slots_add(0, 1, 1);
		if (pthread_barrier_wait(&p->barrier) ==
		    PTHREAD_BARRIER_SERIAL_THREAD)
			p->missing +=
				read_slot(p->path, 0).alloc_bytes != 2 * i;
	}
	return NULL;
}

/* Two additions at the same moment: one thread finds the other busy with the
 * copy, and goes away; both are in the file all the same. */
TEST_BETWEEN(at_once, NULL, agent_fixture_teardown)
{
	struct pair p = {.missing = 0};
	pthread_t other;

	p.path = agent_fixture_open(1 << 20);
	assert_int_equal(pthread_barrier_init(&p.barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&other, NULL, add_together, &p), 0);
	add_together(&p);
	pthread_join(other, NULL);
	pthread_barrier_destroy(&p.barrier);
	assert_int_equal(p.missing, 0);
}

/* Size counts belong to a slot and stay, whoever owns it. */
TEST_BETWEEN(size_counts, NULL, agent_fixture_teardown)
{
	uint16_t slot = agent_fixture_claim(1), other = agent_fixture_claim(2);
	struct sp_size_counts *counts = sp_slots_size_counts(slot);

	assert_non_null(counts);
	assert_null(sp_slots_size_counts(0));
	assert_ptr_not_equal(sp_slots_size_counts(other), counts);
	counts->small[5] = 7;
	assert_ptr_equal(sp_slots_size_counts(slot), counts);
	sp_slots_release(slot);
	assert_int_equal(agent_fixture_claim(3), slot);
	assert_ptr_equal(sp_slots_size_counts(slot), counts);
	assert_int_equal(counts->small[5], 7);
}

/* Count n objects of size bytes the way a thread does. */
static void allocate(uint16_t slot, uint64_t n, uint64_t size)
{
	for (uint64_t i = 0; i < n; i++)
		sp_size_counts_count(sp_slots_size_counts(slot), size);
	sp_slots_add(slot, n * size, n);
}

static uint64_t objects_in_file(const char *path, uint16_t slot)
{
	struct sp_class_page page;

	agent_fixture_read_classes(path, slot, &page);
	return page.alloc_objects;
}

/* Size counts are copied when much has come together, or when it is demanded.
 */
TEST_BETWEEN(size_counts_in_file, NULL, agent_fixture_teardown)
{
	const char *path = agent_fixture_open(1 << 20);
	uint16_t slot = agent_fixture_claim(1);
	struct sp_class_page page;

	allocate(slot, 511, 20);
	assert_int_equal(objects_in_file(path, slot), 0);
	allocate(slot, 1, 20);
	assert_int_equal(objects_in_file(path, slot), 512);
	/* As many again, up to a limit. */
	for (uint64_t n = 512; n < 65536; n *= 2) {
		uint64_t step = n < 16384 ? n : 16384;

		for (uint64_t at = n; at < 2 * n; at += step) {
			allocate(slot, step - 1, 20);
			assert_int_equal(objects_in_file(path, slot), at);
			allocate(slot, 1, 20);
			assert_int_equal(objects_in_file(path, slot),
					 at + step);
		}
	}
	allocate(slot, 100, 20);
	sp_slots_copy_size_counts(slot);
	assert_int_equal(objects_in_file(path, slot), 65636);
	/* Or that many bytes. */
	allocate(slot, 1, (8 << 20) - 1);
	assert_int_equal(objects_in_file(path, slot), 65636);
	allocate(slot, 1, 0);
	sp_slots_add(slot, 1, 0); /* for 0 bytes */
	assert_int_equal(objects_in_file(path, slot), 65638);
	assert_true(agent_fixture_read_classes(path, slot, &page));
	assert_int_equal(page.alloc_bytes, 65636 * 20 + (8 << 20));
	assert_int_equal(page.classes[1].objects, 65636);
	assert_int_equal(page.classes[0].bytes, 1);
	assert_true(agent_fixture_losses() == 0);
}

/* A file that comes late gets them with the next copy. */
TEST_BETWEEN(size_counts_before_file, NULL, agent_fixture_teardown)
{
	uint16_t slot = agent_fixture_claim(1);
	const char *path;

	allocate(slot, 10000, 100);
	path = agent_fixture_open(1 << 20);
	assert_int_equal(objects_in_file(path, slot), 0);
	allocate(slot, 1, 100);
	assert_int_equal(objects_in_file(path, slot), 10001);
}

/* At the end of a process all size counts are copied, also those whose threads
 * have ended or never check in again; slots of several groups. */
TEST_BETWEEN(size_counts_at_end, NULL, agent_fixture_teardown)
{
	enum { SLOTS = 3 * SP_FORMAT_CLASS_SLOTS };
	const char *path = agent_fixture_open(1 << 20);

	for (uint32_t i = 1; i <= SLOTS; i++) {
		assert_int_equal(agent_fixture_claim(i), i);
		sp_size_counts_count(sp_slots_size_counts((uint16_t)i), i);
	}
	sp_slots_release(5);
	sp_slots_copy_all_size_counts();
	for (uint16_t i = 1; i <= SLOTS; i++) {
		struct sp_class_page page;

		assert_true(agent_fixture_read_classes(path, i, &page));
		assert_int_equal(page.alloc_bytes, i);
		assert_int_equal(page.alloc_objects, 1);
	}
	assert_int_equal(objects_in_file(path, 0), 0);
	assert_true(agent_fixture_losses() == 0);
}

/* A forked child counts from zero, in the memory of its parent's counts, and
 * does not publish what stands there from before. */
TEST_BETWEEN(size_counts_after_fork, NULL, agent_fixture_teardown)
{
	struct sp_size_counts *counts =
		sp_slots_size_counts(agent_fixture_claim(1));
	struct sp_size_counts *second =
		sp_slots_size_counts(agent_fixture_claim(2));
	const char *path;

	counts->small[8] = second->small[9] = 1000;
	sp_slots_reset();
	/* The event that the fork interrupted goes on. */
	counts->small[8]++;
	path = agent_fixture_open(1 << 20);
	assert_int_equal(agent_fixture_claim(1), 1);
	assert_ptr_equal(sp_slots_size_counts(1), counts);
	assert_int_equal(counts->small[8], 0);
	assert_int_equal(agent_fixture_claim(2), 2);
	sp_slots_copy_all_size_counts();
	assert_int_equal(objects_in_file(path, 2), 0);
	assert_ptr_equal(sp_slots_size_counts(2), second);
	assert_int_equal(second->small[9], 0);
}

/* No room in the file: counted, and nothing else happens. */
TEST_BETWEEN(size_counts_in_full_file, NULL, agent_fixture_teardown)
{
	struct sp_lane *lane;
	const char *path = agent_fixture_open(2 * SP_FORMAT_CHUNK_BYTES);
	uint16_t slot = agent_fixture_claim(1);
	uint64_t losses[SP_FORMAT_LOSSES];
	uint8_t hint = 0;

	lane = sp_lane_take(&hint);
	sp_writer_info(lane, "key", "value", 5);
	allocate(slot, 5000, 10);
	sp_diag_read(losses);
	assert_int_equal(losses[SP_LOSS_CLASS_TOTALS], 1);
	assert_int_equal(agent_fixture_losses(), 1);
	assert_int_equal(objects_in_file(path, slot), 0);
	assert_int_equal(read_slot(path, slot).alloc_objects, 5000);
}

/* More than one block of places. */
#define SHARERS 9000u

static unsigned int n_owners;

static bool count_owner(struct sp_thread *thread)
{
	assert_ptr_equal(thread, &sp_thread);
	n_owners++;
	return false;
}

static unsigned int count_owners(void)
{
	n_owners = 0;
	sp_slots_any_owner(count_owner);
	return n_owners;
}

/* However many threads find no slot, each is known while it lives. */
TEST_BETWEEN(many_sharers, NULL, agent_fixture_teardown)
{
	agent_fixture_open(1 << 20);
	for (unsigned int i = 1; i < SP_FORMAT_SLOTS; i++)
		assert_int_equal(sp_slots_hold(), i);
	for (int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < SHARERS; i++)
			assert_int_equal(sp_slots_hold(), 0);
		assert_true(sp_slots_know_all());
		assert_int_equal(count_owners(), SP_FORMAT_SLOTS - 1 + SHARERS);
		for (unsigned int i = 0; i < SHARERS; i++)
			sp_slots_let_go(0);
		assert_int_equal(count_owners(), SP_FORMAT_SLOTS - 1);
	}
	sp_slots_hold();
	sp_slots_reset();
	assert_int_equal(count_owners(), 0);
	assert_true(sp_slots_know_all());
}

#define COUNTED 3000000u

static void *count_on(void *counts)
{
	for (uint64_t i = 0; i < COUNTED; i++)
		sp_size_counts_count(counts, i % 2000);
	return NULL;
}

/* Size counts are copied while their owner counts: there is a whole copy at any
 * time, and the last has everything. */
TEST_BETWEEN(size_counts_while_counting, NULL, agent_fixture_teardown)
{
	const char *path = agent_fixture_open(1 << 20);
	uint16_t slot = agent_fixture_claim(1);
	struct sp_size_counts *counts = sp_slots_size_counts(slot);
	struct sp_class_page page;
	pthread_t thread;
	uint64_t last = 0;

	assert_int_equal(pthread_create(&thread, NULL, count_on, counts), 0);
	for (int i = 0; i < 300; i++) {
		sp_slots_copy_size_counts(slot);
		assert_true(agent_fixture_read_classes(path, slot, &page));
		assert_in_range(page.alloc_objects, last, COUNTED);
		last = page.alloc_objects;
	}
	pthread_join(thread, NULL);
	sp_slots_copy_size_counts(slot);
	assert_int_equal(objects_in_file(path, slot), COUNTED);
}

/* What the owner has counted but not added yet is in the total, on the side
 * where it belongs. */
TEST_BETWEEN(ahead, NULL, agent_fixture_teardown)
{
	struct sp_slots_totals totals;
	struct sp_size_counts *counts;
	uint16_t slot;

	agent_fixture_open(1 << 20);
	slot = agent_fixture_claim(1);
	counts = sp_slots_size_counts(slot);
	assert_non_null(counts);
	sp_slots_set_sampling(slot, true);
	sp_size_counts_count(counts, 100);
	sp_size_counts_count(counts, 5000);
	sp_slots_total(&totals, 1 << 20);
	assert_true(totals.bytes == 5100 && totals.objects == 2);
	assert_true(!totals.unsampled_bytes && !totals.slack_bytes);
	sp_slots_add(slot, 5100, 2);
	sp_slots_set_sampling(slot, false);
	sp_size_counts_count(counts, 0); /* counts as 1 */
	sp_slots_total(&totals, 1 << 20);
	assert_true(totals.bytes == 5101 && totals.objects == 3);
	assert_true(totals.unsampled_bytes == 1);
	assert_true(totals.unsampled_objects == 1);
	sp_slots_add(slot, 1, 1);
	sp_slots_set_sampling(slot, true);
	sp_size_counts_count(counts, 7);
	sp_slots_total(&totals, 1 << 20);
	assert_true(totals.bytes == 5108 && totals.objects == 4);
	assert_true(totals.unsampled_bytes == 1);
	/* Nobody's slot has no size counts, and counts at once. */
	sp_slots_set_sampling(0, false);
	sp_slots_add(0, 10, 1);
	sp_slots_set_sampling(0, true);
	sp_slots_add(0, 10, 1);
	sp_slots_total(&totals, 1 << 20);
	assert_true(totals.bytes == 5128 && totals.unsampled_bytes == 11);
	assert_true(!totals.slack_bytes);
	/* An owner without size counts: what he has not added is not known. */
	assert_int_equal(agent_fixture_claim(2), slot + 1);
	sp_slots_total(&totals, 1 << 20);
	assert_true(totals.slack_bytes == 1 << 20);
}

int main(void)
{
	sp_tid_find();
	return TEST_RUN(agent_fixture_begin, agent_fixture_end);
}
