/* SPDX-License-Identifier: MIT */
#include "symbols/elffile.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/patience.h"
#include "base/regular.h"

#define BUILD_ID_HEX_MAX 80

static const char *build_id_hex(const struct sp_build_id *id,
				char hex[BUILD_ID_HEX_MAX + 1])
{
	size_t i;

	hex[0] = '\0';
	for (i = 0; i < id->len && 2 * i < BUILD_ID_HEX_MAX; i++)
		snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
	return hex;
}

static bool build_id_equal(const struct sp_build_id *a,
			   const struct sp_build_id *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* dwz makes an object file. */
enum elf_kind {
	LOADED, /* a program or library, or its debug file */
	ALTERNATE,
};

static bool is_of_kind(const GElf_Ehdr *header, enum elf_kind kind)
{
	return header->e_type == ET_DYN || header->e_type == ET_EXEC ||
	       (kind == ALTERNATE && header->e_type == ET_REL);
}

static int check_elf(Elf *elf, const char *path, enum elf_kind kind,
		     const struct sp_build_id *want, struct sp_error *err)
{
	char want_hex[BUILD_ID_HEX_MAX + 1], have_hex[BUILD_ID_HEX_MAX + 1];
	struct sp_build_id have;
	const void *bytes = NULL;
	GElf_Ehdr header;
	ssize_t len;

	/* Else libdw would unpack a compressed file, of whatever size. */
	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header) ||
	    !is_of_kind(&header, kind))
		return sp_error_set(
			err, -ENOEXEC, path,
			"is not an ELF executable or shared object");
	if (!want->len)
		return 0;
	len = dwelf_elf_gnu_build_id(elf, &bytes);
	have = (struct sp_build_id){bytes, len > 0 ? (size_t)len : 0};
	if (have.len && build_id_equal(want, &have))
		return 0;
	build_id_hex(want, want_hex);
	build_id_hex(&have, have_hex);
	return sp_error_set(err, -ESTALE, path,
			    "changed since the profile was recorded "
			    "(build id %s, now %s)",
			    want_hex, have.len ? have_hex : "none");
}

static int check_file(int fd, const char *path, enum elf_kind kind,
		      const struct sp_build_id *want, struct sp_error *err)
{
	Elf *elf;
	int r;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	r = check_elf(elf, path, kind, want, err);
	elf_end(elf);
	return r;
}

static int open_kind(const char *path, enum elf_kind kind,
		     const struct sp_build_id *want, struct sp_error *err)
{
	struct stat st;
	const int fd = sp_regular_open_foreign(path, 0, INT64_MAX, &st);
	int r;

	if (fd == -EINVAL)
		return sp_error_set(err, fd, path, "is not a regular file");
	if (fd == -ETIMEDOUT)
		return sp_error_set(err, fd, path, SP_ELFFILE_UNANSWERED);
	if (fd < 0)
		return sp_error_set(err, fd, path, "cannot be opened: %s",
				    strerror(-fd));
	r = check_file(fd, path, kind, want, err);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

int sp_elffile_open(const char *path, const struct sp_build_id *want,
		    struct sp_error *err)
{
	return open_kind(path, LOADED, want, err);
}

/* The section headers are its end. */
static size_t vdso_bytes(const GElf_Ehdr *header)
{
	return header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
}

int sp_elffile_open_vdso(const struct sp_build_id *want, struct sp_error *err)
{
	const uintptr_t at = getauxval(AT_SYSINFO_EHDR);
	const GElf_Ehdr *header = (const void *)at;
	int fd = -1, r;

	if (at && want->len)
		fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return sp_error_set(err, -ENOENT, SP_ELFFILE_VDSO,
				    "cannot be read");
	r = write(fd, header, vdso_bytes(header)) == (ssize_t)vdso_bytes(header)
		    ? check_file(fd, SP_ELFFILE_VDSO, LOADED, want, err)
		    : -ENOENT;
	if (r < 0) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

/* The kernel maps pages. */
#define PAGE_BYTES 4096ull

static size_t code_segments(Elf *elf, struct sp_elf_segment *out, size_t max)
{
	size_t n_headers = 0, n = 0;

	elf_getphdrnum(elf, &n_headers);
	for (size_t i = 0; i < n_headers && n < max; i++) {
		GElf_Phdr phdr;
		uint64_t before, end;

		if (!gelf_getphdr(elf, (int)i, &phdr))
			break;
		if (phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X))
			continue;
		before = phdr.p_vaddr % PAGE_BYTES;
		end = phdr.p_vaddr + phdr.p_memsz;
		end += (PAGE_BYTES - end % PAGE_BYTES) % PAGE_BYTES;
		if (phdr.p_offset < before || end < phdr.p_vaddr)
			continue;
		out[n++] = (struct sp_elf_segment){
			.address = phdr.p_vaddr - before,
			.bytes = end - (phdr.p_vaddr - before),
			.offset = phdr.p_offset - before,
		};
	}
	return n;
}

int sp_elffile_code(const char *path, const struct sp_build_id *want,
		    struct sp_elf_segment *out, size_t max)
{
	int fd = sp_elffile_open(path, want, NULL);
	size_t n;
	Elf *elf;

	if (fd < 0)
		return fd;
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	n = elf ? code_segments(elf, out, max) : 0;
	elf_end(elf);
	close(fd);
	return (int)n;
}

static bool is_file(int fd, const struct stat *other)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == other->st_dev &&
	       st.st_ino == other->st_ino;
}

