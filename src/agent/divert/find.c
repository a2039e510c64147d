/* SPDX-License-Identifier: MIT */
/*
 * The file is untrusted: its tables are copied to memory of our own, and each
 * number in them is held against their size.
 */
#include "agent/divert/find.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>

#include "agent/sys/linkmap.h"
#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

#define TABLES_MAX   (32ul << 20) /* of symbols and of their names, each */
#define SECTIONS_MAX 1024u
#define HEADERS_MAX  64u

const struct sp_divert_name sp_divert_names[SP_DIVERT_NAMES] = {
#define SP_DIVERT(name, does, entry, size, times, old)                         \
	{name,                                                                 \
	 sizeof(name) - 1,                                                     \
	 SP_DIVERT_##does,                                                     \
	 SP_ENTRY_##entry,                                                     \
	 size,                                                                 \
	 times,                                                                \
	 old},
#include "agent/divert/names.def"
#undef SP_DIVERT
};

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

/* Is it the file of the object that the loader has first? */
static bool is_executables(long fd, const ElfW(Ehdr) * header)
{
	const struct link_map *map = sp_linkmap_first();
	ElfW(Phdr) of_file[HEADERS_MAX];
	const ElfW(Phdr) * mapped;
	unsigned long n;

	mapped = sp_linkmap_executable(&n);
	if (!map || !mapped || n != header->e_phnum || n > HEADERS_MAX ||
	    header->e_phentsize != sizeof(*of_file) ||
	    !read_at(fd, of_file, n * sizeof(*of_file), header->e_phoff) ||
	    memcmp(of_file, mapped, n * sizeof(*of_file)) != 0)
		return false;
	for (unsigned long i = 0; i < n; i++)
		if (mapped[i].p_type == PT_DYNAMIC)
			return (uintptr_t)map->l_ld ==
			       map->l_addr + mapped[i].p_vaddr;
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

static bool find_sections(long fd, const ElfW(Ehdr) * header,
			  ElfW(Shdr) * symbols, ElfW(Shdr) * names)
{
	if (header->e_shentsize != sizeof(*symbols) ||
	    header->e_shnum > SECTIONS_MAX)
		return false;
	for (unsigned int i = 0; i < header->e_shnum; i++)
		if (!read_at(fd, symbols, sizeof(*symbols),
			     header->e_shoff + i * sizeof(*symbols)))
			return false;
		else if (symbols->sh_type == SHT_SYMTAB)
			return symbols->sh_link < header->e_shnum &&
			       read_at(fd, names, sizeof(*names),
				       header->e_shoff +
					       symbols->sh_link *
						       sizeof(*names)) &&
			       names->sh_type == SHT_STRTAB;
	return false;
}

/* ---- names ---- */

static bool is_prefix(const char *name, size_t n)
{
	return n == 0 || (n >= 3 && memcmp(name + n - 3, "je_", 3) == 0) ||
	       (n == 6 && memcmp(name, "_rjem_", 6) == 0);
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
		    (prefix && name->name[0] == '_'))
			continue;
		*ret = i;
		*ret_prefix = prefix;
		return true;
	}
	return false;
}

static struct sp_divert_family *family_of(struct sp_divert_families *families,
					  const char *symbol, size_t prefix)
{
	struct sp_divert_family *f = families->list;

	for (; f < families->list + families->n; f++)
		if (strlen(f->prefix) == prefix &&
		    memcmp(f->prefix, symbol, prefix) == 0)
			return f;
	return NULL;
}

static void add_family(struct sp_divert_families *families, const char *symbol,
		       size_t prefix)
{
	const size_t kept =
		prefix < SP_DIVERT_PREFIX ? prefix : SP_DIVERT_PREFIX - 1;

	if (family_of(families, symbol, prefix))
		return;
	if (kept == prefix && families->n < SP_DIVERT_FAMILIES)
		memcpy(families->list[families->n++].prefix, symbol, prefix);
	else if (!families->is_more) {
		families->is_more = true;
		memcpy(families->more, symbol, kept);
	}
}

/* Without a prefix a function of one source file may be anything; the linker
 * makes those local, too, that are visible in the executable alone. */
static bool may_be_of_family(const ElfW(Sym) * s, size_t prefix)
{
	return prefix || ELF64_ST_BIND(s->st_info) != STB_LOCAL ||
	       ELF64_ST_VISIBILITY(s->st_other) == STV_HIDDEN;
}

/* Each malloc begins a family; the others of its functions may come earlier in
 * the table. */
static void note_malloc(struct sp_divert_families *families,
			const ElfW(Sym) * s, const char *symbol)
{
	unsigned int i;
	size_t prefix;

	if (find_name(symbol, &i, &prefix) && may_be_of_family(s, prefix) &&
	    strcmp(sp_divert_names[i].name, "malloc") == 0)
		add_family(families, symbol, prefix);
}

static void note_symbol(struct sp_divert_families *families,
			const ElfW(Sym) * s, const char *symbol)
{
	const uintptr_t entry = sp_linkmap_first()->l_addr + s->st_value;
	struct sp_divert_function *function;
	struct sp_divert_family *family;
	unsigned int i;
	size_t prefix;

	if (!find_name(symbol, &i, &prefix) || !may_be_of_family(s, prefix))
		return;
	family = family_of(families, symbol, prefix);
	if (!family)
		return;
	function = &family->functions[i];
	family->is_ambiguous |= function->entry && function->entry != entry;
	function->name = &sp_divert_names[i];
	function->entry = entry;
	function->bytes = s->st_size;
}

static void look_through(struct sp_divert_families *families,
			 const struct table *symbols, const struct table *names,
			 void (*note)(struct sp_divert_families *,
				      const ElfW(Sym) *, const char *))
{
	const ElfW(Sym) *s = (const void *)symbols->at;
	const ElfW(Sym) *end = s + symbols->bytes / sizeof(*s);

	names->at[names->bytes - 1] = '\0';
	for (; s < end; s++)
		if (ELF64_ST_TYPE(s->st_info) == STT_FUNC &&
		    s->st_shndx != SHN_UNDEF && s->st_name < names->bytes)
			note(families, s, names->at + s->st_name);
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

/* A malloc without a free is something else. */
static void keep_whole_families(struct sp_divert_families *families)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < families->n; i++) {
		const struct sp_divert_family *f = &families->list[i];

		if (!has_name(f, "free"))
			continue;
		if (n != i)
			families->list[n] = *f;
		n++;
	}
	families->n = n;
}

static void find_in(long fd, struct sp_divert_families *ret)
{
	struct table symbols, names;
	ElfW(Shdr) of_symbols, of_names;
	ElfW(Ehdr) header;

	if (!read_at(fd, &header, sizeof(header), 0) ||
	    !is_executables(fd, &header) ||
	    !find_sections(fd, &header, &of_symbols, &of_names))
		return;
	symbols = read_table(fd, &of_symbols);
	names = read_table(fd, &of_names);
	if (symbols.at && names.at) {
		look_through(ret, &symbols, &names, note_malloc);
		look_through(ret, &symbols, &names, note_symbol);
	}
	if (symbols.at)
		sp_sys_unmap(symbols.at, symbols.bytes);
	if (names.at)
		sp_sys_unmap(names.at, names.bytes);
	keep_whole_families(ret);
}

bool sp_divert_find(struct sp_divert_families *ret)
{
	const long fd = SP_SYS4(openat, AT_FDCWD, "/proc/self/exe",
				O_RDONLY | O_CLOEXEC, 0);

	ret->n = 0;
	if (fd < 0)
		return false;
	find_in(fd, ret);
	SP_SYS1(close, fd);
	return ret->n;
}
