/* SPDX-License-Identifier: MIT */
#pragma once

#include "export/html_cells.h"
#include "export/html_paths.h"
#include "text/json.h"

/*
 * The long columns of a page: variable-length integers (base/bytes.h) in
 * base64, as strings of the present JSON object.  0 or -ENOMEM.
 *
 * "paths", each: frames shared with the path before, number of the others,
 * those, frames between the flat one and the innermost.
 * "kinds", each: size in bytes; 2 * position in `periods` + (1 if sure).
 * "cells", for each path: how many, and each: kind; bin of birth; 0 if it was
 * never freed, else 1 + the edge of its end; 16 * (count - 1) + flags.
 */
int sp_html_columns_paths(struct sp_json *json,
			  const struct sp_html_paths *paths);
int sp_html_columns_kinds(struct sp_json *json,
			  const struct sp_html_cells *cells);
int sp_html_columns_cells(struct sp_json *json,
			  const struct sp_html_cells *cells, size_t n_paths);
