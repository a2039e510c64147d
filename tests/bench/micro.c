/* SPDX-License-Identifier: MIT */
/*
 * Programs that do little but allocate, for timing: as many times the same as
 * wanted, each thread its share.
 *
 *     micro WORK TIMES [THREADS]
 *
 * Those of several threads split what one would do, so the processor time of a
 * work hardly depends on their number.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB          1024u
#define THREADS_MAX  100
#define BATCH        1024
#define LARSON_SLOTS 4096
#define LARSON_TURNS 16384 /* before the slots go to another thread */
#define RING         1024  /* a power of two */

/* operator new and delete, new[] and delete[]: m is size_t. */
void *_Znwm(size_t n);
void *_Znam(size_t n);
void _ZdlPvm(void *p, size_t n);
void _ZdaPv(void *p);

struct worker {
	pthread_t thread;
	unsigned int number;
	long times;
	uint64_t random;
};

static struct worker workers[THREADS_MAX];
static unsigned int worker_count = 1;
static pthread_barrier_t barrier;

/* Bits 33 and up of a linear congruential generator: cheap, since what is
 * timed is not this. */
static uint32_t draw(struct worker *w, uint32_t n)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((w->random >> 33) * n >> 31);
}

/* Many small objects, few large ones: 16 to 2,047 bytes. */
static size_t draw_size(struct worker *w)
{
	return 16 + (draw(w, 2032) >> draw(w, 7));
}

/* Memory that is asked for is used, by a byte at its start. */
static void *touch(void *p)
{
	if (!p)
		abort();
	*(volatile char *)p = 1;
	return p;
}

static void run_pair(struct worker *w)
{
	for (long i = 0; i < w->times; i++)
		free(touch(malloc(64)));
}

static void run_batch(struct worker *w)
{
	void *objects[BATCH];

	for (long i = 0; i < w->times; i += BATCH) {
		for (unsigned int k = 0; k < BATCH; k++)
			objects[k] = touch(malloc(draw_size(w)));
		for (unsigned int k = BATCH; k > 0; k--) {
			unsigned int chosen = draw(w, k);

			free(objects[chosen]);
			objects[chosen] = objects[k - 1];
		}
	}
}

/* Even threads allocate, and the next one frees. */
static struct ring {
	_Alignas(128) uint64_t head;
	_Alignas(128) uint64_t tail;
	_Alignas(128) void *objects[RING];
} rings[THREADS_MAX / 2];

static void put(struct ring *r, void *object)
{
	uint64_t head = r->head;

	while (head - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) == RING)
		sched_yield();
	r->objects[head % RING] = object;
	__atomic_store_n(&r->head, head + 1, __ATOMIC_RELEASE);
}

static void *get(struct ring *r)
{
	uint64_t tail = r->tail;
	void *object;

	while (__atomic_load_n(&r->head, __ATOMIC_ACQUIRE) == tail)
		sched_yield();
	object = r->objects[tail % RING];
	__atomic_store_n(&r->tail, tail + 1, __ATOMIC_RELEASE);
	return object;
}

static void run_cross(struct worker *w)
{
	struct ring *r = &rings[w->number / 2];

	for (long i = 0; i < 2 * w->times; i++) {
		if (w->number % 2 == 0)
			put(r, touch(malloc(draw_size(w))));
		else
			free(get(r));
	}
}

/* After Larson and Krishnan: a thread replaces objects at random, and its
 * objects are taken over by another thread. */
static void run_larson(struct worker *w)
{
	static void *slots[THREADS_MAX][LARSON_SLOTS];
	unsigned int mine = w->number;

	for (long i = 0; i < w->times; i += LARSON_TURNS) {
		for (long k = 0; k < LARSON_TURNS; k++) {
			void **slot = &slots[mine][draw(w, LARSON_SLOTS)];

			free(*slot);
			*slot = touch(malloc(draw_size(w)));
		}
		pthread_barrier_wait(&barrier);
		mine = (mine + 1) % worker_count;
	}
	for (unsigned int k = 0; k < LARSON_SLOTS; k++)
		free(slots[mine][k]);
}

static void climb(size_t first, size_t last, long times)
{
	for (long i = 0; i < times;) {
		void *p = NULL;

		for (size_t n = first; n <= last && i < times; n += n / 2, i++)
			p = touch(realloc(p, n));
		free(p);
	}
}

static void run_ladder(struct worker *w)
{
	climb(16, 16 * KIB, w->times);
}

static void run_large_ladder(struct worker *w)
{
	climb(64 * KIB, 16 * KIB * KIB, w->times);
}

static void run_calloc(struct worker *w)
{
	for (long i = 0; i < w->times; i++)
		free(touch(calloc(1 + draw(w, 16), 16)));
}

