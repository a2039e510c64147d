/* SPDX-License-Identifier: MIT */
#include "agent/sys/next.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "agent/sys/arch.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/sys.h"

/* The first call of all may be a free (of NULL, or of what the loader allocated
 * for itself). */
static void first_free(void *p)
{
	if (sp_next_resolve())
		sp_next.free(p);
}

struct sp_next sp_next = {.free = first_free};
static _Atomic int resolved;
static const struct link_map *malloc_provider;

/* Below a preloaded library is what comes behind it; below one that a running
 * program has loaded, last of all, is what the program reaches. */
static bool is_last;

static void *find_below(const char *symbol, const struct link_map **ret)
{
	return is_last ? sp_linkmap_global(symbol, ret)
		       : sp_linkmap_next(symbol, ret);
}

/* An operator of an object that has a malloc, too, keeps to that.  libstdc++
 * has none. */
static bool has_own_malloc(const char *symbol, const struct link_map *provider)
{
	return symbol[0] == '_' && symbol[1] == 'Z' &&
	       sp_linkmap_find(provider, "malloc");
}

/* Fill one member: its address and whether it is of malloc's provider, or keeps
 * to another. */
static void resolve_member(void *member, bool *is_own, const char *symbol)
{
	const struct link_map *provider = NULL;
	void *address = find_below(symbol, &provider);

	if (provider == sp_linkmap_self())
		address = NULL;

	/* Function pointers through void: what POSIX grants for dlsym. */
	__builtin_memcpy(member, &address, sizeof(address));
	*is_own = address && (provider == malloc_provider ||
			      has_own_malloc(symbol, provider));
}

/* ---- musl ---- */

/*
 * musl's calloc, memalign, posix_memalign and valloc call malloc and
 * aligned_alloc by their public names, which are ours: they would count twice.
 * What follows does the same by those of musl itself.
 */

/* Pages that are zero stay untouched: fresh ones have no memory yet. */
static void clear_object(char *p, size_t n)
{
	while (n >= SP_ARCH_PAGE_MIN) {
		const uint64_t *word = (const uint64_t *)p;
		unsigned int i = 0;

		while (i < SP_ARCH_PAGE_MIN / sizeof(*word) && word[i] == 0)
			i++;
		if (i < SP_ARCH_PAGE_MIN / sizeof(*word))
			memset(p, 0, SP_ARCH_PAGE_MIN);
		p += SP_ARCH_PAGE_MIN;
		n -= SP_ARCH_PAGE_MIN;
	}
	memset(p, 0, n);
}

static void *calloc_by_malloc(size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	p = sp_next.malloc(bytes);
	if (p)
		clear_object(p, bytes);
	return p;
}

static int posix_memalign_by_aligned(void **ret, size_t alignment, size_t n)
{
	void *p;

	if (alignment < sizeof(void *))
		return EINVAL;
	p = sp_next.aligned_alloc(alignment, n);
	if (!p)
		return errno;
	*ret = p;
	return 0;
}

static void *valloc_by_aligned(size_t n)
{
	return sp_next.aligned_alloc(sp_sys_page_bytes(), n);
}

static bool is_musls(const char *symbol)
{
	const struct link_map *provider = NULL;

	return sp_linkmap_next(symbol, &provider) &&
	       sp_linkmap_find(provider, "__libc_start_main") &&
	       !sp_linkmap_find(provider, "gnu_get_libc_version");
}

static void bypass_own_names(void)
{
	if (is_musls("calloc"))
		sp_next.calloc = calloc_by_malloc;
	if (!sp_next.aligned_alloc)
		return;
	if (is_musls("memalign"))
		sp_next.memalign = sp_next.aligned_alloc;
	if (is_musls("posix_memalign"))
		sp_next.posix_memalign = posix_memalign_by_aligned;
	if (is_musls("valloc"))
		sp_next.valloc = valloc_by_aligned;
}

/* NULL: nothing stands before this library. */
static void *find_before(const char *symbol)
{
	const struct link_map *provider = NULL;
	void *address = sp_linkmap_global(symbol, &provider);

	return is_last || provider == sp_linkmap_self() ? NULL : address;
}

static void resolve_before(void)
{
	void *address = find_before("free");

	memcpy(&sp_next.free_before, &address, sizeof(address));
	address = find_before("realloc");
	memcpy(&sp_next.realloc_before, &address, sizeof(address));
}

bool sp_next_resolve(void)
{
	if (atomic_load_explicit(&resolved, memory_order_acquire))
		return true;
	if (!find_below("malloc", &malloc_provider) ||
	    malloc_provider == sp_linkmap_self())
		return false;
#define SP_NEXT(member, symbol, ret, args)                                     \
	resolve_member(&sp_next.member, &sp_next.member##_is_own, symbol);
#include "agent/sys/next.def"
#undef SP_NEXT
	bypass_own_names();
	resolve_before();
	atomic_store_explicit(&resolved, 1, memory_order_release);
	return true;
}

bool sp_next_resolve_last(void)
{
	is_last = true;
	return sp_next_resolve();
}

const struct link_map *sp_next_provider_map(void)
{
	return malloc_provider;
}

const char *sp_next_provider(void)
{
	return malloc_provider && malloc_provider->l_name
		       ? malloc_provider->l_name
		       : "";
}
