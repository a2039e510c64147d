/* SPDX-License-Identifier: MIT */
/*
 * Memory whose parts are known: "NAME BYTES..." of each on standard output,
 * then "ready".  From then on it allocates a little now and then, so that it
 * answers, until standard input ends.
 *
 * program_ledger FILE [HOW]: the file is mapped, and has FILE_BYTES; and again,
 *   of which some is written to privately.  HOW:
 *   idle     it does not allocate then
 *   threads  200 of them
 *   _exit, kill, exec: how it ends; else it returns from main
 *   handler  by exit in a signal handler
 *   vfork    a child of vfork ends before, by _exit
 *   peak     before it is ready it frees a large object
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OBJECTS      80000u
#define OBJECT       1024u
#define EACH         64u /* of so many objects one stays */
#define SMALL        20000u
#define SMALL_MAX    300u
#define MAPPED       ((size_t)1 << 30)
#define TOUCHED      ((size_t)32 << 20)
#define LARGE        ((size_t)256 << 20)
#define LARGE_USED   ((size_t)16 << 20)
#define THREADS      8u
#define THREADS_MANY 200u
#define STACK_USED   ((size_t)1 << 20)
#define PEAK         ((size_t)96 << 20)
#define FILE_BYTES   ((size_t)8 << 20)
#define COPIED       (4ul << 20) /* private pages of it */
#define HUGE         ((size_t)2 << 20)
#define HUGE_PAGES   4u
#define HUGE_USED    3u /* pages of each */

static void *objects[OBJECTS];
static pthread_barrier_t barrier;

static void touch(char *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096)
		((volatile char *)p)[i] = 1;
}

/* Their number, their bytes, and what the allocator made of these. */
static void make_small(void)
{
	size_t bytes = 0, usable = 0;

	for (size_t i = 0; i < SMALL; i++) {
		const size_t size = i * 7 % SMALL_MAX + 1;
		void *p = memset(malloc(size), 1, size);

		bytes += size;
		usable += malloc_usable_size(p);
	}
	printf("small %u %zu %zu\n", SMALL, bytes, usable);
}

typedef int control(const char *, void *, size_t *, void *, size_t);

/* A number of one of jemalloc's bins, of all arenas. */
static size_t of_bin(control *ask, const char *from, unsigned int bin,
		     const char *what, size_t bytes)
{
	unsigned int word = 0;
	size_t all = 0;
	void *to = bytes == sizeof(word) ? (void *)&word : &all;
	char name[64];

	snprintf(name, sizeof(name), "%s.%u.%s", from, bin, what);
	if (ask(name, to, &bytes, NULL, 0))
		exit(75);
	return word + all;
}

static size_t free_in_bin(control *ask, unsigned int bin)
{
	const char *const all = "stats.arenas.4096.bins";
	const char *const one = "arenas.bin";
	const size_t bytes = of_bin(ask, one, bin, "size", sizeof(size_t)),
		     n = of_bin(ask, one, bin, "nregs", sizeof(unsigned int)),
		     slabs = of_bin(ask, all, bin, "curslabs", sizeof(size_t)),
		     used = of_bin(ask, all, bin, "curregs", sizeof(size_t));

	return bytes == OBJECT ? 0 : bytes * (slabs * n - used);
}

/*
 * What jemalloc has free in its slabs of other sizes, by its own counts: of
 * each size the last slab is filled in part.  It has several of the allocator's
 * pages, which are of 64 KiB where the kernel's may be.
 */
static void print_slabs(void)
{
	control *ask = (control *)dlsym(RTLD_DEFAULT, "mallctl");
	size_t free_bytes = 0, size = sizeof(unsigned int);
	unsigned long long epoch = 1;
	unsigned int bins = 0;

	if (!ask)
		return;
	ask("epoch", NULL, NULL, &epoch, sizeof(epoch));
	if (ask("arenas.nbins", &bins, &size, NULL, 0))
		exit(75);
	for (unsigned int i = 0; i < bins; i++)
		free_bytes += free_in_bin(ask, i);
	printf("slabs %zu\n", free_bytes);
}

