/* SPDX-License-Identifier: MIT */
#include "control/suitable.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/patience.h"
#include "base/proc.h"

#define KTHREADD    2
#define ARENA_BYTES (64u << 20) /* alignment of glibc's arenas */

struct status {
	char state;
	uint64_t tracer, seccomp, shadow_stack, threads, parent;
	bool is_there;
	bool has_two_users; /* or two groups: those it was started by, and with
			       the rights of */
};

/* By which /proc shows it; its main thread if all have ended. */
static pid_t thread_of(uint64_t pid)
{
	const pid_t tid = sp_proc_thread(pid);

	return tid > 0 ? tid : (pid_t)pid;
}

/* What /proc/PID/status says. */
static struct status read_status(uint64_t pid)
{
	struct status status = {.state = '?'};
	uint64_t real, effective;
	struct sp_proc_lines l = {
		.in = sp_proc_open_file("/proc/%d/status", thread_of(pid))};

	status.is_there = l.in;
	while (sp_proc_next(&l)) {
		const char *line = l.line;

		sscanf(line, "State: %c", &status.state);
		if (sscanf(line, "%*1[UG]id: %" SCNu64 " %" SCNu64, &real,
			   &effective) == 2)
			status.has_two_users |= real != effective;
		sscanf(line, "PPid: %" SCNu64, &status.parent);
		sscanf(line, "TracerPid: %" SCNu64, &status.tracer);
		sscanf(line, "Threads: %" SCNu64, &status.threads);
		sscanf(line, "Seccomp: %" SCNu64, &status.seccomp);
		if (strncmp(line, "x86_Thread_features:", 20) == 0 &&
		    strstr(line, "shstk"))
			status.shadow_stack = 1;
	}
	return status;
}

/* The number in a file of /proc/sys; -1: there is none. */
static int read_number(const char *path)
{
	char text[32];
	int n;

	sp_proc_read(text, sizeof(text), "%s", path);
	return sscanf(text, "%d", &n) == 1 ? n : -1;
}

static int refuse_secure_process(uint64_t pid, struct sp_error *err)
{
	return sp_error_set(err, -ENOEXEC, NULL,
			    "process %" PRIu64 " runs a program that is "
			    "set-uid, set-gid or has capabilities: the library "
			    "records no such program",
			    pid);
}

int sp_suitable_explain_refusal(uint64_t pid, struct sp_error *err)
{
	const int yama = read_number("/proc/sys/kernel/yama/ptrace_scope");

	if (read_status(pid).has_two_users)
		return refuse_secure_process(pid, err);
	if (yama >= 3)
		return sp_error_set(err, -EPERM, NULL,
				    "tracing is switched off until this "
				    "machine is started again "
				    "(kernel.yama.ptrace_scope is 3): start "
				    "the program under sampleprof run");
	if (yama > 0 && geteuid() != 0)
		return sp_error_set(
			err, -EPERM, NULL,
			"process %" PRIu64
			" may not be traced (kernel.yama.ptrace_scope is %d): "
			"run as root, or with CAP_SYS_PTRACE",
			pid, yama);
	if (geteuid() == 0)
		return sp_error_set(err, -EPERM, NULL,
				    "process %" PRIu64 " may not be traced, "
				    "although you are root: CAP_SYS_PTRACE is "
				    "missing (in a container: "
				    "--cap-add=SYS_PTRACE), or the process "
				    "belongs to another container (attach from "
				    "the host)",
				    pid);
	return sp_error_set(err, -EPERM, NULL,
			    "process %" PRIu64
			    " may not be traced: run as its user, or root (in "
			    "a container: --cap-add=SYS_PTRACE)",
			    pid);
}

/* ---- another command, and another program ---- */

bool sp_suitable_is_ours(pid_t tracer)
{
	char ours[32], theirs[32];

	return sp_proc_read(ours, sizeof(ours), "/proc/self/comm") > 0 &&
	       sp_proc_read(theirs, sizeof(theirs), "/proc/%d/comm", tracer) >
		       0 &&
	       strcmp(ours, theirs) == 0;
}

int sp_suitable_explain_tracer(uint64_t pid, pid_t tracer, struct sp_error *err)
{
	if (sp_suitable_is_ours(tracer))
		return sp_error_set(err, -EBUSY, NULL,
				    "process %" PRIu64 ": another sampleprof "
				    "(process %" PRIu64 ") attaches to it or "
				    "detaches from it, and was not done in "
				    "2 s: try again",
				    pid, read_status((uint64_t)tracer).parent);
	return sp_error_set(err, -EBUSY, NULL,
			    "process %" PRIu64 " is being traced by process %d "
			    "(a debugger or strace): end that one first",
			    pid, tracer);
}

