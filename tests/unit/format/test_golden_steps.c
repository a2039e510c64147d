/* SPDX-License-Identifier: MIT */
/* The profile in tests/golden/v1-steps: as test_golden.c for stacks that are
 * differences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "model/profile.h"
#include "read/load.h"
#include "support/golden_maker.h"

#define GOLDEN SP_TESTS_DIR "/golden/v1-steps/"

static void test_stacks(void **state)
{
	/* Offset of the only frame, by sample; 0: not known. */
	static const uint64_t want[] = {0x130,  0x118, 0x118, 0,
					0x10ff, 0,     0x118, 0x118};
	struct sp_profile *p = NULL;
	struct sp_error err;

	(void)state;
	if (sp_profile_load(GOLDEN "steps.sprof", NULL, NULL, &p, &err) != 0)
		fail_msg("%s", err.message);
	assert_string_equal(p->damage, "");
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
	sp_profile_free(p);
}

static void test_encoder(void **state)
{
	static const char *const names[] = {"steps.sprof"};

	(void)state;
	golden_check_maker(SP_MAKER, GOLDEN, names, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_encoder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
