/* SPDX-License-Identifier: MIT */
/*
 * The life of a process under the agent, and the way of an allocation through
 * it.  The one file that wires the modules together.
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

#include "agent/event/checkin.h"
#include "agent/event/marks.h"
#include "agent/event/remote.h"
#include "agent/event/process.h"
#include "agent/event/period.h"
#include "agent/event/recorder.h"
#include "agent/event/recover.h"
#include "agent/file/names.h"
#include "agent/file/slots.h"
#include "agent/file/stack.h"
#include "agent/file/stacktab.h"
#include "agent/file/writer.h"
#include "agent/sys/diag.h"
#include "agent/sys/export.h"
#include "agent/sys/hooks.h"
#include "agent/sys/next.h"
#include "agent/thread/size_counts.h"
#include "agent/thread/inside.h"
#include "agent/thread/thread.h"
#include "agent/unwind/lane.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/stack_bounds.h"

#include "agent/sys/poison.h"

/* Threads begin like this: see I4 of thread.h. */
_Thread_local struct sp_thread sp_thread = {.classes = sp_size_counts_voids};

enum { NOTHING, STARTING, RUNNING, OFF };

static _Atomic int phase;
static _Atomic int ending; /* the process is past our destructor */
static struct sp_process process;

static uint32_t fork_count(void)
{
	return atomic_load_explicit(&process.generation, memory_order_relaxed);
}

static uint32_t threads_seen(void)
{
	return atomic_load_explicit(&process.threads, memory_order_relaxed);
}

/* ---- one thread ---- */

/* Keep the word away from allocations made while the agent works.  Returns
 * bytes that were counted since the last event, to be added; 0 while paused.
 * `mark` is in the frame of the caller, which resumes sampling. */
static uint64_t suspend_sampling(struct sp_thread *t, volatile uint32_t *mark)
{
	sp_inside_begin(mark);
	t->suspended = 1;
	atomic_signal_fence(memory_order_seq_cst);
	if (t->paused)
		return 0;
	sp_thread_set_countdown(SP_THREAD_ROOM);
	return sp_thread_take_used();
}

static bool publishes_each_call(const struct sp_thread *t)
{
	return t->ended || atomic_load_explicit(&ending, memory_order_relaxed);
}

/*
 * The word until the next event: the next sample, the next check-in, or the
 * next allocation if each is to be published.
 *
 * A signal handler that interrupted the agent may have allocated: that passed
 * unsampled and counted its objects, and its bytes went off the suspended word.
 * They take no part in the sampling.  One that comes between the new word and
 * resuming leaves a word of its own, so the word is restored again.
 */
static void restore_word(struct sp_thread *t)
{
	uint64_t pending, limit;

	do {
		t->suspended = 1;
		atomic_signal_fence(memory_order_seq_cst);
		limit = sp_checkin_left(t);
		if (t->sampler.gap < limit)
			limit = t->sampler.gap;
		/* In a child that was forked in here: begin anew. */
		if (publishes_each_call(t) || t->generation != fork_count())
			limit = 0;
		sp_thread_set_countdown(limit);
		pending = sp_thread_take_used();
		if (pending) {
			t->bytes += pending;
			t->looks = 0;
			sp_diag_lose(SP_LOSS_NESTED, 1);
		}
		t->suspended = 0;
		atomic_signal_fence(memory_order_seq_cst);
	} while (*(volatile uint64_t *)&t->remaining > limit);
}

static void resume_sampling(struct sp_thread *t, const volatile uint32_t *mark)
{
	/* What passed in here while paused goes on passing. */
	if (!t->paused)
		restore_word(t);
	atomic_signal_fence(memory_order_seq_cst);
	t->suspended = 0;
	sp_inside_end(mark);
}

/* Have thread_ends called when this thread exits.  Threads older than our
 * constructor get here at their next check-in. */
