/* SPDX-License-Identifier: MIT */
#include "agent/sys/linkmap.h"

#include <fcntl.h>
#include <sys/auxv.h>

#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/*
 * An indirect function's resolver comes here before this library has been
 * relocated: no imported function can be called then.  That is why strings are
 * compared by hand, and why there are two ways to the auxiliary vector.
 */
static bool is_relocated(void)
{
	static const volatile void *volatile self = &self;

	return self == &self;
}

static bool same_text(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

struct headers {
	const ElfW(Phdr) * phdr;
	unsigned long n;
};

static struct headers read_auxiliary_vector(void)
{
	static const char path[] = "/proc/self/auxv";
	struct headers h = {NULL, 0};
	ElfW(auxv_t) entry;
	long fd = SP_SYS4(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return h;
	while (SP_SYS3(read, fd, &entry, sizeof(entry)) == sizeof(entry)) {
		if (entry.a_type == AT_PHDR)
			h.phdr = (const void *)entry.a_un.a_val;
		else if (entry.a_type == AT_PHNUM)
			h.n = entry.a_un.a_val;
	}
	SP_SYS1(close, fd);
	return h;
}

static struct headers executable_headers(void)
{
	struct headers h;

	if (!is_relocated())
		return read_auxiliary_vector();
	h.phdr = (const void *)getauxval(AT_PHDR);
	h.n = getauxval(AT_PHNUM);
	return h;
}

uintptr_t sp_linkmap_dynamic(const struct link_map *map, ElfW(Sxword) tag)
{
	const ElfW(Dyn) * d;

	for (d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag != tag)
			continue;
		switch (tag) {
		case DT_PLTRELSZ:
		case DT_RELASZ:
			return d->d_un.d_val;
		default:
			/* Objects with a read-only dynamic section (the vDSO)
			 * keep offsets. */
			if (d->d_un.d_ptr < map->l_addr)
				return map->l_addr + d->d_un.d_ptr;
			return d->d_un.d_ptr;
		}
	}
	return 0;
}

struct symbols {
	const ElfW(Sym) * table;
	const char *strings;
	const ElfW(Half) * versions; /* may be NULL */
	bool is_data;                /* wanted: objects, not functions */
};

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

static uint32_t sysv_hash(const char *name)
{
	uint32_t h = 0, g;

	for (; *name; name++) {
		h = (h << 4) + (unsigned char)*name;
		g = h & 0xf0000000u;
		h = (h ^ (g >> 24)) & ~g;
	}
	return h;
}

/* Is symbol i of that name, in its default version, and of the kind wanted? */
static bool matches_symbol(const struct symbols *s, uint32_t i,
			   const char *name)
{
	const ElfW(Sym) *sym = &s->table[i];
	unsigned int type = ELF64_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || sym->st_value == 0)
		return false;
	if (s->is_data ? type != STT_OBJECT
		       : type != STT_FUNC && type != STT_NOTYPE &&
				 type != STT_GNU_IFUNC)
		return false;
	if (s->versions && (s->versions[i] & 0x8000))
		return false;
	return same_text(s->strings + sym->st_name, name);
}

/* The first in the table's order that comes behind symbol `after`; 0: all do.
 */
static uint32_t find_gnu(const struct symbols *s, const uint32_t *table,
			 const char *name, uint32_t after)
{
	uint32_t n_buckets = table[0], first = table[1], bloom_words = table[2];
	const uint32_t *buckets = table + 4 + bloom_words * 2;
	const uint32_t *chain = buckets + n_buckets;
	uint32_t h = gnu_hash(name);
	bool is_behind = !after;
	uint32_t i;

	if (!n_buckets)
		return 0;
	i = buckets[h % n_buckets];
	if (i < first)
		return 0;
	for (;; i++) {
		uint32_t entry = chain[i - first];

		if (is_behind && (entry | 1) == (h | 1) &&
		    matches_symbol(s, i, name))
			return i;
		is_behind |= i == after;
		if (entry & 1)
			return 0;
	}
}

static uint32_t find_sysv(const struct symbols *s, const uint32_t *table,
			  const char *name, uint32_t after)
{
	uint32_t n_buckets = table[0];
	const uint32_t *buckets = table + 2;
	const uint32_t *chain = buckets + n_buckets;
	bool is_behind = !after;
	uint32_t i;

	if (!n_buckets)
		return 0;
	for (i = buckets[sysv_hash(name) % n_buckets]; i; i = chain[i]) {
		if (is_behind && matches_symbol(s, i, name))
			return i;
		is_behind |= i == after;
	}
	return 0;
}

