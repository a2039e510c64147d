/* SPDX-License-Identifier: MIT */
/* Figures with signs, over the edges of all numbers. */
#include "text/figures.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "support/close.h"
#include "support/test.h"

/* The number at `text`, with commas between thousands, which must be whole; its
 * end in *ret_end. */
static double read_number(const char *text, const char **ret_end)
{
	char digits[64];
	size_t n = 0;
	unsigned int since = 0;
	bool has_comma = false;
	const char *at = text;

	for (; strchr("0123456789,", *at) && *at; at++) {
		/* a comma between numbers is no part of one */
		if (*at == ',' && !isdigit((unsigned char)at[1]))
			break;
		if (*at == ',') {
			assert_true(n && (has_comma ? since == 3 : since <= 3));
			has_comma = true;
			since = 0;
			continue;
		}
		assert_true(n + 1 < sizeof(digits));
		digits[n++] = *at;
		since++;
	}
	assert_true(!has_comma || since == 3);
	digits[n] = '\0';
	if (*at == '.' || *at == 'e') {
		char *end;
		const double value = strtod(text, &end);

		assert_false(has_comma);
		*ret_end = end;
		return value;
	}
	*ret_end = at;
	return strtod(digits, NULL);
}

/* Nothing that nobody could mean: a zero with a sign, an infinity, more digits
 * than a size in memory, the number of what is never, a cut text. */
static void assert_plain(const char *text)
{
	const char *at = text;

	assert_true(*text && strlen(text) < sizeof(struct sp_text_cell) - 1);
	assert_null(strstr(text, "inf"));
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "18446744073709551615"));
	assert_int_equal(strchr(text, '[') != NULL, strchr(text, ']') != NULL);
	while (*(at += strcspn(at, "+-0123456789"))) {
		const bool is_signed = *at == '+' || *at == '-';
		const char *end;
		double number;

		at += is_signed;
		if (!isdigit((unsigned char)*at)) {
			at += strncmp(at, "<0.01 %", 7) == 0 ? 7 : 0;
			continue;
		}
		number = read_number(at, &end);
		assert_true(isfinite(number));
		assert_true(end - at <= 26);
		assert_false(is_signed && number == 0);
		at = end;
	}
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
				assert_plain(
					(sp_figure_fixed(x, decimals).text));
				assert_plain(
					(sp_figure_signed(x, decimals).text));
				assert_true(strchr(
					"+-0",
					*sp_figure_signed(x, decimals).text));
			}
			for (int is_bytes = 0; is_bytes <= 1; is_bytes++) {
				assert_plain(
					(sp_figure_change(x, is_bytes).text));
				assert_plain(sp_figure_interval(about, is_bytes,
								true)
						     .text);
			}
			assert_plain(sp_figure_percent(1, 1 + x).text);
			assert_plain(sp_figure_share(x).text);
			assert_close(atof(sp_figure_digits(x).text), x,
				     0x1p53 > fabs(x) && nearbyint(x) == x
					     ? 0
					     : 5e-12);
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
	/* what the order of a sum changes */
	assert_string_equal(sp_figure_digits(329395.7446808511).text,
			    sp_figure_digits(329395.7446808512).text);
	assert_string_equal(sp_figure_digits(0.1 + 0.2).text, "0.3");
	assert_string_equal(sp_figure_digits(0x1p53 - 1).text,
			    "9007199254740991");
	assert_string_equal(sp_figure_digits(INFINITY).text, "");
	assert_string_equal(sp_figure_fixed(-INFINITY, 1).text, "unknown");
}

/* ---- all that is written of numbers, of many numbers ---- */

/* What sp_text_steady() takes for the noise of a sum. */
#define NOISE 1e-6

static const char *const units[] = {"B",   "KiB", "MiB", "GiB",
				    "TiB", "PiB", "EiB"};

/* The bytes that a text says, in its own unit or the one of its end. */
static double bytes_of(const char *text)
{
	const char *end, *unit;
	double number = read_number(text, &end);

	unit = *end == ' '         ? end + 1
	       : strchr(text, ']') ? strchr(text, ']') + 2
				   : "";
	for (int i = 0; i < 7; i++)
		if (strncmp(unit, units[i], strlen(units[i])) == 0)
			return ldexp(number, 10 * i);
	assert_true(number == 0);
	return 0;
}