bool sp_suitable_has_ended(uint64_t pid)
{
	const struct status status = read_status(pid);

	return !status.is_there || status.state == 'Z' || status.state == 'X';
}

/* What the kernel told the program at its start; 0: not known. */
static uint64_t read_auxv(pid_t pid, uint64_t type)
{
	Elf64_auxv_t entry;
	uint64_t found = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/auxv", thread_of((uint64_t)pid));
	f = fopen(path, "re");
	while (f && fread(&entry, sizeof(entry), 1, f) == 1)
		if (entry.a_type == type)
			found = entry.a_un.a_val;
	if (f)
		fclose(f);
	return found;
}

/* The kernel gives each program 16 random bytes. */
void sp_suitable_read_program(pid_t pid, struct sp_suitable_program *ret)
{
	*ret = (struct sp_suitable_program){.at = read_auxv(pid, AT_RANDOM)};
	if (!ret->at || sp_patience_memory(thread_of((uint64_t)pid), ret->at,
					   ret->random, sizeof(ret->random)) !=
				(ssize_t)sizeof(ret->random))
		ret->at = 0;
}

bool sp_suitable_has_executed(pid_t pid,
			      const struct sp_suitable_program *before)
{
	struct sp_suitable_program now;

	sp_suitable_read_program(pid, &now);
	return now.at && before->at &&
	       (now.at != before->at ||
		memcmp(now.random, before->random, sizeof(now.random)) != 0);
}

/* ---- what the process is ---- */

/* kthreadd, or one of its children. */
static bool is_of_kernel(uint64_t pid)
{
	return pid == KTHREADD || read_status(pid).parent == KTHREADD;
}

static int check_executable(uint64_t pid, struct sp_error *err)
{
	Elf64_Ehdr header = {0};
	char path[64];
	ssize_t r;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", thread_of(pid));
	fd = sp_patience_open(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
	/* Neither a kernel thread nor a process that ends has one. */
	if (fd == -ENOENT && !is_of_kernel(pid))
		return sp_error_set(err, -ESRCH, NULL,
				    "process %" PRIu64 " has ended", pid);
	if (fd == -ENOENT)
		return sp_error_set(err, -ENOEXEC, NULL,
				    "process %" PRIu64 " is a kernel thread, "
				    "which cannot be recorded",
				    pid);
	if (fd < 0 && fd != -ETIMEDOUT)
		return sp_suitable_explain_refusal(pid, err);
	r = fd < 0 ? fd : sp_patience_read(fd, &header, sizeof(header), 0);
	if (fd >= 0)
		close(fd);
	if (r == -ETIMEDOUT)
		return sp_error_set(err, -ETIMEDOUT, NULL,
				    "process %" PRIu64
				    ": its executable was not answered in "
				    "%u ms: a process serves its file system, "
				    "which may be stopped",
				    pid, sp_patience_waited_ms());
	if (r < 0)
		header.e_machine = 0;
	if (header.e_ident[EI_CLASS] == ELFCLASS64 &&
	    header.e_machine == SP_CPU_MACHINE)
		return 0;
	return sp_error_set(err, -ENOEXEC, NULL,
			    "process %" PRIu64 " runs %s: this sampleprof "
			    "records 64-bit programs for " SP_CPU_NAME " only",
			    pid,
			    header.e_ident[EI_CLASS] == ELFCLASS32
				    ? "a 32-bit program"
				    : "a program for another architecture");
}

static int refuse_stopped_process(uint64_t pid, struct sp_error *err)
{
	return sp_error_set(err, -EBUSY, NULL,
			    "process %" PRIu64 " is stopped: continue it "
			    "first (kill -CONT %" PRIu64 ")",
			    pid, pid);
}

static int refuse_ended_process(uint64_t pid, struct sp_error *err)
{
	return sp_error_set(err, -ESRCH, NULL,
			    "process %" PRIu64 " has ended; it is a zombie "
			    "until its parent waits for it",
			    pid);
}

int sp_suitable_explain_silence(uint64_t pid, bool has_stopped,
				struct sp_error *err)
{
	if (read_status(pid).state == 'T')
		return refuse_stopped_process(pid, err);
	if (!has_stopped)
		return sp_error_set(err, -EBUSY, NULL,
				    "process %" PRIu64 ": in 2 s no thread was "
				    "found that stops: they wait in the kernel "
				    "or for a processor, or their control "
				    "group is frozen; try again",
				    pid);
	return sp_error_set(err, -EBUSY, NULL,
			    "process %" PRIu64 ": in 2 s no thread was found "
			    "at a place where it can load a library (outside "
			    "its allocator, its loader and signal handlers); "
			    "try again",
			    pid);
}

/* A kernel can be built without it, and a container's filter may refuse it. */
static int check_kernel(struct sp_error *err)
{
	char from = 0, to;
	const struct iovec here = {&to, 1}, there = {&from, 1};

	if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1)
		return 0;
	return sp_error_set(err, -EOPNOTSUPP, NULL,
			    "no memory of another process can be read here "
			    "(process_vm_readv: %s): the kernel is without "
			    "CONFIG_CROSS_MEMORY_ATTACH, or a filter of system "
			    "calls refuses it; start the program under "
			    "sampleprof run",
			    strerror(errno));
}

