/* SPDX-License-Identifier: MIT */
/*
 * operator new and delete, by their mangled names (m is size_t).
 *
 * libstdc++'s operators call malloc and are counted there; jemalloc's,
 * tcmalloc's and mimalloc's do not, and are counted here.  Which it is was
 * found out when the originals were looked up (real.h).
 *
 * A program without C++ may load a C++ plug-in privately: then there is no
 * operator below, and memory comes from malloc, which is what the plug-in's own
 * operators would do.  Their failure path (new handler, bad_alloc) is found
 * when it is needed.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/event/recorder.h"
#include "agent/hooks/count.h"
#include "agent/sys/export.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/next.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE    __attribute__((noinline))

void *malloc(size_t n);
void *aligned_alloc(size_t alignment, size_t n);
void free(void *p);

/* No memory and no operator below: let the plug-in's C++ library say so.  It is
 * in no global scope, so the loader's whole list is searched. */
static SP_COLD void *fail_new(const char *symbol, size_t n, size_t alignment)
{
	void *(*operator_new)(size_t, size_t);
	const struct link_map *map = sp_linkmap_self();
	void *address = NULL;

	for (map = map ? map->l_next : NULL; map && !address; map = map->l_next)
		address = sp_linkmap_find(map, symbol);
	if (!address)
		return NULL;
	memcpy(&operator_new, &address, sizeof(address));
	return operator_new(n, alignment);
}

static void *without_operator(size_t n, size_t alignment)
{
	size_t size = n ? n : 1;

	if (alignment <= _Alignof(max_align_t))
		return malloc(size);
	return aligned_alloc(alignment,
			     (size + alignment - 1) & ~(alignment - 1));
}

/*
 * The ways out of an operator new that is not counted here: `n` and `alignment`
 * are among the parameters; `throws` is the symbol that reports failure.
 */
#define NO_THROW ((const char *)NULL)

#define DEFINE_FORWARD(member, params, args, alignment, throws)                \
	static SP_COLD void *forward_##member params                           \
	{                                                                      \
		void *p;                                                       \
                                                                               \
		if (sp_next_resolve() && sp_next.member)                       \
			return sp_next.member args;                            \
		p = without_operator(n, alignment);                            \
		if (!p && throws)                                              \
			p = fail_new(throws, n, alignment);                    \
		return p;                                                      \
	}

/* An operator that keeps to itself below us: the hot path of malloc. */
#define DEFINE_NEW(symbol, member, params, args, entry, throws)                \
	void *symbol params;                                                   \
	DEFINE_FORWARD(member, params, args, 0, throws)                        \
	static SP_COLD void *cold_##member params                              \
	{                                                                      \
		void *p;                                                       \
                                                                               \
		p = sp_next.member args;                                       \
		sp_count(p, n, entry, SP_FRAME_HERE);                          \
		return p;                                                      \
	}                                                                      \
	static NOINLINE void *large_##member params                            \
	{                                                                      \
		sp_count_large(n);                                             \
		return sp_next.member args;                                    \
	}                                                                      \
	SP_EXPORT void *symbol params                                          \
	{                                                                      \
		if (!sp_next.member##_is_own) {                                \
			if (UNLIKELY(!sp_next.member))                         \
				return forward_##member args;                  \
			return sp_next.member args;                            \
		}                                                              \
		if (UNLIKELY(sp_thread_charge(n)))                             \
			return cold_##member args;                             \
		sp_thread_count_object();                                      \
		if (UNLIKELY(n > SP_SIZE_COUNTS_SMALL_MAX))                    \
			return large_##member args;                            \
		sp_size_counts_count_small(sp_thread.counts, n);               \
		return sp_next.member args;                                    \
	}

/* An aligned one may call aligned_alloc below us (jemalloc's do), where it is
 * counted: then there is nothing left to count. */
