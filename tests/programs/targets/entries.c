/* SPDX-License-Identifier: MIT */
/*
 * Every C allocation function, in a known pattern: entries THREADS ROUNDS
 * [nopvalloc], the latter for an allocator that leaves pvalloc to the C library
 * and cannot free what it returns.
 *
 * Prints the truth per function ("call_malloc BYTES OBJECTS"), its sum, what
 * the library measured, how failing requests ended, and how often errno was
 * changed by a call that succeeded.
 *
 * ROUNDS 0 does everything else: the difference to it is the pattern's.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "truth.h"

/* In C23; absent from older C libraries. */
void free_sized(void *p, size_t n) __attribute__((weak));
void free_aligned_sized(void *p, size_t alignment, size_t n)
	__attribute__((weak));

/* Not in musl. */
void *pvalloc(size_t n) __attribute__((weak));

#define ALIGNMENT 64

struct work {
	struct truth *entries; /* by enum entry */
	uint64_t errno_changes;
	unsigned int turn; /* of the ways to free */
};

static void (*free_by_cfree)(void *);
static bool has_pvalloc;
static void *volatile sink;
static const int untouched = 4242;

static void note_errno(struct work *w)
{
	if (errno != untouched)
		w->errno_changes++;
	errno = untouched;
}

/* Look at a new object, and let it go in one way after the other.  Some
 * allocators align an object that is smaller than max_align_t only for those
 * types that fit into it. */
static void use(struct work *w, void *p, size_t n, size_t alignment)
{
	note_errno(w);
	EXPECT(p);
	EXPECT((uintptr_t)p % (n < alignof(max_align_t) &&
					       alignment <= alignof(max_align_t)
				       ? alignof(long)
				       : alignment) ==
	       0);
	EXPECT(malloc_usable_size(p) >= n);
	memset(p, 0x5a, n);
	sink = p;
	errno = untouched;
	switch (w->turn++ % 4) {
	case 0:
		free(p);
		break;
	case 1:
		free_by_cfree(p);
		break;
	case 2:
		if (free_sized && alignment <= alignof(max_align_t))
			free_sized(p, n);
		else
			free(p);
		break;
	case 3:
		if (free_aligned_sized && alignment > alignof(max_align_t))
			free_aligned_sized(p, alignment, n);
		else
			free(p);
		break;
	}
	note_errno(w);
}

#define ENTRIES(X)                                                             \
	X(malloc)                                                              \
	X(calloc)                                                              \
	X(realloc_null)                                                        \
	X(realloc_grow)                                                        \
	X(realloc_shrink)                                                      \
	X(realloc_zero)                                                        \
	X(reallocarray)                                                        \
	X(memalign)                                                            \
	X(posix_memalign)                                                      \
	X(aligned_alloc)                                                       \
	X(valloc)                                                              \
	X(pvalloc)

#define DEFINE(name) ENTRY_##name,
enum entry { ENTRIES(DEFINE) ENTRY_COUNT };
#undef DEFINE

static NOINLINE void call_malloc(struct work *w, struct truth *t, size_t n)
{
	void *p = malloc(n);

	truth_add(t, p, n);
	use(w, p, n, alignof(max_align_t));
}

static NOINLINE void call_calloc(struct work *w, struct truth *t, size_t n)
{
	size_t size = n % 4 == 0 ? 4 : 1;
	char *p = calloc(n / size, size);

	truth_add(t, p, n);
	EXPECT(p);
	for (size_t i = 0; i < n; i++)
		EXPECT(p[i] == 0);
	use(w, p, n, alignof(max_align_t));
}

static NOINLINE void call_realloc_null(struct work *w, struct truth *t,
				       size_t n)
{
	void *p = realloc(NULL, n);

	truth_add(t, p, n);
	use(w, p, n, alignof(max_align_t));
}

