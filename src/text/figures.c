/* SPDX-License-Identifier: MIT */
#include "text/figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Beyond it a double has no digits behind the point, and people read none. */
#define DIGITS_MAX 1e17

static struct sp_text_cell fixed(double value, int decimals, const char *plus)
{
	struct sp_text_cell cell = {"unknown"};
	char digits[40];
	bool is_zero;

	if (!isfinite(value))
		return cell;
	if (fabs(value) < DIGITS_MAX)
		snprintf(digits, sizeof(digits), "%.*f", decimals, fabs(value));
	else
		snprintf(digits, sizeof(digits), "%.17g", fabs(value));
	is_zero = digits[strspn(digits, "0.")] == '\0';
	snprintf(cell.text, sizeof(cell.text), "%s%s",
		 is_zero     ? ""
		 : value < 0 ? "-"
			     : plus,
		 digits);
	return cell;
}

struct sp_text_cell sp_figure_fixed(double value, int decimals)
{
	return fixed(value, decimals, "");
}

struct sp_text_cell sp_figure_signed(double value, int decimals)
{
	return fixed(value, decimals, "+");
}

/* Digits of an estimate that no order of adding it up changes. */
#define DIGITS_STEADY 12

struct sp_text_cell sp_figure_digits(double value)
{
	struct sp_text_cell cell = {""};
	const bool is_whole = fabs(value) < 0x1p53 && nearbyint(value) == value;

	/* The sum of a zero of either sign and 0 is one without. */
	if (isfinite(value))
		snprintf(cell.text, sizeof(cell.text), "%.*g",
			 is_whole ? 17 : DIGITS_STEADY, value + 0.0);
	return cell;
}

struct sp_text_cell sp_figure_length(uint64_t ns)
{
	const uint64_t hundredths = ns / 10000000;
	struct sp_text_cell cell = sp_text_duration(ns);

	if (hundredths >= 100 && hundredths < 1000)
		snprintf(cell.text, sizeof(cell.text),
			 "%" PRIu64 ".%02" PRIu64 " s", hundredths / 100,
			 hundredths % 100);
	return cell;
}

/* Where whole numbers have more digits than that. */
#define BEYOND_STEADY 1e12

/* Less is the noise of a sum. */
#define NOISE 1e-14

static struct sp_text_cell limit_digits(double limit, double sign)
{
	struct sp_text_cell cell = sp_figure_digits(limit);
	double step, is;

	if (!isfinite(limit) || fabs(limit) < BEYOND_STEADY)
		return cell;
	step = pow(10, floor(log10(fabs(limit))) - DIGITS_STEADY + 1);
	snprintf(cell.text, sizeof(cell.text), "%.*g", DIGITS_STEADY, limit);
	is = strtod(cell.text, NULL);
	if (sign * (limit - is) > NOISE * fabs(limit))
		snprintf(cell.text, sizeof(cell.text), "%.*g", DIGITS_STEADY,
			 is + sign * step);
	return cell;
}

struct sp_figure_limits sp_figure_limits(struct sp_interval i)
{
	struct sp_figure_limits cells = {sp_figure_digits(i.value),
					 sp_figure_digits(i.lo),
					 sp_figure_digits(i.hi)};

	if (i.lo < i.hi) {
		cells.value = limit_digits(i.value, 0);
		cells.lo = limit_digits(i.lo, -1);
		cells.hi = limit_digits(i.hi, 1);
	}
	return cells;
}

struct sp_text_cell sp_figure(double value, bool is_bytes)
{
	if (is_bytes || !isfinite(value))
		return sp_text_bytes(value);
	return sp_text_count(
		sp_text_to_count(nearbyint(sp_text_steady(value))));
}

struct sp_text_cell sp_figure_total(uint64_t bytes, bool is_exact)
{
	return is_exact ? sp_text_bytes((double)bytes)
			: sp_text_bytes_beyond((double)bytes, false);
}

struct sp_text_cell sp_figure_counted(uint64_t bytes, bool is_exact)
{
	const struct sp_text_cell total = sp_figure_total(bytes, is_exact);
	struct sp_text_cell cell = total;

	if (!is_exact)
		snprintf(cell.text, sizeof(cell.text), "at least %.40s",
			 total.text);
	return cell;
}

static struct sp_text_cell put_sign(double value, struct sp_text_cell size)
{
	const bool is_zero = size.text[0] == '0' &&
			     strspn(size.text, "0.") == strcspn(size.text, " ");
	struct sp_text_cell cell;

