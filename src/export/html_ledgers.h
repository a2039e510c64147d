/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "model/profile.h"
#include "report/ledgers.h"
#include "text/json.h"

/* The ledgers of resident memory, if the profile is of one process and has
 * them: "ledgers", an array.  If memory is short, nothing is written. */
void sp_html_ledgers_put(struct sp_json *json,
			 const struct sp_profile *profile);

/* A page of ledgers alone, of that program.  Write errors stay in the stream.
 */
void sp_html_ledgers_page(FILE *out, const char *program, uint64_t pid,
			  const struct sp_ledgers *ledgers);
