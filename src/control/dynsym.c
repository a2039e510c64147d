/* SPDX-License-Identifier: MIT */
#include "control/dynsym.h"

#include <stdint.h>
#include <string.h>

static Elf_Data *find_table(Elf *elf, GElf_Shdr *ret)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, ret) && ret->sh_type == SHT_DYNSYM &&
		    ret->sh_entsize)
			return elf_getdata(section, NULL);
	return NULL;
}

bool sp_dynsym_find(Elf *elf, const char *name, int type, GElf_Sym *ret)
{
	GElf_Shdr header;
	Elf_Data *data = find_table(elf, &header);
	size_t n = data ? data->d_size / header.sh_entsize : 0;

	for (size_t i = 0; i < n && i <= INT32_MAX; i++) {
		const char *found;

		if (!gelf_getsym(data, (int)i, ret) ||
		    ret->st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(ret->st_info) != type)
			continue;
		found = elf_strptr(elf, header.sh_link, ret->st_name);
		if (found && strcmp(found, name) == 0)
			return true;
	}
	return false;
}
