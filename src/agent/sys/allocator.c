/* SPDX-License-Identifier: MIT */
#include "agent/sys/allocator.h"

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

/* The counts are taken one after another while others allocate. */
static uint64_t less(uint64_t from, uint64_t bytes)
{
	return from > bytes ? from - bytes : 0;
}

typedef int jemalloc_control(const char *, void *, size_t *, void *, size_t);

static bool get_jemalloc(jemalloc_control *control, const char *name,
			 uint64_t *ret)
{
	size_t bytes, size = sizeof(bytes);

	if (control(name, &bytes, &size, NULL, 0) != 0)
		return false;
	*ret = bytes;
	return true;
}

/* Its numbers are those of the last epoch. */
static bool ask_jemalloc(struct sp_control_memory *m)
{
	jemalloc_control *control;
	uint64_t epoch = 1, metadata;

	if (!find_function("mallctl", &control))
		return false;
	control("epoch", NULL, NULL, &epoch, sizeof(epoch));
	if (!get_jemalloc(control, "stats.allocated", &m->alive_bytes) ||
	    !get_jemalloc(control, "stats.resident", &m->system_bytes) ||
	    !get_jemalloc(control, "stats.metadata", &metadata))
		return false;
	m->allocator = SP_ALLOCATOR_JEMALLOC;
	m->free_bytes = less(m->system_bytes, m->alive_bytes + metadata);
	m->own_bytes = metadata;
	return true;
}

static bool ask_tcmalloc(struct sp_control_memory *m)
{
	int (*ask)(const char *, size_t *);
	size_t alive, heap, unmapped;

	if (!find_function("MallocExtension_GetNumericProperty", &ask) ||
	    !ask("generic.current_allocated_bytes", &alive) ||
	    !ask("generic.heap_size", &heap) ||
	    !ask("tcmalloc.pageheap_unmapped_bytes", &unmapped))
		return false;
	m->allocator = SP_ALLOCATOR_TCMALLOC;
	m->alive_bytes = alive;
	m->system_bytes = less(heap, unmapped);
	m->free_bytes = less(m->system_bytes, alive);
	return true;
}

static bool ask_glibc(struct sp_control_memory *m,
		      struct sp_control_glibc *ret_more)
{
	struct glibc_sums (*ask)(void);
	struct glibc_sums sums;
	void *version;

	if (!find_function("gnu_get_libc_version", &version) ||
	    !find_function("mallinfo2", &ask))
		return false;
	sums = ask();
	m->allocator = SP_ALLOCATOR_GLIBC;
	m->alive_bytes = sums.uordblks + sums.hblkhd;
	m->free_bytes = sums.fordblks;
	m->system_bytes = sums.arena;
	m->large_bytes = sums.hblkhd;
	*ret_more = (struct sp_control_glibc){.has_more = 1,
					      .top_bytes = sums.keepcost,
					      .fast_bytes = sums.fsmblks,
					      .fast_objects = sums.smblks};
	return true;
}

bool sp_allocator_ask_other(struct sp_control_memory *ret)
{
	struct sp_control_memory m = {0};

	if (!ask_jemalloc(&m) && !ask_tcmalloc(&m))
		return false;
	*ret = m;
	return true;
}

bool sp_allocator_ask(struct sp_control_memory *ret,
		      struct sp_control_glibc *ret_glibc)
{
	struct sp_control_memory m = {0};

	*ret_glibc = (struct sp_control_glibc){0};
	if (sp_allocator_ask_other(ret))
		return true;
	if (!ask_glibc(&m, ret_glibc))
		return false;
	*ret = m;
	return true;
}

/* jemalloc and tcmalloc have it by one name, with flags; mimalloc by another.
 */
static size_t rounded(size_t (*of_both)(size_t, int), size_t (*of_one)(size_t),
		      size_t bytes)
{
	return of_both ? of_both(bytes, 0) : of_one(bytes);
}

void sp_allocator_classes(uint32_t ret[SP_ALLOCATOR_CLASSES])
{
	size_t (*of_both)(size_t, int) = NULL;
	size_t (*of_one)(size_t) = NULL;
	size_t bytes = 0;
	uint32_t n = 0;

	ret[0] = 0;
	if (!find_function("nallocx", &of_both) &&
	    !find_function("mi_good_size", &of_one))
		return;
	while (bytes < SP_ALLOCATOR_CLASSES_TOP &&
	       n + 1 < SP_ALLOCATOR_CLASSES) {
		const size_t next = rounded(of_both, of_one, bytes + 1);

		if (next <= bytes || next > UINT32_MAX)
			return;
		bytes = next;
		ret[++n] = (uint32_t)bytes;
	}
	ret[0] = n;
}
