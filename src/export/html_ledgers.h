/* SPDX-License-Identifier: MIT */
#pragma once

#include "model/profile.h"
#include "text/json.h"

/* The ledgers of resident memory, if the profile is of one process and has
 * them: "ledgers", an array.  If memory is short, nothing is written. */
void sp_html_ledgers_put(struct sp_json *json,
			 const struct sp_profile *profile);
