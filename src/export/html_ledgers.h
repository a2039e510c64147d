/* SPDX-License-Identifier: MIT */
#pragma once

#include "model/profile.h"
#include "text/json.h"

/* What resident memory was made of, of a profile of one process that says so:
 * "ledgers", an array; without memory for it none. */
void sp_html_ledgers_put(struct sp_json *json,
			 const struct sp_profile *profile);
