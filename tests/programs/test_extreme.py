# SPDX-License-Identifier: MIT
"""Whole outputs of profiles that nobody has (targets/extreme.c): whatever the
figures are, they do not contradict each other, no output has another one's digits,
and no text has a number that is none."""

import csv
import io
import json
import math
import mmap
import os
import random
import re
import subprocess

import harness

VIEWS = ("alloc", "live", "peak", "leaks", "temporary")
TEXTS = [["report", "--view", view] for view in VIEWS] + [
    ["report", "--by", of] for of in ("size", "thread")] + [
    ["report", "--timeline", "--ascii"], ["report", "--sizes", "--ascii"],
    ["report", "--simultaneous"], ["report", "--stacks", "3"],
    ["report", "--cum"], ["report", "--estimator", "p3"], ["stats"], ["top"],
    ["tree"], ["traces"], ["peek", "."], ["list", "."], ["advise"], ["leaks"]]
CHECKS = ["alloc_bytes=+10%", "live_bytes=1G", "peak_bytes=+5%", "sites=+10%",
          "alloc_objects=1000000"]
# What is no number, a zero with a sign, one of several.
NONE = re.compile(r"(?i)(?<![\w/.!+-])[-+]?(nan|inf(inity)?)(?![\w/])|"
                  r"[-+]0(\.0*)?(?![\w.])|"
                  r"(?<![\d.,_/:+-])1 (?!(ns|us|ms|s)\b)[a-z]+s\b")
PERCENT = re.compile(r"(?<![\w.])[-+]?([0-9.,]+(?:e\+?\d+)?) ?%")
UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
         "PiB": 2**50, "EiB": 2**60}
NUMBER = r"(-?(?<![#\w.,])[0-9][0-9.,]*)(?: ([KMGTPE]iB|B))?"
INTERVAL = re.compile(NUMBER + r"(?: \(9.*? %:)? \[" + NUMBER + ", " + NUMBER +
                      r"\](?: ([KMGTPE]iB|B))?")


def amount(number, unit):
    return float(number.replace(",", "")) * UNITS[unit or ""]


def walk(value, path=""):
    yield path, value
    pairs = (value.items() if isinstance(value, dict) else
             enumerate(value) if isinstance(value, list) else ())
    for key, part in pairs:
        yield from walk(part, f"{path}/{key}")