static void resize(struct work *w, struct truth *t, size_t from, size_t to)
{
	char *p = malloc(from), *q;

	truth_add(t, p, from);
	EXPECT(p);
	memset(p, 0x21, from);
	q = realloc(p, to);
	truth_add(t, q, to);
	EXPECT(q);
	for (size_t i = 0; i < from && i < to; i++)
		EXPECT(q[i] == 0x21);
	use(w, q, to, alignof(max_align_t));
}

static NOINLINE void call_realloc_grow(struct work *w, struct truth *t,
				       size_t n)
{
	resize(w, t, n, 2 * n + 1);
	STAY();
}

static NOINLINE void call_realloc_shrink(struct work *w, struct truth *t,
					 size_t n)
{
	resize(w, t, 2 * n + 1, n + 1);
	STAY();
}

static NOINLINE void call_realloc_zero(struct work *w, struct truth *t,
				       size_t n)
{
	void *p = malloc(n), *q;

	truth_add(t, p, n);
	EXPECT(p);
	sink = p;
	errno = untouched;
	q = realloc(p, 0);
	truth_add(t, q, 0);
	note_errno(w);
	free(q);
}

static NOINLINE void call_reallocarray(struct work *w, struct truth *t,
				       size_t n)
{
	size_t size = n % 4 == 0 ? 4 : 1;
	void *p = reallocarray(NULL, n / size, size);

	truth_add(t, p, n);
	EXPECT(p);
	p = reallocarray(p, n + 1, 3);
	truth_add(t, p, 3 * (n + 1));
	use(w, p, 3 * (n + 1), alignof(max_align_t));
}

static NOINLINE void call_memalign(struct work *w, struct truth *t, size_t n)
{
	void *p = memalign(ALIGNMENT, n);

	truth_add(t, p, n);
	use(w, p, n, ALIGNMENT);
}

static NOINLINE void call_posix_memalign(struct work *w, struct truth *t,
					 size_t n)
{
	void *p = NULL;

	EXPECT(posix_memalign(&p, ALIGNMENT, n) == 0);
	truth_add(t, p, n);
	use(w, p, n, ALIGNMENT);
}