#define DEFINE_ALIGNED_NEW(symbol, member, params, args, entry, throws)        \
	void *symbol params;                                                   \
	DEFINE_FORWARD(member, params, args, alignment, throws)                \
	SP_EXPORT void *symbol params                                          \
	{                                                                      \
		uint64_t before = sp_thread.objects;                           \
		void *p;                                                       \
                                                                               \
		if (!sp_next.member##_is_own)                                  \
			return forward_##member args;                          \
		p = sp_next.member args;                                       \
		if (sp_thread.objects == before)                               \
			sp_count(p, n, entry, SP_FRAME_HERE);                  \
		return p;                                                      \
	}

DEFINE_NEW(_Znwm, new_plain, (size_t n), (n), SP_ENTRY_NEW, "_Znwm")
DEFINE_NEW(_Znam, new_array, (size_t n), (n), SP_ENTRY_NEW_ARRAY, "_Znam")
DEFINE_NEW(_ZnwmRKSt9nothrow_t, new_nothrow, (size_t n, const void *tag),
	   (n, tag), SP_ENTRY_NEW, NO_THROW)
DEFINE_NEW(_ZnamRKSt9nothrow_t, new_array_nothrow, (size_t n, const void *tag),
	   (n, tag), SP_ENTRY_NEW_ARRAY, NO_THROW)
DEFINE_ALIGNED_NEW(_ZnwmSt11align_val_t, new_aligned,
		   (size_t n, size_t alignment), (n, alignment), SP_ENTRY_NEW,
		   "_ZnwmSt11align_val_t")
DEFINE_ALIGNED_NEW(_ZnamSt11align_val_t, new_array_aligned,
		   (size_t n, size_t alignment), (n, alignment),
		   SP_ENTRY_NEW_ARRAY, "_ZnamSt11align_val_t")
DEFINE_ALIGNED_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, new_aligned_nothrow,
		   (size_t n, size_t alignment, const void *tag),
		   (n, alignment, tag), SP_ENTRY_NEW, NO_THROW)
DEFINE_ALIGNED_NEW(_ZnamSt11align_val_tRKSt9nothrow_t,
		   new_array_aligned_nothrow,
		   (size_t n, size_t alignment, const void *tag),
		   (n, alignment, tag), SP_ENTRY_NEW_ARRAY, NO_THROW)

/*
 * One operator delete.  Without it below, the plainer one it stands for.  One
 * that keeps to itself asks the filter; the others come by free, or by a
 * plainer one, and ask there.
 */
#define DEFINE_DELETE(symbol, member, params, args, plainer)                   \
	void symbol params;                                                    \
	static SP_COLD void followed_##member params                           \
	{                                                                      \
		sp_recorder_free(p);                                           \
		sp_next.member args;                                           \
	}                                                                      \
	SP_EXPORT void symbol params                                           \
	{                                                                      \
		if (sp_next.member##_is_own) {                                 \
			if (UNLIKELY(sp_filter_may_have(p)))                   \
				followed_##member args;                        \
			else                                                   \
				sp_next.member args;                           \
		} else if (sp_next.member) {                                   \
			sp_next.member args;                                   \
		} else {                                                       \
			plainer;                                               \
		}                                                              \
	}

DEFINE_DELETE(_ZdlPv, delete_plain, (void *p), (p), free(p))
DEFINE_DELETE(_ZdaPv, delete_array, (void *p), (p), _ZdlPv(p))
DEFINE_DELETE(_ZdlPvRKSt9nothrow_t, delete_nothrow, (void *p, const void *tag),
	      (p, tag), _ZdlPv(p))
DEFINE_DELETE(_ZdaPvRKSt9nothrow_t, delete_array_nothrow,
	      (void *p, const void *tag), (p, tag), _ZdaPv(p))
DEFINE_DELETE(_ZdlPvSt11align_val_t, delete_aligned,
	      (void *p, size_t alignment), (p, alignment), _ZdlPv(p))
DEFINE_DELETE(_ZdaPvSt11align_val_t, delete_array_aligned,
	      (void *p, size_t alignment), (p, alignment), _ZdaPv(p))
DEFINE_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, delete_aligned_nothrow,
	      (void *p, size_t alignment, const void *tag), (p, alignment, tag),
	      _ZdlPvSt11align_val_t(p, alignment))
DEFINE_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, delete_array_aligned_nothrow,
	      (void *p, size_t alignment, const void *tag), (p, alignment, tag),
	      _ZdaPvSt11align_val_t(p, alignment))
DEFINE_DELETE(_ZdlPvm, delete_sized, (void *p, size_t n), (p, n), _ZdlPv(p))
DEFINE_DELETE(_ZdaPvm, delete_array_sized, (void *p, size_t n), (p, n),
	      _ZdaPv(p))
DEFINE_DELETE(_ZdlPvmSt11align_val_t, delete_sized_aligned,
	      (void *p, size_t n, size_t alignment), (p, n, alignment),
	      _ZdlPvSt11align_val_t(p, alignment))
DEFINE_DELETE(_ZdaPvmSt11align_val_t, delete_array_sized_aligned,
	      (void *p, size_t n, size_t alignment), (p, n, alignment),
	      _ZdaPvSt11align_val_t(p, alignment))
