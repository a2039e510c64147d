/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "format/encode.h"

/*
 * Version 1 of the file once more, in the plainest way: no code of src/format
 * is used, only its constants and structures.  For comparison with the encoder,
 * and to craft files that no writer would write.
 */
struct model_bytes {
	uint8_t *data;
	size_t n;
	size_t room;
};

void model_done(struct model_bytes *b);
void model_raw(struct model_bytes *b, const void *data, size_t n);
void model_varint(struct model_bytes *b, uint64_t v);
/* The difference a - b, modulo 2^64 and with its sign in the lowest bit. */
void model_difference(struct model_bytes *out, uint64_t a, uint64_t b);

/* What the records of a chunk are relative to. */
struct model_chunk {
	uint64_t hash;
	struct sp_record_sample last; /* time and thread: of either */
	uint64_t freed_id;
	bool has_stack_steps;
};

void model_chunk_begin(struct model_chunk *chunk, uint64_t file_id,
		       uint64_t index);

/* Append a record with any payload; its check is right. */
void model_record(struct model_bytes *out, struct model_chunk *chunk,
		  uint8_t type, const struct model_bytes *payload);

/* Append a record's encoding. */
void model_encode(struct model_bytes *out, struct model_chunk *chunk,
		  const struct sp_record *record);

/* Store the check of a fixed structure in its last eight bytes. */
void model_seal(uint64_t file_id, uint64_t kind, void *data, size_t bytes);

/* A whole file of `chunks` chunks: header, one status, no slots, and empty
 * record chunks.  The caller edits and writes it. */
struct model_file {
	uint64_t file_id;
	struct model_bytes bytes;
};

void model_file_init(struct model_file *file, size_t chunks,
		     uint64_t period_bytes);
struct sp_file_header *model_file_header(struct model_file *file);
struct sp_status *model_file_status(struct model_file *file, int copy);
struct sp_slot_copy *model_file_slot(struct model_file *file, size_t slot,
				     int copy);

/* Make chunk `index` one of class totals, all of them empty. */
void model_file_put_classes(struct model_file *file, size_t index);
struct sp_class_page *model_file_class_page(struct model_file *file,
					    size_t index, unsigned int pair,
					    int copy);
/* Give a class page the sums of its classes and its check. */
void model_file_seal_classes(struct model_file *file,
			     struct sp_class_page *page);

/* Seal again after an edit of the structures. */
void model_file_seal(struct model_file *file);

/* Put records into chunk `index`, behind a chunk header. */
void model_file_put(struct model_file *file, size_t index,
		    const struct model_bytes *records);

/* Store the first n bytes as `path`; 0 or -1. */
int model_file_write(const struct model_file *file, const char *path, size_t n);
