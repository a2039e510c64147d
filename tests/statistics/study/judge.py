# SPDX-License-Identifier: MIT
"""Many recordings against the truth: bias, coverage and width of each site.

Two tests are made of every site and of the process, by each method:

- bias: |z| <= 5, z the mean error in standard errors.  Those of P3 follow from
  the truth, the sum of z^2 q / pi over the objects; those of P3T are taken from
  the recordings.  False alarm: 6e-7, where the recordings expect EXPECTED
  samples or more; below that z is not normal and the test is not made.
- coverage: not fewer intervals with the truth in them than a true coverage of
  the nominal 95 % leaves with a probability of FALSE_ALARM."""

import dataclasses
import math
import statistics

NOMINAL = 0.95
FALSE_ALARM = 1e-6
Z_MAX = 5
EXPECTED = 100


@dataclasses.dataclass
class Truth:
    """Of a site: bytes, as smallest and largest of several runs, and variance
    of the estimate by period."""
    low: float
    high: float
    variances: dict

    @property
    def value(self):
        return (self.low + self.high) / 2

    def error(self, estimate):
        """How far it is off, counted from the nearer end."""
        return estimate - min(max(estimate, self.low), self.high)


@dataclasses.dataclass
class Verdict:
    """One site at one period by one method; `z` is None where it is not
    tested; widths are relative to the truth."""
    expected_samples: float
    bias: float
    z: float
    covered: int
    runs: int
    width: float

    @property
    def coverage(self):
        return self.covered / self.runs

    def faults(self):
        if self.z is not None and not abs(self.z) <= Z_MAX:
            yield f"bias of {self.bias:+.2%}, z = {self.z:+.1f}"
        if self.runs - self.covered > most_misses(self.runs):
            yield f"{self.covered} of {self.runs} intervals cover"


def most_misses(runs):
    """The smallest k with P(Bin(runs, 0.05) > k) <= FALSE_ALARM."""
    p = 1 - NOMINAL
    tail, k = 0.0, runs
    while k >= 0:
        tail += math.comb(runs, k) * p ** k * (1 - p) ** (runs - k)
        if tail > FALSE_ALARM:
            return k
        k -= 1
    return 0


def z_value(error, variance, size):
    # Of a site that is alone in its classes, P3T errs by rounding only.
    if abs(error) <= 1e-9 * size:
        return 0.0
    if variance == 0:
        return math.copysign(math.inf, error)
    return error / math.sqrt(variance)


def judge(truth, intervals, period, variance=None):
    """The verdict on one site.  `variance` is that of one estimate; without
    it, it is taken from the intervals."""
    runs = len(intervals)
    values = [i.value for i in intervals]
    error = truth.error(statistics.fmean(values))
    if variance is None:
        variance = statistics.variance(values)
    expected = truth.value / period
    z = None
    if expected * runs >= EXPECTED:
        z = z_value(error, variance / runs, truth.value)
    return Verdict(
        expected_samples=expected, bias=error / truth.value, z=z,
        covered=sum(i.lo <= truth.high and truth.low <= i.hi
                    for i in intervals),
        runs=runs,
        width=statistics.fmean(i.hi - i.lo for i in intervals) / truth.value)
