/* SPDX-License-Identifier: MIT */
/*
 * Pointers to the allocator in all objects, to ours and back, held against a
 * naive model of the header: forged objects with all kinds of segments and
 * relocations, and random words; what has to stay, stays, pages too.
 */
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "agent/divert/divert.h"
#include "agent/hooks/jemalloc.h"
#include "agent/hooks/patch.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/next.h"
#include "base/rng.h"
#include "support/test.h"

#define PAGE       4096u
#define WORDS      (PAGE / 8)
#define FEW        3
#define MANY       100 /* so many parts that there is no room for all */
#define ENTRIES    200
#define SYMBOLS    64
#define NAME_BYTES 64

/* Functions that these programs do not have otherwise. */
void cfree(void *p);
void free_sized(void *p, size_t n);
void free_aligned_sized(void *p, size_t alignment, size_t n);
void cfree(void *p)
{
	(void)p;
}
void free_sized(void *p, size_t n)
{
	(void)p;
	(void)n;
}
void free_aligned_sized(void *p, size_t alignment, size_t n)
{
	(void)p;
	(void)alignment;
	(void)n;
}

/* ---- pairs, once more ---- */

#define SP_NEXT(member, symbol, ret, args)                                     \
	extern const char ours_##member[] __asm__(symbol);
#define SP_NEXT_OPTIONAL(member, symbol, ret, args)
#include "agent/sys/next.def"
#undef SP_NEXT

static const char jemalloc_ours[] = "mallocx";

const void *sp_jemalloc_hook(const char *symbol)
{
	return strcmp(symbol, "mallocx") == 0 ? jemalloc_ours : NULL;
}

struct known {
	const char *symbol;
	uintptr_t below, ours;
	bool is_wanted;
};

static struct known known[64];
static size_t n_known;
/* Addresses of functions below: nothing is called. */
static char below_area[64][16];

bool sp_divert_is_entry(uintptr_t address)
{
	return (address - (uintptr_t)below_area) / 16 % 7 == 3;
}
static void know(const char *symbol, void *member, bool *is_own,
		 const void *ours, struct sp_rng *rng)
{
	struct known *k = &known[n_known];
	/* Some are not there; some are the function before, by another name. */
	const uint64_t kind = sp_rng_next(rng) % 8;
	const void *below = below_area[n_known];

	if (kind == 0 && n_known > 4)
		below = NULL;
	if (kind == 1 && n_known > 4)
		below = (const void *)known[n_known - 1].below;
	*is_own = sp_rng_next(rng) & 1;
	memcpy(member, &below, sizeof(below));
	k->symbol = symbol;
	k->below = (uintptr_t)below;
	k->ours = (uintptr_t)ours;
	k->is_wanted = below && ours &&
		       (*is_own || strncmp(symbol, "_Z", 2) != 0) &&
		       !sp_divert_is_entry(k->below);
	n_known++;
}

static void know_all(struct sp_rng *rng)
{
	n_known = 0;
#define SP_NEXT(member, symbol, ret, args)                                     \
	know(symbol, &sp_next.member, &sp_next.member##_is_own, ours_##member, \
	     rng);
#define SP_NEXT_OPTIONAL(member, symbol, ret, args)                            \
	know(symbol, &sp_next.member, &sp_next.member##_is_own,                \
	     sp_jemalloc_hook(symbol), rng);
#include "agent/sys/next.def"
#undef SP_NEXT
}

/* What the header says of one word that was bound to a name. */
static uintptr_t translate(uintptr_t value, const char *name, bool is_back,
			   size_t first)
{
	for (int by_name = 1; by_name >= 0; by_name--)
		for (size_t i = 0; i < first; i++) {
			const struct known *k = &known[i];
			const uintptr_t from = is_back ? k->ours : k->below;

			if (k->is_wanted && from == value &&
			    (!by_name || strcmp(k->symbol, name) == 0))
				return is_back ? k->below : k->ours;
		}
	return value;
}

/* ---- forged objects ---- */

