/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "report/analysis.h"

/* Lines of the head about resident and mapped memory, and what the system
 * allows. */

/* If live bytes are shown, and RSS was recorded. */
void sp_view_memory_print_rss(FILE *out, const struct sp_analysis *analysis);

/* What the program maps by itself, if that is much: its memory may not be its
 * heap. */
void sp_view_memory_print_mapped(FILE *out, const struct sp_analysis *analysis);

/* Of one process that is there, or was killed. */
void sp_view_memory_print_limit(FILE *out, const struct sp_profile *profile);
