/* SPDX-License-Identifier: MIT */
/*
 * A library whose constructor runs before the profiler's, and takes away what
 * REFUSE says: a system call by its number (REFUSE=CALL:ERRNO), descriptors
 * (REFUSE=descriptors), or the environment (REFUSE=environment).
 */
#include <fcntl.h>
#include <string.h>

#include "hazard_filter.h"

static void __attribute__((constructor)) construct(void)
{
	const char *what = getenv("REFUSE");
	int call, err;

	EXPECT(what);
	if (strcmp(what, "descriptors") == 0) {
		while (open("/dev/null", O_RDONLY) >= 0)
			;
		return;
	}
	if (strcmp(what, "environment") == 0) {
		environ = NULL;
		return;
	}
	EXPECT(sscanf(what, "%d:%d", &call, &err) == 2);
	hazard_filter(&call, 1, SECCOMP_RET_ERRNO | (unsigned int)err,
		      SECCOMP_RET_ALLOW);
}