static struct symbols symbols_of(const struct link_map *map)
{
	return (struct symbols){
		.table = (const void *)sp_linkmap_dynamic(map, DT_SYMTAB),
		.strings = (const void *)sp_linkmap_dynamic(map, DT_STRTAB),
		.versions = (const void *)sp_linkmap_dynamic(map, DT_VERSYM),
	};
}

/* The symbol's number, or 0; `after` as of find_gnu. */
static uint32_t find_symbol(const struct link_map *map, const struct symbols *s,
			    const char *name, uint32_t after)
{
	const uint32_t *gnu =
		(const void *)sp_linkmap_dynamic(map, DT_GNU_HASH);
	const uint32_t *sysv = (const void *)sp_linkmap_dynamic(map, DT_HASH);

	if (!s->table || !s->strings)
		return 0;
	if (gnu)
		return find_gnu(s, gnu, name, after);
	return sysv ? find_sysv(s, sysv, name, after) : 0;
}

const ElfW(Sym) * sp_linkmap_symbol(const struct link_map *map,
				    const char *name, const ElfW(Sym) * after)
{
	struct symbols s = symbols_of(map);
	uint32_t i;

	s.versions = NULL; /* all of them */
	i = find_symbol(map, &s, name, after ? (uint32_t)(after - s.table) : 0);
	return i ? &s.table[i] : NULL;
}

const void *sp_linkmap_variable(const struct link_map *map, const char *name)
{
	struct symbols s = symbols_of(map);
	uint32_t i;

	s.is_data = true;
	i = find_symbol(map, &s, name, 0);
	return i ? (const void *)(map->l_addr + s.table[i].st_value) : NULL;
}

void *sp_linkmap_find(const struct link_map *map, const char *name)
{
	const struct symbols s = symbols_of(map);
	uint32_t i = find_symbol(map, &s, name, 0);
	void *address;

	if (!i)
		return NULL;
	address = (void *)(map->l_addr + s.table[i].st_value);
	if (ELF64_ST_TYPE(s.table[i].st_info) == STT_GNU_IFUNC) {
		/* POSIX allows the conversion, ISO C does not. */
		void *(*resolver)(void) =
			__extension__(void *(*)(void)) address;

		address = resolver();
	}
	return address;
}

/* ---- the list ---- */

/* Where these program headers' object was loaded, less where it was linked to
 * be.  Loaders have no PT_PHDR, but their ELF header on the same page. */
static uintptr_t bias_of(const struct headers *h)
{
	uintptr_t page = (uintptr_t)h->phdr & ~4095ul;
	const ElfW(Ehdr) *header = (const void *)page;

	for (unsigned long i = 0; i < h->n; i++)
		if (h->phdr[i].p_type == PT_PHDR)
			return (uintptr_t)h->phdr - h->phdr[i].p_vaddr;
	if (header->e_ident[EI_MAG0] != ELFMAG0 ||
	    header->e_ident[EI_MAG1] != ELFMAG1 ||
	    page + header->e_phoff != (uintptr_t)h->phdr)
		return 0;
	for (unsigned long i = 0; i < h->n; i++)
		if (h->phdr[i].p_type == PT_LOAD && h->phdr[i].p_offset == 0)
			return page - h->phdr[i].p_vaddr;
	return 0;
}

/* Where the dynamic section says it, which the loader writes into that of the
 * executable.  A loader that was called as a command, with the program as an
 * argument, may be the executable itself: it has a symbol. */
static const struct r_debug *debug_of(const struct link_map *map)
{
	struct symbols s = symbols_of(map);
	const ElfW(Dyn) * d;
	uint32_t i;

	for (d = map->l_ld; d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_DEBUG && d->d_un.d_ptr)
			return (const void *)d->d_un.d_ptr;
	s.is_data = true;
	i = find_symbol(map, &s, "_r_debug", 0);
	if (i)
		return (const void *)(map->l_addr + s.table[i].st_value);
	i = find_symbol(map, &s, "_dl_debug_addr", 0); /* musl */
	if (i)
		return *(const struct r_debug *const *)(map->l_addr +
							s.table[i].st_value);
	return NULL;
}

const struct r_debug *sp_linkmap_debug(void)
{
	static const struct r_debug *debug;
	struct link_map map = {.l_addr = 0};
	struct headers h;

	if (debug)
		return debug;
	h = executable_headers();
	if (!h.phdr)
		return NULL;
	map.l_addr = bias_of(&h);
	for (unsigned long i = 0; i < h.n; i++)
		if (h.phdr[i].p_type == PT_DYNAMIC)
			map.l_ld = (void *)(map.l_addr + h.phdr[i].p_vaddr);
	if (map.l_ld)
		debug = debug_of(&map);
	return debug;
}

