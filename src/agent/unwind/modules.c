/* SPDX-License-Identifier: MIT */
/*
 * I1  entries[0..n_entries) with an id are complete, and do not change while
 *     they have it; an id is stored with release after its entry is filled.
 * I2  Entries are added under `adding`, a try-lock; a thread that cannot have
 *     it does without the entry this time.  A thread that leaves it in the
 *     middle has used up an id, and room for texts; the next thread fills the
 *     entry anew.
 * I3  An entry that had an object is filled again only if its object is gone,
 *     its id was taken away, and after that only the thread that fills it held
 *     a lane.  A thread that takes a lane later finds no id (sp_lane_take
 *     changes `holder` by one instruction that orders all others).
 * I4  An entry's copies of texts have at least the room that it says, at any
 *     instant: the thread that fills it may leave for good.
 * I5  ranges[0..n_ranges) are the segments of the permanent objects of start-up
 *     by address, neighbours of one object as one; written once before there
 *     are threads.
 */
#include "agent/unwind/modules.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/sys/arch.h"
#include "agent/sys/arena.h"
#include "agent/sys/diag.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/mapname.h"
#include "agent/thread/inside.h"
#include "agent/unwind/cfi_index.h"
#include "agent/unwind/lane.h"
#include "agent/unwind/loaded.h"
#include "base/hash.h"

#include "agent/sys/poison.h"

#define MODULES_MAX    2048u
#define RANGES_MAX     4096u
#define NAME_BYTES_MAX 4096u
#define PAGE_MASK      (SP_ARCH_PAGE_MIN - 1)
/* Entries that are looked at for one that can be used again. */
#define REUSE_ATTEMPTS   64
#define ADDING_SPINS_MAX 2000u /* some tens of microseconds */

struct range {
	uintptr_t start;
	uintptr_t end;
	struct sp_module_entry *entry;
};

static struct sp_module_entry entries[MODULES_MAX];
static _Atomic unsigned int n_entries;
static _Atomic unsigned int count;
static sp_inside_lock adding;
static _Atomic uint32_t last_id;
static unsigned int next_reuse; /* under `adding` */
/* Where find_added begins. */
static _Atomic unsigned int found;
static struct range ranges[RANGES_MAX];
static unsigned int n_ranges;
static unsigned int n_at_start; /* entries of the objects of start-up */
static struct sp_module_entry *self;

/* ---- unloading ---- */

/* A bit for the node of each object that may be unloaded, by its hash; none is
 * ever cleared. */
#define NODE_BITS 1024u
static _Atomic uint64_t nodes[NODE_BITS / 64];
static _Atomic uint32_t unloads; /* 1 + those seen; 0: they are not seen */

static uint64_t hash_node(uintptr_t address)
{
	return (address >> 4) * SP_HASH_MULTIPLIER >> 54;
}

static void watch_node(const struct link_map *map)
{
	const uint64_t bit = hash_node((uintptr_t)map);

	atomic_fetch_or_explicit(&nodes[bit / 64], 1ull << bit % 64,
				 memory_order_relaxed);
}

static void note_node(struct sp_module_entry *e, const struct link_map *map)
{
	watch_node(map);
	atomic_store_explicit(&e->map, map, memory_order_relaxed);
}

void sp_modules_freed(uintptr_t address)
{
	const uint64_t bit = hash_node(address);
	unsigned int n;

	if (!(atomic_load_explicit(&nodes[bit / 64], memory_order_relaxed) &
	      1ull << bit % 64))
		return;
	n = sp_modules_entries();
	for (unsigned int i = n_at_start; i < n; i++)
		if ((uintptr_t)atomic_load_explicit(
			    &entries[i].map, memory_order_relaxed) == address)
			atomic_fetch_add(&unloads, 1);
}

void sp_modules_watch_frees(void)
{
	atomic_store(&unloads, 1);
}

uint32_t sp_modules_unloads(void)
{
	return atomic_load_explicit(&unloads, memory_order_acquire);
}

