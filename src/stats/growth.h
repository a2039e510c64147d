/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stats/estimator.h"

/*
 * Does what a call site keeps grow without end (docs/statistics.md, "Leak or
 * not")?  A run is cut into windows.  At the end of a window an object is old
 * if it was there before the window began; old bytes are counted, so that what
 * lives shortly is in no figure, whenever the run ends.
 */
#define SP_GROWTH_WINDOWS 18u
/* The first of them are the start of the run, and in no test. */
#define SP_GROWTH_START 2u

/* The windows: window k begins at edge_ns[k], and ends before edge_ns[k + 1].
 * Ascending; two may be equal. */
struct sp_growth_clock {
	uint64_t edge_ns[SP_GROWTH_WINDOWS + 1];
};

/* Windows of equal length. */
struct sp_growth_clock sp_growth_clock_even(uint64_t from_ns, uint64_t to_ns);

/*
 * The parts of the run that tests compare: the start, the first half of what
 * follows, the third and the last quarter; NEVER is where what was not freed
 * leaves.
 */
enum sp_growth_part {
	SP_GROWTH_IN_START,
	SP_GROWTH_IN_FIRST,
	SP_GROWTH_IN_THIRD,
	SP_GROWTH_IN_LAST,
	SP_GROWTH_NEVER,
	SP_GROWTH_PARTS,
};

/* The samples of a site.  Zero-initialise, then sp_growth_init(). */
struct sp_growth {
	uint64_t samples;   /* born before the end */
	uint64_t old;       /* of them: became old after the start */
	double born_bytes;  /* after the middle, the start left out */
	double alive_bytes; /* at the end */
	double young_bytes; /* of them: not old */
	/* By the part in which samples became old, and that in which they left:
	 * bytes, and their sampling variance. */
	double bytes[SP_GROWTH_PARTS][SP_GROWTH_PARTS];
	double var[SP_GROWTH_PARTS][SP_GROWTH_PARTS];
	/* Change of the old bytes in each window, and what is alive at its end.
	 */
	double growth[SP_GROWTH_WINDOWS];
	double alive[SP_GROWTH_WINDOWS];
	/* Old since the start, or since the middle, and there at the end; and
	 * old before that, and gone by then: 0 of all windows, 1 of the second
	 * half. */
	struct sp_acc gained[2], lost[2];
	double squares; /* of gained[0]: sum of squared bytes */
};

void sp_growth_init(struct sp_growth *growth, uint64_t period_bytes);

/* One sample, of what it stands for: born at that time, and gone at that;
 * SP_NEVER: not gone. */
void sp_growth_add(struct sp_growth *growth,
		   const struct sp_growth_clock *clock, uint64_t born_ns,
		   uint64_t gone_ns, const struct sp_acc *one);

/* What the tests say of one clock. */
struct sp_growth_test {
	/* p-values, one-sided: of "it does not grow", and of "it slows down"
	 * (E51), each of which has to be rejected to call it a leak. */
	double p_none;
	double p_slows;
	/* The latter by the samples alone, however much windows scatter. */
	double p_slows_sampled;
	/* p-value of "it does not grow in the second half" (E55). */
	double p_half;
	/* p-value of "it does not slow down" (E52). */
	double p_goes_on;
	/* Windows of each half in which it grew. */
	unsigned int windows[2];
	/* Standard errors by which "it slows down" would be rejected, were the
	 * growth the same all the time (E53); 0: it does not grow; INFINITY:
	 * nothing is left to chance. */
	double strength;
};

struct sp_growth_test sp_growth_test(const struct sp_growth *growth);

/* Growth of the old bytes at `confidence` in (0, 1): after the start, or in the
 * second half of that. */
struct sp_interval sp_growth_bytes(const struct sp_growth *growth, bool of_half,
				   double confidence);

/* Mean of what was alive at the ends of the windows of the second half. */
double sp_growth_level(const struct sp_growth *growth);

/* As many objects of one size would scatter as those that were gained; 0: there
 * are none. */
double sp_growth_objects(const struct sp_growth *growth);

/* Is the growth of the last quarter above 0 at the level p, one-sided? */
bool sp_growth_is_late(const struct sp_growth *growth, double p);
