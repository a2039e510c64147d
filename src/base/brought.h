/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The allocator that an ELF file brings along, by how its messages begin:
 * "jemalloc", "mimalloc" or "tcmalloc"; NULL: none that is known.  `fd` is a
 * regular file, untrusted; of a large one the first SP_BROUGHT_BYTES of its
 * constants are read.
 */
#define SP_BROUGHT_BYTES (256ul << 20)

const char *sp_brought_find(int fd);

/* What to do about one. */
#define SP_BROUGHT_ADVICE                                                      \
	"which is not seen: keep the file's symbols, or link it dynamically"
