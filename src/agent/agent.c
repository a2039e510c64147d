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
 * I2  `generation` changes in a forked child, before anything else is done
 *     there; a thread whose state has another generation is set up again.
 */
#include "agent/agent.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "agent/diag.h"
#include "agent/hooks.h"
#include "agent/linkmap.h"
#include "agent/modules.h"
#include "agent/process.h"
#include "agent/real.h"
#include "agent/sampler.h"
#include "agent/slots.h"
#include "agent/stack.h"
#include "agent/stacktab.h"
#include "agent/sys.h"
#include "agent/thread.h"
#include "agent/unwinder.h"
#include "agent/unwinder_imports.h"
#include "agent/writer.h"

#include "agent/poison.h"

#define FIRST_CHECK_IN_BYTES 4096u

_Thread_local struct sp_thread sp_thread;

enum { NOTHING, STARTING, RUNNING, OFF };

static _Atomic int phase;
static _Atomic uint32_t generation = 1;
static _Atomic uint32_t last_thread;
static _Atomic uint64_t last_sample;
static _Atomic int ending; /* the process is past our destructor */
static struct sp_process process;

static uint32_t threads_seen(void)
{
	return atomic_load_explicit(&last_thread, memory_order_relaxed);
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

/* Bytes after which the thread publishes again: few at first, so that little is
 * missing from a process that is killed early, then doubling. */
static uint64_t check_in_step(const struct sp_thread *t)
{
	uint64_t step = t->published_bytes;

	if (step < FIRST_CHECK_IN_BYTES)
		return FIRST_CHECK_IN_BYTES;
	return step < SP_AGENT_CHECK_IN_BYTES ? step : SP_AGENT_CHECK_IN_BYTES;
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
	uint64_t step = check_in_step(t), limit;
	uint64_t pending = t->bytes - t->published_bytes;

	limit = pending < step ? step - pending : 0;
	if (t->gap < limit)
		limit = t->gap;
	if (t->ended || atomic_load_explicit(&ending, memory_order_relaxed))
		limit = 0;
	t->limit = limit;
	t->parked = 0;
	pending = SP_WORD_PARKED - sp_thread_swap(limit);
	if (pending) {
		t->bytes += pending;
		sp_diag_lose(SP_LOSS_NESTED, 1);
	}
}

/* Have thread_ends called when this thread exits.  Threads older than our
 * constructor get here at their next check-in. */
static void watch_end(struct sp_thread *t)
{
	uint64_t objects = t->objects, word = t->remaining;

	if (t->watched || t->ended)
		return;
	t->watched = sp_hooks_watch_thread(t);
	/* Beyond the 32nd key the C library allocates for that; it is not the
	 * program's. */
	t->objects = objects;
	t->remaining = word;
}

static void publish(struct sp_thread *t)
{
	/* Read once: a signal handler may count an object at any time. */
	uint64_t bytes = t->bytes;
	uint64_t objects = *(volatile uint64_t *)&t->objects;

	sp_slots_add(t->slot, bytes - t->published_bytes,
		     objects - t->published_objects);
	t->published_bytes = bytes;
	t->published_objects = objects;
	sp_writer_publish(threads_seen());
	watch_end(t);
}

/* Set the calling thread up for this process.  It is parked. */
static void attach(struct sp_thread *t)
{
	bool ended = t->ended;

	memset((char *)t + sizeof(t->remaining), 0,
	       sizeof(*t) - sizeof(t->remaining));
	t->parked = 1;
	t->ended = ended;
	t->generation = atomic_load_explicit(&generation, memory_order_relaxed);
	t->index = 1 + atomic_fetch_add_explicit(&last_thread, 1,
						 memory_order_relaxed);
	sp_rng_init(&t->rng, process.seed,
		    ((uint64_t)t->generation << 32) | t->index);
	t->period_bytes = process.config.period_bytes;
	t->gap = sp_sampler_draw(&t->rng, t->period_bytes);
	t->slot = sp_slots_claim(t->index);
	watch_end(t);
}

/* The totals of a thread that the file knows. */
static void record_thread_end(struct sp_thread *t)
{
	struct sp_record r = {.type = SP_RECORD_THREAD_END};
	const char *name = sp_slots_name(t->slot);
	bool written = false;

	r.u.thread_end = (struct sp_record_thread_end){
		t->index, sp_writer_time(), t->bytes, t->objects,
		name,     strlen(name),
	};
	t->lane = sp_lane_take(&t->lane_hint);
	if (t->lane) {
		written = sp_writer_append(t->lane, &r);
		sp_lane_give(t->lane);
		t->lane = NULL;
	}
	if (!written)
		sp_diag_lose(SP_LOSS_RECORD_DROPPED, 1);
}

/* The last time that this thread runs one of its destructors: what it still
 * allocates afterwards is published call by call. */
static void thread_ends(void *arg)
{
	struct sp_thread *t = arg;
	uint64_t word = park(t);
	int saved_errno = errno;

	if (sp_process_is_new(&process)) {
		/* All that an unannounced child has done is to end. */
		t->parked = 0;
		return;
	}
	t->bytes += t->limit - word;
	t->gap -= t->limit - word < t->gap ? t->limit - word : t->gap;
	publish(t);
	if (t->recorded)
		record_thread_end(t);
	t->slot = sp_slots_release(t->slot);
	t->ended = 1;
	unpark(t);
	errno = saved_errno;
}

/* ---- one process ---- */

static void write_fact(void *lane, const char *key, const char *value,
		       uint64_t value_bytes)
{
	sp_writer_info(lane, key, value, value_bytes);
}

/* Create the file if it is not there; false: it is not to be had. */
static bool open_file(struct sp_lane *lane)
{
	int err;

	if (sp_writer_is_open())
		return true;
	err = sp_process_open_file(&process);
	if (err == -EBUSY)
		return false;
	if (err) {
		process.file_error = err;
		return false;
	}
	sp_process_describe(&process, write_fact, lane);
	for (unsigned int i = 0; i < sp_modules_count(); i++)
		sp_writer_module(lane, sp_modules_get(i));
	sp_slots_flush_all();
	sp_writer_publish(threads_seen());
	return true;
}

/* Create the file now rather than with the first sample: the process that was
 * started under us always leaves one. */
static void open_early(struct sp_thread *t)
{
	char reason[24];

	t->lane = sp_lane_take(&t->lane_hint);
	if (t->lane) {
		open_file(t->lane);
		sp_lane_give(t->lane);
		t->lane = NULL;
	}
	if (!process.file_error)
		return;
	/* The name comes last: it may be too long for the line. */
	sp_diag_say("cannot create the profile, running unprofiled: ",
		    sp_diag_errno(reason, -process.file_error), ": ",
		    sp_process_out(), NULL);
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
	sp_modules_init(process.exe_path);
	atomic_store_explicit(&phase, RUNNING, memory_order_release);
	attach(t);
	if (process.is_root)
		open_early(t);
}

/* This is a forked child: begin anew, with a file of its own when it samples.
 * The thread that calls is the only one. */
static void begin_child(struct sp_thread *t)
{
	atomic_fetch_add(&generation, 1);
	sp_writer_reset();
	sp_lane_reset(t->lane);
	sp_stacktab_reset();
	sp_modules_reset();
	sp_slots_reset();
	sp_unwinder_imports_reset();
	sp_diag_reset();
	atomic_store(&last_thread, 0);
	atomic_store(&last_sample, 0);
	atomic_store(&ending, 0);
	sp_process_reseed(&process);
	t->ended = 0;
	t->generation = 0;
}

static void after_fork_in_child(void)
{
	struct sp_thread *t = &sp_thread;

	if (atomic_load(&phase) != RUNNING)
		return;
	if (t->parked) {
		/* A signal handler forked while it interrupted the agent, which
		 * will go on in this child: let it write into nowhere, and
		 * begin anew with the next event. */
		sp_writer_detach();
		begin_child(t);
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

/* An allocation that is to be recorded. */
struct sp_event {
	void *p;
	uint64_t size_bytes;
	uint64_t offset_bytes; /* of the hit byte */
	enum sp_entry entry;
	const void *caller; /* return address into the program */
};

static void record_thread(struct sp_thread *t)
{
	struct sp_record r = {.type = SP_RECORD_THREAD};
	const char *name = sp_slots_name(t->slot);

	r.u.thread = (struct sp_record_thread){
		t->index, sp_slots_tid(), sp_writer_time(), name, strlen(name)};
	if (sp_writer_append(t->lane, &r))
		t->recorded = SP_THREAD_KNOWN;
	else
		sp_diag_lose(SP_LOSS_RECORD_DROPPED, 1);
}

/* The thread holds its lane. */
static void record_sample(struct sp_thread *t, const struct sp_event *event)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};
	uint32_t flags = 0;
	unsigned int n;

	if (!open_file(t->lane)) {
		sp_diag_lose(SP_LOSS_NO_FILE, 1);
		return;
	}
	if (t->recorded != SP_THREAD_KNOWN)
		record_thread(t);
	n = sp_stack_capture(t->lane, (unsigned int)process.config.depth,
			     event->caller, &flags);
	r.u.sample = (struct sp_record_sample){
		.stack = sp_stacktab_intern(t->lane, n, flags),
		.id = atomic_fetch_add_explicit(&last_sample, 1,
						memory_order_relaxed) +
		      1,
		.time_ns = sp_writer_time(),
		.address = (uintptr_t)event->p,
		.size_bytes = event->size_bytes,
		.offset_bytes = event->offset_bytes,
		.period_bytes = t->period_bytes,
		.thread = t->index,
		.entry = (uint8_t)event->entry,
	};
	if (!sp_writer_append(t->lane, &r)) {
		sp_diag_lose(SP_LOSS_FILE_FULL, 1);
		sp_writer_publish(threads_seen());
	}
}

static void sample(struct sp_thread *t, const struct sp_event *event)
{
	t->lane = sp_lane_take(&t->lane_hint);
	if (t->lane) {
		record_sample(t, event);
		sp_lane_give(t->lane);
		t->lane = NULL;
	} else {
		sp_diag_lose(SP_LOSS_NO_LANE, 1);
	}
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
			t->parked = 0;
			t->remaining =
				atomic_load(&phase) == OFF ? SP_WORD_PARKED : 0;
			return false;
		}
		is_new = true;
	}
	notice_child(t);
	if (t->generation !=
	    atomic_load_explicit(&generation, memory_order_relaxed)) {
		attach(t);
		is_new = true;
	}
	if (is_new)
		*word = t->limit - size; /* nothing was counted yet */
	return true;
}

