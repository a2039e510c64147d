/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_FILE_MAPPING_H
#define SP_AGENT_FILE_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/file/outfile.h"

/*
 * The chunks of the profile file in memory: mapped in windows as they are
 * needed, never in a forked child.
 */
#define SP_MAPPING_WINDOW_CHUNKS 16u
#define SP_MAPPING_WINDOWS_MAX   4096u /* 4 GiB */

/* Changes in a forked child: tells who has something of which file. */
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

/* Chunk 0, or NULL in a child that was forked in here. */
uint8_t *sp_mapping_base(void);

/* Chunk n, which is in the file; NULL: it cannot be mapped.  Context: sampled.
 */
uint8_t *sp_mapping_chunk(uint64_t n);

/* May `bytes` at `at`, which are populated, be stored to now?  Context:
 * sampled. */
bool sp_mapping_hold(uint8_t *at, uint64_t bytes);

#endif
