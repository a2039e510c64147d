# SPDX-License-Identifier: MIT
"""Profiles that lack something, at period 1, where all else is exact: one that is
cut, one whose disk was full, one that has met SAMPLEPROF_MAX_FILE.  No command
and no export says more than the profile knows."""

import csv
import io
import json
import os
import re

import harness
from test_serve import Serve

SITES = ("a:48:8000", "mark=load", "keep:96:4000", "c:120:3000")
VIEWS = ("alloc", "live", "peak", "leaks", "temporary")
TEXTS = [["report", "--view", view] for view in VIEWS] + [
    ["report", "--by", of] for of in ("size", "thread", "phase")] + [
    ["report", "--phase", "load"], ["report", "--cum"], ["stats"], ["top"],
    ["tree"], ["traces"], ["peek", "."], ["list", "site_a"], ["advise"],
    ["check", "--limit", "live_bytes=1G", "--limit", "peak_bytes=1G"]]
EXPORTS = ("pprof", "massif", "jsonl", "html", "dhat", "collapsed",
           "speedscope", "csv", "heap_v2")
# What a full file knows: the process counted to its end, each class as well.
COUNTED = re.compile(r"ended cleanly|allocated .*, exact|exact totals (are not|but)|"
                     r"exact is all|exact +thread|exact bytes|exact objects|"
                     r"phase .*, exact|with exact totals|Exact totals|"
                     r"[0-9] (Ki)?B  .* exact |exact +alloc_\w+")


def points(value, path=""):
    """Where in JSON an interval has no width."""
    if isinstance(value, dict):
        if "lo" in value and value["lo"] == value["hi"]:
            yield path
        for key, part in value.items():
            yield from points(part, f"{path}/{key}")
    for i, part in enumerate(value if isinstance(value, list) else ()):
        yield from points(part, f"{path}/{i}")


