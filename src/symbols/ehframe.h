/* SPDX-License-Identifier: MIT */
#pragma once

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where functions begin, from the search table of the unwind information
 * (.eh_frame_hdr), which stripping keeps.  Without it every call site of a
 * stripped binary would be a function of its own.
 */
struct sp_ehframe {
	const uint8_t *table; /* pairs of (start, description), 4 bytes each,
			       * relative to `base`; belongs to the Elf */
	size_t count;
	uint64_t base;
	/* The descriptions, from the base on, up to the end of its segment. */
	const uint8_t *bytes;
	size_t n_bytes;
};

/* Find the table; false (and an empty one) if there is none of the usual kind.
 */
bool sp_ehframe_open(Elf *elf, struct sp_ehframe *ret);

/* The beginning of the function around `address`, both as the file's virtual
 * addresses.  False if the one before the address does not reach so far. */
bool sp_ehframe_find(const struct sp_ehframe *ehframe, uint64_t address,
		     uint64_t *ret_start);