/* Objects of which the last of each group stays: what is free cannot go back.
 */
static void make_holes(void)
{
	unsigned int alive = 0;

	for (unsigned int i = 0; i < OBJECTS; i++)
		objects[i] = memset(malloc(OBJECT), 1, OBJECT);
	for (unsigned int i = 0; i < OBJECTS; i++)
		if (i % EACH == EACH - 1)
			alive++;
		else
			free(objects[i]);
	printf("alive %zu\nfreed %u\n", (size_t)alive * OBJECT,
	       OBJECTS - alive);
}

static void make_large(void)
{
	char *large = malloc(LARGE);

	touch(large, LARGE_USED);
	printf("large %zu %zu\n", LARGE_USED, LARGE - LARGE_USED);
}

static char *map(size_t bytes, int flags, int fd)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		exit(72);
	return p;
}

static void make_mapping(void)
{
	char *p = map(MAPPED, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	madvise(p, MAPPED, MADV_NOHUGEPAGE);
	touch(p + MAPPED / 2, TOUCHED);
	printf("anonymous %zu\n", TOUCHED);
}

static void make_file(const char *name)
{
	int fd = open(name, O_RDWR);

	if (fd < 0)
		exit(73);
	touch(map(FILE_BYTES, MAP_SHARED, fd), FILE_BYTES);
	touch(map(FILE_BYTES, MAP_PRIVATE, fd), COPIED);
	close(fd);
	printf("file %zu\ncopied %zu\n", FILE_BYTES, COPIED);
}

/* Where the kernel gives some: three small pages of each are written to. */
static void make_huge(void)
{
	char *p = map((HUGE_PAGES + 2) * HUGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	p += -(size_t)p % HUGE;
	madvise(p, HUGE_PAGES * HUGE, MADV_HUGEPAGE);
	for (unsigned int i = 0; i < HUGE_PAGES; i++)
		touch(p + i * HUGE, HUGE_USED * 4096);
	printf("huge %zu %zu\n", HUGE_PAGES * HUGE_USED * (size_t)4096,
	       HUGE_PAGES * HUGE);
}

static void *work(void *arg)
{
	char room[STACK_USED];

	touch(room, sizeof(room));
	pthread_barrier_wait(&barrier);
	pause();
	return arg;
}

static void make_threads(unsigned int n)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, n + 1);
	for (unsigned int i = 0; i < n; i++)
		if (pthread_create(&thread, NULL, work, NULL))
			exit(71);
	pthread_barrier_wait(&barrier);
	printf("threads %zu\n", n * STACK_USED);
}

/* Large objects come and go; the peak lasts until a reading of RSS. */
static void make_peak(void)
{
	char *large = malloc(PEAK);

	touch(large, PEAK);
	for (int i = 0; i < 40; i++) {
		usleep(10000);
		for (int k = 0; k < 20; k++)
			free(malloc(5000));
	}
	free(large);
	printf("peak %zu\n", PEAK);
}

static void leave(int signal_number)
{
	(void)signal_number;
	exit(0);
}

static void end(const char *how)
{
	if (strcmp(how, "handler") == 0) {
		signal(SIGUSR1, leave);
		raise(SIGUSR1);
	}
	if (strcmp(how, "_exit") == 0)
		_exit(0);
	if (strcmp(how, "kill") == 0)
		raise(SIGKILL);
	if (strcmp(how, "exec") == 0)
		execl("/bin/true", "true", (char *)NULL);
	if (strcmp(how, "vfork") == 0 && vfork() == 0)
		_exit(0);
}

int main(int argc, char **argv)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	const char *how = argc > 2 ? argv[2] : "";

	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc < 2)
		return 70;
	make_small();
	make_holes();
	make_large();
	make_mapping();
	make_huge();
	make_file(argv[1]);
	make_threads(strcmp(how, "threads") == 0 ? THREADS_MANY : THREADS);
	if (strcmp(how, "peak") == 0)
		make_peak();
	print_slabs();
	puts("ready");
	while (poll(&input, 1, 20) == 0)
		if (strcmp(how, "idle") != 0)
			free(malloc(5000));
	end(how);
	return 0;
}
