/* SPDX-License-Identifier: MIT */
/*
 * jemalloc's own interface.  A program finds out whether it runs on jemalloc by
 * testing whether mallocx exists, so these are indirect functions: their
 * resolvers say "none" unless the allocator below has them.
 *
 * A resolver may run before this library is relocated, when an object that was
 * loaded after it refers to mallocx: it uses nothing but sp_linkmap_*, which
 * is written for that.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/event/recorder.h"
#include "agent/hooks/count.h"
#include "agent/hooks/jemalloc.h"
#include "agent/sys/export.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/next.h"

static void forget_object(void *p)
{
	if (sp_filter_may_have(p))
		sp_recorder_free(p);
}

static void *hooked_mallocx(size_t n, int flags)
{
	void *p;

	sp_next_resolve();
	p = sp_next.mallocx(n, flags);
	sp_count(p, n, SP_ENTRY_MALLOCX, SP_FRAME_HERE);
	return p;
}

static void *hooked_rallocx(void *old, size_t n, int flags)
{
	struct sp_recorder_end end;
	void *p;

	sp_next_resolve();
	sp_recorder_free_begin(old, &end);
	p = sp_next.rallocx(old, n, flags);
	if (p)
		sp_recorder_free_commit(&end);
	else
		sp_recorder_free_cancel(old, &end);
	sp_count(p, n, SP_ENTRY_RALLOCX, SP_FRAME_HERE);
	return p;
}

/* Resizes in place or not at all: counted, as a realloc is, when the object
 * has another size afterwards.  Its address stays the caller's all the time. */
static size_t hooked_xallocx(void *p, size_t n, size_t extra, int flags)
{
	size_t before, after;

	sp_next_resolve();
	before = sp_next.sallocx(p, flags);
	after = sp_next.xallocx(p, n, extra, flags);
	if (after != before) {
		forget_object(p);
		sp_count(p, n, SP_ENTRY_XALLOCX, SP_FRAME_HERE);
	}
	return after;
}

static size_t hooked_sallocx(const void *p, int flags)
{
	sp_next_resolve();
	return sp_next.sallocx(p, flags);
}

static void hooked_dallocx(void *p, int flags)
{
	sp_next_resolve();
	forget_object(p);
	sp_next.dallocx(p, flags);
}

static void hooked_sdallocx(void *p, size_t n, int flags)
{
	sp_next_resolve();
	forget_object(p);
	sp_next.sdallocx(p, n, flags);
}

static size_t hooked_nallocx(size_t n, int flags)
{
	sp_next_resolve();
	return sp_next.nallocx(n, flags);
}

#define DEFINE_OPTIONAL(name, ret, params)                                     \
	static __attribute__((                                                 \
		used)) __typeof__(&hooked_##name) resolve_##name(void)         \
	{                                                                      \
		return sp_linkmap_next(#name, NULL) ? hooked_##name : NULL;    \
	}                                                                      \
	SP_EXPORT ret name params __attribute__((ifunc("resolve_" #name)))

DEFINE_OPTIONAL(mallocx, void *, (size_t n, int flags));
DEFINE_OPTIONAL(rallocx, void *, (void *p, size_t n, int flags));
DEFINE_OPTIONAL(xallocx, size_t, (void *p, size_t n, size_t extra, int flags));
DEFINE_OPTIONAL(sallocx, size_t, (const void *p, int flags));
DEFINE_OPTIONAL(dallocx, void, (void *p, int flags));
DEFINE_OPTIONAL(sdallocx, void, (void *p, size_t n, int flags));
DEFINE_OPTIONAL(nallocx, size_t, (size_t n, int flags));

#define HOOK(name)                                                             \
	{                                                                      \
#name, (const void *)(uintptr_t)hooked_##name                  \
	}

const void *sp_jemalloc_hook(const char *symbol)
{
	static const struct {
		const char *symbol;
		const void *hook;
	} hooks[] = {
		HOOK(mallocx), HOOK(rallocx),  HOOK(xallocx), HOOK(sallocx),
		HOOK(dallocx), HOOK(sdallocx), HOOK(nallocx),
	};

	for (size_t i = 0; i < sizeof(hooks) / sizeof(*hooks); i++)
		if (strcmp(hooks[i].symbol, symbol) == 0)
			return hooks[i].hook;
	return NULL;
}
