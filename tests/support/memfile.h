/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * A file in memory that code under test opens by name.  Whatever fails ends
 * the program with a message.
 */
struct memfile {
	int fd;
	char path[32]; /* while it is open */
};

void memfile_open(struct memfile *file);
void memfile_close(struct memfile *file);

void memfile_write(const struct memfile *file, uint64_t offset,
		   const void *data, size_t n);
/* Cut, or extend with a hole. */
void memfile_resize(const struct memfile *file, uint64_t bytes);

/* Take on the contents of the file at `path`; returns their size. */
uint64_t memfile_copy(const struct memfile *file, const char *path);

/* All of the file, to be freed. */
uint8_t *memfile_read(const struct memfile *file, uint64_t *ret_bytes);
