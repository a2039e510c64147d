#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Offline code writes where base/place.h has found a place, and nowhere else: no
# file is made, removed or renamed by a path, and the files that open one for
# writing are known.
# Usage: written.sh ROOT

set -euo pipefail

cd "$1"
# Those that do, and what they open; library.c writes for other processes.
known='src/(base/place|text/output|control/(death|ask|library)|compare/gate)\.c|tools/(names|console)\.c'
by_path='\b(creat|mkstemp|mkostemp|mkdtemp|rename|link|unlink|symlink|mkdir|remove|truncate|chmod|chown|freopen) *\('
for_writing='\bO_(WRONLY|RDWR|CREAT|TMPFILE)\b|\bfopen *\([^)]*, *"[^"]*[wa+]'

status=0
# complain PATTERN REASON EXCEPT: lines of offline code with the pattern.
complain() {
	local found line
	found=$(grep -rnP --include='*.c' "$1" src tools | grep -v '^src/agent/' |
		grep -vE "^($3):" || true)
	[ -n "$found" ] || return 0
	while read -r line; do
		echo "$line: $2"
	done <<<"$found"
	status=1
}
complain "$by_path" "by a path, which others may lead elsewhere: see base/place.h" 'src/control/library\.c'
complain "$for_writing" "opened for writing: use text/output.h or sp_place_open()" "$known"
exit "$status"
