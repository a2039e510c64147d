# SPDX-License-Identifier: MIT
"""What a cell of the matrix has to be: judges one run by its profile, and
prints the table."""

import dataclasses
import json
import os
import struct

# Of the samples, whose stacks reach main, the start of a thread, or what the
# loader runs before and after main; and whose frames all have names.
LEAST_PERCENT = 99

# The entry of a program or of the loader, at whose end main or the constructors
# are called, is no longer than this.
ENTRY_BYTES = 256

PT_LOAD = 1


@dataclasses.dataclass
class Cell:
    """One program on one system; why it is bad, or why it was not run."""
    system: str
    build: str
    program: str
    samples: int = 0
    stacks: int = 0
    whole_percent: float = 0.0
    named_percent: float = 0.0
    exact: bool = False
    problems: list = dataclasses.field(default_factory=list)
    not_run: str = ""

    @property
    def state(self):
        if self.not_run:
            return "not run"
        return "bad" if self.problems else "good"


def entry_of(path):
    """Offset at which an ELF file is entered, from its first byte in memory;
    None if it is no such."""
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
        if head[:4] != b"\x7fELF":
            return None
        entry, table = struct.unpack_from("<QQ", head, 24)
        size, number = struct.unpack_from("<HH", head, 54)
        for at in range(table, table + number * size, size):
            kind, = struct.unpack_from("<I", head, at)
            if kind == PT_LOAD:
                address, = struct.unpack_from("<Q", head, at + 16)
                return entry - (address & -4096)
    except (OSError, struct.error):
        pass
    return None


def _is_entry(frame, root, entries):
    """Is that frame the entry of a program?  It has no name in one that was
    stripped."""
    module = frame["module"]
    if not module or frame["offset"] is None:
        return False
    if module not in entries:
        entries[module] = entry_of(os.path.join(root, module.lstrip("/")))
    entry = entries[module]
    return entry is not None and 0 <= frame["offset"] - entry < ENTRY_BYTES


def is_whole(stack, ends, root, entries):
    return (any(f["function"] in ends for f in stack["frames"]) or
            _is_entry(stack["frames"][-1], root, entries))


def is_named(stack, own):
    """Does every frame lie in a file that is known, and have the name of a
    function where the file has symbols (`own`: names of such files)?"""
    for frame in stack["frames"]:
        if not frame["module"]:
            return False
        base = os.path.basename(frame["module"])
        if base in own and frame["function"].startswith(base + "+0x"):
            return False
    return True


def read_counts(path):
    """(bytes, objects) that count.c has counted."""
    with open(path, "rb") as file:
        return struct.unpack("<QQ", file.read(16))


def _percent(profile, holds):
    samples = sum(s["samples"] for s in profile["stacks"])
    good = sum(s["samples"] for s in profile["stacks"] if holds(s))
    return 100 * good / samples if samples else 0.0


def judge(cell, program, profile, counts, printed, root="/"):
    """Fill in the cell.  `profile`: what --json says; `counts`: what was
    counted below the library, or None: its samples have to be all there is;
    `printed`: what the program printed."""
    entries = {}
    cell.samples = profile["samples"]
    cell.stacks = len(profile["stacks"])
    cell.whole_percent = _percent(
        profile, lambda s: is_whole(s, program.ends, root, entries))
    cell.named_percent = _percent(
        profile, lambda s: is_named(s, program.own))
    exact = (profile["exact"]["alloc_bytes"],
             profile["exact"]["alloc_objects"])
    if counts is None:
        counts = (round(sum(s["flat_bytes"]["value"]
                            for s in profile["stacks"])), cell.samples)
    cell.exact = exact == counts
    bad = cell.problems
    if not cell.samples:
        bad.append("no samples")
        return
    if cell.stacks < program.stacks:
        bad.append(f"{cell.stacks} distinct stacks, not {program.stacks}")
    for percent, what in (
            (cell.whole_percent, "reach main or the start of the thread"),
            (cell.named_percent, "have a name for each frame")):
        if percent < LEAST_PERCENT:
            bad.append(f"stacks of {percent:.1f} % of the samples {what}")
    if not cell.exact:
        bad.append(f"EXACT is {exact[0]:,} bytes in {exact[1]:,} objects, "
                   f"counted were {counts[0]:,} in {counts[1]:,}")
    if profile["damage"]["text"]:
        bad.append(profile["damage"]["text"])
    if program.is_full and not profile["losses"]["samples_file_full"]:
        bad.append("the disk was not full")
    if program.own and not program.is_full:
        _judge_leaves(bad, profile, printed)


