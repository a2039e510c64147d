/* SPDX-License-Identifier: MIT */
/*
 * A library that has an allocator of its own is loaded, works, and is unloaded:
 * loads THREADS ROUNDS TIMES LIBRARY.  TIMES 0: it works once, and is what this
 * program is linked with.  With one argument more another thread loads another
 * library all the time.  Prints like entries.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "truth.h"

typedef void run(unsigned int threads, unsigned int rounds, struct truth *truth,
		 struct truth *measured);

static atomic_bool is_done;

static void *load_others(void *arg)
{
	(void)arg;
	while (!atomic_load(&is_done)) {
		void *handle = dlopen("libm.so.6", RTLD_NOW);

		EXPECT(handle && dlclose(handle) == 0);
	}
	return NULL;
}

static run *find_run(void *handle)
{
	run *ret;

	*(void **)&ret = dlsym(handle, "linked_run");
	EXPECT(ret);
	return ret;
}

int main(int argc, char **argv)
{
	struct truth truth = {0, 0}, measured = {0, 0}, process;
	unsigned int threads, rounds, times;
	pthread_t other;

	EXPECT(argc > 4);
	threads = (unsigned int)atoi(argv[1]);
	rounds = (unsigned int)atoi(argv[2]);
	times = (unsigned int)atoi(argv[3]);
	if (argc > 5)
		EXPECT(pthread_create(&other, NULL, load_others, NULL) == 0);
	if (!times)
		find_run(RTLD_DEFAULT)(threads, rounds, &truth, &measured);
	for (unsigned int i = 0; i < times; i++) {
		void *handle = dlopen(argv[4], RTLD_NOW | RTLD_LOCAL);

		EXPECT(handle);
		find_run(handle)(threads, rounds, &truth, &measured);
		EXPECT(dlclose(handle) == 0);
		EXPECT(!dlopen(argv[4], RTLD_NOW | RTLD_NOLOAD));
	}
	atomic_store(&is_done, true);
	if (argc > 5)
		EXPECT(pthread_join(other, NULL) == 0);
	process = measured_process();
	truth_print("truth", &truth);
	truth_print("measured", &measured);
	truth_print("process", &process);
	return 0;
}
