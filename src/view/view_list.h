/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "report/aggregate.h"
#include "report/listing.h"

/*
 * The listings with the text of their lines and of the lines around them, if
 * the source files are found; source_path is for sp_sourcefile_new().
 */
void sp_view_list_print(FILE *out, const struct sp_aggregate *functions,
			const struct sp_listings *listings,
			const char *source_path);
