/* SPDX-License-Identifier: MIT */
/*
 * The life of a process under the agent: what wires the modules together.
 *
 * A process goes through: nothing known (the loader allocates) -> started (the
 * environment is there: settings, modules, seed, file) -> constructed (thread
 * and fork handlers are in place).  Allocations before "started" are the
 * loader's own and are not counted; from then on all are counted and sampled,
 * before and after main.
 *
 * I1  While a thread is suspended its allocations pass through, unsampled. Only
 *     the agent's own calls and signal handlers that interrupt it can be meant,
 *     unless it has left the agent by siglongjmp: that is noticed (inside.h).
 * I2  The generation changes in a forked child, before anything else is done
 *     there; a thread whose state has another generation is set up again.
 */
#include "agent/event/agent.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "agent/event/look.h"
#include "agent/event/maps.h"
#include "agent/event/marks.h"
#include "agent/event/recorder.h"
#include "agent/event/recover.h"
#include "agent/event/remote.h"
#include "agent/event/resident.h"
#include "agent/file/mapping.h"
#include "agent/file/names.h"
#include "agent/file/slots.h"
#include "agent/file/stack.h"
#include "agent/file/writer.h"
#include "agent/process/sp_process.h"
#include "agent/sampling/checkin.h"
#include "agent/sampling/period.h"
#include "agent/sampling/suspend.h"
#include "agent/sys/diag.h"
#include "agent/sys/export.h"
#include "agent/sys/hooks.h"
#include "agent/sys/next.h"
#include "agent/sys/sys.h"
#include "agent/thread/inside.h"
#include "agent/thread/size_counts.h"
#include "agent/thread/thread.h"
#include "agent/unwind/lane.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/stack_bounds.h"

#include "agent/sys/poison.h"

/* Threads begin like this: see I4 of thread.h. */
_Thread_local struct sp_thread sp_thread = {.counts = sp_size_counts_voids};

/* ENDED: as NOTHING, and only attaching begins it again. */
enum { NOTHING, STARTING, RUNNING, OFF, ENDED };

static _Atomic int phase;

static uint32_t fork_count(void)
{
	return atomic_load_explicit(&sp_process.generation,
				    memory_order_relaxed);
}

static uint32_t threads_seen(void)
{
	return atomic_load_explicit(&sp_process.threads, memory_order_relaxed);
}

/* ---- one thread ---- */

static bool publishes_each_call(const struct sp_thread *t)
{
	return t->ended || atomic_load_explicit(&sp_process.is_ending,
						memory_order_relaxed);
}

/* The next allocation is an event: it is published, or the first of a child
 * that was forked in here. */
static bool must_come_back(const struct sp_thread *t)
{
	return publishes_each_call(t) || t->generation != fork_count();
}

static void resume_sampling(struct sp_thread *t, const volatile uint32_t *mark)
{
	sp_suspend_end(t, mark, must_come_back);
}

static bool is_sampling(const struct sp_thread *t)
{
	return t->sampler.law != &sp_period_off;
}

static void publish_totals(struct sp_thread *t)
{
	/* Read once: a signal handler may count an object at any time. */
	uint64_t bytes = t->bytes;
	uint64_t objects = t->paused ? t->published_objects
				     : *(volatile uint64_t *)&t->objects;

	/* In a child that was forked in here the totals are the parent's. */
	if (t->generation != fork_count())
		return;
	sp_slots_add(t->slot, bytes - t->published_bytes,
		     objects - t->published_objects);
	t->published_bytes = bytes;
	t->published_objects = objects;
	if (publishes_each_call(t))
		sp_slots_flush_size_counts(t->slot);
	if (!is_sampling(t) && !sp_writer_is_open())
		sp_recorder_open_file(t);
	sp_writer_publish(threads_seen());
	sp_resident_record(&sp_process);
	sp_inside_watch_end(t);
}

/* Another period is in force, or none: what was allocated so far counts as
 * before, and the gap is drawn anew. */
static void follow_rate(struct sp_thread *t)
{
	const struct sp_law *law = sp_period_law();

	if (t->sampler.law == law || t->generation != fork_count())
		return;
	publish_totals(t);
	sp_sampler_change(&t->sampler, law);
	if (t->slot)
		sp_slots_set_sampling(t->slot, is_sampling(t));
}

