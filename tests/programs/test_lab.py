# SPDX-License-Identifier: MIT
"""The lab replays every allocation of a recording.  `advise` equals the formula
if everything is known, and 30 recordings with the period that it proposes have
the error that it states."""

import json
import math
import statistics
import subprocess

import harness

KNOWN = {"small": (65536, 48), "medium": (1024, 5000), "large": (16, 400000)}
BYTES = sum(n * size for n, size in KNOWN.values())

# Of the normal law.
T = 1.959963984540054


def tool(name, *arguments):
    return subprocess.run([harness.tool(name), *map(str, arguments)],
                          capture_output=True, timeout=harness.TIMEOUT_S, check=False)


def expected_error(n, size, period):
    """Half of a 95 % interval, of n objects of that size (E36)."""
    return T / math.sqrt(n * math.expm1(size / period))


class Lab(harness.Case):

    def record(self, **settings):
        result = self.execute(harness.target("program_sites"), **settings)
        profile = result.profile()
        self.assertGreaterEqual(profile.exact[0], BYTES)
        self.assertGreater(profile.samples, 0)
        return profile

    # ---- the lab ----

    def test_replay(self):
        """All allocations of a recording are in the trace, the site is the
        function, and what is unbiased is found to be."""
        profile = self.record(period=1)
        done = tool("sampleprof-lab", "--json", "--runs", 100, "--samples",
                    200, "--site", "medium", profile.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        trace, = json.loads(done.stdout)
        self.assertEqual((trace["bytes"], trace["objects"]), profile.exact)
        self.assertEqual(trace["site"], "medium")
        self.assertEqual(trace["site_bytes"], 1024 * 5000)
        figures = {s["name"]: s for s in trace["strategies"]}
        self.assertEqual(len(figures), 12)
        for name in ("sampleprof", "sampleprof-rate", "best",
                     "dotnet-weighted", "heapprofd"):
            with self.subTest(name):
                # Sizes are the same in each recording, and so is the seed;
                # times are not, on which `sampleprof-rate` depends: seven
                # standard errors of 100 runs have a chance of 3e-10.
                for figure in ("bytes", "site_bytes"):
                    figure = figures[name][figure]
                    self.assertLessEqual(abs(figure["bias"]), max(
                        7 * figure["bias_error"], 1e-4))
                self.assertGreater(figures[name]["samples"], 180)
        # Three loops one after another: the throttle misses what is quick.
        self.assertTrue(figures["jfr"]["site_bytes"]["is_biased"])

    def test_largest_site(self):
        profile = self.record(period=1)
        done = tool("sampleprof-lab", "--json", "--runs", 2, "--strategy",
                    "objects", profile.path)
        self.assertEqual(json.loads(done.stdout)[0]["site"], "large")

    def test_needs_everything(self):
        profile = self.record(period="64K")
        done = tool("sampleprof-lab", profile.path)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"SAMPLEPROF_PERIOD=1", done.stderr)
        self.assertEqual(done.stdout, b"")

    # ---- the advice ----

    def advise(self, profile, *options):
        done = tool("sampleprof-report", "advise", "--json", *options,
                    profile.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_advice_from_everything(self):
        """With all allocations known, the advice is the formula."""
        profile = self.record(period=1)
        advice = self.advise(profile, "--error", "7%", "--top", 3)
        self.assertEqual([f["function"] for f in advice["functions"]],
                         ["large", "medium", "small"])
        for f in advice["functions"]:
            period = f["period_bytes"]["value"]
            self.assertAlmostEqual(
                expected_error(*KNOWN[f["function"]], period), 0.07, places=4)
        least = min(f["period_bytes"]["value"] for f in advice["functions"])
        proposed = advice["for_functions"]["period_bytes"]
        self.assertLessEqual(proposed, least)
        self.assertGreater(2 * proposed, least)

    def test_advice_holds(self):
        """What a sample advises for 20 %, 30 recordings with that period
        keep: their deviation from the truth is 20 % / t, give or take what 30
        values allow (below 0.6 or above 1.5 times: 1e-3, but seeds are
        fixed)."""
        profile = self.record(period="16K", seed=1)
        advice = self.advise(profile, "--error", "20%", "--top", 3)
        site, = (f for f in advice["functions"] if f["function"] == "medium")
        self.assertTrue(site["can_tell"])
        period = int(site["period_bytes"]["value"])
        self.assertLess(abs(expected_error(1024, 5000, period) / 0.2 - 1),
                        0.15)
        errors = []
        for seed in range(1, 31):
            run = self.execute(harness.target("program_sites"),
                               period=period, seed=seed)
            done = tool("sampleprof-report", "--json", "--estimator", "p3",
                        *run.paths)
            found = [f for f in json.loads(done.stdout)["functions"]
                     if f["name"] == "medium"]
            value = found[0]["flat_bytes"]["value"] if found else 0
            errors.append(value / (1024 * 5000) - 1)
        deviation = math.sqrt(statistics.fmean(e * e for e in errors))
        self.assertGreater(deviation, 0.6 * 0.2 / T)
        self.assertLess(deviation, 1.5 * 0.2 / T)
