#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--metric resident of a constructed program: at its end, near its peak, at a
snapshot, of a packed copy; in the report, in exports and between two runs; and
the message for a moment without a ledger."""
import collections
import json
import os
import subprocess

import harness
import test_rss
import test_rss_stored


class Metric(test_rss_stored.Case):
    def report(self, *argv, path=None):
        return harness.run_report(*argv, path or self.out, text=True)

    def said(self, *argv):
        done = self.report(*argv)
        self.assertEqual(done.returncode, 1, done.stdout)
        return " ".join(done.stderr.split())

    def functions(self, *argv, path=None):
        done = self.report("--json", "--metric", "resident", *argv, path=path)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["metric"], "resident")
        return {f["name"]: f["flat_bytes"]["value"]
                for f in answer["functions"]}

    def check_functions(self, found, made):
        large, _ = made["large"]
        self.check(found["make_large"], large)
        # All of these were written to.
        self.assertEqual(found["make_small"], made["small"][1])
        self.assertEqual(found["make_holes"], made["alive"][0])

    def test_at_end(self):
        """With every object recorded, to the byte or page; the same of a packed
        copy, in each export, and as the ledger itself says."""
        _, made = self.run_ledger("--rss", period=1)
        found = self.functions()
        self.check_functions(found, made)
        self.assertEqual(found, self.functions("--view", "live"))
        self.assertEqual(found, self.functions("--view", "leaks",
                                               "--tail", "0%"))
        alive = next(r for r in self.stored()["rows"]
                     if r["name"] == "heap_alive")
        self.check(sum(found.values()), alive["bytes"])
        packed = os.path.join(self.dir, "packed.sprof")
        harness.report("symbolize", self.out, "-o", packed)
        self.assertEqual(found, self.functions(path=packed))
        lines = self.report("export", "collapsed", "--metric", "resident",
                            "-o", "-").stdout.splitlines()
        sums = collections.Counter()
        for line in lines:
            stack, weight = line.rsplit(" ", 1)
            sums[stack.rsplit(";", 1)[-1]] += int(weight)
        for name in ("make_large", "make_small", "make_holes"):
            self.assertEqual(sums[name], found[name])
        self.assertIn("resident: what is alive in resident pages at the end",
                      self.report("top", "--metric", "resident").stdout)
        self.assertIn("its resident pages near the peak of RSS were not recorded: "
                      "`sampleprof run --rss-at-peak` does it; it has: end",
                      self.said("--metric", "resident", "--view", "peak"))
        self.assertIn("its resident pages at such were not recorded",
                      self.said("--metric", "resident", "--at", "such"))

    @harness.nightly_too
    def test_between_runs(self):
        """Objects of many periods are all recorded in the fast list, too."""
        period = harness.rounds("4K", 1)
        self.run_ledger("--rss", period=period)
        old = self.out + ".old"
        os.rename(self.out, old)
        _, made = self.run_ledger("--rss", period=period)
        large, untouched = made["large"]
        for argv, was in ((("--metric", "resident"), large),
                          ((), large + untouched))[:harness.rounds(1, 2)]:
            diff = json.loads(harness.report("diff", "--json", "--top", "0",
                                             "--view", "live", *argv, old,
                                             self.out))
            [row] = [r for r in diff["functions"]
                     if r["name"] == "make_large"]
            self.check(row["old"]["value"], was)
            self.check(row["new"]["value"], was)

    def test_snapshot(self):
        process, made = self.start_ledger(settings={"period": 1})
        done = subprocess.run(
            [harness.tool(), "ctl", "--timeout", "1m", "--rss",
             str(process.pid), "snapshot", "made"], capture_output=True,
            text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        process.communicate(b"x")
        [name] = os.listdir(self.out)
        self.out = os.path.join(self.out, name)
        self.check_functions(self.functions("--at", "made"), made)
        self.assertIn("it has: made", self.said("--metric", "resident"))

    @harness.nightly
    def test_near_peak(self):
        """Of a process that was killed."""
        self.run_to_peak(period=1)
        self.assertIn("its resident pages at the end were not recorded: "
                      "`sampleprof run --rss` does it; it has: peak",
                      self.said("--metric", "resident"))
        found = self.functions("--view", "peak")
        # When it was looked at last is not known.
        ledger = self.stored("--when", "peak")
        alive = next(r for r in ledger["rows"] if r["name"] == "heap_alive")
        self.check(sum(found.values()), alive["bytes"])


if __name__ == "__main__":
    harness.main()
