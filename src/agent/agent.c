/* SPDX-License-Identifier: MIT */
/*
 * The life of a process under the agent, and the way of an allocation through
 * it.  The one file that wires the modules together.
 *
 * A process goes through: nothing known (the loader allocates) -> started (the
 * environment is there: settings, modules, seed, file) -> constructed (the
 * unwinder is loaded, thread and fork handlers are in place).  Allocations
 * before "started" are the loader's own and are not counted; from then on all
 * are counted and sampled, before and after main.
 *
 * I1  While a thread is parked its allocations pass through, uncounted.  Only
 *     the agent's own calls and signal handlers that interrupt it can be meant.
 * I2  The generation changes in a forked child, before anything else is done
 *     there; a thread whose state has another generation is set up again.
 */
#include "agent/agent.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "agent/checkin.h"
#include "agent/classes.h"
#include "agent/diag.h"
#include "agent/hooks.h"
#include "agent/lane.h"
#include "agent/marks.h"
#include "agent/modules.h"
#include "agent/orders.h"
#include "agent/process.h"
#include "agent/rate.h"
#include "agent/real.h"
#include "agent/recorder.h"
#include "agent/slots.h"
#include "agent/stack.h"
#include "agent/stackend.h"
#include "agent/stacktab.h"
#include "agent/sys.h"
#include "agent/thread.h"
#include "agent/unwinder.h"
#include "agent/unwinder_imports.h"
#include "agent/writer.h"

#include "agent/poison.h"

/* Threads begin like this: see I4 of thread.h. */
_Thread_local struct sp_thread sp_thread = {.classes = sp_classes_voids};

enum { NOTHING, STARTING, RUNNING, OFF };

static _Atomic int phase;
static _Atomic int ending; /* the process is past our destructor */
static struct sp_process process;

static uint32_t generation(void)
{
	return atomic_load_explicit(&process.generation, memory_order_relaxed);
}

static uint32_t threads_seen(void)
{
	return atomic_load_explicit(&process.threads, memory_order_relaxed);
}

/* ---- one thread ---- */

/* Keep the word away from allocations made while the agent works; returns the
 * old value. */
