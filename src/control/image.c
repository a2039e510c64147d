/* SPDX-License-Identifier: MIT */
#include "control/image.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/image_inner.h"
#include "control/library.h"
#include "base/proc.h"
#include "base/served.h"
#include "control/dynsym.h"
#include "control/mapped.h"
#include "control/target.h"
#include "format/attach.h"

#define VDSO_BYTES 8192u /* its code is in these */

/* ---- files ---- */

/* The mapped file itself or, if it is our library, which may be a memory file
 * there, that of our own path. */
static int open_mapped_file(const struct sp_image *image, int dir,
			    const struct sp_proc_map *m,
			    struct sp_served_room *room)
{
	int fd = sp_mapped_open(dir, m, false);
	const int r = fd < 0 ? 0 : sp_mapped_check_elf(fd);

	if (r < 0) {
		close(fd);
		return r;
	}
	if (fd >= 0)
		fd = sp_served_keep(fd, room);
	return fd >= 0 || fd == -ETIMEDOUT
		       ? fd
		       : sp_library_open_same(image->pid, m->start, m->path);
}

/* Only the mapping of its first bytes gives the start of an object. */
static int report_mapping(struct sp_image *image, int dir,
			  const struct sp_proc_map *m,
			  struct sp_served_room *room, struct sp_error *err)
{
	int fd = m->offset ? -1 : open_mapped_file(image, dir, m, room);

	if (fd == -ETIMEDOUT)
		return sp_target_explain_silence((uint64_t)image->pid, m->path,
						 err);
	if (fd >= 0 && !dwfl_report_elf(image->dwfl, m->path, m->path, fd,
					m->start, false))
		close(fd);
	return 0;
}

static int report_mappings(struct sp_image *image, struct sp_error *err)
{
	const int dir = sp_proc_open((uint64_t)image->pid);
	struct sp_proc_lines l = {.in = dir < 0 ? NULL
						: sp_proc_stream(dir, "maps")};
	int r = l.in ? 0 : dir < 0 ? dir : -errno;
	struct sp_served_room room_left = sp_served_room();
	struct sp_proc_map mapping;

	if (r < 0)
		sp_error_set(err, r, NULL,
			     "the mappings of process %d cannot be read: %s",
			     image->pid, strerror(-r));
	dwfl_report_begin(image->dwfl);
	while (r == 0 && sp_proc_next_map(&l, &mapping))
		if (mapping.file.inode)
			r = report_mapping(image, dir, &mapping, &room_left,
					   err);
	dwfl_report_end(image->dwfl, NULL, NULL);
	sp_proc_end_lines(&l);
	if (dir >= 0)
		close(dir);
	return r;
}

/* ---- symbols ---- */

/* The symbol of that name and type that the module (may be NULL) exports. */
static bool find_symbol(Dwfl_Module *mod, const char *wanted, int type,
			GElf_Sym *ret, GElf_Addr *ret_bias)
{
	Elf *elf = mod ? dwfl_module_getelf(mod, ret_bias) : NULL;

	return elf && sp_dynsym_find(elf, wanted, type, ret);
}

bool sp_image_function(Dwfl_Module *mod, const char *wanted,
		       struct sp_image_range *ret)
{
	GElf_Addr bias;
	GElf_Sym symbol;

	if (!find_symbol(mod, wanted, STT_FUNC, &symbol, &bias))
		return false;
	ret->start = symbol.st_value + bias;
	ret->end = ret->start + symbol.st_size;
	return true;
}

uint64_t sp_image_libc(const struct sp_image *image, const char *name)
{
	struct sp_image_range range;

	for (size_t i = 0; i < image->n_libc; i++)
		if (sp_image_function(image->libc[i], name, &range))
			return range.start;
	return 0;
}

bool sp_image_libc_distance(const struct sp_image *image, const char *from,
			    const char *to, uint64_t *ret)
{
	GElf_Addr bias;
	GElf_Sym a, b;

	for (size_t i = 0; i < image->n_libc; i++)
		if (find_symbol(image->libc[i], from, STT_TLS, &a, &bias) &&
		    find_symbol(image->libc[i], to, STT_TLS, &b, &bias)) {
			*ret = b.st_value - a.st_value;
			return true;
		}
	return false;
}

uint64_t sp_image_ours(const struct sp_image *image, const char *name)
{
	struct sp_image_range range;

	return sp_image_function(image->ours, name, &range) ? range.start : 0;
}

