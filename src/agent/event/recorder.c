/* SPDX-License-Identifier: MIT */
/*
 * I1  An object is in the live set only if its SAMPLE record was written, so
 *     that each FREE record has its sample.
 * I2  Entries of another generation are the parent's: nothing is recorded, and
 *     no loss counted, about them.
 * I3  `writing` is not zero while a free is being recorded: a child that is
 *     forked meanwhile by a signal handler lets it write into nowhere.
 */
#include "agent/event/recorder.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/event/probes.h"
#include "agent/event/stamp.h"
#include "agent/file/chunks.h"
#include "agent/file/rewrite_live.h"
#include "agent/file/ring.h"
#include "agent/file/slots.h"
#include "agent/file/slots_copy.h"
#include "agent/file/stacktab.h"
#include "agent/file/writer.h"
#include "agent/sys/diag.h"
#include "agent/sys/sys.h"
#include "agent/sys/tid.h"
#include "agent/thread/inside.h"
#include "agent/unwind/lane.h"
#include "agent/unwind/modules.h"

#include "agent/sys/poison.h"

#define ROTATIONS_MAX 4u /* of the ring, while one sample is written */

static struct sp_process *process;
static void (*complete_segment)(void);
static _Atomic uint64_t last_sample;
static _Atomic bool has_said_full;
static _Atomic bool has_said_crowded;

void sp_recorder_init(struct sp_process *of, void (*complete)(void))
{
	process = of;
	complete_segment = complete;
}

static uint32_t fork_count(void)
{
	return atomic_load_explicit(&process->generation, memory_order_relaxed);
}

void sp_recorder_reset(void)
{
	atomic_store(&last_sample, 0);
	sp_rewrite_live_reset();
	atomic_store(&has_said_full, false);
	atomic_store(&has_said_crowded, false);
	/* None: the settings were refused before anything was recorded. */
	if (process && process->follows_frees)
		sp_liveset_reset(fork_count());
}

static uint32_t threads_seen(void)
{
	return atomic_load_explicit(&process->threads, memory_order_relaxed);
}

/* ---- the file ---- */

static void write_fact(void *lane, const char *key, const char *value,
		       uint64_t value_bytes)
{
	sp_writer_info(lane, key, value, value_bytes);
}

static bool make_file(struct sp_lane *lane)
{
	int err = sp_process_open_file(process);

	if (err == -EBUSY)
		return false;
	if (err) {
		process->file_error = err;
		return false;
	}
	sp_process_describe(process, write_fact, lane);
	for (unsigned int i = 0; i < sp_modules_entries(); i++)
		if (sp_modules_get(i)->id)
			sp_writer_module(lane, sp_modules_get(i));
	sp_slots_copy_all();
	sp_writer_publish(threads_seen());
	return true;
}

/* A signal handler that leaves this by siglongjmp would leave the process
 * without a file, or the file without its facts. */
static bool open_file(struct sp_lane *lane)
{
	uint64_t signals;
	bool is_blocked, is_made;

	if (sp_writer_is_open())
		return true;
	if (process->has_no_file || sp_writer_has_failed())
		return false;
	is_blocked = sp_sys_block_signals(&signals);
	is_made = make_file(lane);
	if (is_blocked)
		sp_sys_restore_signals(signals);
	return is_made;
}

bool sp_recorder_open_file(struct sp_thread *t)
{
	struct sp_lane *lane = sp_lane_take(&t->lane_hint);
	bool is_open;

	if (!lane)
		return false;
	is_open = open_file(lane);
	sp_lane_give(lane);
	return is_open;
}

/* NULL: what is missing then is counted. */
static struct sp_lane *take_for_fact(struct sp_thread *t)
{
	struct sp_lane *lane = sp_lane_take_for_fact(&t->lane_hint);

	if (!lane)
		sp_diag_lose(SP_LOSS_RECORD_DROPPED, 1);
	return lane;
}

/* A thread that opens the file at this moment describes the process after the
 * file is open, and we look for the file after `constructed`: one of us, or
 * both, writes the late facts. */
void sp_recorder_describe_late(struct sp_thread *t)
{
	struct sp_lane *lane = take_for_fact(t);

	if (!lane)
		return;
	if (sp_writer_is_open())
		sp_process_describe_late(process, write_fact, lane);
	sp_lane_give(lane);
}

/* What is about samples and their frees; the others are about a file. */
#define PROBE_LOSSES                                                           \
	(1u << SP_LOSS_INIT_RACE | 1u << SP_LOSS_NESTED |                      \
	 1u << SP_LOSS_LIVE_TABLE | 1u << SP_LOSS_FREE_DROPPED |               \
	 1u << SP_LOSS_FREE_MISSED | 1u << SP_LOSS_LEFT |                      \
	 1u << SP_LOSS_PERIOD)