/* From 1 to 16 MiB, of which the work itself uses a byte. */
static void run_large_calloc(struct worker *w)
{
	for (long i = 0; i < w->times; i++)
		free(touch(calloc(KIB, (1 + draw(w, 16)) * KIB)));
}

static void run_cxx(struct worker *w)
{
	struct {
		void *p;
		size_t n;
	} objects[BATCH] = {{NULL, 0}};

	for (long i = 0; i < w->times; i++) {
		unsigned int k = draw(w, BATCH);

		if (objects[k].n)
			_ZdlPvm(objects[k].p, objects[k].n);
		else
			_ZdaPv(objects[k].p);
		objects[k].n = i & 3 ? draw_size(w) : 0;
		objects[k].p = touch(objects[k].n ? _Znwm(objects[k].n)
						  : _Znam(draw_size(w)));
	}
	for (unsigned int k = 0; k < BATCH; k++)
		free(objects[k].p);
}

/* Half as many objects as turns stay alive; each turn replaces one. */
static void run_live(struct worker *w)
{
	uint32_t count = (uint32_t)(w->times / 2);
	void **objects = calloc(count + 1, sizeof(*objects));

	touch(objects);
	for (uint32_t i = 0; i < count; i++)
		objects[i] = touch(malloc(16 + (i & 3) * 16));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t k = draw(w, count);

		free(objects[k]);
		objects[k] = touch(malloc(16 + (i & 3) * 16));
	}
	for (uint32_t i = 0; i < count; i++)
		free(objects[i]);
	free(objects);
}

/* A function of its own, for the simulation of caches: objects of 1 KiB, in
 * random order, once. */
static __attribute__((noinline)) void free_all(void **objects, long count)
{
	for (long i = 0; i < count; i++)
		free(objects[i]);
}

static void run_frees(struct worker *w)
{
	void **objects = malloc((size_t)w->times * sizeof(*objects));

	touch(objects);
	for (long i = 0; i < w->times; i++)
		objects[i] = touch(malloc(KIB));
	for (long i = w->times; i > 1; i--) {
		uint32_t k = draw(w, (uint32_t)i);
		void *p = objects[k];

		objects[k] = objects[i - 1];
		objects[i - 1] = p;
	}
	free_all(objects, w->times);
	free(objects);
}

/* All objects of all threads are alive at once. */
static void run_hold(struct worker *w)
{
	void **objects = calloc((size_t)w->times + 1, sizeof(*objects));

	touch(objects);
	for (long i = 0; i < w->times; i++)
		objects[i] = touch(malloc(draw_size(w)));
	pthread_barrier_wait(&barrier);
	free_all(objects, w->times);
	free(objects);
}

static const struct work {
	const char *name;
	void (*run)(struct worker *w);
	bool is_paired; /* by two threads at a time */
} works[] = {
	{"pair", run_pair, false},
	{"batch", run_batch, false},
	{"cross", run_cross, true},
	{"larson", run_larson, false},
	{"ladder", run_ladder, false},
	{"large-ladder", run_large_ladder, false},
	{"calloc", run_calloc, false},
	{"large-calloc", run_large_calloc, false},
	{"new", run_cxx, false},
	{"live", run_live, false},
	{"hold", run_hold, false},
	{"frees", run_frees, false},
};

static const struct work *find(const char *name)
{
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		if (strcmp(works[i].name, name) == 0)
			return &works[i];
	return NULL;
}

static const struct work *chosen;

static void *start(void *worker)
{
	chosen->run(worker);
	return NULL;
}

static bool run_all(long times)
{
	pthread_barrier_init(&barrier, NULL, worker_count);
	for (unsigned int i = 0; i < worker_count; i++) {
		workers[i] = (struct worker){
			.number = i,
			.times = times / worker_count,
			.random = i,
		};
		/* The first is the process's own. */
		if (i && pthread_create(&workers[i].thread, NULL, start,
					&workers[i]))
			return false;
	}
	start(&workers[0]);
	for (unsigned int i = 1; i < worker_count; i++)
		pthread_join(workers[i].thread, NULL);
	return true;
}

int main(int argc, char **argv)
{
	long times = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	long threads = argc > 3 ? strtol(argv[3], NULL, 10) : 1;

	chosen = argc > 1 ? find(argv[1]) : NULL;
	if (!chosen || times < 1 || threads < 1 || threads > THREADS_MAX ||
	    (chosen->is_paired && threads % 2)) {
		fputs("usage: micro WORK TIMES [THREADS]\nworks:", stderr);
		for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
			fprintf(stderr, " %s", works[i].name);
		fputs("\ncross needs an even number of threads\n", stderr);
		return 2;
	}
	worker_count = (unsigned int)threads;
	if (!run_all(times)) {
		fputs("micro: cannot start a thread\n", stderr);
		return 1;
	}
	return 0;
}
