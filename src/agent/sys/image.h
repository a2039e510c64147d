/* SPDX-License-Identifier: MIT */
#pragma once

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A shared library as a piece of code of our own: mapped without the loader,
 * which does not know of it, so that no other code of the process reaches it,
 * and bound to functions of ours alone.  It may be mapped several times; each
 * copy has data of its own.
 *
 * What a file says is held against its size and its segments: nothing that is
 * outside of these is read or written.  What its code does is another matter:
 * the file is as trusted as this library.
 */
#define SP_IMAGE_SEGMENTS 8u
#define SP_IMAGE_BYTES    (4ul << 20)

/* What its file says. */
struct sp_image {
	struct sp_image_segment {
		size_t offset, file_bytes; /* whole pages, and the rest */
		uintptr_t start, end;      /* addresses as it was linked */
		int protection;
	} segments[SP_IMAGE_SEGMENTS];
	unsigned int n;
	size_t bytes; /* of all, whole pages */
	struct sp_image_table {
		uintptr_t at;
		size_t bytes;
	} dynamic, tls, symbols, strings, relocations[2];
};

struct sp_image_import {
	const char *name;
	void (*to)(void);
};

/* Read the headers of an open file.  NULL, or why it is refused.  Context:
 * cold. */
const char *sp_image_read(struct sp_image *image, long fd);

/* Map it, with `more` bytes of zeros behind it: where its address 0 is, or
 * NULL.  Context: cold. */
char *sp_image_map(const struct sp_image *image, long fd, size_t more);
void sp_image_unmap(const struct sp_image *image, char *base, size_t more);

/*
 * Bind a copy that was just mapped.  An import that is not in the list (ends
 * with a NULL name) is bound to `other`, and one that may be missing to
 * nothing.  Thread-local variables are zeroed memory at `tls`, the same for all
 * threads: what __tls_get_addr is called with has that address as its first
 * word, and the offset as its second.  NULL, or why it is refused.
 * Context: sampled.
 */
const char *sp_image_bind(struct sp_image *image, char *base,
			  const struct sp_image_import *imports,
			  void (*other)(void), void *tls);

/* The function of that name; NULL: it has none.  Context: sampled, bound. */
void *sp_image_function(const struct sp_image *image, char *base,
			const char *name);

/* Its data that can be written, *ret_bytes of it; NULL: none, or something else
 * is in between. */
char *sp_image_data(const struct sp_image *image, char *base,
		    size_t *ret_bytes);
