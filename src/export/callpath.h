/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "report/aggregate.h"

/*
 * Call stacks for Valgrind's formats, which identify frames by their text:
 *
 *   0x401146: main (app.c:12)
 *   0x7f21c4e: xmlStrdup (in /usr/lib/libxml2.so.2)
 *
 * The address is that of the call; inlined functions share it.  The text has
 * untrusted names.
 */
#define SP_CALLPATH_ROOT 0u /* frame "[root]": in no path */

struct sp_callpath {
	uint32_t n_frames;      /* >= 1 */
	const uint32_t *frames; /* positions in `texts`, innermost first */
};

/* Distinct paths in lexicographic order of their frames, so that paths with a
 * common beginning are neighbours, shorter ones first. */
struct sp_callpaths {
	char **texts; /* of distinct frames */
	uint32_t n_texts;
	struct sp_callpath *paths;
	uint32_t n_paths;
	uint32_t *path_of_stack; /* of profile->stacks; UINT32_MAX: none */
	uint32_t *all_frames;    /* the memory of `frames` of all paths */
};

/* The paths of the stacks that have samples in the selection. 0 and *paths, to
 * be released with sp_callpaths_done(); or -ENOMEM and *err. */
int sp_callpaths_init(struct sp_callpaths *paths,
		      const struct sp_aggregate *aggregate,
		      const struct sp_selection *selection,
		      struct sp_error *err);

void sp_callpaths_done(struct sp_callpaths *paths);