	snprintf(cell.text, sizeof(cell.text), "%s%.40s",
		 is_zero || !isfinite(value) ? ""
		 : value < 0                 ? "-"
					     : "+",
		 size.text);
	return cell;
}

struct sp_text_cell sp_figure_change(double value, bool is_bytes)
{
	return put_sign(value, sp_figure(fabs(value), is_bytes));
}

/* A limit, rounded outwards. */
static struct sp_text_cell limit_of(double value, bool is_bytes, bool is_change,
				    bool is_upper)
{
	const bool is_up = is_upper == (value > 0);
	const double size = fabs(value);
	const double steady = sp_text_steady(size);
	const struct sp_text_cell text =
		is_bytes ? sp_text_bytes_beyond(size, is_up)
			 : sp_figure(is_up ? ceil(steady) : floor(steady),
				     false);

	return is_change ? put_sign(value, text) : text;
}

struct sp_text_cell sp_figure_interval(struct sp_interval interval,
				       bool is_bytes, bool is_change)
{
	struct sp_text_cell cell, lo, hi;
	char *lo_unit, *hi_unit;

	if (!isfinite(interval.hi) && !isfinite(interval.lo))
		return sp_text_bytes(interval.hi);
	if (!(interval.lo < interval.hi)) {
		strcpy(cell.text, "exact");
		return cell;
	}
	if (is_bytes && !is_change)
		return sp_text_interval(interval);
	lo = limit_of(interval.lo, is_bytes, is_change, false);
	hi = limit_of(interval.hi, is_bytes, is_change, true);
	if (!isfinite(interval.lo) || !isfinite(interval.hi)) {
		snprintf(cell.text, sizeof(cell.text), "at %s %.40s",
			 isfinite(interval.lo) ? "least" : "most",
			 isfinite(interval.lo) ? lo.text : hi.text);
		return cell;
	}
	lo_unit = strchr(lo.text, ' ');
	hi_unit = strchr(hi.text, ' ');
	if (lo_unit && hi_unit && strcmp(lo_unit, hi_unit) == 0)
		*lo_unit = '\0';
	else
		hi_unit = NULL;
	snprintf(cell.text, sizeof(cell.text), "[%.32s, %.*s]%.6s", lo.text,
		 hi_unit ? (int)(hi_unit - hi.text) : 32, hi.text,
		 hi_unit ? hi_unit : "");
	return cell;
}

/* Nobody reads more. */
#define PERCENT_MAX 999999.0

/* Sums that are held against one total differ by that, and by nothing. */
#define ROUNDING_PERCENT 1e-9

struct sp_text_cell sp_figure_percent(double old, double new)
{
	const double percent = 100 * (new - old) / old;
	struct sp_text_cell cell;

	if (!isfinite(old) || !isfinite(new))
		strcpy(cell.text, "unknown");
	else if (!(old > 0))
		strcpy(cell.text, new > 0 ? "new" : "0 %");
	else if (!(new > 0))
		strcpy(cell.text, "gone");
	else if (fabs(percent) < ROUNDING_PERCENT)
		strcpy(cell.text, "0 %");
	else if (percent > PERCENT_MAX)
		snprintf(cell.text, sizeof(cell.text), "> %.40s %%",
			 sp_figure_signed(PERCENT_MAX, 0).text);
	else if (fabs(percent) < 0.01)
		strcpy(cell.text, "<0.01 %");
	else
		snprintf(cell.text, sizeof(cell.text), "%.40s %%",
			 sp_figure_signed(sp_text_steady(percent),
					  fabs(percent) < 1      ? 2
					  : fabs(percent) < 1000 ? 1
								 : 0)
				 .text);
	return cell;
}

struct sp_text_cell sp_figure_share(double share)
{
	struct sp_text_cell cell = {"unknown"};
	/* What is left of a sum may be less than nothing by its rounding. */
	const double percent = fmax(100 * share, 0);

	if (percent > PERCENT_MAX)
		snprintf(cell.text, sizeof(cell.text), "> %.40s %%",
			 sp_figure_fixed(PERCENT_MAX, 0).text);
	else if (!isnan(share))
		snprintf(cell.text, sizeof(cell.text), "%.40s %%",
			 sp_figure_fixed(percent, share < 0.01  ? 2
						  : share < 0.1 ? 1
								: 0)
				 .text);
	return cell;
}
