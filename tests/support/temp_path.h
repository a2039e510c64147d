/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The name of a new, empty file in $TMPDIR or /tmp, of at most `n` bytes, for
 * the caller to unlink.  0, or -1 if there is none. */
static inline int temp_path_make(char *path, size_t n)
{
	const char *tmp = getenv("TMPDIR");
	int fd;

	snprintf(path, n, "%.90s/sampleprof-test-XXXXXX",
		 tmp && tmp[0] ? tmp : "/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}
