/* SPDX-License-Identifier: MIT */
#include "agent/sys/allocator.h"

#include <stdatomic.h>
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
static uint64_t count_without(uint64_t from, uint64_t bytes)
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
	m->free_bytes =
		count_without(m->system_bytes, m->alive_bytes + metadata);
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
	m->system_bytes = count_without(heap, unmapped);
	m->free_bytes = count_without(m->system_bytes, alive);
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
static size_t rounded_size(size_t (*of_both)(size_t, int),
			   size_t (*of_one)(size_t), size_t bytes)
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
	if (!find_function("nallocx", &of_both))
		find_function("mi_good_size", &of_one);
	if (!of_both && !of_one)
		return;
	while (bytes < SP_ALLOCATOR_CLASSES_TOP &&
	       n + 1 < SP_ALLOCATOR_CLASSES) {
		const size_t next = rounded_size(of_both, of_one, bytes + 1);

		if (next <= bytes || next > UINT32_MAX)
			return;
		bytes = next;
		ret[++n] = (uint32_t)bytes;
	}
	ret[0] = n;
}

/* ---- jemalloc's slabs ---- */

#define JEMALLOC_BINS_MAX   256u
#define JEMALLOC_ALL_ARENAS 4096u
#define JEMALLOC_PARTS      6u /* the longest name */

static atomic_bool has_others;

void sp_allocator_note_other(void)
{
	atomic_store_explicit(&has_others, true, memory_order_relaxed);
}

/* Whatever is called below us besides pvalloc, and gives memory. */
static bool has_own_functions(void)
{
	const struct sp_next *n = &sp_next;

	return n->calloc_is_own && n->realloc_is_own &&
	       (n->memalign_is_own || !n->memalign) &&
	       (n->posix_memalign_is_own || !n->posix_memalign) &&
	       (n->aligned_alloc_is_own || !n->aligned_alloc) &&
	       (n->valloc_is_own || !n->valloc) &&
	       (n->mallocx_is_own || !n->mallocx) &&
	       (n->rallocx_is_own || !n->rallocx);
}

typedef int jemalloc_find(const char *, size_t *, size_t *);
typedef int jemalloc_ask(const size_t *, size_t, void *, size_t *, void *,
			 size_t);

struct jemalloc {
	jemalloc_find *find;
	jemalloc_ask *ask;
	jemalloc_control *control;
};

/* "5.3.0-0-g...": what it does with pointers is known from there on. */
static bool is_new_enough(const struct jemalloc *j)
{
	const char *version = NULL;
	size_t size = sizeof(version);

	if (j->control("version", &version, &size, NULL, 0) != 0 || !version)
		return false;
	if (version[0] < '1' || version[0] > '9')
		return false;
	return version[1] != '.' || version[0] > '5' ||
	       (version[0] == '5' && version[2] >= '3');
}

/* A number of one bin of all arenas, whose name has `all` and 0 in their
 * places. */
static bool get_of_bin(const struct jemalloc *j, const char *name, size_t bin,
		       size_t size, uint64_t *ret)
{
	size_t mib[JEMALLOC_PARTS], parts = JEMALLOC_PARTS;
	uint32_t word = 0;
	size_t bytes = 0;
	int r;

	if (j->find(name, mib, &parts) != 0 || parts < 4)
		return false;
	if (parts > 4)
		mib[2] = JEMALLOC_ALL_ARENAS;
	mib[parts - 2] = bin;
	r = size == sizeof(word) ? j->ask(mib, parts, &word, &size, NULL, 0)
				 : j->ask(mib, parts, &bytes, &size, NULL, 0);
	*ret = size == sizeof(word) ? word : bytes;
	return r == 0;
}

static bool add_bin(const struct jemalloc *j, size_t bin,
		    struct sp_control_slabs *ret)
{
	uint64_t slabs, used, regions, bytes;

	if (!get_of_bin(j, "stats.arenas.0.bins.0.curslabs", bin,
			sizeof(size_t), &slabs) ||
	    !get_of_bin(j, "stats.arenas.0.bins.0.curregs", bin, sizeof(size_t),
			&used) ||
	    !get_of_bin(j, "arenas.bin.0.nregs", bin, sizeof(uint32_t),
			&regions) ||
	    !get_of_bin(j, "arenas.bin.0.size", bin, sizeof(size_t), &bytes))
		return false;
	ret->free_bytes += count_without(slabs * regions, used) * bytes;
	ret->alive_bytes += used * bytes;
	return true;
}

static bool get_cached(const struct jemalloc *j, uint64_t *ret)
{
	size_t mib[JEMALLOC_PARTS], parts = JEMALLOC_PARTS;
	size_t bytes, size = sizeof(bytes);

	if (j->find("stats.arenas.0.tcache_bytes", mib, &parts) != 0)
		return false;
	mib[2] = JEMALLOC_ALL_ARENAS;
	if (j->ask(mib, parts, &bytes, &size, NULL, 0) != 0)
		return false;
	*ret = bytes;
	return true;
}

bool sp_allocator_slabs(struct sp_allocator_slabs *slabs,
			struct sp_control_slabs *ret)
{
	struct jemalloc j;
	uint64_t epoch = 1;
	uint32_t bins;
	size_t size = sizeof(bins);

	slabs->parts = sizeof(slabs->name) / sizeof(*slabs->name);
	if (atomic_load(&has_others) || !has_own_functions() ||
	    !find_function("mallctl", &j.control) ||
	    !find_function("mallctlnametomib", &j.find) ||
	    !find_function("mallctlbymib", &j.ask) || !is_new_enough(&j) ||
	    j.find("experimental.utilization.batch_query", slabs->name,
		   &slabs->parts) != 0 ||
	    j.control("arenas.nbins", &bins, &size, NULL, 0) != 0 ||
	    bins > JEMALLOC_BINS_MAX)
		return false;
	slabs->ask = j.ask;
	j.control("epoch", NULL, NULL, &epoch, sizeof(epoch));
	for (size_t bin = 0; bin < bins; bin++)
		if (!add_bin(&j, bin, ret))
			return false;
	return get_cached(&j, &ret->cached_bytes);
}

/* An object of another library is noted before it has its address in the live
 * set, from where the caller has this one. */
struct sp_control_object sp_allocator_slab_of(
	const struct sp_allocator_slabs *slabs, uint64_t address)
{
	struct sp_control_object object = {.address = address};
	size_t answer[3] = {0}, size = sizeof(answer);
	void *of = (void *)(uintptr_t)address;

	if (atomic_load(&has_others) ||
	    slabs->ask(slabs->name, slabs->parts, answer, &size, &of,
		       sizeof(of)) != 0 ||
	    answer[2] > UINT32_MAX || answer[1] > UINT16_MAX ||
	    answer[0] > answer[1])
		return object;
	object.slab_bytes = (uint32_t)answer[2];
	object.regions = (uint16_t)answer[1];
	object.free = (uint16_t)answer[0];
	return object;
}
