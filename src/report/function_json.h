/* SPDX-License-Identifier: MIT */
#pragma once

#include "report/aggregate.h"
#include "text/json.h"

/* The members of an open object that identify a function. */
void sp_function_json_identity(struct sp_json *json,
			       const struct sp_aggregate_function *function);

/* The same, and its number of samples. */
void sp_function_json(struct sp_json *json,
		      const struct sp_aggregate_function *function);