/*
 * Pages: code; a hole; read-only after relocation, twice; the page that it ends
 * in the middle of, writable; data; symbols; relocations, three; dynamic.
 */
enum {
	CODE,
	HOLE,
	RELRO,
	RELRO_2,
	HALF,
	DATA,
	SYMTAB,
	RELA,
	DYNAMIC = 10,
	PAGES
};

static const int page_protection[PAGES] = {
	[CODE] = PROT_READ | PROT_EXEC,
	[HOLE] = PROT_READ | PROT_WRITE,
	[RELRO] = PROT_READ,
	[RELRO_2] = PROT_READ,
	[HALF] = PROT_READ | PROT_WRITE,
	[DATA] = PROT_READ | PROT_WRITE,
	[SYMTAB] = PROT_READ,
	[RELA] = PROT_READ,
	[RELA + 1] = PROT_READ,
	[RELA + 2] = PROT_READ,
	[DYNAMIC] = PROT_READ | PROT_WRITE,
};

static const ElfW(Phdr) segments[] = {
	{PT_LOAD, PF_R | PF_X, 0, CODE *PAGE, 0, 0, PAGE, PAGE},
	{PT_LOAD, PF_R | PF_W, 0, RELRO *PAGE, 0, 0, 4 * PAGE, PAGE},
	{PT_LOAD, PF_R, 0, SYMTAB *PAGE, 0, 0, 4 * PAGE, PAGE},
	{PT_LOAD, PF_R | PF_W, 0, DYNAMIC *PAGE, 0, 0, PAGE, PAGE},
	{PT_DYNAMIC, PF_R | PF_W, 0, DYNAMIC *PAGE, 0, 0, PAGE, 8},
	{PT_GNU_RELRO, PF_R, 0, RELRO *PAGE, 0, 0, 2 * PAGE + PAGE / 2, 1},
};

struct object {
	unsigned char *base;
	bool is_loader;
	/* The words of all pages as the model wants them, and as they were;
	 * symbols and relocations are read where they are. */
	_Alignas(16) unsigned char wanted[PAGES * PAGE];
	unsigned char before[PAGES * PAGE];
	/* Before this way. */
	_Alignas(16) unsigned char first[PAGES * PAGE];
};

static struct object objects[MANY];
static size_t n_objects = FEW;
static uintptr_t loader_base;
static bool is_going_back;

unsigned long __real_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type)
{
	return type == AT_BASE ? loader_base : __real_getauxval(type);
}

static bool frees(uintptr_t ours)
{
	for (size_t i = 0; i < n_known; i++)
		if (known[i].ours == ours)
			return strstr(known[i].symbol, "free") ||
			       strstr(known[i].symbol, "dallocx") ||
			       strncmp(known[i].symbol, "_Zd", 3) == 0;
	return false;
}

/* Between two ways through the objects: no allocation comes in whose free would
 * not. */
static void expect_order(void)
{
	bool allocations = false, all_frees = true;

	for (size_t i = 0; i < n_objects; i++)
		for (size_t at = RELRO * PAGE; at < SYMTAB * PAGE; at += 8) {
			const struct object *o = &objects[i];
			uintptr_t now, first, last, ours;

			memcpy(&now, o->base + at, sizeof(now));
			memcpy(&first, o->first + at, sizeof(first));
			memcpy(&last, o->wanted + at, sizeof(last));
			ours = is_going_back ? first : last;
			if (first == last)
				continue;
			if (frees(ours))
				all_frees &= now == ours;
			else if (now == ours)
				allocations = true;
		}
	/* realloc is in between, and one of both. */
	assert_true(all_frees || !allocations);
}

static int iterate(int (*visit)(struct dl_phdr_info *, size_t, void *),
		   void *arg)
{
	expect_order();
	for (size_t i = 0; i < n_objects; i++) {
		struct dl_phdr_info info = {
			.dlpi_addr = (uintptr_t)objects[i].base,
			.dlpi_name = "forged",
			.dlpi_phdr = segments,
			.dlpi_phnum = sizeof(segments) / sizeof(*segments),
		};

		visit(&info, sizeof(info), arg);
	}
	return 0;
}

