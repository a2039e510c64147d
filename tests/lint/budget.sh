#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The tree is no larger than budget.txt allows: lines of src and of tests, and
# rooms of src.  Recorded profiles and inputs of the fuzz targets do not count.
# A commit that raises a bound does nothing else, and says why.
# Usage: budget.sh ROOT

set -euo pipefail

cd "$1"
# lines FOLDER
lines() {
	find "$1" -type f ! -name '*.pyc' ! -path '*/golden/*' \
		! -path '*/corpus/*' -exec cat {} + | wc -l
}

rooms() {
	find src -name '*.[ch]' -printf '%h\n' |
		sed -E 's,^src/((agent/)?[^/]+).*,\1,' | sort -u | wc -l
}

bad=0
while read -r what most; do
	case $what in
	src | tests) now=$(lines "$what") ;;
	rooms) now=$(rooms) ;;
	*) continue ;;
	esac
	if [ "$now" -gt "$most" ]; then
		echo "$what: $now, more than $most (tests/lint/budget.txt)"
		bad=1
	fi
done <tests/lint/budget.txt
exit "$bad"
