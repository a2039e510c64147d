/* SPDX-License-Identifier: MIT */
/* An allocator that may be interrupted anywhere: it only moves a mark.  As a
 * library below the profiler, or as a program's own malloc. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define UNIT        ((size_t)16)
#define ARENA_BYTES ((size_t)256 << 20)

static _Alignas(4096) char arena[ARENA_BYTES];
static atomic_size_t used;

/* What an object takes of the arena; stands in the unit before it. */
struct header {
	size_t start;
	size_t end;
};

static struct header *header_of(void *p)
{
	return (struct header *)((char *)p - UNIT);
}

static void *take(size_t alignment, size_t n)
{
	size_t start, total, at;
	char *p;

	if (n > ARENA_BYTES || alignment > 4096) {
		errno = ENOMEM;
		return NULL;
	}
	total = (n + UNIT + alignment + UNIT - 1) / UNIT * UNIT;
	start = atomic_fetch_add(&used, total);
	if (start > ARENA_BYTES - total) {
		errno = ENOMEM;
		return NULL;
	}
	at = (start + UNIT + alignment - 1) / alignment * alignment;
	p = arena + at;
	*header_of(p) = (struct header){start, start + total};
	return p;
}

void *malloc(size_t n)
{
	return take(UNIT, n);
}

void *calloc(size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	p = take(UNIT, bytes);
	return p ? memset(p, 0, bytes) : NULL;
}

void *realloc(void *old, size_t n)
{
	void *p = take(UNIT, n);
	size_t old_bytes;

	if (!p || !old)
		return p;
	old_bytes = header_of(old)->end - (size_t)((char *)old - arena);
	return memcpy(p, old, old_bytes < n ? old_bytes : n);
}

/* The last object goes back, any other one is lost. */
void free(void *p)
{
	size_t end;

	if (!p)
		return;
	end = header_of(p)->end;
	atomic_compare_exchange_strong(&used, &end, header_of(p)->start);
}

void *aligned_alloc(size_t alignment, size_t n)
{
	return take(alignment, n);
}

int posix_memalign(void **ret, size_t alignment, size_t n)
{
	*ret = take(alignment, n);
	return *ret ? 0 : ENOMEM;
}

#if defined(REFUSED) && defined(__x86_64__)
/* A function of the family whose entry cannot lead elsewhere. */
__asm__(".pushsection .text\n"
	".globl free_sized\n.type free_sized, @function\n"
	"free_sized: int3\n\t"
	"ret\n"
	".size free_sized, . - free_sized\n"
	".popsection");
#endif