/* ---- one object ---- */

static struct sp_loaded view_of(const struct sp_module_entry *e)
{
	return (struct sp_loaded){
		.bias = e->bias, .phdr = e->phdr, .n_phdr = e->n_phdr};
}

/* The GNU build id among the notes of a segment, and Go's; `end` bounds it. */
static void read_segment_notes(struct sp_module_entry *e, const uint8_t *at,
			       const uint8_t *end)
{
	while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)at;
		size_t name = (note->n_namesz + 3u) & ~(size_t)3;
		size_t desc = (note->n_descsz + 3u) & ~(size_t)3;

		at += sizeof(*note);
		if (name > (size_t)(end - at) ||
		    desc > (size_t)(end - at) - name)
			return;
		if (note->n_namesz == 4 && memcmp(at, "Go\0", 4) == 0)
			e->is_go = true;
		if (!e->note && note->n_type == NT_GNU_BUILD_ID &&
		    note->n_namesz == 4 && memcmp(at, "GNU", 4) == 0 &&
		    note->n_descsz <= SP_FORMAT_BUILD_ID_MAX) {
			e->note = at + name;
			e->build_id_bytes = (uint8_t)note->n_descsz;
			memcpy(e->build_id, e->note, note->n_descsz);
		}
		at += name + desc;
	}
}

static void read_notes(struct sp_module_entry *e,
		       const struct sp_loaded *loaded)
{
	for (unsigned int i = 0; i < loaded->n_phdr; i++) {
		const ElfW(Phdr) *p = &loaded->phdr[i];
		uintptr_t at = e->bias + p->p_vaddr;

		if (p->p_type == PT_NOTE &&
		    sp_loaded_covers(loaded, at, p->p_memsz))
			read_segment_notes(e, (const uint8_t *)at,
					   (const uint8_t *)at + p->p_memsz);
	}
}

/* The extent of the segments, which are in order of address; false: there are
 * none. */
static bool read_segments(struct sp_module_entry *e,
			  const struct sp_loaded *loaded)
{
	e->code_start = e->start = UINTPTR_MAX;
	for (unsigned int i = 0; i < loaded->n_phdr; i++) {
		const ElfW(Phdr) *p = &loaded->phdr[i];
		uintptr_t at = e->bias + p->p_vaddr, end = at + p->p_memsz;

		if (p->p_type != PT_LOAD || p->p_memsz == 0 || end < at)
			continue;
		if ((p->p_flags & PF_X) && at < e->code_start)
			e->code_start = at;
		if ((p->p_flags & PF_X) && end > e->code_end)
			e->code_end = end;
		at &= ~PAGE_MASK;
		end = (end + PAGE_MASK) & ~PAGE_MASK;
		e->has_holes |= e->end && at > e->end;
		if (at < e->start)
			e->start = at;
		if (end > e->end)
			e->end = end;
	}
	return e->start < e->end;
}

static bool contains_pc(const struct sp_module_entry *e, uintptr_t pc)
{
	struct sp_loaded view;

	if (pc < e->start || pc >= e->end)
		return false;
	if (!e->has_holes)
		return true;
	view = view_of(e);
	return sp_loaded_covers(&view, pc, 1);
}

/* Is the memory that the entry was made from, which is there, as it was? */
static bool is_same_memory(const struct sp_module_entry *e)
{
	const size_t bytes = e->n_phdr * sizeof(*e->phdr);

	return memcmp(e->phdr_there, e->phdr, bytes) == 0 &&
	       (!e->note ||
		memcmp(e->note, e->build_id, e->build_id_bytes) == 0);
}

/* Is what the loader has at `pc`, a place of the entry, the entry's object?
 * Another one shows in the name, in the program headers or in the build id. */
