# SPDX-License-Identifier: MIT
"""What tests/statistics/simulated counts, as tables of docs/measurements.txt."""

import collections
import os
import subprocess

from recording import Failed
from tables import table

LEVELS = (0.9, 0.95, 0.99, 0.999, 0.9999)

Cell = collections.namedtuple("Cell", "asked held error")
Bias = collections.namedtuple(
    "Bias", "program samples runs highest value error below")


class Row:
    """One question of one program, at all levels."""

    def __init__(self, runs, has_claim):
        self.runs, self.has_claim, self.cells = runs, has_claim, {}


def run(build):
    """({(program, samples, question): Row}, [Bias],
    {program: [(together, with all) of each level]})"""
    path = os.path.join(build, "tests/statistics/simulated")
    if not os.path.exists(path):
        raise Failed(f"{path} is missing: build it first")
    done = subprocess.run([path, "--full"], stdout=subprocess.PIPE, text=True,
                          check=False)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    failed = [" ".join(f[1:5]) for f in lines if f[0] == "!"]
    if done.returncode or failed:
        raise Failed(f"{path}: {'; '.join(failed) or done.returncode}")
    rows, biases, widths = {}, [], {}
    for kind, *f in lines:
        if kind == "bias":
            biases.append(Bias(f[0], int(f[1]), int(f[2]),
                               *(float(v) for v in f[3:])))
        elif kind == "width":
            widths.setdefault(f[0], []).append((float(f[2]), float(f[3])))
        elif kind == " ":
            row = rows.setdefault((f[0], float(f[1]), f[2]),
                                  Row(int(f[4]), f[8] == "1"))
            row.cells[float(f[3])] = Cell(int(f[5]), int(f[6]), float(f[7]))
    return rows, biases, widths


def share(cell, level):
    """Percent that hold, with the standard error."""
    digits = 1 if level < 0.99 else 2
    return (f"{100 * cell.held / cell.asked:.{digits}f} ± "
            f"{100 * cell.error:.{digits}f}")


def levels_table(rows):
    out = []
    for (program, samples, what), row in rows.items():
        asked = row.cells[0.95].asked
        out.append([program, f"{samples:,.0f}",
                    what if row.has_claim else f"*{what}*",
                    f"{row.runs:,}", f"{asked:,}",
                    *(share(row.cells[level], level) for level in LEVELS)])
    return table(["program", "samples", "what holds", "runs", "intervals",
                  *(f"{100 * level:g} %" for level in LEVELS)], out)


def bias_table(biases):
    return table(
        ["program", "samples at the peak", "runs",
         "highest point of the curve", "value", "in weights of a sample",
         "peak below the 95 % interval"],
        [[b.program, f"{b.samples:,}", f"{b.runs:,}",
          f"{100 * b.highest:+.1f} %",
          f"{100 * b.value:+.1f} ± {100 * b.error:.1f} %",
          f"{b.samples * b.value:+.1f} ± {b.samples * b.error:.1f}",
          f"{100 * b.below:.1f} %"] for b in biases])


def width_table(widths):
    return table(["program", *(f"{100 * level:g} %" for level in LEVELS)],
                 [[program, *(f"{each:.2f}; {with_all:.2f}"
                              for each, with_all in of)]
                  for program, of in widths.items()])


def document(found):
    rows, biases, widths = found
    return f"{levels_table(rows)}\n\n### Bias of the peak\n\n" \
           f"{bias_table(biases)}\n\n" \
           "### Widths of --simultaneous (E19)\n\n" \
           "Of rows of two samples and more, divided by the width of one row; "\
           "and if the rows of\none sample counted.\n\n" \
           f"{width_table(widths)}"
