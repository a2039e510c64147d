/* SPDX-License-Identifier: MIT */
/*
 * left_busy threads | hole | plugins A B LATE | vfork: more of what left.c
 * does, in the places that a process has only one of.
 *
 *   threads  three threads are made to leave malloc and free LEFT times each,
 *            a thousand times a second; then each allocates under
 *            afterwards()
 *   hole     malloc and free are left a thousand times, each time for a
 * function that allocates HOLE_OBJECTS and does not write to most of its frame
 *   plugins  the function of a plug-in is left, after some microseconds, while
 *            two plug-ins come and go in each other's place; then LATE comes
 *   vfork    a child that shares the memory is killed by a filter while the
 *            library makes its file; then the process allocates
 *
 * Prints how often it was left, what it has counted itself as far as it does,
 * and what its last call of the library's interface gave.
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "truth.h"

#define THREADS      3
#define SIZE         64
#define OBJECTS_MAX  700000 /* of a thread: the allocator has 256 MiB */
#define LEFT         800    /* times, of a thread */
#define AFTER        6000   /* calls of the last plug-in */
#define AFTERWARDS   20000  /* objects of a thread: five segments in all */
#define STEP         100
#define LOADS        3000
#define DELAYS_US    40
#define HOLES        1000
#define HOLE_BYTES   32768
#define HOLE_OBJECTS 400

static __thread sigjmp_buf surface;
static __thread volatile sig_atomic_t armed;

struct worker {
	pthread_t thread;
	volatile unsigned long jumps, objects;
	volatile sig_atomic_t has_ended;
};

static struct worker workers[THREADS];
static pthread_barrier_t all_ended;

static void leave(int number)
{
	(void)number;
	if (armed)
		siglongjmp(surface, 1);
}

static void handle_alarms(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = leave;
	action.sa_flags = SA_NODEFER;
	if (sigaction(SIGALRM, &action, NULL) != 0)
		abort();
}

/* ---- threads ---- */

static NOINLINE void allocate_one(struct worker *w)
{
	void *volatile p = malloc(SIZE);

	if (!p)
		abort();
	w->objects++;
	free(p);
}

static NOINLINE void at_depth(struct worker *w, int depth)
{
	if (depth > 0)
		at_depth(w, depth - 1);
	else
		allocate_one(w);
	STAY();
}

/*
 * In step with the others, so that a window of time has something of each; and
 * long enough for segments to turn while nobody leaves: what was rewritten
 * twice before must not fill them.
 */
static NOINLINE void afterwards(struct worker *w)
{
	for (int i = 0; i < AFTERWARDS; i++) {
		if (i % STEP == 0)
			pthread_barrier_wait(&all_ended);
		at_depth(w, i % 5);
	}
	STAY();
}

static void *work(void *arg)
{
	struct worker *volatile w = arg;

	if (sigsetjmp(surface, 1))
		w->jumps++;
	armed = 1;
	while (w->jumps < LEFT && w->objects < OBJECTS_MAX)
		at_depth(w, (int)w->objects % 20);
	armed = 0;
	w->has_ended = 1;
	afterwards(w);
	return NULL;
}

static int run_threads(void)
{
	const struct timespec millisecond = {0, 1000000};
	unsigned long jumps = 0, objects = 0;
	int left = THREADS;

	if (pthread_barrier_init(&all_ended, NULL, THREADS) != 0)
		return 2;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 2;
	while (left > 0) {
		nanosleep(&millisecond, NULL);
		left = THREADS;
		for (int i = 0; i < THREADS; i++)
			if (workers[i].has_ended)
				left--;
			else
				pthread_kill(workers[i].thread, SIGALRM);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		jumps += workers[i].jumps;
		objects += workers[i].objects;
	}
	printf("%lu %lu %d\n", jumps, objects, sampleprof_mark("left"));
	return 0;
}

static void set_alarm(int microseconds)
{
	const struct itimerval once = {{0, 0}, {0, microseconds}};

	setitimer(ITIMER_REAL, &once, NULL);
}

/* ---- a frame that is not written to ---- */

/* What was left in the library is in there, as it was. */
static NOINLINE void in_hole(struct worker *w)
{
	char hole[HOLE_BYTES];

	__asm__ volatile("" : : "r"(hole) : "memory");
	for (int i = 0; i < HOLE_OBJECTS; i++)
		at_depth(w, i % 5);
	STAY();
}

static int run_hole(void)
{
	struct worker w = {.jumps = 0};
	volatile int i;

	for (i = 0; i < HOLES; i++) {
		if (sigsetjmp(surface, 1) == 0) {
			armed = 1;
			set_alarm(1 + i % DELAYS_US);
			for (;;)
				at_depth(&w, 5);
		}
		armed = 0;
		w.jumps++;
		in_hole(&w);
	}
	printf("%lu %lu %d\n", w.jumps, w.objects, sampleprof_mark("left"));
	return 0;
}

/* ---- plug-ins ---- */

static NOINLINE void run_plugin(const char *path, const char *name, int times)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *address = handle ? dlsym(handle, name) : NULL;
	void (*run)(int);

	if (!address)
		abort();
	memcpy(&run, &address, sizeof(address));
	run(times);
	armed = 0;
	dlclose(handle);
}

/* Only what the plug-in does is left: the loader has locks. */
static NOINLINE unsigned long leave_plugin(const char *path, int delay_us)
{
	void *volatile handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *address = handle ? dlsym(handle, "plugin_run") : NULL;
	volatile unsigned long jumps = 0;
	void (*run)(int);

	if (!address)
		abort();
	memcpy(&run, &address, sizeof(address));
	if (sigsetjmp(surface, 1)) {
		jumps++;
	} else {
		armed = 1;
		set_alarm(delay_us);
		run(100);
	}
	armed = 0;
	set_alarm(0);
	dlclose(handle);
	return jumps;
}

static int run_plugins(char *const *paths)
{
	unsigned long jumps = 0;

	for (int i = 0; i < LOADS; i++)
		jumps += leave_plugin(paths[i % 2], 1 + i % DELAYS_US);
	run_plugin(paths[2], "plugin_run", AFTER);
	printf("%lu 0 %d\n", jumps, sampleprof_mark("left"));
	return 0;
}

/* ---- vfork ---- */

/* The library gives its file a size. */
static void die_of_ftruncate(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ftruncate, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]),
					   code};

	/* Not prctl: that is a moment at which the library makes its file. */
	syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static NOINLINE void allocate_much(void)
{
	for (int i = 0; i < AFTER; i++) {
		void *volatile p = malloc(SIZE << 10);

		free(p);
	}
	STAY();
}

static int run_vfork(void)
{
	int status = 0;
	pid_t child = vfork();

	if (child == 0) {
		die_of_ftruncate();
		allocate_much();
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 2;
	allocate_much();
	printf("%d 0 %d\n", WIFSIGNALED(status), sampleprof_mark("left"));
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	handle_alarms();
	if (strcmp(mode, "threads") == 0)
		return run_threads();
	if (strcmp(mode, "hole") == 0)
		return run_hole();
	if (strcmp(mode, "plugins") == 0 && argc == 5)
		return run_plugins(argv + 2);
	return strcmp(mode, "vfork") == 0 ? run_vfork() : 2;
}