static bool is_there(struct sp_module_entry *e, uintptr_t pc)
{
	const struct sp_loaded was = {e->map, e->bias, e->name, e->phdr_there,
				      e->n_phdr};
	const struct link_map *map;

	if (e->permanent)
		return true;
	map = sp_loaded_still(&was, pc);
	if (!map || !is_same_memory(e))
		return false;
	/* It may have been away meanwhile. */
	if (map != was.map)
		note_node(e, map);
	return true;
}

/* ---- the table ---- */

static bool is_used_elsewhere(void)
{
	unsigned int held = 0;

	for (uint8_t i = 1; i <= SP_LANES; i++)
		held += sp_lane_holder(sp_lane_of(i)) != NULL;
	return held > 1;
}

/* May the entry be filled again (I3)? */
static bool retire_module(struct sp_module_entry *e)
{
	if (e->permanent || (e->id && is_there(e, e->start)))
		return false;
	atomic_store(&e->id, 0);
	atomic_thread_fence(memory_order_seq_cst);
	return !is_used_elsewhere();
}

/* An entry to fill; the caller holds `adding`.  NULL: there is none now. */
static struct sp_module_entry *free_entry(void)
{
	unsigned int n = atomic_load_explicit(&n_entries, memory_order_relaxed);

	if (n < MODULES_MAX)
		return &entries[n];
	for (int i = 0; i < REUSE_ATTEMPTS; i++) {
		struct sp_module_entry *e = &entries[next_reuse];

		next_reuse = (next_reuse + 1) % MODULES_MAX;
		if (retire_module(e))
			return e;
	}
	return NULL;
}

/* Our copies of names and program headers, where the last ones were if these
 * have room. */
static bool copy_texts(struct sp_module_entry *e,
		       const struct sp_loaded *loaded, const char *name)
{
	const size_t name_bytes = strlen(name) + 1;
	const char *path = sp_mapname_find(name, e->start);
	const size_t bytes = name_bytes + strlen(path) + 1;
	const size_t phdr_bytes = loaded->n_phdr * sizeof(*loaded->phdr);

	if (name_bytes > NAME_BYTES_MAX)
		return false;
	if (bytes > e->name_room) {
		char *text = sp_arena_get(SP_ARENA_MODULES, bytes);

		if (!text)
			return false;
		e->name = text;
		atomic_signal_fence(memory_order_seq_cst);
		e->name_room = (uint16_t)bytes;
	}
	memcpy((char *)(uintptr_t)e->name, name, name_bytes);
	memcpy((char *)(uintptr_t)e->name + name_bytes, path,
	       bytes - name_bytes);
	e->path = *path ? e->name + name_bytes : e->name;
	if (loaded->n_phdr > e->phdr_room) {
		ElfW(Phdr) *phdr = sp_arena_get(SP_ARENA_MODULES, phdr_bytes);

		if (!phdr)
			return false;
		e->phdr = phdr;
		atomic_signal_fence(memory_order_seq_cst);
		e->phdr_room = (uint16_t)loaded->n_phdr;
	}
	memcpy((ElfW(Phdr) *)(uintptr_t)e->phdr, loaded->phdr, phdr_bytes);
	e->n_phdr = (uint16_t)loaded->n_phdr;
	return true;
}

static bool fill_module(struct sp_module_entry *e,
			const struct sp_loaded *loaded, const char *name,
			bool permanent)
{
	const uint16_t name_room = e->name_room, phdr_room = e->phdr_room;
	struct sp_cfi_index *const index = e->index;

	e->name_room = e->phdr_room = 0;
	atomic_signal_fence(memory_order_seq_cst);
	*e = (struct sp_module_entry){
		.bias = loaded->bias,
		.map = loaded->map,
		.permanent = permanent,
		.phdr_there = loaded->phdr,
		.name = e->name,
		.phdr = e->phdr,
	};
	atomic_signal_fence(memory_order_seq_cst);
	e->name_room = name_room;
	e->phdr_room = phdr_room;
	sp_cfi_index_free(index);
	if (!read_segments(e, loaded) || !copy_texts(e, loaded, name))
		return false;
	read_notes(e, loaded);
	return true;
}

