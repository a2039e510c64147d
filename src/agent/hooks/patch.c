/* SPDX-License-Identifier: MIT */
/*
 * I1  A word is changed only from the address of one function to the address
 *     of its pair.  So a word that has another meaning, or is not bound yet, is
 *     not changed.
 * I2  Read-only memory is made writable for the stores, and gets its protection
 *     back afterwards.  One mprotect call covers a part of an object, from its
 *     first to its last such word, because each call waits for all threads that
 *     change the address space.  Where it could be executed as well, the words
 *     are left to the command.
 * I3  Other threads run meanwhile.  If an allocation is recorded, its free must
 *     be recorded, too.  So in all objects the pointers to free functions are
 *     changed first, and changed back last.
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

#include "agent/divert/divert.h"
#include "agent/hooks/jemalloc.h"
#include "agent/sys/arch.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/next.h"
#include "agent/sys/sys.h"

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/* ---- pairs: a function of the allocator, and its replacement ---- */

struct pair {
	const char *symbol;
	uintptr_t below, ours; /* both 0: not replaced */
	unsigned int step;     /* the step in which pointers are changed */
};

/* Functions that free; that both free and allocate; all others. */
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
	/* An operator new that calls malloc is counted in malloc. */
	const bool is_wanted = is_own || strncmp(symbol, "_Z", 2) != 0;

	p->symbol = symbol;
	p->step = step_of(symbol);
	memcpy(&p->below, member, sizeof(p->below));
	p->ours = (uintptr_t)ours;
	if (!p->below || !p->ours || !is_wanted || sp_divert_is_entry(p->below))
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

/* Pages of one segment of an object, or of its RELRO part. */
struct part {
	uintptr_t start, end;
	int protection;
};

/* Words of further parts are made writable page by page. */
#define PARTS_MAX 128

static struct {
	struct part parts[PARTS_MAX];
	uintptr_t segments[PARTS_MAX]; /* start of each part's segment */
	size_t n;
} opened;

/* One walk over all objects. */
struct pass {
	bool is_back;    /* detach: from ours to the allocator's */
	bool is_looking; /* collect the words of all steps, change none */
	unsigned int step;
	size_t places;
	int error;
	uintptr_t lowest, highest; /* range of the values to be changed */
	/* A page outside the parts that is writable now; its end is 0: none */
	struct part page;
	struct sp_attach_words *left; /* may be NULL */
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

static long protect_part(const struct part *part, int more)
{
	return SP_SYS3(mprotect, part->start, part->end - part->start,
		       part->protection | more);
}

static void close_page(struct pass *pass)
{
	if (pass->page.end)
		protect_part(&pass->page, 0);
	pass->page.end = 0;
}

static int segment_protection(const ElfW(Phdr) * p)
{
	return (p->p_flags & PF_R ? PROT_READ : 0) |
	       (p->p_flags & PF_W ? PROT_WRITE : 0) |
	       (p->p_flags & PF_X ? PROT_EXEC : 0);
}

/* The segment of the object that has the word, or that segment's RELRO part,
 * with the protection that the loader has left.  False: no segment has it. */
static bool find_segment(const struct object *o, uintptr_t at, struct part *ret)
{
	const uintptr_t mask = ~(page_bytes() - 1);
	bool is_found = false;

	for (size_t i = 0; i < o->n_phdr; i++) {
		const ElfW(Phdr) *p = &o->phdr[i];
		const uintptr_t start = o->map.l_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || at - start >= p->p_memsz)
			continue;
		*ret = (struct part){start & mask, start + p->p_memsz,
				     segment_protection(p)};
		is_found = true;
	}
	for (size_t i = 0; i < o->n_phdr && is_found; i++) {
		const ElfW(Phdr) *p = &o->phdr[i];
		const uintptr_t start = (o->map.l_addr + p->p_vaddr) & mask;
		/* The loader protects whole pages of RELRO only. */
		const uintptr_t end =
			(o->map.l_addr + p->p_vaddr + p->p_memsz) & mask;

		if (p->p_type == PT_GNU_RELRO && at >= start && at < end)
			*ret = (struct part){start, end,
					     ret->protection & ~PROT_WRITE};
	}
	return is_found;
}

/* The word at `at` will be changed: extend its segment's part to its page. */
static void note_word(uintptr_t at, const struct part *segment)
{
	const uintptr_t page = at & ~(page_bytes() - 1);
	size_t i = opened.n;

	while (i && opened.segments[i - 1] != segment->start)
		i--;
	if (!i && opened.n == PARTS_MAX)
		return;
	if (!i) {
		i = ++opened.n;
		opened.segments[i - 1] = segment->start;
		opened.parts[i - 1] =
			(struct part){page, 0, segment->protection};
	}
	if (opened.parts[i - 1].start > page)
		opened.parts[i - 1].start = page;
	if (opened.parts[i - 1].end < page + page_bytes())
		opened.parts[i - 1].end = page + page_bytes();
}

static bool is_opened(uintptr_t at)
{
	for (size_t i = 0; i < opened.n; i++)
		if (at >= opened.parts[i].start && at < opened.parts[i].end)
			return true;
	return false;
}

static bool open_page(struct pass *pass, uintptr_t at, int protection)
{
	const uintptr_t start = at & ~(page_bytes() - 1);

	if (pass->page.end && pass->page.start == start)
		return true;
	close_page(pass);
	pass->page = (struct part){start, start + page_bytes(), protection};
	pass->error = (int)protect_part(&pass->page, PROT_WRITE);
	if (pass->error)
		pass->page.end = 0;
	return !pass->error;
}