def _judge_leaves(bad, profile, printed):
    """At period 1 every allocation of leaf() is there, with its size."""
    leaves = [s for s in profile["stacks"]
              if any(f["function"].split("(")[0] == "leaf"
                     for f in s["frames"])]
    found = (round(sum(s["flat_bytes"]["value"] for s in leaves)),
             sum(s["samples"] for s in leaves))
    name, *wanted = printed.split()
    if name != "leaf" or found != tuple(map(int, wanted)):
        bad.append(f"leaf() has {found[0]:,} bytes in {found[1]:,} samples, "
                   f"the program says {printed.strip()}")


@dataclasses.dataclass
class About:
    """Of a build on a system, beside its cells: what it was compiled with, how
    it was installed, and its tests that passed."""
    compiler: str = "-"
    install: str = "-"
    suite: str = "-"


WIDTHS = (23, 7, 13, 7, 6, 6, 6, 6)
HEADS = ("system", "build", "program", "samples", "stacks", "whole", "named",
         "exact")


def _line(values):
    return "".join(
        text.ljust(width) if at < 3 else text.rjust(width)
        for at, (text, width) in enumerate(zip(values, WIDTHS))).rstrip()


def _reasons(cells, state):
    """Programs by what is said of them: often it is the same."""
    found = {}
    for cell in cells:
        if cell.state == state:
            why = tuple(cell.problems or [cell.not_run])
            found.setdefault((cell.system, cell.build, why), []).append(
                cell.program)
    return found


def table(cells):
    """Lines: the table, of 80 columns, then what is bad, then what was not
    run."""
    yield _line(HEADS)
    for cell in cells:
        names = (cell.system, cell.build, cell.program)
        if not cell.samples:
            yield _line(names + ("-",) * 5) + ("  bad" if cell.problems
                                               else "  -")
            continue
        yield _line(names + (
            str(cell.samples), str(cell.stacks), f"{cell.whole_percent:.1f}",
            f"{cell.named_percent:.1f}",
            "yes" if cell.exact else "no")) + "  " + cell.state
    for state in ("bad", "not run"):
        for (system, build, why), programs in _reasons(cells, state).items():
            yield ""
            yield f"{system}, {build}, {', '.join(programs)}: {state}"
            for text in why:
                yield f"  {text}"
    yield ""
    yield ", ".join(f"{sum(c.state == state for c in cells)} {state}"
                    for state in ("good", "bad", "not run"))


PLATFORM_WIDTHS = (23, 8, 11, 14, 8, 8)
PLATFORM_HEADS = ("platform", "build", "compiler", "install", "whole", "exact",
                  "suite")


def platforms(cells, about):
    """Lines: a row for each build on each platform, with the worst of its
    cells.  `about`: About by (system, build)."""
    def line(values):
        return "".join(text.ljust(width) for text, width in zip(
            values, (*PLATFORM_WIDTHS, 0))).rstrip()

    yield line(PLATFORM_HEADS)
    found = {}
    for cell in cells:
        found.setdefault((cell.system, cell.build), []).append(cell)
    for key in about:
        found.setdefault(key, [])
    for key, group in found.items():
        known = about.get(key, About())
        ran = [cell for cell in group if cell.samples]
        bad = any(cell.state == "bad" for cell in group)
        whole = (f"{min(cell.whole_percent for cell in ran):.1f}" if ran
                 else "bad" if bad else "-")
        exact = ("-" if not ran else
                 "yes" if all(cell.exact for cell in ran) else "no")
        yield line((*key, known.compiler, known.install, whole, exact,
                    known.suite))


def write_json(path, cells, about):
    with open(path, "w", encoding="utf-8") as file:
        json.dump([{**dataclasses.asdict(c), "state": c.state,
                    **dataclasses.asdict(about.get((c.system, c.build),
                                                   About()))}
                   for c in cells], file, indent=1)
        file.write("\n")
