/* SPDX-License-Identifier: MIT */
/*
 * Orders by pread and pwrite, which see the same memory as the process: through
 * a mapping, a file that is cut meanwhile would be a signal.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/target.h"

#define STEP_NS 2000000u
#define LOOK_NS 100000000u /* between looks whether the process is there */

bool sp_target_read_orders(const struct sp_target *target,
			   struct sp_control *ret)
{
	return pread(target->fd, ret, sizeof(*ret), SP_FORMAT_CONTROL_OFFSET) ==
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

		if (pread(target->fd, &s, sizeof(s),
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
	char path[64], text[512], *state;
	size_t n = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", target->pid);
	in = fopen(path, "re");
	if (in) {
		n = fread(text, 1, sizeof(text) - 1, in);
		fclose(in);
	}
	text[n] = '\0';
	/* Behind the name, which may be anything. */
	state = strrchr(text, ')');
	return state &&
	       (strncmp(state, ") T", 3) == 0 || strncmp(state, ") t", 3) == 0);
}

/* ---- an order ---- */

static int write_at(const struct sp_target *target, const void *data, size_t n,
		    size_t at)
{
	ssize_t done = pwrite(target->fd, data, n,
			      (off_t)(SP_FORMAT_CONTROL_OFFSET + at));

	return done == (ssize_t)n ? 0 : done < 0 ? -errno : -EIO;
}

/* The order, then its number. */
static int send_order(const struct sp_target *target,
		      const struct sp_order *order, uint64_t number)
{
	struct sp_control_order entry = {
		.number = number,
		.command = order->command,
		.period_bytes = order->period_bytes,
		.asked_ns = sp_clock_unix_ns() - target->header.start_unix_ns,
	};
	const size_t at = offsetof(struct sp_control, queue) +
			  number % SP_FORMAT_ORDERS * sizeof(entry);
	int r;

	if (order->name) {
		entry.name_bytes =
			(uint32_t)strnlen(order->name, sizeof(entry.name));
		memcpy(entry.name, order->name, entry.name_bytes);
	}
	r = write_at(target, &entry, sizeof(entry), at);
	if (r == 0)
		r = write_at(target, &number, sizeof(number),
			     offsetof(struct sp_control, request));
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
	default:
		return sp_error_set(err, r, NULL,
				    "process %" PRIu64 " could not do that: %s",
				    target->pid, strerror(-r));
	}
}

static int queue_order(const struct sp_target *target,
		       const struct sp_order *order, uint64_t *ret_number)
{
	struct sp_control block;

	if (!sp_target_read_orders(target, &block))
		return -EIO;
	if (block.orders != SP_FORMAT_ORDERS)
		return -ENOSYS;
	if (sp_target_waiting(&block) == SP_FORMAT_ORDERS)
		return -EAGAIN;
	*ret_number = block.request + 1;
	return send_order(target, order, *ret_number);
}

int sp_target_ask(const struct sp_target *target, const struct sp_order *order,
		  uint64_t *ret_number, struct sp_error *err)
{
	int r;

	/* One controller at a time; it goes with the descriptor. */
	if (flock(target->fd, LOCK_EX) != 0)
		return describe_failure(target, -errno, err);
	r = queue_order(target, order, ret_number);
	flock(target->fd, LOCK_UN);
	return r < 0 ? describe_failure(target, r, err) : 0;
}

/* ---- its answer ---- */

/* Does it still write this profile?  It may have ended, which a parent that
 * does not wait for it hides, or executed another program. */
static bool is_there(const struct sp_target *target)
{
	struct sp_target now;
	bool is_same = sp_target_open(&now, target->pid, NULL) == 0 &&
		       now.header.file_id == target->header.file_id;

	sp_target_close(&now);
	return is_same;
}

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
			is_gone = !is_there(target);
			look = waited + LOOK_NS;
		}
	}
	return r < 0 ? describe_failure(target, r, err) : 0;
}
