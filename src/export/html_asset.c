/* SPDX-License-Identifier: MIT */
#include "export/html_asset.h"

/* The paths are given by the build. */
#define ASSET(name, path)                                                      \
	__asm__(".section .rodata\n"                                           \
		".global " #name "\n" #name ":\n"                              \
		".incbin \"" path "\"\n"                                       \
		".byte 0\n"                                                    \
		".size " #name ", . - " #name "\n"                             \
		".previous\n")

ASSET(sp_html_asset_head, SP_HTML_HEAD);
ASSET(sp_html_asset_tail, SP_HTML_TAIL);
