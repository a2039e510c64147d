/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "export/format.h"

/*
 * One file for a browser: src/export/html (src/README.md) with the profile in
 * it (docs/guide.md).  It needs no network, and nothing that the profile says
 * is markup.  With options->base it has that profile, too, and shows the
 * differences.  Call stacks with few bytes become SP_HTML_PATHS_OTHER beyond
 * the limits of export/html_cells.h and SP_EXPORT_HTML_FRAMES_MAX.
 *
 * 0, -ENOMEM, -E2BIG (more sizes than a page can show), or -EINVAL (a view or a
 * method that the page does not have), and *err, with nothing or a part
 * written.
 */
int sp_export_html_write(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_export_options *options,
			 struct sp_error *err);

/* Frames in all call stacks of a page. */
#define SP_EXPORT_HTML_FRAMES_MAX 4000000u
