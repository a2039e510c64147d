/* SPDX-License-Identifier: MIT */
/*
 * The truth about a program that cannot be asked: preloaded after the library,
 * so that it stands between it and the C library, it counts what the C library
 * gives.  The counts are in the file COUNT_FILE all the time, "bytes" and
 * "objects" as two 64-bit numbers, so that any end of the process will do.
 *
 * The rule is the profiler's: successful requests only, with the size asked
 * for, 0 bytes as 1, a realloc with its new size.  A function that calls
 * another one of these is counted once.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Requests before the file is there. */
static uint64_t early[2];
static uint64_t *counts = early;

static __thread int is_inside __attribute__((tls_model("initial-exec")));

/*
 * The functions below.  glibc's dlsym asks for memory itself, but there are
 * other names for what it looks up.  musl has no other names, and its calloc
 * and memalign call malloc and aligned_alloc by their public names: they would
 * go through the profiler again.  The same is done here by these two.
 */
#ifdef __GLIBC__
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t alignment, size_t n);
#define __libc_aligned_alloc __libc_memalign
#define REAL(name, type)     __libc_##name
#else
#define REAL(name, type) ((type)find(#name))
static void *find(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found)
		_exit(72);
	return found;
}
#endif

typedef void *(*one_size)(size_t);
typedef void *(*two_sizes)(size_t, size_t);
typedef void *(*pointer_and_size)(void *, size_t);

static void *real_calloc(size_t n, size_t size)
{
#ifdef __GLIBC__
	return __libc_calloc(n, size);
#else
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	p = REAL(malloc, one_size)(bytes);
	return p ? memset(p, 0, bytes) : NULL;
#endif
}

static void *count(void *p, size_t n)
{
	is_inside--;
	if (p && !is_inside) {
		__atomic_fetch_add(&counts[0], n ? n : 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&counts[1], 1, __ATOMIC_RELAXED);
	}
	return p;
}

/* For the profiler's handler of forks, for which musl takes memory by malloc:
 * what the profiler needs itself is nothing that the program asked for. */
static int is_for_handler(const void *caller)
{
#ifdef __GLIBC__
	(void)caller;
	return 0;
#else
	return (uintptr_t)caller - (uintptr_t)pthread_atfork < 256;
#endif
}

void *malloc(size_t n)
{
	const int is_own = is_for_handler(__builtin_return_address(0));
	void *p;

	is_inside += 1 + is_own;
	p = count(REAL(malloc, one_size)(n), n);
	is_inside -= is_own;
	return p;
}

void *calloc(size_t n, size_t size)
{
	is_inside++;
	return count(real_calloc(n, size), n * size);
}

void *realloc(void *p, size_t n)
{
	is_inside++;
	return count(REAL(realloc, pointer_and_size)(p, n), n);
}

void *memalign(size_t alignment, size_t n)
{
	is_inside++;
	return count(REAL(aligned_alloc, two_sizes)(alignment, n), n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
	is_inside++;
	return count(REAL(aligned_alloc, two_sizes)(alignment, n), n);
}

int posix_memalign(void **ret, size_t alignment, size_t n)
{
	int saved = errno;
	void *p;

	is_inside++;
	p = count(REAL(aligned_alloc, two_sizes)(alignment, n), n);
	errno = saved;
	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

static __attribute__((constructor)) void share_counts(void)
{
	const char *path = getenv("COUNT_FILE");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
	void *shared;

	if (fd < 0 || ftruncate(fd, sizeof(early)))
		_exit(72);
	shared = mmap(NULL, sizeof(early), PROT_READ | PROT_WRITE, MAP_SHARED,
		      fd, 0);
	close(fd);
	if (shared == MAP_FAILED)
		_exit(72);
	counts = shared;
	__atomic_fetch_add(&counts[0], early[0], __ATOMIC_RELAXED);
	__atomic_fetch_add(&counts[1], early[1], __ATOMIC_RELAXED);
}