int sp_suitable_check(uint64_t pid, bool *ret_filtered, struct sp_error *err)
{
	const struct status status = read_status(pid);
	int r;

	*ret_filtered = status.seccomp;
	if (!status.is_there)
		return sp_error_set(err, -ESRCH, NULL,
				    "there is no process %" PRIu64, pid);
	if (status.state == 'Z' || status.state == 'X')
		return refuse_ended_process(pid, err);
	/* Another command like this one is waited for later. */
	if (status.tracer && !sp_suitable_is_ours((pid_t)status.tracer))
		return sp_suitable_explain_tracer(pid, (pid_t)status.tracer,
						  err);
	if (status.state == 'T')
		return refuse_stopped_process(pid, err);
	if (status.seccomp == SECCOMP_MODE_STRICT)
		return sp_error_set(err, -ENOEXEC, NULL,
				    "process %" PRIu64 " is in the strict mode "
				    "of seccomp, in which any other system "
				    "call than read, write and exit kills it: "
				    "it cannot be recorded",
				    pid);
	if (status.shadow_stack)
		return sp_error_set(err, -ENOEXEC, NULL,
				    "process %" PRIu64 " has a shadow stack, "
				    "with which it cannot be made to call a "
				    "function: start it under sampleprof run",
				    pid);
	r = check_kernel(err);
	if (r == 0)
		r = check_executable(pid, err);
	/* Of a 64-bit program, as it is now. */
	if (r == 0 && read_auxv((pid_t)pid, AT_SECURE))
		return refuse_secure_process(pid, err);
	return r;
}

int sp_suitable_check_image(pid_t pid, const struct sp_image *image,
			    struct sp_error *err)
{
	if (!sp_image_has_loader(image))
		return sp_error_set(err, -ENOEXEC, NULL,
				    "process %d is linked statically: it has "
				    "no loader that could load the library, "
				    "and calls its malloc directly; link it "
				    "dynamically",
				    pid);
	if (!sp_image_has_glibc(image))
		return sp_error_set(err, -ENOEXEC, NULL,
				    "process %d has another C library than "
				    "glibc (such as musl): start it under "
				    "sampleprof run",
				    pid);
	if (sp_image_has_own_malloc(image) &&
	    !(SP_CPU_DIVERTS && sp_image_has_symbols(image)))
		return sp_error_set(
			err, -ENOEXEC, NULL,
			"the executable of process %d has its own "
			"malloc and calls it directly, and %s: "
			"link malloc dynamically",
			pid,
			SP_CPU_DIVERTS ? "it is stripped, so its functions "
					 "are not found"
				       : "on this processor that is not "
					 "seen");
	return 0;
}

uint64_t sp_suitable_threads(uint64_t pid)
{
	return read_status(pid).threads;
}

/* The start time is in clock ticks since the machine was started. */
uint64_t sp_suitable_age_ms(uint64_t pid)
{
	const uint64_t ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t ticks = 0, now_ms;
	struct timespec now;

	sp_proc_start_ticks(pid, &ticks);
	clock_gettime(CLOCK_BOOTTIME, &now);
	now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	if (!ticks || !ticks_per_s || ticks * 1000 / ticks_per_s > now_ms)
		return 0;
	return now_ms - ticks * 1000 / ticks_per_s;
}

/* Counts the main heap, and each anonymous mapping with the alignment of an
 * arena. */
uint64_t sp_suitable_heap_bytes(uint64_t pid)
{
	struct sp_proc_lines l = {
		.in = sp_proc_open_file("/proc/%d/maps", thread_of(pid))};
	struct sp_proc_map m;
	uint64_t bytes = 0;

	while (sp_proc_next_map(&l, &m))
		if (strcmp(m.mode, "rw-p") == 0 && !m.file.inode &&
		    (m.start % ARENA_BYTES == 0 || strstr(m.path, "[heap]")))
			bytes += m.end - m.start;
	return bytes;
}
