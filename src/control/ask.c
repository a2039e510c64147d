/* SPDX-License-Identifier: MIT */
/*
 * Orders by pread and pwrite, which see the same memory as the process: through
 * a mapping, a file that is cut meanwhile would be a signal.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/patience.h"
#include "control/target.h"

#define STEP_NS 2000000u
#define LOCK_NS 2000000000u /* orders are given in microseconds */
#define LOOK_NS 100000000u  /* between looks whether the process is there */

bool sp_target_read_orders(const struct sp_target *target,
			   struct sp_control *ret)
{
	return sp_patience_read(target->fd, ret, sizeof(*ret),
				SP_FORMAT_CONTROL_OFFSET) ==
	       (ssize_t)sizeof(*ret);
}

uint64_t sp_target_waiting(const struct sp_control *orders)
{
	const uint64_t n = orders->request - orders->done;

	/* More can only be there if somebody has damaged the block. */
	return n < SP_FORMAT_ORDERS ? n : SP_FORMAT_ORDERS;
}

uint64_t sp_target_silence_ns(const struct sp_target *target)
{
	const int64_t since_ns =
		(int64_t)(sp_clock_unix_ns() - target->header.start_unix_ns);
	int64_t latest_ns = 0;

	for (unsigned int copy = 0; copy < 2; copy++) {
		struct sp_status s;

		if (sp_patience_read(target->fd, &s, sizeof(s),
				     SP_FORMAT_STATUS_OFFSET +
					     copy * SP_FORMAT_STATUS_STRIDE) ==
			    (ssize_t)sizeof(s) &&
		    (int64_t)s.time_ns > latest_ns)
			latest_ns = (int64_t)s.time_ns;
	}
	/* The clock may have been set. */
	return since_ns > latest_ns ? (uint64_t)(since_ns - latest_ns) : 0;
}

bool sp_target_is_stopped(const struct sp_target *target)
{
	const char state = sp_proc_state(target->pid);

	return state == 'T' || state == 't';
}

/* ---- an order ---- */

static int write_at(int fd, const void *data, size_t n, size_t at)
{
	ssize_t done =
		pwrite(fd, data, n, (off_t)(SP_FORMAT_CONTROL_OFFSET + at));

	return done == (ssize_t)n ? 0 : done < 0 ? -errno : -EIO;
}

/* Under the lock of the file, which goes with the descriptor: one controller at
 * a time.  The order, then its number.  As of sp_patience_call. */
static long queue_order(int fd, void *data)
{
	struct sp_control_order *order = data;
	struct sp_control block;
	int r;

	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		return errno == EWOULDBLOCK || errno == EINTR ? -EBUSY : -errno;
	if (pread(fd, &block, sizeof(block), SP_FORMAT_CONTROL_OFFSET) !=
	    (ssize_t)sizeof(block))
		return -EIO;
	if (block.orders != SP_FORMAT_ORDERS)
		return -ENOSYS;
	if (sp_target_waiting(&block) == SP_FORMAT_ORDERS)
		return -EAGAIN;
	order->number = block.request + 1;
	r = write_at(fd, order, sizeof(*order),
		     offsetof(struct sp_control, queue) +
			     order->number % SP_FORMAT_ORDERS * sizeof(*order));
	return r < 0 ? r
		     : write_at(fd, &order->number, sizeof(order->number),
				offsetof(struct sp_control, request));
}

static int try_to_queue(const struct sp_target *target,
			struct sp_control_order *order)
{
	int fd, r;

	if (!sp_patience_has_disk(target->fd))
		return (int)sp_patience_ask(target->fd, O_RDWR, queue_order,
					    order, sizeof(*order));
	/* The file that was looked at, and no name. */
	fd = open(target->file, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	r = (int)queue_order(fd, order);
	close(fd);
	return r;
}

/* Whoever may read the file can hold the lock. */
static int queue_in_time(const struct sp_target *target,
			 struct sp_control_order *order)
{
	const struct timespec step = {0, STEP_NS};
	const uint64_t begin = sp_clock_ns();
	int r;

