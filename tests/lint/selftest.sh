#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Every lint refuses a planted fault, for the reason it gives, and accepts the
# same thing without the fault.
# Usage: selftest.sh ROOT CC CXX

# shellcheck disable=SC2016 # the scripts planted below expand in their own time

set -euo pipefail

root=$1 cc=$2 cxx=$3
lint=$root/tests/lint
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bad=0

# accepts NAME COMMAND...
accepts() {
	local name=$1 output
	shift
	if ! output=$("$@" 2>&1); then
		printf 'NOT ACCEPTED: %s\n%s\n' "$name" "$output"
		bad=1
	fi
}

# refuses NAME REASON COMMAND...: COMMAND fails, and its output has REASON.
refuses() {
	local name=$1 reason=$2 output status=0
	shift 2
	output=$("$@" 2>&1) || status=$?
	if [ "$status" -eq 77 ]; then
		echo "not tested (tool missing): $name"
	elif [ "$status" -eq 0 ]; then
		printf 'NOT REFUSED: %s\n%s\n' "$name" "$output"
		bad=1
	elif [[ $output != *"$reason"* ]]; then
		printf 'REFUSED FOR ANOTHER REASON: %s\n%s\n' "$name" "$output"
		bad=1
	fi
}

# tree: a small project that every lint of the tree accepts, in $scratch/tree.
tree() {
	rm -rf "$scratch/tree"
	mkdir -p "$scratch/tree"/{src/{base,agent/hooks,agent/process,read},include/sampleprof} \
		"$scratch/tree"/{tools,tests/lint,docs/man,.ci}
	cd "$scratch/tree"
	cp "$root/.clang-format" .
	cp "$lint/layers.txt" tests/lint/
	printf '#include <stddef.h>\n\nsize_t sp_a(void);\n' >src/base/a.h
	printf '#include "base/a.h"\n\nsize_t sp_b(void);\n' >src/agent/process/b.h
	printf 'int sampleprof_on(void);\n' >include/sampleprof/sampleprof.h
	printf 'int main(void)\n{\n\treturn 0;\n}\n' >tools/main.c
	printf '#!/bin/sh\necho "$1"\n' >tools/run
	printf '.TH A 1 2026-01-01 "sampleprof 1.2.3" "B"\n.SH NAME\na \\- b\n' >docs/man/a.1
	printf 'SP_KNOB_SIZE(ONE, one,\n' >src/agent/process/config.def
	printf 'SAMPLEPROF_ONE\n' | tee README.md |
		cat docs/man/a.1 - >docs/man/sampleprof.7
}

# statements N: a function of N + 2 lines.
statements() {
	printf 'int f(int a)\n{\n'
	printf '\ta++;%.0s\n' $(seq "$1")
	printf '}\n'
}

# A tree whose layers.txt allows what is there, with its picture.
rooms() {
	tree
	echo '#include "base/a.h"' >>src/read/p.c
	printf 'base:\nread: base\n' >tests/lint/layers.txt
	printf '    read -> base\n' >src/README.md
}

# circle N: N headers, each of which includes the next.
circle() {
	for ((i = 0; i < $1; i++)); do
		echo "#include \"base/r$(((i + 1) % $1)).h\"" >"src/base/r$i.h"
	done
}

test_rooms() {
	rooms
	circle 3
	accepts rooms "$lint/rooms.py" .
	circle 4
	refuses "circle of four" "4 modules in a circle: base/r0" \
		"$lint/rooms.py" .
	rooms
	echo 'read: base format' >>tests/lint/layers.txt
	refuses "arrow that nothing uses" "read does not use format" \
		"$lint/rooms.py" .
	rooms
	echo 'base: read' >>tests/lint/layers.txt
	refuses "rooms in a circle" "base includes itself" "$lint/rooms.py" .
	rooms
	echo '    read -> format' >src/README.md
	refuses "picture of other rooms" "not the picture" "$lint/rooms.py" .
}