/* C11 wanted a multiple of the alignment, and one allocator insists. */
static NOINLINE void call_aligned_alloc(struct work *w, struct truth *t,
					size_t n)
{
	void *p;

	n = (n + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
	p = aligned_alloc(ALIGNMENT, n);
	truth_add(t, p, n);
	use(w, p, n, ALIGNMENT);
}

static NOINLINE void call_valloc(struct work *w, struct truth *t, size_t n)
{
	void *p = valloc(n);

	truth_add(t, p, n);
	use(w, p, n, 4096);
}

static NOINLINE void call_pvalloc(struct work *w, struct truth *t, size_t n)
{
	void *p;

	if (!has_pvalloc)
		return;
	p = pvalloc(n);
	truth_add(t, p, n);
	use(w, p, n, 4096);
}

static void do_round(struct work *w, size_t n)
{
#define CALL(name) call_##name(w, &w->entries[ENTRY_##name], n);
	ENTRIES(CALL)
#undef CALL
}

/* The last is larger than the distance between two check-ins. */
static const size_t sizes[] = {0, 1, 7, 16, 24, 100, 1000, 4096, 70000, 600000};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct worker {
	pthread_t thread;
	unsigned int rounds;
	struct truth entries[ENTRY_COUNT];
	struct truth measured;
	uint64_t errno_changes;
};

static NOINLINE void *run_worker(void *arg)
{
	struct worker *worker = arg;
	struct work w = {worker->entries, 0, 0};
	struct truth before = measured_thread();

	for (unsigned int i = 0; i < worker->rounds; i++)
		for (size_t j = 0; j < SIZES; j++)
			do_round(&w, sizes[j]);
	worker->measured = truth_since(measured_thread(), before);
	worker->errno_changes = w.errno_changes;
	return NULL;
}

/* Requests that must fail, and how: nothing of them may be counted. */
static void fail_everywhere(void)
{
	volatile size_t huge = HUGE_BYTES, max = SIZE_MAX, two = 2;
	void *p = malloc(32), *untouched_p = p;
	struct truth before = measured_thread(), after;
	char line[400];
	int at = snprintf(line, sizeof(line), "failures");

#define FAILS(call)                                                            \
	do {                                                                   \
		errno = 0;                                                     \
		EXPECT((call) == NULL);                                        \
		at += snprintf(line + at, sizeof(line) - (size_t)at, " %d",    \
			       errno);                                         \
	} while (0)
	FAILS(malloc(huge));
	FAILS(malloc(max));
	FAILS(calloc(1, huge));
	FAILS(calloc(max, two));
	FAILS(calloc(huge, two));
	FAILS(realloc(NULL, huge));
	FAILS(realloc(p, huge));
	FAILS(realloc(p, max));
	FAILS(reallocarray(p, max, two));
	FAILS(memalign(64, huge));
	FAILS(aligned_alloc(64, huge));
	FAILS(valloc(huge));
	if (has_pvalloc)
		FAILS(pvalloc(huge));
#undef FAILS
	/* The errno of this is the allocator's own reallocarray's or realloc's.
	 */
	EXPECT(!reallocarray(p, huge, 1));
	at += snprintf(line + at, sizeof(line) - (size_t)at, " %d %d %d\n",
		       posix_memalign(&p, 3, 64), posix_memalign(&p, 4, two),
		       posix_memalign(&p, 64, huge));
	after = measured_thread();
	EXPECT(p == untouched_p);
	EXPECT(write(STDOUT_FILENO, line, (size_t)at) == at);
	after = truth_since(after, before);
	truth_print("counted_failures", &after);
	free(p);
	free(NULL);
	EXPECT(malloc_usable_size(NULL) == 0);
}

static void print_entries(const struct truth *entries, struct truth *sum)
{
#define PRINT(name)                                                            \
	truth_print("call_" #name, &entries[ENTRY_##name]);                    \
	truth_add_all(sum, &entries[ENTRY_##name]);
	ENTRIES(PRINT)
#undef PRINT
}

int main(int argc, char **argv)
{
	static struct worker workers[64];
	unsigned int threads = argc > 1 ? (unsigned int)atoi(argv[1]) : 1;
	unsigned int rounds = argc > 2 ? (unsigned int)atoi(argv[2]) : 1;
	struct truth truth = {0, 0}, measured = {0, 0}, process;
	uint64_t errno_changes = 0;
	struct sampleprof_totals totals;
	void *address = dlsym(RTLD_DEFAULT, "cfree");

	has_pvalloc = argc < 4;
	free_by_cfree = free;
	/* Without the library it could be that of another allocator. */
	if (address && sampleprof_thread_totals(&totals) == 0)
		memcpy(&free_by_cfree, &address, sizeof(address));
	for (unsigned int i = 0; i < threads; i++)
		workers[i].rounds = rounds;
	if (threads == 1)
		run_worker(&workers[0]);
	for (unsigned int i = 0; threads > 1 && i < threads; i++)
		EXPECT(!pthread_create(&workers[i].thread, NULL, run_worker,
				       &workers[i]));
	for (unsigned int i = 0; threads > 1 && i < threads; i++)
		EXPECT(!pthread_join(workers[i].thread, NULL));
	process = measured_process();
	for (unsigned int i = 0; i < threads; i++) {
		print_entries(workers[i].entries, &truth);
		truth_add_all(&measured, &workers[i].measured);
		errno_changes += workers[i].errno_changes;
	}
	truth_print("truth", &truth);
	truth_print("measured", &measured);
	truth_print("process", &process);
	truth_print("errno_changes", &(struct truth){errno_changes, 0});
	truth_print("c23", &(struct truth){free_sized != NULL,
					   free_aligned_sized != NULL});
	fail_everywhere();
	return 0;
}
