/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compare/match.h"

/*
 * Functions without names: their binary is missing, was rebuilt, or was
 * stripped.  If the functions of a module have names in some runs and none in
 * others, it is unknown which is which.  The module is mixed, and its functions
 * cannot be compared.
 */
struct sp_names {
	uint32_t *mixed; /* a frame of each mixed module */
	size_t n_mixed;
	bool are_missing; /* a run lacks names that it should have */
};

/* The names that one run lacks in one module. */
struct sp_names_gap {
	const struct sp_summary *run;
	const char *module; /* its path, or its name as in the frames */
	const char *reason; /* a clause; NULL: not known */
	double share;       /* of all bytes, on paths with such functions */
	size_t paths, of;   /* such paths, and all paths */
	size_t n_more;      /* other runs of that side that lack as much */
};

/*
 * Calls `say` for each gap to be reported, largest share first on each side. 0
 * and *ret, to be released; -ENOMEM.
 */
int sp_names_init(struct sp_names *ret, const struct sp_pair *pair,
		  void (*say)(void *arg, const struct sp_names_gap *gap),
		  void *arg);

bool sp_names_is_mixed(const struct sp_names *names,
		       const struct sp_paths *paths, uint32_t frame);
/* Has the path a frame of such a module? */
bool sp_names_is_mixed_path(const struct sp_names *names,
			    const struct sp_paths *paths, uint32_t path);

void sp_names_done(struct sp_names *names);
