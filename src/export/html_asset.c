/* SPDX-License-Identifier: MIT */
/* The directory is given by the build. */
#include "export/html_asset.h"

#define ASSET(name, file)                                                      \
	__asm__(".section .rodata\n"                                           \
		".global " #name "\n" #name ":\n"                              \
		".incbin \"" SP_HTML_DIRECTORY "/" file "\"\n"                 \
		".byte 0\n"                                                    \
		".size " #name ", . - " #name "\n"                             \
		".previous\n")

ASSET(sp_html_asset_head, "page_head.html");
ASSET(sp_html_asset_tail, "page_tail.html");
ASSET(sp_html_asset_rss_head, "rss_head.html");
ASSET(sp_html_asset_rss_tail, "rss_tail.html");
