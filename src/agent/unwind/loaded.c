/* SPDX-License-Identifier: MIT */
/*
 * The list is read as it lies there.  A thread that loads appends to it; one
 * that unloads announces that (RT_DELETE) before it takes a node out, frees it
 * and unmaps the object.  So the list is left alone after the announcement, all
 * that is read is asked for first, the number of nodes is limited, and an
 * answer counts only if there is an ELF header whose segments have the address
 * in question.  The object that a return address of the present stack is in
 * cannot go meanwhile (docs/internals.md, "Modules").
 *
 * Where code is generated at run time, addresses outside all objects are looked
 * up again and again.  So blocks of 64 KiB without an object are remembered,
 * together with the end of the list at that time: new objects are appended.
 */
#include "agent/unwind/loaded.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/sys/arch.h"
#include "agent/sys/diag.h"
#include "agent/sys/linkmap.h"
#include "agent/unwind/stack_bounds.h"
#include "base/hash.h"

#include "agent/sys/poison.h"

#define NODES_MAX      65536u
#define PHDRS_MAX      1024u
#define NAME_BYTES_MAX 4096u
#define BLOCK_SHIFT    16
#define BLOCKS         256u

/* How _dl_find_object answers; headers before glibc 2.35 do not say it. */
struct found {
	unsigned long long flags;
	void *map_start;
	void *map_end;
	struct link_map *link_map;
	void *eh_frame;
	unsigned long long reserved[7];
};

/* By lookup, since even a weak reference would demand glibc 2.35 of every
 * program. */
static int (*find_object)(void *, struct found *);
static bool is_for_good;

/* The last node that was seen, and what was nobody's then: the block's number,
 * hashed with the end of the list. */
static _Atomic(const struct link_map *) last_node;
static _Atomic uint64_t nobodys[BLOCKS];

void sp_loaded_init(void)
{
	void *address = sp_linkmap_global("_dl_find_object", NULL);

	memcpy(&find_object, &address, sizeof(address));
	is_for_good = !sp_linkmap_global("gnu_get_libc_version", NULL);
}

bool sp_loaded_is_for_good(void)
{
	return is_for_good;
}

static const struct link_map *ask_loader(uintptr_t pc)
{
	struct found found;

	return find_object((void *)pc, &found) == 0 ? found.link_map : NULL;
}

/* May all of it be read? */
static bool is_readable(const void *at, size_t bytes)
{
	uintptr_t from = (uintptr_t)at, to = from + bytes;

	if (to < from)
		return false;
	for (uintptr_t page = from & ~(SP_ARCH_PAGE_MIN - 1); page < to;
	     page += SP_ARCH_PAGE_MIN)
		if (!sp_stack_bounds_probe(page))
			return false;
	return true;
}

static bool is_text(const char *s)
{
	for (size_t n = 0; n < NAME_BYTES_MAX; n++) {
		if ((n == 0 || (uintptr_t)&s[n] % SP_ARCH_PAGE_MIN == 0) &&
		    !sp_stack_bounds_probe((uintptr_t)&s[n]))
			return false;
		if (!s[n])
			return true;
	}
	return false;
}

bool sp_loaded_covers(const struct sp_loaded *loaded, uintptr_t from,
		      size_t bytes)
{
	for (unsigned int i = 0; i < loaded->n_phdr; i++) {
		const ElfW(Phdr) *p = &loaded->phdr[i];
		/* Segments are mapped by pages. */
		uintptr_t at =
			(loaded->bias + p->p_vaddr) & ~(SP_ARCH_PAGE_MIN - 1);
		uintptr_t end = (loaded->bias + p->p_vaddr + p->p_memsz +
				 SP_ARCH_PAGE_MIN - 1) &
				~(SP_ARCH_PAGE_MIN - 1);

		if (p->p_type == PT_LOAD && from >= at && from < end &&
		    bytes <= end - from)
			return true;
	}
	return false;
}

/* Is the table of program headers, at `offset` in the file, mapped to where it
 * was found?  Then it is this object's, with this bias. */
