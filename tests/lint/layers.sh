#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Every include of project headers follows layers.txt.
# Usage: layers.sh ROOT

set -euo pipefail

root=$1
cd "$root"
mapfile -t files < <(find src tools include -name '*.[ch]' -o -name '*.def' |
	sort)
[ "${#files[@]}" -gt 0 ] || { echo "no sources under $root" >&2; exit 1; }

awk '
# The rooms of the agent are layers.
function layer_of(path, part) {
	split(path, part, "/")
	if (part[1] == "tools")
		return part[1]
	return part[2] == "agent" ? part[2] "/" part[3] : part[2]
}
function complain(text) {
	printf "%s:%d: %s\n", FILENAME, FNR, text
	bad = 1
}
FILENAME ~ /layers\.txt$/ {
	sub(/#.*/, "")
	if (split($0, part, ":") < 2)
		next
	known[part[1]] = 1
	allowed[part[1], part[1]] = 1
	n = split(part[2], names, " ")
	for (i = 1; i <= n; i++)
		allowed[part[1], names[i]] = 1
	next
}
FNR == 1 {
	layer = layer_of(FILENAME)
	if (!(layer in known))
		complain("layer \"" layer "\" is not in layers.txt")
}
/^[ \t]*#[ \t]*include[ \t]*["<]/ {
	split($0, part, /["<>]/)
	header = part[2]
	target = layer_of("src/" header)
	if ($0 ~ /</ && target != "sampleprof")
		next
	if (header !~ /\//)
		complain("\"" header "\" should be written \"layer/" header "\"")
	else if (!((layer, target) in allowed))
		complain(layer " may not include " target " (" header ")")
}
END { exit bad }
' tests/lint/layers.txt "${files[@]}"
