/* SPDX-License-Identifier: MIT */
#ifndef SP_REPORT_VIEW_SUMMARY_H
#define SP_REPORT_VIEW_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include "report/aggregate.h"

/* What stands above and below the tables of the text report. */

/* What was profiled, and the exact total beside its estimate. */
void sp_view_summary_print_header(FILE *out,
				  const struct sp_aggregate *aggregate);

/*
 * What limits the figures (no samples, losses, damage, missing symbols), how
 * complete the file is, and the next command to try, which begins with
 * `program`; `stacks_shown` if the reader has already seen the call stacks.
 */
void sp_view_summary_print_notes(FILE *out,
				 const struct sp_aggregate *aggregate,
				 const char *program, bool stacks_shown);

#endif