const struct link_map *sp_linkmap_first(void)
{
	const struct r_debug *debug = sp_linkmap_debug();

	return debug ? debug->r_map : NULL;
}

const ElfW(Phdr) * sp_linkmap_executable(unsigned long *ret_n)
{
	struct headers h = executable_headers();

	*ret_n = h.n;
	return h.phdr;
}

const struct link_map *sp_linkmap_self(void)
{
	const struct link_map *map = sp_linkmap_first();

	while (map && map->l_ld != _DYNAMIC)
		map = map->l_next;
	return map;
}

/* ---- which object needs which ---- */

/* The place of a name: its own, or an empty one.  There always is one. */
static const char **place_of(struct sp_linkmap_kept *kept, const char *name)
{
	for (uint32_t i = gnu_hash(name);; i++) {
		const char **at = &kept->needed[i % SP_LINKMAP_NEEDED];

		if (!*at || same_text(*at, name))
			return at;
	}
}

/* The two names of an object: what it calls itself, or NULL, and its file. */
static const char *name_of(const struct link_map *map)
{
	const char *strings = (const char *)sp_linkmap_dynamic(map, DT_STRTAB);

	for (const ElfW(Dyn) *d = map->l_ld; d && strings && d->d_tag; d++)
		if (d->d_tag == DT_SONAME)
			return strings + d->d_un.d_val;
	return NULL;
}

static const char *file_of(const struct link_map *map)
{
	const char *end = map->l_name;

	for (const char *p = map->l_name; *p; p++)
		if (*p == '/')
			end = p + 1;
	return end;
}

static bool is_called(const struct link_map *map, const char *name)
{
	const char *own = name_of(map);

	return (own && same_text(own, name)) || same_text(file_of(map), name);
}

static bool is_needed(struct sp_linkmap_kept *kept, const struct link_map *map)
{
	const char *own = name_of(map);

	return (own && *place_of(kept, own)) || *place_of(kept, file_of(map));
}

static void note_needed(struct sp_linkmap_kept *kept,
			const struct link_map *map)
{
	const char *strings = (const char *)sp_linkmap_dynamic(map, DT_STRTAB);

	for (const ElfW(Dyn) *d = map->l_ld; d && strings && d->d_tag; d++) {
		const char **at;

		if (d->d_tag != DT_NEEDED)
			continue;
		at = place_of(kept, strings + d->d_un.d_val);
		/* A quarter stays empty. */
		if (*at || kept->n >= SP_LINKMAP_NEEDED / 4 * 3)
			continue;
		*at = strings + d->d_un.d_val;
		kept->n++;
	}
}

/* An object that needs one that was loaded at the start stands before it. */
bool sp_linkmap_is_kept(struct sp_linkmap_kept *kept,
			const struct link_map *map)
{
	if (map != sp_linkmap_first() && map->l_ld != _DYNAMIC &&
	    !same_text(map->l_name, "linux-vdso.so.1") && !is_needed(kept, map))
		return false;
	note_needed(kept, map);
	return true;
}

static void *find_from(const struct link_map *map, const char *name,
		       const struct link_map **ret_provider)
{
	for (; map; map = map->l_next) {
		void *address = sp_linkmap_find(map, name);

		if (!address)
			continue;
		if (ret_provider)
			*ret_provider = map;
		return address;
	}
	return NULL;
}

void *sp_linkmap_next(const char *name, const struct link_map **ret_provider)
{
	const struct link_map *self = sp_linkmap_self();

	return self ? find_from(self->l_next, name, ret_provider) : NULL;
}

void *sp_linkmap_global(const char *name, const struct link_map **ret_provider)
{
	return find_from(sp_linkmap_first(), name, ret_provider);
}

/* Before glibc 2.34 it has parts.  musl has no name that is the same
 * everywhere; one of the functions below starts every program. */
static bool is_of_libc(const struct link_map *map)
{
	return is_called(map, "libc.so.6") || is_called(map, "libdl.so.2") ||
	       is_called(map, "libpthread.so.0") ||
	       (map != sp_linkmap_first() &&
		sp_linkmap_find(map, "__libc_start_main"));
}

void *sp_linkmap_libc(const char *name)
{
	const struct link_map *map = sp_linkmap_first();
	void *address = NULL;

	for (; map && !address; map = map->l_next)
		if (is_of_libc(map))
			address = sp_linkmap_find(map, name);
	return address;
}
