/* SPDX-License-Identifier: MIT */
#include "agent/hooks/alive.h"

#include <stddef.h>
#include <string.h>

#include "agent/sys/linkmap.h"
#include "agent/sys/next.h"

#include "agent/sys/poison.h"

static bool find_function(const char *name, void *ret)
{
	void *address = sp_linkmap_find(sp_next_provider_map(), name);

	memcpy(ret, &address, sizeof(address));
	return address;
}

/* Its numbers are those of the last epoch. */
static bool ask_jemalloc(uint64_t *ret)
{
	int (*control)(const char *, void *, size_t *, void *, size_t);
	uint64_t epoch = 1;
	size_t bytes, size = sizeof(bytes);

	if (!find_function("mallctl", &control))
		return false;
	control("epoch", NULL, NULL, &epoch, sizeof(epoch));
	if (control("stats.allocated", &bytes, &size, NULL, 0) != 0)
		return false;
	*ret = bytes;
	return true;
}

static bool ask_tcmalloc(uint64_t *ret)
{
	int (*ask)(const char *, size_t *);
	size_t bytes;

	if (!find_function("MallocExtension_GetNumericProperty", &ask) ||
	    !ask("generic.current_allocated_bytes", &bytes))
		return false;
	*ret = bytes;
	return true;
}

bool sp_alive_bytes(bool knows_glibc, uint64_t glibc_bytes, uint64_t *ret)
{
	void *version;

	if (ask_jemalloc(ret) || ask_tcmalloc(ret))
		return true;
	if (!knows_glibc || !find_function("gnu_get_libc_version", &version))
		return false;
	*ret = glibc_bytes;
	return true;
}
