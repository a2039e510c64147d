/* SPDX-License-Identifier: MIT */
#include "control/brought.h"

#include <gelf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/brought.h"
#include "base/proc.h"
#include "base/served.h"
#include "control/mapped.h"

/* What a process may have loaded; more files are not looked at. */
#define FILES_MAX 64u

static bool is_of_system(const char *path)
{
	return strncmp(path, "/usr/lib", 8) == 0 ||
	       strncmp(path, "/lib", 4) == 0;
}

static bool is_malloc(const char *name)
{
	const size_t n = name ? strlen(name) : 0;

	return n >= 6 && strcmp(name + n - 6, "malloc") == 0;
}

static bool has_malloc(Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	const size_t n = data ? data->d_size / sizeof(Elf64_Sym) : 0;
	GElf_Sym symbol;

	for (size_t i = 0; i < n && i < INT32_MAX; i++)
		if (gelf_getsym(data, (int)i, &symbol) &&
		    symbol.st_shndx != SHN_UNDEF &&
		    GELF_ST_TYPE(symbol.st_info) == STT_FUNC &&
		    is_malloc(elf_strptr(elf, header->sh_link, symbol.st_name)))
			return true;
	return false;
}

/* The library finds what has symbols, and interposes what is exported. */
static bool is_hidden(int fd)
{
	Elf_Scn *section = NULL;
	bool is_found = false;
	GElf_Shdr header;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	while (elf && !is_found &&
	       (section = elf_nextscn(elf, section)) != NULL)
		is_found = gelf_getshdr(section, &header) &&
			   (header.sh_type == SHT_SYMTAB ||
			    header.sh_type == SHT_DYNSYM) &&
			   has_malloc(elf, section, &header);
	elf_end(elf);
	return elf && !is_found;
}

static const char *look_at_file(int fd, struct sp_served_room *room)
{
	const char *name = NULL;

	fd = fd < 0 ? fd : sp_served_keep(fd, room);
	if (fd < 0)
		return NULL;
	if (is_hidden(fd))
		name = sp_brought_find(fd);
	close(fd);
	return name;
}

bool sp_brought_by_process(uint64_t pid, char text[SP_BROUGHT_TEXT])
{
	struct sp_served_room room_left = sp_served_room();
	const int dir = sp_proc_open(pid);
	struct sp_proc_lines maps = {
		.in = dir < 0 ? NULL : sp_proc_stream(dir, "maps")};
	const int exe = sp_mapped_open_exe(pid);
	const char *name = look_at_file(exe, &room_left);
	struct sp_proc_map map;
	unsigned int n = 0;

	if (name)
		snprintf(text, SP_BROUGHT_TEXT, "%s in the executable", name);
	while (!name && n < FILES_MAX && sp_proc_next_map(&maps, &map)) {
		if (!map.file.inode || map.offset || *map.path != '/' ||
		    is_of_system(map.path))
			continue;
		n++;
		name = look_at_file(sp_mapped_open(dir, &map, false),
				    &room_left);
		if (name)
			snprintf(text, SP_BROUGHT_TEXT, "%s in %s", name,
				 strrchr(map.path, '/') + 1);
	}
	sp_proc_end_lines(&maps);
	if (dir >= 0)
		close(dir);
	return name;
}
