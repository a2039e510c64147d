/* SPDX-License-Identifier: MIT */
#pragma once

/* The page before and after its data: what cmake/page.cmake makes of
 * src/export/html. */
extern const char sp_html_asset_head[];
extern const char sp_html_asset_tail[];