static uint64_t park(struct sp_thread *t)
{
	uint64_t word = sp_thread_swap(SP_WORD_PARKED);

	t->parked = 1;
	return word;
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
 * unsampled and counted its objects, and its bytes went off the parked word.
 * They take no part in the sampling.
 */
static void unpark(struct sp_thread *t)
{
	uint64_t step = sp_checkin_step(t), limit;
	uint64_t pending = t->bytes - t->published_bytes;

	if (t->paused) {
		/* What passed in here goes on passing. */
		t->parked = 0;
		return;
	}
	limit = pending < step ? step - pending : 0;
	if (t->sampler.gap < limit)
		limit = t->sampler.gap;
	/* In a child that was forked in here: begin anew. */
	if (publishes_each_call(t) || t->generation != generation())
		limit = 0;
	t->limit = limit;
	t->parked = 0;
	pending = SP_WORD_PARKED - sp_thread_swap(limit);
	if (pending) {
		t->bytes += pending;
		sp_diag_lose(SP_LOSS_NESTED, 1);
	}
}

/* What is allocated between the two is not the program's. */
struct pause {
	uint64_t word, objects;
	struct sp_classes *classes;
};

static struct pause pause_counting(struct sp_thread *t)
{
	struct pause p = {t->remaining, t->objects, t->classes};

	t->classes = sp_classes_void(t);
	return p;
}

static void resume_counting(struct sp_thread *t, const struct pause *p)
{
	t->classes = p->classes;
	t->objects = p->objects;
	t->remaining = p->word;
}

/* Have thread_ends called when this thread exits.  Threads older than our
 * constructor get here at their next check-in. */
static void watch_end(struct sp_thread *t)
{
	struct pause pause;

	if (t->watched || t->ended)
		return;
	/* Beyond the 32nd key the C library allocates for that. */
	pause = pause_counting(t);
	t->watched = sp_hooks_watch_thread(t);
	resume_counting(t, &pause);
}

static bool is_sampling(const struct sp_thread *t)
{
	return t->sampler.law != &sp_rate_off;
}

static void publish(struct sp_thread *t)
{
	/* Read once: a signal handler may count an object at any time. */
	uint64_t bytes = t->bytes;
	uint64_t objects = t->paused ? t->published_objects
				     : *(volatile uint64_t *)&t->objects;

	/* In a child that was forked in here the totals are the parent's. */
	if (t->generation != generation())
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
	const struct sp_law *law = sp_rate_law();

	if (t->sampler.law == law || t->generation != generation())
		return;
	publish(t);
	sp_sampler_change(&t->sampler, law);
	if (t->slot)
		sp_slots_set_sampling(t->slot, is_sampling(t));
}

/* Set the calling thread up for this process.  It is parked. */
static void attach(struct sp_thread *t)
{
	const size_t kept = offsetof(struct sp_thread, objects);
	uint8_t writing = t->writing;
	bool ended = t->ended, paused = t->paused;
	struct sp_classes *classes;

	t->classes = sp_classes_void(t);
	memset((char *)t + kept, 0, sizeof(*t) - kept);
	t->parked = 1;
	t->writing = writing;
	t->ended = ended;
	t->paused = paused;
	t->generation = generation();
	t->index = 1 + atomic_fetch_add_explicit(&process.threads, 1,
						 memory_order_relaxed);
	sp_sampler_begin(&t->sampler, sp_rate_law(), process.seed,
			 t->generation, t->index);
	t->slot = sp_slots_claim(t->index);
	classes = sp_slots_classes(t->slot);
	if (classes && !paused)
		t->classes = classes;
	if (t->slot)
		sp_slots_set_sampling(t->slot, is_sampling(t));
	sp_checkin_begin(t);
	watch_end(t);
}

/*
 * Bring the counts of a thread from its last event up to now.  If its word says
 * that it is in the agent, it has left an event for good, by siglongjmp or by
 * ending in a signal handler; what it allocated since passed unsampled and went
 * off the parked word.
 */
static void settle(struct sp_thread *t, uint64_t word)
{
	uint64_t used = t->limit - word;

	if (word - SP_WORD_PARKED / 2 <= SP_WORD_PARKED) {
		used = word < SP_WORD_PARKED ? SP_WORD_PARKED - word : 0;
		sp_diag_lose(t->paused ? SP_LOSS_PAUSED : SP_LOSS_NESTED,
			     t->paused ? used : 1);
		if (t->paused)
			return;
	}
	t->bytes += used;
	sp_sampler_skip(&t->sampler, used);
}

/* The last time that this thread runs one of its destructors: what it still
 * allocates afterwards is published call by call. */
static void thread_ends(void *arg)
{
	struct sp_thread *t = arg;
	uint64_t word;
	int saved_errno = errno;

	word = park(t);
	if (sp_process_is_new(&process)) {
		/* All that an unannounced child has done is to end. */
		t->parked = 0;
		return;
	}
	settle(t, word);
	publish(t);
	sp_slots_flush_classes(t->slot);
	if (t->recorded)
		sp_recorder_thread_end(t);
	t->classes = sp_classes_void(t);
	t->slot = sp_slots_release(t->slot);
	t->ended = 1;
	unpark(t);
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
static void start(struct sp_thread *t, char *const *environment)
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
	sp_modules_init(process.exe_path);
	sp_stackend_init(environment);
	if (process.config.unwind == SP_CONFIG_UNWIND_FP)
		sp_stack_follow_pointers();
	atomic_store_explicit(&phase, RUNNING, memory_order_release);
	attach(t);
	if (process.is_root || !is_sampling(t))
		open_early(t);
}

/* This is a forked child: begin anew, with a file of its own when it samples.
 * The thread that calls is the only one. */
static void begin_child(struct sp_thread *t)
{
	atomic_fetch_add(&process.generation, 1);
	sp_writer_reset();
	sp_lane_reset();
	sp_recorder_reset();
	sp_stacktab_reset();
	sp_modules_reset();
	sp_slots_reset();
	sp_unwinder_imports_reset();
	sp_diag_reset();
	sp_marks_reset();
	sp_orders_reset();
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

	/* Another library's handler may have come first, and allocated. */
	if (atomic_load(&phase) != RUNNING ||
	    (process.alive && !sp_process_is_new(&process)))
		return;
	if (t->parked || t->writing) {
		/* A signal handler forked while it interrupted the agent, which
		 * will go on in this child: let it write into nowhere, and
		 * begin anew with the next event. */
		sp_writer_detach();
		begin_child(t);
		if (!t->parked)
			sp_thread_swap(0);
	} else {
		park(t);
		begin_child(t);
		attach(t);
		unpark(t);
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

/* Not counting, or not yet: leave the allocations of this thread alone. */
static void rest(struct sp_thread *t)
{
	t->classes = sp_classes_void(t);
	t->parked = 0;
	t->remaining = atomic_load(&phase) == OFF ? SP_WORD_PARKED : 0;
}

/* From any state of the process to one in which the allocation is counted;
 * false: it is not.  The thread is parked; *word is what its word was. */
static bool make_ready(struct sp_thread *t, uint64_t *word, uint64_t size)
{
	bool is_new = false;

	if (atomic_load_explicit(&phase, memory_order_acquire) != RUNNING) {
		if (atomic_load(&phase) == STARTING)
			sp_diag_lose(SP_LOSS_INIT_RACE, 1);
		start(t, environ);
		if (atomic_load(&phase) != RUNNING) {
			rest(t);
			return false;
		}
		is_new = true;
	}
	notice_child(t);
	if (!sp_agent_is_running()) {
		rest(t);
		return false;
	}
	if (t->generation != generation()) {
		attach(t);
		is_new = true;
	}
	if (is_new)
		*word = t->limit - size; /* nothing was counted yet */
	return true;
}

/* Aligned: a program that calls with a stack that is not gets here, and what
 * others compiled (libunwind, the loader) stores vectors on it. */
void __attribute__((force_align_arg_pointer))
sp_agent_count(void *p, uint64_t n, enum sp_entry entry,
	       const struct sp_call_frame *frame)
{
	struct sp_thread *t = &sp_thread;
	uint64_t size = n ? n : 1;
	struct sp_event event;
	int saved_errno = errno;
	uint64_t word, used;

	if (t->parked || t->paused) {
		/* Only a request beyond 2^61 bytes gets here. */
		t->remaining = SP_WORD_PARKED;
		return;
	}
	word = park(t);
	if (!make_ready(t, &word, size)) {
		errno = saved_errno;
		return;
	}
	used = t->limit - (word + size);
	event = (struct sp_event){p, size, 0, entry, frame};
	t->bytes += used + size;
	if (sp_sampler_pass(&t->sampler, used, size, &event.offset_bytes)) {
		sp_recorder_sample(t, &event);
		sp_rate_charge();
	}
	t->objects++;
	sp_classes_count(t->classes, n);
	if (t->bytes - t->published_bytes >= sp_checkin_step(t)) {
		sp_checkin_choose(t, sp_writer_time());
		publish(t);
	} else if (publishes_each_call(t)) {
		publish(t);
	}
	sp_orders_poll(t);
	sp_marks_adapt(t);
	sp_marks_cover();
	follow_rate(t);
	unpark(t);
	errno = saved_errno;
}

void sp_agent_attach(void)
{
	struct sp_thread *t = &sp_thread;

	if (t->parked || atomic_load(&phase) != RUNNING ||
	    t->generation == generation())
		return;
	park(t);
	notice_child(t);
	attach(t);
	unpark(t);
}

/* Counts of now, whatever the thread is in the middle of. */
static void go_in(struct sp_thread *t)
{
	uint64_t word = park(t);

	notice_child(t);
	if (t->generation != generation())
		attach(t);
	else if (t->paused)
		sp_thread_swap(word);
	else
		settle(t, word);
}

bool sp_agent_is_running(void)
{
	return atomic_load(&phase) == RUNNING;
}

bool sp_agent_enter(void)
{
	struct sp_thread *t = &sp_thread;

	if (t->parked || !sp_agent_is_running())
		return false;
	go_in(t);
	return true;
}

void sp_agent_publish(void)
{
	publish(&sp_thread);
}

void sp_agent_leave(void)
{
	follow_rate(&sp_thread);
	unpark(&sp_thread);
}

void sp_agent_open_file(void)
{
	if (!sp_agent_enter())
		return;
	sp_recorder_open_file(&sp_thread);
	sp_agent_leave();
}

/* ---- before main and after exit ---- */

/* The slabs have it all.  Where forks cannot be told from vforks, by a page
 * that the kernel wipes, this may be a child that has not noticed: its parent's
 * file is not mapped in it. */
void sp_agent_leaving(void)
{
	int saved_errno = errno;

	if (sp_agent_is_running() && process.alive &&
	    !sp_process_is_new(&process)) {
		sp_slots_flush_all_classes();
		sp_writer_publish(threads_seen());
	}
	errno = saved_errno;
}

static void load_unwinder(void)
{
	if (process.config.unwind == SP_CONFIG_UNWIND_FP || sp_unwinder_init())
		return;
	sp_process_diagnose(&process, sp_unwinder_why(),
			    ": stacks are found by frame pointers and end at "
			    "the first code without",
			    "");
	sp_stack_follow_pointers();
}

/* Only glibc gives arguments to constructors. */
static void __attribute__((constructor)) construct(void)
{
	struct sp_thread *t = &sp_thread;
	struct pause pause;
	int saved_errno = errno;
	uint64_t word;

	if (!sp_real_resolve())
		return;
	word = park(t);
	start(t, environ);
	if (atomic_load(&phase) != RUNNING) {
		rest(t);
		return;
	}
	/* What is allocated meanwhile is ours. */
	pause = pause_counting(t);
	sp_process_explain_bypass(&process);
	sp_hooks_install(after_fork_in_child, thread_ends);
	sp_process_listen(&process);
	watch_end(t);
	load_unwinder();
	atomic_store(&process.constructed, true);
	sp_recorder_describe_late(t);
	resume_counting(t, &pause);
	t->parked = 0;
	t->remaining = word;
	errno = saved_errno;
}

static void __attribute__((destructor)) destruct(void)
{
	struct sp_thread *t = &sp_thread;

	if (!sp_agent_is_running())
		return;
	go_in(t);
	publish(t);
	sp_marks_end(t);
	/* From here on other threads publish each call, as soon as they have an
	 * event.  What they allocate until then is as much as they may. */
	atomic_store(&ending, 1);
	sp_diag_lose(SP_LOSS_AFTER_EXIT,
		     sp_slots_unseen(t->slot, SP_AGENT_CHECK_IN_BYTES));
	sp_slots_flush_all();
	sp_slots_flush_all_classes();
	if (sp_writer_is_open())
		sp_writer_end(threads_seen());
	unpark(t);
}
