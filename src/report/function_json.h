/* SPDX-License-Identifier: MIT */
#pragma once

#include "report/aggregate.h"
#include "text/json.h"

/* A function as the members of an open object: what tells it from others. */
void sp_function_json_identity(struct sp_json *json,
			       const struct sp_aggregate_function *function);

/* The same, and its samples. */
void sp_function_json(struct sp_json *json,
		      const struct sp_aggregate_function *function);
