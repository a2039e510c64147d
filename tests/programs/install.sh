#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The installed tree works by itself: profile a program, read the profile,
# compile against the header, read the man pages.
# Usage: install.sh CMAKE BUILD-DIRECTORY CC

set -euo pipefail

cmake=$1 build=$2 cc=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix="$scratch/some prefix"

fail() {
	echo "install: $*" >&2
	exit 1
}

"$cmake" --install "$build" --prefix "$prefix"
cd "$scratch"

for name in bin/sampleprof-report bin/sampleprof bin/sampleprof-lab bin/sampleprof-serve \
	share/bash-completion/completions/sampleprof{,-report,-lab} \
	include/sampleprof/sampleprof.h; do
	[ -s "$prefix/$name" ] || fail "$name is not installed"
done
cmp "$prefix/share/doc/sampleprof/copyright" \
	"$prefix/share/doc/sampleprof-agent/copyright" ||
	fail "the licence is not in both packages"
mapfile -t configs < <(find "$prefix" -name sampleprof.pc)
[ "${#configs[@]}" -eq 1 ] || fail "${#configs[@]} files sampleprof.pc"
PKG_CONFIG_PATH=$(dirname "${configs[0]}")
export PKG_CONFIG_PATH

pkg-config --validate sampleprof
library=$(pkg-config --variable=preload sampleprof)
# pkg-config writes a space in a path as a shell does.
eval "library=$library"
[ -s "$library" ] || fail "sampleprof.pc names $library, which is not there"
case $(realpath "$library") in
"$(realpath "$prefix")"/*) ;;
*) fail "sampleprof.pc points out of the prefix: $library" ;;
esac

# LD_PRELOAD separates its entries at spaces.
ln -s "$library" libsampleprof.so
env SAMPLEPROF_PERIOD=1 SAMPLEPROF_OUT="$scratch/ls.sprof" \
	LD_PRELOAD="$scratch/libsampleprof.so" ls -lR "$prefix" >profiled.out
ls -lR "$prefix" >plain.out
cmp plain.out profiled.out || fail "ls writes something else when profiled"
[ -s ls.sprof ] || fail "no profile was written"
"$prefix/bin/sampleprof-report" --json ls.sprof >ls.json
jq -e '.samples > 0 and (.program | test("ls$")) and
	.estimate.alloc_bytes.value == .exact.alloc_bytes' ls.json ||
	fail "the report is not about every allocation of ls: $(head -c 600 \
		ls.json)"
"$prefix/bin/sampleprof-report" ls.sprof >ls.txt
[ -s ls.txt ] || fail "the report is empty"
"$prefix/bin/sampleprof" report ls.sprof >command.txt
# All but the commands to try next, at the end.
sed '/^next: /,$d' ls.txt >ls.rest
sed '/^next: /,$d' command.txt | cmp - ls.rest ||
	fail "sampleprof report is not sampleprof-report"
lab=$("$prefix/bin/sampleprof-lab" --version)
[ "${lab%% *}" = sampleprof-lab ] || fail "sampleprof-lab is $lab"

# The same program runs with and without the library.
cat >user.c <<-'EOC'
	#include <sampleprof/sampleprof.h>
	#include <stdio.h>
	#include <stdlib.h>

	int main(void)
	{
		struct sampleprof_totals before = { 0 }, after = { 0 };
		int off = sampleprof_thread_totals(&before);
		void *volatile block = malloc(12345);

		if (off != sampleprof_thread_totals(&after))
			return 1;
		free(block);
		printf("%d %d\n", off,
		       (int)(after.alloc_bytes - before.alloc_bytes));
		return 0;
	}
EOC
flags=()
eval "flags=($(pkg-config --cflags --libs sampleprof))"
"$cc" -O2 -Wall -Wextra -Werror -o user user.c "${flags[@]}"
[ "$(./user)" = "-1 0" ] || fail "the header needs the library: $(./user)"
counted=$(env SAMPLEPROF_OUT="$scratch/user.sprof" \
	LD_PRELOAD="$scratch/libsampleprof.so" ./user)
[ "$counted" = "0 12345" ] || fail "12345 bytes are counted as: $counted"

# The launcher finds the library that was installed with it, and says so if the
# loader could not: LD_PRELOAD is divided at spaces.
"$prefix/bin/sampleprof" run --quiet ./user >run.txt 2>run.err &&
	fail "sampleprof run preloads from $prefix"
grep -q "cannot name a path with a space" run.err || fail "$(cat run.err)"
cp -R "$prefix" "$scratch/prefix"
"$scratch/prefix/bin/sampleprof" run --quiet --period 1 --out run.sprof ./user \
	>run.txt || fail "sampleprof run ended with $?"
[ "$(cat run.txt)" = "0 12345" ] || fail "run did not preload: $(cat run.txt)"
[ -s run.sprof ] || fail "sampleprof run left no profile"

pages=0
while IFS= read -r page; do
	pages=$((pages + 1))
	name=$(basename "$page" .gz)
	MANPATH="$prefix/share/man" man "${name##*.}" "${name%.*}" \
		>page.txt 2>page.err || fail "$page: $(cat page.err)"
	grep -q NAME page.txt || fail "$page renders as nothing"
done < <(find "$prefix/share/man" -type f)
[ "$pages" -gt 0 ] || fail "no man pages are installed"
