# SPDX-License-Identifier: MIT
"""Fleets of processes with a known truth, recorded by the agent and read
through a database: 95 % intervals of the whole, a service, a process, the live
bytes of a moment and a quarter of the processes cover.  False alarm: 5e-6; 6 s.

Claim: of the rows that are shown, 95 % intervals contain the truth in 95 of
100.  A seed is a fleet of six processes of two services, all recorded, and one
of 16 processes, a quarter of them recorded.  Every process takes samples of its
own, and waits until the test has looked at the clock.

Statistic: for each of the five questions, the number of rows that hold: six
functions of each seed, but only one if processes were drawn, because they are
drawn for all functions together.  Under the claim it is binomial(n, 0.95) at
worst.

alpha: a question fails at a number whose probability is below 1e-6: in the
short form fewer than 57 of 72 rows, or than 6 of 12.  Power: intervals that
cover 70 % of the rows are caught in 94 of 100 runs, and so are limits that only
scale those of the recorded processes, which cover 25 %.  Long form:
SAMPLEPROF_TEST_SEEDS=400, some 4 minutes, catches 92 % in 91 of 100 runs, and
80 % where processes were drawn.

Negative control: intervals of half the width must fail.
"""

import json
import math
import os
import subprocess
import sys
import time

import harness

SEEDS = int(os.environ.get("SAMPLEPROF_TEST_SEEDS", "12"))
SITES = 6
ALPHA = 1e-6
NARROW = 0.5
SERVICES = ("cart", "search")
PER_SERVICE = 3
DRAWN = 16
PERIOD = "16K"


def least(n, p=0.95):
    """The smallest number of n that is not rarer than ALPHA."""
    total = 0
    for k in range(n + 1):
        total += math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) -
                          math.lgamma(n - k + 1) + k * math.log(p) +
                          (n - k) * math.log(1 - p))
        if total > ALPHA:
            return k
    return n


def truth_of(outputs, what):
    sums = [0] * SITES
    for text in outputs:
        for line in text.splitlines():
            name, value = line.split()
            if name.startswith(what):
                sums[int(name[-1])] += int(value)
    return sums


@harness.nightly
class Coverage(harness.Case):

    def setUp(self):
        super().setUp()
        self.held, self.control = {}, []
        self.fleet("init")

    def fleet(self, *argv, code=0):
        return self.sampleprof("fleet", *argv, code=code).stdout

    def begin(self, number, labels, fraction="100%", stdin=None):
        text = ",".join(f"{k}={v}" for k, v in labels.items())
        env = self.environment(period=PERIOD)
        prefix = "q" if fraction != "100%" else "w"
        env |= {"SAMPLEPROF_LABELS": text,
                "SAMPLEPROF_SEED": str(number + 1),
                "SAMPLEPROF_FRACTION": fraction,
                "SAMPLEPROF_OUT": os.path.join(self.out,
                                               f"{prefix}.%p.sprof")}
        return subprocess.Popen(  # pylint: disable=R1732
            [harness.target("program_fleet_sites"), str(number)], env=env,
            stdin=stdin, stdout=subprocess.PIPE, text=True)

    def ask(self, view, truth, sites, name, *argv):
        """Do the rows of a view hold the truth?  What has no sample has no
        row."""
        said = json.loads(self.fleet(view, "--json", *argv))
        rows = {f["name"]: f["flat_bytes"] for f in said["functions"]
                if f["name"].startswith("site_") and f["samples"]}
        for site in sites:
            row = rows.get(f"site_{site}")
            if row:
                self.held.setdefault(name, []).append(
                    row["lo"] <= truth[site] <= row["hi"])
                self.control.append(
                    NARROW * (row["lo"] - row["value"]) <=
                    truth[site] - row["value"] <=
                    NARROW * (row["hi"] - row["value"]))

    def whole(self, seed):
        """A fleet that waits until it was asked for the time."""
        processes = []
        for i in range(len(SERVICES) * PER_SERVICE):
            labels = {"seed": seed, "service": SERVICES[i // PER_SERVICE],
                      "process": i}
            processes.append(self.begin(1000 * seed + i, labels,
                                        stdin=subprocess.PIPE))
        said = []
        for process in processes:
            said.append("".join(process.stdout.readline()
                                for _ in range(2 * SITES)))
        time.sleep(0.001)
        now_ns = time.time_ns()
        time.sleep(0.001)
        for process in processes:
            process.communicate(timeout=harness.TIMEOUT_S)
            self.assertEqual(process.returncode, 0)
        return said, now_ns

    def quarter(self, seed):
        labels = {"seed": f"{seed}q"}
        processes = [self.begin(1000 * seed + 100 + i, labels, "25%",
                                subprocess.DEVNULL) for i in range(DRAWN)]
        return [process.communicate(timeout=harness.TIMEOUT_S)[0]
                for process in processes]

    def run_seed(self, seed):
        every = range(SITES)
        said, now_ns = self.whole(seed)
        drawn = self.quarter(seed)
        files = [os.path.join(self.out, f) for f in os.listdir(self.out)]
        self.fleet("add", *files)
        for file in files:
            os.unlink(file)
        label = f"--label=seed={seed}"
        first = json.loads(self.fleet("report", "--json", label))
        at_ns = now_ns - first["start_unix_ns"]
        alloc = truth_of(said, "allocated")
        self.ask("report", alloc, every, "whole fleet", label)
        self.ask("report", truth_of(said[:PER_SERVICE], "allocated"), every,
                 "one service", label, f"--label=service={SERVICES[0]}")
        self.ask("report", truth_of(said[:1], "allocated"), every,
                 "one process", label, "--label=process=0")
        self.ask("live", truth_of(said, "kept"), every, "alive at a moment",
                 label, f"--at={at_ns}ns")
        quarter = f"--label=seed={seed}q"
        if any(os.path.basename(f).startswith("q") for f in files):
            self.ask("report", truth_of(drawn, "allocated"), [seed % SITES],
                     "a quarter of the processes", quarter)

    def test_coverage(self):
        for seed in range(SEEDS):
            self.run_seed(seed)
        for name, held in sorted(self.held.items()):
            print(f"| {name} | {len(held)} | {100 * sum(held) / len(held):.1f} |",
                  file=sys.stderr)
        self.assertLess(sum(self.control), least(len(self.control)))
        self.assertEqual(len(self.held), 5)
        for name, held in self.held.items():
            self.assertGreaterEqual(sum(held), least(len(held)), name)