uint32_t sp_modules_take_id(void)
{
	return atomic_fetch_add(&last_id, 1) + 1;
}

/* The caller holds `adding`.  NULL: not possible. */
static struct sp_module_entry *add_module(const struct sp_loaded *loaded,
					  const char *name, bool permanent)
{
	struct sp_module_entry *e = free_entry();
	unsigned int id;

	if (!e || !fill_module(e, loaded, name, permanent)) {
		sp_diag_lose(SP_LOSS_MODULE_TABLE, 1);
		return NULL;
	}
	if (!permanent)
		watch_node(loaded->map);
	id = sp_modules_take_id();
	atomic_store_explicit(&e->id, id, memory_order_release);
	atomic_store_explicit(&count, id, memory_order_release);
	if (e == &entries[n_entries])
		atomic_store_explicit(&n_entries, n_entries + 1,
				      memory_order_release);
	atomic_store_explicit(&found, (unsigned int)(e - entries),
			      memory_order_relaxed);
	return e;
}

static void insert_range(struct range range)
{
	unsigned int at = n_ranges;

	if (n_ranges == RANGES_MAX) {
		sp_diag_lose(SP_LOSS_MODULE_TABLE, 1);
		return;
	}
	for (; at > 0 && ranges[at - 1].start > range.start; at--)
		ranges[at] = ranges[at - 1];
	ranges[at] = range;
	n_ranges++;
}

static void add_ranges(struct sp_module_entry *e)
{
	struct range range = {0, 0, e};

	for (unsigned int i = 0; i < e->n_phdr; i++) {
		uintptr_t at = e->bias + e->phdr[i].p_vaddr;
		uintptr_t end = at + e->phdr[i].p_memsz;

		if (e->phdr[i].p_type != PT_LOAD || end <= at)
			continue;
		at &= ~PAGE_MASK;
		end = (end + PAGE_MASK) & ~PAGE_MASK;
		if (range.end && at > range.end) {
			insert_range(range);
			range.end = 0;
		}
		if (!range.end)
			range.start = at;
		range.end = end;
	}
	insert_range(range);
}

/* `kept`: leave out the objects that may go; NULL: no object is left out. */
static void take_snapshot(const char *exe_path, struct sp_linkmap_kept *kept)
{
	const struct link_map *first = sp_linkmap_first();
	const struct link_map *self_map = sp_linkmap_self();

	sp_loaded_init();
	n_ranges = 0;
	for (const struct link_map *map = first; map; map = map->l_next) {
		struct sp_module_entry *e = NULL;
		struct sp_loaded loaded;
		const char *name;

		if (kept && !sp_linkmap_is_kept(kept, map))
			continue;
		if (sp_loaded_describe(map, &loaded)) {
			name = loaded.name;
			if (map == first)
				name = exe_path;
			else if (strncmp(name, "linux-vdso", 10) == 0)
				name = "[vdso]";
			e = add_module(&loaded, name, true);
		} else {
			sp_diag_lose(SP_LOSS_MODULE_TABLE, 1);
		}
		if (e)
			add_ranges(e);
		if (e && map == self_map)
			self = e;
	}
	n_at_start = sp_modules_entries();
}

void sp_modules_init(const char *exe_path)
{
	take_snapshot(exe_path, NULL);
}

/* The objects that take_snapshot() has left out.  Threads would meet each at
 * the same moment, and one that loses its processor while it adds the object
 * has the others go without. */
static void add_others(struct sp_linkmap_kept *kept)
{
	struct sp_loaded loaded;

	for (const struct link_map *map = sp_linkmap_first(); map;
	     map = map->l_next)
		if (!sp_linkmap_is_kept(kept, map) && n_entries < MODULES_MAX &&
		    sp_loaded_describe(map, &loaded))
			add_module(&loaded, loaded.name, false);
}

