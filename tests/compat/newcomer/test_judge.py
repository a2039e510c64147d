#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What the newcomer's way holds of a screen, with a fault planted for each of
its rules; the terminal itself: widths, colours, a pager, exit statuses."""

import unittest

import judge
from terminal import COLUMNS, ROWS, Shown, Terminal

REPORT = """sampleprof report: ./chat
  allocated 734.1 MiB in 14,125,134 allocations, exact
  live      32.3 MiB [25.1, 41.0] MiB in 588,043 objects [441,364, 798,574] at

                       flat   flat%    cum%  function
  32.3 MiB [25.1, 41.0] MiB  100.0%  100.0%  chat::room::note_typing  (chat)
  [71.0, 383] KiB ~94.6 KiB   <0.1%   <0.1%  libst…so.6+0xa578  (libstdc++.so.6)
                   < 1.8 MiB   0.0%    0.1%  operator new  (chat)
  and 26 functions that only call others: see --cum

next: sampleprof report --view peak \\
        chat.1.sprof  # what the peak is made of
      sampleprof tree chat.1.sprof  # who calls them
""".splitlines()

TEMPORARY = "  200,000 [195,744, 309,563]  100.0%  ██████  split_line  (words)"
DIFF = ("   32.3 MiB           0      -32.3 MiB      gone  "
        "[-41.2 MiB, -24.8 MiB]          63/0  chat::room::note_typing")


def shown(lines, status=0, coded=""):
    return Shown("sampleprof report", status, lines, lines[:ROWS - 1], False,
                 coded)


class Judge(unittest.TestCase):
    def test_rows(self):
        self.assertEqual(judge.functions(REPORT), [
            "chat::room::note_typing", "libst…so.6+0xa578", "operator new"])
        self.assertEqual(judge.functions([TEMPORARY]), ["split_line"])
        self.assertEqual(judge.functions([DIFF]), ["chat::room::note_typing"])

    def test_answer(self):
        good = shown(REPORT)
        self.assertEqual(judge.answer(good, "chat::room::note_typing"), [])
        self.assertTrue(judge.answer(good, "operator new"), "not the first")
        self.assertTrue(judge.answer(good, "note_typing"), "not its name")
        self.assertTrue(judge.answer(shown([]), "main"))
        below = shown(["head"] * ROWS + REPORT)
        self.assertTrue(judge.answer(below, "chat::room::note_typing"),
                        "not on the first screen")

    def test_names(self):
        self.assertEqual(judge.names(shown(REPORT), "exact"), [])
        self.assertTrue(judge.names(shown(REPORT), "exac"), "half a word")
        self.assertTrue(judge.names(shown([""] * ROWS + REPORT), "exact"))

    def test_status(self):
        self.assertEqual(judge.status(shown([], 3), 3), [])
        self.assertTrue(judge.status(shown([], 1)))
        self.assertTrue(judge.status(shown([]), 3))

    def test_widths(self):
        self.assertEqual(judge.widths(shown(["x" * COLUMNS])), [])
        self.assertEqual(len(judge.widths(shown(["x" * (COLUMNS + 1)]))), 1)

    def test_colours(self):
        for coded in ("", "\x1b[1mhead"):
            there = bool(coded)
            self.assertEqual(judge.colours(shown([], 0, coded), there), [])
            self.assertTrue(judge.colours(shown([], 0, coded), not there))

    def test_next(self):
        good = shown(REPORT)
        self.assertEqual(good.next(), [
            "sampleprof report --view peak chat.1.sprof",
            "sampleprof tree chat.1.sprof"])
        self.assertEqual(judge.proposes(good, "--view peak"), [])
        self.assertTrue(judge.proposes(good, "--view live"))
        self.assertEqual(shown(REPORT[:-3]).next(), [])
        self.assertEqual(shown(["sampleprof: next: sampleprof report x"])
                         .next(), ["sampleprof report x"])


class Screen(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.terminal = Terminal(["env", "-i", "TERM=screen-256color",
                                 "LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin",
                                 "bash", "--norc"])
        cls.addClassCleanup(cls.terminal.close)

    def test_status(self):
        self.assertEqual(self.terminal.run("true").status, 0)
        self.assertEqual(self.terminal.run("(exit 42)").status, 42)

    def test_no_end_of_line(self):
        self.assertEqual(self.terminal.run("printf x").lines, ["x"])
        self.assertEqual(self.terminal.run("true").lines, [])

    def test_width(self):
        for n in (COLUMNS - 1, COLUMNS, COLUMNS + 1, 3 * COLUMNS):
            seen = self.terminal.run(f"printf '%0{n}d\\n' 0")
            self.assertEqual(seen.lines, ["0" * n])
            self.assertEqual(bool(seen.wide()), n > COLUMNS)

    def test_a_command_wider_than_the_terminal(self):
        for n in range(COLUMNS - 12, COLUMNS + 4):
            seen = self.terminal.run("echo one two".ljust(n) + "#")
            self.assertEqual(seen.lines, ["one two"], n)

    def test_more_than_a_screen(self):
        seen = self.terminal.run("seq 100")
        self.assertEqual(seen.lines, [str(n) for n in range(1, 101)])
        self.assertEqual(seen.first, seen.lines[:ROWS - 1])
        self.assertFalse(seen.paged)

    def test_colours(self):
        seen = self.terminal.run(r"printf '\033[1mbold\033[m\n'")
        self.assertEqual(judge.colours(seen, True), [])
        self.assertEqual(seen.lines, ["bold"])
        seen = self.terminal.run("echo plain")
        self.assertEqual(judge.colours(seen, False), [])

    def test_pager(self):
        """What waits for a key is looked at, and then printed whole."""
        seen = self.terminal.run(
            "bash -c 'seq 50; [ \"$PAGER\" = cat ] || "
            "{ printf \": \"; read -sn 1; printf \"\\r\\033[K\"; }'")
        self.assertEqual(seen.lines, [str(n) for n in range(1, 51)])
        self.assertTrue(seen.paged)
        self.assertEqual((seen.first[0], seen.first[-1]), ("28", "50"))
        self.assertEqual(len(seen.first), ROWS - 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
