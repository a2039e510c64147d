#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Only the files of an architecture, *_x86_64.* and *_aarch64.*, ask which one
# this is or have instructions of it; arch.h and cpu.h choose.  The public header
# stands alone, and html_asset.c has data, not instructions.
# Usage: arch.sh ROOT

set -euo pipefail

cd "$1"
bad=0
while IFS= read -r line; do
	printf '%s\n' "$line"
	bad=1
done < <(find src tools \( -name '*.[chS]' -o -name '*.cc' \) \
	! -name '*_x86_64.[chS]' ! -name '*_aarch64.[chS]' \
	! -path src/agent/sys/arch.h ! -path src/control/cpu.h \
	! -path src/export/html_asset.c -print0 |
	xargs -0 -r grep -nE \
		'__x86_64|__aarch64|__arm|__i386|__builtin_(ia32|aarch64)|\<(__)?asm(__)? *(volatile *)?\("|\<REG_R[A-Z]' || true)
[ "$bad" -eq 0 ] || echo "what an architecture has of its own is in agent/sys/arch.h and control/cpu.h"
exit "$bad"
