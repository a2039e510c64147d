/* SPDX-License-Identifier: MIT */
/*
 * I1  Nothing is written while a thread of the process can run.  A thread that
 *     the kernel lets wait without an end to its wait has been asked to stop,
 *     and does so before it runs again.
 * I2  No thread is behind the first of the bytes that are displaced, nor comes
 *     back there: no call is displaced, so what interrupts the thread there is
 *     a signal handler, below which its address lies on the stack.
 * I3  What is written is taken from the list while all threads stand still, and
 *     only where there is what the list says.
 */
#include "control/entries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "control/attach_inner.h"
#include "control/seize.h"
#include "control/threads.h"
#include "base/clock.h"
#include "base/proc.h"

/* How far below the innermost frame a signal handler's caller may be. */
#define STACK_BYTES (256u << 10)
#define PART_BYTES  4096u

struct stopped {
	pid_t tid;
	bool is_stopped, is_gone;
};

struct freeze {
	struct sp_attach_job *job;
	uint64_t until;
	struct stopped *threads;
	size_t n, room;
	struct sp_attach_entries list;
	uint64_t lowest, highest; /* of the addresses in the list */
};

/* ---- stops ---- */

static struct stopped *find_thread(struct freeze *f, pid_t tid, size_t guess)
{
	if (guess < f->n && f->threads[guess].tid == tid)
		return &f->threads[guess];
	for (size_t i = 0; i < f->n; i++)
		if (f->threads[i].tid == tid)
			return &f->threads[i];
	return NULL;
}

static int add_thread(struct freeze *f, pid_t tid)
{
	const size_t more = 2 * f->room + 16;
	struct stopped *grown;

	if (f->n == f->room) {
		grown = realloc(f->threads, more * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		f->threads = grown;
		f->room = more;
	}
	f->threads[f->n++] = (struct stopped){.tid = tid};
	return 0;
}

/* 0, also if it has ended; -EAGAIN: it cannot be traced now. */
static int ask_thread(struct freeze *f, pid_t tid)
{
	int r = sp_seize(tid, 0);

	if (r == -ESRCH ||
	    (r == -EPERM && sp_threads_look(f->job->pid, tid).is_ending))
		return 0;
	if (r < 0)
		return -EAGAIN;
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	r = add_thread(f, tid);
	return r;
}

/* Ask those that were not asked yet; *ret_any: there was one. */
static int ask_threads(struct freeze *f, bool *ret_any)
{
	struct sp_threads now;
	int r = sp_threads_list(f->job->pid, &now);

	*ret_any = false;
	if (r < 0)
		return r;
	for (size_t i = 0; i < now.n && r == 0; i++) {
		const size_t before = f->n;

		if (find_thread(f, now.tids[i], i))
			continue;
		r = ask_thread(f, now.tids[i]);
		*ret_any |= f->n != before;
	}
	sp_threads_free(&now);
	return r;
}

/* The address that a thread comes back to from the kernel, which it waits in
 * and which does not let it stop now; 0: it does not wait so. */
static uint64_t waits_at(const struct freeze *f, pid_t tid)
{
	char line[256] = "";
	const char *last;
	FILE *file;

	if (!sp_threads_look(f->job->pid, tid).is_held)
		return 0;
	file = sp_proc_open_file("/proc/%d/task/%d/syscall", f->job->pid, tid);
	if (file && !fgets(line, sizeof(line), file))
		line[0] = '\0';
	if (file)
		fclose(file);
	last = strrchr(line, ' ');
	return last ? strtoull(last, NULL, 16) : 0;
}

static bool is_displaced(const struct freeze *f, uint64_t address)
{
	if (address <= f->lowest || address >= f->highest)
		return false;
	for (uint32_t i = 0; i < f->list.n; i++) {
		const struct sp_attach_entry *e = &f->list.list[i];

		if (address > e->at && address < e->at + e->displaced)
			return true;
	}
	return false;
}

/* Has it stopped, ended, or come to where it cannot run on? */
static bool stands_still(struct freeze *f, struct stopped *t)
{
	int status, r;

	if (t->is_stopped || t->is_gone)
		return true;
	r = sp_seize_look(f->job->pid, &t->tid, &status);
	t->is_gone = r < 0;
	t->is_stopped = r > 0 && status >> 16 == PTRACE_EVENT_STOP;
	/* A signal came first: the program is to have it. */
	if (r > 0 && !t->is_stopped)
		ptrace(PTRACE_CONT, t->tid, 0, WSTOPSIG(status));
	return t->is_stopped || t->is_gone;
}

static bool all_stand_still(struct freeze *f)
{
	bool all = true;

	for (size_t i = 0; i < f->n; i++) {
		uint64_t at;

		if (stands_still(f, &f->threads[i]))
			continue;
		at = waits_at(f, f->threads[i].tid);
		all &= at && !is_displaced(f, at);
	}
	return all;
}

/* 0: all threads stand still. */
static int stop_threads(struct freeze *f)
{
	bool is_any = true;

	while (is_any || !all_stand_still(f)) {
		int r = ask_threads(f, &is_any);

		if (r < 0)
			return r;
		if (sp_clock_ns() > f->until ||
		    atomic_load(&f->job->worker.is_cancelled))
			return -EAGAIN;
		if (!is_any && !all_stand_still(f))
			sp_seize_nap();
		sp_seize_move();
	}
	return 0;
}

/* Those that have not stopped are let go when this process ends. */
static void release_threads(struct freeze *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->n; i++) {
		struct stopped *t = &f->threads[i];

		if (t->is_stopped)
			ptrace(PTRACE_DETACH, t->tid, 0, 0);
		else if (!t->is_gone)
			f->threads[kept++] = *t;
	}
	f->n = kept;
}

