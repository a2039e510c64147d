/* SPDX-License-Identifier: MIT */
/*
 * A process to be attached to that loads and unloads the library argv[1] all
 * the time (attached_plugin.c), lazily bound and not; or, with "fork", forks
 * children that allocate; or, with "threads", begins threads that end at once,
 * and free what those before them have allocated.  Each round checks itself.  A
 * line on standard input ends it, with "ok".
 */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#include "truth.h"

#define THREADS 8
#define KEPT    10

static void load_once(const char *path, int flags)
{
	void *handle = dlopen(path, flags);
	char *(*make)(int);

	EXPECT(handle);
	make = (char *(*)(int))dlsym(handle, "attached_make");
	EXPECT(make);
	for (int i = 0; i < 20; i++) {
		char *p = make(i);

		EXPECT(p && strcmp(p, "made") == 0);
		free(p);
	}
	EXPECT(dlclose(handle) == 0);
}

static void fork_once(void)
{
	char *mine = malloc(5000);
	pid_t child = fork();
	int status;

	if (child == 0) {
		for (int i = 0; i < 50; i++)
			free(memset(malloc(30000), 1, 30000));
		_exit(7);
	}
	EXPECT(child > 0 && waitpid(child, &status, 0) == child);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	free(mine);
}

static void *live_shortly(void *arg)
{
	char **kept = arg;

	for (int i = 0; i < KEPT; i++) {
		free(kept[i]);
		kept[i] = memset(malloc(30000), 1, 30000);
	}
	return NULL;
}

static void begin_threads(void)
{
	static char *kept[THREADS][KEPT];
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		EXPECT(pthread_create(&t[i], NULL, live_shortly, kept[i]) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
	struct pollfd input = {STDIN_FILENO, POLLIN, 0};
	const bool threads = argc == 2 && strcmp(argv[1], "threads") == 0;

	EXPECT(argc == 2);
	for (int i = 0; poll(&input, 1, threads ? 1 : 10) == 0; i++) {
		if (threads)
			begin_threads();
		else if (strcmp(argv[1], "fork") == 0)
			fork_once();
		else
			load_once(argv[1], i & 1 ? RTLD_NOW : RTLD_LAZY);
	}
	puts("ok");
	return 0;
}
