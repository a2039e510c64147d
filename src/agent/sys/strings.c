/* SPDX-License-Identifier: MIT */
/*
 * The functions of <string.h> that the library and the compiler call, once
 * more.  Sanitizers and valgrind put functions of their own in the place of
 * those of the C library.  There they take our memory, which threads hand to
 * each other in ways that no tool sees, for the program's, and report races.
 *
 * The whole library is bound to these; nobody else sees them.  This file is
 * compiled so that no loop in it becomes a call of the function that it is in.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/sys/arch.h"

#define HIDDEN __attribute__((visibility("hidden")))

/* At any address, of any type. */
#define ANY __attribute__((may_alias, aligned(1)))
typedef uint64_t ANY any_word;
typedef uint32_t ANY any_half;
typedef uint16_t ANY any_quarter;

HIDDEN void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	char *t = to;
	const char *f = from;

	sp_arch_copy_words(&t, &f, n / 8);
	if (n & 4) {
		*(any_half *)t = *(const any_half *)f;
		t += 4;
		f += 4;
	}
	if (n & 2) {
		*(any_quarter *)t = *(const any_quarter *)f;
		t += 2;
		f += 2;
	}
	if (n & 1)
		*t = *f;
	return to;
}

HIDDEN void *memmove(void *to, const void *from, size_t n)
{
	char *t = to;
	const char *f = from;

	if ((uintptr_t)t - (uintptr_t)f >= n)
		return memcpy(to, from, n);
	while (n--)
		t[n] = f[n];
	return to;
}

HIDDEN void *memset(void *to, int byte, size_t n)
{
	char *t = to;

	sp_arch_fill_words(&t, 0x0101010101010101u * (unsigned char)byte,
			   n / 8);
	for (n %= 8; n; n--)
		*t++ = (char)byte;
	return to;
}

HIDDEN int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *p = a, *q = b;

	while (n >= 8 && *(const any_word *)p == *(const any_word *)q) {
		p += 8;
		q += 8;
		n -= 8;
	}
	while (n && *p == *q) {
		p++;
		q++;
		n--;
	}
	return n ? *p - *q : 0;
}

HIDDEN size_t strlen(const char *text)
{
	const char *end = text;

	while (*end)
		end++;
	return (size_t)(end - text);
}

HIDDEN int strncmp(const char *a, const char *b, size_t n)
{
	while (n && *a && *a == *b) {
		a++;
		b++;
		n--;
	}
	return n ? (unsigned char)*a - (unsigned char)*b : 0;
}

HIDDEN int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, SIZE_MAX);
}

HIDDEN char *strchr(const char *text, int c)
{
	while (*text && *text != (char)c)
		text++;
	return *text == (char)c ? (char *)(uintptr_t)text : NULL;
}

HIDDEN char *strrchr(const char *text, int c)
{
	const char *end = text + strlen(text);

	while (end > text && *end != (char)c)
		end--;
	return *end == (char)c ? (char *)(uintptr_t)end : NULL;
}

HIDDEN size_t strcspn(const char *text, const char *reject)
{
	const char *end = text;

	while (*end && !strchr(reject, *end))
		end++;
	return (size_t)(end - text);
}

HIDDEN char *stpcpy(char *restrict to, const char *restrict from)
{
	const size_t n = strlen(from);

	memcpy(to, from, n + 1);
	return to + n;
}

HIDDEN char *strcpy(char *restrict to, const char *restrict from)
{
	stpcpy(to, from);
	return to;
}
