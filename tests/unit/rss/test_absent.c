/* SPDX-License-Identifier: MIT */
/* The text of objects that are not all resident: back as it was, the least left
 * out where there is no room; text that is none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "rss/absent.h"
#include "support/test.h"

TEST(as_text)
{
	struct sp_absent_object list[] = {{11, 4096, 1}, {3, 0, 1}, {10, 0, 1}};
	double left_out;
	char *text = sp_absent_write(list, 3, 100, &left_out);

	assert_string_equal(text, "3 7 1:4096");
	assert_true(left_out == 0);
	free(text);
	text = sp_absent_write(list, 0, 0, &left_out);
	assert_string_equal(text, "");
	free(text);
}

/* As few as have to be, and those of the least. */
TEST(without_room)
{
	enum { N = 500 };
	struct sp_absent_object list[N], *found;
	struct sp_rng rng;

	sp_rng_init(&rng, 1, 0);
	for (size_t room = 0; room < 3000; room += 97) {
		double left_out, sum = 0, least = 1e9;
		size_t n, k = 0;
		FREED char *text;

		for (size_t i = 0; i < N; i++) {
			list[i] = (struct sp_absent_object){
				i * 3 + sp_rng_next(&rng) % 3,
				sp_rng_next(&rng) % 2
					? 0
					: sp_rng_next(&rng) % 100000,
				(double)(sp_rng_next(&rng) % 1000000)};
		}
		text = sp_absent_write(list, N, room, &left_out);
		assert_true(strlen(text) <= room);
		assert_int_equal(sp_absent_read(text, &found, &n), 0);
		for (size_t i = 0; i < n; i++) {
			while (k < N && list[k].id != found[i].id)
				k++;
			/* The kept ones are in front. */
			assert_true(k < n);
			assert_int_equal(list[k].resident_bytes,
					 found[i].resident_bytes);
			if (list[k].absent_bytes < least)
				least = list[k].absent_bytes;
		}
		for (size_t i = n; i < N; i++) {
			assert_true(list[i].absent_bytes <= least);
			sum += list[i].absent_bytes;
		}
		assert_true(sum == left_out);
		/* Not far from what would have fitted. */
		if (n < N)
			assert_true(strlen(text) + room / 8 + 24 >= room);
		free(found);
	}
}

TEST(no_such_text)
{
	static const char *const texts[] = {" ",
					    "1 ",
					    "1  2",
					    "a",
					    "1:",
					    "1:2:3",
					    "1 0",
					    "-1",
					    "1,2",
					    "+1",
					    "1 x",
					    "18446744073709551616",
					    "18446744073709551615 1",
					    "1:18446744073709551616"};
	FREED struct sp_absent_object *list;
	size_t n;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_int_equal(sp_absent_read(texts[i], &list, &n), -EBADMSG);
	assert_int_equal(sp_absent_read("0", &list, &n), 0);
	assert_int_equal(n, 1);
}

TEST_MAIN(NULL, NULL)
