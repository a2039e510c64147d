/* SPDX-License-Identifier: MIT */
/* The slab of an object: of each size that fills it, at each place in it, and
 * where no slab can be. */
#include "rss/places.h"
#include "support/test.h"

#define PAGE 4096u

static void check_size(uint64_t bytes)
{
	const uint64_t at = 1ull << 32;
	uint64_t slab = PAGE, start, end;

	while (slab % bytes)
		slab += PAGE;
	for (uint64_t k = 0; k < slab / bytes; k++) {
		const struct sp_rss_taken object = {at + k * bytes,
						    at + (k + 1) * bytes};
		const struct sp_rss_taken odd = {object.start + 1,
						 object.end + 1};

		assert_true(sp_rss_places_slab(&object, PAGE, &start, &end));
		assert_int_equal(start, at);
		assert_int_equal(end, at + slab);
		assert_false(sp_rss_places_slab(&odd, PAGE, &start, &end));
	}
}

TEST(slab)
{
	static const uint64_t sizes[] = {8,    16,   48,   80,    224,  896,
					 4096, 5120, 7168, 10240, 14336};
	const struct sp_rss_taken empty = {PAGE, PAGE};
	uint64_t start, end;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		check_size(sizes[i]);
	assert_false(sp_rss_places_slab(&empty, PAGE, &start, &end));
}

TEST_MAIN(NULL, NULL)
