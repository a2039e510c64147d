/* SPDX-License-Identifier: MIT */
/* The profile in tests/format/golden/v1-steps: as test_golden.c for stacks that
 * are differences. */
#include "support/golden_maker.h"
#include "support/load_profile.h"
#include "support/test.h"

#define GOLDEN SP_TESTS_DIR "/format/golden/v1-steps/"

TEST(stacks)
{
	/* Offset of the only frame, by sample; 0: not known. */
	static const uint64_t want[] = {0x130,  0x118, 0x118, 0,
					0x10ff, 0,     0x118, 0x118};
	struct sp_profile *p = load_whole_profile(GOLDEN "steps.sprof");

	assert_int_equal(p->n_samples, 8);
	for (size_t i = 0; i < 8; i++) {
		const struct sp_sample *s = &p->samples[i];
		const struct sp_stack *stack = &p->stacks[s->stack];

		assert_int_equal(s->id, i + 1);
		assert_int_equal(s->size_bytes, 1001 + i);
		assert_true(s->freed_ns == (i == 1 ? 9000 : SP_NEVER));
		assert_int_equal(stack->n_frames, want[i] != 0);
		if (want[i])
			assert_int_equal(stack->frames[0].offset, want[i]);
	}
}

TEST(encoder)
{
	static const char *const names[] = {"steps.sprof"};

	golden_check_maker(SP_MAKER, GOLDEN, names, 1);
}

TEST_MAIN(NULL, NULL)
