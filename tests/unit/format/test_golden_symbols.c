/* SPDX-License-Identifier: MIT */
/*
 * The same as unit.golden for tests/format/golden/v1-symbols: names that a
 * profile brings along.
 */
#include "support/golden_maker.h"
#include "support/load_profile.h"
#include "support/test.h"

#define GOLDEN SP_TESTS_DIR "/format/golden/v1-symbols/"

static void expect_line(const struct sp_symbol *s, const char *function,
			const char *file, uint32_t line)
{
	assert_string_equal(s->function, function);
	assert_int_equal(s->line, line);
	if (file)
		assert_string_equal(s->file, file);
	else
		assert_null(s->file);
}

TEST(carried)
{
	const struct sp_embedded_frame *known, *unknown;
	struct sp_profile *p = load_profile(GOLDEN "carried.sprof");

	assert_int_equal(p->damaged_records, 0);
	assert_int_equal(p->n_samples, 1);
	assert_int_equal(p->n_embedded, 2);
	known = &p->embedded[0];
	unknown = &p->embedded[1];
	assert_int_equal(known->frame.module, 1);
	assert_int_equal(known->frame.offset, 0x234);
	assert_int_equal(known->symbols.count, 2);
	expect_line(&known->symbols.symbol[0], "helper", "src/app.c", 300);
	assert_string_equal(known->symbols.symbol[0].identity, "helper(int)");
	assert_true(known->symbols.symbol[0].is_inlined);
	expect_line(&known->symbols.symbol[1], "main", NULL, 0);
	assert_false(known->symbols.symbol[1].is_inlined);
	assert_false(known->symbols.symbol[1].is_fallback);
	assert_int_equal(unknown->frame.module, 1);
	assert_int_equal(unknown->frame.offset, 0x300);
	assert_int_equal(unknown->symbols.count, 1);
	expect_line(&unknown->symbols.symbol[0], "app+0x1300", NULL, 0);
	assert_true(unknown->symbols.symbol[0].is_fallback);
}

TEST(maker)
{
	static const char *const names[] = {"carried.sprof"};

	golden_check_maker(SP_MAKER, GOLDEN, names, 1);
}

TEST_MAIN(NULL, NULL)
