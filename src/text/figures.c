/* SPDX-License-Identifier: MIT */
#include "text/figures.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct sp_text_cell sp_figure(double value, bool is_bytes)
{
	if (is_bytes)
		return sp_text_bytes(value);
	return sp_text_count(value < 9.2e18 ? (uint64_t)nearbyint(value)
					    : INT64_MAX);
}

struct sp_text_cell sp_figure_change(double value, bool is_bytes)
{
	const struct sp_text_cell size = sp_figure(fabs(value), is_bytes);
	const bool is_zero = size.text[0] == '0' &&
			     strspn(size.text, "0.") == strcspn(size.text, " ");
	struct sp_text_cell cell;

	snprintf(cell.text, sizeof(cell.text), "%s%.40s",
		 is_zero     ? ""
		 : value < 0 ? "-"
			     : "+",
		 size.text);
	return cell;
}

struct sp_text_cell sp_figure_interval(struct sp_interval interval,
				       bool is_bytes, bool is_change)
{
	struct sp_text_cell (*const text)(double, bool) =
		is_change ? sp_figure_change : sp_figure;
	struct sp_text_cell cell, lo, hi;
	char *lo_unit, *hi_unit;

	if (!(interval.lo < interval.hi)) {
		strcpy(cell.text, "exact");
		return cell;
	}
	lo = text(interval.lo, is_bytes);
	hi = text(interval.hi, is_bytes);
	lo_unit = strchr(lo.text, ' ');
	hi_unit = strchr(hi.text, ' ');
	if (lo_unit && hi_unit && strcmp(lo_unit, hi_unit) == 0)
		*lo_unit = '\0';
	else
		hi_unit = NULL;
	snprintf(cell.text, sizeof(cell.text), "[%.21s, %.*s]%.6s", lo.text,
		 hi_unit ? (int)(hi_unit - hi.text) : 21, hi.text,
		 hi_unit ? hi_unit : "");
	return cell;
}

/* Sums that are held against one total differ by that, and by nothing. */
#define ROUNDING_PERCENT 1e-9

struct sp_text_cell sp_figure_percent(double old, double new)
{
	const double percent = 100 * (new - old) / old;
	struct sp_text_cell cell;

	if (!(old > 0))
		strcpy(cell.text, new > 0 ? "new" : "0 %");
	else if (!(new > 0))
		strcpy(cell.text, "gone");
	else if (fabs(percent) < ROUNDING_PERCENT)
		strcpy(cell.text, "0 %");
	else if (fabs(percent) < 0.01)
		snprintf(cell.text, sizeof(cell.text), "%c<0.01 %%",
			 percent < 0 ? '-' : '+');
	else
		snprintf(cell.text, sizeof(cell.text), "%+.*f %%",
			 fabs(percent) < 1      ? 2
			 : fabs(percent) < 1000 ? 1
						: 0,
			 percent);
	return cell;
}

struct sp_text_cell sp_figure_share(double share)
{
	struct sp_text_cell cell;

	snprintf(cell.text, sizeof(cell.text), "%.*f %%",
		 share < 0.01  ? 2
		 : share < 0.1 ? 1
			       : 0,
		 100 * share);
	return cell;
}
