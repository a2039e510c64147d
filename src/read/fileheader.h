/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "format/layout.h"

/* Does a profile begin like that, of a version that can be read?  0, or
 * negative errno and *err, which says what to do. */
int sp_fileheader_check(const struct sp_file_header *header, const char *path,
			struct sp_error *err);