/* ---- where they stand ---- */

static bool has_displaced(const struct freeze *f, const uint64_t *words,
			  size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_displaced(f, words[i]))
			return true;
	return false;
}

/* Does it stand behind the first of displaced bytes, or return there from a
 * signal handler? */
static bool is_inside(const struct freeze *f, pid_t tid)
{
	uint64_t words[PART_BYTES / sizeof(uint64_t)];
	sp_cpu_regs regs = {0};
	uint64_t sp, end;

	if (!sp_cpu_read(tid, &regs) || is_displaced(f, sp_cpu_pc(&regs)))
		return true;
	sp = sp_cpu_sp(&regs) & ~7ull;
	for (end = sp + STACK_BYTES; sp < end; sp += sizeof(words)) {
		const size_t left = PART_BYTES - sp % PART_BYTES;

		if (!sp_tracee_read(f->job->pid, sp, words, left))
			return false;
		if (has_displaced(f, words, left / sizeof(*words)))
			return true;
		sp -= sizeof(words) - left;
	}
	return false;
}

static bool any_inside(const struct freeze *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->threads[i].is_stopped && is_inside(f, f->threads[i].tid))
			return true;
	return false;
}

/* ---- what is written ---- */

static bool read_list(const struct sp_attach_job *job,
		      struct sp_attach_entries *list)
{
	return job->entries &&
	       sp_tracee_read(job->pid, job->entries, list, sizeof(*list)) &&
	       list->n && list->n <= SP_ATTACH_ENTRIES;
}

bool sp_entries_any(const struct sp_attach_job *job)
{
	struct sp_attach_entries list;

	return read_list(job, &list);
}

static void find_range(struct freeze *f)
{
	f->lowest = UINT64_MAX;
	f->highest = 0;
	for (uint32_t i = 0; i < f->list.n; i++) {
		const struct sp_attach_entry *e = &f->list.list[i];

		if (e->at < f->lowest)
			f->lowest = e->at;
		if (e->at + e->displaced > f->highest)
			f->highest = e->at + e->displaced;
	}
}

/* By whole words, which are of one page each; any thread that has stopped does
 * for it. */
static bool write_bytes(const struct freeze *f, uint64_t at,
			const uint8_t *bytes)
{
	const uint64_t first = at & ~7ull;
	uint64_t words[2];
	const size_t n = at - first + SP_ATTACH_ENTRY_BYTES > 8 ? 2 : 1;
	size_t i = 0;

	while (i < f->n && !f->threads[i].is_stopped)
		i++;
	if (i == f->n || !sp_tracee_read(f->job->pid, first, words, n * 8))
		return false;
	memcpy((char *)words + (at - first), bytes, SP_ATTACH_ENTRY_BYTES);
	for (size_t k = 0; k < n; k++)
		if (ptrace(PTRACE_POKETEXT, f->threads[i].tid,
			   (void *)(uintptr_t)(first + 8 * k),
			   (void *)(uintptr_t)words[k]) != 0)
			return false;
	return true;
}

