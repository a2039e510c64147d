#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# One property of the finished libsampleprof.so.  What it exports, imports and
# needs decides whether programs start under it at all.
# Usage: library.sh CHECK LIBRARY [ARGUMENT]
#   exports LIST       exports the names in LIST, no other, none with a version
#   imports LIST       every undefined symbol is in LIST
#   intercepted ROOT   calls nothing of the C library that a sanitizer or
#                      valgrind intercepts, neither as an undefined symbol nor
#                      by a name that the agent's sources look up
#   glibc MAX          no symbol version above GLIBC_MAX, not even of a weak
#                      symbol: the loader wants the version all the same
#   needed             needs libc.so.6 and nothing else
#   binding            is bound at load time, without text relocations
#   tls                initial-exec thread-local data of at most 128 bytes
#   registers          no instruction touches vector registers, which a host may
#                      have set up in its own way
#   recursion          binds its exports to itself, not where the loader may, and
#                      calloc does not reach calloc

set -euo pipefail
export LC_ALL=C

check=$1 library=$2 argument=${3-}
[ -s "$library" ] || { echo "$library: no such library" >&2; exit 1; }

# fail TEXT [LINES]: end with the reason and the lines that show it.
fail() {
	printf '%s: %s\n' "$library" "$1"
	[ -z "${2-}" ] || printf '%s\n' "$2"
	exit 1
}

# none WHAT LINES: LINES, the violations, have to be empty.
none() {
	[ -z "$2" ] || fail "$1" "$2"
}

# entries FILE: a list without its comments, sorted.
entries() {
	sed 's/#.*//; s/[[:space:]]*$//; /^$/d' "$1" | sort -u
}

exported() {
	nm -D --defined-only "$library" | awk '{ print $NF }' | sort -u
}

check_exports() {
	local difference
	difference=$(diff <(entries "$argument") <(exported | sed 's/@.*//' |
		sort -u)) || fail "exports differ (< only listed, > only exported)" \
		"$difference"
	none "exports with a symbol version" "$(exported | grep @ || true)"
}

check_imports() {
	none "undefined symbols that are not in $(basename "$argument")" \
		"$(comm -13 <(entries "$argument") \
			<(nm -D --undefined-only "$library" |
				awk '{ sub(/@.*/, "", $NF); print $NF }' |
				sort -u))"
}

# Names that sanitizers define, those of gcc and of clang.
of_sanitizers() {
	local name
	for name in asan hwasan lsan tsan ubsan; do
		nm -D --defined-only "$(gcc -print-file-name="lib$name.so")" \
			2>/dev/null | awk '{ print $NF }' || true
	done | sed 's/@.*//'
	for name in asan hwasan lsan memprof msan tsan ubsan_standalone; do
		nm --defined-only "$(clang --print-file-name="libclang_rt.$name-$(uname -m).a" \
			2>/dev/null)" 2>/dev/null |
			sed -n 's/.* ___*interceptor_\(trampoline_\)*//p' || true
	done
}

# Names of functions that valgrind replaces, or wraps, at whatever address they
# have: _vgr20010ZU_libcZdsoZa_strlen, with Zu for _ and ZA for @.
of_valgrind() {
	nm -D --defined-only /usr/libexec/valgrind/vgpreload_*-linux.so \
		2>/dev/null | sed -n 's/.* _vg[a-z][0-9]*Z[UZ]_[^_]*_//p' |
		sed 's/ZA.*//; s/Zu/_/g'
}

# looked_up FUNCTION...: the names that they are called with.
looked_up() {
	local function
	for function; do
		grep -rhoE "$function\\(\"[^\"]+\"" "$argument/src/agent" |
			sed 's/.*"\(.*\)"/\1/' || true
	done
}

# What we define ourselves, in the program's way, is passed on for it.
check_intercepted() {
	local everywhere tools valgrind
	valgrind=$(of_valgrind | sort -u)
	tools=$({ of_sanitizers; echo "$valgrind"; } | sort -u)
	grep -qx strlen <<<"$tools" || exit 77
	everywhere=$({ nm -D --undefined-only "$library" |
		awk '{ sub(/@.*/, "", $NF); print $NF }'
		looked_up sp_linkmap_global sp_linkmap_next; } |
		sort -u | comm -23 - <(exported))
	none "functions that tools intercept" "$(comm -12 <(echo "$tools") \
		<(echo "$everywhere"))"
	none "functions that valgrind intercepts wherever they are" \
		"$(comm -12 <(echo "$valgrind") \
			<(looked_up sp_linkmap_libc sp_linkmap_find | sort -u))"
}

check_glibc() {
	local highest
	highest=$(readelf -VW "$library" |
		sed -n 's/.*Name: GLIBC_\([0-9.]*\) .*/\1/p' |
		sort -uV | tail -n 1)
	[ -n "$highest" ] || fail "no GLIBC version found"
	echo "highest symbol version: GLIBC_$highest (limit $argument)"
	[ "$(printf '%s\n' "$highest" "$argument" | sort -V | tail -n 1)" = \
		"$argument" ] ||
		fail "programs in containers with an older glibc will not start" \
			"$(nm -D --undefined-only "$library" |
				grep -F "GLIBC_$highest")"
}

check_needed() {
	local needed
	needed=$(readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
	[ "$needed" = libc.so.6 ] || fail "needs more or less than libc.so.6" \
		"$needed"
}

check_binding() {
	local dynamic
	dynamic=$(readelf -dW "$library")
	grep -Eq '\(BIND_NOW\)|FLAGS.*(BIND_)?NOW' <<<"$dynamic" ||
		fail "is bound lazily"
	none "has text relocations" "$(grep TEXTREL <<<"$dynamic" || true)"
}

check_tls() {
	local bytes
	bytes=$(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
	[ $((${bytes:-0})) -le 128 ] ||
		fail "thread-local data of $((bytes)) bytes (limit 128)"
	none "thread-local data that is not initial-exec" \
		"$(readelf -rW "$library" | grep -E 'DTPMOD|TLSDESC' || true)"
}

check_registers() {
	none "code that touches vector registers" \
		"$(objdump -d --no-show-raw-insn "$library" |
			awk '/^[0-9a-f]+ </ { name = $2 }
				/%[xyz]mm/ { print name, $0 }' | head -n 20)"
}

check_recursion() {
	none "exports that the loader may bind to another library" \
		"$(comm -12 <(exported) <(readelf -rW "$library" |
			awk '$3 ~ /^R_/ { sub(/@.*/, "", $5); print $5 }' |
			sort -u))"
	none "calloc that reaches calloc" \
		"$(objdump -d --no-show-raw-insn --disassemble=calloc "$library" |
			grep -E '<calloc(@[^>]*)?>$' || true)"
}

case $check in
exports | imports | intercepted | glibc | needed | binding | tls | registers | recursion)
	"check_$check"
	;;
*)
	echo "unknown check: $check" >&2
	exit 2
	;;
esac
