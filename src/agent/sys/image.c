/* SPDX-License-Identifier: MIT */
/*
 * I1  Segments are in ascending order, do not share a page, and are in their
 *     file.  None can be both written and executed.
 * I2  A table is in the bytes that one segment has of the file: what is read
 *     was checked by in_segment().
 */
#include "agent/sys/image.h"

#include <string.h>
#include <sys/stat.h>

#include "agent/sys/arch.h"
#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

#define HEADERS_MAX 32u

static const char not_elf[] = "is no shared library of this architecture";
static const char odd_segments[] = "has segments that cannot be mapped";
static const char odd_tables[] = "has dynamic tables that are damaged";
static const char odd_relocations[] = "has relocations that are not known";

/* ---- its headers ---- */

static bool read_at(long fd, void *to, size_t bytes, uint64_t at)
{
	return SP_SYS4(pread64, fd, to, bytes, at) == (long)bytes;
}

static bool is_ours(const ElfW(Ehdr) * h)
{
	return memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
	       h->e_ident[EI_CLASS] == ELFCLASS64 &&
	       h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_type == ET_DYN &&
	       h->e_machine == SP_ARCH_MACHINE &&
	       h->e_phentsize == sizeof(ElfW(Phdr)) &&
	       h->e_phnum <= HEADERS_MAX;
}

/* I1 */
static bool add_segment(struct sp_image *image, const ElfW(Phdr) * p,
			size_t page, uint64_t size)
{
	struct sp_image_segment *s = &image->segments[image->n];

	if (image->n == SP_IMAGE_SEGMENTS || p->p_memsz == 0 ||
	    p->p_vaddr > SP_IMAGE_BYTES || p->p_memsz > SP_IMAGE_BYTES ||
	    p->p_filesz > p->p_memsz || p->p_offset > size ||
	    p->p_filesz > size - p->p_offset ||
	    (p->p_vaddr - p->p_offset) % page || p->p_vaddr < image->bytes ||
	    (p->p_flags & (PF_W | PF_X)) == (PF_W | PF_X))
		return false;
	*s = (struct sp_image_segment){
		.offset = p->p_offset,
		.file_bytes = p->p_filesz,
		.start = p->p_vaddr,
		.end = p->p_vaddr + p->p_memsz,
		.protection = (p->p_flags & PF_R ? PROT_READ : 0) |
			      (p->p_flags & PF_W ? PROT_WRITE : 0) |
			      (p->p_flags & PF_X ? PROT_EXEC : 0),
	};
	image->n++;
	image->bytes = (s->end + page - 1) & -page;
	return true;
}

const char *sp_image_read(struct sp_image *image, long fd)
{
	const size_t page = sp_sys_page_bytes();
	ElfW(Phdr) headers[HEADERS_MAX];
	ElfW(Ehdr) h;
	struct stat status;

	memset(image, 0, sizeof(*image));
	if (SP_SYS2(fstat, fd, &status) < 0 || !S_ISREG(status.st_mode) ||
	    !read_at(fd, &h, sizeof(h), 0) || !is_ours(&h) ||
	    !read_at(fd, headers, h.e_phnum * sizeof(headers[0]), h.e_phoff))
		return not_elf;
	for (unsigned int i = 0; i < h.e_phnum; i++) {
		const ElfW(Phdr) *p = &headers[i];

		if (p->p_type == PT_LOAD &&
		    !add_segment(image, p, page, (uint64_t)status.st_size))
			return odd_segments;
		if (p->p_type == PT_DYNAMIC)
			image->dynamic = (struct sp_image_table){p->p_vaddr,
								 p->p_filesz};
		if (p->p_type == PT_TLS && p->p_filesz)
			return odd_segments;
		if (p->p_type == PT_TLS)
			image->tls.bytes = p->p_memsz;
	}
	return image->n && image->dynamic.bytes ? NULL : odd_segments;
}

/* ---- its memory ---- */

