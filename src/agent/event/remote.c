/* SPDX-License-Identifier: MIT */
/*
 * The block is written by another process, which need not be well behaved: it
 * is copied before it is looked at, and every value has its range.
 */
#include "agent/event/remote.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/event/look.h"
#include "agent/event/marks.h"
#include "agent/event/slabs.h"
#include "agent/file/writer.h"
#include "agent/sys/allocator.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/sys.h"
#include "agent/thread/inside.h"

#include "agent/sys/poison.h"

/* Numbers of the last order that was begun, was done, and has its answer. */
static _Atomic uint64_t begun, carried_out, answered;
/* Of `carried_out`; under `busy`. */
static uint64_t last_result;
static struct sp_control_memory last_memory;
static struct sp_control_slabs last_slabs;
static union {
	uint32_t classes[SP_ALLOCATOR_CLASSES];
	struct sp_control_glibc glibc;
} last_more;
static _Atomic unsigned int toggles; /* signals seen */
static _Atomic unsigned int toggled; /* and answered */
static sp_inside_lock busy;          /* of carrying out */

void sp_remote_reset(void)
{
	sp_look_reset();
	sp_slabs_forget();
	atomic_store(&begun, 0);
	atomic_store(&carried_out, 0);
	atomic_store(&answered, 0);
	atomic_store(&busy, NULL);
}

static int take_memory(void)
{
	struct sp_control_glibc glibc;

	last_memory = (struct sp_control_memory){0};
	sp_allocator_ask(&last_memory, &glibc);
	sp_allocator_classes(last_more.classes);
	if (!last_more.classes[0])
		last_more.glibc = glibc;
	sp_slabs_forget();
	last_memory.ranges = (uintptr_t)sp_sys_ranges(&last_memory.n_ranges);
	return 0;
}

static int obey_order(struct sp_thread *t, const struct sp_control_order *order,
		      uint64_t asked_ns)
{
	struct sp_marks_name name = {.bytes = order->name_bytes};

	if (name.bytes > sizeof(name.text) ||
	    order->period_bytes > SP_FORMAT_PERIOD_MAX)
		return -EINVAL;
	memcpy(name.text, order->name, sizeof(name.text));
	switch (order->command) {
	case SP_CONTROL_START:
		return sp_marks_sampling(t, SP_MARKS_ON, 0);
	case SP_CONTROL_STOP:
		return sp_marks_sampling(t, SP_MARKS_OFF, 0);
	case SP_CONTROL_PERIOD:
		return order->period_bytes
			       ? sp_marks_sampling(t, SP_MARKS_KEEP,
						   order->period_bytes)
			       : -EINVAL;
	case SP_CONTROL_MARK:
		return sp_marks_phase(t, &name, asked_ns, NULL);
	case SP_CONTROL_SNAPSHOT:
		return sp_marks_snapshot(t, &name, asked_ns);
	case SP_CONTROL_MEMORY:
		return take_memory();
	case SP_CONTROL_LOOK:
		return sp_look(name.text, (unsigned int)name.bytes);
	case SP_CONTROL_SLABS:
		return sp_slabs_ask(&last_slabs);
	default:
		return -ENOSYS;
	}
}

/* What stands in the block instead of in the queue. */
static void copy_unqueued(const struct sp_control *block,
			  struct sp_control_order *ret)
{
	const uint64_t command = block->command;
	const uint64_t name_bytes = block->name_bytes;

	ret->command = command <= UINT32_MAX ? (uint32_t)command : 0;
	ret->name_bytes =
		name_bytes <= UINT32_MAX ? (uint32_t)name_bytes : UINT32_MAX;
	ret->period_bytes = block->period_bytes;
	memcpy(ret->name, block->name, sizeof(ret->name));
}

static bool is_mark(const struct sp_control_order *order)
{
	return order->command == SP_CONTROL_MARK ||
	       order->command == SP_CONTROL_SNAPSHOT;
}

/* The other orders may be carried out twice: the second time changes nothing.
 */
static void carry_out(struct sp_thread *t, const struct sp_control_order *order,
		      uint64_t asked_ns, uint64_t number)
{
	const bool was_left = atomic_load(&begun) == number;

	atomic_store(&begun, number);
	last_result = was_left && is_mark(order)
			      ? EINTR
			      : (uint64_t)-obey_order(t, order, asked_ns);
	atomic_store(&carried_out, number);
}

