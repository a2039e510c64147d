#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Files have at most 600 lines, functions at most 60.
#
# A function is what stands between braces that are alone in the first column.
# Usage: size.sh ROOT

set -euo pipefail

cd "$1"
find src include tools tests \( -name '*.[ch]' -o -name '*.cc' \) -print0 |
	xargs -0 -r awk '
FNR == 1 {
	start = 0
}
FNR == 601 {
	printf "%s: more than 600 lines\n", FILENAME
	bad = 1
}
/^{/ {
	start = FNR
}
/^}/ && start {
	lines = FNR - start + 1
	if (lines > 60) {
		printf "%s:%d: function of %d lines (limit 60)\n", FILENAME,
			start, lines
		bad = 1
	}
	start = 0
}
END { exit bad }'
