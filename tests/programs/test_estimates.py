# SPDX-License-Identifier: MIT
"""Estimates at the default period, over fixed seeds: intervals that cover, no
bias, no surplus of samples in short threads.

Claims: (1) a 95 % interval misses the truth with probability 0.05 at most, for
the total and for each function; (2) the estimate is unbiased; (3) threads that
allocate little are sampled as rarely as they should be.

Bounds are set so that a right implementation with new seeds fails with the
stated probability; with these seeds the outcome is always the same.
"""

import math

import harness

PERIOD = 512 << 10
RUNS = harness.rounds(24, 40)
ROUNDS = 6

# What targets/known.c allocates per round: function, objects, bytes of each.
KNOWN = {"small": (65536, 48), "medium": (1024, 5000), "large": (16, 400000)}

FALSE_ALARM = 1e-7


def binomial_tail(n, p, k):
    """P(X >= k) for X ~ Bin(n, p)."""
    term = (1 - p) ** n
    below = 0.0
    for i in range(k):
        below += term
        term *= (n - i) / (i + 1) * p / (1 - p)
    # Summed from k on: 1 - below would round to nothing.
    tail = 0.0
    for i in range(k, n + 1):
        tail += term
        if i < n:
            term *= (n - i) / (i + 1) * p / (1 - p)
    return tail


def most_misses():
    """Smallest count that a right implementation exceeds with a probability
    of FALSE_ALARM at most, all four intervals together."""
    k = 0
    while binomial_tail(RUNS, 0.05, k + 1) > FALSE_ALARM / 4:
        k += 1
    return k


def poisson_limits(mean):
    """(least, most) with less than FALSE_ALARM / 2 beyond either."""
    terms = [math.exp(-mean + n * math.log(mean) - math.lgamma(n + 1))
             for n in range(int(mean * 4 + 60))]
    least = next(n for n in range(len(terms))
                 if sum(terms[:n + 1]) > FALSE_ALARM / 2)
    most = next(n for n in reversed(range(len(terms)))
                if sum(terms[n:]) > FALSE_ALARM / 2)
    return least, most


class Estimates(harness.Case):

    @harness.nightly_too
    def test_intervals_and_bias(self):
        truth = {name: ROUNDS * count * size
                 for name, (count, size) in KNOWN.items()}
        misses = dict.fromkeys([*KNOWN, "total"], 0)
        sums = dict.fromkeys(KNOWN, 0.0)
        for seed in range(1, RUNS + 1):
            profile = self.execute(harness.target("program_known"), "main", ROUNDS,
                                   seed=seed).profile().require_samples(50)
            self.assertEqual(profile.json["period_bytes"], PERIOD)
            self.assertGreaterEqual(profile.exact[0], sum(truth.values()))
            # Besides the known ones only what starting up takes.
            self.assertLess(profile.exact[0], sum(truth.values()) * 1.01)
            figure = profile.json["estimate"]["alloc_bytes"]
            misses["total"] += not (figure["lo"] <= profile.exact[0]
                                    <= figure["hi"])
            for name, known in truth.items():
                figure = profile.function(name)["cum_bytes"]
                misses[name] += not figure["lo"] <= known <= figure["hi"]
                sums[name] += figure["value"]

        for name, missed in misses.items():
            self.assertLessEqual(missed, most_misses(), f"{name}: {misses}")

        # An object of z bytes is sampled with probability p = 1-(1-1/T)^z, and
        # then stands for z/p bytes: variance z^2 (1-p)/p each, all independent.
        # 5.7 sigma: 4e-8 for the three functions.  Counting T bytes per sample
        # instead is 30 % off for `large`, 20 sigma.
        for name, (count, size) in KNOWN.items():
            p = -math.expm1(size * math.log1p(-1 / PERIOD))
            sigma = math.sqrt(RUNS * ROUNDS * count * size * size * (1 - p) / p)
            self.assertLess(abs(sums[name] - RUNS * truth[name]), 5.7 * sigma,
                            name)

    @harness.nightly_too
    def test_threads_that_allocate_little(self):
        """400 threads of 1 KiB each are 0.78 samples per run.

        A library that always samples the first allocation of a thread takes
        400 samples per run; one that gives every thread a whole
        period before its first sample takes none.  Both are far outside the
        bounds, which a right one leaves with probability 1e-7.
        """
        threads, nbytes = 400, 16 * 64
        p = -math.expm1(nbytes * math.log1p(-1 / PERIOD))
        least, most = poisson_limits(RUNS * threads * p)
        self.assertGreater(least, 0)
        self.assertLess(most, RUNS * threads / 100)
        samples = 0
        for seed in range(1, RUNS + 1):
            profile = self.execute(harness.target("program_known"), "threads",
                                   threads, seed=seed).profile()
            self.assertEqual(profile.json["threads"], threads + 1)
            self.assertGreater(profile.exact[0], threads * nbytes)
            samples += profile.function("short_thread")["cum_samples"]
        self.assertGreaterEqual(samples, least)
        self.assertLessEqual(samples, most)

    def test_seed_repeats_a_run(self):
        """The same seed takes the same samples, another one does not; 0 takes
        a new one each time."""
        def sampled(seed):
            profile = self.execute(harness.target("program_known"), "main", 2,
                                   seed=seed).profile().require_samples(10)
            return [(s["samples"], s["flat_bytes"]["value"],
                     [f["function"] for f in s["frames"]])
                    for s in profile.stacks], profile.json["seed"]
        first = sampled(7)
        self.assertEqual(first, sampled(7))
        self.assertEqual(first[1], "7")
        self.assertNotEqual(first[0], sampled(8)[0])
        self.assertNotEqual(sampled(0)[1], sampled(0)[1])
