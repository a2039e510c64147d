#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Every setting of config.def is in the man page and in the README, and neither
# has one too many (the header's macros aside).
# Usage: knobs.sh ROOT

set -euo pipefail

root=$1
known=$(sed -n 's/^SP_KNOB_[A-Z]*(\([A-Z_]*\),.*/SAMPLEPROF_\1/p' \
	"$root/src/agent/process/config.def" | sort -u)
[ -n "$known" ] || { echo "config.def: no setting found"; exit 1; }

status=0
for page in docs/man/sampleprof.7 README.md; do
	named=$(grep -oE 'SAMPLEPROF_[A-Z_]+' "$root/$page" |
		grep -v '_PHASE$' | sort -u)
	while read -r line; do
		echo "$page: $line"
		status=1
	done < <(comm -3 --output-delimiter='+' <(echo "$known") \
		<(echo "$named") |
		sed -e 's/^+\(.*\)/\1 is no setting/' -e '/is no/!s/$/ is missing/')
done
exit "$status"
