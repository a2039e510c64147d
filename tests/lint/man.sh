#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# groff has no warning about the man pages, and each names the version of the
# project.
# Usage: man.sh DIRECTORY VERSION; status 77 (skipped) without groff.

set -euo pipefail

if ! command -v groff >/dev/null; then
	echo "groff is not installed"
	exit 77
fi
bad=0
pages=0
for page in "$1"/*.[1-9]; do
	[ -e "$page" ] || continue
	pages=$((pages + 1))
	if ! words=$(groff -mandoc -Tutf8 -ww -z "$page" 2>&1) ||
		[ -n "$words" ]; then
		printf '%s: %s\n' "$page" "$words"
		bad=1
	fi
	if ! grep -q "^\.TH .* \"sampleprof $2\" " "$page"; then
		echo "$page: its .TH does not name sampleprof $2"
		bad=1
	fi
done
[ "$pages" -gt 0 ] || { echo "no man pages in $1" >&2; exit 1; }
exit "$bad"
