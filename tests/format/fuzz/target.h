/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Each fuzz_NAME.c defines this; libFuzzer calls it with what it makes up, and
 * replay.c with the files of a corpus. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold whatever the input is. */
#define FUZZ_ASSERT(condition)                                                 \
	do {                                                                   \
		if (!(condition))                                              \
			fuzz_fail(__FILE__, __LINE__, #condition);             \
	} while (0)

_Noreturn void fuzz_fail(const char *file, int line, const char *condition);
