# SPDX-License-Identifier: MIT
"""300,000 call stacks (150,000 in the short list) in a file of 2 MiB, as with a JIT or an interpreter:
memory and file stay bounded, live and later samples are complete.  If there are
more live samples than a file can hold, the period grows, and nothing is lost.
"""

import json

import harness

STACKS = harness.rounds(150000, 300000)
KEPT, LATE = 100, 50


@harness.nightly_too
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
        return harness.with_frames(json.loads(harness.report(
            "--view", "live", "--json", self.profile.path)))

    def under(self, stacks, name):
        """Samples of the stacks with a frame of that function."""
        return sum(s["samples"] for s in stacks
                   if any(f["function"] == name for f in s["frames"]))

    def test_endless(self):
        # Memory: the library's is there after a quarter, and little. A table
        # of 1 MiB may come later: whether the stacks of two segments need it is
        # a matter of when segments end. Without bounds it would be 9 MiB more,
        # or 4.5 of half of the stacks.
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


class Crowded(harness.Case):
    """300,000 objects in a file of 2 MiB, which has room for 100,000."""

    OBJECTS, BYTES = 300000, 48

    def record(self, *arguments):
        result = self.execute(harness.target("program_crowded"), self.OBJECTS,
                              *arguments, period=16, max_file="2M", seed=1)
        profile = result.profile().require_samples(1000)
        self.assertEqual(profile.lost(), {})
        self.assertEqual(profile.exact[1] // 1000, self.OBJECTS // 1000)
        # The rest of the samples was not taken.
        self.assertLess(profile.samples, self.OBJECTS // 2)
        self.assertGreater(profile.json["period_bytes"], 16)
        return profile

    def report(self, profile, *options):
        return harness.report(*options, profile.path)

    def test_all_alive(self):
        # When the period grows is a matter of time, which the records have, so
        # that the seed does not decide it.
        live = json.loads(self.report(self.record(), "--view", "live",
                                      "--json"))["estimate"]
        for name, truth in (("live_bytes", self.OBJECTS * self.BYTES),
                            ("live_objects", self.OBJECTS)):
            self.assertIn(truth, harness.widened(live[name]), name)

    def test_all_freed(self):
        # Frees are recorded, though no allocation comes between them.
        profile = self.record("free")
        text = self.report(profile)
        self.assertIn("SAMPLEPROF_MAX_FILE", text)
        self.assertRegex(" ".join(text.split()),
                         r"live samples took a sixth of the file \(limit 2 "
                         r"MiB\) at .* at most \d+ [KM]?i?B instead of 16 B")
        live = json.loads(self.report(profile, "--view", "live", "--json"))
        self.assertEqual(live["estimate"]["live_objects"]["value"], 0)

    def test_dropped_and_discarded(self):
        """Samples that are missing may be of objects that live."""
        profile = self.execute(harness.target("program_crowded"), 100000,
                               period=1, max_file="1M").profile()
        live = profile.json["estimate"]["live_bytes"]
        if profile.json["whole"]["lost_samples"]:
            self.assertGreaterEqual(live["hi"], 100000 * self.BYTES)
        else:
            self.assertIn(100000 * self.BYTES, harness.widened(live))
