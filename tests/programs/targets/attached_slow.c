/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program that is attached to: the answer where the loader is,
 * which the library wants when it changes objects, takes until the file
 * WAITS_FOR is there.  If the file STOPS_BY is there, the process is stopped
 * when that call ends.
 */
#include <dlfcn.h>
#include <elf.h>
#include <signal.h>
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
	file = getenv("STOPS_BY");
	if (type == AT_BASE && file && access(file, F_OK) == 0)
		kill(getpid(), SIGSTOP);
	if (!next)
		next = (ask_fn *)(uintptr_t)dlsym(RTLD_NEXT, "getauxval");
	return next(type);
}
