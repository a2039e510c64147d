/* SPDX-License-Identifier: MIT */
/* The library's functions for memory and text do what the C library's do, at
 * all short lengths and alignments, and touch nothing beside. */

#include "support/test.h"

/* They have the names of what they are compared with. */
#define memcpy  own_memcpy
#define memmove own_memmove
#define memset  own_memset
#define memcmp  own_memcmp
#define strlen  own_strlen
#define strncmp own_strncmp
#define strcmp  own_strcmp
#define strchr  own_strchr
#define strrchr own_strrchr
#define strcspn own_strcspn
#define stpcpy  own_stpcpy
#define strcpy  own_strcpy
void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *text);
int strncmp(const char *a, const char *b, size_t n);
int strcmp(const char *a, const char *b);
char *strchr(const char *text, int c);
char *strrchr(const char *text, int c);
size_t strcspn(const char *text, const char *reject);
char *stpcpy(char *restrict to, const char *restrict from);
char *strcpy(char *restrict to, const char *restrict from);
#include "agent/sys/strings.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef strlen
#undef strncmp
#undef strcmp
#undef strchr
#undef strrchr
#undef strcspn
#undef stpcpy
#undef strcpy

#define ROOM 96
#define MOST 40

static void fill(char *memory, unsigned int seed)
{
	for (unsigned int i = 0; i < ROOM; i++)
		memory[i] = (char)(seed + i * 37);
}

TEST(copies)
{
	char expected[ROOM], found[ROOM], from[ROOM];

	fill(from, 99);
	for (unsigned int n = 0; n <= MOST; n++)
		for (unsigned int i = 0; i < 9; i++)
			for (unsigned int k = 0; k < 9; k++) {
				fill(expected, 5);
				fill(found, 5);
				memcpy(expected + i, from + k, n);
				assert_ptr_equal(
					own_memcpy(found + i, from + k, n),
					found + i);
				assert_memory_equal(found, expected, ROOM);
			}
}

TEST(moves)
{
	char expected[ROOM], found[ROOM];

	for (unsigned int n = 0; n <= MOST; n++)
		for (unsigned int i = 0; i < MOST; i++) {
			fill(expected, 5);
			fill(found, 5);
			memmove(expected + i, expected + 20, n);
			assert_ptr_equal(own_memmove(found + i, found + 20, n),
					 found + i);
			assert_memory_equal(found, expected, ROOM);
		}
}

TEST(sets)
{
	char expected[ROOM], found[ROOM];

	for (unsigned int n = 0; n <= MOST; n++)
		for (unsigned int i = 0; i < 9; i++) {
			fill(expected, 5);
			fill(found, 5);
			memset(expected + i, 0x1f0, n);
			assert_ptr_equal(own_memset(found + i, 0x1f0, n),
					 found + i);
			assert_memory_equal(found, expected, ROOM);
		}
}

static int sign(int n)
{
	return (n > 0) - (n < 0);
}

TEST(compares)
{
	char a[ROOM], b[ROOM];

	fill(a, 5);
	for (unsigned int n = 0; n <= MOST; n++)
		for (unsigned int i = 0; i < n; i++) {
			fill(b, 5);
			assert_int_equal(own_memcmp(a, b, n), 0);
			b[i] = (char)(b[i] + 128);
			assert_int_equal(sign(own_memcmp(a, b, n)),
					 sign(memcmp(a, b, n)));
			assert_int_equal(own_memcmp(a, b, i), 0);
		}
}

static const char *const texts[] = {"",      "a",   "ab",    "abc", "abd",
				    "b",     "=",   "a=b=c", "==",  "\xff",
				    "a\xff", "x|y", "abcabc"};

#define TEXTS (sizeof(texts) / sizeof(texts[0]))

TEST(texts)
{
	static const char letters[] = "abc=\xff|z";

	for (size_t i = 0; i < TEXTS; i++) {
		const char *t = texts[i];
		char copy[16];

		assert_int_equal(own_strlen(t), strlen(t));
		assert_ptr_equal(own_stpcpy(copy, t), copy + strlen(t));
		assert_string_equal(copy, t);
		assert_ptr_equal(own_strcpy(copy, t), copy);
		assert_string_equal(copy, t);
		/* With the end of the text as a letter. */
		for (size_t k = 0; k < sizeof(letters); k++) {
			assert_ptr_equal(own_strchr(t, letters[k]),
					 strchr(t, letters[k]));
			assert_ptr_equal(own_strrchr(t, letters[k]),
					 strrchr(t, letters[k]));
		}
		for (size_t k = 0; k < TEXTS; k++) {
			assert_int_equal(sign(own_strcmp(t, texts[k])),
					 sign(strcmp(t, texts[k])));
			assert_int_equal(own_strcspn(t, texts[k]),
					 strcspn(t, texts[k]));
			for (size_t n = 0; n < 5; n++)
				assert_int_equal(
					sign(own_strncmp(t, texts[k], n)),
					sign(strncmp(t, texts[k], n)));
		}
	}
}

TEST_MAIN(NULL, NULL)
