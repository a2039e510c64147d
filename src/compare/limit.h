/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "symbols/pattern.h"
#include "stats/compare.h"

/*
 * A limit on what may change, and by how much:
 *
 *   alloc_bytes = +3%            at most 3 % more than the baseline
 *   alloc_objects = +3%&1000     more than 3 % and more than 1000 is too much
 *   peak_bytes = 24M             at most that, whatever the baseline has
 *   sites = +10%&64K             each function by itself
 *   site(^json_) = +-5%          all paths with such a function, either way
 *   module(libxml2) = +64K       all paths through such a module
 *   alloc_bytes@load = +1%       in the phase "load"
 *   sites@load = +10%&64K        likewise, each function by itself
 *   leak_rate = 10K              no function leaks more in a second
 *   leak_rate(^(?!cache_)) = 0   none with such a name leaks at all
 */
enum sp_limit_kind {
	SP_LIMIT_ALLOC_BYTES,
	SP_LIMIT_ALLOC_OBJECTS,
	SP_LIMIT_PEAK_BYTES,
	SP_LIMIT_LIVE_BYTES,
	SP_LIMIT_TEMPORARY_BYTES,
	SP_LIMIT_SITES,
	SP_LIMIT_SITE,
	SP_LIMIT_MODULE,
	SP_LIMIT_LEAK_RATE,
	SP_LIMIT_KINDS,
};

struct sp_limit {
	enum sp_limit_kind kind;
	char *text; /* as written, without white space around it */
	char *name; /* what stands before the '=' */
	struct sp_pattern
		*pattern; /* of SITE and MODULE, perhaps of LEAK_RATE */
	char *phase;      /* NULL: the whole run */
	bool is_cap; /* `cap`, and no baseline is needed; else `allowance` */
	double cap;
	struct sp_allowance allowance;
	bool both_ways;   /* a decrease is not allowed to be larger, either */
	const char *file; /* that it is from; NULL: the command line */
	unsigned int line;
};

/* Zero-initialise. */
struct sp_limits {
	struct sp_limit *at;
	size_t n, room;
};

/* Add one.  0; -EINVAL and *err, which says what is wrong and what would be
 * right; -ENOMEM and *err. */
int sp_limits_add(struct sp_limits *limits, const char *text,
		  struct sp_error *err);

/*
 * Add those of a file: one in a line, comments from '#' at the beginning of a
 * line or after white space, empty lines.  Borrows `path`.  0; negative errno
 * and *err, which names the line.
 */
int sp_limits_read(struct sp_limits *limits, const char *path,
		   struct sp_error *err);

void sp_limits_done(struct sp_limits *limits);

/* Is it about bytes?  Else about objects. */
bool sp_limit_is_bytes(const struct sp_limit *limit);

/* Is its figure counted, not estimated? */
bool sp_limit_is_exact(const struct sp_limit *limit);
