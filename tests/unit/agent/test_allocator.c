/* SPDX-License-Identifier: MIT */
/* What jemalloc says of the slab of an object: impossible answers are none, and
 * it is not asked once another library has made an object. */
#include "agent/sys/allocator.h"
#include "support/test.h"

static size_t says[3];
static int error;
static unsigned int asked;

static int answer(const size_t *name, size_t parts, void *ret, size_t *bytes,
		  void *of, size_t of_bytes)
{
	assert_int_equal(name[0], 7);
	assert_int_equal(parts, 3);
	assert_int_equal(*bytes, sizeof(says));
	assert_int_equal(of_bytes, sizeof(void *));
	assert_int_equal(*(uintptr_t *)of, 0x1000);
	memcpy(ret, says, sizeof(says));
	asked++;
	return error;
}

static const struct sp_allocator_slabs slabs = {
	.ask = answer, .name = {7}, .parts = 3};

static void check(size_t nfree, size_t regions, size_t bytes, bool is_good)
{
	struct sp_control_object o;

	says[0] = nfree;
	says[1] = regions;
	says[2] = bytes;
	o = sp_allocator_slab_of(&slabs, 0x1000);
	assert_int_equal(o.address, 0x1000);
	assert_int_equal(o.free, is_good ? nfree : 0);
	assert_int_equal(o.regions, is_good ? regions : 0);
	assert_int_equal(o.slab_bytes, is_good ? bytes : 0);
}

TEST(answers)
{
	check(3, 10, 4096, true);
	check(0, 1, UINT32_MAX, true);
	check(0, 0, 0, true);
	check(11, 10, 4096, false);
	check(0, UINT16_MAX + 1, 4096, false);
	check(0, 1, (size_t)UINT32_MAX + 1, false);
	error = 22;
	check(3, 10, 4096, false);
	error = 0;
}

TEST(of_another)
{
	const unsigned int before = asked;
	struct sp_control_slabs sums;
	struct sp_allocator_slabs unused;

	check(3, 10, 4096, true);
	assert_int_equal(asked, before + 1);
	sp_allocator_note_other();
	check(3, 10, 4096, false);
	assert_int_equal(asked, before + 1);
	assert_false(sp_allocator_slabs(&unused, &sums));
}

TEST_MAIN(NULL, NULL)
