#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The benchmark on one loop of a second, with peers that do not load, without
time, interrupted, and again."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
WORK = "large-calloc"
TIMEOUT_S = 250


class Run(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.json = os.path.join(scratch.name, "bench.json")

    def command(self, *options, work=WORK):
        return [os.path.join(HERE, "run"), "--build", BUILD, "--as-is",
                "--quick", "--only", f"^{work}$", "--json", self.json,
                *options]

    def run_bench(self, *options, **kwargs):
        done = subprocess.run(self.command(*options, **kwargs), text=True,
                              capture_output=True, timeout=TIMEOUT_S,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.json, encoding="utf-8") as file:
            return done, json.load(file)

    def test_figures_are_made_and_kept(self):
        done, record = self.run_bench("--peer", f"broken={__file__}",
                                      "--peer", "absent=/no/where.so")
        pairs = record["pairs"][f"{WORK} | 512 KiB / jump"]
        self.assertEqual(len(pairs), 2)
        for base, row in pairs:
            self.assertEqual(base["file"], 0)
            self.assertGreater(row["file"], 4096)
            for figures in (base, row):
                self.assertGreater(figures["wall"], 0)
                self.assertGreater(figures["cpu"], 0)
                # 16 MiB at least are used, and none of it is Python's.
                self.assertGreater(figures["rss"], 1 << 10)
                self.assertLess(figures["rss"], 200 << 10)
        self.assertIn(f"| {WORK} |", done.stdout)
        self.assertIn("| 512 KiB / jump |", done.stdout)
        self.assertIn("cannot be preloaded",
                      record["failed"][f"{WORK} | broken / no library"])
        self.assertIn("/no/where.so",
                      record["failed"]["absent / no library"])
        _, again = self.run_bench()
        self.assertEqual(again["pairs"][f"{WORK} | 512 KiB / jump"], pairs)
        self.assertEqual(again["failed"], {})

    def test_one_comparison_alone(self):
        name = f"{WORK} | every byte / no library"
        _, record = self.run_bench("--compare", "^every byte / ", "--rounds",
                                   "1")
        self.assertEqual([key for key, pairs in record["pairs"].items()
                          if pairs], [name])
        self.assertEqual(len(record["pairs"][name]), 1)
        self.assertNotIn("instructions", record)
        _, record = self.run_bench("--compare", "^every byte / ", "--rounds",
                                   "2")
        self.assertEqual(len(record["pairs"][name]), 2)

    def test_rounds_that_are_none(self):
        for rounds in ("0", "101", "-1", "x"):
            done = subprocess.run(self.command("--rounds", rounds), text=True,
                                  capture_output=True, timeout=TIMEOUT_S,
                                  check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("not 1 to 100", done.stderr)

    def test_time_ends_it(self):
        done, record = self.run_bench("--minutes", "1e-6")
        self.assertIn("the time is over", done.stderr)
        self.assertFalse(any(record["pairs"].values()))

    def test_interrupted(self):
        process = subprocess.Popen(
            self.command(work=".*"), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        try:
            self.assertTrue(re.match("instructions|going", next(
                iter(process.stderr))))
            process.send_signal(signal.SIGINT)
            told, said = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("interrupted", said)
        self.assertIn("cores, Linux", told)
        self.assertTrue(os.path.exists(self.json))

    def test_other_library_begins_anew(self):
        with open(self.json, "w", encoding="utf-8") as file:
            json.dump({"library": "another", "machine": {}, "pairs":
                       {f"{WORK} | 512 KiB / jump": [[{}, {}]] * 9}}, file)
        done, record = self.run_bench("--minutes", "1e-6")
        self.assertIn("of another library", done.stderr)
        self.assertEqual(record["pairs"], {})


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