/* Set the calling thread up for this sp_process.  It is suspended. */
static void attach_thread(struct sp_thread *t)
{
	const size_t kept = offsetof(struct sp_thread, objects);
	const volatile uint32_t *inside = t->inside;
	uint8_t writing = t->writing;
	bool ended = t->ended, paused = t->paused;
	struct sp_size_counts *counts;

	t->counts = sp_size_counts_void(t);
	memset((char *)t + kept, 0, sizeof(*t) - kept);
	t->suspended = 1;
	t->inside = inside;
	t->writing = writing;
	t->ended = ended;
	t->paused = paused;
	/* Nothing was counted yet. */
	sp_thread_take_used();
	t->index = 1 + atomic_fetch_add_explicit(&sp_process.threads, 1,
						 memory_order_relaxed);
	sp_sampler_begin(&t->sampler, sp_period_law(), sp_process.seed,
			 fork_count(), t->index);
	t->slot = sp_slots_claim(t->index);
	counts = sp_slots_size_counts(t->slot);
	if (counts && !paused)
		t->counts = counts;
	if (t->slot)
		sp_slots_set_sampling(t->slot, is_sampling(t));
	sp_checkin_begin(t);
	/* Last: a handler may leave by siglongjmp before. */
	t->generation = fork_count();
	sp_inside_watch_end(t);
}

/* Bytes that were counted up to now. */
static void settle_bytes(struct sp_thread *t, uint64_t used)
{
	t->bytes += used;
	sp_sampler_skip(&t->sampler, used);
}

/* See sp_recover_left. */
static void recover_thread(const struct sp_thread *t)
{
	sp_recover_left(t->generation == fork_count());
}

/* Is the thread in an event that goes on, which a signal handler interrupted
 * that calls now?  If it has left one, that is made good. */
static inline bool is_in_event(const struct sp_thread *t,
			       volatile uint32_t *mark,
			       const struct sp_call_frame *from)
{
	return (t->inside || t->suspended) &&
	       sp_recover_is_in_event(mark, from,
				      t->generation == fork_count());
}

/* Not counting, or not yet: with this countdown all allocations pass. */
static void rest_thread(struct sp_thread *t, uint64_t countdown)
{
	t->counts = sp_size_counts_void(t);
	sp_thread_set_countdown(countdown);
	sp_thread_take_used();
	t->suspended = 0;
	t->inside = NULL;
}

/* The last time that this thread runs one of its destructors: what it still
 * allocates afterwards is published call by call. */
static void thread_ends(void *arg)
{
	struct sp_thread *t = arg;
	volatile uint32_t mark;
	uint64_t used;
	int saved_errno = errno;

	if (atomic_load(&phase) == ENDED)
		return;
	/* Whatever it was in the middle of it does not come back to. */
	if (t->inside || t->suspended)
		recover_thread(t);
	used = sp_suspend_begin(t, &mark);
	if (atomic_load(&phase) == ENDED || sp_process_is_new(&sp_process)) {
		/* All that an unannounced child has done is to end. */
		rest_thread(t, SP_SUSPENDED);
		return;
	}
	settle_bytes(t, used);
	publish_totals(t);
	sp_remote_poll(t);
	sp_slots_flush_size_counts(t->slot);
	if (t->recorded)
		sp_recorder_thread_end(t);
	t->counts = sp_size_counts_void(t);
	t->slot = sp_slots_release(t->slot);
	t->ended = 1;
	resume_sampling(t, &mark);
	errno = saved_errno;
}

/* ---- one process ---- */

/* Create the file now rather than with the first sample: the process that was
 * started under us always leaves one. */
static void open_early(struct sp_thread *t)
{
	if (sp_recorder_open_file(t) || !sp_process.file_error)
		return;
	sp_process_explain_file(&sp_process);
	atomic_store(&phase, OFF);
}

/* From "nothing known" to "started", once the settings are there, which stand
 * in the environment. */
static void start_process(struct sp_thread *t, char *const *settings)
{
	int expected = NOTHING;

	if (!settings ||
	    !atomic_compare_exchange_strong(&phase, &expected, STARTING))
		return;
	if (!sp_process_init(&sp_process, settings)) {
		atomic_store(&phase, OFF);
		return;
	}
	sp_recorder_init(&sp_process, sp_marks_complete);
	sp_maps_init(&sp_process);
	sp_names_begin_program(sp_process.exe_path);
	if (sp_process.attached.is_it)
		sp_modules_init_running(sp_process.exe_path);
	else
		sp_modules_init(sp_process.exe_path);
	sp_stack_bounds_init(environ, sp_process.attached.main_thread);
	if (sp_process.config.unwind == SP_CONFIG_UNWIND_FP)
		sp_stack_follow_pointers();
	atomic_store_explicit(&phase, RUNNING, memory_order_release);
	attach_thread(t);
	if (sp_process.is_root || !is_sampling(t))
		open_early(t);
}

/* All that is of one profile. */
static void forget_profile(void)
{
	atomic_fetch_add(&sp_process.generation, 1);
	sp_agent_reset_records();
	atomic_store(&sp_process.threads, 0);
	atomic_store(&sp_process.is_ending, false);
}

/* Begin anew, with a file of its own.  The thread that calls is the only one.
 */
