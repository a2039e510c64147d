/* SPDX-License-Identifier: MIT */
/*
 * I1  entries[0..count) are complete and their identity never changes; `count`
 *     is stored with release after an entry is filled (pairs with every
 *     acquire of it below).
 * I2  Entries are added under `adding`, a try-lock; a thread that cannot have
 *     it does without the entry this time.
 * I3  sorted[0..n_permanent) are the permanent entries by address; written once
 *     before there are threads.
 */
#include "agent/modules.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/arena.h"
#include "agent/diag.h"
#include "agent/linkmap.h"

#include "agent/poison.h"

#define MODULES_MAX 2048

static struct sp_module_entry entries[MODULES_MAX];
static _Atomic unsigned int count;
static _Atomic unsigned int adding;
static struct sp_module_entry *sorted[MODULES_MAX];
static unsigned int n_permanent;
static struct sp_module_entry *self;

/* By lookup, since even a weak reference would demand glibc 2.35 of every
 * program; without it, objects loaded later are not known. */
static int (*find_object)(void *, struct dl_find_object *);

static const char *copy_name(const char *name)
{
	size_t n = strlen(name) + 1;
	char *copy = n <= 4096 ? sp_arena_get(n) : NULL;

	return copy ? memcpy(copy, name, n) : "";
}

/* Find the GNU build id among the notes of a segment; `end` bounds it. */
static void find_build_id(struct sp_module_entry *e, const uint8_t *at,
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
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    memcmp(at, "GNU", 4) == 0 &&
		    note->n_descsz <= SP_FORMAT_BUILD_ID_MAX) {
			e->note = at + name;
			e->build_id_bytes = (uint8_t)note->n_descsz;
			memcpy(e->build_id, e->note, note->n_descsz);
			return;
		}
		at += name + desc;
	}
}

/* Program headers, extent and build id from the mapped ELF header. */
static bool read_headers(struct sp_module_entry *e, const ElfW(Phdr) * phdr,
			 unsigned int n)
{
	uintptr_t low = UINTPTR_MAX, high = 0;
	uintptr_t code_low = UINTPTR_MAX, code_high = 0;
	ElfW(Phdr) * copy;

	for (unsigned int i = 0; i < n; i++) {
		uintptr_t at = e->bias + phdr[i].p_vaddr;

		if (phdr[i].p_type != PT_LOAD)
			continue;
		if (at < low)
			low = at;
		if (at + phdr[i].p_memsz > high)
			high = at + phdr[i].p_memsz;
		if (!(phdr[i].p_flags & PF_X))
			continue;
		if (at < code_low)
			code_low = at;
		if (at + phdr[i].p_memsz > code_high)
			code_high = at + phdr[i].p_memsz;
	}
	if (low >= high || n > 64)
		return false;
	e->start = low & ~(uintptr_t)4095;
	e->end = (high + 4095) & ~(uintptr_t)4095;
	e->code_start = code_low;
	e->code_end = code_high;
	for (unsigned int i = 0; i < n && !e->build_id_bytes; i++) {
		const uint8_t *at =
			(const uint8_t *)(e->bias + phdr[i].p_vaddr);

		if (phdr[i].p_type == PT_NOTE)
			find_build_id(e, at, at + phdr[i].p_memsz);
	}
	copy = sp_arena_get(n * sizeof(*copy));
	if (!copy)
		return false;
	memcpy(copy, phdr, n * sizeof(*copy));
	e->phdr = copy;
	e->n_phdr = (uint16_t)n;
	return true;
}

/* The ELF header at the beginning of a mapping, or NULL. */
static const ElfW(Ehdr) * header_at(uintptr_t start)
{
	const ElfW(Ehdr) *header = (const void *)start;

	if (!start || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phoff > 4096)
		return NULL;
	return header;
}

/* Fill the next entry; the caller holds `adding`.  NULL: not possible. */
static struct sp_module_entry *add(const struct link_map *map, uintptr_t start,
				   const char *name, bool permanent)
{
	unsigned int n = atomic_load_explicit(&count, memory_order_relaxed);
	const ElfW(Ehdr) *header = header_at(start);
	struct sp_module_entry *e = &entries[n];

	if (n == MODULES_MAX || !header) {
		sp_diag_lose(SP_LOSS_MODULE_TABLE, 1);
		return NULL;
	}
	memset(e, 0, sizeof(*e));
	e->id = n + 1;
	e->bias = map->l_addr;
	e->map = map;
	e->permanent = permanent;
	if (!read_headers(e, (const void *)(start + header->e_phoff),
			  header->e_phnum)) {
		sp_diag_lose(SP_LOSS_MODULE_TABLE, 1);
		return NULL;
	}
	e->name = copy_name(name);
	atomic_store_explicit(&count, n + 1, memory_order_release);
	return e;
}

