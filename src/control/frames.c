/* SPDX-License-Identifier: MIT */
#include "control/frames.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/proc.h"

sp_cpu_regs sp_frames_regs_of_syscall(const struct sp_tracee *t, long n,
				      const uint64_t args[6], uint64_t frame)
{
	sp_cpu_regs r = t->regs;

	sp_cpu_set_syscall(&r, t->syscall, n, args);
	if (frame)
		sp_cpu_set_sigreturn(&r, frame, t->sigreturn);
	return r;
}

/* The addresses of the vector registers and of a frame, if they are to lie just
 * below address `end`. */
static uint64_t place_vector(const struct sp_tracee *t, uint64_t end)
{
	return (end - t->vector_bytes - 64) & ~63ull;
}

static uint64_t place_frame(uint64_t end)
{
	return ((end - sizeof(struct sp_cpu_frame)) & ~15ull) -
	       SP_CPU_FRAME_OFFSET;
}

/* Frames, and above them the vector registers, which all of them restore.  They
 * are written in one piece. */
struct frames {
	uint64_t at;     /* address of the lowest frame */
	uint64_t vector; /* address of the vector registers */
	unsigned char *bytes;
};

static size_t frames_bytes(const struct sp_tracee *t, const struct frames *f)
{
	return f->vector + t->vector_bytes + 4 - f->at;
}

static void store_frame(const struct sp_tracee *t, const struct frames *f,
			uint64_t at, const sp_cpu_regs *regs, uint64_t sigmask)
{
	unsigned char *vector = f->bytes + (f->vector - f->at);
	struct sp_cpu_frame frame;

	memcpy(vector, t->vector, t->vector_bytes);
	sp_cpu_make_frame(&frame, regs, sigmask, vector, t->vector_bytes,
			  f->vector, t->sigreturn);
	memcpy(f->bytes + (at - f->at), &frame, sizeof(frame));
}

static bool write_frames(const struct sp_tracee *t, const struct frames *f)
{
	return sp_tracee_write(t, f->at, f->bytes, frames_bytes(t, f));
}

/* One frame with these registers and this signal mask, from `start` up to
 * `end`. */
static uint64_t write_frame(const struct sp_tracee *t, uint64_t start,
			    uint64_t end, const sp_cpu_regs *regs,
			    uint64_t sigmask)
{
	struct frames f = {.vector = place_vector(t, end)};
	bool ok;

	f.at = place_frame(f.vector);
	if (f.at < start || f.at > end)
		return 0;
	f.bytes = calloc(1, frames_bytes(t, &f));
	if (!f.bytes)
		return 0;
	store_frame(t, &f, f.at, regs, sigmask);
	ok = write_frames(t, &f);
	free(f.bytes);
	return ok ? f.at : 0;
}

uint64_t sp_frames_write_in_memory(const struct sp_tracee *t)
{
	const uint64_t end = t->code + SP_TRACEE_MEMORY;
	const uint64_t unmap[6] = {t->code, SP_TRACEE_MEMORY};
	sp_cpu_regs regs;

	if (!t->stack_frame)
		return write_frame(t, t->memory, end, &t->regs, t->sigmask);
	regs = sp_frames_regs_of_syscall(t, SYS_munmap, unmap, t->stack_frame);
	return write_frame(t, t->memory, end, &regs, UINT64_MAX);
}

/*
 * The start of the mapping of the thread's stack, if nothing else is below the
 * stack in it: it is the main thread's stack, or one that the C library made,
 * which has the thread's control block at its end.  0: it is another stack,
 * such as that of a coroutine, and other data may lie below it.
 */
static uint64_t find_stack(const struct sp_tracee *t)
{
	const uint64_t sp = sp_cpu_sp(&t->regs);
	const uint64_t own = sp_cpu_thread_pointer(&t->regs);
	uint64_t start, end, ret = 0;
	struct sp_proc_lines l = {
		.in = sp_proc_open_file("/proc/%d/maps", t->tid)};

	while (sp_proc_next(&l)) {
		if (sscanf(l.line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2 ||
		    sp < start || sp >= end)
			continue;
		if (strstr(l.line, "[stack]") || (own >= start && own < end))
			ret = start;
		break;
	}
	sp_proc_end_lines(&l);
	return ret;
}

/* A frame that makes the thread do a system call, and then return through the
 * frame at address `next`. */
static void store_syscall_frame(const struct sp_tracee *t,
				const struct frames *f, uint64_t at, long n,
				const uint64_t args[6], uint64_t next)
{
	const sp_cpu_regs regs = sp_frames_regs_of_syscall(t, n, args, next);

	store_frame(t, f, at, &regs, UINT64_MAX);
}

/* Four frames; the lowest one, whose address is returned, is used first: three
 * that restore the priority, and one for the thread.  0: there is no room. */
static uint64_t write_hurry_frames(struct sp_tracee *t, uint64_t start,
				   uint64_t end)
{
	struct frames f = {.vector = place_vector(t, end)};
	const uint64_t last = place_frame(f.vector);
	const uint64_t third = place_frame(last);
	const uint64_t second = place_frame(third);
	/* The policies want a struct sched_param of 0; frame `last` has zeros
	 * in `info`. */
	const uint64_t zero = last + offsetof(struct sp_cpu_frame, info);
	const uint64_t calm[6] = {0, SP_HURRY_CALM, zero};
	const uint64_t nice[6] = {PRIO_PROCESS, 0, SP_HURRY_NICE};
	const uint64_t policy[6] = {0, SP_HURRY_POLICY, zero};
	bool ok;

	f.at = place_frame(second);
	if (f.at < start || f.at > end)
		return 0;
	f.bytes = calloc(1, frames_bytes(t, &f));
	if (!f.bytes)
		return 0;
	store_syscall_frame(t, &f, f.at, SYS_sched_setscheduler, calm, second);
	store_syscall_frame(t, &f, second, SYS_setpriority, nice, third);
	store_syscall_frame(t, &f, third, SYS_sched_setscheduler, policy, last);
	store_frame(t, &f, last, &t->regs, t->sigmask);
	ok = write_frames(t, &f);
	free(f.bytes);
	return ok ? f.at : 0;
}

void sp_frames_write_on_stack(struct sp_tracee *t)
{
	const uint64_t start = t->sigreturn ? find_stack(t) : 0;
	const uint64_t end = sp_cpu_sp(&t->regs) - SP_CPU_RED_ZONE;

	t->stack_frame =
		start && t->hurry ? write_hurry_frames(t, start, end) : 0;
	t->undoes_hurry = t->stack_frame != 0;
	if (start && !t->stack_frame)
		t->stack_frame =
			write_frame(t, start, end, &t->regs, t->sigmask);
}
