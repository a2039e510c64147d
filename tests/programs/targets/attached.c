/* SPDX-License-Identifier: MIT */
/*
 * A process to be attached to, which does what its standard input says:
 *
 *   attached N      N threads allocate between "go" and "stop", with a line of
 *                   what they have allocated since; "old" allocates 100,000
 *                   objects, and "free" frees them; "keep" allocates one of
 *                   10,000,000 bytes
 *   attached state  threads wait in system calls, spin, and hold numbers in
 *                   registers, and check that nobody can tell a difference
 *   attached killed the same, but files may be left open
 *
 * "end" ends it, with "ok".
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <time.h>

#include "go_stop.h"

#ifdef PREFIX /* an allocator beside the C library's */
void *je_malloc(size_t n);
void je_free(void *p);
#define malloc je_malloc
#define free   je_free
#endif

#define OLD    100000
#define SLOTS  64
#define ROUNDS 100

#define N_SIGNALS 32

static void *allocate(void *arg)
{
	struct truth mine = {0, 0};
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	void *kept[SLOTS] = {NULL};

	for (;;) {
		if (!atomic_load(&goes))
			stand_still(&mine, &ended);
		for (int i = 0; i < ROUNDS; i++) {
			const size_t n = (size_t)rand_r(&seed) % 2000 + 1;
			const int k = rand_r(&seed) % SLOTS;

			free(kept[k]);
			kept[k] = malloc(n);
			memset(kept[k], 1, n);
			truth_add(&mine, kept[k], n);
		}
	}
	return NULL;
}

static void run_storm(int n)
{
	static void *old[OLD];
	char line[64];

	for (int i = 0; i < n; i++) {
		pthread_t t;

		EXPECT(pthread_create(&t, NULL, allocate,
				      (void *)(uintptr_t)i) == 0);
	}
	stop_all(n);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
		if (strcmp(line, "go\n") == 0) {
			go_all();
		} else if (strcmp(line, "stop\n") == 0) {
			stop_all(n);
		} else if (strcmp(line, "old\n") == 0) {
			for (int i = 0; i < OLD; i++)
				old[i] = malloc(200);
			truth_print("old", &all);
		} else if (strcmp(line, "free\n") == 0) {
			for (int i = 0; i < OLD; i++)
				free(old[i]);
			truth_print("free", &all);
		} else {
			old[0] = malloc(10000000);
			truth_print("keep", &all);
		}
	}
}

/* ---- what must stay as it is ---- */

static int pipe_ends[2];
static bool may_leave_files;

static void *wait_in_read(void *arg)
{
	char c = 0;

	(void)arg;
	errno = 77;
	EXPECT(read(pipe_ends[0], &c, 1) == 1 && c == 'x' && errno == 77);
	return NULL;
}

static void *wait_in_poll(void *arg)
{
	struct pollfd none = {-1, 0, 0};

	(void)arg;
	while (!atomic_load(&ended))
		EXPECT(poll(&none, 1, 50) == 0);
	return NULL;
}

static void *wait_in_sleep(void *arg)
{
	(void)arg;
	while (!atomic_load(&ended)) {
		const struct timespec t = {0, 50000000};
		struct timespec begin, end;

		clock_gettime(CLOCK_MONOTONIC, &begin);
		EXPECT(nanosleep(&t, NULL) == 0);
		clock_gettime(CLOCK_MONOTONIC, &end);
		EXPECT((end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec -
			       begin.tv_nsec >=
		       50000000);
	}
	return NULL;
}

static atomic_int handled;

static void count_signal(int signal)
{
	(void)signal;
	atomic_fetch_add(&handled, 1);
}

/* With SIGUSR1 blocked but in here. */
static void *wait_in_suspend(void *arg)
{
	sigset_t none, now;

	(void)arg;
	sigfillset(&none);
	sigdelset(&none, SIGUSR1);
	while (!atomic_load(&ended)) {
		const int before = atomic_load(&handled);

		EXPECT(sigsuspend(&none) == -1 && errno == EINTR);
		EXPECT(atomic_load(&handled) > before);
		pthread_sigmask(SIG_SETMASK, NULL, &now);
		EXPECT(sigismember(&now, SIGUSR1) == 1 &&
		       sigismember(&now, SIGTERM) == 0);
	}
	return NULL;
}

/* No signal gets in. */
static void *wait_blocked(void *arg)
{
	sigset_t every, now;

	(void)arg;
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, NULL);
	while (!atomic_load(&ended)) {
		nap(1000);
		pthread_sigmask(SIG_SETMASK, NULL, &now);
		EXPECT(sigismember(&now, SIGSEGV) == 1 &&
		       sigismember(&now, SIGWINCH) == 1);
	}
	return NULL;
}

