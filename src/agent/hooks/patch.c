/* SPDX-License-Identifier: MIT */
/*
 * I1  A word is changed only from the address of one function to that of its
 *     pair: so a word that means something else, or is not bound yet, stays.
 * I2  Memory is made writable for the stores, and then what it was before.
 * I3  While others run, whoever's allocations come in has its frees come in, in
 *     all objects: frees are the first to be changed, and the last to be
 *     changed back.
 */
#include "agent/hooks/patch.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "agent/hooks/jemalloc.h"
#include "agent/sys/arch.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/next.h"
#include "agent/sys/sys.h"

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/* ---- pairs: a function below, and ours for it ---- */

struct pair {
	const char *symbol;
	uintptr_t below, ours; /* both 0: there is none */
	unsigned int step;     /* in which it is changed */
};

/* What frees; what may free, and allocates; all else. */
enum { FREES, MOVES, REST, STEPS };

#define SP_NEXT(member, symbol, ret, args)                                     \
	extern const char ours_##member[] __asm__(symbol);
#define SP_NEXT_OPTIONAL(member, symbol, ret, args)
#include "agent/sys/next.def"
#undef SP_NEXT

enum {
#define SP_NEXT(member, symbol, ret, args) PAIR_##member,
#include "agent/sys/next.def"
#undef SP_NEXT
	PAIRS
};

/* The first four are malloc, calloc, realloc and free. */
#define LOADERS_PAIRS 4

static struct pair pairs[PAIRS];

static unsigned int step_of(const char *symbol)
{
	/* "free" is also the beginning of its sized forms. */
	static const char *const frees[] = {"free", "cfree",   "_Zdl",
					    "_Zda", "dallocx", "sdallocx"};
	static const char *const moves[] = {"realloc", "rallocx", "xallocx"};

	for (size_t i = 0; i < sizeof(frees) / sizeof(*frees); i++)
		if (strncmp(symbol, frees[i], strlen(frees[i])) == 0)
			return FREES;
	for (size_t i = 0; i < sizeof(moves) / sizeof(*moves); i++)
		if (strcmp(symbol, moves[i]) == 0)
			return MOVES;
	return REST;
}

static void fill_pair(struct pair *p, const char *symbol, const void *member,
		      bool is_own, const void *ours)
{
	/* Operators that call malloc are counted there. */
	const bool is_wanted = is_own || strncmp(symbol, "_Z", 2) != 0;

	p->symbol = symbol;
	p->step = step_of(symbol);
	memcpy(&p->below, member, sizeof(p->below));
	p->ours = (uintptr_t)ours;
	if (!p->below || !p->ours || !is_wanted)
		p->below = p->ours = 0;
}

