/* SPDX-License-Identifier: MIT */
#include "agent/real.h"

#include <stdatomic.h>
#include <stdint.h>

#include "agent/linkmap.h"

/* The first call of all may be a free (of NULL, or of what the loader allocated
 * for itself). */
static void first_free(void *p)
{
	if (sp_real_resolve())
		sp_real.free(p);
}

struct sp_real sp_real = {.free = first_free};
static _Atomic int resolved;
static const struct link_map *malloc_provider;

/* Fill one member: its address and whether malloc's provider defines it. */
static void resolve(void *member, bool *is_own, const char *symbol)
{
	const struct link_map *provider = NULL;
	void *address = sp_linkmap_next(symbol, &provider);

	/* Function pointers through void: what POSIX grants for dlsym. */
	__builtin_memcpy(member, &address, sizeof(address));
	*is_own = address && provider == malloc_provider;
}

bool sp_real_resolve(void)
{
	if (atomic_load_explicit(&resolved, memory_order_acquire))
		return true;
	if (!sp_linkmap_next("malloc", &malloc_provider))
		return false;
#define SP_REAL(member, symbol, ret, args)                                     \
	resolve(&sp_real.member, &sp_real.member##_is_own, symbol);
#include "agent/real.def"
#undef SP_REAL
	atomic_store_explicit(&resolved, 1, memory_order_release);
	return true;
}

const char *sp_real_provider(void)
{
	return malloc_provider && malloc_provider->l_name
		       ? malloc_provider->l_name
		       : "";
}
