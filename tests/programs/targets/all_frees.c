/* SPDX-License-Identifier: MIT */
/*
 * What is alive when every free is known by its address alone.  The first
 * argument says how:
 *
 *   threads    threads pass objects on, to be freed by others
 *   children   children of all kinds free before they allocate
 *   plugins    two libraries, by turns at the same place (further arguments)
 *   resize     realloc in place, elsewhere, to nothing, and refused
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "truth.h"

#define THREADS 4
#define PLACES  64
#define TURNS   20000

static _Atomic(void *) places[PLACES];

static size_t size_of(unsigned int place)
{
	return 40 + 8 * place;
}

static NOINLINE void *pass_on(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;

	for (int i = 0; i < TURNS; i++) {
		const unsigned int place =
			(seed = seed * 1103515245 + 12345) >> 8 & (PLACES - 1);

		free(atomic_exchange(&places[place], malloc(size_of(place))));
		STAY();
	}
	return NULL;
}

static int run_threads(void)
{
	pthread_t threads[THREADS];
	struct truth live = {0, 0};

	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, pass_on,
				   (void *)(i + 1)) != 0)
			return 71;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned int i = 0; i < PLACES; i++)
		truth_add(&live, places[i], size_of(i));
	truth_print("live", &live);
	return 0;
}

static NOINLINE void fill(void)
{
	for (unsigned int i = 0; i < PLACES; i++)
		places[i] = malloc(size_of(i));
	STAY();
}

static void free_some(unsigned int from)
{
	for (unsigned int i = from; i < PLACES; i += 2)
		free(atomic_exchange(&places[i], NULL));
}

/* It frees what it inherited, before anything else. */
static void live_as_child(void)
{
	free_some(0);
	free_some(1);
	_exit(0);
}

static int wait_for(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int run_children(void)
{
	struct truth live = {0, 0};
	pid_t pid;

	fill();
	pid = fork();
	if (pid == 0)
		live_as_child();
	if (!wait_for(pid))
		return 72;
	/* No handler is told of this one. */
	pid = (pid_t)syscall(SYS_clone, 17 /* SIGCHLD */, NULL, NULL, NULL, 0);
	if (pid == 0)
		live_as_child();
	if (!wait_for(pid))
		return 73;
	/* This one frees for its parent. */
	pid = vfork();
	if (pid == 0) {
		free(places[1]);
		_exit(0);
	}
	if (!wait_for(pid))
		return 74;
	places[1] = NULL;
	free_some(0);
	for (unsigned int i = 0; i < PLACES; i++)
		truth_add(&live, places[i], size_of(i));
	truth_print("live", &live);
	return 0;
}

static int run_plugins(char *const *paths)
{
	for (int i = 0; i < 40; i++) {
		void *plugin = dlopen(paths[i % 2], RTLD_NOW);
		void (*run)(int);

		if (!plugin)
			return 75;
		*(void **)&run = dlsym(plugin, "plugin_run");
		printf("place %d\n", (int)((uintptr_t) * (void **)&run >> 12));
		run(5);
		dlclose(plugin);
	}
	return 0;
}

static NOINLINE int run_resize(void)
{
	struct truth live = {0, 0};
	void *in_place = malloc(100000), *moved = malloc(50);
	volatile size_t refused = HUGE_BYTES;
	void *wall = malloc(50), *gone = malloc(60), *kept = malloc(70);

	in_place = realloc(in_place, 50000);
	moved = realloc(moved, 70000);
	if (realloc(gone, 0) || realloc(kept, refused) || !in_place || !moved)
		return 76;
	free(NULL);
	truth_add(&live, in_place, 50000);
	truth_add(&live, moved, 70000);
	truth_add(&live, wall, 50);
	truth_add(&live, kept, 70);
	truth_print("live", &live);
	STAY();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "plugins") == 0)
		return run_plugins(argv + 2);
	if (argc != 2)
		return 70;
	if (strcmp(argv[1], "threads") == 0)
		return run_threads();
	if (strcmp(argv[1], "children") == 0)
		return run_children();
	return strcmp(argv[1], "resize") == 0 ? run_resize() : 70;
}
