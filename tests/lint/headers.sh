#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Every header compiles alone; the public one as C99, C11 and C++17 too.
# Usage: headers.sh ROOT CC CXX

set -euo pipefail

root=$1 cc=$2 cxx=$3
cd "$root"
bad=0

# alone HEADER COMMAND...: compile a file that includes nothing but HEADER.
alone() {
	local header=$1 output
	shift
	if ! output=$(printf '#include "%s"\n' "$root/$header" |
		"$@" -fsyntax-only -Wall -Wextra -Werror -Iinclude - 2>&1); then
		printf '%s does not compile alone (%s)\n%s\n' \
			"$header" "$*" "$output"
		bad=1
	fi
}

# poison.h forbids names for the rest of a file and declares nothing; arch.h
# and cpu.h include the one of their two that is for this machine.
mapfile -t private < <(find src -name '*.h' ! -name poison.h \
	! -name 'arch_*.h' ! -name 'cpu_*.h' | sort)
mapfile -t public < <(find include -name '*.h' | sort)
[ "${#private[@]}" -gt 0 ] || { echo "no headers under $root" >&2; exit 1; }
for header in "${private[@]}"; do
	alone "$header" "$cc" -std=gnu11 -D_GNU_SOURCE -Isrc -x c
done
for header in "${public[@]}"; do
	alone "$header" "$cc" -std=c99 -pedantic -x c
	alone "$header" "$cc" -std=c11 -pedantic -x c
	alone "$header" "$cxx" -std=c++17 -pedantic -x c++
done
exit "$bad"