	while ((r = try_to_queue(target, order)) == -EBUSY &&
	       sp_clock_ns() - begin < LOCK_NS)
		nanosleep(&step, NULL);
	return r;
}

static int describe_failure(const struct sp_target *target, int r,
			    struct sp_error *err)
{
	switch (-r) {
	case ESRCH:
		return sp_error_set(err, r, NULL,
				    "process %" PRIu64
				    " has ended, or has executed another "
				    "program",
				    target->pid);
	case EACCES:
	case EPERM:
	case EROFS:
		return sp_error_set(err, -EACCES, NULL,
				    "the profile of process %" PRIu64
				    " cannot be written (%s): run as its user, "
				    "or root",
				    target->pid, strerror(-r));
	case EAGAIN:
		return sp_error_set(err, r, NULL,
				    "process %" PRIu64
				    " has %u orders to carry out, and there is "
				    "no room for another",
				    target->pid, SP_FORMAT_ORDERS);
	case ENOSYS:
		return sp_error_set(err, r, NULL,
				    "the library in process %" PRIu64
				    " is of another version than this command",
				    target->pid);
	case EINTR:
		return sp_error_set(err, r, NULL,
				    "a signal handler of process %" PRIu64
				    " left the library by a jump meanwhile: "
				    "it may not have carried the order out",
				    target->pid);
	case ENODATA:
		return sp_error_set(err, r, NULL,
				    "process %" PRIu64
				    " has carried it out, but %u later orders "
				    "have overwritten its answer",
				    target->pid, SP_FORMAT_ORDERS);
	case ETIMEDOUT:
		return sp_target_explain_silence(target->pid, target->path,
						 err);
	default:
		return sp_error_set(err, r, NULL,
				    "process %" PRIu64 " could not do that: %s",
				    target->pid, strerror(-r));
	}
}

/* The process that has the lock of the file, by /proc/locks; 0: not known. */
static uint64_t find_holder(const struct sp_target *target)
{
	FILE *in = fopen("/proc/locks", "re");
	struct sp_proc_file file;
	uint64_t pid, holder = 0;
	char line[256];

	while (in && !holder && fgets(line, sizeof(line), in))
		if (sscanf(line, "%*s FLOCK %*s %*s %" SCNu64 " %x:%x:%" SCNu64,
			   &pid, &file.major, &file.minor, &file.inode) == 4 &&
		    sp_proc_is_file(&file, &target->mapped))
			holder = pid;
	if (in)
		fclose(in);
	return holder;
}

static int describe_lock(const struct sp_target *target, struct sp_error *err)
{
	const uint64_t holder = find_holder(target);
	char who[64] = "another process";

	if (holder)
		snprintf(who, sizeof(who), "process %" PRIu64, holder);
	return sp_error_set(err, -EBUSY, NULL,
			    "waited %u s for the lock of the profile of "
			    "process %" PRIu64
			    ", under which orders are given: %s holds it; end "
			    "that one, or try again",
			    (unsigned int)(LOCK_NS / 1000000000u), target->pid,
			    who);
}

int sp_target_ask(const struct sp_target *target, const struct sp_order *order,
		  uint64_t *ret_number, struct sp_error *err)
{
	struct sp_control_order entry = {
		.command = order->command,
		.period_bytes = order->period_bytes,
		.asked_ns = sp_clock_unix_ns() - target->header.start_unix_ns,
	};
	int r;

	if (order->name) {
		entry.name_bytes =
			(uint32_t)strnlen(order->name, sizeof(entry.name));
		memcpy(entry.name, order->name, entry.name_bytes);
	}
	r = queue_in_time(target, &entry);
	*ret_number = entry.number;
	if (r == -EBUSY)
		return describe_lock(target, err);
	return r < 0 ? describe_failure(target, r, err) : 0;
}

/* ---- its answer ---- */

/* -EINPROGRESS: there is none yet. */
static int read_answer(const struct sp_target *target, uint64_t number,
		       uint64_t *ret_time_ns)
{
	struct sp_control block;
	const struct sp_control_order *order =
		&block.queue[number % SP_FORMAT_ORDERS];

	if (!sp_target_read_orders(target, &block))
		return -EIO;
	if ((int64_t)(block.done - number) < 0)
		return -EINPROGRESS;
	if (order->number != number)
		return -ENODATA;
	*ret_time_ns = order->time_ns;
	return order->result ? -(int)(order->result & 0xfff) : 0;
}

/* The place of the order, with its answer. */
static bool read_place(const struct sp_target *target, uint64_t number,
		       uint32_t command, struct sp_control_order *ret)
{
	struct sp_control block;

	if (!sp_target_read_orders(target, &block))
		return false;
	*ret = block.queue[number % SP_FORMAT_ORDERS];
	return ret->number == number && ret->command == command && !ret->result;
}

bool sp_target_read_memory(const struct sp_target *target, uint64_t number,
			   struct sp_control_memory *ret, uint64_t *ret_classes)
{
	struct sp_control_order order;

	if (!read_place(target, number, SP_CONTROL_MEMORY, &order))
		return false;
	memcpy(ret, order.name, sizeof(*ret));
	*ret_classes = order.period_bytes;
	return true;
}

bool sp_target_read_slabs(const struct sp_target *target, uint64_t number,
			  struct sp_control_slabs *ret)
{
	struct sp_control_order order;

	if (!read_place(target, number, SP_CONTROL_SLABS, &order))
		return false;
	memcpy(ret, order.name, sizeof(*ret));
	return true;
}

int sp_target_wait(const struct sp_target *target, uint64_t number,
		   uint64_t timeout_ns, uint64_t *ret_time_ns,
		   struct sp_error *err)
{
	const struct timespec step = {0, STEP_NS};
	const uint64_t begin = sp_clock_ns();
	uint64_t waited = 0, look = LOOK_NS;
	bool is_gone = false;
	int r;

	while ((r = read_answer(target, number, ret_time_ns)) == -EINPROGRESS) {
		if (is_gone)
			return describe_failure(target, -ESRCH, err);
		if (waited >= timeout_ns)
			return -ETIMEDOUT;
		nanosleep(&step, NULL);
		waited = sp_clock_ns() - begin;
		if (waited >= look) {
			/* Then the answer is looked for once more. */
			is_gone = !sp_target_is_there(target);
			look = waited + LOOK_NS;
		}
	}
	return r < 0 ? describe_failure(target, r, err) : 0;
}
