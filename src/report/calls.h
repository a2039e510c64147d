/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/aggregate.h"

/* A function of a call stack. */
struct sp_call {
	const struct sp_symbol *symbol;
	struct sp_frame frame;
};

/*
 * The functions of a call stack, innermost first, also inlined ones; of a stack
 * without frames SP_LABEL_NO_STACK.  Never empty.  Zero-initialise.
 */
struct sp_calls {
	struct sp_call *at;
	size_t n, room;
	enum sp_role *roles; /* of each, in this stack (sp_find_flat()) */
	size_t roles_room;
	bool are_all;  /* --all-frames: none is left out */
	uint32_t flat; /* that which the stack's bytes are flat for */
};

/* Is it left out where the program's own functions are shown?  The flat one
 * never is. */
static inline bool sp_calls_foreign(const struct sp_calls *calls, size_t i)
{
	return !calls->are_all && i != calls->flat &&
	       calls->roles[i] != SP_ROLE_OWN;
}

/* Those of one stack after the other.  0 or -ENOMEM. */
int sp_calls_read(struct sp_calls *calls, const struct sp_aggregate *aggregate,
		  const struct sp_stack *stack);

void sp_calls_done(struct sp_calls *calls);