static bool has_bytes(const struct freeze *f, uint64_t at, const uint8_t *bytes)
{
	uint8_t now[SP_ATTACH_ENTRY_BYTES];

	return sp_tracee_read(f->job->pid, at, now, sizeof(now)) &&
	       memcmp(now, bytes, sizeof(now)) == 0;
}

static bool is_before(const struct freeze *f, const struct sp_attach_entry *e)
{
	return has_bytes(f, e->at, e->before);
}

/* Back, where nobody else has changed them.  False: the kernel refuses. */
static bool restore_entries(struct freeze *f, uint32_t from, uint32_t to)
{
	bool all = true;

	for (uint32_t i = from; i < to; i++) {
		const struct sp_attach_entry *e = &f->list.list[i];

		if (has_bytes(f, e->at, e->after))
			all &= write_bytes(f, e->at, e->before);
	}
	return all;
}

/* A family, if all of it is as the library has seen it.  False: the kernel
 * refuses, and nothing is written. */
static bool divert_family(struct freeze *f, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		if (!is_before(f, &f->list.list[i]))
			return true;
	for (uint32_t i = from; i < to; i++) {
		const struct sp_attach_entry *e = &f->list.list[i];

		if (!write_bytes(f, e->at, e->after)) {
			restore_entries(f, from, to);
			return false;
		}
	}
	f->job->request.places += to - from;
	return true;
}

static int write_list(struct freeze *f)
{
	bool all = true;

	if (f->job->request.command == SP_ATTACH_END)
		return restore_entries(f, 0, f->list.n) ? 0 : -EIO;
	for (uint32_t i = 0, end; i < f->list.n && all; i = end) {
		for (end = i;
		     end < f->list.n &&
		     f->list.list[end].family == f->list.list[i].family;)
			end++;
		all = divert_family(f, i, end);
	}
	if (!all)
		restore_entries(f, 0, f->list.n);
	return all ? 0 : -EIO;
}

/* -EAGAIN: try again later. */
static int try_to_write(struct freeze *f)
{
	const uint64_t began_ns = sp_clock_ns();
	uint64_t stopped_ns;
	int r;

	/* What it is when all stand still counts. */
	if (!read_list(f->job, &f->list))
		return 0;
	find_range(f);
	r = stop_threads(f);
	if (r == 0 && !read_list(f->job, &f->list)) {
		r = 0;
	} else if (r == 0) {
		find_range(f);
		if (f->list.is_changing ||
		    (f->job->request.command == SP_ATTACH_BEGIN &&
		     any_inside(f)))
			r = -EAGAIN;
		else
			r = write_list(f);
	}
	release_threads(f);
	stopped_ns = sp_clock_ns() - began_ns;
	if (stopped_ns > f->job->done.stopped_ns)
		f->job->done.stopped_ns = stopped_ns;
	return r;
}

void sp_entries_write(void *arg)
{
	struct sp_attach_job *job = arg;
	struct freeze *f = calloc(1, sizeof(*f));
	int r = f ? -EAGAIN : -ENOMEM;

	sp_seize_begin(&job->worker.moved_ns);
	if (f) {
		f->job = job;
		f->until = sp_clock_ns() + SP_ATTACH_GIVE_UP_NS;
	}
	while (f && r == -EAGAIN && sp_clock_ns() < f->until &&
	       !atomic_load(&job->worker.is_cancelled)) {
		r = try_to_write(f);
		if (r == -EAGAIN)
			sp_attach_pause(job);
	}
	job->result = r;
	if (r == -EAGAIN)
		job->result = sp_error_set(
			&job->err, -EBUSY, NULL,
			"process %d: not all of its threads could be stopped "
			"outside the first bytes of its allocator in 2 s: try "
			"again",
			job->pid);
	else if (r < 0)
		job->result = sp_error_set(
			&job->err, r, NULL,
			"process %d: the first bytes of its allocator's "
			"functions cannot be written: %s",
			job->pid, strerror(-r));
	if (f)
		free(f->threads);
	free(f);
}
