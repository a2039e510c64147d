/* SPDX-License-Identifier: MIT */
#pragma once

#include "report/aggregate.h"
#include "text/json.h"

/* The members of an open object that identify a function. */
void sp_function_json_identity(struct sp_json *json,
			       const struct sp_aggregate_function *function);

/* The members of one that name the call path of most of its bytes (NULL: none),
 * and which share of them that has. */
void sp_function_json_path(struct sp_json *json,
			   const struct sp_aggregate *aggregate,
			   const struct sp_aggregate_stack *stack,
			   double share);

/* The same, and its number of samples. */
void sp_function_json(struct sp_json *json,
		      const struct sp_aggregate_function *function);