static bool map_segment(char *base, const struct sp_image_segment *s, long fd)
{
	const size_t before = s->start % sp_sys_page_bytes();
	const uintptr_t to = (uintptr_t)base + s->start - before;

	if (s->file_bytes &&
	    sp_syscall(SYS_mmap, (long)to, (long)(before + s->file_bytes),
		       s->protection, MAP_PRIVATE | MAP_FIXED, fd,
		       (long)(s->offset - before)) < 0)
		return false;
	/* What the last page has of the file behind it. */
	if (s->protection & PROT_WRITE)
		memset(base + s->start + s->file_bytes, 0,
		       -(s->start + s->file_bytes) % sp_sys_page_bytes());
	return true;
}

char *sp_image_map(const struct sp_image *image, long fd, size_t more)
{
	char *base = sp_sys_map(image->bytes + more);

	for (unsigned int i = 0; base && i < image->n; i++) {
		if (map_segment(base, &image->segments[i], fd))
			continue;
		sp_image_unmap(image, base, more);
		base = NULL;
	}
	return base;
}

void sp_image_unmap(const struct sp_image *image, char *base, size_t more)
{
	sp_sys_unmap(base, image->bytes + more);
}

char *sp_image_data(const struct sp_image *image, char *base, size_t *ret_bytes)
{
	const struct sp_image_segment *first = NULL, *last = NULL;

	for (unsigned int i = 0; i < image->n; i++) {
		const struct sp_image_segment *s = &image->segments[i];

		if (!(s->protection & PROT_WRITE))
			continue;
		if (last && last != s - 1)
			return NULL;
		last = s;
		first = first ? first : s;
	}
	if (!first)
		return NULL;
	*ret_bytes = last->end - first->start;
	return base + first->start;
}

/* ---- its tables ---- */

/* I2 */
static bool in_segment(const struct sp_image *image, uintptr_t at, size_t bytes,
		       int protection)
{
	for (unsigned int i = 0; i < image->n; i++) {
		const struct sp_image_segment *s = &image->segments[i];

		if ((s->protection & protection) == protection &&
		    at >= s->start && at - s->start <= s->file_bytes &&
		    bytes <= s->file_bytes - (at - s->start))
			return true;
	}
	return false;
}

static bool is_table(const struct sp_image *image,
		     const struct sp_image_table *table)
{
	return in_segment(image, table->at, table->bytes, PROT_READ) &&
	       table->at % sizeof(uint64_t) == 0;
}

/* Up to the end of its segment: nothing says how many symbols there are. */
static size_t bytes_behind(const struct sp_image *image, uintptr_t at)
{
	for (unsigned int i = 0; i < image->n; i++) {
		const struct sp_image_segment *s = &image->segments[i];

		if (at >= s->start && at - s->start < s->file_bytes)
			return s->file_bytes - (at - s->start);
	}
	return 0;
}

static bool read_dynamic(struct sp_image *image, const char *base)
{
	const ElfW(Dyn) * d;
	size_t n = image->dynamic.bytes / sizeof(*d);

	if (!is_table(image, &image->dynamic))
		return false;
	d = (const void *)(base + image->dynamic.at);
	for (; n && d->d_tag != DT_NULL; n--, d++) {
		switch (d->d_tag) {
		case DT_SYMTAB:
			image->symbols.at = d->d_un.d_ptr;
			break;
		case DT_STRTAB:
			image->strings.at = d->d_un.d_ptr;
			break;
		case DT_STRSZ:
			image->strings.bytes = d->d_un.d_val;
			break;
		case DT_RELA:
			image->relocations[0].at = d->d_un.d_ptr;
			break;
		case DT_RELASZ:
			image->relocations[0].bytes = d->d_un.d_val;
			break;
		case DT_JMPREL:
			image->relocations[1].at = d->d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			image->relocations[1].bytes = d->d_un.d_val;
			break;
		default:
			break;
		}
	}
	image->symbols.bytes = bytes_behind(image, image->symbols.at);
	/* The last string ends, so that all do. */
	return image->strings.bytes && is_table(image, &image->symbols) &&
	       in_segment(image, image->strings.at, image->strings.bytes,
			  PROT_READ) &&
	       base[image->strings.at + image->strings.bytes - 1] == '\0';
}

