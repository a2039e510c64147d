/* SPDX-License-Identifier: MIT */
#pragma once

#include <math.h>

#include "support/test.h"

/* cmocka compares floats only, and says nothing about how far off they
 * were. */

/* Fails the test unless |got - want| <= relative * |want|. */
#define assert_close(got, want, relative)                                      \
	assert_close_at(#got, got, want, relative, __FILE__, __LINE__)

/* Fails the test unless low <= value <= high. */
#define assert_between(low, value, high)                                       \
	assert_between_at(#value, low, value, high, __FILE__, __LINE__)

static inline void assert_close_at(const char *what, double got, double want,
				   double relative, const char *file, int line)
{
	if (fabs(got - want) <= relative * fabs(want))
		return;
	print_error("%s = %.17g, expected %.17g within %g, off by %g\n", what,
		    got, want, relative, fabs(got - want) / fabs(want));
	_fail(file, line);
}

static inline void assert_between_at(const char *what, double low, double value,
				     double high, const char *file, int line)
{
	if (low <= value && value <= high)
		return;
	print_error("%s = %.17g is not in [%.17g, %.17g]\n", what, value, low,
		    high);
	_fail(file, line);
}
