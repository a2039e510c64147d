/* SPDX-License-Identifier: MIT */
/* What samples and their frees leave in the file. */
#include <errno.h>
#include <stdatomic.h>

#include "agent/event/marks.h"
#include "agent/event/recorder.h"
#include "agent/event/resident.h"
#include "agent/file/writer.h"
#include "agent/sys/diag.h"
#include "agent/sys/sys.h"
#include "agent/unwind/lane.h"
#include "model/profile.h"
#include "support/agent_fixture.h"
#include "support/load_profile.h"
#include "support/test.h"

static struct sp_process process;
static char object[64];
static const char *path;

static int begin_all(void **state)
{
	process.config.depth = 8;
	process.follows_frees = sp_liveset_init();
	assert_true(process.follows_frees);
	sp_law_init(&process.law, SP_LAW_EXPONENTIAL, FIXTURE_PERIOD);
	sp_recorder_init(&process, sp_marks_complete);
	return agent_fixture_begin(state);
}

/* A process with one thread, whose clock stands at 1000 bytes. */
static int begin(void **state)
{
	(void)state;
	path = agent_fixture_open(1 << 20);
	atomic_store(&process.generation, 1);
	atomic_store(&process.threads, 1);
	sp_thread.index = 1;
	sp_thread.generation = 1;
	sp_thread.recorded = SP_THREAD_UNKNOWN;
	sp_thread.sampler.law = &process.law;
	sp_thread.bytes = 1000;
	sp_thread.limit = sp_thread.remaining = 500;
	sp_thread.suspended = 0;
	return 0;
}

static int end(void **state)
{
	sp_recorder_reset();
	return agent_fixture_teardown(state);
}

static void sample(char *p, uint64_t size)
{
	const struct sp_event event = {p, size, 0, SP_ENTRY_MALLOC,
				       SP_FRAME_HERE};

	sp_recorder_sample(&sp_thread, &event);
}

static struct sp_profile *load(void)
{
	struct sp_profile *p;

	sp_writer_publish(1);
	p = load_whole_profile(path);
	assert_int_equal(p->unmatched_frees, 0);
	return p;
}

static uint64_t losses(enum sp_loss loss)
{
	uint64_t all[SP_FORMAT_LOSSES];

	sp_diag_read(all);
	return all[loss];
}

/* The age is what the thread allocated behind the object; errno is kept. */
TEST_BETWEEN(freed, begin, end)
{
	struct sp_profile *p;

	sample(&object[0], 100);
	sample(&object[1], 200);
	sp_thread.bytes += 60;
	sp_thread.remaining -= 7;
	assert_true(sp_filter_may_have(&object[0]));
	errno = 42;
	sp_recorder_free(&object[0]);
	assert_int_equal(errno, 42);
	sp_recorder_free(&object[2]); /* no sample */
	p = load();
	assert_int_equal(p->n_samples, 2);
	assert_int_equal(p->samples[0].size_bytes, 100);
	assert_true(p->samples[0].freed_ns != SP_NEVER);
	assert_true(p->samples[0].freed_ns >= p->samples[0].born_ns);
	assert_int_equal(p->samples[0].age_bytes, 67);
	assert_int_equal(p->samples[0].freed_by, p->samples[0].thread);
	assert_false(p->samples[0].free_missed);
	assert_true(p->samples[1].freed_ns == SP_NEVER);
	/* Once only. */
	sp_recorder_free(&object[0]);
	sp_recorder_free(&object[1]);
	p = load();
	assert_true(p->samples[1].freed_ns != SP_NEVER);
	assert_int_equal(agent_fixture_losses(), 0);
}

/* Freed by a thread that is no one yet, by another, in the middle of an event:
 * there is no age. */
TEST_BETWEEN(without_age, begin, end)
{
	struct sp_profile *p;

	for (int i = 0; i < 4; i++)
		sample(&object[i], 10);
	sp_thread.generation = 0;
	sp_recorder_free(&object[0]);
	sp_thread.generation = 1;
	sp_thread.index = 2;
	sp_recorder_free(&object[1]);
	sp_thread.index = 1;
	sp_thread.suspended = 1;
	sp_recorder_free(&object[2]);
	sp_thread.suspended = 0;
	sp_thread.remaining = SP_SUSPENDED - 5;
	sp_recorder_free(&object[3]);
	p = load();
	assert_int_equal(p->n_samples, 4);
	for (int i = 0; i < 4; i++) {
		assert_true(p->samples[i].freed_ns != SP_NEVER);
		assert_true(p->samples[i].age_bytes == SP_UNKNOWN);
	}
	assert_true(p->samples[0].freed_by == UINT32_MAX);
	assert_true(p->samples[2].freed_by == p->samples[2].thread);
}