static const ElfW(Sym) * symbol_at(const struct sp_image *image,
				   const char *base, uint64_t i,
				   const char **ret_name)
{
	const ElfW(Sym) *s = (const void *)(base + image->symbols.at);

	if (i >= image->symbols.bytes / sizeof(*s) ||
	    s[i].st_name >= image->strings.bytes)
		return NULL;
	*ret_name = base + image->strings.at + s[i].st_name;
	return &s[i];
}

/* ---- its relocations ---- */

struct binding {
	const struct sp_image *image;
	char *base;
	const struct sp_image_import *imports;
	uintptr_t other, tls;
};

static bool find_symbol(const struct binding *b, uint64_t i, uint64_t *ret)
{
	const struct sp_image_import *import = b->imports;
	const char *name;
	const ElfW(Sym) *s = symbol_at(b->image, b->base, i, &name);

	if (!s)
		return false;
	if (s->st_shndx != SHN_UNDEF) {
		*ret = (uintptr_t)b->base + s->st_value;
		return ELF64_ST_TYPE(s->st_info) != STT_GNU_IFUNC;
	}
	while (import->name && strcmp(import->name, name) != 0)
		import++;
	if (import->name)
		*ret = (uintptr_t)import->to;
	else
		*ret = ELF64_ST_BIND(s->st_info) == STB_WEAK ? 0 : b->other;
	return true;
}

static bool relocate(const struct binding *b, const ElfW(Rela) * r)
{
	uint64_t value = 0;

	switch (ELF64_R_TYPE(r->r_info)) {
	case SP_ARCH_RELATIVE:
		value = (uintptr_t)b->base;
		break;
	case SP_ARCH_MODULE:
		value = b->tls;
		break;
	default:
		if (!SP_ARCH_IS_POINTER(ELF64_R_TYPE(r->r_info)) ||
		    !find_symbol(b, ELF64_R_SYM(r->r_info), &value))
			return false;
	}
	value += (uint64_t)r->r_addend;
	if (!in_segment(b->image, r->r_offset, sizeof(value),
			PROT_READ | PROT_WRITE))
		return false;
	memcpy(b->base + r->r_offset, &value, sizeof(value));
	return true;
}

const char *sp_image_bind(struct sp_image *image, char *base,
			  const struct sp_image_import *imports,
			  void (*other)(void), void *tls)
{
	const struct binding b = {image, base, imports, (uintptr_t)other,
				  (uintptr_t)tls};

	if (!read_dynamic(image, base))
		return odd_tables;
	for (int i = 0; i < 2; i++) {
		const struct sp_image_table *t = &image->relocations[i];
		const ElfW(Rela) * r;

		if (!t->bytes)
			continue;
		if (!is_table(image, t))
			return odd_tables;
		r = (const void *)(base + t->at);
		for (size_t n = t->bytes / sizeof(*r); n; n--, r++)
			if (!relocate(&b, r))
				return odd_relocations;
	}
	return NULL;
}

void *sp_image_function(const struct sp_image *image, char *base,
			const char *name)
{
	const size_t n = image->symbols.bytes / sizeof(ElfW(Sym));

	for (size_t i = 1; i < n; i++) {
		const char *own;
		const ElfW(Sym) *s = symbol_at(image, base, i, &own);

		if (s && s->st_shndx != SHN_UNDEF &&
		    ELF64_ST_TYPE(s->st_info) == STT_FUNC &&
		    in_segment(image, s->st_value, 1, PROT_EXEC) &&
		    strcmp(own, name) == 0)
			return base + s->st_value;
	}
	return NULL;
}