void sp_modules_init_running(const char *exe_path)
{
	struct sp_linkmap_kept *kept;

	if (sp_modules_entries())
		return;
	/* Not of all processes.  Without memory objects are met one by one. */
	kept = sp_arena_get(SP_ARENA_MODULES, sizeof(*kept));
	if (!kept)
		return;
	take_snapshot(exe_path, kept);
	add_others(kept);
}

static struct sp_module_entry *find_permanent(uintptr_t pc)
{
	unsigned int low = 0, high = n_ranges;

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (pc < ranges[middle].start)
			high = middle;
		else if (pc >= ranges[middle].end)
			low = middle + 1;
		else
			return ranges[middle].entry;
	}
	return NULL;
}

/* Among those that came later.  Many may have been at a place, one after the
 * other, so the search begins with the one that was found last, or added, and
 * ends with the second that is not there: then find_again is cheaper. */
static struct sp_module_entry *find_added(uintptr_t pc)
{
	unsigned int n = atomic_load_explicit(&n_entries, memory_order_acquire);
	unsigned int from = atomic_load_explicit(&found, memory_order_relaxed);
	int gone = 0;

	for (unsigned int k = n_at_start, i = from; k < n; k++, i--) {
		struct sp_module_entry *e;

		if (i < n_at_start || i >= n)
			i = n - 1;
		e = &entries[i];
		if (!atomic_load_explicit(&e->id, memory_order_acquire) ||
		    !contains_pc(e, pc))
			continue;
		if (!is_there(e, pc)) {
			if (++gone == 2)
				break;
			continue;
		}
		if (i != from)
			atomic_store_explicit(&found, i, memory_order_relaxed);
		return e;
	}
	return NULL;
}

/* An object that comes back to its place has another node.  The caller holds
 * `adding`. */
static struct sp_module_entry *find_again(const struct sp_loaded *loaded)
{
	for (unsigned int i = n_at_start; i < n_entries; i++) {
		struct sp_module_entry *e = &entries[i];

		if (!e->id || e->bias != loaded->bias ||
		    e->phdr_there != loaded->phdr ||
		    strcmp(e->name, loaded->name) != 0 || !is_same_memory(e))
			continue;
		note_node(e, loaded->map);
		atomic_store_explicit(&found, i, memory_order_relaxed);
		return e;
	}
	return NULL;
}

/* Threads meet a new object at the same moment, and it is added within
 * microseconds.  A thread that it would take longer goes without, as does one
 * that interrupts itself. */
static bool hold_adding(void)
{
	for (unsigned int spins = 0; spins < ADDING_SPINS_MAX; spins++) {
		if (sp_inside_hold(&adding))
			return true;
		if (atomic_load(&adding) == &sp_thread)
			break;
		sp_arch_pause();
	}
	return false;
}

struct sp_module_entry *sp_modules_find(uintptr_t pc,
					struct sp_module_entry *last)
{
	struct sp_loaded loaded;
	struct sp_module_entry *e;

	if (last && last->permanent && contains_pc(last, pc))
		return last;
	e = find_permanent(pc);
	if (!e)
		e = find_added(pc);
	if (e || !sp_loaded_find(pc, &loaded))
		return e;
	if (!hold_adding()) {
		sp_diag_lose(SP_LOSS_MODULE_TABLE, 1);
		return NULL;
	}
	e = find_again(&loaded);
	if (!e)
		e = add_module(&loaded, loaded.name, sp_loaded_is_for_good());
	sp_inside_give(&adding);
	return e;
}

unsigned int sp_modules_count(void)
{
	return atomic_load_explicit(&count, memory_order_acquire);
}

unsigned int sp_modules_entries(void)
{
	return atomic_load_explicit(&n_entries, memory_order_acquire);
}

struct sp_module_entry *sp_modules_get(unsigned int index)
{
	return &entries[index];
}

void sp_modules_give_left(void)
{
	sp_inside_give_left(&adding);
}

void sp_modules_reset(void)
{
	atomic_store(&adding, NULL);
}

bool sp_modules_is_self(uintptr_t pc)
{
	return self && contains_pc(self, pc);
}
