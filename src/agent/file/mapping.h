/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/file/outfile.h"
#include "format/layout.h"

/*
 * The chunks of the profile file in memory: mapped in windows as they are
 * needed, never in a forked child.
 *
 * The first 16 windows have 1 MiB, the next 16 have 2 MiB, and so on.  So a
 * window takes at most a sixteenth of the address space that the file has by
 * then, and the program is left enough of the mappings that a process may have.
 */
#define SP_MAPPING_FIRST_BYTES (16u * SP_FORMAT_CHUNK_BYTES)

/* Differs in a forked child: tells whether a pointer is into this file. */
uint32_t sp_mapping_generation(void);

/* Begin with the first window of a new file.  Context: cold. */
void sp_mapping_begin(const struct sp_outfile *file);

/* What is mapped is the parent's and not here: sp_writer_reset. */
void sp_mapping_reset(void);

/* Forget the first window: it was mapped by the parent of a child that was
 * forked meanwhile. */
void sp_mapping_drop(void);

/* See sp_writer_detach. */
void sp_mapping_detach(void);

/* Unmap the whole file.  Anonymous memory takes its place until the next call,
 * so that the stores of a late thread have no effect.  Context: cold. */
void sp_mapping_unmap(void);

/* Chunk 0, or NULL in a child that was forked in here. */
uint8_t *sp_mapping_base(void);

/* Chunk n, which is in the file; NULL: it cannot be mapped.  Context: sampled.
 */
uint8_t *sp_mapping_chunk(uint64_t n);

/* May `bytes` at `at`, which are populated, be stored to now?  A no is counted
 * as a loss.  Context: sampled. */
bool sp_mapping_hold(uint8_t *at, uint64_t bytes);

/* After a no: may they once more, and at the end of the process, so that the
 * file says what it lacks?  Context: sampled. */
bool sp_mapping_hold_to_say_so(uint8_t *at, uint64_t bytes, bool is_end);

/* All counts will be stored now: what was refused before does not matter. */
void sp_mapping_ask_again(void);
