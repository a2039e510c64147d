/* SPDX-License-Identifier: MIT */
/*
 * The least that a preloaded library can do: each function is endbr64 and a
 * jump through a pointer, as the entry of libsampleprof.so would be if it did
 * nothing.  What the profiler costs is measured against this.
 *
 * The pointers lead to the look-up until the first call of any function.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* FUNCTION(name, return type, (parameters), (arguments)) */
#define FUNCTIONS                                                              \
	FUNCTION(malloc, void *, (size_t n), (n))                              \
	FUNCTION(calloc, void *, (size_t n, size_t size), (n, size))           \
	FUNCTION(realloc, void *, (void *p, size_t n), (p, n))                 \
	FUNCTION(reallocarray, void *, (void *p, size_t n, size_t size),       \
		 (p, n, size))                                                 \
	FUNCTION(free, void, (void *p), (p))                                   \
	FUNCTION(memalign, void *, (size_t alignment, size_t n),               \
		 (alignment, n))                                               \
	FUNCTION(posix_memalign, int,                                          \
		 (void **ret, size_t alignment, size_t n),                     \
		 (ret, alignment, n))                                          \
	FUNCTION(aligned_alloc, void *, (size_t alignment, size_t n),          \
		 (alignment, n))                                               \
	FUNCTION(valloc, void *, (size_t n), (n))                              \
	FUNCTION(pvalloc, void *, (size_t n), (n))                             \
	FUNCTION(malloc_usable_size, size_t, (void *p), (p))

/* C++: programs without it do not have them. */
#define OPTIONAL_FUNCTIONS                                                     \
	FUNCTION(_Znwm, void *, (size_t n), (n))                               \
	FUNCTION(_ZdlPv, void, (void *p), (p))

static void resolve(void);

#define FUNCTION(name, ret, params, args)                                      \
	ret name params;                                                       \
	static ret first_##name params;
FUNCTIONS
OPTIONAL_FUNCTIONS
#undef FUNCTION

static struct {
#define FUNCTION(name, ret, params, args) ret(*name) params;
	FUNCTIONS
	OPTIONAL_FUNCTIONS
#undef FUNCTION
} real = {
#define FUNCTION(name, ret, params, args) first_##name,
	FUNCTIONS OPTIONAL_FUNCTIONS
#undef FUNCTION
};

#define FUNCTION(name, ret, params, args)                                      \
	static ret first_##name params                                         \
	{                                                                      \
		resolve();                                                     \
		return real.name args;                                         \
	}                                                                      \
	EXPORT ret name params                                                 \
	{                                                                      \
		return real.name args;                                         \
	}
FUNCTIONS
OPTIONAL_FUNCTIONS
#undef FUNCTION

static void look_up(void *pointer, const char *name, int is_optional)
{
	static const char message[] = "passthrough: a function is missing\n";
	void *address = dlsym(RTLD_NEXT, name);

	if (!address && !is_optional) {
		if (write(2, message, sizeof(message) - 1) < 0)
			_exit(126);
		_exit(127);
	}
	memcpy(pointer, &address, sizeof(address));
}

static void resolve(void)
{
#define FUNCTION(name, ret, params, args) look_up(&real.name, #name, 0);
	FUNCTIONS
#undef FUNCTION
#define FUNCTION(name, ret, params, args) look_up(&real.name, #name, 1);
	OPTIONAL_FUNCTIONS
#undef FUNCTION
}