static void say_moment(struct sp_lane *lane, const char *key, uint64_t time_ns)
{
	char digits[24];
	const char *text = sp_diag_decimal(digits, time_ns);

	sp_writer_info(lane, key, text, strlen(text));
}

/* From when on a file that keeps all keeps nothing any more,
 * be it a sample or a free that has no room. */
static void say_full(struct sp_lane *lane, uint64_t time_ns)
{
	if (process->records_all && sp_chunks_is_full() &&
	    !atomic_exchange(&has_said_full, true))
		say_moment(lane, "full_ns", time_ns);
}

void sp_recorder_describe_end(struct sp_thread *t, bool is_detached)
{
	struct sp_lane *lane;

	if (process->has_no_file && !process->is_sandboxed)
		sp_diag_say_losses(PROBE_LOSSES);
	lane = take_for_fact(t);
	if (!lane)
		return;
	if (sp_writer_is_open() && is_detached)
		say_moment(lane, "detached_ns", sp_writer_time());
	if (sp_writer_is_open() && !process->is_sandboxed)
		sp_process_describe_end(write_fact, lane);
	sp_lane_give(lane);
}

void sp_recorder_crowded(void)
{
	struct sp_lane *lane;

	if (atomic_exchange(&has_said_crowded, true))
		return;
	lane = take_for_fact(&sp_thread);
	if (!lane)
		return;
	say_moment(lane, "crowded_ns", sp_writer_time());
	sp_lane_give(lane);
}

/* ---- records of any thread at any time ---- */

bool sp_recorder_append(const struct sp_record *record)
{
	struct sp_thread *t = &sp_thread;
	struct sp_lane *lane;
	bool written = false, is_at_rest;
	volatile uint32_t mark;

	sp_inside_begin(&mark);
	t->writing++;
	atomic_signal_fence(memory_order_seq_cst);
	lane = sp_lane_take(&t->lane_hint);
	is_at_rest = sp_ring_at_rest();
	if (lane) {
		written = sp_writer_append(lane, record);
		if (!written && record->type == SP_RECORD_FREE_ADDRESS)
			say_full(lane, record->u.free_address.time_ns);
		/* A program may free for long without an event. */
		if (!is_at_rest && sp_writer_is_open())
			sp_rewrite_live_step(lane);
		sp_lane_give(lane);
	}
	if (!is_at_rest && !t->suspended && sp_rewrite_live_finished())
		complete_segment();
	atomic_signal_fence(memory_order_seq_cst);
	t->writing--;
	sp_inside_end(&mark);
	return written;
}

bool sp_recorder_mark(struct sp_thread *t, const struct sp_record_mark *mark)
{
	struct sp_record r = {.type = SP_RECORD_MARK, .u.mark = *mark};

	if (process->has_no_file)
		return true;
	return sp_recorder_open_file(t) && sp_recorder_append(&r);
}

void sp_recorder_asked(const struct sp_record_asked *asked)
{
	struct sp_record r = {.type = SP_RECORD_ASKED, .u.asked = *asked};

	if (!sp_recorder_append(&r))
		sp_diag_lose(SP_LOSS_RECORD_DROPPED, 1);
}

void sp_recorder_thread_end(struct sp_thread *t)
{
	struct sp_record r = {.type = SP_RECORD_THREAD_END};
	char name[SP_FORMAT_THREAD_NAME_MAX];

	sp_slots_name(t->slot, name);
	r.u.thread_end = (struct sp_record_thread_end){
		t->index, sp_writer_time(), t->bytes, t->objects,
		name,     strlen(name),
	};
	if (!sp_recorder_append(&r))
		sp_diag_lose(SP_LOSS_RECORD_DROPPED, 1);
}

/* ---- the end of a sample ---- */

/* Bytes that the calling thread has allocated; false if that cannot be told in
 * the middle of an event. */
static bool clock_of(const struct sp_thread *t, uint64_t *ret)
{
	uint64_t word = *(const volatile uint64_t *)&t->remaining;

	*ret = t->bytes + (t->limit - word);
	return !t->suspended && word - SP_SUSPENDED / 2 > SP_SUSPENDED;
}

/* One that was under way when the profile ended is none of its frees: at its
 * end the object was still there. */
static void lose_free(void)
{
	if (!sp_lane_is_closed())
		sp_diag_lose(SP_LOSS_FREE_DROPPED, 1);
}