static void fill_pairs(void)
{
#define SP_NEXT(member, symbol, ret, args)                                     \
	fill_pair(&pairs[PAIR_##member], symbol, &sp_next.member,              \
		  sp_next.member##_is_own, ours_##member);
#define SP_NEXT_OPTIONAL(member, symbol, ret, args)                            \
	fill_pair(&pairs[PAIR_##member], symbol, &sp_next.member,              \
		  sp_next.member##_is_own, sp_jemalloc_hook(symbol));
#include "agent/sys/next.def"
#undef SP_NEXT
}

/* ---- words ---- */

/* One way through all objects. */
struct pass {
	bool is_back; /* from ours to what is below */
	unsigned int step;
	size_t places;
	int error;
	/* The page that was made writable, and how it was before. */
	uintptr_t page;
	int protection;
};

struct object {
	struct link_map map; /* l_addr and l_ld alone */
	const ElfW(Phdr) * phdr;
	size_t n_phdr;
};

static uintptr_t page_bytes(void)
{
	return getauxval(AT_PAGESZ);
}

static void close_page(struct pass *pass)
{
	if (pass->page)
		SP_SYS3(mprotect, pass->page, page_bytes(), pass->protection);
	pass->page = 0;
}

static int segment_protection(const ElfW(Phdr) * p)
{
	return (p->p_flags & PF_R ? PROT_READ : 0) |
	       (p->p_flags & PF_W ? PROT_WRITE : 0) |
	       (p->p_flags & PF_X ? PROT_EXEC : 0);
}

/* How the loader has left the page of the word, or -1: it is not the object's.
 * What is read-only after relocation ends with a whole page. */
static int protection_of(const struct object *o, uintptr_t at)
{
	const uintptr_t mask = ~(page_bytes() - 1);
	int protection = -1;

	for (size_t i = 0; i < o->n_phdr; i++) {
		const ElfW(Phdr) *p = &o->phdr[i];
		const uintptr_t start = o->map.l_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && at - start < p->p_memsz)
			protection = segment_protection(p);
	}
	for (size_t i = 0; i < o->n_phdr; i++) {
		const ElfW(Phdr) *p = &o->phdr[i];
		const uintptr_t start = o->map.l_addr + p->p_vaddr;

		if (p->p_type == PT_GNU_RELRO && protection >= 0 &&
		    at >= (start & mask) && at < ((start + p->p_memsz) & mask))
			protection &= ~PROT_WRITE;
	}
	return protection;
}

static bool open_page(struct pass *pass, uintptr_t at, int protection)
{
	const uintptr_t page = at & ~(page_bytes() - 1);
	long err;

	if (protection & PROT_WRITE || pass->page == page)
		return true;
	close_page(pass);
	err = SP_SYS3(mprotect, page, page_bytes(), protection | PROT_WRITE);
	if (err) {
		pass->error = (int)err;
		return false;
	}
	pass->page = page;
	pass->protection = protection;
	return true;
}

static void store_word(struct pass *pass, const struct object *o, uintptr_t at,
		       uintptr_t value)
{
	const int protection = protection_of(o, at);

	/* A word in code is none of ours to change. */
	if (protection < 0 ||
	    (protection & PROT_EXEC && !(protection & PROT_READ)))
		return;
	if (!open_page(pass, at, protection))
		return;
	__atomic_store_n((uintptr_t *)at, value, __ATOMIC_RELEASE);
	pass->places++;
}

/* The pair that the word's value is of.  Several functions may be one below,
 * under more than one name: then it is the one that the word was bound to. */
static const struct pair *find_pair(const struct pass *pass, uintptr_t value,
				    const char *symbol)
{
	const struct pair *found = NULL;

	for (const struct pair *p = pairs; p < pairs + PAIRS; p++) {
		if (!p->below || (pass->is_back ? p->ours : p->below) != value)
			continue;
		if (strcmp(p->symbol, symbol) == 0)
			return p;
		if (!found)
			found = p;
	}
	return found;
}

static uintptr_t target_of(const struct pass *pass, const struct pair *p)
{
	return pass->is_back ? p->below : p->ours;
}

/* ---- one object ---- */

static void change_symbols(struct pass *pass, const struct object *o)
{
	const uintptr_t bias = o->map.l_addr;

	for (const struct pair *p = pairs; p < pairs + PAIRS; p++) {
		const uintptr_t from = pass->is_back ? p->ours : p->below;
		const ElfW(Sym) *s = NULL;

		if (!p->below || p->step != pass->step)
			continue;
		while ((s = sp_linkmap_symbol(&o->map, p->symbol, s)) != NULL)
			if (bias + s->st_value == from)
				store_word(pass, o, (uintptr_t)&s->st_value,
					   target_of(pass, p) - bias);
	}
}

static void change_relocated(struct pass *pass, const struct object *o,
			     ElfW(Sxword) table, ElfW(Sxword) bytes)
{
	const ElfW(Rela) *r = (const void *)sp_linkmap_dynamic(&o->map, table);
	const size_t n = sp_linkmap_dynamic(&o->map, bytes) / sizeof(*r);
	const ElfW(Sym) *symbols =
		(const void *)sp_linkmap_dynamic(&o->map, DT_SYMTAB);
	const char *names =
		(const char *)sp_linkmap_dynamic(&o->map, DT_STRTAB);

	if (!r || !symbols || !names)
		return;
	for (size_t i = 0; i < n; i++, r++) {
		uintptr_t *at = (uintptr_t *)(o->map.l_addr + r->r_offset);
		const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(r->r_info)];
		const struct pair *p;

		if (!SP_ARCH_IS_POINTER(ELF64_R_TYPE(r->r_info)) ||
		    (uintptr_t)at % sizeof(*at))
			continue;
		p = find_pair(pass, *at, names + symbol->st_name);
		if (p && p->step == pass->step)
			store_word(pass, o, (uintptr_t)at, target_of(pass, p));
	}
}

/* The loader looks its malloc up by itself, and keeps it among what is
 * read-only after relocation. */
static void change_loader(struct pass *pass, const struct object *o)
{
	if (!o->map.l_addr || o->map.l_addr != getauxval(AT_BASE))
		return;
	for (size_t i = 0; i < o->n_phdr; i++) {
		const ElfW(Phdr) *p = &o->phdr[i];
		const uintptr_t start = o->map.l_addr + p->p_vaddr;

		if (p->p_type != PT_GNU_RELRO)
			continue;
		for (uintptr_t at = (start + 7) & ~7ul;
		     at + 8 <= start + p->p_memsz; at += 8) {
			const struct pair *pair =
				find_pair(pass, *(uintptr_t *)at, "");

			if (pair && pair - pairs < LOADERS_PAIRS &&
			    pair->step == pass->step)
				store_word(pass, o, at, target_of(pass, pair));
		}
	}
}

static void change_pointers(struct pass *pass, const struct object *o)
{
	change_relocated(pass, o, DT_RELA, DT_RELASZ);
	change_relocated(pass, o, DT_JMPREL, DT_PLTRELSZ);
	change_loader(pass, o);
}

/* ---- all objects ---- */

struct visit {
	struct pass *pass;
	void (*change)(struct pass *pass, const struct object *o);
};

static int visit_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct visit *visit = arg;
	struct object o = {.phdr = info->dlpi_phdr, .n_phdr = info->dlpi_phnum};

	(void)size;
	o.map.l_addr = info->dlpi_addr;
	for (size_t i = 0; i < o.n_phdr; i++)
		if (o.phdr[i].p_type == PT_DYNAMIC)
			o.map.l_ld =
				(void *)(info->dlpi_addr + o.phdr[i].p_vaddr);
	if (!o.map.l_ld || o.map.l_ld == _DYNAMIC)
		return 0;
	visit->change(visit->pass, &o);
	close_page(visit->pass);
	return 0;
}

typedef int iterate_objects(int (*)(struct dl_phdr_info *, size_t, void *),
			    void *);

/* Symbols first: what is bound while the pointers are changed is right. */
static int change_all(bool is_back, size_t *ret_places)
{
	struct pass pass = {.is_back = is_back};
	struct visit symbols = {&pass, change_symbols};
	struct visit pointers = {&pass, change_pointers};
	void *address = sp_linkmap_global("dl_iterate_phdr", NULL);
	iterate_objects *iterate;

	if (!address)
		return -ENOSYS;
	memcpy(&iterate, &address, sizeof(address));
	for (unsigned int i = 0; i < STEPS; i++) {
		pass.step = is_back ? STEPS - 1 - i : i;
		iterate(visit_object, &symbols);
		iterate(visit_object, &pointers);
	}
	*ret_places = pass.places;
	return pass.error;
}

int sp_patch_write(size_t *ret_places)
{
	size_t undone;
	int r;

	fill_pairs();
	r = change_all(false, ret_places);
	if (r < 0)
		change_all(true, &undone);
	return r;
}

int sp_patch_restore(size_t *ret_places)
{
	return change_all(true, ret_places);
}