static bool is_own_table(const struct sp_loaded *loaded, uintptr_t offset)
{
	const uintptr_t bytes = loaded->n_phdr * sizeof(loaded->phdr[0]);

	for (unsigned int i = 0; i < loaded->n_phdr; i++) {
		const ElfW(Phdr) *p = &loaded->phdr[i];

		if (p->p_type == PT_LOAD && p->p_offset <= offset &&
		    offset + bytes <= p->p_offset + p->p_filesz &&
		    loaded->bias + p->p_vaddr + (offset - p->p_offset) ==
			    (uintptr_t)loaded->phdr)
			return true;
	}
	return false;
}

/* The program headers by the ELF header at `start`, if there is one. */
static bool read_header(uintptr_t start, struct sp_loaded *loaded)
{
	const ElfW(Ehdr) *header = (const void *)start;

	if (start == 0 || start % SP_ARCH_PAGE_MIN ||
	    !is_readable(header, sizeof(*header)) ||
	    memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_phentsize != sizeof(ElfW(Phdr)) ||
	    header->e_phoff % sizeof(header->e_phoff) ||
	    header->e_phoff > UINT32_MAX || header->e_phnum > PHDRS_MAX)
		return false;
	loaded->phdr = (const void *)(start + header->e_phoff);
	loaded->n_phdr = header->e_phnum;
	return is_readable(loaded->phdr,
			   loaded->n_phdr * sizeof(loaded->phdr[0])) &&
	       is_own_table(loaded, header->e_phoff);
}

static bool read_executable(const struct link_map *map, struct sp_loaded *ret)
{
	unsigned long n;

	ret->phdr = sp_linkmap_executable(&n);
	if (!ret->phdr || n > PHDRS_MAX)
		return false;
	ret->n_phdr = (unsigned int)n;
	for (unsigned int i = 0; i < n; i++)
		if (ret->phdr[i].p_type == PT_DYNAMIC &&
		    ret->bias + ret->phdr[i].p_vaddr == (uintptr_t)map->l_ld)
			return true;
	return false;
}

bool sp_loaded_describe(const struct link_map *map, struct sp_loaded *ret)
{
	struct found found;

	*ret = (struct sp_loaded){
		.map = map, .bias = map->l_addr, .name = map->l_name};
	if (!ret->name || (!find_object && !is_text(ret->name)))
		ret->name = "";
	if (map == sp_linkmap_first() && read_executable(map, ret))
		return true;
	/* The ELF header is at the beginning, which is nearly always where
	 * address 0 of the object is.  With holes between its segments
	 * _dl_find_object may know the one of the dynamic section only. */
	if (read_header(ret->bias, ret))
		return true;
	return find_object && find_object(map->l_ld, &found) == 0 &&
	       read_header((uintptr_t)found.map_start, ret);
}

const struct link_map *sp_loaded_still(const struct sp_loaded *was,
				       uintptr_t pc)
{
	const struct link_map *map = was->map;

	if (find_object)
		map = ask_loader(pc);
	else if (!is_readable(map, sizeof(*map)) || !is_text(map->l_name) ||
		 !is_readable(was->phdr, was->n_phdr * sizeof(was->phdr[0])))
		return NULL;
	return map && map->l_addr == was->bias &&
			       strcmp(map->l_name, was->name) == 0
		       ? map
		       : NULL;
}

/* ---- the list ---- */

/* What the end of the list looks like; never 0. */
static uint64_t hash_end(const struct link_map *last)
{
	uint64_t h = sp_hash_word(1, (uintptr_t)last);

	h = sp_hash_word(h, (uintptr_t)last->l_prev);
	h = sp_hash_word(h, (uintptr_t)last->l_ld);
	return sp_hash_word(h, last->l_addr) | 1;
}

static uint64_t hash_block(uintptr_t block, uint64_t end)
{
	return sp_hash_word(end, block) | 1;
}

