/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "text/text.h"

/*
 * Numbers as text, for every writer.  Here alone they get signs: a zero has
 * none, a number that is rounded to zero is one, and what is not finite is no
 * number.
 */

/* "12.3", "-0.40", "0.00": beyond 1e17 with an exponent; "unknown" if it is not
 * finite. */
struct sp_text_cell sp_figure_fixed(double value, int decimals);

/* The same with a sign: "+12.3", "-0.40", "0.00". */
struct sp_text_cell sp_figure_signed(double value, int decimals);

/* Digits for programs, in JSON and CSV alike: all of a whole number, else
 * twelve; a sum in another order has others behind them, and is the same
 * figure.  "" if it is not finite. */
struct sp_text_cell sp_figure_digits(double value);

/* How long a run was: "1.04 s", else as sp_text_duration(): moments stand
 * beside it, with more digits. */
struct sp_text_cell sp_figure_length(uint64_t ns);

/* Digits of an interval: with a width, twelve of what has more, and then limits
 * are rounded outwards, so that the value is between them. */
struct sp_figure_limits {
	struct sp_text_cell value, lo, hi;
};
struct sp_figure_limits sp_figure_limits(struct sp_interval interval);

/* ---- figures of a comparison: bytes, or objects ---- */

/* "1.20 MiB", "1,204" */
struct sp_text_cell sp_figure(double value, bool is_bytes);

/* What was counted: "1.20 MiB"; not exact: the least, rounded down.  With
 * words: "at least 1.19 MiB". */
struct sp_text_cell sp_figure_total(uint64_t bytes, bool is_exact);
struct sp_text_cell sp_figure_counted(uint64_t bytes, bool is_exact);

/* "+1.20 MiB", "-3.4 KiB", "0 B" */
struct sp_text_cell sp_figure_change(double value, bool is_bytes);

/* "[-3.4 KiB, +1.20 MiB]" of a change, "[1.1, 1.3] MiB" of values; "exact" if
 * the limits meet. */
struct sp_text_cell sp_figure_interval(struct sp_interval interval,
				       bool is_bytes, bool is_change);

/* "+3.1 %" of the old value, "new" or "gone" where one of them is 0, "0 %". */
struct sp_text_cell sp_figure_percent(double old, double new);

/* "8.3 %" */
struct sp_text_cell sp_figure_share(double share);