uint64_t sp_image_our_object(const struct sp_image *image, const char *name)
{
	GElf_Addr bias;
	GElf_Sym symbol;

	return find_symbol(image->ours, name, STT_OBJECT, &symbol, &bias)
		       ? symbol.st_value + bias
		       : 0;
}

/* The value of an entry of the auxiliary vector; 0: there is none. */
static uint64_t read_auxiliary_vector(pid_t pid, uint64_t type)
{
	char path[64];
	uint64_t pair[2], value = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	f = fopen(path, "re");
	while (f && fread(pair, sizeof(pair), 1, f) == 1)
		if (pair[0] == type)
			value = pair[1];
	if (f)
		fclose(f);
	return value;
}

/* The vDSO is code that the kernel maps into every process. */
static uint64_t find_in_vdso(const struct sp_image *image, const void *bytes,
			     size_t n)
{
	const uint64_t start =
		read_auxiliary_vector(image->pid, AT_SYSINFO_EHDR);
	unsigned char all[VDSO_BYTES];
	const unsigned char *found;
	size_t there = start ? sizeof(all) : 0;

	while (there && !sp_tracee_read(image->pid, start, all, there))
		there /= 2;
	found = there ? memmem(all, there, bytes, n) : NULL;
	return found ? start + (uint64_t)(found - all) : 0;
}

static uint64_t find_in_module(Dwfl_Module *mod, const void *bytes, size_t n)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(mod, &bias);
	Elf_Scn *section = NULL;

	while (elf && (section = elf_nextscn(elf, section)) != NULL) {
		GElf_Shdr header;
		const unsigned char *found;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) ||
		    !(header.sh_flags & SHF_EXECINSTR))
			continue;
		data = elf_getdata(section, NULL);
		if (!data || !data->d_buf)
			continue;
		found = memmem(data->d_buf, data->d_size, bytes, n);
		if (found)
			return header.sh_addr + bias +
			       (uint64_t)(found -
					  (const unsigned char *)data->d_buf);
	}
	return 0;
}

uint64_t sp_image_find_code(const struct sp_image *image, const void *bytes,
			    size_t n)
{
	uint64_t found = 0;

	for (size_t i = 0; i < image->n_libc && !found; i++)
		found = find_in_module(image->libc[i], bytes, n);
	return found ? found : find_in_vdso(image, bytes, n);
}

/* ---- kinds of modules ---- */

/* The name by which others need it (DT_SONAME), or NULL. */
static const char *object_name(Dwfl_Module *mod)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(mod, &bias);
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while (elf && (section = elf_nextscn(elf, section)) != NULL) {
		Elf_Data *data;
		GElf_Dyn entry;

		if (!gelf_getshdr(section, &header) ||
		    header.sh_type != SHT_DYNAMIC)
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 0; data && gelf_getdyn(data, i, &entry); i++)
			if (entry.d_tag == DT_SONAME)
				return elf_strptr(elf, header.sh_link,
						  entry.d_un.d_val);
	}
	return NULL;
}

/* Of glibc before 2.34; later ones have them, empty, for older programs. */
static bool is_part_of_libc(Dwfl_Module *mod)
{
	const char *name = object_name(mod);

	return name && (strcmp(name, "libpthread.so.0") == 0 ||
			strcmp(name, "libdl.so.2") == 0);
}

/* Its main part is the first of them. */
static void add_libc(struct sp_image *image, Dwfl_Module *mod, bool is_main)
{
	const size_t i = image->n_libc;

	if (i == sizeof(image->libc) / sizeof(*image->libc))
		return;
	image->n_libc++;
	image->libc[i] = mod;
	if (is_main && i) {
		image->libc[i] = image->libc[0];
		image->libc[0] = mod;
	}
}

static int classify_module(Dwfl_Module *mod, void **data, const char *name,
			   Dwarf_Addr start, void *arg)
{
	struct sp_image *image = arg;
	struct sp_image_range range;
	enum sp_image_kind kind = OTHER;
	bool is_main;

	(void)start;
	(void)name;
	if (sp_image_function(mod, SP_ATTACH_FUNCTION, &range)) {
		kind = OURS;
		image->ours = mod;
	} else if (mod == image->loader) {
		kind = LOADER;
	} else if ((is_main = sp_image_function(mod, "gnu_get_libc_version",
						&range)) ||
		   is_part_of_libc(mod)) {
		kind = LIBC;
		add_libc(image, mod, is_main);
	} else if (sp_image_function(mod, "malloc", &range)) {
		image->has_allocator = true;
		image->has_own_malloc |= mod == image->executable;
		if (mod != image->executable)
			kind = ALLOCATOR;
	}
	*data = (void *)(uintptr_t)kind;
	return DWARF_CB_OK;
}

