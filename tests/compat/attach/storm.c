/* SPDX-License-Identifier: MIT */
/*
 * A process for tests/compat/attach/run, which is attached to many times: N
 * threads allocate between "go" and "stop", each with a signal mask, an
 * alternate stack and a value of errno of its own, which it looks at all the
 * time.  With the library argv[2] the process also loads and unloads that,
 * forks, begins and ends threads, and sends its threads queued signals, none of
 * which may be lost.  Lines on standard input and output as of attached.c:
 * "go", "stop" (what was allocated since), "end".
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "go_stop.h"

#define SLOTS     64
#define ROUNDS    100
#define HELPERS   4 /* besides the N, in the mixed form */
#define LIMITS    16
#define ALTERNATE 16384

/* One thread in so many blocks all signals. */
#define LETS_NOTHING_IN 8

static atomic_int helpers_ended;
static atomic_ulong sent, handled;
static int n_threads;
static pthread_t *threads;

/* ---- threads that allocate ---- */

struct own {
	stack_t stack;
	sigset_t mask;
	int nice;
};

static void read_own(struct own *o)
{
	memset(o, 0, sizeof(*o));
	EXPECT(sigaltstack(NULL, &o->stack) == 0);
	EXPECT(pthread_sigmask(SIG_SETMASK, NULL, &o->mask) == 0);
	o->nice = getpriority(PRIO_PROCESS, 0);
}

static void allocate_some(unsigned int *seed, char **kept, struct truth *mine)
{
	for (int i = 0; i < ROUNDS; i++) {
		const size_t n = (size_t)rand_r(seed) % 2000 + 1;
		const int k = rand_r(seed) % SLOTS;

		switch (rand_r(seed) % 4) {
		case 0:
			free(kept[k]);
			kept[k] = calloc(1, n);
			break;
		case 1:
			kept[k] = realloc(kept[k], n);
			break;
		default:
			free(kept[k]);
			kept[k] = malloc(n);
		}
		EXPECT(kept[k]);
		memset(kept[k], 1, n);
		truth_add(mine, kept[k], n);
	}
}

static void *allocate(void *arg)
{
	const int number = (int)(intptr_t)arg;
	static char alternate[1024][ALTERNATE];
	const stack_t stack = {alternate[number % 1024], 0, ALTERNATE};
	unsigned int seed = (unsigned int)number;
	char *kept[SLOTS] = {NULL};
	struct own before, after;
	struct truth mine = {0, 0};
	sigset_t block;

	EXPECT(sigaltstack(&stack, NULL) == 0);
	sigemptyset(&block);
	sigaddset(&block, SIGRTMIN + 1 + number % 8);
	/* Some let nothing in. */
	if (number % LETS_NOTHING_IN == LETS_NOTHING_IN - 1)
		sigfillset(&block);
	pthread_sigmask(SIG_BLOCK, &block, NULL);
	read_own(&before);
	errno = 1000 + number;
	while (!atomic_load(&ended)) {
		if (!atomic_load(&goes)) {
			stand_still(&mine, &ended);
			errno = 1000 + number;
		}
		allocate_some(&seed, kept, &mine);
		EXPECT(errno == 1000 + number);
		read_own(&after);
		/* The tool may have this thread run first for the moment. */
		after.nice = before.nice;
		EXPECT(memcmp(&before, &after, sizeof(before)) == 0);
	}
	for (int i = 0; i < SLOTS; i++)
		free(kept[i]);
	return NULL;
}

/* ---- what else goes on ---- */

static void *send_signals(void *arg)
{
	unsigned int seed = 1;
	struct truth none = {0, 0};

	while (!atomic_load(&helpers_ended)) {
		const union sigval value = {.sival_int = 0};
		int i;

		if (!atomic_load(&goes))
			stand_still(&none, &helpers_ended);
		nap(1000);
		i = rand_r(&seed) % n_threads;
		if (i % LETS_NOTHING_IN != LETS_NOTHING_IN - 1 &&
		    pthread_sigqueue(threads[i], SIGRTMIN, value) == 0)
			atomic_fetch_add(&sent, 1);
	}
	return arg;
}

static void handle(int signal)
{
	(void)signal;
	atomic_fetch_add(&handled, 1);
}