test_tree() {
	tree
	accepts layers "$lint/layers.sh" .
	accepts headers "$lint/headers.sh" . "$cc" "$cxx"
	accepts size "$lint/size.sh" .
	accepts prose "$lint/prose.py" .
	accepts knobs "$lint/knobs.sh" .
	accepts written "$lint/written.sh" .
	[ -z "$(command -v shellcheck)" ] || accepts shell "$lint/shell.sh" .
	[ -z "$(command -v groff)" ] || accepts man "$lint/man.sh" docs/man 1.2.3

	tree
	printf 'a %.0s\n' $(seq 5001) >docs/contributing.md
	refuses "long page" "contributing.md: 5001 words" "$lint/prose.py" .
	tree
	printf 'SP_KNOB_TEXT(TWO, two,\n' >>src/agent/process/config.def
	refuses "undocumented setting" "SAMPLEPROF_TWO is missing" \
		"$lint/knobs.sh" .
	tree
	printf 'SAMPLEPROF_THREE\n' >>README.md
	refuses "setting that is none" "SAMPLEPROF_THREE is no setting" \
		"$lint/knobs.sh" .
	tree
	echo 'void f(void) { rename("a", "b"); }' >src/read/p.c
	refuses "renamed by a path" "by a path" "$lint/written.sh" .
	echo 'int f(void) { return open("a", O_RDWR); }' >src/read/p.c
	refuses "opened for writing" "opened for writing" "$lint/written.sh" .
	echo 'void *f(void) { return fopen("a", "ae"); }' >src/read/p.c
	refuses "a stream for writing" "opened for writing" "$lint/written.sh" .
	tree
	echo '#include "agent/process/b.h"' >src/read/p.c
	refuses "read on agent" "read may not include agent/process" \
		"$lint/layers.sh" .
	tree
	echo '# include "agent/process/b.h"' >>src/base/a.h
	refuses "base on agent" "base may not include agent/process" \
		"$lint/layers.sh" .
	tree
	echo '#include <sampleprof/sampleprof.h>' >src/read/p.c
	refuses "read on the public header" \
		"read may not include sampleprof" "$lint/layers.sh" .
	tree
	echo '#include "b.h"' >src/agent/process/b.c
	refuses "header without its layer" 'should be written "layer/b.h"' \
		"$lint/layers.sh" .
	tree
	accepts arch "$lint/arch.sh" .
	printf '#ifdef __x86_64__\n#endif\n' >>src/agent/process/b.c
	refuses "question about the architecture" "b.c:1:#ifdef" \
		"$lint/arch.sh" .
	tree
	printf '\t__asm__ volatile("nop");\n' >>src/agent/process/b.c
	refuses "assembly" "b.c:1:" "$lint/arch.sh" .
	mv src/agent/process/b.c src/agent/process/b_x86_64.c
	accepts "assembly in its place" "$lint/arch.sh" .
	tree
	mkdir src/new
	echo '#include "base/a.h"' >src/new/n.c
	refuses "unknown layer" '"new" is not in layers.txt' "$lint/layers.sh" .

	test_rooms

	tree
	echo 'uint32_t sp_c(void);' >src/base/c.h
	refuses "header that needs another" "base/c.h does not compile alone" \
		"$lint/headers.sh" . "$cc" "$cxx"
	tree
	echo 'int sampleprof_new(int new);' >>include/sampleprof/sampleprof.h
	refuses "public header that is not C++" "(${cxx} -std=c++17" \
		"$lint/headers.sh" . "$cc" "$cxx"
	tree
	echo '_Static_assert(1, "");' >>include/sampleprof/sampleprof.h
	refuses "public header that is not C99" "(${cc} -std=c99" \
		"$lint/headers.sh" . "$cc" "$cxx"

	tree
	printf 'int main(void) {\n  return 0; }\n' >tools/main.c
	refuses "unformatted file" "should be clang-formatted" \
		"$lint/format.sh" .

	tree
	statements 58 >tools/main.c
	accepts "function of 60 lines" "$lint/size.sh" .
	statements 59 >tools/main.c
	refuses "function of 61 lines" "function of 61 lines (limit 60)" \
		"$lint/size.sh" .
	tree
	printf '/* */%.0s\n' $(seq 601) >src/base/a.h
	refuses "file of 601 lines" "src/base/a.h: more than 600 lines" \
		"$lint/size.sh" .

	tree
	printf 'src 8\ntests 2\nrooms 2\n' >tests/lint/budget.txt
	wc -l tests/lint/* >tests/wide
	refuses "more lines than the budget has" "tests: " "$lint/budget.sh" .
	printf 'src 90\ntests 900\nrooms 2\n' >tests/lint/budget.txt
	accepts budget "$lint/budget.sh" .
	printf 'src 90\ntests 900\nrooms 1\n' >tests/lint/budget.txt
	refuses "more rooms" "rooms: 2, more than 1" "$lint/budget.sh" .

	tree
	printf '%0100d\n| %0101d |\n\n    %0101d\n\n```\n%0101d\n```\n' \
		0 0 0 0 >README.md
	accepts "line of 100 characters, table and code" "$lint/prose.py" .
	printf 'a\n%0101d\n' 0 >README.md
	refuses "line of 101 characters" "README.md:2: 101 characters" \
		"$lint/prose.py" .

	tree
	printf '#!/bin/sh\necho $1\n' >tools/run
	refuses "unquoted variable" SC2086 "$lint/shell.sh" .
	tree
	printf '.NOSUCH\n' >>docs/man/a.1
	refuses "man page with an unknown macro" NOSUCH \
		"$lint/man.sh" docs/man 1.2.3
	tree
	refuses "man page of another version" 1.2.4 \
		"$lint/man.sh" docs/man 1.2.4
}

# library NAME [COMPILER-OPTION...] <SOURCE: make $scratch/NAME.so.
library() {
	local name=$1
	shift
	"$cc" -O2 -fPIC -shared -x c -nostartfiles -Wl,-z,now \
		-fno-builtin -fno-stack-protector \
		-ftls-model=initial-exec -o "$scratch/$name.so" - "$@"
}

test_library() {
	local list=$scratch/list so check
	local allocator='
#include <stddef.h>
void *malloc(size_t n) { return (void *)(n + 1); }'

	library good <<-EOF
		$allocator
		static __thread char block[128];
		void *calloc(size_t n, size_t m) { return block + n * m; }
		int getpid(void);
		__attribute__((visibility("hidden"))) int id(void)
		{ return getpid(); }
	EOF
	so=$scratch/good.so
	printf 'malloc\ncalloc # comment\n' >"$list"
	accepts exports "$lint/library.sh" exports "$so" "$list"
	echo free >>"$list"
	refuses "missing export" "< free" \
		"$lint/library.sh" exports "$so" "$list"
	echo malloc >"$list"
	refuses "unlisted export" "> calloc" \
		"$lint/library.sh" exports "$so" "$list"
	echo getpid >"$list"
	accepts imports "$lint/library.sh" imports "$so" "$list"
	echo getppid >"$list"
	refuses "unlisted import" getpid \
		"$lint/library.sh" imports "$so" "$list"
	mkdir -p "$scratch/looks/src/agent"
	echo 'f = sp_linkmap_libc("gettid");' >"$scratch/looks/src/agent/a.c"
	accepts intercepted "$lint/library.sh" intercepted "$so" "$scratch/looks"
	echo 'f = sp_linkmap_libc("pthread_mutex_lock");' \
		>"$scratch/looks/src/agent/a.c"
	refuses "what valgrind wraps" pthread_mutex_lock \
		"$lint/library.sh" intercepted "$so" "$scratch/looks"
	echo 'f = sp_linkmap_global("sigaction");' \
		>"$scratch/looks/src/agent/a.c"
	refuses "what sanitizers define" sigaction \
		"$lint/library.sh" intercepted "$so" "$scratch/looks"
	library copies <<<'
		#include <string.h>
		void *f(void *p, size_t n) { return memcpy(p, "text", n); }'
	refuses "an import that tools intercept" memcpy "$lint/library.sh" \
		intercepted "$scratch/copies.so" "$scratch"
	accepts glibc "$lint/library.sh" glibc "$so" 2.2.5
	refuses "too new a glibc" getpid "$lint/library.sh" glibc "$so" 2.2.4
	for check in needed binding tls registers recursion; do
		accepts "$check" "$lint/library.sh" "$check" "$so"
	done

	echo 'NODE { global: malloc; local: *; };' >"$scratch/map"
	library versioned "-Wl,--version-script=$scratch/map" <<<"$allocator"
	printf 'malloc\nNODE\n' >"$list"
	refuses "versioned malloc" "malloc@@NODE" \
		"$lint/library.sh" exports "$scratch/versioned.so" "$list"

	library maths -Wl,--no-as-needed -lm <<<"$allocator"
	refuses "needs libm" libm.so.6 \
		"$lint/library.sh" needed "$scratch/maths.so"

	library lazy -Wl,-z,lazy <<<"$allocator"
	refuses "lazy binding" "is bound lazily" \
		"$lint/library.sh" binding "$scratch/lazy.so"

	library text -fno-pic -mcmodel=large -Wl,-z,notext <<<'
		int x; int *f(void) { return &x; }'
	refuses "text relocations" TEXTREL \
		"$lint/library.sh" binding "$scratch/text.so"

	library tls <<<'__thread char block[129]; char *f(void) { return block; }'
	refuses "129 bytes of TLS" "129 bytes" \
		"$lint/library.sh" tls "$scratch/tls.so"
	library dynamic -ftls-model=global-dynamic <<<'
		__thread int x; int *f(void) { return &x; }'
	refuses "dynamic TLS" DTPMOD "$lint/library.sh" tls "$scratch/dynamic.so"

	library vector <<<'
		double f(double a) { return a * 3; }'
	refuses "vector registers" "%xmm" \
		"$lint/library.sh" registers "$scratch/vector.so"

	library plt -fsemantic-interposition <<-EOF
		$allocator
		void *f(void) { return malloc(1); }
	EOF
	refuses "own export through the PLT" malloc \
		"$lint/library.sh" recursion "$scratch/plt.so"
	library got -fsemantic-interposition -fno-plt <<-EOF
		$allocator
		void *f(void) { return malloc(1); }
	EOF
	refuses "own export through the GOT" malloc \
		"$lint/library.sh" recursion "$scratch/got.so"
	library loop -Wl,-Bsymbolic -fno-optimize-sibling-calls <<<'
		#include <stddef.h>
		void *calloc(size_t n, size_t m)
		{
			return n ? calloc(m, n - 1) : NULL;
		}'
	refuses "calloc made of calloc" "calloc that reaches calloc" \
		"$lint/library.sh" recursion "$scratch/loop.so"
}

test_pictures() {
	local docs=$scratch/docs
	local check=(/usr/bin/python3 -B "$docs/pictures/draw" --check)
	mkdir "$docs"
	cp -r "$root/docs/pictures" "$root/docs/guide.md" "$docs"
	accepts "pictures" "${check[@]}"
	sed -i 's/circle/square/' "$docs/pictures/repeat.svg"
	refuses "another picture" "repeat.svg is not what draw makes" \
		"${check[@]}"
	cp "$root/docs/pictures/repeat.svg" "$docs/pictures"
	sed -i '/samples: begin/,/samples: end/s/192/193/' "$docs/guide.md"
	refuses "another table" "guide.md is not what draw makes" "${check[@]}"
}

# A tree of two tests.
two_tests() {
	tree
	mkdir -p tests/compat/stress tests/statistics
	printf '/* SPDX */\n/*\n * Shows this\n * and that.\n *\n * More.\n */\n' \
		>tests/compat/stress/test_core.c
	printf '/* SPDX */\n/* Claim. False alarm: 0. */\n' \
		>tests/statistics/test_law.c
}

