/* SPDX-License-Identifier: MIT */
/*
 * A program that is profiled by somebody else, too.
 *
 *   hazard_unwinders MS [PLUGIN...]
 *
 * allocates in stacks of many shapes for so long, and loads, uses and unloads
 * the plug-ins meanwhile.  With WALK in the environment a signal handler walks
 * the stack with libunwind, some thousand times a second.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "truth.h"

static int (*unw_backtrace_fn)(void **pcs, int max);
static volatile sig_atomic_t is_in_handler;
static volatile unsigned long walks;
static atomic_int has_ended;
static pthread_t main_thread;

static void handle(int number)
{
	void *pcs[128];

	(void)number;
	is_in_handler++;
	if (unw_backtrace_fn(pcs, 128) > 0)
		walks++;
	is_in_handler--;
}

static void *send_signals(void *arg)
{
	const struct timespec pause = {0, 20000};

	while (!atomic_load(&has_ended)) {
		pthread_kill(main_thread, SIGPROF);
		nanosleep(&pause, NULL);
	}
	return arg;
}

static NOINLINE void *leaf(uint64_t way)
{
	_Alignas(64) char first[64];
	char *second = __builtin_alloca(way % 100 + 1);
	void *p;

	__asm__ volatile("" : : "r"(first), "r"(second) : "memory");
	p = malloc(100 + way % 9900);
	__asm__ volatile("" : : "r"(first), "r"(second) : "memory");
	return p;
}

static NOINLINE void *descend(uint64_t way, int depth);

static NOINLINE void *left(uint64_t way, int depth)
{
	void *p = descend(way >> 1, depth - 1);

	STAY();
	return p;
}

static NOINLINE void *right(uint64_t way, int depth)
{
	void *p = descend(way >> 1, depth - 1);

	STAY();
	return p;
}

static NOINLINE void *descend(uint64_t way, int depth)
{
	void *p = !depth    ? leaf(way)
		  : way & 1 ? left(way, depth)
			    : right(way, depth);

	STAY();
	return p;
}

/* The loader's lock is no place to walk from: libunwind takes it, too. */
static void block_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	EXPECT(!pthread_sigmask(how, &set, NULL));
}

static void use(const char *path)
{
	void *library, *address;
	void (*run)(int);

	block_signals(SIG_BLOCK);
	library = dlopen(path, RTLD_NOW);
	EXPECT(library);
	address = dlsym(library, "plugin_run");
	memcpy(&run, &address, sizeof(address));
	EXPECT(address);
	block_signals(SIG_UNBLOCK);
	run(10);
	block_signals(SIG_BLOCK);
	dlclose(library);
	block_signals(SIG_UNBLOCK);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void work(double end_ms, char **plugins)
{
	char **plugin = plugins;

	for (uint64_t i = 0; now_ms() < end_ms; i++) {
		for (uint64_t k = 0; k < 500; k++)
			free(descend((i * 500 + k) * 0x9e3779b97f4a7c15u >> 32,
				     10));
		if (*plugins) {
			use(*plugin++);
			if (!*plugin)
				plugin = plugins;
		}
	}
}

static void begin_walking(pthread_t *thread)
{
	struct sigaction action = {.sa_handler = handle,
				   .sa_flags = SA_RESTART};
	void *library = dlopen("libunwind.so.8", RTLD_NOW), *address, *pcs[4];

	EXPECT(library);
	address = dlsym(library, "unw_backtrace");
	memcpy(&unw_backtrace_fn, &address, sizeof(address));
	EXPECT(address && unw_backtrace_fn(pcs, 4) > 0);
	main_thread = pthread_self();
	EXPECT(!sigaction(SIGPROF, &action, NULL));
	EXPECT(!pthread_create(thread, NULL, send_signals, NULL));
}

int main(int argc, char **argv)
{
	pthread_t thread;
	sigset_t blocked;

	EXPECT(argc >= 2);
	if (getenv("WALK"))
		begin_walking(&thread);
	work(now_ms() + atof(argv[1]), argv + 2);
	if (getenv("WALK")) {
		atomic_store(&has_ended, 1);
		EXPECT(!pthread_join(thread, NULL));
		EXPECT(walks > 0 && !is_in_handler);
	}
	EXPECT(!sigprocmask(SIG_BLOCK, NULL, &blocked));
	EXPECT(!sigismember(&blocked, SIGPROF));
	puts("undisturbed");
	return 0;
}
