/* SPDX-License-Identifier: MIT */
/*
 * The file is untrusted: its tables are copied to memory of our own, and each
 * number in them is held against their size.
 */
#include "agent/divert/find.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/sys/linkmap.h"
#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

#define TABLES_MAX   (32ul << 20) /* of symbols and of their names, each */
#define SECTIONS_MAX 1024u
#define HEADERS_MAX  64u

#define NAME(name, does, entry, size, times, old, is_mi)                       \
	{name,                                                                 \
	 sizeof(name) - 1,                                                     \
	 SP_DIVERT_##does,                                                     \
	 SP_ENTRY_##entry,                                                     \
	 size,                                                                 \
	 times,                                                                \
	 old,                                                                  \
	 is_mi},
#define SP_DIVERT(...)    NAME(__VA_ARGS__, false)
#define SP_DIVERT_MI(...) NAME(__VA_ARGS__, true)

const struct sp_divert_name sp_divert_names[SP_DIVERT_NAMES] = {
#include "agent/divert/names.def"
};

#undef SP_DIVERT
#undef NAME

static bool read_at(long fd, void *to, size_t bytes, uint64_t offset)
{
	size_t have = 0;

	while (have < bytes) {
		const long n = SP_SYS4(pread64, fd, (char *)to + have,
				       bytes - have, offset + have);

		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return true;
}

/* ---- the object and its file ---- */

/* The file as the loader has opened it, if it still is that. */
static long open_file(const struct sp_loaded *object)
{
	struct stat st;
	long fd = SP_SYS4(openat, AT_FDCWD,
			  object->map == sp_linkmap_first() ? "/proc/self/exe"
							    : object->name,
			  O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0)
		return fd;
	if (SP_SYS2(fstat, fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	SP_SYS1(close, fd);
	return -1;
}

static bool is_file_of(long fd, const ElfW(Ehdr) * header,
		       const struct sp_loaded *object)
{
	ElfW(Phdr) of_file[HEADERS_MAX];
	const size_t bytes = object->n_phdr * sizeof(*of_file);

	return object->n_phdr == header->e_phnum &&
	       object->n_phdr <= HEADERS_MAX &&
	       header->e_phentsize == sizeof(*of_file) &&
	       read_at(fd, of_file, bytes, header->e_phoff) &&
	       memcmp(of_file, object->phdr, bytes) == 0;
}

static const ElfW(Phdr) * code_segment(const struct sp_loaded *object,
				       const struct sp_divert_function *f)
{
	const uintptr_t at = f->entry - object->bias;
	const ElfW(Phdr) *p = object->phdr;

	for (; p < object->phdr + object->n_phdr; p++)
		if (p->p_type == PT_LOAD && p->p_flags & PF_X &&
		    p->p_flags & PF_R && !(p->p_flags & PF_W) &&
		    at >= p->p_vaddr && at - p->p_vaddr < p->p_filesz &&
		    f->bytes <= p->p_filesz - (at - p->p_vaddr))
			return p;
	return NULL;
}

bool sp_divert_is_code(const struct sp_loaded *object,
		       const struct sp_divert_function *f)
{
	return code_segment(object, f);
}

/* Is the function as it is in the file?  What is not code is refused later. */
static bool is_as_in_file(long fd, const struct sp_loaded *object,
			  const struct sp_divert_function *f)
{
	const ElfW(Phdr) *p = code_segment(object, f);
	const char *code = (const char *)f->entry;
	uint64_t offset;
	char part[512];

	if (!p)
		return true;
	offset = p->p_offset + (f->entry - object->bias - p->p_vaddr);
	for (size_t at = 0, n; at < f->bytes; at += n) {
		n = f->bytes - at < sizeof(part) ? f->bytes - at : sizeof(part);
		if (!read_at(fd, part, n, offset + at) ||
		    memcmp(part, code + at, n) != 0)
			return false;
	}
	return true;
}

/* What an object has beside code is not what it was linked to be. */
static bool changes_its_code(const struct link_map *map)
{
	for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag; d++)
		if (d->d_tag == DT_TEXTREL ||
		    (d->d_tag == DT_FLAGS && d->d_un.d_val & DF_TEXTREL))
			return true;
	return false;
}

/* ---- tables ---- */

struct table {
	char *at; /* NULL: it could not be read */
	size_t bytes;
};

static struct table read_table(long fd, const ElfW(Shdr) * section)
{
	struct table t = {NULL, section->sh_size};

	if (!t.bytes || t.bytes > TABLES_MAX)
		return t;
	t.at = sp_sys_map(t.bytes);
	if (t.at && read_at(fd, t.at, t.bytes, section->sh_offset))
		return t;
	if (t.at)
		sp_sys_unmap(t.at, t.bytes);
	t.at = NULL;
	return t;
}

/* Section headers are read so many at a time. */
#define PIECE 32u

static bool find_sections(long fd, const ElfW(Ehdr) * header,
			  ElfW(Shdr) * symbols, ElfW(Shdr) * names)
{
	ElfW(Shdr) piece[PIECE];
	unsigned int n;

	if (header->e_shentsize != sizeof(*piece) ||
	    header->e_shnum > SECTIONS_MAX)
		return false;
	for (unsigned int i = 0; i < header->e_shnum; i++) {
		n = header->e_shnum - i < PIECE ? header->e_shnum - i : PIECE;
		if (i % PIECE == 0 &&
		    !read_at(fd, piece, n * sizeof(*piece),
			     header->e_shoff + i * sizeof(*piece)))
			return false;
		if (piece[i % PIECE].sh_type != SHT_SYMTAB)
			continue;
		*symbols = piece[i % PIECE];
		return symbols->sh_link < header->e_shnum &&
		       read_at(fd, names, sizeof(*names),
			       header->e_shoff +
				       symbols->sh_link * sizeof(*names)) &&
		       names->sh_type == SHT_STRTAB;
	}
	return false;
}

/* ---- names ---- */

static bool is_mimalloc(const char *name, size_t n)
{
	return n == 3 && memcmp(name, "mi_", 3) == 0;
}

static bool is_prefix(const char *name, size_t n)
{
	return n == 0 || (n >= 3 && memcmp(name + n - 3, "je_", 3) == 0) ||
	       (n == 6 && memcmp(name, "_rjem_", 6) == 0) ||
	       is_mimalloc(name, n);
}

/* Most names of C++ and Rust, without looking for their end. */
static bool is_mangled(const char *symbol)
{
	return symbol[0] == '_' &&
	       (symbol[1] == 'R' ||
		(symbol[1] == 'Z' && symbol[2] != 'n' && symbol[2] != 'd'));
}

/* The number in sp_divert_names, and how long the prefix is. */
static bool find_name(const char *symbol, unsigned int *ret, size_t *ret_prefix)
{
	const size_t n = is_mangled(symbol) ? 0 : strlen(symbol);

	for (unsigned int i = 0; i < SP_DIVERT_NAMES; i++) {
		const struct sp_divert_name *name = &sp_divert_names[i];
		const size_t prefix = n - name->bytes;

		if (n < name->bytes ||
		    symbol[n - 1] != name->name[name->bytes - 1] ||
		    memcmp(symbol + prefix, name->name, name->bytes) != 0 ||
		    !is_prefix(symbol, prefix) ||
		    (prefix && name->name[0] == '_') ||
		    (name->is_mi && !is_mimalloc(symbol, prefix)))
			continue;
		*ret = i;
		*ret_prefix = prefix;
		return true;
	}
	return false;
}

struct search {
	const struct sp_loaded *object;
	struct sp_divert_families *families;
};

static struct sp_divert_family *family_of(const struct search *s,
					  const char *symbol, size_t prefix)
{
	struct sp_divert_family *f = s->families->list;

	for (; f < s->families->list + SP_DIVERT_FAMILIES; f++)
		if (f->object.map == s->object->map &&
		    strlen(f->prefix) == prefix &&
		    memcmp(f->prefix, symbol, prefix) == 0)
			return f;
	return NULL;
}

static struct sp_divert_family *empty_place(struct sp_divert_families *families)
{
	struct sp_divert_family *f = families->list;

	for (; f < families->list + SP_DIVERT_FAMILIES; f++)
		if (!f->object.map)
			return f;
	return NULL;
}

static void add_family(const struct search *s, const char *symbol,
		       size_t prefix, bool is_local)
{
	const size_t kept =
		prefix < SP_DIVERT_PREFIX ? prefix : SP_DIVERT_PREFIX - 1;
	struct sp_divert_family *f = empty_place(s->families);

	struct sp_divert_family *former = family_of(s, symbol, prefix);

	if (former) {
		former->is_local &= is_local;
		return;
	}
	if (kept == prefix && f) {
		f->object = *s->object;
		f->is_local = is_local;
		f->is_new = true;
		memcpy(f->prefix, symbol, prefix);
	} else if (!s->families->is_more) {
		s->families->is_more = true;
		memcpy(s->families->more, symbol, kept);
	}
}

/* Without a prefix a function of one source file may be anything, but for an
 * operator.  The linker makes those local, too, that are visible in the object
 * alone: the compiler has called them hidden, or a list of what is exported
 * leaves them out. */
static bool may_be_of_one_file(const ElfW(Sym) * s, const char *symbol,
			       size_t prefix)
{
	return !prefix && symbol[0] != '_' &&
	       ELF64_ST_BIND(s->st_info) == STB_LOCAL &&
	       ELF64_ST_VISIBILITY(s->st_other) != STV_HIDDEN;
}

/* Each malloc begins a family; the others of its functions may come earlier in
 * the table. */
static void note_malloc(const struct search *search, const ElfW(Sym) * s,
			const char *symbol)
{
	static const char name[] = "malloc";
	const size_t n = is_mangled(symbol) ? 0 : strlen(symbol);
	const size_t prefix = n - (sizeof(name) - 1);

	if (n >= sizeof(name) - 1 &&
	    memcmp(symbol + prefix, name, sizeof(name)) == 0 &&
	    is_prefix(symbol, prefix))
		add_family(search, symbol, prefix,
			   may_be_of_one_file(s, symbol, prefix));
}

static void note_symbol(const struct search *search, const ElfW(Sym) * s,
			const char *symbol)
{
	const uintptr_t entry = search->object->bias + s->st_value;
	struct sp_divert_function *function;
	struct sp_divert_family *family;
	unsigned int i;
	size_t prefix;

	if (!find_name(symbol, &i, &prefix))
		return;
	family = family_of(search, symbol, prefix);
	if (!family ||
	    (may_be_of_one_file(s, symbol, prefix) && !family->is_local))
		return;
	function = &family->functions[i];
	family->is_ambiguous |= function->entry && function->entry != entry;
	function->name = &sp_divert_names[i];
	function->entry = entry;
	function->bytes = s->st_size;
}

static void look_through(const struct search *search,
			 const struct table *symbols, const struct table *names,
			 void (*note)(const struct search *, const ElfW(Sym) *,
				      const char *))
{
	const ElfW(Sym) *s = (const void *)symbols->at;
	const ElfW(Sym) *end = s + symbols->bytes / sizeof(*s);

	names->at[names->bytes - 1] = '\0';
	for (; s < end; s++)
		if (ELF64_ST_TYPE(s->st_info) == STT_FUNC &&
		    s->st_shndx != SHN_UNDEF && s->st_name < names->bytes)
			note(search, s, names->at + s->st_name);
}

static bool has_family(const struct search *s)
{
	const struct sp_divert_family *f = s->families->list;

	for (; f < s->families->list + SP_DIVERT_FAMILIES; f++)
		if (f->object.map == s->object->map)
			return true;
	return false;
}

static bool has_name(const struct sp_divert_family *family, const char *name)
{
	for (unsigned int i = 0; i < SP_DIVERT_NAMES; i++)
		if (strcmp(sp_divert_names[i].name, name) == 0)
			return family->functions[i].entry;
	return false;
}

bool sp_divert_is_jemalloc(const struct sp_divert_family *family)
{
	return has_name(family, "mallocx");
}

static void compare_with_file(long fd, struct sp_divert_family *family)
{
	for (unsigned int i = 0; i < SP_DIVERT_NAMES; i++) {
		const struct sp_divert_function *f = &family->functions[i];

		if (!f->entry || is_as_in_file(fd, &family->object, f))
			continue;
		family->culprit = f->name->name;
		family->why = "is not as in its file";
		return;
	}
}

/* A malloc without what frees is something else, and mi_ may be anything's.  A
 * linker leaves out what is not called.  Functions that may be of one source
 * file are an allocator's if four of its names are there. */
static bool is_whole(const struct sp_divert_family *family)
{
	if (family->is_local)
		return has_name(family, "free") && has_name(family, "calloc") &&
		       has_name(family, "realloc");
	return (has_name(family, "free") || has_name(family, "dallocx") ||
		has_name(family, "sdallocx")) &&
	       (!is_mimalloc(family->prefix, strlen(family->prefix)) ||
		has_name(family, "malloc_aligned"));
}

static bool keep_whole_families(long fd, const struct search *s)
{
	struct sp_divert_family *f = s->families->list;
	bool is_any = false;

	for (; f < s->families->list + SP_DIVERT_FAMILIES; f++) {
		if (f->object.map != s->object->map)
			continue;
		if (is_whole(f)) {
			compare_with_file(fd, f);
			is_any = true;
		} else {
			memset(f, 0, sizeof(*f));
		}
	}
	return is_any;
}

static bool find_in(long fd, const struct search *search)
{
	struct table symbols, names;
	ElfW(Shdr) of_symbols, of_names;
	ElfW(Ehdr) header;

	if (!read_at(fd, &header, sizeof(header), 0) ||
	    !is_file_of(fd, &header, search->object) ||
	    !find_sections(fd, &header, &of_symbols, &of_names))
		return false;
	symbols = read_table(fd, &of_symbols);
	names = read_table(fd, &of_names);
	if (symbols.at && names.at) {
		look_through(search, &symbols, &names, note_malloc);
		if (has_family(search))
			look_through(search, &symbols, &names, note_symbol);
	}
	if (symbols.at)
		sp_sys_unmap(symbols.at, symbols.bytes);
	if (names.at)
		sp_sys_unmap(names.at, names.bytes);
	return keep_whole_families(fd, search);
}

bool sp_divert_find(const struct sp_loaded *object,
		    struct sp_divert_families *families)
{
	const struct search search = {object, families};
	bool is_any;
	long fd;

	if (changes_its_code(object->map))
		return false;
	fd = open_file(object);
	if (fd < 0)
		return false;
	is_any = find_in(fd, &search);
	SP_SYS1(close, fd);
	return is_any;
}
