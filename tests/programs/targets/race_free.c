/* SPDX-License-Identifier: MIT */
/*
 * race_free ROUNDS: threads that allocate at many depths, hand objects to each
 * other under a lock, name themselves, map memory and end.  There is no race in
 * it, no error and no leak.  Prints what it has counted.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAIRS       3
#define GENERATIONS 2
#define MAPPED      (3u * 65536)
#define KEEP(p)     __asm__ volatile("" : : "r"(p) : "memory")

struct text {
	struct text *next;
	char *letters;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static struct text *texts;
static size_t letters;
static unsigned int rounds;

static void fail(const char *what)
{
	fprintf(stderr, "race_free: %s\n", what);
	exit(1);
}

static __attribute__((noinline)) char *make_letters(unsigned int depth,
						    size_t n)
{
	/* So that pages of the stack begin with what nobody has written. */
	char unwritten[1500];
	char *p;

	KEEP(unwritten);
	if (depth) {
		p = make_letters(depth - 1, n);
	} else {
		p = malloc(n / 2);
		if (p)
			p = realloc(p, n);
		if (!p)
			fail("no memory");
		memset(p, 'x', n - 1);
		p[n - 1] = '\0';
	}
	KEEP(p);
	return p;
}

static void put(unsigned int depth, size_t n)
{
	struct text *text = calloc(1, sizeof(*text));

	if (!text)
		fail("no memory");
	text->letters = make_letters(depth, n);
	pthread_mutex_lock(&lock);
	text->next = texts;
	texts = text;
	pthread_cond_signal(&ready);
	pthread_mutex_unlock(&lock);
}

static void take(void)
{
	struct text *text;

	pthread_mutex_lock(&lock);
	while (!texts)
		pthread_cond_wait(&ready, &lock);
	text = texts;
	texts = text->next;
	letters += strlen(text->letters);
	pthread_mutex_unlock(&lock);
	free(text->letters);
	free(text);
}

static void map_memory(void)
{
	void *p = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("cannot map");
	memset(p, 1, MAPPED);
	munmap(p, MAPPED);
}

static void *produce(void *arg)
{
	pthread_setname_np(pthread_self(), "producer");
	for (unsigned int i = 0; i < rounds; i++) {
		put(i % 17, 40 + i % 97);
		if (i % 16 == 0)
			map_memory();
	}
	return arg;
}

static void *consume(void *arg)
{
	pthread_setname_np(pthread_self(), "consumer");
	for (unsigned int i = 0; i < rounds; i++)
		take();
	return arg;
}

static void run_generation(void)
{
	pthread_t threads[2 * PAIRS];

	for (unsigned int i = 0; i < 2 * PAIRS; i++)
		if (pthread_create(&threads[i], NULL, i % 2 ? consume : produce,
				   NULL))
			fail("no thread");
	for (unsigned int i = 0; i < 2 * PAIRS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	rounds = argc > 1 ? (unsigned int)atoi(argv[1]) : 100;
	for (unsigned int i = 0; i < GENERATIONS; i++)
		run_generation();
	printf("texts %u\nletters %zu\n", GENERATIONS * PAIRS * rounds,
	       letters);
	return 0;
}
