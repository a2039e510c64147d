/* SPDX-License-Identifier: MIT */
/*
 * The C allocation functions as the program sees them.  Hot path: charge the
 * thread's word, count, and jump to the allocator below with the arguments as
 * they came; pointers, alignment and usable size are the allocator's.  Objects
 * beyond 1 KiB count by another way, which ends in the same jump.
 *
 * What frees asks the filter first: only samples, and few other objects, have
 * to go by the live set, before their memory goes back.
 *
 * The declarations are our own: <stdlib.h> lets the compiler assume things
 * about these functions that their definitions must not rely on.
 */
#include <errno.h>
#include <linux/prctl.h>
#include <pthread.h>
#include <stddef.h>

#include "agent/event/recorder.h"
#include "agent/hooks/count.h"
#include "agent/sys/allocator.h"
#include "agent/sys/export.h"
#include "agent/sys/next.h"
#include "agent/sys/sys.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE    __attribute__((noinline))

void *malloc(size_t n);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t n);
void *reallocarray(void *p, size_t n, size_t size);
void free(void *p);
void cfree(void *p);
void free_sized(void *p, size_t n);
void free_aligned_sized(void *p, size_t alignment, size_t n);
void *memalign(size_t alignment, size_t n);
int posix_memalign(void **ret, size_t alignment, size_t n);
void *aligned_alloc(size_t alignment, size_t n);
void *valloc(size_t n);
void *pvalloc(size_t n);
size_t malloc_usable_size(void *p);
int pthread_setname_np(pthread_t thread, const char *name);
int prctl(int option, unsigned long a, unsigned long b, unsigned long c,
	  unsigned long d);

static void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

static SP_COLD void *cold_malloc(size_t n)
{
	void *p;

	if (!sp_next_resolve())
		return no_memory();
	p = sp_next.malloc(n);
	sp_count(p, n, SP_ENTRY_MALLOC, SP_FRAME_HERE);
	return p;
}

static NOINLINE void *large_malloc(size_t n)
{
	sp_count_large(n);
	return sp_next.malloc(n);
}

SP_EXPORT void *malloc(size_t n)
{
	if (UNLIKELY(sp_thread_charge(n)))
		return cold_malloc(n);
	sp_thread_count_object();
	if (UNLIKELY(n > SP_SIZE_COUNTS_SMALL_MAX))
		return large_malloc(n);
	sp_size_counts_count_small(sp_thread.counts, n);
	return sp_next.malloc(n);
}

static SP_COLD void *cold_calloc(size_t n, size_t size)
{
	void *p;

	if (!sp_next_resolve())
		return no_memory();
	p = sp_next.calloc(n, size);
	sp_count(p, n * size, SP_ENTRY_CALLOC, SP_FRAME_HERE);
	return p;
}

/* The product overflows: the allocator below refuses it in its own way. */
static SP_COLD void *impossible_calloc(size_t n, size_t size)
{
	if (!sp_next_resolve())
		return no_memory();
	return sp_next.calloc(n, size);
}

static NOINLINE void *large_calloc(size_t n, size_t size)
{
	sp_count_large(n * size);
	return sp_next.calloc(n, size);
}

SP_EXPORT void *calloc(size_t n, size_t size)
{
	size_t bytes;

	if (UNLIKELY(__builtin_mul_overflow(n, size, &bytes)))
		return impossible_calloc(n, size);
	if (UNLIKELY(sp_thread_charge(bytes)))
		return cold_calloc(n, size);
	sp_thread_count_object();
	if (UNLIKELY(bytes > SP_SIZE_COUNTS_SMALL_MAX))
		return large_calloc(n, size);
	sp_size_counts_count_small(sp_thread.counts, bytes);
	return sp_next.calloc(n, size);
}

/*
 * The old object may be a sample, or whether this frees or allocates is known
 * only afterwards (n is 0).  A failure leaves the old object alive: that is a
 * null pointer for a size, and for none if ENOMEM says so.
 */
static SP_COLD void *followed_realloc(void *old, size_t n, enum sp_entry entry)
{
	struct sp_recorder_end end;
	int saved_errno = errno;
	void *p;

	if (!sp_next_resolve())
		return no_memory();
	sp_recorder_free_begin(old, &end);
	errno = 0;
	p = sp_next.realloc(old, n);
	if (!p && (n || errno == ENOMEM))
		sp_recorder_free_cancel(old, &end);
	else
		sp_recorder_free_commit(&end);
	if (!errno)
		errno = saved_errno;
	sp_count(p, n, entry, SP_FRAME_HERE);
	return p;
}

static SP_COLD void *cold_realloc(void *old, size_t n, enum sp_entry entry)
{
	void *p;

	if (!sp_next_resolve())
		return no_memory();
	p = sp_next.realloc(old, n);
	sp_count(p, n, entry, SP_FRAME_HERE);
	return p;
}

static NOINLINE void *large_realloc(void *old, size_t n)
{
	sp_count_large(n);
	return sp_next.realloc(old, n);
}

/* A realloc counts as a free of the old object and an allocation of the new
 * size, whether it moves or not. */
SP_EXPORT void *realloc(void *old, size_t n)
{
	if (UNLIKELY(n == 0) || UNLIKELY(sp_filter_may_have(old)))
		return followed_realloc(old, n, SP_ENTRY_REALLOC);
	if (UNLIKELY(sp_thread_charge(n)))
		return cold_realloc(old, n, SP_ENTRY_REALLOC);
	sp_thread_count_object();
	if (UNLIKELY(n > SP_SIZE_COUNTS_SMALL_MAX))
		return large_realloc(old, n);
	sp_size_counts_count_small(sp_thread.counts, n);
	return sp_next.realloc(old, n);
}

