/* SPDX-License-Identifier: MIT */
#pragma once

/* The pages before and after their data; cmake/page.cmake makes them from
 * src/export/html. */
extern const char sp_html_asset_head[];
extern const char sp_html_asset_tail[];
extern const char sp_html_asset_rss_head[];
extern const char sp_html_asset_rss_tail[];
