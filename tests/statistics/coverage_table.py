#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Run the full grid of `coverage` and write its tables into
docs/measurements.txt, between the markers.  Takes minutes; status 1 if a cell
fails.

    coverage_table.py BUILD_DIR        run BUILD_DIR/tests/statistics/coverage --full
    coverage_table.py --from FILE      take what it printed from FILE
"""
import collections
import os
import subprocess
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "measurements.txt")
BEGIN = "<!-- coverage:begin (made by tests/statistics/coverage_table.py) -->"
END = "<!-- coverage:end -->"

LEVELS = (0.9, 0.95, 0.99, 0.999, 0.9999)
LEVEL_HEAD = ["confidence", "equal objects, computed: least",
              "simulated: least", "mean", "cells", "objects: least"]

Cell = collections.namedtuple(
    "Cell", "subset rest periods share answer confidence coverage width")


def parse(text):
    cells, exact = [], []
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        f = line.split(",")
        if f[0] == "!":
            print(f"coverage_table.py: fails: {line}", file=sys.stderr)
        if f[1] == "exact":
            exact.append((float(f[2]), float(f[3]), float(f[4])))
        elif len(f) == 11:
            cells.append(Cell(f[1], f[2], float(f[3]), float(f[4]), f[5],
                              float(f[6]), int(f[8]) / int(f[7]),
                              float(f[9])))
    return cells, exact


def percent(share):
    return f"{100 * share:.1f}"


def ordered(values):
    return list(dict.fromkeys(values))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |",
             "|---" + "|--:" * (len(head) - 1) + "|"]
    lines += ["| " + " | ".join(r) + " |" for r in rows]
    return "\n".join(lines)


def alone_table(cells):
    """Coverage of P3 by workload and size of the program."""
    p3 = [c for c in cells if not c.rest and c.answer == "p3"
          and c.confidence == 0.95]
    sizes = sorted(ordered(c.periods for c in p3))
    rows = []
    for name in ordered(c.subset for c in p3):
        row = [name]
        for n in sizes:
            # Some programs run with two periods, too: the worse of both.
            of = [c.coverage for c in p3
                  if c.subset == name and c.periods == n]
            row.append(percent(min(of)) if of else "")
        rows.append(row)
    return table(["bytes of the program / R"] + [f"{n:g}" for n in sizes],
                 rows)


def mean(values):
    return sum(values) / len(values)


def method_table(cells):
    """Least coverage of the methods, and width against the valid one."""
    cells = [c for c in cells if not c.rest and c.confidence == 0.95]
    rows = []
    for name in ordered(c.subset for c in cells):
        def of(answer):
            # The first of a size: the second has two periods.
            found = {}
            for c in cells:
                if c.subset == name and c.answer == answer:
                    found.setdefault(c.periods, c)
            return found
        p3, nb, written = of("p3"), of("negbinom"), of("as-written")
        objects = of("objects")
        ratio = [p3[n].width / nb[n].width for n in p3 if n >= 3]
        rows.append([
            name, percent(min(c.coverage for c in written.values())),
            percent(min(c.coverage for c in nb.values())),
            percent(min(c.coverage for c in p3.values())),
            f"{mean(ratio):.2f}",
            f"{p3[max(p3)].width / nb[max(p3)].width:.2f}",
            percent(min(c.coverage for c in objects.values()))
            if objects else ""])
    return table(["sizes", "as written", "valid", "P3",
                  "width, mean", "width, most bytes", "objects"], rows)


def level_table(cells, exact):
    rows = []
    for level in LEVELS:
        of = [c for c in cells if not c.rest and c.answer == "p3"
              and c.confidence == level]
        least = min(of, key=lambda c: c.coverage)
        objects = [c.coverage for c in cells if not c.rest
                   and c.answer == "objects" and c.confidence == level]
        rows.append([
            f"{100 * level:g} %",
            f"{100 * min(e[2] for e in exact if e[1] == level):.2f}",
            f"{100 * least.coverage:.2f}",
            f"{100 * mean([c.coverage for c in of]):.2f}",
            f"{len(of)}", f"{100 * min(objects):.2f}"])
    return table(LEVEL_HEAD, rows)


def first_of(cells, answer):
    """Those of an answer; the second of its kind has totals that are late."""
    found = {}
    for c in cells:
        if c.answer == answer:
            found.setdefault((c.periods, c.share), c)
    return found


def pair_table(cells):
    """Class totals: least coverage, and width against P3, by share."""
    pairs = ordered((c.subset, c.rest) for c in cells if c.rest)
    shares = sorted(ordered(c.share for c in cells if c.rest))
    rows = []
    for pair in pairs:
        of = [c for c in cells if (c.subset, c.rest) == pair]
        p3, p3t = first_of(of, "p3"), first_of(of, "p3t")
        row = [f"{pair[0]} in {pair[1]}",
               percent(min(c.coverage for c in of if c.answer == "p3t"))]
        for share in shares:
            ratio = [p3t[k].width / p3[k].width for k in p3t
                     if k[1] == share and k[0] >= 30]
            row.append(f"{mean(ratio):.2f}" if ratio else "")
        for answer in ("objects-p3t", "share"):
            covered = [c.coverage for c in of if c.answer == answer]
            row.append(percent(min(covered)) if covered else "")
        rows.append(row)
    theory = ["in theory, √(1 - share)", ""]
    theory += [f"{(1 - s) ** 0.5:.2f}" for s in shares] + ["", ""]
    return table(["subset in rest", "least coverage"]
                 + [f"share {s:g}" for s in shares]
                 + ["objects: least", "share: least"], rows + [theory])


def wrap(text):
    return textwrap.fill(text, 100, break_on_hyphens=False)


def page(cells, exact):
    return "\n\n".join([
        BEGIN,
        wrap("Share of the 95 % intervals (E8) that contain the truth, in "
             "percent. Each program has 20,000 runs, or 5,000 if it has more "
             "than 300 R. A cell is empty if the program cannot have so few "
             "bytes."),
        alone_table(cells),
        wrap("Lowest coverage in each row above: of .NET's negative binomial "
             "intervals as published, of the valid ones (E6), and of P3. The "
             "next columns have the width of P3 divided by the width of the "
             "valid ones, as a mean from 3 R on and in the largest program. The "
             "last column has the lowest coverage of (E11)."),
        method_table(cells),
        wrap("Other confidence levels. The column of equal objects (0.001 to 4.6 "
             "R, 1 to 4000 of them) is computed without random numbers."),
        level_table(cells, exact),
        wrap("Class totals (E10, E17), in programs of 3 to 1000 R: the lowest "
             "coverage, also with totals that are late by 2 R. The columns by "
             "share have the mean width divided by the width of P3, from 30 R "
             "on, for subsets with this share of the bytes. The last columns "
             "have the lowest coverage for objects and for shares (E12)."),
        pair_table(cells),
        END])


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--from":
        with open(sys.argv[2], encoding="utf-8") as f:
            text = f.read()
    elif len(sys.argv) == 2:
        program = os.path.join(sys.argv[1], "tests", "statistics", "coverage")
        run = subprocess.run([program, "--full"], stdout=subprocess.PIPE,
                             text=True, check=False)
        text = run.stdout
        if run.returncode not in (0, 1):
            sys.exit(f"{program}: status {run.returncode}")
    else:
        sys.exit(__doc__)
    with open(PAGE, encoding="utf-8") as f:
        before = f.read()
    if before.count(BEGIN) != 1 or before.count(END) != 1:
        sys.exit(f"coverage_table.py: {PAGE} has no markers")
    head, rest = before.split(BEGIN)
    after = head + page(*parse(text)) + rest.split(END)[1]
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(after)
    if any(line.startswith("!") for line in text.splitlines()):
        sys.exit(1)


if __name__ == "__main__":
    main()