/* Always by realloc: the C library's own would come back to our realloc and be
 * counted there, others' would not. */
SP_EXPORT void *reallocarray(void *old, size_t n, size_t size)
{
	size_t bytes;

	if (UNLIKELY(__builtin_mul_overflow(n, size, &bytes)))
		return no_memory();
	if (UNLIKELY(sp_next.realloc_before))
		return sp_next.realloc_before(old, bytes);
	if (UNLIKELY(bytes == 0) || UNLIKELY(sp_filter_may_have(old)))
		return followed_realloc(old, bytes, SP_ENTRY_REALLOCARRAY);
	if (UNLIKELY(sp_thread_charge(bytes)))
		return cold_realloc(old, bytes, SP_ENTRY_REALLOCARRAY);
	sp_thread_count_object();
	if (UNLIKELY(bytes > SP_SIZE_COUNTS_SMALL_MAX))
		return large_realloc(old, bytes);
	sp_size_counts_count_small(sp_thread.counts, bytes);
	return sp_next.realloc(old, bytes);
}

SP_EXPORT void *memalign(size_t alignment, size_t n)
{
	void *p;

	if (!sp_next_resolve() || !sp_next.memalign)
		return no_memory();
	p = sp_next.memalign(alignment, n);
	sp_count(p, n, SP_ENTRY_MEMALIGN, SP_FRAME_HERE);
	return p;
}

SP_EXPORT int posix_memalign(void **ret, size_t alignment, size_t n)
{
	int err;

	if (!sp_next_resolve() || !sp_next.posix_memalign)
		return ENOMEM;
	err = sp_next.posix_memalign(ret, alignment, n);
	if (!err)
		sp_count(*ret, n, SP_ENTRY_POSIX_MEMALIGN, SP_FRAME_HERE);
	return err;
}

SP_EXPORT void *aligned_alloc(size_t alignment, size_t n)
{
	void *p;

	if (!sp_next_resolve() || !sp_next.aligned_alloc)
		return no_memory();
	p = sp_next.aligned_alloc(alignment, n);
	sp_count(p, n, SP_ENTRY_ALIGNED_ALLOC, SP_FRAME_HERE);
	return p;
}

SP_EXPORT void *valloc(size_t n)
{
	void *p;

	if (!sp_next_resolve() || !sp_next.valloc)
		return no_memory();
	p = sp_next.valloc(n);
	sp_count(p, n, SP_ENTRY_VALLOC, SP_FRAME_HERE);
	return p;
}

SP_EXPORT void *pvalloc(size_t n)
{
	void *p;

	if (!sp_next_resolve() || !sp_next.pvalloc)
		return no_memory();
	p = sp_next.pvalloc(n);
	if (!sp_next.pvalloc_is_own)
		sp_allocator_note_other();
	sp_count(p, n, SP_ENTRY_PVALLOC, SP_FRAME_HERE);
	return p;
}

static SP_COLD void followed_free(void *p)
{
	sp_recorder_free(p);
	if (UNLIKELY(sp_thread.inside))
		sp_agent_look(SP_FRAME_HERE);
	sp_next.free(p);
}

SP_EXPORT void free(void *p)
{
	if (UNLIKELY(sp_filter_may_have(p)))
		followed_free(p);
	else
		sp_next.free(p);
}

/* Of the program's free, if that is not ours: no other function has those by
 * which the program frees this object. */
static bool is_freed_before(void *p)
{
	if (!sp_next.free_before)
		return false;
	sp_next.free_before(p);
	return true;
}

SP_EXPORT void cfree(void *p)
{
	if (!is_freed_before(p))
		free(p);
}

/* C23: a program that tests for these finds ours, so they work over an older C
 * library too. */
SP_EXPORT void free_sized(void *p, size_t n)
{
	if (is_freed_before(p))
		return;
	if (UNLIKELY(sp_filter_may_have(p)))
		sp_recorder_free(p);
	if (sp_next.free_sized)
		sp_next.free_sized(p, n);
	else
		sp_next.free(p);
}

SP_EXPORT void free_aligned_sized(void *p, size_t alignment, size_t n)
{
	if (is_freed_before(p))
		return;
	if (UNLIKELY(sp_filter_may_have(p)))
		sp_recorder_free(p);
	if (sp_next.free_aligned_sized)
		sp_next.free_aligned_sized(p, alignment, n);
	else
		sp_next.free(p);
}

SP_EXPORT size_t malloc_usable_size(void *p)
{
	if (!sp_next_resolve() || !sp_next.malloc_usable_size)
		return 0;
	return sp_next.malloc_usable_size(p);
}

SP_EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
	int err;

	if (!sp_next_resolve() || !sp_next.pthread_setname_np)
		return ENOSYS;
	err = sp_next.pthread_setname_np((unsigned long)thread, name);
	if (!err)
		sp_agent_note_name((unsigned long)thread, name);
	return err;
}

/* Behind one of these a system call filter is next, which may kill for opening
 * a file: a process creates its file now, and opens no other from then on. */
SP_EXPORT int prctl(int option, unsigned long a, unsigned long b,
		    unsigned long c, unsigned long d)
{
	int result;

	if (!sp_next_resolve() || !sp_next.prctl) {
		errno = ENOSYS;
		return -1;
	}
	if (option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP) {
		sp_sys_forbid_files();
		sp_agent_enter_sandbox();
	}
	result = sp_next.prctl(option, a, b, c, d);
	if (option == PR_SET_NAME && result == 0)
		sp_agent_note_name((unsigned long)pthread_self(),
				   (const char *)a);
	return result;
}
