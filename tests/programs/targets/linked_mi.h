/* SPDX-License-Identifier: MIT */
#pragma once

/* linked.c as mimalloc has it: its own prefix, and functions that no other
 * allocator has. */
#define je_malloc         mi_malloc
#define je_memalign       mi_memalign
#define je_calloc         mi_calloc
#define je_realloc        mi_realloc
#define je_aligned_alloc  mi_aligned_alloc
#define je_posix_memalign mi_posix_memalign
#define je_free           mi_free
/* These no mimalloc has: they are seen in what they call. */
#define je_mallocx  own_mallocx
#define je_rallocx  own_rallocx
#define je_sallocx  own_sallocx
#define je_xallocx  own_xallocx
#define je_dallocx  own_dallocx
#define je_sdallocx own_sdallocx

#define MI_FUNCTIONS                                                           \
	API void *mi_malloc_aligned(size_t n, size_t alignment);               \
	API void *mi_calloc_aligned(size_t n, size_t size, size_t alignment);  \
	API void *mi_realloc_aligned(void *old, size_t n, size_t alignment);   \
	API char *mi_strdup(const char *s);                                    \
	API void *mi_zalloc(size_t n);                                         \
	API void *mi_new_n(size_t n, size_t size);                             \
	API void *mi_heap_malloc(void *heap, size_t n);                        \
	API void *mi_heap_realloc(void *heap, void *old, size_t n);            \
	API void mi_free_size(void *p, size_t n);                              \
	void *mi_malloc_aligned(size_t n, size_t alignment)                    \
	{                                                                      \
		return mi_memalign(alignment, n);                              \
	}                                                                      \
	void *mi_calloc_aligned(size_t n, size_t size, size_t alignment)       \
	{                                                                      \
		return take(alignment, n * size);                              \
	}                                                                      \
	void *mi_realloc_aligned(void *old, size_t n, size_t alignment)        \
	{                                                                      \
		(void)alignment;                                               \
		return mi_realloc(old, n);                                     \
	}                                                                      \
	char *mi_strdup(const char *s)                                         \
	{                                                                      \
		char *p = take(1, strlen(s) + 1);                              \
		return p ? strcpy(p, s) : NULL;                                \
	}                                                                      \
	void *mi_zalloc(size_t n)                                              \
	{                                                                      \
		return take(16, n);                                            \
	}                                                                      \
	void *mi_new_n(size_t n, size_t size)                                  \
	{                                                                      \
		return take(32, n * size);                                     \
	}                                                                      \
	void *mi_heap_malloc(void *heap, size_t n)                             \
	{                                                                      \
		(void)heap;                                                    \
		return take(64, n);                                            \
	}                                                                      \
	void *mi_heap_realloc(void *heap, void *old, size_t n)                 \
	{                                                                      \
		(void)heap;                                                    \
		return mi_realloc(old, n);                                     \
	}                                                                      \
	void mi_free_size(void *p, size_t n)                                   \
	{                                                                      \
		(void)n;                                                       \
		mi_free(p);                                                    \
	}

#define MI_ROUND                                                               \
	p = check(t, mi_malloc_aligned(n, 64), n);                             \
	p = check(t, mi_realloc_aligned(p, n + 7, 64), n + 7);                 \
	mi_free_size(p, n + 7);                                                \
	mi_free(check(t, mi_calloc_aligned(3, n, 32), 3 * n));                 \
	mi_free(check(t, mi_zalloc(n), n));                                    \
	mi_free(check(t, mi_new_n(2, n), 2 * n));                              \
	mi_free(check(t, mi_strdup("seven."), 7));                             \
	p = check(t, mi_heap_malloc(NULL, n), n);                              \
	mi_free(check(t, mi_heap_realloc(NULL, p, n + 3), n + 3));