static bool is_nobodys(uintptr_t pc)
{
	const uintptr_t block = pc >> BLOCK_SHIFT;
	const uint64_t known = atomic_load_explicit(&nobodys[block % BLOCKS],
						    memory_order_relaxed);
	const struct link_map *last =
		atomic_load_explicit(&last_node, memory_order_relaxed);

	return known && last && is_readable(last, sizeof(*last)) &&
	       !last->l_next && known == hash_block(block, hash_end(last));
}

/* What a walk along the list has found around an address. */
struct neighbours {
	const struct link_map *below; /* the greatest one up to it, or NULL */
	uintptr_t above;              /* where the next one begins */
	uint64_t end;                 /* hash_end() of the list */
};

/* No object has anything in [from, around->above). */
static void note_nobodys(uintptr_t pc, uintptr_t from,
			 const struct neighbours *around)
{
	const uintptr_t block = pc >> BLOCK_SHIFT;

	if (block << BLOCK_SHIFT >= from &&
	    (block + 1) << BLOCK_SHIFT <= around->above)
		atomic_store_explicit(&nobodys[block % BLOCKS],
				      hash_block(block, around->end),
				      memory_order_relaxed);
}

static bool is_unloading(void)
{
	const struct r_debug *debug = sp_linkmap_debug();

	return !debug ||
	       __atomic_load_n(&debug->r_state, __ATOMIC_ACQUIRE) == RT_DELETE;
}

/* Behind the executable, which is known.  False: the list cannot be read now.
 */
static bool find_neighbours(uintptr_t pc, struct neighbours *ret)
{
	const struct link_map *map = sp_linkmap_first(), *last = map;
	uintptr_t best = 0;

	*ret = (struct neighbours){.above = UINTPTR_MAX};
	if (!map || is_unloading())
		return false;
	map = map->l_next;
	for (unsigned int n = 0; map; n++, last = map, map = map->l_next) {
		uintptr_t at;

		if (n == NODES_MAX || !is_readable(map, sizeof(*map)))
			return false;
		at = map->l_addr;
		if (at <= pc && at >= best) {
			best = at;
			ret->below = map;
		} else if (at > pc && at < ret->above) {
			ret->above = at;
		}
	}
	ret->end = hash_end(last);
	atomic_store_explicit(&last_node, last, memory_order_relaxed);
	return !is_unloading();
}

static uintptr_t end_of(const struct sp_loaded *loaded)
{
	uintptr_t end = 0;

	for (unsigned int i = 0; i < loaded->n_phdr; i++) {
		const ElfW(Phdr) *p = &loaded->phdr[i];
		uintptr_t at = loaded->bias + p->p_vaddr + p->p_memsz;

		if (p->p_type == PT_LOAD && at > end)
			end = at;
	}
	return (end + SP_ARCH_PAGE_MIN - 1) & ~(SP_ARCH_PAGE_MIN - 1);
}

enum answer { FOUND, NOBODYS, NOT_KNOWN };

static enum answer find_in_list(uintptr_t pc, struct sp_loaded *ret)
{
	struct neighbours around;
	uintptr_t end = 0;

	if (is_nobodys(pc))
		return NOBODYS;
	if (!find_neighbours(pc, &around))
		return NOT_KNOWN;
	if (around.below) {
		if (!sp_loaded_describe(around.below, ret))
			return NOT_KNOWN;
		if (sp_loaded_covers(ret, pc, 1))
			return is_unloading() ? NOT_KNOWN : FOUND;
		end = end_of(ret);
	}
	note_nobodys(pc, end, &around);
	return NOBODYS;
}

static enum answer find_by_asking(uintptr_t pc, struct sp_loaded *ret)
{
	const struct link_map *map = ask_loader(pc);

	if (!map)
		return NOBODYS;
	if (!sp_loaded_describe(map, ret))
		return NOT_KNOWN;
	return sp_loaded_covers(ret, pc, 1) ? FOUND : NOBODYS;
}

bool sp_loaded_find(uintptr_t pc, struct sp_loaded *ret)
{
	enum answer answer =
		find_object ? find_by_asking(pc, ret) : find_in_list(pc, ret);

	if (answer == NOT_KNOWN)
		sp_diag_lose(SP_LOSS_MODULE_TABLE, 1);
	return answer == FOUND;
}
