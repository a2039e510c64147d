/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * A source file in memory, by lines.  Its name comes from debugging information
 * and is as untrusted as its text: only regular files of at most
 * SP_SOURCEFILE_BYTES_MAX bytes are read, and opening one never blocks.
 */
#define SP_SOURCEFILE_BYTES_MAX (16u << 20)

struct sp_sourcefile;

/*
 * Look for `name` below each of `dirs` (separated by colons; NULL: none), with
 * fewer and fewer of its leading directories; then, if `anywhere`, at the path
 * `name` itself. 0 and *ret, to be freed by the caller; or *err and -ENOENT if
 * there is none, -EFBIG, -ENOMEM, or the errno of reading.
 */
int sp_sourcefile_new(const char *name, const char *dirs, bool anywhere,
		      struct sp_sourcefile **ret, struct sp_error *err)
	__attribute__((nonnull(1)));

/* Time of its last change, in nanoseconds since 1970. */
uint64_t sp_sourcefile_changed_ns(const struct sp_sourcefile *source);

uint32_t sp_sourcefile_lines(const struct sp_sourcefile *source);

/* Line 1..sp_sourcefile_lines(), without its end; *ret_length bytes. */
const char *sp_sourcefile_line(const struct sp_sourcefile *source,
			       uint32_t line, size_t *ret_length);

void sp_sourcefile_free(struct sp_sourcefile *source);