/* Where an object of the loader's list is mapped: the page that its dynamic
 * section belongs to is known, its beginning is asked for. */
static uintptr_t start_of(const struct link_map *map)
{
	struct dl_find_object found;

	if (find_object && find_object(map->l_ld, &found) == 0)
		return (uintptr_t)found.dlfo_map_start;
	return map->l_addr;
}

static void sort_permanent(void)
{
	for (unsigned int i = 0; i < n_permanent; i++) {
		struct sp_module_entry *e = &entries[i];
		unsigned int at = i;

		for (; at > 0 && sorted[at - 1]->start > e->start; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = e;
	}
}

void sp_modules_init(const char *exe_path)
{
	const struct link_map *map = sp_linkmap_first();
	const struct link_map *self_map = sp_linkmap_self();
	void *address = sp_linkmap_global("_dl_find_object", NULL);
	bool is_main = true;

	memcpy(&find_object, &address, sizeof(address));
	for (; map; map = map->l_next, is_main = false) {
		const char *name = map->l_name ? map->l_name : "";
		struct sp_module_entry *e;

		if (is_main)
			name = exe_path;
		else if (strncmp(name, "linux-vdso", 10) == 0)
			name = "[vdso]";
		e = add(map, start_of(map), name, true);
		if (e && map == self_map)
			self = e;
	}
	n_permanent = atomic_load_explicit(&count, memory_order_relaxed);
	sort_permanent();
}

static struct sp_module_entry *find_permanent(uintptr_t pc)
{
	unsigned int low = 0, high = n_permanent;

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (pc < sorted[middle]->start)
			high = middle;
		else if (pc >= sorted[middle]->end)
			low = middle + 1;
		else
			return sorted[middle];
	}
	return NULL;
}

/* Does the entry describe what the loader has there now?  A reload at the same
 * place shows in the name or in the build id. */
static bool same_object(const struct sp_module_entry *e,
			const struct dl_find_object *found)
{
	return e->map == found->dlfo_link_map &&
	       e->start == (uintptr_t)found->dlfo_map_start &&
	       e->bias == e->map->l_addr &&
	       strcmp(e->name, e->map->l_name) == 0 &&
	       (!e->note ||
		memcmp(e->note, e->build_id, e->build_id_bytes) == 0);
}

static struct sp_module_entry *find_added(const struct dl_find_object *found)
{
	unsigned int n = atomic_load_explicit(&count, memory_order_acquire);

	while (n-- > n_permanent)
		if (same_object(&entries[n], found))
			return &entries[n];
	return NULL;
}

struct sp_module_entry *sp_modules_find(uintptr_t pc,
					struct sp_module_entry *last)
{
	struct dl_find_object found;
	struct sp_module_entry *e;

	if (last && last->permanent && pc >= last->start && pc < last->end)
		return last;
	e = find_permanent(pc);
	if (e)
		return e;
	if (!find_object || find_object((void *)pc, &found) != 0)
		return NULL;
	e = find_added(&found);
	if (e)
		return e;
	if (atomic_exchange_explicit(&adding, 1, memory_order_acquire)) {
		sp_diag_lose(SP_LOSS_MODULE_TABLE, 1);
		return NULL;
	}
	e = find_added(&found);
	if (!e)
		e = add(found.dlfo_link_map, (uintptr_t)found.dlfo_map_start,
			found.dlfo_link_map->l_name, false);
	atomic_store_explicit(&adding, 0, memory_order_release);
	return e;
}

bool sp_modules_alive(const struct sp_module_entry *entry)
{
	struct dl_find_object found;

	if (entry->permanent)
		return true;
	return find_object((void *)entry->start, &found) == 0 &&
	       entry->map == found.dlfo_link_map &&
	       entry->start == (uintptr_t)found.dlfo_map_start;
}

unsigned int sp_modules_count(void)
{
	return atomic_load_explicit(&count, memory_order_acquire);
}

struct sp_module_entry *sp_modules_get(unsigned int index)
{
	return &entries[index];
}

void sp_modules_reset(void)
{
	atomic_store_explicit(&adding, 0, memory_order_relaxed);
}

bool sp_modules_is_self(uintptr_t pc)
{
	return self && pc >= self->start && pc < self->end;
}