static double add_up(int n)
{
	double sum = 0, product = 1;

	for (int i = 1; i < n; i++) {
		sum += 1.0 / i;
		product *= 1 + 1.0 / ((double)i * i);
	}
	return sum * product;
}

static void *spin(void *arg)
{
	const double right = add_up(100000);

	(void)arg;
	errno = 78;
	while (!atomic_load(&ended)) {
		EXPECT(add_up(100000) == right && errno == 78);
		/* A hundred commands take their time beside it. */
		if (may_leave_files)
			nap(1000);
		EXPECT(errno == 78);
	}
	return NULL;
}

static int count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

struct state {
	stack_t stack;
	sigset_t mask;
	struct rlimit files;
	int n_files;
	struct sigaction actions[N_SIGNALS];
};

static int niceness;

static void read_state(struct state *s)
{
	memset(s, 0, sizeof(*s));
	sigaltstack(NULL, &s->stack);
	sigprocmask(SIG_SETMASK, NULL, &s->mask);
	getrlimit(RLIMIT_NOFILE, &s->files);
	s->n_files = count_files();
	for (int i = 1; i < N_SIGNALS; i++)
		sigaction(i, NULL, &s->actions[i]);
}

/* Of each thread, for one of them was run before others. */
static void expect_priorities(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;

	EXPECT(dir);
	while ((entry = readdir(dir))) {
		const pid_t tid = atoi(entry->d_name);

		if (!tid)
			continue;
		EXPECT(sched_getscheduler(tid) == sched_getscheduler(0));
		EXPECT(getpriority(PRIO_PROCESS, (id_t)tid) == niceness);
	}
	closedir(dir);
	EXPECT(sched_getscheduler(0) == SCHED_OTHER);
}

static void expect_same(const struct state *a, const struct state *b)
{
	EXPECT(a->stack.ss_sp == b->stack.ss_sp &&
	       a->stack.ss_size == b->stack.ss_size &&
	       a->stack.ss_flags == b->stack.ss_flags);
	EXPECT(memcmp(&a->mask, &b->mask, sizeof(a->mask)) == 0);
	EXPECT(a->files.rlim_cur == b->files.rlim_cur);
	EXPECT(a->n_files == b->n_files ||
	       (may_leave_files && a->n_files < b->n_files));
	for (int i = 1; i < N_SIGNALS; i++)
		EXPECT(a->actions[i].sa_handler == b->actions[i].sa_handler);
}

/* What dlerror has to say of this, if nobody has asked it meanwhile. */
static void fail_to_load(void)
{
	EXPECT(!dlopen("/no/such/library", RTLD_NOW));
}

/* If who attaches is killed, the text may be gone. */
static void expect_error(void)
{
	const char *text = dlerror();

	EXPECT(may_leave_files || (text && strstr(text, "/no/such/library")));
}

static void run_state(void)
{
	static void *(*const threads[])(void *) = {
		wait_in_suspend, wait_in_read, wait_in_poll,
		wait_in_sleep,   wait_blocked, spin};
	const struct sigaction action = {.sa_handler = count_signal};
	pthread_t t[sizeof(threads) / sizeof(*threads)];
	static char alternate[65536];
	const stack_t stack = {alternate, 0, sizeof(alternate)};
	static struct state before, after;
	char line[64];
	sigset_t usr;

	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr, NULL);
	sigaction(SIGUSR1, &action, NULL);
	sigaltstack(&stack, NULL);
	EXPECT(pipe(pipe_ends) == 0);
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++)
		EXPECT(pthread_create(&t[i], NULL, threads[i], NULL) == 0);
	read_state(&before);
	niceness = getpriority(PRIO_PROCESS, 0);
	truth_print("going", &all);
	fail_to_load();
	errno = 79;
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
		EXPECT(errno == 79);
		read_state(&after);
		expect_same(&before, &after);
		expect_priorities();
		expect_error();
		fail_to_load();
		truth_print("same", &all);
		errno = 79;
	}
	atomic_store(&ended, 1);
	EXPECT(atomic_load(&handled) == 0);
	pthread_kill(t[0], SIGUSR1);
	EXPECT(write(pipe_ends[1], "x", 1) == 1);
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++)
		pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
	EXPECT(argc == 2);
	/* Streams allocate when they are first used. */
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	may_leave_files = strcmp(argv[1], "killed") == 0;
	if (strcmp(argv[1], "state") == 0 || may_leave_files)
		run_state();
	else
		run_storm(atoi(argv[1]));
	puts("ok");
	return 0;
}
