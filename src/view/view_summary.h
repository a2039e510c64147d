/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "report/analysis.h"

/* The text above and below the tables of the text report. */

/* The program, the exact total, live bytes, the peak, and RSS if live bytes are
 * shown: each once. */
void sp_view_summary_print_header(FILE *out,
				  const struct sp_analysis *analysis);

/* The name of the view below, and its total unless a line above has it. */
void sp_view_summary_print_view(FILE *out, const struct sp_analysis *analysis);

/* The patterns in force, and the rest of the view that they leave; nothing
 * without a filter. */
void sp_view_summary_print_filter(FILE *out,
				  const struct sp_analysis *analysis);

/* Below the tables: the meaning of the limits, the method, and its data.
 * n_together rows hold together; 0: each by itself. */
void sp_view_summary_print_method(FILE *out, const struct sp_analysis *analysis,
				  const struct sp_estimation *how,
				  size_t n_together);
