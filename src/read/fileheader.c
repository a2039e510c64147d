/* SPDX-License-Identifier: MIT */
#include "read/fileheader.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "format/record.h"

int sp_fileheader_check(const struct sp_file_header *h, const char *path,
			struct sp_error *err)
{
	if (memcmp(h->magic, SP_FORMAT_MAGIC, SP_FORMAT_MAGIC_BYTES) != 0)
		return sp_error_set_at(err, -EINVAL, path, 0, "magic",
				       "this is not a sampleprof profile");
	if (h->version != SP_FORMAT_VERSION)
		return sp_error_set_at(
			err, -EINVAL, path, 8, "version",
			"format version %" PRIu32
			", but this sampleprof-report reads version %d; use "
			"the one that came with the recording library",
			h->version, SP_FORMAT_VERSION);
	if (h->header_bytes != sizeof(*h))
		return sp_error_set_at(err, -EINVAL, path, 12, "header size",
				       "%" PRIu32
				       " instead of %zu: the file is "
				       "damaged; record again",
				       h->header_bytes, sizeof(*h));
	if (h->check !=
	    sp_format_check(h->file_id, SP_CHECK_HEADER, h, sizeof(*h)))
		return sp_error_set_at(err, -EINVAL, path,
				       offsetof(struct sp_file_header, check),
				       "header check",
				       "the header is damaged; record again");
	if (h->flags & ~SP_HEADER_KNOWN_FLAGS)
		return sp_error_set_at(err, -EINVAL, path, 20, "flags",
				       "0x%" PRIx32
				       ": recorded by a newer library; use the "
				       "sampleprof-report that came with it",
				       h->flags);
	if (h->chunk_bytes != SP_FORMAT_CHUNK_BYTES)
		return sp_error_set_at(err, -EINVAL, path, 16, "chunk size",
				       "a layout that version %d does not have",
				       SP_FORMAT_VERSION);
	if (h->period_bytes == 0 || h->period_bytes > SP_FORMAT_PERIOD_MAX)
		return sp_error_set_at(err, -EINVAL, path, 56, "period",
				       "%" PRIu64 " is not in 1..2^40",
				       h->period_bytes);
	return 0;
}
