/* SPDX-License-Identifier: MIT */
/* Figures with signs, over the edges of all numbers. */
#include "text/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"

/* Has the text a figure that nobody could mean: a zero with a sign, an
 * infinity, more digits than a size in memory? */
static bool is_odd(const char *text)
{
	const char *digits = text + strcspn(text, "+-0123456789.");
	const bool is_signed = *digits == '+' || *digits == '-';
	const char *end = digits + is_signed;

	end += strspn(end, "0123456789.,");
	return strstr(text, "inf") || strstr(text, "nan") ||
	       end - digits > 26 ||
	       (is_signed && end > digits + 1 &&
		strspn(digits + 1, "0.") == (size_t)(end - digits - 1));
}

/* Signs, in the one place that sets them, over the edges of every number of
 * decimals. */
TEST(signs)
{
	static const double edges[] = {
		0,       1e-320, 1e-17, 0.00049, 0.0005, 0.0051,  0.0049,
		0.005,   0.049,  0.05,  0.49,    0.5,    0.51,    0.99,
		0.995,   0.999,  1,     9.99,    9.995,  999.949, 1023.5,
		1e6 - 1, 1e9,    1e15,  1e17,    9.3e18, 1.2e19,  1e300};

	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		for (int sign = -1; sign <= 1; sign += 2) {
			const double x = sign * edges[i];
			const struct sp_interval about = {x, x - edges[i] / 4,
							  x + edges[i] / 4};

			for (int decimals = 0; decimals <= 3; decimals++) {
				assert_false(is_odd(
					sp_figure_fixed(x, decimals).text));
				assert_false(is_odd(
					sp_figure_signed(x, decimals).text));
				assert_true(strchr(
					"+-0",
					*sp_figure_signed(x, decimals).text));
			}
			for (int is_bytes = 0; is_bytes <= 1; is_bytes++) {
				assert_false(is_odd(
					sp_figure_change(x, is_bytes).text));
				assert_false(is_odd(sp_figure_interval(about,
								       is_bytes,
								       true)
							    .text));
			}
			assert_false(is_odd(sp_figure_percent(1, 1 + x).text));
			assert_false(is_odd(sp_figure_share(x).text));
			assert_true(atof(sp_figure_digits(x).text) == x);
			assert_true(x ||
				    strcmp(sp_figure_digits(x).text, "0") == 0);
		}
	}
	assert_string_equal(sp_figure_signed(-0.004, 2).text, "0.00");
	assert_string_equal(sp_figure_signed(0.004, 2).text, "0.00");
	assert_string_equal(sp_figure_signed(-0.006, 2).text, "-0.01");
	assert_string_equal(sp_figure_fixed(-0.4, 0).text, "0");
	assert_string_equal(sp_figure_fixed(0x1p63, 0).text,
			    "9.2233720368547758e+18");
	assert_string_equal(sp_figure_digits(-0.0).text, "0");
	assert_string_equal(sp_figure_digits(INFINITY).text, "");
	assert_string_equal(sp_figure_fixed(-INFINITY, 1).text, "unknown");
}

TEST_MAIN(NULL, NULL)
