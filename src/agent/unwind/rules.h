/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/unwind/cfi.h"

/*
 * What is known of return addresses: the rule of each, for all threads.  A
 * cache: it grows with the program up to a megabyte, and forgets what does not
 * fit.  Takes no lock.
 *
 * The rule of `pc`, also if it is SP_CFI_OTHER; false, and of it only the kind,
 * SP_CFI_UNKNOWN: none is known.
 * Context: sampled.
 */
bool sp_rules_find(uintptr_t pc, struct sp_cfi_rule *ret);

/* Keep a rule.  If its object can be unloaded (is_permanent is false), only as
 * long as no unknown object appears (sp_modules_count).  Context:
 * sampled. */
void sp_rules_add(uintptr_t pc, const struct sp_cfi_rule *rule,
		  bool is_permanent);
