/* SPDX-License-Identifier: MIT */
#pragma once

#include "agent/divert/divert.h"

/*
 * Add the families of an object, by the symbol table of its file, if that is
 * what is in memory.  False: there is none that has a malloc and a free.
 * Context: cold, while the object cannot go.
 */
bool sp_divert_find(const struct sp_loaded *object,
		    struct sp_divert_families *families);

/* Is the code of a function in a segment that can be read and executed? */
bool sp_divert_is_code(const struct sp_loaded *object,
		       const struct sp_divert_function *f);