static void watch_end(struct sp_thread *t)
{
	struct sp_inside_pause pause;

	if (t->watched || t->ended)
		return;
	/* Beyond the 32nd key the C library allocates for that. */
	pause = sp_inside_pause_counting();
	t->watched = sp_hooks_watch_thread(t);
	sp_inside_resume_counting(&pause);
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
		sp_slots_flush_classes(t->slot);
	if (!is_sampling(t) && !sp_writer_is_open())
		sp_recorder_open_file(t);
	sp_writer_publish(threads_seen());
	sp_recorder_rss();
	watch_end(t);
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

/* Set the calling thread up for this process.  It is suspended. */
static void attach_thread(struct sp_thread *t)
{
	const size_t kept = offsetof(struct sp_thread, objects);
	const volatile uint32_t *inside = t->inside;
	uint8_t writing = t->writing;
	bool ended = t->ended, paused = t->paused;
	struct sp_size_counts *classes;

	t->classes = sp_size_counts_void(t);
	memset((char *)t + kept, 0, sizeof(*t) - kept);
	t->suspended = 1;
	t->inside = inside;
	t->writing = writing;
	t->ended = ended;
	t->paused = paused;
	/* Nothing was counted yet. */
	sp_thread_take_used();
	t->index = 1 + atomic_fetch_add_explicit(&process.threads, 1,
						 memory_order_relaxed);
	sp_sampler_begin(&t->sampler, sp_period_law(), process.seed,
			 fork_count(), t->index);
	t->slot = sp_slots_claim(t->index);
	classes = sp_slots_classes(t->slot);
	if (classes && !paused)
		t->classes = classes;
	if (t->slot)
		sp_slots_set_sampling(t->slot, is_sampling(t));
	sp_checkin_begin(t);
	/* Last: a handler may leave by siglongjmp before. */
	t->generation = fork_count();
	watch_end(t);
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

static SP_COLD bool still_in_event(const struct sp_thread *t,
				   volatile uint32_t *mark)
{
	if (!t->inside || sp_inside_was_left(mark))
		recover_thread(t);
	return t->suspended;
}

/* Is the thread in an event that goes on, which a signal handler interrupted
 * that calls now?  If it has left one, that is made good. */
static inline bool is_in_event(const struct sp_thread *t,
			       volatile uint32_t *mark)
{
	return (t->inside || t->suspended) && still_in_event(t, mark);
}

/* Not counting, or not yet: leave the allocations of this thread alone, with
 * that word. */
static void rest_thread(struct sp_thread *t, uint64_t word)
{
	t->classes = sp_size_counts_void(t);
	sp_thread_set_countdown(word);
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

	/* Whatever it was in the middle of it does not come back to. */
	if (t->inside || t->suspended)
		recover_thread(t);
	used = suspend_sampling(t, &mark);
	if (sp_process_is_new(&process)) {
		/* All that an unannounced child has done is to end. */
		rest_thread(t, SP_SUSPENDED);
		return;
	}
	settle_bytes(t, used);
	publish_totals(t);
	sp_remote_poll(t);
	sp_slots_flush_classes(t->slot);
	if (t->recorded)
		sp_recorder_thread_end(t);
	t->classes = sp_size_counts_void(t);
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
	if (sp_recorder_open_file(t) || !process.file_error)
		return;
	/* The name comes last: it may be too long for the line. */
	sp_diag_say("cannot create the profile, running unprofiled: ",
		    sp_diag_errno(-process.file_error), ": ", sp_process_out(),
		    NULL);
	atomic_store(&phase, OFF);
}

/* From "nothing known" to "started", once the environment is there. */
static void start_process(struct sp_thread *t, char *const *environment)
{
	int expected = NOTHING;

	if (!environment ||
	    !atomic_compare_exchange_strong(&phase, &expected, STARTING))
		return;
	if (!sp_process_init(&process, environment)) {
		atomic_store(&phase, OFF);
		return;
	}
	sp_recorder_init(&process);
	sp_names_begin_program(process.exe_path);
	sp_modules_init(process.exe_path);
	sp_stack_bounds_init(environment);
	if (process.config.unwind == SP_CONFIG_UNWIND_FP)
		sp_stack_follow_pointers();
	atomic_store_explicit(&phase, RUNNING, memory_order_release);
	attach_thread(t);
	if (process.is_root || !is_sampling(t))
		open_early(t);
}

/* This is a forked child: begin anew, with a file of its own when it samples.
 * The thread that calls is the only one. */
static void begin_child(struct sp_thread *t)
{
	char name[SP_FORMAT_THREAD_NAME_MAX];

	sp_slots_name(t->slot, name);
	sp_names_begin(name);
	atomic_fetch_add(&process.generation, 1);
	sp_writer_reset();
	sp_lane_reset();
	sp_recorder_reset();
	sp_stacktab_reset();
	sp_modules_reset();
	sp_slots_reset();
	sp_diag_reset();
	sp_marks_reset();
	sp_remote_reset();
	atomic_store(&process.threads, 0);
	atomic_store(&ending, 0);
	sp_process_reseed(&process);
	if (!process.follows_forks)
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
	    (process.alive && !sp_process_is_new(&process)))
		return;
	if (is_in_event(t, &mark) || t->writing) {
		/* A signal handler forked while it interrupted the agent, which
		 * will go on in this child: let it write into nowhere, and
		 * begin anew with the next event. */
		sp_writer_detach();
		begin_child(t);
		if (!t->suspended)
			sp_thread_swap(0);
	} else {
		suspend_sampling(t, &mark);
		begin_child(t);
		attach_thread(t);
		resume_sampling(t, &mark);
	}
	sp_process_mark_seen(&process);
}

/* A child that no handler announced (clone, _Fork): the bytes since the fork
 * cannot be told from those before it. */
static void notice_child(struct sp_thread *t)
{
	if (!sp_process_is_new(&process))
		return;
	begin_child(t);
	sp_process_mark_seen(&process);
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
void __attribute__((force_align_arg_pointer))
sp_agent_count(void *p, uint64_t n, enum sp_entry entry,
	       const struct sp_call_frame *frame)
{
	struct sp_thread *t = &sp_thread;
	uint64_t size = n ? n : 1;
	struct sp_event event;
	volatile uint32_t mark;
	int saved_errno = errno;
	uint64_t used;

	if (is_in_event(t, &mark)) {
		sp_inside_pass(n);
		return;
	}
	if (t->paused) {
		/* Only a request beyond 2^61 bytes gets here. */
		t->remaining = SP_SUSPENDED;
		return;
	}
	used = suspend_sampling(t, &mark);
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
	t->objects++;
	sp_size_counts_count(t->classes, n);
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
	uint64_t used = suspend_sampling(t, mark);

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

	if (!sp_agent_is_running() || is_in_event(t, mark))
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

	process.is_sandboxed = true;
	if (!sp_agent_enter(&mark))
		return;
	sp_recorder_open_file(&sp_thread);
	sp_agent_leave(&mark);
}

/* ---- before main and after exit ---- */

/* The slabs have it all.  Without a page that the kernel wipes this may be a
 * child that has not noticed: its parent's file is not mapped in it. */
void sp_agent_leaving(bool is_exec)
{
	int saved_errno = errno;

	if (sp_agent_is_running() && process.alive &&
	    !sp_process_is_new(&process)) {
		sp_slots_flush_all_classes();
		sp_writer_leave(threads_seen(), is_exec);
	}
	errno = saved_errno;
}

/* Only glibc gives arguments to constructors. */
static void __attribute__((constructor)) construct(void)
{
	struct sp_thread *t = &sp_thread;
	volatile uint32_t mark;
	struct sp_inside_pause pause;
	int saved_errno = errno;

	if (!sp_next_resolve())
		return;
	if (sp_agent_is_running()) {
		go_in(t, &mark);
	} else {
		suspend_sampling(t, &mark);
		start_process(t, environ);
	}
	if (!sp_agent_is_running()) {
		rest_thread(t, atomic_load(&phase) == OFF ? SP_SUSPENDED : 0);
		return;
	}
	/* What is allocated meanwhile is ours. */
	pause = sp_inside_pause_counting();
	sp_process_explain_bypass(&process);
	sp_hooks_install(after_fork_in_child, thread_ends);
	sp_remote_listen(&process);
	watch_end(t);
	atomic_store(&process.constructed, true);
	sp_recorder_describe_late(t);
	sp_inside_resume_counting(&pause);
	resume_sampling(t, &mark);
	errno = saved_errno;
}

static void __attribute__((destructor)) destruct(void)
{
	struct sp_thread *t = &sp_thread;
	volatile uint32_t mark;

	if (!sp_agent_is_running())
		return;
	/* A handler that exits does not go back to what it interrupted. */
	if (t->inside || t->suspended)
		recover_thread(t);
	go_in(t, &mark);
	sp_remote_poll(t);
	publish_totals(t);
	sp_marks_end(t);
	sp_recorder_describe_end(t);
	/* From here on other threads publish each call, as soon as they have an
	 * event.  What they allocate until then is as much as they may. */
	atomic_store(&ending, 1);
	sp_diag_lose(SP_LOSS_AFTER_EXIT,
		     sp_slots_unseen(t->slot, SP_CHECKIN_BYTES_MAX));
	sp_slots_flush_all();
	sp_slots_flush_all_classes();
	sp_writer_end(threads_seen(), !process.is_sandboxed);
	resume_sampling(t, &mark);
}