test_tests() {
	two_tests
	accepts tests "$lint/tests.py" .
	"$lint/tests.py" --list . >table
	accepts "row of the first paragraph" grep -qxF \
		"$(printf 'compat\t\tstress.core\tShows this and that.')" table
	printf '/* SPDX */\nint x;\n' >tests/compat/stress/test_more.c
	refuses "test without a head comment" \
		"stress.more: its source has no head comment" "$lint/tests.py" .
	two_tests
	sed -i 's/False alarm: 0/More/' tests/statistics/test_law.c
	refuses "statistical test without its chance" \
		"statistics.law: does not say its chance" "$lint/tests.py" .
	two_tests
	mkdir build
	echo 'add_test(unit.none true)' >build/CTestTestfile.cmake
	refuses "test without a source" "unit.none: no source is known" \
		"$lint/tests.py" . build
}

# A command with one option, and its page.
options_page() {
	tree
	printf 'run\tsize\t\tN\n a number\n' >options
	printf '#!/bin/sh\ncat options\n' >tables
	chmod +x tables
	printf '.\\" option run --size\n.\\" end\n' >docs/man/sampleprof.1
	"$lint/man_options.py" --write docs/man ./tables
}

test_man_options() {
	local check=("$lint/man_options.py" docs/man ./tables)
	options_page
	accepts man_options "${check[@]}"
	accepts "entry of an option" grep -qxF \
		'\fB\-\-size\fR \fIN\fR' docs/man/sampleprof.1
	sed -i 's/a number/a size/' options
	refuses "other words" "run --size is not as in --help" "${check[@]}"
	options_page
	printf 'ctl\tlate\t\t\n what is new\n' >>options
	refuses "option without an entry" "ctl --late is missing" "${check[@]}"
	options_page
	sed -i 's/size/length/' options
	refuses "entry of no option" "run has no --size" "${check[@]}"
}

