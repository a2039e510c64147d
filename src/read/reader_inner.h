/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "read/reader.h"

/* What reader.c and reader_copies.c share. */

static inline bool sp_reader_is_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Something at `offset` is given up, with what follows from that; `ignored`
 * bytes are not used. */
void sp_reader_note_damage(struct sp_reader *r, uint64_t offset,
			   uint64_t ignored, const char *field,
			   const char *consequence);

/* Status, window and slots; again if a writer was in the middle of them.  0, or
 * negative errno and *err. */
int sp_reader_read_totals(struct sp_reader *r, struct sp_error *err);

/* The totals by size class that the chunk in the buffer has. */
void sp_reader_read_classes(struct sp_reader *r);