void *__wrap_sp_linkmap_libc(const char *name);
void *__wrap_sp_linkmap_libc(const char *name)
{
	int (*function)(int (*)(struct dl_phdr_info *, size_t, void *),
			void *) = iterate;
	void *address;

	assert_string_equal(name, "dl_iterate_phdr");
	memcpy(&address, &function, sizeof(address));
	return address;
}

static uint64_t random_below(struct sp_rng *rng, uint64_t n)
{
	return sp_rng_next(rng) % n;
}

/* Mostly an address that means something, now or on the way back. */
static uintptr_t random_value(struct sp_rng *rng)
{
	const struct known *k = &known[random_below(rng, n_known)];

	switch (random_below(rng, 5)) {
	case 0:
		return k->ours;
	case 1:
		return k->below + 1 + random_below(rng, 8);
	default:
		return k->below;
	}
}

static ElfW(Sym) * symbols_at(unsigned char *image)
{
	return (ElfW(Sym) *)(image + SYMTAB * PAGE);
}

#define STRINGS (SYMTAB * PAGE + SYMBOLS * sizeof(ElfW(Sym)))

/* Names of the family, and others; defined with an address, or not. */
static void make_symbols(unsigned char *image, uintptr_t bias,
			 struct sp_rng *rng)
{
	ElfW(Sym) *symbols = symbols_at(image);
	char *strings = (char *)image + STRINGS;
	size_t at = 1;

	for (size_t i = 1; i < SYMBOLS; i++) {
		const char *name = known[random_below(rng, n_known)].symbol;

		if (random_below(rng, 8) == 0 || at > PAGE / 2 - 2 * NAME_BYTES)
			name = "other";
		symbols[i].st_name = (uint32_t)at;
		strcpy(strings + at, name);
		at += strlen(name) + 1;
		if (random_below(rng, 2) == 0)
			continue;
		symbols[i].st_shndx = 1;
		symbols[i].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
		symbols[i].st_value = random_value(rng) - bias;
	}
	assert_true(at < PAGE - SYMBOLS * sizeof(ElfW(Sym)));
}

static void wish_symbols(unsigned char *wanted, uintptr_t bias, bool is_back)
{
	ElfW(Sym) *symbols = symbols_at(wanted);
	const char *strings = (char *)wanted + STRINGS;

	/* By the name alone; each pair in turn, as they may follow each other
	 * where one's function below is another's of ours. */
	for (size_t k = 0; k < n_known; k++)
		for (size_t i = 1; i < SYMBOLS; i++) {
			const uintptr_t from =
				is_back ? known[k].ours : known[k].below;

			if (!known[k].is_wanted || !symbols[i].st_shndx ||
			    symbols[i].st_value + bias != from ||
			    strcmp(strings + symbols[i].st_name,
				   known[k].symbol) != 0)
				continue;
			symbols[i].st_value =
				(is_back ? known[k].below : known[k].ours) -
				bias;
		}
}

/* The first three are of pointers. */
static const uint32_t types[] = {
#ifdef __aarch64__
	R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT,  R_AARCH64_ABS64,
	R_AARCH64_RELATIVE, R_AARCH64_TLS_DTPMOD, R_AARCH64_COPY,
#else
	R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, R_X86_64_64,
	R_X86_64_RELATIVE, R_X86_64_DTPMOD64,  R_X86_64_COPY,
#endif
};

static bool is_pointer(uint32_t type)
{
	return type == types[0] || type == types[1] || type == types[2];
}

/* Two tables, of half of the entries each; places in all pages but those that
 * the tables are in, each word once, some not aligned. */
