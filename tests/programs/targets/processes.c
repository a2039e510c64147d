/* SPDX-License-Identifier: MIT */
/*
 * processes SCENARIO [NUMBER...]: lives and deaths of processes.  Allocations
 * are 100 bytes each, in `work`; every process that ends by exit prints its
 * truth as "PID BYTES OBJECTS".
 */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "truth.h"

#define OBJECT_BYTES 100

extern char **environ;

static struct truth truth;
static void *volatile sink;

static NOINLINE void work(int n)
{
	for (int i = 0; i < n; i++) {
		sink = malloc(OBJECT_BYTES);
		truth_add(&truth, sink, OBJECT_BYTES);
		free(sink);
	}
	STAY();
}

static void print_truth(void)
{
	char name[32];

	snprintf(name, sizeof(name), "%d", (int)getpid());
	truth_print(name, &truth);
}

static void finish(void)
{
	print_truth();
	exit(0);
}

static void wait_for(pid_t pid)
{
	int status;

	EXPECT(pid > 0);
	EXPECT(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The child knows nothing of what was allocated before. */
static void be_child(int n)
{
	truth = (struct truth){0, 0};
	work(n);
	finish();
}

/* fork PARENT CHILD GRANDCHILD: a child with a child. */
static void do_fork(const int *n)
{
	pid_t pid;

	work(n[0]);
	pid = fork();
	if (pid == 0) {
		truth = (struct truth){0, 0};
		work(n[1]);
		pid = fork();
		if (pid == 0)
			be_child(n[2]);
		wait_for(pid);
		finish();
	}
	wait_for(pid);
	work(n[0]);
}

/* unannounced PARENT CHILD: a child that no fork handler hears of. */
static void do_unannounced(const int *n)
{
	pid_t pid;

	work(n[0]);
	pid = _Fork();
	if (pid == 0)
		be_child(n[1]);
	wait_for(pid);
	work(n[0]);
}

/* siblings CHILDREN OBJECTS */
static void do_siblings(const int *n)
{
	for (int i = 0; i < n[0]; i++) {
		pid_t pid = fork();

		if (pid == 0)
			be_child(n[1]);
		wait_for(pid);
	}
}

static void *allocate_busily(void *arg)
{
	for (int i = 0; i < *(const int *)arg; i++)
		free(malloc(OBJECT_BYTES));
	return NULL;
}

/* busy CHILDREN CHILD THREAD: fork while 8 threads allocate. */
static void do_busy(const int *n)
{
	pthread_t threads[8];
	int each = n[2];

	for (int i = 0; i < 8; i++)
		EXPECT(!pthread_create(&threads[i], NULL, allocate_busily,
				       &each));
	do_siblings(n);
	for (int i = 0; i < 8; i++)
		EXPECT(!pthread_join(threads[i], NULL));
}

/* vfork PARENT CHILD: the child borrows the parent's memory. */
static void do_vfork(const int *n)
{
	pid_t pid;

	work(n[0]);
	pid = vfork();
	if (pid == 0) {
		work(n[1]);
		_exit(0);
	}
	wait_for(pid);
	work(n[0]);
}

static void spawn(char **argv)
{
	pid_t pid;

	EXPECT(posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) == 0);
	wait_for(pid);
}

/* chain STEPS OBJECTS PROGRAM: become oneself again. */
static void do_chain(const int *n, char **argv)
{
	char steps[16];

	work(n[1]);
	if (n[0] == 0)
		return;
	snprintf(steps, sizeof(steps), "%d", n[0] - 1);
	argv[2] = steps;
	execv(argv[0], argv);
	EXPECT(!"execv");
}

static void *exit_from_thread(void *arg)
{
	work(*(const int *)arg);
	exit(3);
}

/* OBJECTS, and then an end without, or from an unusual place. */
static void do_end(const char *how, const int *n)
{
	pthread_t thread;

	if (strcmp(how, "thread") == 0) {
		int objects = n[0];

		EXPECT(!pthread_create(&thread, NULL, exit_from_thread,
				       &objects));
		for (;;)
			pause();
	}
	work(n[0]);
	if (strcmp(how, "_exit") == 0)
		_exit(3);
	if (strcmp(how, "quick_exit") == 0)
		quick_exit(3);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGKILL);
	if (strcmp(how, "segv") == 0)
		kill(getpid(), SIGSEGV);
	pause();
}

/* wait OBJECTS: until standard input ends. */
static void do_wait(const int *n)
{
	char c;

	work(n[0]);
	EXPECT(write(STDOUT_FILENO, "ready 1\n", 8) == 8);
	EXPECT(read(STDIN_FILENO, &c, 1) == 0);
}

static atomic_int forks;

/* Once: where a fork takes longer, a signal each millisecond would leave the
 * program no time of its own. */
static void raise_in_a_ms(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 1000}}, NULL);
}

static void fork_in_handler(int signal_number)
{
	pid_t pid = fork();

	(void)signal_number;
	if (pid == 0)
		_exit(0);
	wait_for(pid);
	forks++;
	raise_in_a_ms();
}

/* handler FORKS: fork wherever a signal finds the process. */
static void do_handler(const int *n)
{
	signal(SIGALRM, fork_in_handler);
	raise_in_a_ms();
	while (forks < n[0])
		work(100);
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const int *n);
	} scenarios[] = {
		{"fork", do_fork},         {"unannounced", do_unannounced},
		{"siblings", do_siblings}, {"busy", do_busy},
		{"vfork", do_vfork},       {"wait", do_wait},
		{"handler", do_handler},
	};
	const char *name = argc > 1 ? argv[1] : "";
	int n[4] = {0};

	for (int i = 2; i < argc && i < 6; i++)
		n[i - 2] = atoi(argv[i]);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (strcmp(name, scenarios[i].name) == 0)
			scenarios[i].run(n);
	if (strcmp(name, "spawn") == 0)
		spawn(argv + 2);
	else if (strcmp(name, "chain") == 0)
		do_chain(n, argv);
	else if (strcmp(name, "end") == 0)
		do_end(argv[2], n + 1);
	print_truth();
	return 0;
}
