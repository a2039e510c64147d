/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "report/aggregate.h"
#include "text/json.h"

/* The beginning of all JSON of the report: the run and its exact totals, the
 * estimates of the whole view, the filters and the method. */
void sp_view_json_head(struct sp_json *json,
		       const struct sp_aggregate *aggregate);

/* {"alloc_bytes": ..., "alloc_objects": ...} under "exact" */
void sp_view_json_exact(struct sp_json *json, uint64_t bytes, uint64_t objects);

/* An estimate with its limits. */
void sp_view_json_bytes(struct sp_json *json, const char *key,
			const struct sp_estimation *how,
			const struct sp_class_sums *sums);
void sp_view_json_objects(struct sp_json *json, const char *key,
			  const struct sp_estimation *how,
			  const struct sp_class_sums *sums);

/* The patterns by their options' names under "filter", or null. */
void sp_view_json_filter(struct sp_json *json, const struct sp_filter *filter);
