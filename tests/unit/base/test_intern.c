/* SPDX-License-Identifier: MIT */
/* Numbers for distinct strings, compared with a plain list. */
#include <stdalign.h>

#include "base/intern.h"
#include "base/rng.h"
#include "support/test.h"

#define STRINGS 5000

/* Random bytes, NULs among them, of which many come again. */
static size_t some_bytes(struct sp_rng *rng, char bytes[8])
{
	size_t n = sp_rng_next(rng) % 4;

	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)(sp_rng_next(rng) % 24);
	return n;
}

/* Numbers as a search through a list gives them. */
TEST(like_a_list)
{
	static struct {
		char bytes[8];
		size_t n;
	} list[STRINGS];
	FREED_BY(sp_intern_done) struct sp_intern in = {0};
	struct sp_rng rng;
	uint32_t n_list = 0, number;

	sp_rng_init(&rng, 1, 0);
	for (int i = 0; i < STRINGS; i++) {
		char bytes[8];
		size_t n = some_bytes(&rng, bytes);
		uint32_t want = 0;

		while (want < n_list &&
		       (list[want].n != n ||
			memcmp(list[want].bytes, bytes, n) != 0))
			want++;
		number = sp_intern_find(&in, bytes, n);
		assert_int_equal(number, want < n_list ? want : UINT32_MAX);
		assert_int_equal(sp_intern_add(&in, bytes, n, &number), 0);
		assert_int_equal(number, want);
		if (want == n_list) {
			memcpy(list[n_list].bytes, bytes, n);
			list[n_list++].n = n;
		}
		assert_int_equal(in.n_entries, n_list);
	}
	assert_in_range(n_list, 1000, STRINGS - 1000);
	for (uint32_t i = 0; i < n_list; i++) {
		const char *bytes = sp_intern_bytes(&in, i);

		assert_int_equal(in.entries[i].length, list[i].n);
		assert_memory_equal(bytes, list[i].bytes, list[i].n);
		assert_int_equal(bytes[list[i].n], '\0');
		assert_int_equal((uintptr_t)bytes % alignof(uint64_t), 0);
	}
}

TEST(long)
{
	static char bytes[100000];
	FREED_BY(sp_intern_done) struct sp_intern in = {0};
	uint32_t number;

	memset(bytes, 'x', sizeof(bytes));
	for (uint32_t i = 0; i < 50; i++) {
		assert_int_equal(sp_intern_add(&in, bytes, 99950 + i, &number),
				 0);
		assert_int_equal(number, i);
	}
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(strlen(sp_intern_bytes(&in, i)), 99950 + i);
}

TEST_MAIN(NULL, NULL)