/* What could not be freed is alive as before, with its old id. */
TEST_BETWEEN(cancel, begin, end)
{
	struct sp_recorder_end tried;
	struct sp_profile *p;

	sample(object, 10);
	sp_recorder_free_begin(object, &tried);
	assert_false(sp_filter_may_have(object));
	sp_recorder_free_cancel(object, &tried);
	assert_true(sp_filter_may_have(object));
	p = load();
	assert_true(p->samples[0].freed_ns == SP_NEVER);
	sp_recorder_free(object);
	p = load();
	assert_int_equal(p->n_samples, 1);
	assert_true(p->samples[0].freed_ns != SP_NEVER);
	assert_int_equal(p->samples[0].age_bytes, 0);
	/* For what is no sample both are nothing. */
	sp_recorder_free_begin(&object[9], &tried);
	sp_recorder_free_commit(&tried);
	sp_recorder_free_cancel(&object[9], &tried);
	assert_false(sp_filter_may_have(&object[9]));
}

/* An address that comes back was freed unseen. */
TEST_BETWEEN(missed, begin, end)
{
	struct sp_profile *p;

	sample(object, 10);
	sample(object, 20);
	assert_int_equal(losses(SP_LOSS_FREE_MISSED), 1);
	p = load();
	assert_int_equal(p->n_samples, 2);
	assert_true(p->samples[0].freed_ns != SP_NEVER);
	assert_true(p->samples[0].free_missed);
	assert_true(p->samples[1].freed_ns == SP_NEVER);
	sp_recorder_free(object);
}

/* Nowhere to write: counted; and what has no record is not in the live set. */
TEST_BETWEEN(no_lane, begin, end)
{
	struct sp_lane *lanes[SP_LANES], *last;
	uint8_t hint = 0;
	size_t n = 0;

	sample(&object[0], 10);
	while ((lanes[n] = sp_lane_take(&hint)))
		n++;
	sp_recorder_free(&object[0]);
	assert_int_equal(losses(SP_LOSS_FREE_DROPPED), 1);
	sample(&object[1], 10);
	assert_int_equal(losses(SP_LOSS_NO_LANE), 1);
	assert_false(sp_filter_may_have(&object[1]));
	/* What is said once of the process: those that have the lanes may be
	 * stopped. */
	last = sp_lane_take_for_fact(&hint);
	sp_recorder_describe_end(&sp_thread, false);
	assert_int_equal(losses(SP_LOSS_RECORD_DROPPED), 1);
	sp_lane_give(last);
	sp_recorder_describe_end(&sp_thread, true);
	while (n)
		sp_lane_give(lanes[--n]);
	assert_int_equal(losses(SP_LOSS_RECORD_DROPPED), 1);
	assert_non_null(sp_profile_info(load(), "detached_ns"));
	assert_int_equal(sp_thread.writing, 0);
}

/* A free that was under way when the profile ended, by whose end the object was
 * there, is no loss: also while a thread still has a lane. */
TEST_BETWEEN(after_the_end, begin, end)
{
	struct sp_lane *lane;
	uint8_t hint = 0;

	sample(&object[0], 10);
	sample(&object[1], 10);
	lane = sp_lane_take(&hint);
	assert_false(sp_lane_close());
	sp_recorder_free(&object[0]);
	sp_lane_give(lane);
	assert_true(sp_lane_close());
	sp_recorder_free(&object[1]);
	assert_int_equal(losses(SP_LOSS_FREE_DROPPED), 0);
	sp_lane_open();
	sample(&object[2], 10);
	sp_recorder_free(&object[2]);
	assert_int_equal(losses(SP_LOSS_FREE_DROPPED), 0);
}

/* Of its parent's objects a child records nothing, and counts no loss.  Behind
 * the others: generations only grow. */
TEST_BETWEEN(other_generation, begin, end)
{
	struct sp_profile *p;
	uint64_t before;

	sample(&object[0], 10);
	sample(&object[1], 10);
	before = agent_fixture_losses();
	atomic_store(&process.generation, 2);
	sp_thread.generation = 2;
	sp_recorder_free(&object[0]);
	sample(&object[1], 20);
	p = load();
	assert_int_equal(p->n_samples, 3);
	assert_true(p->samples[0].freed_ns == SP_NEVER);
	assert_true(p->samples[1].freed_ns == SP_NEVER);
	assert_int_equal(losses(SP_LOSS_FREE_MISSED), 0);
	assert_int_equal(losses(SP_LOSS_FREE_DROPPED), 0);
	assert_in_range(agent_fixture_losses(), before, before + 1);
	sp_recorder_free(&object[1]);
}

/* Resident memory, unless it is not wanted, and not again within 100 ms. */
TEST_BETWEEN(rss, begin, end)
{
	struct sp_profile *p;

	process.config.rss = SP_CONFIG_RSS_OFF;
	sp_resident_record(&process);
	process.config.rss = 0;
	sp_resident_record(&process);
	sp_resident_record(&process);
	p = load();
	assert_int_equal(p->n_rss, 1);
	assert_in_range(p->rss[0].rss_bytes, 1 << 18, 1ull << 40);
}

/* None where a sandbox may be, in a child neither; that is counted.  The last
 * test: it is for good. */
TEST_BETWEEN(rss_in_sandbox, begin, end)
{
	struct sp_profile *p;

	sp_sys_forbid_files();
	atomic_store(&process.generation, 3);
	sp_resident_record(&process);
	atomic_store(&process.generation, 4);
	sp_resident_record(&process);
	p = load();
	assert_int_equal(p->n_rss, 0);
	assert_int_equal(losses(SP_LOSS_RSS), 2);
}

TEST_MAIN(begin_all, agent_fixture_end)
