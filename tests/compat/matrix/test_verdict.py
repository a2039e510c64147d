# SPDX-License-Identifier: MIT
"""The verdict of the matrix, with a fault planted for each of its rules in the
profile of one run; the look of its tables; that of the compilers has them all."""

import copy
import dataclasses
import tempfile
import unittest

import compilers
import emulated
import targets
import verdict
from verdict import Cell

PROGRAM = targets.Program("calls", ["{}/calls"], stacks=2, own=("calls",))
PRINTED = "leaf 300 3\n"


def frame(function, module="/m/calls", offset=10):
    return {"function": function, "module": module, "offset": offset}


def stack(samples, *functions):
    return {"samples": samples, "flat_bytes": {"value": 100.0 * samples},
            "frames": [frame(f) for f in functions]}


GOOD = {
    "samples": 3,
    "stacks": [stack(2, "leaf", "left", "main"),
               stack(1, "leaf", "right", "run_thread")],
    "exact": {"alloc_bytes": 300, "alloc_objects": 3},
    "damage": {"text": ""},
    "losses": {"samples_file_full": 0},
}


def judged(profile, program=PROGRAM, counts=(300, 3), printed=PRINTED):
    cell = Cell("here", "own", program.name)
    verdict.judge(cell, program, profile, counts, printed)
    return cell


class Verdict(unittest.TestCase):
    def setUp(self):
        self.profile = copy.deepcopy(GOOD)

    def assert_bad(self, words, **others):
        cell = judged(self.profile, **others)
        self.assertEqual(cell.state, "bad")
        self.assertIn(words, " ".join(cell.problems))

    def test_good(self):
        cell = judged(self.profile)
        self.assertEqual((cell.state, cell.problems), ("good", []))
        self.assertEqual((cell.samples, cell.stacks, cell.exact),
                         (3, 2, True))
        self.assertEqual((cell.whole_percent, cell.named_percent),
                         (100.0, 100.0))

    def test_nothing_sampled(self):
        self.profile.update(samples=0, stacks=[])
        self.assert_bad("no samples")

    def test_stack_cut_short(self):
        del self.profile["stacks"][0]["frames"][2]
        self.assert_bad("33.3 % of the samples reach main")

    def test_stacks_alike(self):
        self.profile["stacks"] = [stack(3, "leaf", "main")]
        self.assert_bad("1 distinct stacks, not 2")

    def test_unknown_code(self):
        self.profile["stacks"][0]["frames"][1]["module"] = None
        self.assert_bad("33.3 % of the samples have a name")

    def test_no_symbol(self):
        self.profile["stacks"][0]["frames"][1] = frame("calls+0x12")
        self.assert_bad("have a name")
        # A program of the system is stripped.
        other = frame("sqlite3+0x12", "/usr/bin/sqlite3")
        self.profile["stacks"][0]["frames"][1] = other
        self.assertEqual(judged(self.profile).state, "good")

    def test_exact_totals(self):
        for counts in ((301, 3), (300, 4)):
            self.assert_bad("EXACT is 300 bytes in 3", counts=counts)

    def test_leaf(self):
        self.assert_bad("leaf() has 300 bytes in 3 samples",
                        printed="leaf 300 4\n")

    def test_damage(self):
        self.profile["damage"]["text"] = "a record is damaged"
        self.assert_bad("a record is damaged")

    def test_disk_that_was_not_full(self):
        full = dataclasses.replace(PROGRAM, is_full=True)
        self.assert_bad("was not full", program=full)
        self.profile["losses"]["samples_file_full"] = 5
        self.assertEqual(judged(self.profile, full).state, "good")

    def test_entry(self):
        """Nothing has main's name where symbols were stripped: then the stack
        ends in the code at which the program is entered."""
        program = "/bin/sh"
        entry = verdict.entry_of(program)
        self.assertGreater(entry, 0)
        for offset, is_whole in ((entry + 33, True), (entry - 1, False),
                                 (entry + 4096, False)):
            ends = [{"frames": [frame("f"), frame("sh+0x1", program,
                                                  offset)]}]
            self.assertEqual(verdict.is_whole(ends[0], ("main",), "/", {}),
                             is_whole, offset)
        self.assertIsNone(verdict.entry_of(__file__))
        self.assertIsNone(verdict.entry_of("/no/such/file"))


