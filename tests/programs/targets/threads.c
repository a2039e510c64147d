/* SPDX-License-Identifier: MIT */
/*
 * threads SCENARIO THREADS OBJECTS: lives and deaths of threads.  Each
 * allocates OBJECTS of 100 bytes, in `work`.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "truth.h"

static int objects;

static NOINLINE void work(void)
{
	void *p;

	for (int i = 0; i < objects; i++) {
		p = malloc(100);
		__asm__ volatile("" : : "r"(p) : "memory");
		free(p);
	}
	STAY();
}

static void *run(void *arg)
{
	(void)arg;
	work();
	return NULL;
}

/* Without allocating, unlike opendir. */
static int threads_alive(void)
{
	struct stat st;

	EXPECT(stat("/proc/self/task", &st) == 0);
	return (int)st.st_nlink - 2;
}

/* One after the other. */
static void do_short(int n)
{
	for (int i = 0; i < n; i++) {
		pthread_t thread;

		EXPECT(!pthread_create(&thread, NULL, run, NULL));
		EXPECT(!pthread_join(thread, NULL));
	}
}

static void start_detached(int n, size_t stack_bytes)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	EXPECT(!pthread_attr_setstacksize(&attr, stack_bytes));
	for (int i = 0; i < n; i++) {
		pthread_t thread;

		EXPECT(!pthread_create(&thread, &attr, run, NULL));
	}
	while (threads_alive() > 1)
		usleep(1000);
}

static void do_detached(int n)
{
	start_detached(n, 256 << 10);
}

static void do_minimal(int n)
{
	start_detached(n, (size_t)PTHREAD_STACK_MIN);
}

static pthread_t main_thread;

static void *outlive(void *arg)
{
	(void)arg;
	EXPECT(!pthread_join(main_thread, NULL));
	work();
	return NULL;
}

/* The last one ends the process, long after main. */
static void do_outlive(int n)
{
	pthread_t thread;

	(void)n;
	main_thread = pthread_self();
	EXPECT(!pthread_create(&thread, NULL, outlive, NULL));
	work();
	pthread_exit(NULL);
}

static void *named(void *arg)
{
	EXPECT(!pthread_setname_np(pthread_self(), arg));
	work();
	return NULL;
}

static void do_named(int n)
{
	static char names[8][16];

	for (int i = 0; i < n && i < 8; i++) {
		pthread_t thread;

		snprintf(names[i], sizeof(names[i]), "worker-%d", i);
		EXPECT(!pthread_create(&thread, NULL, named, names[i]));
		EXPECT(!pthread_join(thread, NULL));
	}
}

/* The main thread takes samples, gets a name, and takes more; it does not end
 * before the process does. */
static void do_renamed(int n)
{
	(void)n;
	work();
	EXPECT(!pthread_setname_np(pthread_self(), "late-name"));
	work();
}

static sem_t is_named;

static void *named_by_creator(void *arg)
{
	(void)arg;
	sem_wait(&is_named);
	work();
	return NULL;
}

/* Others give the names, before the threads have allocated anything; the last
 * name is refused. */
static void do_named_by_creator(int n)
{
	char name[32];

	sem_init(&is_named, 0, 0);
	for (int i = 0; i < n; i++) {
		pthread_t thread;

		snprintf(name, sizeof(name), "created-%d", i);
		EXPECT(!pthread_create(&thread, NULL, named_by_creator, NULL));
		EXPECT(!pthread_setname_np(thread, name));
		EXPECT(pthread_setname_np(thread, "longer than 15 bytes") ==
		       ERANGE);
		sem_post(&is_named);
		EXPECT(!pthread_join(thread, NULL));
	}
}

static pthread_barrier_t crowd_is_there;

static void *stand_in_crowd(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "crowd-%d", (int)(intptr_t)arg);
	EXPECT(!pthread_setname_np(pthread_self(), name));
	work();
	pthread_barrier_wait(&crowd_is_there);
	return NULL;
}

/* All of them alive at the same time. */
static void do_crowd(int n)
{
	static pthread_t threads[1000];
	pthread_attr_t attr;

	EXPECT(n <= 1000);
	pthread_attr_init(&attr);
	EXPECT(!pthread_attr_setstacksize(&attr, 128 << 10));
	pthread_barrier_init(&crowd_is_there, NULL, (unsigned int)n);
	for (int i = 0; i < n; i++)
		EXPECT(!pthread_create(&threads[i], &attr, stand_in_crowd,
				       (void *)(intptr_t)i));
	for (int i = 0; i < n; i++)
		EXPECT(!pthread_join(threads[i], NULL));
}

/* By the kernel's own call; a forked child's thread keeps the name. */
static void do_named_by_prctl(int n)
{
	(void)n;
	work();
	EXPECT(!prctl(PR_SET_NAME, "by-prctl", 0, 0, 0));
	work();
	if (fork() == 0) {
		work();
		exit(0);
	}
	EXPECT(wait(NULL) > 0);
}

static void *renamed_last(void *arg)
{
	work();
	EXPECT(!pthread_setname_np(pthread_self(), arg));
	return NULL;
}

/* No sample is left to say the new name: the record of the end does. */
static void do_renamed_last(int n)
{
	static char name[] = "last-name";
	pthread_t thread;

	(void)n;
	EXPECT(!pthread_create(&thread, NULL, renamed_last, name));
	EXPECT(!pthread_join(thread, NULL));
}

static sem_t allocate_now, allocated;

static void *allocate_when_told(void *arg)
{
	(void)arg;
	sem_wait(&allocate_now);
	work();
	sem_post(&allocated);
	return NULL;
}

static int hold_loader_lock(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info;
	(void)size;
	(void)arg;
	sem_post(&allocate_now);
	sem_wait(&allocated);
	return 1;
}

/* A thread allocates while another one is inside the loader. */
static void do_loader(int n)
{
	pthread_t thread;

	(void)n;
	sem_init(&allocate_now, 0, 0);
	sem_init(&allocated, 0, 0);
	EXPECT(!pthread_create(&thread, NULL, allocate_when_told, NULL));
	dl_iterate_phdr(hold_loader_lock, NULL);
	EXPECT(!pthread_join(thread, NULL));
}

static pthread_key_t key;

static NOINLINE void in_tsd_destructor(void *value)
{
	work();
	/* Once more in the next round, by when others are through. */
	if (value == &objects)
		pthread_setspecific(key, &key);
	STAY();
}

static void *run_tsd(void *arg)
{
	(void)arg;
	pthread_setspecific(key, &objects);
	work();
	return NULL;
}

/* Thread-specific data that allocates while it is destroyed. */
static void do_tsd(int n)
{
	EXPECT(!pthread_key_create(&key, in_tsd_destructor));
	for (int i = 0; i < n; i++) {
		pthread_t thread;

		EXPECT(!pthread_create(&thread, NULL, run_tsd, NULL));
		EXPECT(!pthread_join(thread, NULL));
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(int n);
	} scenarios[] = {
		{"short", do_short},
		{"detached", do_detached},
		{"minimal", do_minimal},
		{"outlive", do_outlive},
		{"named", do_named},
		{"crowd", do_crowd},
		{"named_by_creator", do_named_by_creator},
		{"named_by_prctl", do_named_by_prctl},
		{"renamed", do_renamed},
		{"renamed_last", do_renamed_last},
		{"loader", do_loader},
		{"tsd", do_tsd},
	};

	EXPECT(argc == 4);
	objects = atoi(argv[3]);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (strcmp(argv[1], scenarios[i].name) == 0)
			scenarios[i].run(atoi(argv[2]));
	return 0;
}
