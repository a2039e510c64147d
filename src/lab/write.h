/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "lab/trial.h"
#include "text/json.h"

/* What came of a trial of n strategies on one trace: a table for people.
 * Write errors stay in the stream. */
void sp_lab_print(FILE *out, const struct sp_lab_trial *trial,
		  const struct sp_lab_trace *trace,
		  const struct sp_lab_result *results, size_t n);

/* The same as an object of an array. */
void sp_lab_write_json(struct sp_json *json, const struct sp_lab_trial *trial,
		       const struct sp_lab_trace *trace,
		       const struct sp_lab_result *results, size_t n);
