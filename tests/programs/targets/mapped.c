/* SPDX-License-Identifier: MIT */
/*
 * Maps memory by itself, and knows what of it is there, since it keeps account
 * of each call.  At the end it prints the bytes by function, for the driver to
 * compare.
 *
 *   mapped shapes          one of each kind of call
 *   mapped storm SEED N    N calls in each of four threads, by chance
 *   mapped signals N       N calls in a signal handler, while main allocates
 *   mapped churn N         maps, unmaps and allocates, N times; a few stay
 *   mapped fork            a child maps
 *   mapped talk            maps and unmaps, as each line that it reads says
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE     4096ul
#define LEAST    65536ul
#define NOINLINE __attribute__((noinline, noclone))

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static NOINLINE void *map_pool(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("mmap");
	return p;
}

static NOINLINE void *map_shared(size_t n)
{
	void *p = mmap64(NULL, n, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("mmap64");
	return p;
}

static NOINLINE void *map_reserve(size_t n)
{
	void *p = mmap(NULL, n, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		fail("mmap");
	return p;
}

static NOINLINE void map_over(void *at, size_t n)
{
	if (mmap(at, n, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
		fail("mmap at a fixed address");
}

static NOINLINE void *remap(void *p, size_t n, size_t to)
{
	p = mremap(p, n, to, MREMAP_MAYMOVE);
	if (p == MAP_FAILED)
		fail("mremap");
	return p;
}

static NOINLINE void open_part(void *p, size_t n, int protection)
{
	if (mprotect(p, n, protection))
		fail("mprotect");
}

static void unmap(void *p, size_t n)
{
	if (munmap(p, n))
		fail("munmap");
}

static void map_file_over(void *at, size_t n)
{
	FILE *file = fopen("/proc/self/exe", "re");

	if (!file || mmap(at, n, PROT_READ, MAP_PRIVATE | MAP_FIXED,
			  fileno(file), 0) != at)
		fail("mmap of a file");
	fclose(file);
}

/* What is left of each is what its comment says. */
static void make_shapes(void)
{
	char *p = map_pool(16 * LEAST);
	char *moved, *blocker;

	/* map_pool 14: a hole of one, and its end is gone. */
	unmap(p + 4 * LEAST, LEAST);
	unmap(p + 15 * LEAST, LEAST);
	/* map_shared 3 and a page. */
	map_shared(3 * LEAST + 1);
	/* map_reserve 32 - 3 - 2 - 4: a part is accessible (map_over 3), of
	 * another a file is there. */
	p = map_reserve(32 * LEAST);
	map_over(p + 2 * LEAST, 3 * LEAST);
	map_file_over(p + 8 * LEAST, 2 * LEAST);
	/* open_part 4. */
	open_part(p + 20 * LEAST, 4 * LEAST, PROT_READ | PROT_WRITE);
	open_part(p + 21 * LEAST, LEAST, PROT_READ);
	open_part(p + 21 * LEAST, LEAST, PROT_NONE);
	/* remap 8, and nothing of map_pool: it cannot grow where it is. */
	p = map_pool(4 * LEAST);
	blocker = map_reserve(LEAST);
	unmap(blocker, LEAST);
	moved = remap(p, 4 * LEAST, 8 * LEAST);
	/* map_pool 1: made smaller. */
	p = map_pool(5 * LEAST);
	if (remap(p, 5 * LEAST, LEAST) != p)
		fail("mremap to less moved it");
	/* Too small. */
	map_pool(LEAST - PAGE);
	/* None of it is there. */
	unmap(map_pool(100 * LEAST), 100 * LEAST);
	/* Failures leave all as it is. */
	if (munmap(moved + 1, LEAST) == 0 ||
	    mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
		    MAP_FAILED ||
	    mremap(moved, 8 * LEAST, SIZE_MAX / 2, MREMAP_MAYMOVE) !=
		    MAP_FAILED)
		fail("what has to fail");
	printf("map_pool %lu\nmap_shared %lu\nmap_over %lu\nremap %lu\n"
	       "open_part %lu\nreserved %lu\n",
	       15 * LEAST, 3 * LEAST + PAGE, 3 * LEAST, 8 * LEAST, 4 * LEAST,
	       23 * LEAST);
}

/* ---- by chance ---- */

#define SLOTS   24
#define THREADS 4

struct slot {
	char *at;
	size_t bytes;
	unsigned char is_there[64]; /* by LEAST */
};

struct worker {
	uint64_t random;
	unsigned int calls;
	size_t bytes; /* that are there in the end */
	struct slot slots[SLOTS];
};

static unsigned int draw(struct worker *w, unsigned int below)
{
	w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)((w->random >> 33) % below);
}

static void begin_slot(struct slot *s, size_t n)
{
	s->bytes = n * LEAST;
	s->at = map_pool(s->bytes);
	memset(s->is_there, 1, n);
}

static void end_part(struct slot *s, size_t from, size_t n)
{
	unmap(s->at + from * LEAST, n * LEAST);
	memset(s->is_there + from, 0, n);
}

/* Only a whole one can be moved. */
static void move_slot(struct worker *w, struct slot *s)
{
	const size_t n = s->bytes / LEAST, to = 1 + draw(w, 48);

	if (memchr(s->is_there, 0, n))
		return;
	s->at = remap(s->at, s->bytes, to * LEAST);
	s->bytes = to * LEAST;
	memset(s->is_there, 0, sizeof(s->is_there));
	memset(s->is_there, 1, to);
}

