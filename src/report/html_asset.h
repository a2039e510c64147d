/* SPDX-License-Identifier: MIT */
#ifndef SP_REPORT_HTML_ASSET_H
#define SP_REPORT_HTML_ASSET_H

/* The page before and after its data: what cmake/page.cmake makes of
 * src/report/html. */
extern const char sp_html_asset_head[];
extern const char sp_html_asset_tail[];

#endif
