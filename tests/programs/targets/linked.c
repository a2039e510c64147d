/* SPDX-License-Identifier: MIT */
/*
 * An allocator of the program's own under the prefix je_, beside the C
 * library's: linked THREADS ROUNDS.  Some of its functions call others of them.
 * It is in the same file, so the compiler knows which registers they leave
 * alone.  Prints like entries.
 *
 * As a library it has linked_run instead, which loads.c calls.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "truth.h"

#ifdef MI
#include "linked_mi.h"
#else
#define MI_FUNCTIONS
#define MI_ROUND
#endif

#define UNIT        ((size_t)64)
#define ARENA_BYTES ((size_t)1 << 30)
#define API         __attribute__((noinline, noclone, visibility("hidden")))

static _Alignas(4096) char arena[ARENA_BYTES];
static atomic_size_t used;

API void *je_memalign(size_t alignment, size_t n);
API void *je_malloc(size_t n);
API void *je_calloc(size_t n, size_t size);
API void *je_realloc(void *old, size_t n);
API void *je_aligned_alloc(size_t alignment, size_t n);
API int je_posix_memalign(void **ret, size_t alignment, size_t n);
API void *je_mallocx(size_t n, int flags);
API void *je_rallocx(void *old, size_t n, int flags);
/* Also if the linker can do without it. */
API __attribute__((used)) size_t je_sallocx(const void *p, int flags);
API size_t je_xallocx(void *p, size_t n, size_t extra, int flags);
API void je_free(void *p);
API void je_dallocx(void *p, int flags);
API void je_sdallocx(void *p, size_t n, int flags);

/* The size stands before the object. */
static size_t *size_of(const void *p)
{
	return (size_t *)((char *)(uintptr_t)p - sizeof(size_t));
}

static inline void *take(size_t alignment, size_t n)
{
	const size_t room = n + alignment + UNIT;
	size_t at;
	char *p;

	if (n > ARENA_BYTES)
		return NULL;
	at = atomic_fetch_add(&used, room);
	if (at > ARENA_BYTES - room)
		return NULL;
	p = arena + (at + UNIT + alignment - 1) / alignment * alignment;
	*size_of(p) = n;
	return p;
}

void *je_malloc(size_t n)
{
	return take(16, n);
}

void *je_memalign(size_t alignment, size_t n)
{
	return take(alignment < 16 ? 16 : alignment, n);
}

void *je_calloc(size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	p = je_malloc(bytes);
	return p ? memset(p, 0, bytes) : NULL;
}

void *je_realloc(void *old, size_t n)
{
	void *p = je_malloc(n);

	if (!p || !old)
		return p;
	memcpy(p, old, *size_of(old) < n ? *size_of(old) : n);
	je_free(old);
	return p;
}

void *je_aligned_alloc(size_t alignment, size_t n)
{
	return je_memalign(alignment, n);
}

int je_posix_memalign(void **ret, size_t alignment, size_t n)
{
	if (alignment % sizeof(void *))
		return EINVAL;
	*ret = je_memalign(alignment, n);
	return *ret ? 0 : ENOMEM;
}

void *je_mallocx(size_t n, int flags)
{
	return flags ? je_calloc(1, n) : je_malloc(n);
}

void *je_rallocx(void *old, size_t n, int flags)
{
	(void)flags;
	return je_realloc(old, n);
}

size_t je_sallocx(const void *p, int flags)
{
	(void)flags;
	return *size_of(p);
}

/* Smaller alone. */
size_t je_xallocx(void *p, size_t n, size_t extra, int flags)
{
	(void)extra;
	(void)flags;
	if (n <= *size_of(p))
		*size_of(p) = n;
	return *size_of(p);
}

/* Lost: nothing is used twice. */
void je_free(void *p)
{
	if (p)
		*size_of(p) |= (size_t)1 << 63;
}

void je_dallocx(void *p, int flags)
{
	(void)flags;
	je_free(p);
}

void je_sdallocx(void *p, size_t n, int flags)
{
	(void)n;
	je_dallocx(p, flags);
}

MI_FUNCTIONS

/* ---- the program ---- */

