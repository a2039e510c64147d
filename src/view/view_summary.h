/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "report/analysis.h"

/* What stands above and below the tables of the text report. */

/* What was profiled, the exact total, what is alive, the peak, and RSS where
 * live bytes are shown: each once. */
void sp_view_summary_print_header(FILE *out,
				  const struct sp_analysis *analysis);

/* Which view the rows below are of, and their total where no line above has it.
 */
void sp_view_summary_print_view(FILE *out, const struct sp_analysis *analysis);

/* Below the tables: what the limits of all estimates mean, by which method they
 * were made of what; n_together rows hold together, 0: each by itself. */
void sp_view_summary_print_method(FILE *out, const struct sp_analysis *analysis,
				  const struct sp_estimation *how,
				  size_t n_together);
