# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# The Debian packages that this project uses, each stated once, and the
# functions that install what is missing.  Sourced by tools/quickstart and
# tools/check.

# To compile the library and the report.
# shellcheck disable=SC2034 # the lists are for the scripts that source this
BUILD_PACKAGES=(
	build-essential cmake pkg-config
	systemtap-sdt-dev    # the library has probes
	libdw-dev libelf-dev # the report reads symbols and line tables
	libiberty-dev        # the report demangles C++ and Rust names
	zlib1g-dev           # exports are compressed
	libjansson-dev       # baselines are JSON
	libzstd-dev          # profiles may be compressed
	libpcre2-dev         # filters of the report
	libmicrohttpd-dev    # sampleprof serve
	libcurl4-openssl-dev # sampleprof push, and a fleet on a server
	libsqlite3-dev       # the profiles of a fleet are in a database
)

# What a release has besides: without them the rest is the same.
# shellcheck disable=SC2034
RELEASE_PACKAGES=(
	libunwind-dev patchelf # SAMPLEPROF_UNWIND=libunwind
)

# To run every test.
# shellcheck disable=SC2034
TEST_PACKAGES=(
	ninja-build git clang libclang-rt-14-dev libstdc++-12-dev libcmocka-dev
	clang-format-14 shellcheck clang-tidy-14 cppcheck   # lints
	binutils groff-base man-db jq                       # lints, installation
	lld                                                 # other linkers
	libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0    # other allocators
	redis-server redis-tools python3 perl sqlite3       # real programs
	libpython3.11-testsuite                             # Python's own tests
	libxml2-utils                                       # readers of exports
	python3-jsonschema python3-yaml make                # of checks, and docs
	protobuf-compiler python3-protobuf                  # of OTLP
	libjemalloc-dev libgoogle-perftools-dev google-perftools nodejs    # likewise
	golang-go                                           # google/pprof
	prometheus                                          # promtool
	less                                                # a pager
	clickhouse-server                                   # a fleet's database
	heaptrack zstd strace                               # to compare with
	libdebuginfod1 dwz elfutils                         # debug information
	libzydis-dev                                        # a disassembler
	libunwind8 libgoogle-perftools4                     # other unwinders
	default-jdk-headless                          # other languages
	valgrind
	chromium-headless-shell tmux # the page, and a terminal
	musl-tools libc6-i386 libfaketime gdb       # hazards: other worlds
	e2fsprogs xfsprogs btrfs-progs bindfs mount # hazards: file systems
)

# What tests/bench/run runs, and holds the library against.
# shellcheck disable=SC2034
BENCH_PACKAGES=(
	sqlite3 python3 perl lua5.4 libxml2-utils jq z3 git gcc clang
	redis-server redis-tools binutils valgrind
	heaptrack libjemalloc2 libgoogle-perftools4
)

# say TEXT...: one line of progress.
say() {
	printf '==> %s\n' "$*"
}

# die TEXT...: say on standard error what went wrong and end with status 1.
die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# The last line of what comes, on one line of a terminal; elsewhere nothing.
show_progress() {
	local line

	while IFS= read -r line; do
		[ -t 1 ] && printf '\r\033[K    %.74s' "$line"
	done
	[ -t 1 ] && printf '\r\033[K'
	return 0
}

# quietly LOG COMMAND...: run COMMAND with its output in LOG, and show on a
# terminal that it goes on; if it fails, show the end of LOG and end with
# status 1.
quietly() {
	local log=$1
	shift
	if ! (
		set -o pipefail
		"$@" 2>&1 </dev/null | tee "$log" | show_progress
	); then
		tail -n 60 "$log" >&2
		die "failed: $* (the whole output is in $log)"
	fi
}

# package_installed NAME
package_installed() {
	local state
	state=$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) &&
		[ "$state" = installed ]
}

# missing_packages NAME...: print those that are not installed.
missing_packages() {
	local name
	for name in "$@"; do
		package_installed "$name" || printf '%s\n' "$name"
	done
}

# have_apt: is this a system that installs Debian packages?
have_apt() {
	command -v apt-get >/dev/null && command -v dpkg-query >/dev/null
}

# install_packages LOG NAME...: install with apt-get, as root or through sudo.
# sudo may ask for a password on the terminal.
install_packages() {
	local log=$1
	shift
	local as_root=()
	if [ "$(id -u)" -ne 0 ]; then
		if ! command -v sudo >/dev/null || ! sudo -v; then
			die "packages are missing; please run as root:"$'\n' \
				" apt-get install $*"
		fi
		as_root=(sudo)
	fi
	as_root+=(env DEBIAN_FRONTEND=noninteractive)
	# A failing update is not final: the install below may still find
	# everything, and says what it does not find.
	"${as_root[@]}" apt-get update 2>&1 </dev/null | tee "$log" |
		show_progress || true
	quietly "$log" "${as_root[@]}" apt-get install -y \
		--no-install-recommends "$@"
}

# use_ninja: let cmake generate for Ninja where it exists and the build
# directory leaves the choice.
use_ninja() {
	if command -v ninja >/dev/null; then
		export CMAKE_GENERATOR=Ninja
	fi
}
