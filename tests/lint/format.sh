#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Every C and C++ file is as clang-format 14 writes it.
# Usage: format.sh ROOT; status 77 (skipped) without clang-format 14.

set -euo pipefail

tool=
for candidate in clang-format-14 clang-format; do
	if "$candidate" --version 2>/dev/null | grep -q 'version 14\.'; then
		tool=$candidate
		break
	fi
done
if [ -z "$tool" ]; then
	echo "clang-format 14 is not installed"
	exit 77
fi
cd "$1"
find src include tools tests \( -name '*.[ch]' -o -name '*.cc' \) -print0 |
	xargs -0 -r "$tool" --style=file --dry-run -Werror