static void record_end(const struct sp_recorder_end *end, uint64_t flags)
{
	struct sp_record r = {.type = SP_RECORD_FREE};

	sp_probes_free(end->p);
	if (process->has_no_file)
		return;
	r.u.free = (struct sp_record_free){
		.id = end->live.id,
		.time_ns = end->time_ns,
		.thread = end->thread,
		.flags = flags,
		.has_age = end->has_age,
		.age_bytes = end->age_bytes,
	};
	if (!sp_recorder_append(&r) && end->live.generation == fork_count())
		lose_free();
}

/* Before anything of the process is known, and in a child of it that was not
 * noticed yet, there is no file to write to. */
static bool records_all_frees(void)
{
	return process && process->records_all;
}

static bool has_been_full(void)
{
	return atomic_load_explicit(&has_said_full, memory_order_relaxed);
}

static void record_address(const void *p, uint64_t time_ns)
{
	const struct sp_thread *t = &sp_thread;
	struct sp_record r = {.type = SP_RECORD_FREE_ADDRESS};

	sp_modules_freed((uintptr_t)p);
	if (!p || sp_process_is_new(process))
		return;
	sp_probes_free(p);
	if (!sp_writer_is_open())
		return;
	r.u.free_address = (struct sp_record_free_address){
		.address = (uintptr_t)p,
		.time_ns = time_ns,
		.thread = t->generation == fork_count() ? t->index : 0,
	};
	if (has_been_full() || !sp_recorder_append(&r))
		lose_free();
}

/* Most frees that the filter does not settle. */
static bool is_of_no_sample(const void *p)
{
	return !records_all_frees() && !sp_liveset_may_have(p);
}

static void begin_end(const void *p, struct sp_recorder_end *end)
{
	const struct sp_thread *t = &sp_thread;
	uint64_t clock;

	*end = (struct sp_recorder_end){.p = p, .segment = sp_ring_at_rest()};
	if (records_all_frees()) {
		end->is_by_address = true;
		end->time_ns = sp_stamp_free();
		return;
	}
	if (!sp_liveset_take(p, &end->live))
		return;
	end->is_sample = true;
	end->time_ns = sp_writer_time();
	if (t->generation != end->live.generation)
		return;
	end->thread = t->index;
	/* What the set has of a clock is ambiguous beyond that. */
	if (end->live.thread == t->index && clock_of(t, &clock) &&
	    !(clock >> SP_LIVESET_CLOCK_BITS) &&
	    clock >= end->live.clock_bytes) {
		end->has_age = true;
		end->age_bytes = clock - end->live.clock_bytes;
	}
}

void sp_recorder_free_begin(const void *p, struct sp_recorder_end *end)
{
	if (is_of_no_sample(p))
		*end = (struct sp_recorder_end){.p = p};
	else
		begin_end(p, end);
}

void sp_recorder_free_commit(const struct sp_recorder_end *end)
{
	if (end->is_by_address)
		record_address(end->p, end->time_ns);
	else if (end->is_sample && end->live.generation == fork_count())
		record_end(end, 0);
}

static void record_missed_free(const void *p, const struct sp_live *old)
{
	struct sp_recorder_end end = {
		.p = p, .live = *old, .time_ns = sp_writer_time()};

	if (old->generation != fork_count())
		return;
	sp_diag_lose(SP_LOSS_FREE_MISSED, 1);
	record_end(&end, SP_FREE_MISSED);
}

static void insert_sample(const void *p, const struct sp_live *live)
{
	struct sp_live old;

	switch (sp_liveset_insert(p, live, &old)) {
	case SP_LIVESET_ADDED:
		break;
	case SP_LIVESET_REPLACED:
		record_missed_free(p, &old);
		break;
	case SP_LIVESET_FULL:
		sp_diag_lose(SP_LOSS_LIVE_TABLE, 1);
		break;
	}
}

void sp_recorder_free_cancel(const void *p, const struct sp_recorder_end *end)
{
	if (!end->is_sample)
		return;
	insert_sample(p, &end->live);
	/* A pass that came by meanwhile took it for dead. */
	if (end->live.generation == fork_count() &&
	    (!end->segment || end->segment != sp_ring_at_rest()))
		sp_diag_lose(SP_LOSS_FILE_FULL, 1);
}

/* Not inline: it has a frame that most frees need not have. */
static __attribute__((noinline)) void free_sample(const void *p)
{
	struct sp_recorder_end end;
	int saved_errno = errno;

	begin_end(p, &end);
	sp_recorder_free_commit(&end);
	errno = saved_errno;
}

void sp_recorder_free(const void *p)
{
	if (!is_of_no_sample(p))
		free_sample(p);
}

/* ---- a sample ---- */