class Lacking(Serve):

    def asked(self, *argv):
        done = self.sampleprof(*argv, code=None)
        self.assertIn(done.returncode, (0, 4), (argv, done.stderr))
        return done

    def asked_json(self, *argv):
        return json.loads(self.asked(*argv).stdout)

    def check_lacking(self, path, may_say, step=1):
        """Text, --csv, --json and exports of one that lacks some; of each kind
        all, or each step-th."""
        for argv in TEXTS[::step]:
            text = may_say.sub("", self.asked(*argv, path).stdout)
            self.assertNotRegex(text, "exact|Exact|cleanly|at the end", argv)
            self.assertNotRegex(text, "allocations?, at least", argv)
            if argv[0] != "advise":
                self.assertRegex(text, "at least|not known", argv)
        for view in VIEWS[::step]:
            argv = "--view", view, path
            said = self.asked_json("report", "--json", *argv)
            self.assertEqual(list(points(said)), [], view)
            self.assertFalse(said["whole"]["is_whole"])
            self.assertEqual(said["estimate"]["live_bytes"]["lo"], 0)
            self.assertIsNone(said["estimate"]["peak_bytes"]["hi"])
            for row in csv.DictReader(io.StringIO(self.asked(
                    "report", "--csv", *argv).stdout)):
                for of in ("flat_bytes", "cum_bytes", "live_bytes"):
                    self.assertNotEqual(row[of + "_lo"], row[of + "_hi"], row)
        text = self.asked("leaks", path).stdout
        self.assertLess(text.index("is known until"), text.index(" judged "))
        self.assertNotIn("before 0 s", text)
        found = self.asked_json("leaks", "--json", path)
        self.assertLessEqual(found["to_ns"], found["whole"]["live_known_until_ns"])
        for form in EXPORTS[::step]:
            self.assertIn("what was alive is known until", self.asked(
                "export", form, path, "-o", f"{path}.{form}").stderr, form)
        for pair in ((path, self.other), (self.other, path)):
            text = may_say.sub("", self.asked("diff", *pair).stdout)
            self.assertRegex(text, r"unknown +live_bytes")
            self.assertNotRegex(text, "exact|cleanly")
            for row in self.asked_json("diff", "--json", *pair)["functions"]:
                self.assertIsNone(row["change"]["hi"], row)
        return said["exact"]

    def test_fewer_samples_than_the_totals_say(self):
        """A chunk that reads as zeros is none, as one that nobody used."""
        path, whole = (os.path.join(self.served, name) for name in (
            "hole.sprof", "whole"))
        for name in (path, whole):
            self.record(os.path.basename(name), harness.target("program_gated"),
                        *SITES, period=1)
        with open(path, "r+b") as file:
            heads = [at for at in range(65536, os.path.getsize(path), 65536)
                     if os.pread(file.fileno(), 8, at) == b"chnk\1\0\0\0"]
            file.seek(heads[1])
            file.write(bytes(65536))
        for argv in TEXTS:
            if argv[0] in ("check", "advise", "list"):
                continue
            text = COUNTED.sub("", self.asked(*argv, path).stdout)
            self.assertNotRegex(text, "exact|Exact|cleanly", argv)
        for view in VIEWS:
            said = self.asked_json("report", "--json", "--view", view, path)
            self.assertEqual(list(points(said)), [], view)
            self.assertEqual(said["whole"]["why_not"],
                             "samples and frees were lost")
            self.assertEqual(said["estimate"]["live_bytes"]["lo"], 0)
            self.assertIsNone(said["estimate"]["peak_bytes"]["hi"])
            self.assertEqual(
                said["losses"]["samples_not_in_file"],
                said["exact"]["alloc_objects"] - said["samples"])
            for row in csv.DictReader(io.StringIO(self.asked(
                    "report", "--csv", "--view", view, path).stdout)):
                self.assertNotEqual(row["flat_bytes_lo"], row["flat_bytes_hi"])
        for pair in ((path, whole), (whole, path)):
            for row in self.asked_json("diff", "--json", *pair)["functions"]:
                self.assertIsNone(row["change"]["hi" if pair[1] == path
                                                else "lo"])
        for files in ((path,), (path, whole)):
            database = f"sqlite:{self.dir}/{len(files)}.db"
            self.asked("fleet", "init", "--db", database)
            self.asked("fleet", "add", "--db", database, *files)
            said = self.asked_json("fleet", "report", "--json", "--db", database)
            self.assertFalse(said["whole"]["is_whole"])
            self.assertEqual(list(points(said)), [])

    def test_frees_that_had_no_room(self):
        """The first of them is the end of what is known of live objects: no
        sample was lost before the program went on, 50 ms later."""
        disk, path = (os.path.join(self.dir, name) for name in ("disk", "full"))
        os.mkdir(disk)
        self.fill_disk("384k", disk, path, "hold:1000:20000", "drop=50",
                       "c:120:10", program="program_gated")
        said = self.asked_json("report", "--json", path)
        self.assertGreater(said["losses"]["frees_not_recorded"], 1000)
        self.assertGreaterEqual(said["losses"]["samples_file_full"], 10)
        self.assertLessEqual(
            said["whole"]["live_known_until_ns"],
            said["duration_ns"] - 50_000_000)
        self.assertEqual(said["samples"] + said["losses"]["samples_file_full"],
                         said["exact"]["alloc_objects"])

    @harness.nightly_too
    def test_every_output(self):
        cut, full, self.other = (os.path.join(self.served, name) for name in (
            "cut.sprof", "full.sprof", "other"))
        gated = harness.target("program_gated")
        for name in ("other", "cut.sprof"):
            self.record(name, gated, *SITES, period=1)
        os.truncate(cut, os.path.getsize(cut) * 2 // 3)
        exact = self.check_lacking(cut, re.compile("(?!)"))
        self.assertEqual((exact["is_complete"], exact["missing_bytes_max"]),
                         (False, None))
        disk = os.path.join(self.dir, "disk")
        os.mkdir(disk)
        self.fill_disk("1m", disk, full, "a:48:30000", "mark=load", "keep:96:8000",
                       "c:120:30000", program="program_gated")
        self.assertTrue(self.check_lacking(
            full, COUNTED, harness.rounds(3, 1))["is_complete"])
        turned = self.record("turned.sprof", gated, "keep:96:2000",
                             "c:120:120000", period=1, max_file="1M")
        self.assertRegex(self.asked("report", turned).stdout,
                         r"\n  discarded .*\n.*\n.*\n  peak +at least")
        self.begin()
        listed = self.asked_json("ls", "--json", self.served)
        found = self.metrics()
        for path, end, counted, whole in ((cut, "cut", 0, 0), (
                full, "clean", 1, 0), (turned, "clean", 1, 1)):
            row, = (r for r in listed if r["file"] == path)
            self.assertEqual((row["end"], row["alloc_is_exact"]), (end, counted))
            text = self.asked("ls", os.path.dirname(path)).stdout
            shown = text[:text.index(os.path.basename(path))].splitlines()[-2]
            self.assertEqual("unknown" in shown, not whole, text)
            self.assertEqual(not list(points(row)), not whole)
            key, = (k for k in found["sampleprof_whole"] if json.loads(k)[
                "profile"] == os.path.basename(path))
            self.assertEqual(found["sampleprof_whole"][key], whole)
            self.assertEqual(key in found["sampleprof_live_bytes"], whole)
            self.assertNotIn(key, found.get("sampleprof_peak_bytes_hi", {}))
        self.asked("fleet", "init")
        self.assertIn("1 not added", self.sampleprof(
            "fleet", "add", cut, full, turned, code=1).stdout)
        said = self.asked_json("fleet", "report", "--json")
        self.assertEqual(said["whole"]["processes_lacking"], 1)
        self.assertEqual(list(points(said)), [])
        self.assertIn("at least", self.asked("fleet", "report").stdout)
