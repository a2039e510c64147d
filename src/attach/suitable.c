/* SPDX-License-Identifier: MIT */
#include "attach/suitable.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ARENA_BYTES (64u << 20)

struct status {
	char state;
	uint64_t tracer, seccomp, shadow_stack, threads;
	bool is_there;
};

static struct status read_status(uint64_t pid)
{
	struct status status = {.state = '?'};
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/status", pid);
	f = fopen(path, "re");
	status.is_there = f;
	while (f && getline(&line, &room, f) > 0) {
		sscanf(line, "State: %c", &status.state);
		sscanf(line, "TracerPid: %" SCNu64, &status.tracer);
		sscanf(line, "Seccomp: %" SCNu64, &status.seccomp);
		sscanf(line, "Threads: %" SCNu64, &status.threads);
		if (strncmp(line, "x86_Thread_features:", 20) == 0 &&
		    strstr(line, "shstk"))
			status.shadow_stack = 1;
	}
	free(line);
	if (f)
		fclose(f);
	return status;
}

static int read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	int n = -1;

	if (f && fscanf(f, "%d", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

int sp_suitable_explain_refusal(uint64_t pid, struct sp_error *err)
{
	const int yama = read_number("/proc/sys/kernel/yama/ptrace_scope");

	if (yama >= 3)
		return sp_error_set(err, -EPERM, NULL,
				    "tracing is switched off here for good "
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
				    "not even by this root: CAP_SYS_PTRACE is "
				    "missing (in a container: "
				    "--cap-add=SYS_PTRACE), or the process "
				    "belongs to another container",
				    pid);
	return sp_error_set(err, -EPERM, NULL,
			    "process %" PRIu64
			    " may not be traced: run as its user, or root (in "
			    "a container: --cap-add=SYS_PTRACE)",
			    pid);
}

static int check_executable(uint64_t pid, struct sp_error *err)
{
	Elf64_Ehdr header = {0};
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return sp_error_set(err, -ENOEXEC, NULL,
				    "%" PRIu64 " is a thread of the kernel",
				    pid);
	if (fd < 0)
		return sp_suitable_explain_refusal(pid, err);
	if (read(fd, &header, sizeof(header)) < 0)
		header.e_machine = 0;
	close(fd);
	if (header.e_ident[EI_CLASS] == ELFCLASS64 &&
	    header.e_machine == SP_CPU_MACHINE)
		return 0;
	return sp_error_set(err, -ENOEXEC, NULL,
			    "process %" PRIu64 " is a program of %s: the "
			    "library cannot be loaded into it",
			    pid,
			    header.e_ident[EI_CLASS] == ELFCLASS32
				    ? "32 bits"
				    : "another architecture than " SP_CPU_NAME);
}

static int refuse_stopped(uint64_t pid, struct sp_error *err)
{
	return sp_error_set(err, -EBUSY, NULL,
			    "process %" PRIu64 " is stopped: let it go on "
			    "first (kill -CONT %" PRIu64 ")",
			    pid, pid);
}

int sp_suitable_explain_silence(uint64_t pid, struct sp_error *err)
{
	if (read_status(pid).state == 'T')
		return refuse_stopped(pid, err);
	return sp_error_set(err, -EBUSY, NULL,
			    "process %" PRIu64 ": in 2 s no thread was found "
			    "at a place where it can load a library (outside "
			    "its allocator, its loader and signal handlers); "
			    "try again",
			    pid);
}

int sp_suitable_check(uint64_t pid, bool *ret_filtered, struct sp_error *err)
{
	const struct status status = read_status(pid);

	*ret_filtered = status.seccomp;
	if (!status.is_there)
		return sp_error_set(err, -ESRCH, NULL,
				    "there is no process %" PRIu64, pid);
	/* What the kernel shows of a process is its main thread's. */
	if (status.state == 'Z' && status.threads > 1)
		return sp_error_set(err, -ENOEXEC, NULL,
				    "the main thread of process %" PRIu64 " "
				    "has ended, and others run on: start the "
				    "program under sampleprof run",
				    pid);
	if (status.state == 'Z' || status.state == 'X')
		return sp_error_set(err, -ESRCH, NULL,
				    "process %" PRIu64 " has ended: its parent "
				    "has not asked for its status yet",
				    pid);
	if (status.tracer)
		return sp_error_set(err, -EBUSY, NULL,
				    "process %" PRIu64 " is being traced by "
				    "process %" PRIu64 " (a debugger or "
				    "strace): end that first",
				    pid, status.tracer);
	if (status.state == 'T')
		return refuse_stopped(pid, err);
	if (status.shadow_stack)
		return sp_error_set(err, -ENOEXEC, NULL,
				    "process %" PRIu64 " has a shadow stack, "
				    "which no call can be added to: start it "
				    "under sampleprof run",
				    pid);
	return check_executable(pid, err);
}

int sp_suitable_check_image(pid_t pid, const struct sp_image *image,
			    struct sp_error *err)
{
	if (!sp_image_has_loader(image))
		return sp_error_set(err, -ENOEXEC, NULL,
				    "process %d is linked statically: it has "
				    "no loader for a library, and its malloc "
				    "is inside it; link it dynamically",
				    pid);
	if (!sp_image_has_glibc(image))
		return sp_error_set(err, -ENOEXEC, NULL,
				    "process %d has another C library than "
				    "glibc (musl?): start it under sampleprof "
				    "run instead",
				    pid);
	if (sp_image_has_own_malloc(image))
		return sp_error_set(err, -ENOEXEC, NULL,
				    "the program of process %d has its own "
				    "malloc, which it calls directly: no "
				    "pointer can be changed so that the calls "
				    "come in",
				    pid);
	return 0;
}

/* Field 22 of /proc/PID/stat, in ticks since the machine was started. */
uint64_t sp_suitable_age_ms(uint64_t pid)
{
	const uint64_t ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK);
	char path[64], text[1024] = "";
	uint64_t ticks = 0, now_ms;
	struct timespec now;
	const char *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", pid);
	f = fopen(path, "re");
	if (f && fread(text, 1, sizeof(text) - 1, f) == 0)
		text[0] = '\0';
	if (f)
		fclose(f);
	p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		if (p)
			p++;
	}
	if (p)
		ticks = strtoull(p, NULL, 10);
	clock_gettime(CLOCK_BOOTTIME, &now);
	now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	if (!ticks || !ticks_per_s || ticks * 1000 / ticks_per_s > now_ms)
		return 0;
	return now_ms - ticks * 1000 / ticks_per_s;
}

/* The program break's, and further arenas, each in its own aligned region. */
uint64_t sp_suitable_heap_bytes(uint64_t pid)
{
	uint64_t start, end, offset, inode, bytes = 0;
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/maps", pid);
	f = fopen(path, "re");
	while (f && getline(&line, &room, f) > 0)
		if (sscanf(line,
			   "%" SCNx64 "-%" SCNx64 " rw-p %" SCNx64
			   " %*x:%*x %" SCNu64,
			   &start, &end, &offset, &inode) == 4 &&
		    !inode &&
		    (start % ARENA_BYTES == 0 || strstr(line, "[heap]")))
			bytes += end - start;
	free(line);
	if (f)
		fclose(f);
	return bytes;
}