static void check_bytes(double x)
{
	const double size = fmax(x, 0);

	assert_plain(sp_text_bytes(x).text);
	assert_plain(sp_figure(x, true).text);
	assert_plain(sp_figure_change(x, true).text);
	for (int is_up = 0; is_up <= 1; is_up++)
		assert_plain(sp_text_bytes_beyond(x, is_up).text);
	if (!isfinite(x))
		return;
	assert_true(fabs(bytes_of(sp_text_bytes(x).text) - size) <=
		    0.5 + 0.0051 * size);
	assert_true(bytes_of(sp_text_bytes_beyond(x, true).text) >=
		    size * (1 - NOISE) - NOISE);
	assert_true(bytes_of(sp_text_bytes_beyond(x, false).text) <=
		    size * (1 + NOISE) + NOISE);
}

/* A count is never rounded, and a limit of one outwards only. */
static void check_count(double x)
{
	const struct sp_text_cell text = sp_figure(x, false);
	const char *end;

	assert_plain(text.text);
	assert_plain(sp_figure_change(x, false).text);
	if (isfinite(x) && fabs(x) < 9e15)
		assert_true(read_number(text.text, &end) ==
			    fmax(nearbyint(sp_text_steady(x)), 0));
	if (x >= 0 && x < 0x1p63)
		assert_plain(sp_text_count((uint64_t)x).text);
}

static void check_time(double x)
{
	const uint64_t ns = x > 0 ? (uint64_t)fmin(x, 9e18) : 0;

	assert_plain(sp_text_duration(ns).text);
	assert_plain(sp_text_moment(ns).text);
	assert_plain(sp_text_moment_within(ns, 1000000).text);
	assert_plain(sp_text_size(ns).text);
}

static void check_share(double part, double whole)
{
	const struct sp_text_cell percent = sp_text_percent(part, whole);

	assert_true(strcmp(percent.text, "-") == 0 || *percent.text == '<' ||
		    *percent.text == '>' ||
		    isdigit((unsigned char)*percent.text));
	assert_null(strchr(percent.text + 1, '-'));
	if (*percent.text != '-')
		assert_plain(percent.text);
	assert_plain(sp_figure_percent(part, whole).text);
	assert_plain(sp_figure_share(part / whole).text);
	assert_null(strchr(sp_figure_share(part / whole).text, '-'));
}

static void check_interval(struct sp_interval i, uint64_t samples)
{
	const bool is_known = isfinite(i.value) && isfinite(i.lo) &&
			      isfinite(i.hi) && i.lo < i.hi;
	struct sp_text_cell objects = sp_text_objects_cell(i);
	struct sp_text_cell bytes = sp_text_interval(i);
	const char *comma, *end;

	assert_plain(bytes.text);
	assert_plain(objects.text);
	assert_plain(sp_text_estimate_cell(i, samples).text);
	for (int is_bytes = 0; is_bytes <= 1; is_bytes++)
		for (int is_change = 0; is_change <= 1; is_change++)
			assert_plain(sp_figure_interval(i, is_bytes, is_change)
					     .text);
	if (!is_known || i.lo < 0)
		return;
	comma = strstr(bytes.text, ", ");
	assert_non_null(comma);
	assert_true(bytes_of(bytes.text + 1) <= i.lo * (1 + NOISE) + NOISE);
	assert_true(bytes_of(comma + 2) >= i.hi * (1 - NOISE) - NOISE);
	if (i.hi > 9e15)
		return;
	comma = strstr(objects.text, ", ");
	assert_non_null(comma);
	assert_true(read_number(strchr(objects.text, '[') + 1, &end) ==
		    floor(sp_text_steady(i.lo)));
	assert_true(read_number(comma + 2, &end) == ceil(sp_text_steady(i.hi)));
}

static void check_all(double x, double y)
{
	const double a = fmin(fabs(x), fabs(y)), b = fmax(fabs(x), fabs(y));

	check_bytes(x);
	check_count(x);
	check_time(x);
	check_share(x, y);
	for (uint64_t samples = 0; samples <= 4; samples += 4) {
		check_interval((struct sp_interval){x, x, x}, samples);
		check_interval((struct sp_interval){a, a, b}, samples);
		check_interval((struct sp_interval){b, 0, b}, samples);
		check_interval((struct sp_interval){b, a, INFINITY}, samples);
	}
	/* of a change: what both sides allow */
	for (int is_bytes = 0; is_bytes <= 1; is_bytes++)
		assert_plain(sp_figure_interval((struct sp_interval){x, -b, a},
						is_bytes, true)
				     .text);
}

