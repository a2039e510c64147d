/* SPDX-License-Identifier: MIT */
#pragma once

#include "compare/match.h"

/* Runs made by hand, as sp_summary_take() would make them.  Whatever fails ends
 * the program. */

/* A whole run of "app" with frees and every view of a baseline, all empty. */
struct sp_summary *gate_run_new(uint64_t period_bytes);

/* A path "f<g<main", its samples in that view. */
void gate_run_add(struct sp_summary *run, struct sp_paths *paths,
		  enum sp_view view, const char *path,
		  const struct sp_acc *acc);

/* The same in a phase of a run. */
void gate_phase_add(struct sp_phase_sum *phase, struct sp_paths *paths,
		    const char *path, const struct sp_acc *acc);

/* n samples of size_bytes each, all hit at their first byte. */
struct sp_acc gate_samples(uint64_t n, uint64_t size_bytes,
			   uint64_t period_bytes);
