/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "format/record.h"
#include "read/reader.h"

/* Every sample of a profile file, in the order of their ids. */
struct sample_list {
	struct sp_record_sample *at;
	size_t n;
	struct sp_file_header header;
	struct sp_status status;
	struct sp_reader_damage damage;
};

/* Read the file; free list.at.  A file that cannot be read ends the program. */
struct sample_list sample_list_read(const char *path);