/* The CRC-32 of IEEE 802.3 over the whole file, as debug links use it. */
static bool crc_matches(int fd, uint32_t want)
{
	uint32_t table[256];
	uint8_t buf[16384];
	uint32_t crc = UINT32_MAX;
	off_t at = 0;
	ssize_t n;
	int i, bit;

	for (i = 0; i < 256; i++) {
		table[i] = (uint32_t)i;
		for (bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^
				   (table[i] & 1 ? 0xedb88320u : 0);
	}
	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		for (i = 0; i < n; i++)
			crc = crc >> 8 ^ table[(crc ^ buf[i]) & 0xff];
		at += n;
	}
	return n == 0 && ~crc == want;
}

/* `path` is consumed: returned on success, freed otherwise. */
static int try_debug(const struct sp_debug_query *query, char *path,
		     char **ret_path)
{
	int fd = sp_elffile_open(path, &query->build_id, NULL);

	if (fd >= 0 && !is_file(fd, query->main_stat) &&
	    (query->build_id.len || crc_matches(fd, query->link_crc))) {
		*ret_path = path;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	free(path);
	return -ENOENT;
}

/* One root of the list, and the rest of it in *list; NULL at its end. */
static const char *next_root(const char **list, int *ret_len)
{
	const char *root = *list;
	size_t len;

	while (*root == ':')
		root++;
	len = strcspn(root, ":");
	*list = root + len;
	*ret_len = len < PATH_MAX ? (int)len : PATH_MAX;
	return len ? root : NULL;
}

/* ROOT/.build-id/xx/yyyySUFFIX, to be freed; NULL if memory is short. */
static char *path_of_id(const char *root, int len, const struct sp_build_id *id,
			const char *suffix)
{
	char hex[BUILD_ID_HEX_MAX + 1];
	char *path;

	build_id_hex(id, hex);
	if (asprintf(&path, "%.*s/.build-id/%.2s/%s%s", len, root, hex, hex + 2,
		     suffix) < 0)
		return NULL;
	return path;
}

static char *path_below(const char *root, int len, const char *path)
{
	char *below;

	path += strspn(path, "/");
	return asprintf(&below, "%.*s/%s", len, root, path) < 0 ? NULL : below;
}

/* The places below a root where a module may be, best first. */
enum place { BY_ID, BY_PATH, BY_NAME, DEBUG_BY_ID, PLACES };

static char *path_of_module(enum place place, const char *root, int len,
			    const char *path, const struct sp_build_id *id)
{
	const char *slash = strrchr(path, '/');

	switch (place) {
	case BY_ID:
		return path_of_id(root, len, id, "");
	case DEBUG_BY_ID:
		return path_of_id(root, len, id, ".debug");
	case BY_PATH:
		/* One that leaves the root again is as good as its name. */
		if (!strstr(path, ".."))
			return path_below(root, len, path);
		/* fall through */
	default:
		return path_below(root, len, slash ? slash + 1 : path);
	}
}

int sp_elffile_find(const char *path, const struct sp_build_id *want,
		    const char *roots, char **ret_path, struct sp_error *err)
{
	int fd = sp_elffile_open(path, want, err);

	*ret_path = NULL;
	for (enum place p = BY_ID; fd < 0 && want->len > 1 && p < PLACES; p++) {
		const char *list = roots;
		const char *root;
		int len, found = -1;

		while (found < 0 && (root = next_root(&list, &len))) {
			free(*ret_path);
			*ret_path = path_of_module(p, root, len, path, want);
			if (!*ret_path)
				return -ENOMEM;
			found = sp_elffile_open(*ret_path, want, NULL);
		}
		if (found >= 0)
			return found;
	}
	free(*ret_path);
	*ret_path = NULL;
	return fd;
}

static int find_by_build_id(const struct sp_debug_query *query, char **ret_path)
{
	const char *list = query->roots;
	const char *root;
	char *path;
	int len, fd;

	if (query->build_id.len < 2)
		return -ENOENT;
	while ((root = next_root(&list, &len))) {
		path = path_of_id(root, len, &query->build_id, ".debug");
		if (!path)
			return -ENOMEM;
		fd = try_debug(query, path, ret_path);
		if (fd >= 0)
			return fd;
	}
	return -ENOENT;
}

/* `dir`, of dir_len bytes, ends in a slash. */
static int find_by_name(const struct sp_debug_query *query, const char *dir,
			int dir_len, char **ret_path)
{
	static const char *const beside[] = {"", ".debug/"};
	const char *list = query->roots;
	const char *root;
	char *path;
	int len, fd;
	size_t i;

	for (i = 0; i < 2; i++) {
		if (asprintf(&path, "%.*s%s%s", dir_len, dir, beside[i],
			     query->link_name) < 0)
			return -ENOMEM;
		fd = try_debug(query, path, ret_path);
		if (fd >= 0)
			return fd;
	}
	while ((root = next_root(&list, &len))) {
		if (asprintf(&path, "%.*s/%.*s%s", len, root, dir_len, dir,
			     query->link_name) < 0)
			return -ENOMEM;
		fd = try_debug(query, path, ret_path);
		if (fd >= 0)
			return fd;
	}
	return -ENOENT;
}

/* As realpath(), but nobody is waited for without end. */
static bool find_canonical(const char *path, char ret[PATH_MAX])
{
	const int place =
		sp_patience_open(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
	char own[32];
	ssize_t n = -1;

	snprintf(own, sizeof(own), "/proc/self/fd/%d", place);
	if (place >= 0) {
		n = readlink(own, ret, PATH_MAX - 1);
		close(place);
	}
	ret[n > 0 ? n : 0] = '\0';
	return n > 0;
}

int sp_elffile_find_debug(const struct sp_debug_query *query, char **ret_path)
{
	const char *slash;
	char canonical[PATH_MAX];
	int fd;

	fd = find_by_build_id(query, ret_path);
	if (fd >= 0 || !query->link_name || strchr(query->link_name, '/'))
		return fd;
	/* The roots mirror the file system without its symbolic links. */
	slash = find_canonical(query->main_path, canonical)
			? strrchr(canonical, '/')
			: NULL;
	return slash ? find_by_name(query, canonical,
				    (int)(slash - canonical) + 1, ret_path)
		     : -ENOENT;
}

/* `path` is freed. */
static int try_debugaltlink(char *path, const struct sp_build_id *id)
{
	int fd = path ? open_kind(path, ALTERNATE, id, NULL) : -ENOMEM;

	free(path);
	return fd;
}

/* The part of a name after its last "/.dwz/"; NULL if it leaves that directory
 * again. */
static const char *below_dwz(const char *name)
{
	const char *found = NULL;

	for (const char *at = name; (at = strstr(at, "/.dwz/")); at++)
		found = at + strlen("/.dwz/");
	return found && !strstr(found, "..") ? found : NULL;
}

static char *path_of_dwz(const char *root, int len, const char *rest)
{
	char *path;

	return asprintf(&path, "%.*s/.dwz/%s", len, root, rest) < 0 ? NULL
								    : path;
}

static char *path_beside(const char *beside, const char *name)
{
	const char *slash = strrchr(beside, '/');
	char *path;

	if (!slash)
		return strdup(name);
	return asprintf(&path, "%.*s/%s", (int)(slash - beside), beside, name) <
			       0
		       ? NULL
		       : path;
}

int sp_elffile_find_debugaltlink(const struct sp_build_id *id, const char *name,
				 const char *roots, const char *beside)
{
	const char *rest = below_dwz(name);
	const char *root;
	int len, fd;

	if (id->len < 2)
		return -ENOENT;
	while ((root = next_root(&roots, &len))) {
		fd = try_debugaltlink(path_of_id(root, len, id, ".debug"), id);
		if (fd < 0 && fd != -ENOMEM && rest)
			fd = try_debugaltlink(path_of_dwz(root, len, rest), id);
		if (fd >= 0 || fd == -ENOMEM)
			return fd;
	}
	/* Nowhere else than there. */
	if (name[0] == '/' || strstr(name, ".."))
		return -ENOENT;
	fd = try_debugaltlink(path_beside(beside, name), id);
	return fd >= 0 || fd == -ENOMEM ? fd : -ENOENT;
}

uint16_t sp_elffile_binding_rank(const GElf_Sym *symbol)
{
	switch (GELF_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
		return 2;
	case STB_WEAK:
		return 1;
	default:
		return 0;
	}
}

bool sp_elffile_is_code(const GElf_Sym *symbol, const GElf_Shdr *section)
{
	switch (GELF_ST_TYPE(symbol->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	case STT_NOTYPE:
		return section->sh_flags & SHF_EXECINSTR;
	default:
		return false;
	}
}

bool sp_elffile_has_all_symbols(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) &&
		    header.sh_type == SHT_SYMTAB)
			return true;
	return false;
}
