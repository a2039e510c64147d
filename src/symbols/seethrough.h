/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "model/profile.h"

/*
 * Which functions are the program's own, by name alone, so that a baseline
 * without addresses gets the same answer as a profile: see_through.def, and
 * what the user adds.
 */
struct sp_see_through;

struct sp_see_through_options {
	/* All that is not SP_ROLE_ALLOCATOR is the program's own. */
	bool all_frames;
	/* More that is SP_ROLE_LIBRARY: a regular expression
	 * (symbols/pattern.h) or "@FILE", a file of them, one a line, '#'
	 * begins a comment.  It is searched in the function's name with its
	 * parameters and as people read it, and in the name of the module's
	 * file.  NULL: nothing. */
	const char *more;
};

/* 0 and *ret, to be freed; -EINVAL and *err, which says what is wrong with an
 * expression; errors of reading FILE and *err; -ENOMEM and *err. */
int sp_see_through_new(const struct sp_see_through_options *options,
		       struct sp_see_through **ret, struct sp_error *err);

/* `name` has all its parameters (struct sp_symbol's identity); `module` is the
 * name of a file without directory, "" for the program itself.  What takes too
 * long to search does not match. */
enum sp_role sp_see_through_role(const struct sp_see_through *rules,
				 const char *module, const char *name);

void sp_see_through_free(struct sp_see_through *rules);