static void *storm(void *arg)
{
	struct worker *w = arg;

	for (unsigned int i = 0; i < w->calls; i++) {
		struct slot *s = &w->slots[draw(w, SLOTS)];
		size_t n = s->bytes / LEAST, from;

		for (unsigned int k = 0; k < 16; k++)
			free(malloc(2000));
		if (!s->at) {
			begin_slot(s, 1 + draw(w, 48));
			continue;
		}
		from = draw(w, (unsigned int)n);
		switch (draw(w, 4)) {
		case 0:
			/* What others have mapped into holes stays. */
			for (size_t k = 0; k < n; k++)
				if (s->is_there[k])
					end_part(s, k, 1);
			memset(s, 0, sizeof(*s));
			break;
		case 1:
			move_slot(w, s);
			break;
		default:
			if (s->is_there[from])
				end_part(s, from, 1);
		}
	}
	for (struct slot *s = w->slots; s < w->slots + SLOTS; s++)
		for (size_t k = 0; k < s->bytes / LEAST; k++)
			w->bytes += s->is_there[k] * LEAST;
	return NULL;
}

static void make_storm(unsigned int seed, unsigned int calls)
{
	static struct worker workers[THREADS];
	pthread_t threads[THREADS];
	size_t bytes = 0;

	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i].random = seed * 1000ull + i;
		workers[i].calls = calls;
		if (pthread_create(&threads[i], NULL, storm, &workers[i]))
			fail("pthread_create");
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		bytes += workers[i].bytes;
	}
	printf("all %zu\n", bytes);
}

/* ---- in a signal handler ---- */

static volatile sig_atomic_t handled;
static char *last;

static NOINLINE void handler_maps(int number)
{
	(void)number;
	if (last)
		munmap(last, 2 * LEAST);
	last = mmap(NULL, 3 * LEAST, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	munmap(last + 2 * LEAST, LEAST);
	handled++;
}

/* Most of the time is spent in the library, at a period of 1. */
static void make_signals(int n)
{
	const struct timespec often = {0, 200000};
	const struct itimerspec every = {often, often};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
				 .sigev_signo = SIGALRM};
	timer_t timer;

	signal(SIGALRM, handler_maps);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &every, NULL))
		fail("timer");
	while (handled < n)
		free(malloc(100));
	timer_delete(timer);
	printf("handler_maps %lu\nmade %d\n", 2 * LEAST, (int)handled);
}

/* ---- a file that turns ---- */

static NOINLINE void *map_kept(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("mmap");
	return p;
}

static void make_churn(unsigned int n)
{
	enum { KEPT = 40, SHORT = 16, OBJECTS = 512 };
	static void *objects[OBJECTS];
	char *kept[KEPT], *brief[SHORT] = {NULL};
	size_t bytes = 0;

	for (unsigned int i = 0; i < KEPT; i++) {
		kept[i] = map_kept((i + 2) * LEAST);
		bytes += (i + 2) * LEAST;
	}
	for (unsigned int i = 0; i < n; i++) {
		char **b = &brief[i % SHORT];

		if (*b)
			unmap(*b, 4 * LEAST);
		*b = map_pool(4 * LEAST);
		for (unsigned int k = 0; k < 64; k++) {
			void **o = &objects[(i * 64 + k) % OBJECTS];

			free(*o);
			*o = malloc(4000);
		}
		/* Late, so that the first records are long discarded. */
		if (i % (n / KEPT + 1) == 0) {
			const unsigned int k = i / (n / KEPT + 1);

			unmap(kept[k], LEAST);
			bytes -= LEAST;
		}
	}
	printf("map_kept %zu\nmap_pool %lu\n", bytes, SHORT * 4 * LEAST);
}

/* ---- processes ---- */

static void make_fork(void)
{
	map_pool(4 * LEAST);
	if (fork() == 0) {
		map_shared(2 * LEAST);
		free(malloc(8 << 20));
		exit(0);
	}
	wait(NULL);
	printf("map_pool %lu\n", 4 * LEAST);
}

/* For a process that is attached to: "map" and "unmap", one after the other. */
static void talk(void)
{
	char line[16];
	char *p = map_pool(4 * LEAST);

	setlinebuf(stdout);
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin) && *line != 'e') {
		if (*line == 'm')
			p = map_pool(8 * LEAST);
		else
			unmap(p + LEAST, 2 * LEAST);
		free(malloc(100));
		printf("done\n");
	}
	printf("ok\n");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "shapes";
	const unsigned int n = argc > 2 ? (unsigned int)atoi(argv[2]) : 0;

	if (strcmp(what, "shapes") == 0)
		make_shapes();
	else if (strcmp(what, "storm") == 0 && argc > 3)
		make_storm(n, (unsigned int)atoi(argv[3]));
	else if (strcmp(what, "signals") == 0)
		make_signals((int)n);
	else if (strcmp(what, "churn") == 0)
		make_churn(n);
	else if (strcmp(what, "fork") == 0)
		make_fork();
	else if (strcmp(what, "talk") == 0)
		talk();
	else
		return 2;
	return 0;
}
