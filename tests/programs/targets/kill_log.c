/* SPDX-License-Identifier: MIT */
/*
 * Preloaded before the library: notes each call of the allocator after it has
 * returned, in the file KILL_LOG of the environment (kill_log.h).  For
 * programs that do not fork.
 */
#include "kill_log.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILE_BYTES                                                             \
	(KILL_LOG_HEAD_BYTES + (size_t)KILL_LOG_THREADS * KILL_LOG_REGION_BYTES)
#define ENTRIES_MAX                                                            \
	((KILL_LOG_REGION_BYTES - sizeof(struct kill_log_region)) /            \
	 sizeof(struct kill_log_entry))

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_aligned_alloc)(size_t, size_t);
static int (*real_posix_memalign)(void **, size_t, size_t);
static void (*real_free)(void *);

static struct kill_log_head *head; /* NULL: not logging yet */
static __thread struct kill_log_region *region;

static void resolve(void)
{
	void *address;

#define RESOLVE(name)                                                          \
	address = dlsym(RTLD_NEXT, #name);                                     \
	memcpy(&real_##name, &address, sizeof(address))
	RESOLVE(calloc);
	RESOLVE(realloc);
	RESOLVE(aligned_alloc);
	RESOLVE(posix_memalign);
	RESOLVE(free);
	RESOLVE(malloc);
}

static struct kill_log_region *my_region(void)
{
	uint64_t n;

	if (region)
		return region;
	n = atomic_fetch_add(&head->threads, 1);
	if (n >= KILL_LOG_THREADS)
		return NULL;
	region = (struct kill_log_region *)((char *)head + KILL_LOG_HEAD_BYTES +
					    n * KILL_LOG_REGION_BYTES);
	region->tid = (uint64_t)gettid();
	return region;
}

static uint64_t ticket(void)
{
	return head ? atomic_fetch_add(&head->ticket, 1) : 0;
}

/* Both of a realloc at once. */
static void note(const struct kill_log_entry *entries, unsigned int n)
{
	struct kill_log_region *to;
	uint64_t count;

	if (!head)
		return;
	to = my_region();
	count = to ? to->count : ENTRIES_MAX;
	if (count + n > ENTRIES_MAX) {
		atomic_fetch_add(&head->overflows, 1);
		return;
	}
	memcpy(to->entries + count, entries, n * sizeof(*entries));
	atomic_store_explicit(&to->count, count + n, memory_order_release);
}

static void *had(void *p, size_t size)
{
	struct kill_log_entry entry = {ticket(), (uintptr_t)p, size};

	if (p)
		note(&entry, 1);
	return p;
}

void *malloc(size_t n)
{
	if (!real_malloc)
		resolve();
	return had(real_malloc(n), n);
}

void *calloc(size_t n, size_t size)
{
	if (!real_malloc)
		resolve();
	return had(real_calloc(n, size), n * size);
}

void *aligned_alloc(size_t alignment, size_t n)
{
	if (!real_malloc)
		resolve();
	return had(real_aligned_alloc(alignment, n), n);
}

int posix_memalign(void **p, size_t alignment, size_t n)
{
	int err;

	if (!real_malloc)
		resolve();
	err = real_posix_memalign(p, alignment, n);
	if (!err)
		had(*p, n);
	return err;
}

void free(void *p)
{
	struct kill_log_entry entry = {0, (uintptr_t)p, KILL_LOG_FREE};

	if (!real_malloc)
		resolve();
	entry.ticket = ticket();
	real_free(p);
	if (p)
		note(&entry, 1);
}

void *realloc(void *p, size_t n)
{
	struct kill_log_entry entries[2] = {{0, (uintptr_t)p, KILL_LOG_FREE}};
	void *q;

	if (!real_malloc)
		resolve();
	entries[0].ticket = ticket();
	q = real_realloc(p, n);
	entries[1] = (struct kill_log_entry){ticket(), (uintptr_t)q, n};
	if (p && q)
		note(entries, 2);
	else if (q)
		note(entries + 1, 1);
	else if (!n)
		note(entries, 1);
	return q;
}

static void __attribute__((constructor)) construct(void)
{
	const char *path = getenv("KILL_LOG");
	int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
	void *at;

	if (fd < 0 || ftruncate(fd, (off_t)FILE_BYTES))
		abort();
	at = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		abort();
	close(fd);
	head = at;
	free(malloc(KILL_LOG_MARK_BYTES));
}
