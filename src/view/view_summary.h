/* SPDX-License-Identifier: MIT */
#ifndef SP_VIEW_VIEW_SUMMARY_H
#define SP_VIEW_VIEW_SUMMARY_H

#include <stdio.h>

#include "report/analysis.h"

/* What stands above the tables of the text report. */

/* What was profiled, the exact total beside its estimate, what is alive, the
 * peak, and RSS where live bytes are shown. */
void sp_view_summary_print_header(FILE *out,
				  const struct sp_analysis *analysis);

/* Which view the rows below are of, their total where no line above has it,
 * and by which method and at which level they are estimated; n_together of
 * them hold together, 0: each by itself. */
void sp_view_summary_print_view(FILE *out, const struct sp_analysis *analysis,
				const struct sp_estimation *how,
				size_t n_together);

#endif