static void begin_child(struct sp_thread *t)
{
	char name[SP_FORMAT_THREAD_NAME_MAX];

	sp_slots_name(t->slot, name);
	sp_names_begin(name);
	forget_profile();
	sp_process_reseed(&sp_process);
	if (!sp_process.follows_forks)
		atomic_store(&phase, OFF);
	t->ended = 0;
	t->generation = 0;
}

static void after_fork_in_child(void)
{
	struct sp_thread *t = &sp_thread;
	volatile uint32_t mark;

	/* Another library's handler may have come first, and allocated. */
	if (atomic_load(&phase) != RUNNING ||
	    (sp_process.alive && !sp_process_is_new(&sp_process)))
		return;
	if (is_in_event(t, &mark, NULL) || t->writing) {
		/* A signal handler forked while it interrupted the agent, which
		 * will go on in this child: let it write into nowhere, and
		 * begin anew with the next event. */
		sp_writer_detach();
		begin_child(t);
		if (!t->suspended)
			sp_thread_swap(0);
	} else {
		sp_suspend_begin(t, &mark);
		begin_child(t);
		attach_thread(t);
		resume_sampling(t, &mark);
	}
	sp_process_mark_seen(&sp_process);
}

/* A child that no handler announced (clone, _Fork): the bytes since the fork
 * cannot be told from those before it. */
static void notice_child(struct sp_thread *t)
{
	if (!sp_process_is_new(&sp_process))
		return;
	begin_child(t);
	sp_process_mark_seen(&sp_process);
	sp_diag_lose(SP_LOSS_FORK_RESET, 1);
}

/* ---- one allocation ---- */

/* From any state of the process to one in which the allocation is counted;
 * false: it is not.  The thread is suspended; *used is what it has used. */
static bool make_ready(struct sp_thread *t, uint64_t *used)
{
	const int now = atomic_load_explicit(&phase, memory_order_acquire);
	bool is_new = false;

	if (now != RUNNING) {
		if (now == STARTING)
			sp_diag_lose(SP_LOSS_INIT_RACE, 1);
		start_process(t, environ);
		is_new = true;
	}
	if (sp_agent_is_running())
		notice_child(t);
	if (!sp_agent_is_running()) {
		rest_thread(t, atomic_load(&phase) == OFF ? SP_SUSPENDED : 0);
		return false;
	}
	if (t->generation != fork_count()) {
		attach_thread(t);
		is_new = true;
	}
	if (is_new)
		*used = 0; /* nothing was counted yet */
	return true;
}

/* Aligned: a program that calls with a stack that is not gets here, and what
 * others compiled (the loader) stores vectors on it. */
SP_ARCH_ALIGNED void sp_agent_count(void *p, uint64_t n, enum sp_entry entry,
				    const struct sp_call_frame *frame)
{
	struct sp_thread *t = &sp_thread;
	uint64_t size = n ? n : 1;
	struct sp_event event;
	volatile uint32_t mark;
	int saved_errno = errno;
	uint64_t used;

	if (is_in_event(t, &mark, frame)) {
		sp_inside_pass(n);
		return;
	}
	if (t->paused) {
		/* Only a request beyond 2^61 bytes gets here. */
		t->remaining = SP_SUSPENDED;
		return;
	}
	used = sp_suspend_begin(t, &mark);
	if (!make_ready(t, &used)) {
		errno = saved_errno;
		return;
	}
	event = (struct sp_event){p, size, 0, entry, frame};
	t->bytes += used + size;
	if (sp_sampler_pass(&t->sampler, used, size, &event.offset_bytes)) {
		sp_recorder_sample(t, &event);
		sp_period_charge();
	}
	sp_thread_count_object();
	sp_size_counts_count(t->counts, n);
	if (!sp_checkin_left(t)) {
		sp_checkin_choose(t, sp_writer_time());
		publish_totals(t);
	} else if (publishes_each_call(t)) {
		publish_totals(t);
	}
	sp_remote_poll(t);
	sp_marks_adapt(t);
	sp_marks_complete();
	follow_rate(t);
	resume_sampling(t, &mark);
	errno = saved_errno;
}

/* Counts of now, whatever the thread is in the middle of. */
static void go_in(struct sp_thread *t, volatile uint32_t *mark)
{
	uint64_t used = sp_suspend_begin(t, mark);

	notice_child(t);
	if (t->generation != fork_count())
		attach_thread(t);
	else
		settle_bytes(t, used);
}

bool sp_agent_is_running(void)
{
	return atomic_load(&phase) == RUNNING;
}

bool sp_agent_enter(volatile uint32_t *mark)
{
	struct sp_thread *t = &sp_thread;

	if (!sp_agent_is_running() || is_in_event(t, mark, NULL))
		return false;
	go_in(t, mark);
	return true;
}

void sp_agent_publish(void)
{
	publish_totals(&sp_thread);
}

