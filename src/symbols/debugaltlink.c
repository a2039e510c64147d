/* SPDX-License-Identifier: MIT */
#include "symbols/debugaltlink.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "symbols/elffile.h"
#include "symbols/unpacked.h"

/*
 * An ELF file whose .debug_info is too short for anything, so that all that is
 * looked up in it is not found.  Not const only because elf_memory() may take
 * both.
 */
static struct empty {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];
	char names[23];
	char info[1];
} empty = {
	.header =
		{
			.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
				    ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			.e_type = ET_REL,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_shoff = offsetof(struct empty, sections),
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = 3,
			.e_shstrndx = 1,
		},
	.sections =
		{
			[1] =
				{
					.sh_name = 1,
					.sh_type = SHT_STRTAB,
					.sh_offset =
						offsetof(struct empty, names),
					.sh_size = sizeof(empty.names),
				},
			[2] =
				{
					.sh_name = 11,
					.sh_type = SHT_PROGBITS,
					.sh_offset =
						offsetof(struct empty, info),
					.sh_size = sizeof(empty.info),
				},
		},
	.names = "\0.shstrtab\0.debug_info",
};

static int begin_search(struct sp_debugaltlink *a)
{
	a->dwarf = a->elf ? dwarf_begin_elf(a->elf, DWARF_C_READ, NULL) : NULL;
	if (a->dwarf)
		return 0;
	sp_debugaltlink_close(a);
	return -ENOMEM;
}

int sp_debugaltlink_open(Dwarf *dwarf, const char *roots, const char *beside,
			 struct sp_debugaltlink *ret)
{
	struct sp_debugaltlink a = {.fd = -1};
	const void *bytes;
	const char *name;
	ssize_t len = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &bytes);
	int r = 0;

	*ret = a;
	if (len <= 0)
		return 0;
	a.fd = sp_elffile_find_debugaltlink(
		&(struct sp_build_id){bytes, (size_t)len}, name, roots, beside);
	if (a.fd >= 0)
		a.fd = sp_unpacked_open(a.fd);
	a.elf = a.fd >= 0 ? elf_begin(a.fd, ELF_C_READ_MMAP, NULL) : NULL;
	r = begin_search(&a);
	if (r < 0) {
		/* Not there, or without DWARF. */
		a.elf = elf_memory((char *)&empty, sizeof(empty));
		r = begin_search(&a);
	}
	if (r == 0)
		dwarf_setalt(dwarf, a.dwarf);
	*ret = a;
	return r;
}

void sp_debugaltlink_close(struct sp_debugaltlink *a)
{
	dwarf_end(a->dwarf);
	elf_end(a->elf);
	if (a->fd >= 0)
		close(a->fd);
	*a = (struct sp_debugaltlink){.fd = -1};
}
