/* SPDX-License-Identifier: MIT */
/*
 * Orders by pread and pwrite, which see the same memory as the process: through
 * a mapping, a file that is cut meanwhile would be a signal.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "control/target.h"

#define STEP_NS 2000000u

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int read_block(const struct sp_target *target, struct sp_control *block)
{
	ssize_t n = pread(target->fd, block, sizeof(*block),
			  SP_FORMAT_CONTROL_OFFSET);

	return n == (ssize_t)sizeof(*block) ? 0 : n < 0 ? -errno : -EIO;
}

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
	struct sp_control block = {
		.command = order->command,
		.period_bytes = order->period_bytes,
	};
	const size_t from = offsetof(struct sp_control, command);
	const size_t to = offsetof(struct sp_control, done);
	int r;

	if (order->name) {
		block.name_bytes = strnlen(order->name, sizeof(block.name));
		memcpy(block.name, order->name, block.name_bytes);
	}
	r = write_at(target, (const char *)&block + from, to - from, from);
	if (r == 0)
		r = write_at(target, &number, sizeof(number), 0);
	return r;
}

static bool is_gone(const struct sp_target *target)
{
	return kill((pid_t)target->pid, 0) != 0 && errno == ESRCH;
}

static int wait_for(const struct sp_target *target, uint64_t number,
		    uint64_t timeout_ns, struct sp_control *block)
{
	const struct timespec step = {0, STEP_NS};
	const uint64_t end = now_ns() + timeout_ns;
	int r;

	while ((r = read_block(target, block)) == 0 && block->done != number) {
		if (is_gone(target))
			return -ESRCH;
		if (now_ns() >= end)
			return -ETIMEDOUT;
		nanosleep(&step, NULL);
	}
	return r < 0 ? r : -(int)(block->result & 0xfff);
}

static int describe(const struct sp_target *target, int r, struct sp_error *err)
{
	switch (-r) {
	case ESRCH:
		return sp_error_set(err, r, target->path,
				    "process %" PRIu64 " has ended",
				    target->pid);
	case ETIMEDOUT:
		return sp_error_set(
			err, r, target->path,
			"process %" PRIu64
			" has not noticed yet: it will when one of its threads "
			"has allocated another 1 MiB at most",
			target->pid);
	case ENOSYS:
		return sp_error_set(err, r, target->path,
				    "the library in process %" PRIu64
				    " is older than this command",
				    target->pid);
	default:
		return sp_error_set(err, r, target->path,
				    "process %" PRIu64 " could not do that: %s",
				    target->pid, strerror(-r));
	}
}

int sp_target_ask(const struct sp_target *target, const struct sp_order *order,
		  uint64_t timeout_ns, uint64_t *ret_time_ns,
		  struct sp_error *err)
{
	struct sp_control block = {0};
	uint64_t number;
	int r = 0;

	/* One controller at a time; it goes with the descriptor. */
	if (flock(target->fd, LOCK_EX) != 0)
		r = -errno;
	if (r == 0)
		r = read_block(target, &block);
	/* What somebody else has asked comes first. */
	if (r == 0 && block.request != block.done) {
		r = wait_for(target, block.request, timeout_ns, &block);
		r = r == -ETIMEDOUT || r == -ESRCH ? r : 0;
	}
	number = block.request + 1 ? block.request + 1 : 1;
	if (r == 0)
		r = send_order(target, order, number);
	if (r == 0)
		r = wait_for(target, number, timeout_ns, &block);
	flock(target->fd, LOCK_UN);
	if (r < 0)
		return describe(target, r, err);
	*ret_time_ns = block.time_ns;
	return 0;
}
