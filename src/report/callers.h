/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "report/aggregate.h"

/*
 * A line "< caller < caller" for people, `indent` columns from the margin: the
 * program's own functions that call the flat one of the stack, as many as fit
 * whole, at least one.  `share` is how much of the row's bytes the stack has;
 * it is said if it is less than all.  Nothing if no own function calls it.
 */
void sp_callers_print(FILE *out, const struct sp_aggregate *aggregate,
		      const struct sp_aggregate_stack *stack,
		      unsigned int indent, double share);