/* A signal handler may leave this anywhere by siglongjmp: the next poll goes on
 * where it was. */
static void answer_order(struct sp_thread *t, struct sp_control *block,
			 uint64_t number)
{
	struct sp_control_order *at = &block->queue[number % SP_FORMAT_ORDERS];
	struct sp_control_order order;
	uint64_t asked_ns = SP_MARKS_NOW;
	bool is_queued;

	memcpy(&order, at, sizeof(order));
	is_queued = order.number == number;
	if (is_queued)
		asked_ns = sp_writer_time_of_wall(order.asked_ns);
	else
		copy_unqueued(block, &order);
	if (atomic_load(&carried_out) != number)
		carry_out(t, &order, asked_ns, number);
	if (sp_writer_hold_control(block)) {
		block->result = last_result;
		block->time_ns = sp_writer_time();
		if (is_queued) {
			if (order.command == SP_CONTROL_MEMORY) {
				memcpy(at->name, &last_memory,
				       sizeof(at->name));
				at->period_bytes = (uintptr_t)&last_more;
			}
			if (order.command == SP_CONTROL_SLABS)
				memcpy(at->name, &last_slabs, sizeof(at->name));
			at->result = last_result;
			at->time_ns = block->time_ns;
		}
		__atomic_store_n(&block->done, number, __ATOMIC_RELEASE);
	}
	atomic_store(&answered, number);
}

/* All that have come, in turn.  Of more than the queue has places for, which
 * no controller sends, the last. */
static void answer_all(struct sp_thread *t, struct sp_control *block)
{
	const uint64_t last =
		__atomic_load_n(&block->request, __ATOMIC_ACQUIRE);
	uint64_t done = atomic_load(&answered);

	if (last - done > SP_FORMAT_ORDERS)
		done = last - 1;
	while (done != last)
		answer_order(t, block, ++done);
}

static bool is_ordered(const struct sp_control *block)
{
	return block &&
	       __atomic_load_n(&block->request, __ATOMIC_RELAXED) !=
		       atomic_load_explicit(&answered, memory_order_relaxed);
}

static bool is_toggled(void)
{
	return atomic_load_explicit(&toggles, memory_order_relaxed) !=
	       atomic_load_explicit(&toggled, memory_order_relaxed);
}

void sp_remote_give_left(void)
{
	sp_inside_give_left(&busy);
}

/* By itself: what each sample passes needs few registers. */
static __attribute__((noinline)) void take_orders(struct sp_thread *t,
						  struct sp_control *block)
{
	unsigned int seen;

	if (!sp_inside_hold(&busy))
		return;
	if (is_ordered(block))
		answer_all(t, block);
	/* An even number of signals leaves things as they are. */
	seen = atomic_load(&toggles);
	if ((seen - atomic_exchange(&toggled, seen)) & 1)
		sp_marks_sampling(t, SP_MARKS_TOGGLE, 0);
	sp_inside_give(&busy);
}

void sp_remote_poll(struct sp_thread *t)
{
	struct sp_control *block = sp_writer_control();

	if (is_ordered(block) || is_toggled())
		take_orders(t, block);
}

static void note_signal(int signal)
{
	(void)signal;
	atomic_fetch_add_explicit(&toggles, 1, memory_order_relaxed);
}

static bool catch_signal(int signal)
{
	void *address = sp_linkmap_libc("sigaction");
	int (*set)(int, const struct sigaction *, struct sigaction *);
	struct sigaction action;

	memcpy(&set, &address, sizeof(address));
	if (!address || set(signal, NULL, &action) != 0 ||
	    action.sa_handler != SIG_DFL)
		return false;
	memset(&action, 0, sizeof(action));
	action.sa_handler = note_signal;
	action.sa_flags = SA_RESTART;
	return set(signal, &action, NULL) == 0;
}

void sp_remote_listen(struct sp_process *process)
{
	const unsigned int choice = process->config.signal;

	if (!choice ||
	    catch_signal(choice == SP_CONFIG_USR1 ? SIGUSR1 : SIGUSR2))
		return;
	sp_process_diagnose(process,
			    "SAMPLEPROF_SIGNAL does nothing: the program was "
			    "started with something else for that signal",
			    "", "");
}
