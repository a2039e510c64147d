/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/sanitized.h"

/*
 * From now on the program can have `bytes` more than it has: what asks for more
 * gets NULL.  Sanitizers need terabytes for themselves: no limit there, and
 * their own check of huge requests.
 */
static inline void memory_limit(uint64_t bytes)
{
#if !SP_SANITIZED
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	struct rlimit limit;

	if (!f || fscanf(f, "%lu", &pages) != 1 ||
	    getrlimit(RLIMIT_AS, &limit) != 0) {
		perror("memory_limit");
		exit(1);
	}
	fclose(f);
	limit.rlim_cur = pages * (uint64_t)sysconf(_SC_PAGESIZE) + bytes;
	if (setrlimit(RLIMIT_AS, &limit) != 0) {
		perror("RLIMIT_AS");
		exit(1);
	}
#else
	(void)bytes;
#endif
}
