/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"
#include "format/layout.h"

/*
 * The bytes of a profile file, as it is or compressed with zstd, which is told
 * by its first bytes and not by its name.  A compressed file is unpacked as it
 * is read, so that memory is bounded by zstd's window (at most 128 MiB) and
 * time by SP_SOURCE_UNPACKED_MAX, whatever the file says.
 */
#define SP_SOURCE_UNPACKED_MAX (64ull << 30)

struct sp_source {
	int fd;
	const char *path; /* borrowed */
	struct stat stat;
	/* Of the file, unpacked.  Before the end of a compressed file it is
	 * what that promises, or UINT64_MAX. */
	uint64_t bytes;
	struct sp_source_unpacker *unpacker; /* NULL: not compressed */
};

/* 0; negative errno and *err if it cannot be opened or is no regular file.
 * Close it in either case. */
int sp_source_open(struct sp_source *source, const char *path,
		   struct sp_error *err);

/* From then on they were found in a directory, and not named by the user: who
 * serves one (FUSE) is waited for as base/patience.h says. */
void sp_source_are_found(void);

/*
 * Open a file now.  From then on sp_source_open() of that path, which is
 * borrowed, takes it, whatever has the name and whatever rights are left.  One
 * file at a time.  The descriptor, which stays open, and *ret; or as
 * sp_source_open().
 */
int sp_source_hold(const char *path, struct stat *ret, struct sp_error *err);

/*
 * Up to n bytes at `offset`; fewer only at the end.  The number, or a negative
 * errno: -EBADMSG damaged within a compressed file, -EFBIG one that is longer
 * than the limit.  In a compressed file a read lies within one chunk and never
 * in a chunk before that of the last read.
 */
ssize_t sp_source_read(struct sp_source *source, void *buf, size_t n,
		       uint64_t offset);

/* Where there may be something at or after `offset`; UINT64_MAX: nowhere. */
uint64_t sp_source_next_data(const struct sp_source *source, uint64_t offset);

/* How much of the file was read when `offset` has been, of *ret_total bytes: of
 * a compressed file, of what is compressed. */
uint64_t sp_source_progress(const struct sp_source *source, uint64_t offset,
			    uint64_t *ret_total);

/* What code of sp_source_read() means, for people. */
const char *sp_source_strerror(int code);

void sp_source_close(struct sp_source *source);
