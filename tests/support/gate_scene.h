/* SPDX-License-Identifier: MIT */
#pragma once

#include "compare/check.h"
#include "support/gate_runs.h"

/* Two sides made by hand, and the verdict on one limit at a time.  What is
 * wrong fails the test. */

#define R 4096u /* period */

struct scene {
	struct sp_paths paths;
	struct sp_summary *old[3], *new[3];
	struct sp_limits limits;
	struct sp_check *check;
};

/* n runs on each side, of 1000 bytes in 10 objects, exactly; until the test
 * ends. */
struct scene *scene_new(size_t n);

/* So many samples of 16 bytes on the path "f<g<main". */
void add(struct scene *s, struct sp_summary *run, const char *path,
	 unsigned int samples);

/* The verdict on one limit; valid until the next one. */
const struct sp_finding *judge(struct scene *s, const char *limit);

void assert_verdict(struct scene *s, const char *limit,
		    enum sp_verdict verdict);
