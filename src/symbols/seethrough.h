/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "model/profile.h"

/*
 * Which functions are the program's own: the rules of see_through.def, and
 * those of the user.  Names alone decide, so that a baseline without addresses
 * gets the same answer as a profile.
 */
struct sp_see_through;

struct sp_see_through_options {
	/* Every function that is not SP_ROLE_ALLOCATOR is the program's own. */
	bool all_frames;
	/* Additional SP_ROLE_LIBRARY functions: a regular expression
	 * (symbols/pattern.h), or "@FILE", a file with one on each line; '#'
	 * begins a comment.  It is searched in the function's full name, in its
	 * readable name, and in the name of the module's file.  NULL: none. */
	const char *more;
};

/* 0 and *ret, to be freed; -EINVAL and *err, which says what is wrong with an
 * expression; errors of reading FILE and *err; -ENOMEM and *err. */
int sp_see_through_new(const struct sp_see_through_options *options,
		       struct sp_see_through **ret, struct sp_error *err);

/* `name` has all its parameters (struct sp_symbol's identity), its home does
 * not count; `module` is the
 * name of a file without directory, "" for the program itself.  If a search
 * takes too many steps, the expression does not match. */
enum sp_role sp_see_through_role(const struct sp_see_through *rules,
				 const char *module, const char *name);

/* Are functions a and b of a stack in one module? */
typedef bool sp_same_module_fn(const void *arg, size_t a, size_t b);

/*
 * The function that a stack is flat for, of the roles of its n functions from
 * the innermost outwards: the innermost that is the program's own; if there is
 * none, the innermost that is no allocator; else the innermost.
 *
 * A function without a name that a wrapper calls, both in one module, is part
 * of the wrapper: a static one of a stripped program, like palloc's in
 * PostgreSQL.
 *
 * Functions of a script are in no module.  The innermost of them that calls a
 * module shows which module is the interpreter.  That module works for the
 * script's function, so its functions further in count as SP_ROLE_LIBRARY, as
 * do functions without a name of any module there.  In
 * a stack without a script they are the program's own, also in a program that
 * only links an interpreter.  Each of roles[] becomes what it is in this stack:
 * SP_ROLE_OWN, SP_ROLE_LIBRARY or SP_ROLE_ALLOCATOR.
 */
size_t sp_find_flat(enum sp_role *roles, size_t n,
		    sp_same_module_fn *is_same_module, const void *arg);

void sp_see_through_free(struct sp_see_through *rules);