test_fleet_plan() {
	tree
	cp "$root/docs/fleet.md" docs/
	accepts fleet_plan "$lint/fleet_plan.py" .
	sed -i 's/ bytes a sample/1&/' docs/fleet.md
	refuses "plan of other figures" "fleet_plan.py --write" \
		"$lint/fleet_plan.py" .
	sed -i '/^| `fleet top` /d' docs/fleet.md
	refuses "plan without a figure" "no figure like" "$lint/fleet_plan.py" .
}

# A tree whose docs/statistics.md names three functions for two equations.
equations_page() {
	tree
	printf 'static int\tadd_one(int a)\n{\n\treturn sp_b(a);\n}\n' >src/read/p.c
	printf '| equation | implemented by | tested by |\n|---|---|---|\n%s\n%s\n' \
		'| E1 | `sp_a`, `sp_*` | `x` |' \
		'| E2 | `add_one` (`src/read/p.c`) | `y` |' >docs/statistics.md
}

test_equations() {
	local page=docs/statistics.md
	equations_page
	accepts equations "$lint/equations.py" .
	sed -i 's/sp_a/sp_c/' "$page"
	refuses "equation of no function" "src has no function sp_c" \
		"$lint/equations.py" .
	equations_page
	sed -i 's/add_one/sp_b/' "$page"
	refuses "function of another file" "p.c has no function sp_b" \
		"$lint/equations.py" .
	equations_page
	sed -i 's/p[.]c/q.c/' "$page"
	refuses "file that is not there" "there is no src/read/q.c" \
		"$lint/equations.py" .
	equations_page
	sed -i 's/implemented by/implemented/' "$page"
	refuses "page without the column" 'no functions under' \
		"$lint/equations.py" .
}

# planted BODY: a project of one function, which was compiled.
planted() {
	tree
	cp "$root/.clang-tidy" .
	printf '#include <stdlib.h>\n\nint sp_f(int a)\n{\n%s\n}\n' "$1" \
		>src/base/f.c
	printf '[{"directory": "%s", "file": "%s", "command": "%s"}]\n' "$PWD" \
		"$PWD/src/base/f.c" "cc -DNDEBUG -c f.c" >compile_commands.json
}

test_analysis() {
	local check=("$lint/analysis.py" . .)
	planted 'return a;'
	accepts analysis "${check[@]}"
	planted 'int *p = a ? &a : NULL; return *p;'
	refuses "path to a null pointer" clang-analyzer-core.NullDereference \
		"${check[@]}"
	planted 'int text[4] = {0}; return a ? text[3] : text[4];'
	refuses "index beyond the end" '[arrayIndexOutOfBounds]' "${check[@]}"
	rm src/base/f.c compile_commands.json
	echo '[]' >compile_commands.json
	refuses "nothing to look at" "compiles no src" "${check[@]}"
}

test_analysis
test_tree
test_fleet_plan
test_equations
test_library
test_pictures
test_tests
test_man_options
exit "$bad"