static void *load(void *path)
{
	struct truth none = {0, 0};

	for (int i = 0; !atomic_load(&helpers_ended); i++) {
		char *(*make)(int);
		void *handle;

		if (!atomic_load(&goes))
			stand_still(&none, &helpers_ended);
		handle = dlopen(path, i & 1 ? RTLD_NOW : RTLD_LAZY);
		EXPECT(handle);
		make = (char *(*)(int))dlsym(handle, "attached_make");
		EXPECT(make);
		for (int k = 0; k < 20; k++) {
			char *p = make(k);

			EXPECT(p && strcmp(p, "made") == 0);
			free(p);
		}
		EXPECT(dlclose(handle) == 0);
		nap(10000);
	}
	return NULL;
}

static void *fork_children(void *arg)
{
	struct truth none = {0, 0};
	int status;

	while (!atomic_load(&helpers_ended)) {
		pid_t child;

		if (!atomic_load(&goes))
			stand_still(&none, &helpers_ended);
		child = fork();
		if (child == 0) {
			for (int i = 0; i < 50; i++)
				free(memset(malloc(30000), 1, 30000));
			_exit(7);
		}
		EXPECT(child > 0 && waitpid(child, &status, 0) == child);
		EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
		nap(10000);
	}
	return arg;
}

static void *live_shortly(void *arg)
{
	free(malloc(100));
	return arg;
}

static void *begin_threads(void *arg)
{
	struct truth none = {0, 0};

	while (!atomic_load(&helpers_ended)) {
		pthread_t t[4];

		if (!atomic_load(&goes))
			stand_still(&none, &helpers_ended);
		for (int i = 0; i < 4; i++)
			EXPECT(pthread_create(&t[i], NULL, live_shortly,
					      NULL) == 0);
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
		nap(1000);
	}
	return arg;
}

/* ---- the process ---- */

struct process {
	struct rlimit limits[LIMITS];
	int files, dumpable, no_new_privs;
	unsigned long entry, vdso;
};

static void read_process(struct process *p)
{
	DIR *dir = opendir("/proc/self/fd");

	memset(p, 0, sizeof(*p));
	for (int i = 0; i < LIMITS; i++)
		getrlimit((__rlimit_resource_t)i, &p->limits[i]);
	while (dir && readdir(dir))
		p->files++;
	if (dir)
		closedir(dir);
	p->dumpable = prctl(PR_GET_DUMPABLE);
	p->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	p->entry = getauxval(AT_ENTRY);
	p->vdso = getauxval(AT_SYSINFO_EHDR);
}

static void expect_niceness(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const int tid = atoi(entry->d_name);

		if (!tid)
			continue;
		EXPECT(getpriority(PRIO_PROCESS, (id_t)tid) ==
		       getpriority(PRIO_PROCESS, 0));
		EXPECT(sched_getscheduler(tid) == SCHED_OTHER);
	}
	if (dir)
		closedir(dir);
}

static void begin(pthread_t *t, void *(*run)(void *), void *arg)
{
	EXPECT(pthread_create(t, NULL, run, arg) == 0);
}

int main(int argc, char **argv)
{
	const struct sigaction action = {.sa_handler = handle,
					 .sa_flags = SA_ONSTACK | SA_RESTART};
	static struct process before, after;
	pthread_t helpers[HELPERS];
	char line[64];
	int n;

	EXPECT(argc >= 2);
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	EXPECT(sigaction(SIGRTMIN, &action, NULL) == 0);
	n = n_threads = atoi(argv[1]);
	threads = calloc((size_t)n, sizeof(*threads));
	for (int i = 0; i < n_threads; i++)
		begin(&threads[i], allocate, (void *)(intptr_t)i);
	if (argc == 3) {
		begin(&helpers[0], send_signals, NULL);
		begin(&helpers[1], load, argv[2]);
		begin(&helpers[2], fork_children, NULL);
		begin(&helpers[3], begin_threads, NULL);
		n += HELPERS;
	}
	read_process(&before);
	stop_all(n);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
		if (strcmp(line, "go\n") == 0) {
			go_all();
		} else if (strcmp(line, "look\n") == 0) {
			/* While nobody is attaching. */
			expect_niceness();
			read_process(&after);
			EXPECT(memcmp(&before, &after, sizeof(before)) == 0);
			truth_print("same", &all);
		} else {
			stop_all(n);
		}
	}
	atomic_store(&helpers_ended, 1);
	for (int i = 0; argc == 3 && i < HELPERS; i++)
		pthread_join(helpers[i], NULL);
	while (atomic_load(&handled) < atomic_load(&sent))
		nap(1000);
	atomic_store(&ended, 1);
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	printf("signals %lu %lu\n", atomic_load(&sent), atomic_load(&handled));
	puts("ok");
	return 0;
}
