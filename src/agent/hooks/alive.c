/* SPDX-License-Identifier: MIT */
#include "agent/hooks/alive.h"

#include <stddef.h>
#include <string.h>

#include "agent/sys/linkmap.h"
#include "agent/sys/next.h"

#include "agent/sys/poison.h"

/* struct mallinfo2 of glibc. */
struct glibc_sums {
	size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks,
		uordblks, fordblks, keepcost;
};

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

static bool ask_glibc(uint64_t *ret)
{
	struct glibc_sums (*ask)(void);
	struct glibc_sums sums;
	void *version;

	if (!find_function("gnu_get_libc_version", &version) ||
	    !find_function("mallinfo2", &ask))
		return false;
	sums = ask();
	*ret = sums.uordblks + sums.hblkhd;
	return true;
}

bool sp_alive_bytes(uint64_t *ret)
{
	return ask_jemalloc(ret) || ask_tcmalloc(ret) || ask_glibc(ret);
}
