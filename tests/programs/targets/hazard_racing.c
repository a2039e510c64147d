/* SPDX-License-Identifier: MIT */
/*
 * A library whose constructor runs before the profiler's, and starts threads
 * that allocate without a pause from then on until after main.  With RACING in
 * the environment they also walk their stacks with libunwind, bound as late as
 * can be, without what it remembers: it takes its locks each time.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "truth.h"

#include "allocate.h"

#define THREADS 2

#ifdef __x86_64__
#define NAME "x86_64"
#else
#define NAME "aarch64"
#endif

static pthread_t threads[THREADS];
static atomic_int running, stopped;
static int (*backtrace_fn)(void **, int);
static void (*flush_fn)(void *, unsigned long, unsigned long);
static void **address_space;

static void find(void *library, const char *name, void *ret)
{
	void *address = dlsym(library, name);

	EXPECT(address);
	memcpy(ret, &address, sizeof(address));
}

static void walk(void)
{
	void *pcs[16];

	flush_fn(*address_space, 0, 0);
	EXPECT(backtrace_fn(pcs, 16) > 1);
}

static void *run(void *arg)
{
	atomic_fetch_add(&running, 1);
	while (!atomic_load(&stopped)) {
		allocate(80, 10);
		if (address_space)
			walk();
	}
	return arg;
}

static void __attribute__((constructor)) construct(void)
{
	if (getenv("RACING")) {
		void *library = dlopen("libunwind.so.8", RTLD_LAZY);

		EXPECT(library);
		find(library, "unw_backtrace", &backtrace_fn);
		find(library, "_U" NAME "_flush_cache", &flush_fn);
		find(library, "_UL" NAME "_local_addr_space", &address_space);
	}
	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, run, NULL));
	while (atomic_load(&running) < THREADS)
		sched_yield();
}

static void __attribute__((destructor)) destruct(void)
{
	atomic_store(&stopped, 1);
	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_join(threads[i], NULL));
}
