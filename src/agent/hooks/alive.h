/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How many bytes are allocated now, as the allocator below counts them, which
 * may be in blocks as large as it rounds them to; false: it has no such count.
 * glibc's is asked for beforehand, from outside, since its locks may be hard to
 * get. Takes the locks of others.  Context: cold, in a thread that is in no
 * allocator. */
bool sp_alive_bytes(bool knows_glibc, uint64_t glibc_bytes, uint64_t *ret);
