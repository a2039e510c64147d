# SPDX-License-Identifier: MIT
"""300,000 call stacks in a file of 2 MiB, as a JIT or an interpreter makes
them: memory and file stay bounded, live and later samples are complete."""

import json
import os
import subprocess

import harness

STACKS = 300000
KEPT, LATE = 100, 50


class Endless(harness.Case):

    def setUp(self):
        super().setUp()
        self.result = self.execute(harness.target("program_endless"), STACKS,
                                   period=1, max_file="2M")
        self.printed = {k: v[0] if k != "all" else v
                        for k, v in self.result.values().items()}
        self.profile = self.result.profile().require_samples(1000)

    def live(self):
        """What is alive at the end."""
        done = subprocess.run(
            [os.environ["SAMPLEPROF_REPORT"], "--view", "live", "--json",
             self.profile.path], capture_output=True, check=True)
        return json.loads(done.stdout)

    def under(self, stacks, name):
        """Samples of the stacks with a frame of that function."""
        return sum(s["samples"] for s in stacks
                   if any(f["function"] == name for f in s["frames"]))

    def test_endless(self):
        # Memory: the library's is there after a quarter, and little. A table
        # of 1 MiB may come later: whether the stacks of two segments need it is
        # a matter of when segments end. Without bounds it would be 9 MiB more.
        self.assertLess(self.printed["late"], self.printed["early"] + 2048)
        self.assertLess(self.printed["late"], 12 << 10)
        # The past was discarded; each sample of the rest has its stack.
        self.assertEqual(self.profile.lost(), {})
        more = self.profile.exact[0] - self.printed["all"][0]
        self.assertTrue(0 <= more < 8192, more)
        self.assertLess(self.profile.samples, STACKS // 4)
        stacks = self.profile.stacks
        self.assertGreater(self.under(stacks, "go_left"), 1000)
        self.assertTrue(all(s["frames"] for s in stacks))
        # New things are known by their names, and orders are followed.
        self.assertEqual(self.printed["changed"], 0)
        self.assertEqual(self.under(stacks, "in_late"), LATE)
        self.assertIn("late", [t["name"] for t in
                               self.profile.json["thread_infos"]])
        # What was allocated first, and lives, has its stack.
        live = self.live()
        self.assertEqual(self.under(live["stacks"], "keep"), KEPT)