void sp_agent_leave(const volatile uint32_t *mark)
{
	sp_remote_poll(&sp_thread);
	follow_rate(&sp_thread);
	resume_sampling(&sp_thread, mark);
}

void sp_agent_enter_sandbox(void)
{
	volatile uint32_t mark;

	sp_process.is_sandboxed = true;
	if (!sp_agent_enter(&mark))
		return;
	sp_recorder_open_file(&sp_thread);
	sp_agent_leave(&mark);
}

/* ---- before main and after exit ---- */

/* The size counts have it all.  Without a page that the kernel wipes this may
 * be a child that has not noticed: its parent's file is not mapped in it. */
void sp_agent_leaving(bool is_exec)
{
	int saved_errno = errno;

	if (sp_agent_is_running() && sp_process.alive &&
	    !sp_process_is_new(&sp_process)) {
		sp_look_at_end(&sp_process, is_exec, true);
		sp_slots_flush_all_size_counts();
		sp_writer_leave(threads_seen(), is_exec);
	}
	errno = saved_errno;
}

/* What needs a process past its start, and this thread in the agent. */
static void finish_start(struct sp_thread *t)
{
	/* What is allocated meanwhile is ours. */
	struct sp_inside_pause pause = sp_inside_pause_counting();

	sp_hooks_install(after_fork_in_child, thread_ends);
	sp_remote_listen(&sp_process);
	sp_inside_watch_end(t);
	atomic_store(&sp_process.constructed, true);
	sp_recorder_describe_late(t);
	sp_inside_resume_counting(&pause);
}

/* Only glibc gives arguments to constructors. */
static void __attribute__((constructor)) construct(void)
{
	struct sp_thread *t = &sp_thread;
	volatile uint32_t mark;
	int saved_errno = errno;

	if (!sp_next_resolve())
		return;
	if (sp_agent_is_running()) {
		go_in(t, &mark);
	} else {
		sp_suspend_begin(t, &mark);
		start_process(t, environ);
	}
	if (!sp_agent_is_running()) {
		rest_thread(t, atomic_load(&phase) == OFF ? SP_SUSPENDED : 0);
		return;
	}
	sp_process_explain_bypass(&sp_process);
	finish_start(t);
	resume_sampling(t, &mark);
	errno = saved_errno;
}

static void end_profile(struct sp_thread *t, bool may_go_on)
{
	volatile uint32_t mark;

	/* A handler that exits does not go back to what it interrupted. */
	if (t->inside || t->suspended)
		recover_thread(t);
	go_in(t, &mark);
	sp_remote_poll(t);
	publish_totals(t);
	sp_look_at_end(&sp_process, !may_go_on, false);
	sp_marks_end(t);
	sp_maps_finish();
	sp_recorder_describe_end(t);
	/* Other threads publish each call, as soon as they have an event. */
	atomic_store(&sp_process.is_ending, true);
	if (may_go_on)
		sp_diag_lose(SP_LOSS_AFTER_EXIT,
			     sp_slots_unseen(t->slot, SP_CHECKIN_BYTES_MAX));
	sp_slots_flush_all();
	sp_slots_flush_all_size_counts();
	sp_writer_end(threads_seen(), may_go_on && !sp_process.is_sandboxed);
	resume_sampling(t, &mark);
}

static void __attribute__((destructor)) destruct(void)
{
	if (sp_agent_is_running())
		end_profile(&sp_thread, true);
}

/* ---- a program that was running before ---- */

int sp_agent_begin_attached(const struct sp_process_attached *attached,
			    char *const *settings)
{
	struct sp_thread *t = &sp_thread;
	volatile uint32_t mark;
	int now = atomic_load(&phase);

	if (now != NOTHING && now != ENDED)
		return -EBUSY;
	sp_process.attached = *attached;
	sp_process.constructed = false;
	sp_lane_open();
	atomic_store(&phase, NOTHING);
	sp_suspend_begin(t, &mark);
	start_process(t, settings);
	if (sp_agent_is_running()) {
		finish_start(t);
		resume_sampling(t, &mark);
		return 0;
	}
	rest_thread(t, 0);
	atomic_store(&phase, ENDED);
	forget_profile();
	return sp_process.file_error ? sp_process.file_error : -EINVAL;
}

bool sp_agent_stop(void)
{
	if (sp_agent_is_running()) {
		end_profile(&sp_thread, false);
		atomic_store(&phase, ENDED);
		return true;
	}
	return atomic_load(&phase) == ENDED && sp_process.constructed;
}

void sp_agent_forget(void)
{
	sp_writer_end(threads_seen(), !sp_process.is_sandboxed);
	sp_mapping_unmap();
	sp_process.constructed = false;
	forget_profile();
	sp_sys_wipe();
	sp_process_mark_seen(&sp_process);
}
