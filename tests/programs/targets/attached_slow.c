/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program that is attached to: the answer where the loader is,
 * which the library wants when it changes objects, takes until the file
 * WAITS_FOR is there.
 */
#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

typedef unsigned long ask_fn(unsigned long type);

unsigned long getauxval(unsigned long type)
{
	static ask_fn *next;
	const char *file = getenv("WAITS_FOR");

	while (type == AT_BASE && file && access(file, F_OK) != 0)
		usleep(1000);
	if (!next)
		next = (ask_fn *)(uintptr_t)dlsym(RTLD_NEXT, "getauxval");
	return next(type);
}
