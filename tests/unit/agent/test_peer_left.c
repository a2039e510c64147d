/* SPDX-License-Identifier: MIT */
/*
 * A libunwind that aborts in the middle of a walk: the walk is left, the one by
 * tables is taken, and the next begins with the data as they were at first.
 */
#include <unistd.h>

#include "agent/unwind/framewalk.h"
#include "support/test.h"

#define SP_HAVE_LIBUNWIND
#include "../../../src/agent/unwind/peer.c"

static long steps_of(struct peer *peer)
{
	void *at = sp_image_function(&image, peer->base, "false_steps");
	long (*steps)(void);

	assert_non_null(at);
	memcpy(&steps, &at, sizeof(at));
	return steps();
}

TEST(aborts)
{
	const struct sp_call_frame *frame = SP_FRAME_HERE;
	uint8_t hint = 0;
	struct sp_lane *lane = sp_lane_take(&hint);
	struct peer *peer = peers[sp_lane_number(lane) - 1];

	assert_non_null(peer);
	for (int i = 0; i < 100; i++) {
		bool is_cut = false, was_cut;
		const struct sp_walk *tables =
			sp_framewalk_tables(lane, frame, 100, &is_cut);

		was_cut = is_cut;
		assert_ptr_equal(
			sp_peer_walk(lane, frame, 100, tables, &is_cut),
			tables);
		assert_int_equal(is_cut, was_cut);
		assert_false(peer->is_clean);
		/* From 40 on. */
		assert_int_equal(steps_of(peer), 43);
	}
	sp_lane_give(lane);
}

/* In which case the unwind tables are used. */
TEST(missing)
{
	char why[SP_PEER_WHY_BYTES];

	assert_string_equal(sp_peer_init("/nowhere/libunwind.so", UINT64_MAX),
			    "cannot be opened");
	assert_string_equal(sp_peer_init("/etc/passwd", UINT64_MAX),
			    "is no shared library of this architecture");
	assert_string_equal(sp_peer_init(FALSE_UNWIND, 1 << 20),
			    "takes too much of the address space that is left");
	assert_false(sp_peer_init_beside(UINT64_MAX, why));
	assert_non_null(strstr(why, "libsampleprof-unwind.so "));
}

static int begin(void **state)
{
	(void)state;
	sp_modules_init("/opt/program");
	sp_stack_bounds_init(environ, 0);
	return sp_peer_init(FALSE_UNWIND, UINT64_MAX) != NULL;
}

TEST_MAIN(begin, NULL)
