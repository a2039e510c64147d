#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Every shell script passes shellcheck.
# Usage: shell.sh ROOT; status 77 (skipped) without shellcheck.

set -euo pipefail

if ! command -v shellcheck >/dev/null; then
	echo "shellcheck is not installed"
	exit 77
fi
cd "$1"
mapfile -t scripts < <(grep -rlE -m 1 '^(#!.*\<(ba)?sh|# shellcheck shell=)' \
	.ci tools tests | sort)
[ "${#scripts[@]}" -gt 0 ] || { echo "no scripts under $1" >&2; exit 1; }
shellcheck -x "${scripts[@]}"
