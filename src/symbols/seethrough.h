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

/*
 * The interpreter of a stack: the functions of a script are in no file, and
 * the innermost of them that calls an interpreter tells in which module that
 * is.  What that module does is done for the script's function, and so its
 * functions count as SP_ROLE_LIBRARY further in.  In a stack without a script
 * they are what they are: a program that only links an interpreter keeps all.
 */
struct sp_interpreter {
	bool is_found;
	size_t at; /* the interpreter's frame if is_found */
	bool is_inside;
};

/* Takes the roles of all functions of a stack, from the innermost outwards,
 * and which frame each is in; true: found, and no more are needed.  `in` begins
 * as zeros. */
bool sp_interpreter_look(struct sp_interpreter *in, enum sp_role role,
			 size_t at);

void sp_see_through_free(struct sp_see_through *rules);
