/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "format/fuzz/target.h"

void fuzz_fail(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: %s does not hold\n", file, line, condition);
	abort();
}
