/* SPDX-License-Identifier: MIT */
/*
 * The copy is the file, then the sections, then the headers of all sections.
 */
#include "symbols/unpacked.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define TYPE_ZLIB 1u
#define TYPE_ZSTD 2u
/* No section has more bytes for one of the file's: zlib cannot. */
#define RATIO_MAX 1032u
/* Of a copy: many sections may name the same bytes. */
#define COPY_MAX (4ull << 30)
#define ALIGN    8u

struct file {
	const uint8_t *bytes;
	size_t n;
	Elf64_Shdr *sections; /* ours, as they are to be */
	size_t n_sections;
	int copy;
	uint64_t end; /* of the copy */
};

static bool put(struct file *f, const void *bytes, uint64_t n)
{
	const uint8_t *at = bytes;
	uint64_t done = 0;
	ssize_t r;

	while (done < n) {
		r = pwrite(f->copy, at + done, n - done,
			   (off_t)(f->end + done));
		if (r <= 0)
			return false;
		done += (uint64_t)r;
	}
	f->end += (n + ALIGN - 1) / ALIGN * ALIGN;
	return true;
}

/* Compressed in a way that libelf does not read where it is. */
static bool is_ours(const struct file *f, const Elf64_Shdr *s,
		    Elf64_Chdr *ret_header)
{
	if (!(s->sh_flags & SHF_COMPRESSED) || s->sh_type == SHT_NOBITS ||
	    s->sh_offset > f->n || s->sh_size > f->n - s->sh_offset ||
	    s->sh_size < sizeof(*ret_header))
		return false;
	memcpy(ret_header, f->bytes + s->sh_offset, sizeof(*ret_header));
	if (ret_header->ch_size / RATIO_MAX > s->sh_size)
		return false;
	return ret_header->ch_type == TYPE_ZSTD ||
	       (ret_header->ch_type == TYPE_ZLIB &&
		(s->sh_type == SHT_SYMTAB || s->sh_type == SHT_STRTAB));
}

static bool unpack(struct file *f, Elf64_Shdr *s, const Elf64_Chdr *header)
{
	const uint8_t *from = f->bytes + s->sh_offset + sizeof(*header);
	const size_t n = s->sh_size - sizeof(*header);
	uLongf got = header->ch_size;
	bool is_done = false;
	uint8_t *to;

	if (f->end > COPY_MAX || header->ch_size > COPY_MAX - f->end)
		return false;
	to = malloc(header->ch_size + 1);
	if (to && header->ch_type == TYPE_ZSTD)
		is_done = ZSTD_decompress(to, header->ch_size, from, n) ==
			  header->ch_size;
	else if (to)
		is_done = uncompress(to, &got, from, n) == Z_OK &&
			  got == header->ch_size;
	if (is_done) {
		s->sh_offset = f->end;
		s->sh_size = header->ch_size;
		s->sh_addralign = header->ch_addralign;
		s->sh_flags &= ~(Elf64_Xword)SHF_COMPRESSED;
		is_done = put(f, to, header->ch_size);
	}
	free(to);
	return is_done;
}

/* False: there is nothing to do. */
static bool read_sections(struct file *f)
{
	const Elf64_Ehdr *header = (const void *)f->bytes;
	Elf64_Chdr compressed;

	if (f->n < sizeof(*header) ||
	    memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_ident[EI_CLASS] != ELFCLASS64 ||
	    header->e_ident[EI_DATA] != ELFDATA2LSB ||
	    header->e_shentsize != sizeof(Elf64_Shdr) ||
	    header->e_shoff > f->n || header->e_shoff % ALIGN ||
	    header->e_shnum > (f->n - header->e_shoff) / sizeof(Elf64_Shdr))
		return false;
	f->n_sections = header->e_shnum;
	f->sections = malloc((f->n_sections + 1) * sizeof(Elf64_Shdr));
	if (!f->sections)
		return false;
	memcpy(f->sections, f->bytes + header->e_shoff,
	       f->n_sections * sizeof(Elf64_Shdr));
	for (size_t i = 0; i < f->n_sections; i++)
		if (is_ours(f, &f->sections[i], &compressed))
			return true;
	return false;
}

static bool write_copy(struct file *f)
{
	Elf64_Ehdr header;
	Elf64_Chdr compressed;

	if (!put(f, f->bytes, f->n))
		return false;
	for (size_t i = 0; i < f->n_sections; i++)
		if (is_ours(f, &f->sections[i], &compressed) &&
		    !unpack(f, &f->sections[i], &compressed))
			return false;
	memcpy(&header, f->bytes, sizeof(header));
	header.e_shoff = f->end;
	if (!put(f, f->sections, f->n_sections * sizeof(Elf64_Shdr)))
		return false;
	return pwrite(f->copy, &header, sizeof(header), 0) == sizeof(header);
}

int sp_unpacked_open(int fd)
{
	struct file f = {.copy = -1};
	Elf64_Shdr *sections;
	struct stat st;
	void *bytes;

	if (fstat(fd, &st) != 0 || st.st_size <= 0)
		return fd;
	f.n = (size_t)st.st_size;
	bytes = mmap(NULL, f.n, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return fd;
	f.bytes = bytes;
	if (read_sections(&f))
		f.copy = memfd_create("unpacked", MFD_CLOEXEC);
	sections = f.sections;
	if (f.copy >= 0 && !write_copy(&f)) {
		close(f.copy);
		f.copy = -1;
	}
	free(sections);
	munmap(bytes, f.n);
	if (f.copy < 0)
		return fd;
	close(fd);
	return f.copy;
}

/*
 * Locations of variables are not needed, and libdw would decompress them: a
 * seventh of all.  It skips sections without bytes, so make them so; the
 * headers are in a private mapping of libdwfl.
 */
void sp_unpacked_hide_locations(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names) != 0)
		return;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		const char *name =
			gelf_getshdr(section, &header) &&
					header.sh_flags & SHF_COMPRESSED
				? elf_strptr(elf, names, header.sh_name)
				: NULL;

		if (!name || (strcmp(name, ".debug_loclists") != 0 &&
			      strcmp(name, ".debug_loc") != 0))
			continue;
		header.sh_type = SHT_NOBITS;
		gelf_update_shdr(section, &header);
	}
}
