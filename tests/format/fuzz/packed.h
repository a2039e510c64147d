/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"

/*
 * Chunks of columns with right checks, made from what an input has: the numbers
 * of things in them are those that the columns have, unless it says otherwise.
 */
void fuzz_columns_begin(void); /* a file */
void fuzz_columns_add(unsigned int column, const uint8_t *bytes, size_t n);
void fuzz_columns_count(uint16_t n); /* say that there are so many */
void fuzz_columns_last(void);        /* this chunk of events is the last */

/* What was added, into a chunk of that kind behind its header; nothing if it is
 * of another kind than 4 to 6. */
void fuzz_columns_end(uint8_t *chunk, uint32_t kind, uint64_t file_id);

/* A packed copy of the profile says the same. */
void fuzz_check_packed(const struct sp_profile *profile);
