/* SPDX-License-Identifier: MIT */
/* An allocator, for below the profiler, that fails every third request of a
 * thread once the program says so. */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

int hazard_failing;

static __thread unsigned int requests;

/* The next definition, or the program would not be under test. */
static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static int fails(void)
{
	if (!hazard_failing || ++requests % 3)
		return 0;
	errno = ENOMEM;
	return 1;
}

#define FORWARD(ret, name, params, args)                                       \
	ret name params;                                                       \
	ret name params                                                        \
	{                                                                      \
		static ret(*real) params;                                      \
		void *address;                                                 \
                                                                               \
		if (!real) {                                                   \
			address = next(#name);                                 \
			memcpy(&real, &address, sizeof(address));              \
		}                                                              \
		return fails() ? NULL : real args;                             \
	}

FORWARD(void *, malloc, (size_t n), (n))
FORWARD(void *, calloc, (size_t n, size_t size), (n, size))
FORWARD(void *, realloc, (void *p, size_t n), (p, n))
FORWARD(void *, aligned_alloc, (size_t alignment, size_t n), (alignment, n))
