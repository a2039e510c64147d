/* SPDX-License-Identifier: MIT */
/*
 * Run a program and say what it took:
 *
 *     timed [NAME=VALUE]... PROGRAM [ARGUMENT]...
 *
 * prints on standard output, which the program does not get: wall-clock time
 * and processor time in nanoseconds, peak resident memory in KiB, and the wait
 * status.  Processor time and memory are those of the program and all that it
 * waited for.  The settings are for the program alone.
 *
 * It is small on purpose: the peak of a process begins with that of the process
 * that it was forked from.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static long long in_ns(struct timeval t)
{
	return t.tv_sec * 1000000000ll + t.tv_usec * 1000ll;
}

static void run(char **argv)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (; *argv && strchr(*argv, '='); argv++)
		putenv(*argv);
	if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || !*argv)
		_exit(126);
	execvp(*argv, argv);
	_exit(127);
}

int main(int argc, char **argv)
{
	struct rusage usage;
	long long start;
	int status;
	pid_t pid;

	if (argc < 2) {
		fputs("usage: timed [NAME=VALUE]... PROGRAM [ARGUMENT]...\n",
		      stderr);
		return 2;
	}
	start = now_ns();
	pid = fork();
	if (pid == 0)
		run(argv + 1);
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid) {
		perror("timed");
		return 1;
	}
	printf("%lld %lld %ld %d\n", now_ns() - start,
	       in_ns(usage.ru_utime) + in_ns(usage.ru_stime), usage.ru_maxrss,
	       status);
	return 0;
}
