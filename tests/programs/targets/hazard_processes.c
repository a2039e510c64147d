/* SPDX-License-Identifier: MIT */
/* hazard_processes SCENARIO: ways to make processes, from where it hurts. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "hazard.h"

#define OBJECTS 200

extern char **environ;

static atomic_int stop;
static char true_program[] = "/bin/true";
static void *objects[OBJECTS];

static NOINLINE void make_objects(void)
{
	for (int i = 0; i < OBJECTS; i++)
		objects[i] = malloc(500);
	STAY();
}

/* Of the parent, in a child. */
static void free_objects(void)
{
	for (int i = 0; i < OBJECTS; i++) {
		free(objects[i]);
		objects[i] = NULL;
	}
}

static void reap(pid_t pid)
{
	int status;

	EXPECT(pid > 0);
	EXPECT(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static NOINLINE void in_child(void)
{
	hazard_work(5);
	STAY();
}

static void *work_on(void *arg)
{
	while (!stop)
		hazard_work(1);
	return arg;
}

static NOINLINE void *allocate_small(void *arg)
{
	while (!stop)
		free(malloc(100));
	return arg;
}

static void start(pthread_t *threads, int n, void *(*run)(void *))
{
	for (int i = 0; i < n; i++)
		EXPECT(!pthread_create(&threads[i], NULL, run, NULL));
}

static void join(pthread_t *threads, int n)
{
	stop = 1;
	for (int i = 0; i < n; i++)
		EXPECT(!pthread_join(threads[i], NULL));
}

/* How many: the first argument. */
static int times_of(char **arguments)
{
	EXPECT(arguments[0] && atoi(arguments[0]) > 0);
	return atoi(arguments[0]);
}

/* Children of a process with 16 busy threads free what the parent made, have
 * children of their own, or become another program. */
static void do_busy(char **arguments)
{
	char *program[] = {true_program, NULL};
	pthread_t threads[16];
	const int children = times_of(arguments);

	make_objects();
	start(threads, 16, allocate_small);
	for (int i = 0; i < children; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			alarm(HUNG_S);
			in_child();
			if (i % 3 == 0)
				execv(program[0], program);
			free_objects();
			if (i % 3 == 1) {
				pid = fork();
				if (pid == 0)
					_exit(0);
				reap(pid);
			}
			exit(0);
		}
		reap(pid);
	}
	join(threads, 16);
	free_objects();
	puts("forked");
}

/* For a program that is linked with hazard_early.c, which allocates in its fork
 * handlers: after a profiler's in the parent, before them in the child. */
static void do_handlers(char **arguments)
{
	pthread_t threads[2];
	const int children = times_of(arguments);

	start(threads, 2, work_on);
	for (int i = 0; i < children; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			alarm(HUNG_S);
			in_child();
			_exit(0);
		}
		reap(pid);
	}
	join(threads, 2);
	puts("handled");
}

static atomic_int alarms;

/* Every tenth time in a child as well. */
static void allocate_and_fork(int number)
{
	int saved_errno = errno;
	pid_t pid;

	(void)number;
	free(malloc(100));
	if (++alarms % 10 == 0) {
		pid = fork();
		if (pid == 0) {
			free(malloc(200));
			_exit(0);
		}
		reap(pid);
	}
	errno = saved_errno;
}

/* SIGALRM a thousand times a second, until that was ARGUMENT times. */
static void do_alarms(char **arguments)
{
	struct itimerval often = {{0, 1000}, {0, 1000}};
	struct sigaction action = {.sa_handler = allocate_and_fork,
				   .sa_flags = SA_RESTART};
	int n = atoi(arguments[0]);

	EXPECT(!sigaction(SIGALRM, &action, NULL));
	EXPECT(!setitimer(ITIMER_REAL, &often, NULL));
	while (alarms < n)
		free(malloc(50));
	EXPECT(!setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}},
			  NULL));
	puts("alarmed");
}

static void *spawn_often(void *arg)
{
	char *program[] = {true_program, NULL};
	pid_t pid;

	for (int i = 0; i < 10; i++) {
		hazard_work(2);
		EXPECT(!posix_spawn(&pid, program[0], NULL, NULL, program,
				    environ));
		reap(pid);
	}
	return arg;
}

/* Children that share the memory of four threads. */
static void do_spawn(char **arguments)
{
	pthread_t threads[4];

	(void)arguments;
	start(threads, 4, spawn_often);
	join(threads, 4);
	puts("spawned");
}

static int cloned(void *arg)
{
	(void)arg;
	hazard_work(3);
	return 0;
}

/* Without the C library's fork: a copy of the memory, and a guest in it. */
static void do_clone(char **arguments)
{
	static _Alignas(16) char stack[256 << 10];
	pid_t pid;

	(void)arguments;
	for (int i = 0; i < 10; i++) {
		hazard_work(3);
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (pid == 0) {
			in_child();
			_exit(0);
		}
		reap(pid);
		reap(clone(cloned, stack + sizeof(stack),
			   CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
	}
	puts("cloned");
}

/* Two processes that both are number 1, in namespaces one in the other. */
static void do_same_number(char **arguments)
{
	pid_t pid;

	(void)arguments;
	hazard_work(3);
	EXPECT(!unshare(CLONE_NEWPID));
	pid = fork();
	if (pid == 0) {
		EXPECT(getpid() == 1);
		in_child();
		EXPECT(!unshare(CLONE_NEWPID));
		pid = fork();
		if (pid == 0) {
			EXPECT(getpid() == 1);
			in_child();
			exit(0);
		}
		reap(pid);
		exit(0);
	}
	reap(pid);
	puts("same");
}

/* A server that forks for each request; the children free what it made. */
static void do_server(char **arguments)
{
	const int children = times_of(arguments);

	for (int i = 0; i < children; i++) {
		pid_t pid;

		make_objects();
		pid = fork();
		if (pid == 0) {
			in_child();
			free_objects();
			if (i % 2)
				_exit(0);
			exit(0);
		}
		reap(pid);
		free_objects();
	}
	puts("served");
}

/* Fork, new session, fork, nothing left open, somewhere else. */
static void do_daemon(char **arguments)
{
	pid_t pid;

	(void)arguments;
	EXPECT(!prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
	hazard_work(3);
	pid = fork();
	if (pid == 0) {
		EXPECT(setsid() > 0);
		pid = fork();
		if (pid)
			_exit(pid < 0);
		EXPECT(!chdir("/"));
		closefrom(0);
		in_child();
		exit(0);
	}
	reap(pid);
	EXPECT(wait(NULL) > 0);
	puts("daemon");
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{"busy", do_busy},     {"handlers", do_handlers},
		{"alarms", do_alarms}, {"spawn", do_spawn},
		{"clone", do_clone},   {"same_number", do_same_number},
		{"server", do_server}, {"daemon", do_daemon},
		{NULL, NULL},
	};

	(void)argc;
	return hazard_run(scenarios, argv);
}