static void make_relocations(unsigned char *image, struct sp_rng *rng)
{
	ElfW(Rela) *r = (ElfW(Rela) *)(image + RELA * PAGE);
	bool is_taken[(DATA + 1) * WORDS] = {false};

	for (size_t i = 0; i < ENTRIES; i++) {
		const size_t word = random_below(rng, (DATA + 1) * WORDS - 1);
		const uintptr_t value = random_value(rng);
		size_t at = word * 8;

		if (is_taken[word] || is_taken[word + 1])
			continue;
		is_taken[word] = is_taken[word + 1] = true;
		if (random_below(rng, 10) == 0)
			at += 1 + random_below(rng, 7);
		memcpy(image + at, &value, sizeof(value));
		r[i].r_offset = at;
		r[i].r_info = ELF64_R_INFO(random_below(rng, SYMBOLS),
					   types[random_below(rng, 6)]);
	}
}

static void make_dynamic(unsigned char *image, uintptr_t bias)
{
	static const uint32_t hash_head[2] = {1, SYMBOLS};
	ElfW(Dyn) *d = (ElfW(Dyn) *)(image + DYNAMIC * PAGE);
	uint32_t *hash = (uint32_t *)(image + DYNAMIC * PAGE + PAGE / 2);
	const size_t half = ENTRIES / 2 * sizeof(ElfW(Rela));
	const uint64_t rows[][2] = {
		{DT_SYMTAB, bias + SYMTAB * PAGE},
		{DT_STRTAB, bias + STRINGS},
		{DT_HASH, bias + DYNAMIC * PAGE + PAGE / 2},
		{DT_RELA, bias + RELA * PAGE},
		{DT_RELASZ, half},
		{DT_JMPREL, bias + RELA * PAGE + half},
		{DT_PLTRELSZ, half},
	};

	memcpy(d, rows, sizeof(rows));
	/* One bucket, and a chain of all. */
	memcpy(hash, hash_head, sizeof(hash_head));
	hash[2] = 1;
	for (uint32_t i = 1; i + 1 < SYMBOLS; i++)
		hash[3 + i] = i + 1;
}

/* Is the word in a segment? */
static bool is_inside(size_t at)
{
	return at / PAGE != HOLE;
}

static void wish_relocations(const struct object *o, unsigned char *wanted,
			     bool is_back)
{
	const ElfW(Rela) *r = (const void *)(o->before + RELA * PAGE);
	const ElfW(Sym) *symbols = (const void *)(o->before + SYMTAB * PAGE);
	uintptr_t value;

	for (size_t i = 0; i < ENTRIES; i++, r++) {
		const ElfW(Sym) *s = &symbols[ELF64_R_SYM(r->r_info)];

		if (!is_pointer(ELF64_R_TYPE(r->r_info)) || r->r_offset % 8 ||
		    !is_inside(r->r_offset))
			continue;
		memcpy(&value, wanted + r->r_offset, sizeof(value));
		value = translate(
			value, (const char *)o->before + STRINGS + s->st_name,
			is_back, n_known);
		memcpy(wanted + r->r_offset, &value, sizeof(value));
	}
}

/* The loader's own malloc, calloc, realloc and free: any word that is read-only
 * after relocation. */
static void wish_loader(unsigned char *wanted, bool is_back)
{
	for (size_t at = RELRO * PAGE; at < RELRO * PAGE + 2 * PAGE + PAGE / 2;
	     at += 8) {
		uintptr_t value;

		memcpy(&value, wanted + at, sizeof(value));
		/* By its value alone, of whichever pair comes first. */
		if (translate(value, "", is_back, n_known) !=
		    translate(value, "", is_back, 4))
			continue;
		value = translate(value, "", is_back, 4);
		memcpy(wanted + at, &value, sizeof(value));
	}
}

static void protect(const struct object *o)
{
	for (size_t i = 0; i < PAGES; i++)
		assert_int_equal(
			mprotect(o->base + i * PAGE, PAGE, page_protection[i]),
			0);
}

