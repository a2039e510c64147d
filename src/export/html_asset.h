/* SPDX-License-Identifier: MIT */
#pragma once

/* The page before and after its data; cmake/page.cmake makes it from
 * src/export/html. */
extern const char sp_html_asset_head[];
extern const char sp_html_asset_tail[];