/* In both walks, so that the first one knows what there is room for. */
static bool leave_word(struct pass *pass, uintptr_t at, uintptr_t value)
{
	struct sp_attach_words *left = pass->left;

	if (!left || left->n == SP_ATTACH_WORDS)
		return false;
	left->list[left->n++] =
		(struct sp_attach_word){at, *(const uintptr_t *)at, value};
	return true;
}

static void store_word(struct pass *pass, const struct object *o, uintptr_t at,
		       uintptr_t value)
{
	struct part segment;

	/* Memory that can be executed but not read has no words of ours. */
	if (!find_segment(o, at, &segment) ||
	    (segment.protection & PROT_EXEC &&
	     !(segment.protection & PROT_READ)))
		return;
	pass->places++;
	if (segment.protection & PROT_EXEC && leave_word(pass, at, value))
		return;
	if (pass->is_looking) {
		if (!(segment.protection & PROT_WRITE))
			note_word(at, &segment);
		return;
	}
	if (!(segment.protection & PROT_WRITE) && !is_opened(at) &&
	    !open_page(pass, at, segment.protection)) {
		pass->places--;
		return;
	}
	__atomic_store_n((uintptr_t *)at, value, __ATOMIC_RELEASE);
}

static uintptr_t source_of(const struct pass *pass, const struct pair *p)
{
	return pass->is_back ? p->ours : p->below;
}

/* The pair whose source is the value.  The allocator may have one function
 * under several names: then the pair of the name that the word was bound to. */
static const struct pair *find_pair(const struct pass *pass, uintptr_t value,
				    const char *symbol)
{
	const struct pair *found = NULL;

	if (value < pass->lowest || value > pass->highest)
		return NULL;
	for (const struct pair *p = pairs; p < pairs + PAIRS; p++) {
		if (!p->below || source_of(pass, p) != value)
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

static bool is_its_turn(const struct pass *pass, const struct pair *p)
{
	return pass->is_looking || p->step == pass->step;
}

/* ---- one object ---- */

static void change_symbols(struct pass *pass, const struct object *o)
{
	const uintptr_t bias = o->map.l_addr;

	for (const struct pair *p = pairs; p < pairs + PAIRS; p++) {
		const uintptr_t from = source_of(pass, p);
		const ElfW(Sym) *s = NULL;

		if (!p->below || !is_its_turn(pass, p))
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
		if (p && is_its_turn(pass, p))
			store_word(pass, o, (uintptr_t)at, target_of(pass, p));
	}
}

/* The loader looks up its own malloc, and keeps the pointers in its RELRO part
 * without relocations. */
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
			    is_its_turn(pass, pair))
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

static void begin_pass(struct pass *pass, bool is_back,
		       struct sp_attach_words *left)
{
	*pass = (struct pass){
		.is_back = is_back, .lowest = UINTPTR_MAX, .left = left};
	for (const struct pair *p = pairs; p < pairs + PAIRS; p++) {
		const uintptr_t value = source_of(pass, p);

		if (value && value < pass->lowest)
			pass->lowest = value;
		if (value > pass->highest)
			pass->highest = value;
	}
}

static void close_parts(void)
{
	while (opened.n)
		protect_part(&opened.parts[--opened.n], 0);
}

static int open_parts(void)
{
	const size_t n = opened.n;

	for (opened.n = 0; opened.n < n; opened.n++) {
		const long err =
			protect_part(&opened.parts[opened.n], PROT_WRITE);

		if (!err)
			continue;
		close_parts();
		return (int)err;
	}
	return 0;
}

/* Symbols first: what the loader binds while the pointers are changed gets the
 * new address. */
static void change_objects(struct pass *pass, iterate_objects *iterate)
{
	struct visit symbols = {pass, change_symbols};
	struct visit pointers = {pass, change_pointers};

	iterate(visit_object, &symbols);
	iterate(visit_object, &pointers);
}

static int change_all(bool is_back, size_t *ret_places,
		      struct sp_attach_words *left)
{
	struct pass pass;
	void *address = sp_linkmap_libc("dl_iterate_phdr");
	iterate_objects *iterate;

	*ret_places = 0;
	if (left)
		left->n = 0;
	if (!address)
		return -ENOSYS;
	memcpy(&iterate, &address, sizeof(address));
	begin_pass(&pass, is_back, left);
	opened.n = 0;
	pass.is_looking = true;
	change_objects(&pass, iterate);
	if (!pass.places)
		return 0;
	pass.error = open_parts();
	if (pass.error)
		return pass.error;
	pass.is_looking = false;
	pass.places = 0;
	if (left)
		left->n = 0;
	for (unsigned int i = 0; i < STEPS; i++) {
		pass.step = is_back ? STEPS - 1 - i : i;
		change_objects(&pass, iterate);
	}
	close_parts();
	*ret_places = pass.places;
	return pass.error;
}

int sp_patch_write(size_t *ret_places, struct sp_attach_words *left)
{
	size_t undone;
	int r;

	fill_pairs();
	r = change_all(false, ret_places, left);
	if (r < 0)
		change_all(true, &undone, left);
	return r;
}

int sp_patch_restore(size_t *ret_places, struct sp_attach_words *left)
{
	return change_all(true, ret_places, left);
}