/* Every writer of a figure, of every pair of edges and of 20,000 numbers of all
 * magnitudes, says that number, rounded, and nothing that is none. */
TEST(every_figure_is_a_number)
{
	static const double edges[] = {
		0.0,        -0.0,     1e-320,   -1e-17,      1e-17,
		-0.004,     0.0049,   0.005,    0.049,       0.05,
		0.5,        -0.5,     0.999999, 1,           9.995,
		99.95,      999.5,    1000,     1023.4999,   1023.5,
		1024,       999999.5, 1e9,      99999999999, 100000000000,
		0x1p53 - 1, 0x1p53,   0x1p62,   0x1p63,      0x1p64,
		1e18,       1e300,    1e20,     INFINITY,    -INFINITY,
		NAN};
	const size_t n = sizeof(edges) / sizeof(edges[0]);
	const unsigned int rounds = rounds_of(20000);
	struct sp_rng rng;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			check_all(edges[i], edges[k]);
	sp_rng_init(&rng, 36, 0);
	for (unsigned int i = 0; i < rounds; i++) {
		double at[2];

		for (int k = 0; k < 2; k++) {
			const uint64_t r = sp_rng_next(&rng);

			at[k] = ldexp((double)(r >> 12) * 0x1p-52,
				      (int)(r % 120) - 50);
			if (r & 1024)
				at[k] = nearbyint(at[k]);
			if (r & 2048)
				at[k] = -at[k];
		}
		check_all(at[0], i % 4 ? at[1] : nextafter(at[0], INFINITY));
	}
}

static void assert_limits(struct sp_interval i, const char *value,
			  const char *lo, const char *hi)
{
	const struct sp_figure_limits cells = sp_figure_limits(i);

	assert_string_equal(cells.value.text, value);
	assert_string_equal(cells.lo.text, lo);
	assert_string_equal(cells.hi.text, hi);
}

/* One limit alone is no interval. */
TEST(one_limit)
{
	const struct sp_interval from = {5, 1024, INFINITY};
	const struct sp_interval to = {5, -INFINITY, 1024};

	assert_string_equal(sp_figure_interval(from, true, true).text,
			    "at least +1.00 KiB");
	assert_string_equal(sp_figure_interval(to, true, true).text,
			    "at most +1.00 KiB");
	assert_string_equal(sp_figure_interval(from, false, false).text,
			    "at least 1,024");
	assert_string_equal(sp_figure_interval(to, false, true).text,
			    "at most +1,024");
	assert_string_equal(
		sp_figure_interval((struct sp_interval){0, -INFINITY, INFINITY},
				   true, true)
			.text,
		"unknown");
}

/* As written, too, a value is between its limits, which do not meet. */
TEST(digits_of_limits)
{
	assert_limits((struct sp_interval){5, 4.5, INFINITY}, "5", "4.5", "");
	assert_limits((struct sp_interval){0x1p47, 0x1p47, 0x1p47},
		      "140737488355328", "140737488355328", "140737488355328");
	assert_limits((struct sp_interval){0x1p47 + 0.5, 0x1p47, 0x1p48},
		      "1.40737488355e+14", "1.40737488355e+14",
		      "2.81474976711e+14");
	assert_limits((struct sp_interval){2533274790395942, 2533274790395904,
					   2533274790395984},
		      "2.5332747904e+15", "2.53327479039e+15",
		      "2.5332747904e+15");
	/* the noise of a sum is no limit beyond */
	assert_limits((struct sp_interval){2e15, 1e15 - 0.125, 3e15 + 0.5},
		      "2e+15", "1e+15", "3e+15");
	assert_limits((struct sp_interval){0, -2533274790395984, -1}, "0",
		      "-2.5332747904e+15", "-1");
	for (int k = 0; k < 10000; k++) {
		const double lo = ldexp(1 + (double)(k * 7919 % 10007) / 10007,
					40 + k % 23);
		const struct sp_interval i = {lo * (1 + 1e-13 * (k % 40)), lo,
					      lo * (1 + 1e-12 * (k % 4 + 1))};
		const struct sp_figure_limits cells = sp_figure_limits(i);

		assert_true(atof(cells.lo.text) <= atof(cells.value.text));
		assert_true(atof(cells.lo.text) < atof(cells.hi.text));
		if (i.value <= i.hi)
			assert_true(atof(cells.value.text) <=
				    atof(cells.hi.text));
	}
}

TEST_MAIN(NULL, NULL)
