/* SPDX-License-Identifier: MIT */
/*
 * embeds LIBRARY SCRIPT ROUNDS: runs the script in the interpreter that the
 * library is, loaded anew each time, where it was not before.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Keep what comes next from the addresses of the library. */
static void take_place_of(void *object)
{
	const size_t page = 4096;
	char *at = (char *)((size_t)object & ~(page - 1));

	mmap(at, page, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static int run(const char *library, const char *text)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	void (*begin)(int);
	int (*simple)(const char *, void *), (*end)(void);
	void *inside;

	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	begin = (void (*)(int))dlsym(handle, "Py_InitializeEx");
	simple = (int (*)(const char *, void *))dlsym(
		handle, "PyRun_SimpleStringFlags");
	end = (int (*)(void))dlsym(handle, "Py_FinalizeEx");
	inside = dlsym(handle, "PyCode_Type");
	*(int *)dlsym(handle, "Py_NoSiteFlag") = 1;
	*(int *)dlsym(handle, "Py_IsolatedFlag") = 1;
	begin(0);
	if (simple(text, NULL) || end() || dlclose(handle))
		return 1;
	take_place_of(inside);
	return 0;
}

int main(int argc, char **argv)
{
	const int rounds = argc > 3 ? atoi(argv[3]) : 0;

	for (int i = 0; i < rounds; i++)
		if (run(argv[1], argv[2]))
			return 1;
	return rounds < 1;
}