class Extreme(harness.Case):

    def asked(self, *argv):
        """What is written, or a reason why not: None."""
        done = harness.run_report(*argv)
        if done.returncode == 1 and done.stderr and not done.stdout:
            return None
        self.assertIn(done.returncode, (0, 3, 4), (argv, done.stderr))
        return done.stdout.decode()

    def check_text(self, *argv):
        text = self.asked(*argv) or ""
        found = NONE.search(text)
        if found:
            self.fail(f"{argv}: {found.group()!r} in\n{text}")
        for line in text.splitlines():
            for number in PERCENT.findall(line):
                # Growth may be more, and the time of several processors.
                if argv[0] not in ("advise", "check", "diff"):
                    self.assertLessEqual(float(number.replace(",", "")), 100,
                                         (argv, line))
            for found in INTERVAL.findall(line):
                value = amount(*found[:2])
                lo, hi = (amount(found[i], found[i + 1] or found[6])
                          for i in (2, 4))
                self.assertLessEqual(lo, hi, (argv, line))
                if found[1] or not found[6]:
                    self.assertLessEqual(lo, value, (argv, line))
                    self.assertLessEqual(value, hi, (argv, line))
        return text

    def check_json(self, said, argv):
        for path, value in walk(said):
            where = argv, path, value
            if isinstance(value, float):
                self.assertTrue(math.isfinite(value), where)
                self.assertFalse(value == 0 and math.copysign(1, value) < 0,
                                 where)
            if isinstance(value, dict) and "lo" in value and "value" in value:
                lo, at, hi = (value[key] for key in ("lo", "value", "hi"))
                hi = math.inf if hi is None else hi
                if lo is not None and at is not None:
                    self.assertLessEqual(lo, at, where)
                    self.assertLessEqual(at, hi, where)
            if re.search("share|percent(?!ile)", path.rpartition("/")[2]):
                for part in (value.values() if isinstance(value, dict)
                             else [value]):
                    if isinstance(part, (int, float)):
                        self.assertTrue(0 <= part <= 1, where)

    def check_same(self, one, other, where, noise):
        """The same digits, but for what a difference of two sums is off."""
        other = other or ""
        if not one or not other or abs(
                float(one) - float(other)) > noise + 1e-11 * float(one):
            self.assertEqual(one, other, where)

    def check_rows(self, text, said, argv):
        """A row of the text contains the interval of JSON, with three digits."""
        rows = {f["name"]: f["flat_bytes"] for f in said["functions"]}
        for line in text.splitlines():
            found = INTERVAL.search(line)
            row = rows.get(line.split()[-1]) if found else None
            if row and row["value"] and row["hi"]:
                lo, hi = (amount(found[i], found[i + 1] or found[7])
                          for i in (3, 5))
                for less, more in ((lo, row["lo"]), (row["hi"], hi),
                                   (row["lo"], 1.02 * lo + 1),
                                   (0.98 * hi - 1, row["hi"])):
                    self.assertLessEqual(less, more * (1 + 1e-8),
                                         (argv, line, row))

    def check_report(self, path, view):
        argv = "report", "--view", view, path
        text = self.asked("report", "--json", "--view", view, path)
        if text is None:
            return
        said = json.loads(text)
        self.check_json(said, argv)
        allocated = said["exact"]["alloc_bytes"] or 0
        digits = json.loads(text, parse_int=str,
                            parse_float=lambda text: text.removesuffix(".0"))
        rows = list(csv.DictReader(io.StringIO(self.asked(
            "report", "--csv", "--view", view, path))))
        self.assertEqual(len(rows), len(digits["functions"]))
        for row, function in zip(rows, digits["functions"]):
            for key in ("flat_bytes", "cum_bytes", "flat_objects",
                        "live_bytes"):
                for end, of in (("", "value"), ("_lo", "lo"), ("_hi", "hi")):
                    if function.get(key):
                        self.check_same(row[key + end], function[key][of], (
                            argv, key), 1e-13 * allocated)
        whole = said["estimate"]["view_bytes"]
        # What is all at most is cut to that, rows are not.
        if whole and whole["value"] < allocated:
            self.assertLessEqual(
                sum(f["flat_bytes"]["value"] for f in said["functions"]),
                whole["value"] * (1 + 1e-4), argv)
        # Of nothing all is known; without frees what was allocated is.
        lacks = {key for key in ("cut", "damaged", "full", "lost_samples",
                                 "lost_frees") if said["whole"][key]}
        if not said["whole"]["is_whole"] and allocated:
            for at, value in walk(said):
                # at the very start nothing was
                point = re.match("/timeline/([0-9]+)/", at)
                if point and not said["timeline"][int(point[1])]["time_ns"]:
                    continue
                if lacks == {"lost_frees"} and not re.search(
                        "live|peak", at) and ("/alloc_" in at or
                                              view == "alloc"):
                    continue
                if isinstance(value, dict) and "lo" in value:
                    self.assertNotEqual(value["lo"], value["hi"], (argv, at))
        text = self.check_text(*argv)
        self.check_rows(text, said, argv)
        if said["whole"]["cut"]:
            self.assertNotRegex(
                text, r"(?<!is) exact\b(?! +totals)|cleanly", argv)
            self.assertIn("cut short", text, argv)

    def check_profile(self, path, other):
        for view in random.sample(VIEWS, 2):
            self.check_report(path, view)
        for argv in random.sample(TEXTS, 4):
            self.check_text(*argv, path)
        for argv in (("diff", other, path), ("check", path, "--baseline",
                                             other, "--any-program",
                                             "--limit", random.choice(CHECKS))):
            self.check_text(*argv)
            self.check_json(json.loads(self.asked(
                *argv, *(("--json",) if argv[0] == "diff" else
                         ("--format", "json"))) or "{}"), argv)

    def check_all(self, seed, n):
        random.seed(seed)
        paths = self.run_target(seed, n)
        for i, path in enumerate(paths):
            with open(path, "r+b") as file:
                room = os.path.getsize(path)
                runs = mmap.mmap(file.fileno(), room) if i % 6 == 0 else None
            self.check_profile(path, paths[i - 1])
            if runs:
                runs.close()

    def run_target(self, seed, n):
        return subprocess.run(
            [harness.target("program_extreme"), self.out, str(seed), str(n),
             str(os.getpid())], check=True, capture_output=True,
            text=True).stdout.split()

    @harness.nightly_too
    def test_all(self):
        for seed in range(harness.rounds(1, 100)):
            self.check_all(seed, 8)