void sp_agent_count(void *p, uint64_t n, enum sp_entry entry,
		    const void *caller)
{
	struct sp_thread *t = &sp_thread;
	uint64_t size = n ? n : 1;
	struct sp_event event;
	struct sp_sampler sampler;
	int saved_errno = errno;
	uint64_t word, used;

	if (t->parked) {
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
	sampler = (struct sp_sampler){&t->rng, &t->gap, t->period_bytes};
	event = (struct sp_event){p, size, 0, entry, caller};
	t->bytes += used + size;
	if (sp_sampler_pass(&sampler, used, size, &event.offset_bytes))
		sample(t, &event);
	t->objects++;
	if (t->bytes - t->published_bytes >= check_in_step(t) || t->ended ||
	    atomic_load_explicit(&ending, memory_order_relaxed))
		publish(t);
	unpark(t);
	errno = saved_errno;
}

void sp_agent_attach(void)
{
	struct sp_thread *t = &sp_thread;

	if (t->parked || atomic_load(&phase) != RUNNING ||
	    t->generation == atomic_load(&generation))
		return;
	park(t);
	notice_child(t);
	attach(t);
	unpark(t);
}

bool sp_agent_thread_totals(uint64_t *ret_bytes, uint64_t *ret_objects)
{
	const struct sp_thread *t = &sp_thread;

	if (atomic_load(&phase) != RUNNING || t->parked)
		return false;
	*ret_bytes = t->bytes + (t->limit - t->remaining);
	*ret_objects = t->objects;
	return true;
}

bool sp_agent_process_totals(uint64_t *ret_bytes, uint64_t *ret_objects)
{
	const struct sp_thread *t = &sp_thread;
	uint64_t bytes, objects;

	if (!sp_agent_thread_totals(&bytes, &objects))
		return false;
	sp_slots_total(ret_bytes, ret_objects);
	*ret_bytes += bytes - t->published_bytes;
	*ret_objects += objects - t->published_objects;
	return true;
}

/* ---- before main and after exit ---- */

static void explain_bypass(void)
{
	const struct link_map *first = NULL;
	const char *name;

	sp_linkmap_global("malloc", &first);
	if (!first || first == sp_linkmap_self())
		return;
	name = first->l_name && first->l_name[0] ? first->l_name
						 : process.exe_path;
	sp_process_diagnose(&process, "malloc of this process is defined by ",
			    name,
			    ", which stands before sampleprof: its "
			    "allocations are not seen");
}

static void __attribute__((constructor))
construct(int argc, char **argv, char **envp)
{
	struct sp_thread *t = &sp_thread;
	uint64_t word, objects;

	(void)argc;
	(void)argv;
	if (!sp_real_resolve())
		return;
	word = park(t);
	objects = t->objects;
	start(t, envp);
	if (atomic_load(&phase) != RUNNING) {
		t->parked = 0;
		t->remaining = atomic_load(&phase) == OFF ? SP_WORD_PARKED : 0;
		return;
	}
	explain_bypass();
	sp_hooks_install(after_fork_in_child, thread_ends);
	watch_end(t);
	if (!sp_unwinder_init())
		sp_process_diagnose(&process, "stacks have one frame: ",
				    sp_unwinder_why(), "");
	process.constructed = true;
	t->lane = sp_lane_take(&t->lane_hint);
	if (t->lane && sp_writer_is_open())
		sp_process_describe_late(&process, write_fact, t->lane);
	if (t->lane)
		sp_lane_give(t->lane);
	t->lane = NULL;
	/* What was allocated meanwhile is ours. */
	t->objects = objects;
	t->parked = 0;
	t->remaining = word;
}

static void __attribute__((destructor)) destruct(void)
{
	struct sp_thread *t = &sp_thread;
	uint64_t word, used;

	if (atomic_load(&phase) != RUNNING || t->parked)
		return;
	word = park(t);
	notice_child(t);
	if (t->generation != atomic_load(&generation)) {
		attach(t);
		word = t->limit;
	}
	used = t->limit - word;
	t->bytes += used;
	t->gap -= used < t->gap ? used : t->gap;
	atomic_store(&ending, 1);
	publish(t);
	sp_slots_flush_all();
	if (sp_writer_is_open())
		sp_writer_end(threads_seen());
	unpark(t);
}