static void make_object(struct object *o, struct sp_rng *rng)
{
	const uintptr_t bias = (uintptr_t)o->base;

	assert_int_equal(
		mprotect(o->base, PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
	memset(o->base, 0, PAGES * PAGE);
	make_symbols(o->base, bias, rng);
	make_relocations(o->base, rng);
	make_dynamic(o->base, bias);
	/* Words among the loader's that no relocation names. */
	for (size_t i = 0; i < 20; i++) {
		const uintptr_t value = random_value(rng);
		const size_t at =
			RELRO * PAGE + random_below(rng, 2 * WORDS) * 8;
		uintptr_t there;

		memcpy(&there, o->base + at, sizeof(there));
		if (!there)
			memcpy(o->base + at, &value, sizeof(value));
	}
	memcpy(o->before, o->base, PAGES * PAGE);
	memcpy(o->wanted, o->base, PAGES * PAGE);
	protect(o);
}

static void wish(struct object *o, bool is_back)
{
	is_going_back = is_back;
	memcpy(o->first, o->wanted, sizeof(o->first));
	wish_symbols(o->wanted, (uintptr_t)o->base, is_back);
	wish_relocations(o, o->wanted, is_back);
	if (o->is_loader)
		wish_loader(o->wanted, is_back);
}

/* ---- what has to be ---- */

static void expect_words(const struct object *o, const char *when)
{
	for (size_t at = 0; at < PAGES * PAGE; at++)
		if (o->base[at] != o->wanted[at])
			fail_msg("%s: byte %#zx of page %zu, object %td", when,
				 at % PAGE, at / PAGE, o - objects);
}

/* By /proc/self/maps. */
static void expect_protections(const struct object *o)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t start, end;
	char line[4400], rights[8];
	size_t seen = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%zx-%zx %7s", &start, &end, rights) != 3)
			continue;
		for (size_t i = 0; i < PAGES; i++) {
			const uintptr_t page = (uintptr_t)o->base + i * PAGE;
			const int p = page_protection[i];

			if (page < start || page >= end)
				continue;
			seen++;
			assert_int_equal(rights[0] == 'r', !!(p & PROT_READ));
			assert_int_equal(rights[1] == 'w', !!(p & PROT_WRITE));
			assert_int_equal(rights[2] == 'x', !!(p & PROT_EXEC));
		}
	}
	fclose(maps);
	assert_int_equal(seen, PAGES);
}

static int map_objects(void **state)
{
	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		objects[i].base = mmap(NULL, PAGES * PAGE, PROT_NONE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (objects[i].base == MAP_FAILED)
			return -1;
	}
	objects[1].is_loader = true;
	loader_base = (uintptr_t)objects[1].base;
	return 0;
}

static size_t count_changed(void)
{
	size_t n = 0;

	for (size_t i = 0; i < n_objects; i++)
		for (size_t at = 0; at < PAGES * PAGE; at += 8)
			n += memcmp(objects[i].wanted + at,
				    objects[i].before + at, 8) != 0;
	return n;
}

/* Random objects, to ours and back. */
static void change_objects(size_t n, uint64_t rounds)
{
	size_t changed = 0;

	n_objects = n;
	for (uint64_t seed = 1; seed <= rounds; seed++) {
		struct sp_rng rng;
		size_t places = 0;

		sp_rng_init(&rng, seed, 0);
		know_all(&rng);
		for (size_t i = 0; i < n_objects; i++) {
			make_object(&objects[i], &rng);
			wish(&objects[i], false);
		}
		assert_int_equal(sp_patch_write(&places, NULL), 0);
		assert_true(places >= count_changed());
		changed += count_changed();
		for (size_t i = 0; i < n_objects; i++) {
			expect_words(&objects[i], "to ours");
			expect_protections(&objects[i]);
			wish(&objects[i], true);
		}
		assert_int_equal(sp_patch_restore(&places, NULL), 0);
		for (size_t i = 0; i < n_objects; i++) {
			expect_words(&objects[i], "back");
			expect_protections(&objects[i]);
		}
	}
	/* Else nothing was tested. */
	assert_true(changed > 50 * rounds);
}

TEST(model)
{
	if (__real_getauxval(AT_PAGESZ) != PAGE)
		skip();
	change_objects(FEW, rounds_of(200));
}

/* Most objects are changed page by page. */
TEST(many_objects)
{
	if (__real_getauxval(AT_PAGESZ) != PAGE)
		skip();
	change_objects(MANY, 3);
}

TEST_MAIN(map_objects, NULL)