void sp_recorder_thread(struct sp_thread *t, struct sp_lane *lane)
{
	struct sp_record r = {.type = SP_RECORD_THREAD};
	char name[SP_FORMAT_THREAD_NAME_MAX];

	sp_slots_name(t->slot, name);
	r.u.thread = (struct sp_record_thread){
		t->index, sp_tid_own(), sp_writer_time(), name, strlen(name)};
	if (sp_writer_append(lane, &r))
		t->recorded = sp_chunks_thread_mark(t->index);
	else
		sp_diag_lose(SP_LOSS_RECORD_DROPPED, 1);
}

/* The sample with its stack, both in one segment: *ret_segment.  A rotation may
 * come between them. */
static bool append_sample(struct sp_lane *lane,
			  const struct sp_call_frame *frame,
			  struct sp_record *r, uint32_t *ret_segment)
{
	for (unsigned int i = 0; i < ROTATIONS_MAX; i++) {
		const struct sp_stack_place place = sp_stacktab_place(
			lane, (unsigned int)process->config.depth, frame);
		/* Without a stack it is at home anywhere. */
		const uint32_t only = place.id ? place.segment : 0;

		r->u.sample.stack = place.id;
		if (sp_chunks_append_to(lane, r, only)) {
			if (!place.id)
				sp_diag_lose(SP_LOSS_STACK_TABLE, 1);
			*ret_segment = lane->tail.segment;
			return true;
		}
		if (!only || only == sp_ring_segment())
			return false;
	}
	return false;
}

static bool record_sample(struct sp_thread *t, struct sp_lane *lane,
			  const struct sp_event *event, uint64_t id,
			  struct sp_record *r, uint32_t *ret_segment)
{
	if (!open_file(lane)) {
		sp_diag_lose(SP_LOSS_NO_FILE, 1);
		return false;
	}
	if (t->recorded != sp_chunks_thread_mark(t->index))
		sp_recorder_thread(t, lane);
	r->type = SP_RECORD_SAMPLE;
	r->u.sample = (struct sp_record_sample){
		.id = id,
		.time_ns = process->records_all ? sp_stamp_allocation()
						: sp_writer_time(),
		.address = (uintptr_t)event->p,
		.size_bytes = event->size_bytes,
		.offset_bytes = event->offset_bytes,
		.period_bytes = t->sampler.law->period_bytes,
		.thread = t->index,
		.entry = (uint8_t)event->entry,
	};
	if (append_sample(lane, event->frame, r, ret_segment))
		return true;
	sp_diag_lose(SP_LOSS_FILE_FULL, 1);
	say_full(lane, r->u.sample.time_ns);
	sp_writer_publish(threads_seen());
	return false;
}

/* From now on the sample, which is in `segment`, is alive.  If that has ended
 * before, a pass over it may have taken it for dead (rewrite_live.c). */
static void follow_object(struct sp_lane *lane, const struct sp_event *event,
			  const struct sp_live *live, struct sp_record *r,
			  uint32_t segment)
{
	struct sp_liveset_place place;

	insert_sample(event->p, live);
	if (sp_ring_segment() == segment)
		return;
	r->u.sample.is_again = true;
	if (!append_sample(lane, event->frame, r, &segment))
		sp_diag_lose(SP_LOSS_FILE_FULL, 1);
	else if (sp_liveset_is_missing(event->p, live->id, segment, &place))
		sp_liveset_rewritten(&place, segment);
}

/* The sample, and until it is freed that it is one; false: it is lost. */
static bool keep_sample(struct sp_thread *t, const struct sp_event *event,
			const struct sp_live *live)
{
	struct sp_lane *lane;
	struct sp_record r;
	uint32_t segment;
	bool is_kept;

	if (process->has_no_file) {
		if (process->follows_frees)
			insert_sample(event->p, live);
		return true;
	}
	lane = sp_lane_take(&t->lane_hint);
	if (!lane) {
		sp_diag_lose(SP_LOSS_NO_LANE, 1);
		return false;
	}
	if (process->follows_frees)
		sp_liveset_prefetch(event->p);
	is_kept = record_sample(t, lane, event, live->id, &r, &segment);
	if (is_kept && process->follows_frees)
		follow_object(lane, event, live, &r, segment);
	/* Without room, too: it makes some. */
	if (sp_writer_is_open())
		sp_rewrite_live_step(lane);
	sp_lane_give(lane);
	return is_kept;
}

void sp_recorder_sample(struct sp_thread *t, const struct sp_event *event)
{
	const struct sp_live live = {
		.id = 1 + atomic_fetch_add_explicit(&last_sample, 1,
						    memory_order_relaxed),
		.clock_bytes = t->bytes,
		.thread = t->index,
		.generation = t->generation,
	};

	if (has_been_full())
		sp_diag_lose(SP_LOSS_FILE_FULL, 1);
	else if (keep_sample(t, event, &live))
		sp_probes_alloc(event->p, event->size_bytes, t->sampler.law,
				process->seed + live.id);
}
