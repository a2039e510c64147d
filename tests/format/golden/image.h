/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/encode.h"

/*
 * The golden profile under construction: one at a time, in memory, with fixed
 * ids, times and settings.  What goes wrong ends the program.
 */
#define GOLDEN_PERIOD 4096u

/* An empty file with SP_HEADER_* flags. */
void image_begin(uint32_t flags);

/* One copy, sealed; a torn one has a wrong check. */
void image_put_status(struct sp_status s, bool is_torn);
void image_put_window(struct sp_window w, bool is_torn);
void image_put_slot(size_t slot, struct sp_slot_copy c, bool is_torn);

/* Records go here from now on; index: sp_format_chunk_index(). */
void image_begin_chunk(uint64_t index, uint32_t kind);

/* Without its commit mark a record is unfinished. */
void image_put_record(const struct sp_record *r, bool is_finished);
void image_put_unknown_record(uint8_t type, const void *payload, size_t n);

void image_put_info(const char *key, const char *value, size_t value_bytes);
/* The module with id 1 is the executable. */
void image_put_module(uint64_t id, uint64_t start_pc, uint64_t span,
		      uint64_t bias, size_t build_id_bytes, const char *path);
void image_put_stack(uint64_t id, uint64_t flags,
		     const struct sp_record_frame *frames, size_t n);
void image_put_thread(uint64_t index, uint64_t tid, const char *name);
/* Its name, which may be NULL, says how long it is. */
void image_put_mark(struct sp_record_mark mark);
/* 1000 bytes of which the last was hit, from stack 1 in thread 1. */
void image_put_sample(uint64_t id, uint64_t time_ns, uint64_t period_bytes,
		      bool is_again);

/* A copy in a chunk of class totals, at the place of its slot; its sums and its
 * check are filled in.  A torn one has other classes than its sums say. */
void image_put_classes(uint64_t chunk, struct sp_class_page page, bool is_torn);

/* Store it as directory/name, without the zeros at its end. */
void image_write(const char *directory, const char *name);