class Table(unittest.TestCase):
    def test_lines(self):
        cells = [Cell("Debian 13 no libunwind", "of 11", "holes no-pie",
                      123456, 12345, 100.0, 100.0, True),
                 Cell("b", "own", "x", problems=["one", "two"]),
                 Cell("b", "own", "y", problems=["one", "two"]),
                 Cell("c", "own", "x", not_run="nobody offers it")]
        lines = list(verdict.table(cells))
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertRegex(lines[1], r"^Debian 13 no libunwind of 11 +holes "
                         r"no-pie +123456 +12345 +100.0 +100.0 +yes  good$")
        self.assertEqual(
            lines[5:], ["", "b, own, x, y: bad", "  one", "  two", "",
                        "c, own, x: not run", "  nobody offers it", "",
                        "1 good, 2 bad, 1 not run"])

    def test_platforms(self):
        cells = [Cell("Debian 13 no libunwind", "of 11", "x", 9, 9, 99.96, 100,
                      True),
                 Cell("Debian 13 no libunwind", "of 11", "y", 9, 9, 99.0, 100,
                      False),
                 Cell("Debian 11", "clang", "x", problems=["one"]),
                 Cell("c", "own", "x", not_run="nobody offers it")]
        lines = list(verdict.platforms(cells, {
            ("Debian 13 no libunwind", "of 11"):
                verdict.About("clang 19", "archive, apt", "141/141")}))
        self.assertEqual(lines[1:], [
            "Debian 13 no libunwind of 11   clang 19   archive, apt  99.0    "
            "no      141/141",
            "Debian 11              clang   -          -             bad     "
            "-       -",
            "c                      own     -          -             -       "
            "-       -"])
        self.assertLessEqual(max(map(len, lines)), 80)

    def test_platform_without_cells(self):
        lines = list(verdict.platforms([], {
            ("aarch64 qemu-user", "cross"):
                verdict.About("gcc 12", suite="190/191")}))
        self.assertEqual(lines[1:], [
            "aarch64 qemu-user      cross   gcc 12     -             -       "
            "-       190/191"])


class Emulated(unittest.TestCase):
    def test_cells(self):
        """What a machine prints of itself are cells of that machine."""
        cells = [Cell("here", "build", "sqlite3", 9, 5, 99.5, 100.0, True),
                 Cell("here no /proc", "build", "x", not_run="may not")]
        with tempfile.TemporaryDirectory() as work:
            verdict.write_json(work + "/json", cells, {})
            with open(work + "/json", encoding="utf-8") as file:
                found = emulated.cells_of("aarch64 16K", file.read())
        self.assertEqual(
            [(c.system, c.build, c.state) for c in found],
            [("aarch64 16K", "cross", "good"),
             ("aarch64 16K no /proc", "cross", "not run")])
        self.assertEqual(found[0].whole_percent, 99.5)
        with self.assertRaises(ValueError):
            emulated.cells_of("aarch64 16K", "[]")

    def test_passed(self):
        self.assertEqual(emulated.passed(
            "98% tests passed, 2 tests failed out of 26\n"), "24/26")
        self.assertEqual(emulated.passed("No tests were found!!!\n"), "-")


class Compilers(unittest.TestCase):
    PRINTED = "3 leaf ~inlined main\n"

    def judged(self, form="", module="/m/app", **change):
        one = {**stack(3, "leaf", "inlined", "main"), "truncated": False,
               **change}
        for at in one["frames"]:
            at["module"] = module
        return compilers.judge({"stacks": [one]}, self.PRINTED, "/m/app", form)

    def test_judge(self):
        self.assertEqual(self.judged(), (100, 100))
        lacks = {"frames": [frame("leaf"), frame("main")]}
        self.assertEqual(self.judged(**lacks), (100, 0))
        self.assertEqual(self.judged("minidebuginfo", **lacks), (100, 100))
        self.assertEqual(self.judged(truncated=True), (0, 100))
        self.assertEqual(self.judged(frames=[frame("leaf"), frame("inlined")]),
                         (0, 0))
        for change in ({"samples": 2}, {"module": "/m/other"}):
            with self.assertRaises(compilers.subprocess.SubprocessError):
                self.judged(**change)

    def test_table(self):
        bad = compilers.Cell(problems=["x"])
        rows = {n: {c: compilers.Cell(is_run=True)
                    for c in compilers.columns()} for n in ("a", "b", "c")}
        rows["b"]["LTO"] = bad
        rows["c"]["-O1"].take(100, 66.67)
        lines = list(compilers.table(rows))[2:]
        self.assertEqual([line.split(" |")[0] for line in lines],
                         ["| a", "| b", "| c"])
        self.assertIn("| bad |", lines[1])
        self.assertIn("| 100/66.6 |", lines[2])
        self.assertFalse(compilers.is_good("b", "LTO", bad))

    def test_document(self):
        with open(compilers.DOCUMENT, encoding="utf-8") as file:
            document = file.read()
        self.assertEqual(compilers.faults_of(document), [])
        self.assertEqual(compilers.faults_of(
            document.replace("gnatmake", "gnat", 1)), ["gnat", "gnatmake"])
        self.assertEqual(compilers.faults_of(
            document.replace("| LTO ", "| lto ", 1)), [compilers.heading()])


if __name__ == "__main__":
    unittest.main()
