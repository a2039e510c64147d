/* SPDX-License-Identifier: MIT */
#pragma once

#include <unistd.h>

#include "base/patience.h"
#include "support/load_profile.h"
#include "support/memfile.h"
#include "support/memory_limit.h"
#include "support/test.h"

/* The one file in memory of a test program: its group's set-up opens it, and
 * its end closes it. */
static struct memfile one_file;

static inline int one_file_open(void **state)
{
	(void)state;
	memfile_open(&one_file);
	return 0;
}

static inline int one_file_close(void **state)
{
	(void)state;
	memfile_close(&one_file);
	return 0;
}

/* The same for files that were forged: little memory and no waiting. */
static inline int one_file_open_limited(void **state)
{
	one_file_open(state);
	/* The child that opens what a profile names is there before. */
	sp_patience_begin();
	memory_limit(64u << 20);
	alarm(3 * HUNG_S); /* of all tests of the file */
	return 0;
}

/* The profile in a copy of the file at `path` that is cut or extended. */
static inline struct sp_profile *one_file_load(const char *path,
					       uint64_t length)
{
	memfile_copy(&one_file, path);
	memfile_resize(&one_file, length);
	return load_profile(one_file.path);
}