bool sp_image_has_loader(const struct sp_image *image)
{
	return image->loader != NULL;
}

bool sp_image_has_glibc(const struct sp_image *image)
{
	return sp_image_libc(image, "gnu_get_libc_version") != 0;
}

bool sp_image_has_own_malloc(const struct sp_image *image)
{
	return image->has_own_malloc;
}

/* What the library looks for, too (agent/divert/find.c). */
bool sp_image_has_symbols(const struct sp_image *image)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(image->executable, &bias);
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while (elf && (section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &header) &&
		    header.sh_type == SHT_SYMTAB)
			return true;
	return false;
}

bool sp_image_has_allocator(const struct sp_image *image)
{
	return image->has_allocator;
}

/* ---- reading an image ---- */

/* Neither debug files nor files by name are wanted: all ELF files were given to
 * libdwfl as open descriptors. */
static int find_debuginfo(Dwfl_Module *mod, void **data, const char *name,
			  Dwarf_Addr base, const char *file, const char *link,
			  GElf_Word crc, char **ret)
{
	(void)mod;
	(void)data;
	(void)name;
	(void)base;
	(void)file;
	(void)link;
	(void)crc;
	(void)ret;
	return -1;
}

static int find_elf(Dwfl_Module *mod, void **data, const char *name,
		    Dwarf_Addr base, char **file, Elf **elf)
{
	(void)mod;
	(void)data;
	(void)name;
	(void)base;
	(void)file;
	(void)elf;
	return -1;
}

/* libdwfl reads unwind tables when they are first used.  Read them now, so that
 * no thread is stopped meanwhile. */
static int read_module_cfi(Dwfl_Module *mod, void **data, const char *name,
			   Dwarf_Addr start, void *arg)
{
	Dwarf_Addr bias;

	(void)data;
	(void)name;
	(void)start;
	(void)arg;
	dwfl_module_eh_cfi(mod, &bias);
	return DWARF_CB_OK;
}

static int read_image(struct sp_image *image, struct sp_error *err)
{
	GElf_Addr bias;
	int r = report_mappings(image, err);

	if (r < 0)
		return r;
	image->executable = dwfl_addrmodule(
		image->dwfl, read_auxiliary_vector(image->pid, AT_PHDR));
	image->loader = dwfl_addrmodule(
		image->dwfl, read_auxiliary_vector(image->pid, AT_BASE));
	dwfl_getmodules(image->dwfl, classify_module, image, 0);
	dwfl_getmodules(image->dwfl, read_module_cfi, NULL, 0);
	if (!image->executable || !dwfl_module_getelf(image->executable, &bias))
		return sp_error_set(err, -ENOEXEC, NULL,
				    "the executable of process %d cannot be "
				    "read: if its file was replaced or "
				    "deleted, run as root",
				    image->pid);
	if (!sp_image_prepare_stacks(image))
		return sp_error_set(err, -ENOEXEC, NULL,
				    "the stacks of process %d cannot be read: "
				    "%s",
				    image->pid, dwfl_errmsg(-1));
	return 0;
}

int sp_image_open(pid_t pid, struct sp_image **ret, struct sp_error *err)
{
	struct sp_image *image = calloc(1, sizeof(*image));
	const pid_t thread = sp_proc_thread((uint64_t)pid);
	int r;

	if (!image)
		return sp_error_set(err, -ENOMEM, NULL, "out of memory");
	image->pid = thread > 0 ? thread : pid;
	image->callbacks.find_elf = find_elf;
	image->callbacks.find_debuginfo = find_debuginfo;
	image->dwfl = dwfl_begin(&image->callbacks);
	r = image->dwfl ? read_image(image, err)
			: sp_error_set(err, -ENOMEM, NULL, "out of memory");
	if (r < 0) {
		sp_image_close(image);
		image = NULL;
	}
	*ret = image;
	return r;
}

void sp_image_close(struct sp_image *image)
{
	if (!image)
		return;
	if (image->dwfl)
		dwfl_end(image->dwfl);
	free(image);
}
