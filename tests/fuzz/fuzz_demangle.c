/* SPDX-License-Identifier: MIT */
/* A linker name: no crash, no endless work, nothing longer than promised. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/target.h"
#include "symbols/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1);
	char *plain;

	FUZZ_ASSERT(name);
	memcpy(name, data, size);
	name[size] = '\0';
	plain = sp_demangle(name);
	FUZZ_ASSERT(!plain || strlen(plain) <= SP_DEMANGLED_MAX);
	FUZZ_ASSERT(!plain || strlen(name) <= SP_MANGLED_MAX);
	free(plain);
	free(name);
	return 0;
}
