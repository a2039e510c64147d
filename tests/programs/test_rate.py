# SPDX-License-Identifier: MIT
"""A burst, silence, sixteen threads and a quiet part under
`SAMPLEPROF_RATE=200/s`: the bound on the number of samples; eight times, in the
nightly list: intervals, bias.

Claims: (1) the samples of a run are at most the target times its time, the
credit and the logarithm of the period (docs/guide.md), which holds for
certain; (2) a 95 % interval misses the truth with probability 0.05 at most;
(3) the estimates are unbiased.

Sample: 8 runs of three functions.  The gaps of a seed are always the same, but
the moments at which threads meet them are not, so outcomes vary.  False alarm:
1e-7 for (2), 6e-7 for (3).  Power: nearly 1 for samples that all have the
weight of the base period, and for long gaps that are drawn again; 0.9 for
intervals that cover 40 %. tests/statistics finds errors of a few percent.
"""

import json
import math

import harness

BASE = 2048
TARGET = 200
RUNS = 8
FUNCTIONS = ("burst", "storm", "quiet")
CREDIT_S = 1
EFOLD_S = 1
STEP_S = EFOLD_S * math.log(2) / 4


def most_misses(n):
    """Smallest count that is exceeded with a probability of 1e-7 at most."""
    tail = 1.0
    for k in range(n + 1):
        tail -= math.comb(n, k) * 0.05**k * 0.95**(n - k)
        if tail < 1e-7:
            return k
    return n


class Rate(harness.Case):
    def run_once(self, seed):
        result = self.execute(harness.target("program_rates"), period=BASE,
                              rate=f"{TARGET}/s", seed=seed)
        profile = result.profile().require_samples(TARGET)
        self.assertEqual(profile.lost(), {})
        self.assertEqual(profile.settings["setting.rate"], f"{TARGET}/s")
        return result.values(), profile

    def estimates(self, path):
        """Bytes by function from the samples alone: exact totals would make
        up for much that is wrong."""
        found = json.loads(harness.report("--json", "--estimator", "p3", path))
        return {f["name"]: f["cum_bytes"] for f in found["functions"]}

    def check_samples(self, profile):
        """(1)."""
        growth = math.log(profile.json["period_bytes"] / BASE)
        most = TARGET * (profile.json["duration_ns"] * 1e-9 + CREDIT_S +
                         EFOLD_S * growth + 2 * STEP_S)
        self.assertLess(profile.samples, most)

    def check_stretches(self, report):
        """Each longest period so far begins one, and the totals add up."""
        periods = [s["period_bytes"] for s in report["stretches"]]
        self.assertEqual(periods[0], BASE)
        self.assertEqual(periods, sorted(set(periods)))
        self.assertEqual(sum(s["alloc_bytes"] for s in report["stretches"]),
                         report["exact"]["alloc_bytes"])
        self.assertEqual(report["unsampled_bytes"], 0)

    def test_bound(self):
        """However fast the machine is."""
        _, profile = self.run_once(1)
        self.check_samples(profile)
        self.check_stretches(profile.json)

    @harness.nightly
    def test_truth(self):
        misses = 0
        errors = {name: [] for name in FUNCTIONS}
        variances = {name: [] for name in FUNCTIONS}
        for seed in range(1, RUNS + 1):
            truth, profile = self.run_once(seed)
            self.check_samples(profile)
            # There would have been ten times as many.
            self.assertGreater(profile.json["period_bytes"], 7 * BASE)
            self.assertGreater(profile.exact[0] / BASE, 10 * profile.samples)
            self.check_stretches(profile.json)
            estimates = self.estimates(profile.path)
            for name in FUNCTIONS:
                want = truth[name][0]
                got = estimates[name]
                misses += not got["lo"] <= want <= got["hi"]
                errors[name].append(got["value"] / want - 1)
                variances[name].append(
                    ((got["hi"] - got["lo"]) / want / 3.92) ** 2)
        self.assertLessEqual(misses, most_misses(RUNS * len(FUNCTIONS)))
        for name in FUNCTIONS:
            # The intervals are wider than the normal law's, on both sides.
            spread = math.sqrt(sum(variances[name]))
            self.assertLess(abs(sum(errors[name])), 5 * spread, name)

    def test_no_target(self):
        """Off is the default: no period but that which was asked for."""
        result = self.execute(harness.target("program_rates"), period=BASE)
        report = result.profile().require_samples(10000).json
        self.assertEqual(report["settings"]["setting.rate"], "off")
        self.assertEqual(report["stretches"], [])
        self.assertEqual(report["period_bytes"], BASE)
