#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The plan for a million machines in docs/fleet.md is arithmetic over the
figures that were measured on that page.

    fleet_plan.py ROOT           1, and what is wrong on standard output
    fleet_plan.py --write ROOT   write it
"""
import difflib
import math
import re
import sys
import textwrap

PAGE = "docs/fleet.md"
BEGIN = "<!-- plan: begin (made by tests/lint/fleet_plan.py) -->\n"
END = "<!-- plan: end -->\n"

# The fleet.
MACHINES = 10**6
PROCESSES = 10        # of a machine
SERVICES = 1000
ALLOC_BYTES_S = 50e6  # of a process
LIVE_BYTES = 500e6    # of a process
SPREAD = 1.0          # of a function's bytes between processes: standard
                      # deviation, in means
Z = 1.96              # of 95 %
DAYS_SAMPLES, DAYS_HOURS = 2, 90

# What is wanted of each service, every hour: a function with that share of
# what was allocated, or of what is alive, within that error.
WANTED = (("allocated", 0.01, 0.1), ("alive", 0.1, 0.1), ("alive", 0.01, 0.1))


def measured(text):
    """Figures of the table of what was measured, of real recordings."""
    def find(pattern):
        found = re.search(pattern, text)
        if not found:
            sys.exit(f"{PAGE}: no figure like {pattern}")
        return float(found.group(1).replace(",", ""))
    samples = find(r"add [\d,]+ profiles, ([\d,]+) samples \|")
    return {
        "add_s": samples / find(r"add [\d,]+ profiles, [\d,]+ samples "
                                r"\| ([\d.]+) s"),
        "top_s": samples / find(r"`fleet top` \| ([\d.]+) s"),
        "bytes": find(r"([\d,]+) bytes a sample"),
        "per_row": find(r"has one row for ([\d.]+) samples"),
        "row_bytes": find(r"and (\d+) bytes a row"),
    }


def si(value):
    """Two digits, with a unit of thousands."""
    if value < 1:
        return f"{value:.1g}"
    power = min(int(math.log10(value)) // 3, 5)
    scaled = value / 1000**power
    digits = 0 if scaled >= 10 else 1
    return f"{scaled:.{digits}f} {['', 'k', 'M', 'G', 'T', 'P'][power]}" \
        .rstrip()


def budget(kind, share, error):
    """Processes of a service and samples of the service in an hour, and the
    mean bytes between two samples: half of the variance for each stage."""
    processes = 2 * (Z * SPREAD / error)**2
    samples = 2 * (Z / error)**2 / share
    there = (ALLOC_BYTES_S * 3600 if kind == "allocated" else LIVE_BYTES) * \
        processes
    period = there / samples
    taken = ALLOC_BYTES_S * 3600 * processes / period
    return processes, taken, period


def plan(figures):
    rows = []
    for kind, share, error in WANTED:
        processes, samples, period = budget(kind, share, error)
        of_service = MACHINES * PROCESSES / SERVICES
        second = samples * SERVICES / 3600
        day = second * 86400
        raw = day * DAYS_SAMPLES * figures["bytes"]
        rolled = day * DAYS_HOURS / figures["per_row"] * figures["row_bytes"]
        query = samples * 24 / figures["top_s"]
        rows.append((
            f"{100 * share:.0f} % of what is {kind}, ±{100 * error:.0f} %",
            f"{100 * processes / of_service:.1f} %", si(period) + "B",
            si(samples / processes / 3600) + "/s", si(second) + "/s",
            f"{max(1, math.ceil(second / figures['add_s'])):,}",
            si(raw) + "B", si(rolled) + "B", f"{query:.0f} s"))
    head = ("a function of", "`SAMPLEPROF_FRACTION`", "`SAMPLEPROF_PERIOD`",
            "samples of a process", "of the fleet", "processors that add",
            f"samples, {DAYS_SAMPLES} days", f"rollup, {DAYS_HOURS} days",
            "`top` of a service's day")
    lines = ["| " + " | ".join(head) + " |",
             "|---|" + "---:|" * (len(head) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    intro = (f"{MACHINES:,} machines with {PROCESSES} processes each, of "
             f"{SERVICES:,} services. A process allocates "
             f"{si(ALLOC_BYTES_S)}B a second and has {si(LIVE_BYTES)}B alive; "
             f"a function's bytes differ between processes of a service by "
             f"{100 * SPREAD:.0f} % (standard deviation).")
    intro = textwrap.fill(intro, 100)
    return intro + "\n\n" + "\n".join(lines) + "\n"


def main():
    write = sys.argv[1:2] == ["--write"]
    path = f"{sys.argv[-1]}/{PAGE}"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    head, rest = text.split(BEGIN)
    was, tail = rest.split(END)
    now = plan(measured(text))
    if write:
        with open(path, "w", encoding="utf-8") as file:
            file.write(head + BEGIN + now + END + tail)
        return 0
    sys.stdout.writelines(difflib.unified_diff(
        was.splitlines(True), now.splitlines(True), PAGE,
        "fleet_plan.py --write"))
    return was != now


sys.exit(main())