static NOINLINE void *check(struct truth *t, void *p, size_t n)
{
	truth_add(t, p, n);
	EXPECT(p && *size_of(p) == n);
	memset(p, 0x5a, n);
	return p;
}

/* What is not kept in memory is in registers that the functions leave alone, if
 * the compiler can have it so. */
static NOINLINE uint64_t mix(uint64_t a, uint64_t b, uint64_t c, uint64_t d,
			     double x)
{
	void *p = je_malloc(24);
	const uint64_t sum = a * 3 + b * 5 + c * 7 + d * 11 + (uint64_t)x;

	je_free(p);
	return sum + a + b + c + d + (uint64_t)x;
}

static NOINLINE void do_round(struct truth *t, size_t n)
{
	void *p = check(t, je_malloc(n), n);

	p = check(t, je_realloc(p, 2 * n + 1), 2 * n + 1);
	je_free(p);
	p = check(t, je_calloc(3, n), 3 * n);
	p = check(t, je_rallocx(p, n + 9, 0), n + 9);
	EXPECT(je_xallocx(p, n + 2, 0, 0) == n + 2);
#ifndef MI
	truth_add(t, p, n + 2);
#endif
	EXPECT(je_xallocx(p, n + 2, 0, 0) == n + 2);
	je_sdallocx(p, n + 2, 0);
	je_dallocx(check(t, je_mallocx(n, 0), n), 0);
	je_free(check(t, je_mallocx(n, 64), n));
	je_free(check(t, je_aligned_alloc(256, n), n));
	EXPECT(je_posix_memalign(&p, 4096, n) == 0);
	je_free(check(t, p, n));
	EXPECT(je_posix_memalign(&p, 3, n) == EINVAL);
	EXPECT(!je_malloc(HUGE_BYTES) && !je_calloc(HUGE_BYTES, 4));
	je_free(check(t, je_memalign(64, n), n));
	MI_ROUND
	/* The C library's stays what it was. */
	p = malloc(n);
	truth_add(t, p, n);
	free(p);
	EXPECT(mix(n, 2, 3, 4, 5.5) == 3 * n + 75 + n + 14 + 5);
	truth_add(t, p, 24);
}

static const size_t sizes[] = {0, 1, 24, 100, 1000, 1024, 1025, 70000};

struct worker {
	pthread_t thread;
	unsigned int rounds;
	struct truth truth, measured;
};

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	struct truth before = measured_thread();

	for (unsigned int i = 0; i < w->rounds; i++)
		for (size_t j = 0; j < sizeof(sizes) / sizeof(*sizes); j++)
			do_round(&w->truth, sizes[j]);
	w->measured = truth_since(measured_thread(), before);
	return NULL;
}

#define WORKERS_MAX 16

void linked_run(unsigned int threads, unsigned int rounds, struct truth *truth,
		struct truth *measured);

void linked_run(unsigned int threads, unsigned int rounds, struct truth *truth,
		struct truth *measured)
{
	static struct worker workers[WORKERS_MAX];

	EXPECT(threads && threads <= WORKERS_MAX);
	for (unsigned int i = 0; i < threads; i++) {
		memset(&workers[i], 0, sizeof(workers[i]));
		workers[i].rounds = rounds;
		EXPECT(pthread_create(&workers[i].thread, NULL, run_worker,
				      &workers[i]) == 0);
	}
	for (unsigned int i = 0; i < threads; i++) {
		EXPECT(pthread_join(workers[i].thread, NULL) == 0);
		truth_add_all(truth, &workers[i].truth);
		truth_add_all(measured, &workers[i].measured);
	}
}

#ifndef LIBRARY
int main(int argc, char **argv)
{
	struct truth truth = {0, 0}, measured = {0, 0}, process;

	EXPECT(argc > 2);
	linked_run((unsigned int)atoi(argv[1]), (unsigned int)atoi(argv[2]),
		   &truth, &measured);
	process = measured_process();
	truth_print("truth", &truth);
	truth_print("measured", &measured);
	truth_print("process", &process);
	return 0;
}
#else
/* Before anybody has the library's handle. */
static __attribute__((constructor)) void begin(void)
{
	void *p = je_malloc(1);

	EXPECT(p);
	je_free(p);
}
#endif
