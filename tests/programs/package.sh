#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The archive that cpack makes runs from any folder, with nothing in the
# environment: it brings all libraries but the C library along, and its parts
# find each other.
# Usage: package.sh CPACK BUILD-DIRECTORY

set -euo pipefail

cpack=$1 build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
	echo "package: $*" >&2
	exit 1
}

(cd "$build" && "$cpack" -G TGZ -B "$scratch") >"$scratch/cpack.log" 2>&1 ||
	fail "cpack: $(tail -n 20 "$scratch/cpack.log")"
mkdir "$scratch/moved" "$scratch/work"
tar -C "$scratch/moved" -xzf "$scratch"/sampleprof-*.tar.gz
moved=$(realpath "$scratch/moved"/*)
cd "$scratch/work"

# own FILE: every library is from the folder, except the C library's.
own() {
	local strange
	strange=$(env -i ldd "$1" | grep -v -e "=> $moved/bin/../lib/sampleprof/" \
		-e 'linux-vdso' -e 'ld-linux' -e 'statically linked' \
		-e '^[[:space:]]*lib\(c\|m\|dl\|rt\|pthread\|resolv\)\.so\.') ||
		return 0
	fail "$1 takes from elsewhere: $strange"
}

for program in "$moved"/bin/*; do
	own "$program"
	env -i "$program" --version >version || fail "$program does not start"
	grep -q " [0-9]*\.[0-9]*\.[0-9]*$" version || fail "$(cat version)"
done
own "$moved/lib/sampleprof/libsampleprof.so"
[ -s "$moved/lib/sampleprof/licences/libelf1" ] ||
	[ ! -e /usr/share/doc/libelf1/copyright ] ||
	fail "the licences of the libraries are left out"

# A missing one would be seen.
mv "$moved"/lib/sampleprof/libelf.so.1 .
(own "$moved/bin/sampleprof-report") 2>/dev/null &&
	fail "a library that is missing is not noticed"
mv libelf.so.1 "$moved/lib/sampleprof"

[ "$(env -i "$moved/bin/sampleprof" preload-path)" = \
	"$moved/lib/sampleprof/libsampleprof.so" ] ||
	fail "preload-path is $(env -i "$moved/bin/sampleprof" preload-path)"
env -i /bin/ls -lR "$moved" >plain
env -i "$moved/bin/sampleprof" run --quiet --period 1 --out ls.sprof \
	/bin/ls -lR "$moved" >under || fail "run ended with $?"
cmp plain under || fail "ls writes something else when profiled"
env -i "$moved/bin/sampleprof" report --json ls.sprof >ls.json
jq -e '.samples > 0 and
	.estimate.alloc_bytes.value == .exact.alloc_bytes' ls.json >value ||
	fail "the report is not about every allocation of ls"
