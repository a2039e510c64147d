/* SPDX-License-Identifier: MIT */
#pragma once

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

/*
 * Opening the ELF files that a profile or another ELF file names.  Such a name
 * is untrusted.  So nothing here blocks on a FIFO or on
 * who serves a file, reads a device, unpacks a
 * compressed file, or accepts a file of another build.
 */

/* Where a process serves the file (FUSE), with -ETIMEDOUT. */
#define SP_ELFFILE_UNANSWERED                                                  \
	"was not answered in time by who serves it (FUSE), or is too large "   \
	"to be copied"

/* A build id; the bytes are borrowed.  Length 0: there is none. */
struct sp_build_id {
	const uint8_t *bytes;
	size_t len;
};

/*
 * Open `path`, an executable or shared object of build id `want` (any, if its
 * length is 0).  Returns a descriptor that the caller closes, or a negative
 * errno with err->message saying why the file cannot be used: -EINVAL not a
 * regular file, -ENOEXEC not such an ELF file, -ESTALE another build, else why
 * open failed.
 */
int sp_elffile_open(const char *path, const struct sp_build_id *want,
		    struct sp_error *err);

/*
 * Open the module of build id `want` that was at `path`.  If `path` has none or
 * another one, look below each of the colon-separated `roots`:
 * ROOT/.build-id/xx/yyyy, ROOT/PATH, ROOT/NAME, and last its debug file
 * ROOT/.build-id/xx/yyyy.debug, which has names without the code.  Returns what
 * sp_elffile_open() returns, with the errors of `path`. *ret_path (freed by the
 * caller) is where it was found; NULL for `path` itself.
 */
int sp_elffile_find(const char *path, const struct sp_build_id *want,
		    const char *roots, char **ret_path, struct sp_error *err);

/*
 * The same for the object that the kernel maps into each process: that of this
 * process, if it has the build id `want`.  -ENOENT: it has another one.
 */
#define SP_ELFFILE_VDSO "[vdso]"
int sp_elffile_open_vdso(const struct sp_build_id *want, struct sp_error *err);

/* A part of a file that is mapped as code: whole pages around it. */
struct sp_elf_segment {
	uint64_t address; /* virtual, before relocation */
	uint64_t bytes;
	uint64_t offset; /* in the file */
};

/* The first `max` such segments of a file, opened as by sp_elffile_open().
 * Returns the number in `out`, or negative errno. */
int sp_elffile_code(const char *path, const struct sp_build_id *want,
		    struct sp_elf_segment *out, size_t max);

/* What is needed to find the separate debug file of an ELF file. */
struct sp_debug_query {
	const char *main_path;        /* the ELF file, as it was opened */
	const struct stat *main_stat; /* and its identity */
	struct sp_build_id build_id;  /* of the ELF file */
	const char *link_name;        /* its .gnu_debuglink, or NULL */
	uint32_t link_crc;            /* CRC-32 that the link asks for */
	const char *roots;            /* colon-separated directories */
};

/*
 * Find it: by build id below each root (ROOT/.build-id/xx/yyyy.debug), then by
 * link name beside the ELF file, in .debug there, and below each root under
 * the directory of the ELF file.  A file found by name must have the build id,
 * or the CRC if there is no build id.  Returns a descriptor that the caller
 * closes and *ret_path (freed by the caller), or -ENOENT or -ENOMEM.
 */
int sp_elffile_find_debug(const struct sp_debug_query *query, char **ret_path);

/*
 * Find the file of build id `id` that debug files share (sp_debugaltlink), by
 * the name in their link: ROOT/.build-id/xx/yyyy.debug, or ROOT/.dwz/REST if
 * `name` is DIRECTORY/.dwz/REST, or a relative `name` in the directory of
 * `beside`, the file with the link.  Returns a descriptor that the caller
 * closes, or -ENOENT or -ENOMEM.
 */
int sp_elffile_find_debugaltlink(const struct sp_build_id *id, const char *name,
				 const char *roots, const char *beside);

/* Of several names for one address: global (2), weak (1), then local (0). */
uint16_t sp_elffile_binding_rank(const GElf_Sym *symbol);

/* Is it the name of code, in its section? */
bool sp_elffile_is_code(const GElf_Sym *symbol, const GElf_Shdr *section);

/* Has it a symbol table, not only the one that others use? */
bool sp_elffile_has_all_symbols(Elf *elf);
