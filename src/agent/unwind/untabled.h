/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "agent/unwind/step.h"

/*
 * The rule of a frame at p->pc, in object `e`, which has no unwind tables for
 * it: by its instructions, those of the code that has called it, and the words
 * of the stack.  False: they do not say it, or contradict each other.
 * Context: sampled.
 */
bool sp_untabled_find(struct sp_step_way *way, const struct sp_step_position *p,
		      struct sp_module_entry *e, struct sp_cfi_rule *ret);
