/* SPDX-License-Identifier: MIT */
/*
 * The formats of the export command: names, help, and rounding that is
 * unbiased, limited and repeatable.
 */
#include "export/options.h"
#include "support/test.h"
#include "support/text_checks.h"

TEST(formats)
{
	size_t n = 0;

	for (const struct sp_export_format *f = sp_export_formats; f->name;
	     f++, n++) {
		assert_ptr_equal(sp_export_find(f->name), f);
		assert_non_null(f->write);
		assert_true(strlen(f->what) <= 58);
	}
	assert_true(n >= 5);
	assert_null(sp_export_find("ppro"));
	assert_null(sp_export_find(""));
	assert_true(sp_export_find("pprof")->is_binary);
	assert_false(sp_export_find("json")->is_binary);
}

/* Over hashes that fill their range evenly, the mean is the value. */
TEST(round_is_unbiased)
{
	const double values[] = {0,     0.001, 0.25,        1,         1.5,
				 1.999, 17.3,  1e9 + 0.125, 1e15 + 0.5};
	const uint64_t n = 1 << 16;

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		const int64_t floor = (int64_t)values[i];
		uint64_t up = 0;

		for (uint64_t k = 0; k < n; k++) {
			const int64_t r = sp_export_round(
				values[i], k << 48 | 0x7fff00000000, INT64_MAX);

			assert_in_range(r - floor, 0, 1);
			up += (uint64_t)(r - floor);
		}
		assert_in_range(
			(uint64_t)((values[i] - (double)floor) * (double)n) -
				up + 1,
			0, 2);
	}
}

TEST(round_is_limited)
{
	assert_int_equal(sp_export_round(1e300, 0, INT64_MAX), INT64_MAX);
	assert_int_equal(sp_export_round(0x1p63, 0, INT64_MAX), INT64_MAX);
	assert_int_equal(sp_export_round(__builtin_inf(), 0, 7), 7);
	assert_int_equal(sp_export_round(__builtin_nan(""), 0, 7), 7);
	assert_int_equal(sp_export_round(7.5, 0, 7), 7);
	assert_int_equal(sp_export_round(6.5, 0, 7), 7);
	assert_int_equal(sp_export_round(6.5, UINT64_MAX, 7), 6);
	assert_int_equal(sp_export_round(0, 0, 0), 0);
}

/* Another process, another way to round. */
TEST(seed)
{
	const struct sp_profile profiles[] = {
		{.seed = 1, .pid = 2, .start_unix_ns = 3},
		{.seed = 2, .pid = 2, .start_unix_ns = 3},
		{.seed = 1, .pid = 3, .start_unix_ns = 3},
		{.seed = 1, .pid = 2, .start_unix_ns = 4},
	};

	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 4; k++)
			assert_int_equal(sp_export_seed(&profiles[i]) ==
						 sp_export_seed(&profiles[k]),
					 i == k);
}

TEST(help)
{
	FREED char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	assert_string_equal(sp_arguments_about.option[1].name, "help-all");
	assert_true(sp_arguments_about.option[1].take(NULL, NULL));
	sp_arguments_print_help(out, &sp_export_line, "sampleprof-report");
	fclose(out);
	for (const struct sp_export_format *f = sp_export_formats; f->name;
	     f++) {
		assert_has(line_with(text, f->what), f->name);
		assert_true(strlen(line_with(text, f->what)) <= 80);
	}
}

TEST_MAIN(NULL, NULL)
