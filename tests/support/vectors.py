#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Writes the numbers that the estimators must give, as JSON on standard output.

    tests/support/vectors.py >FILE

They come from the equations of docs/statistics.md, with none of the project's
code: exponentials and factorials in decimal arithmetic, distribution functions
by their power series, quantiles by bisection.
"""
import functools
import json
import math
import statistics
import sys
from decimal import Decimal, getcontext
from fractions import Fraction

getcontext().prec = 50
MIB = 1 << 20
DOTNET_R = 102400

# The table that .NET publishes for its period: samples, and the largest numbers
# of bytes whose probability is below 0.025 and 0.975.
DOTNET_TABLE = [
    (1, 2591, 377738), (2, 24800, 570531), (3, 63349, 739802),
    (4, 111599, 897761), (5, 166241, 1048730), (6, 225469, 1194827),
    (7, 288185, 1337279), (8, 353666, 1476870), (9, 421407, 1614137),
    (10, 491039, 1749469), (20, 1250954, 3038270), (30, 2072639, 4264804),
    (40, 2926207, 5459335), (50, 3800118, 6633475), (100, 8331581, 12342053),
    (200, 17739679, 23413825), (300, 27341465, 34291862),
    (400, 37043463, 45069676), (500, 46809487, 55783459),
    (1000, 96149867, 108842093), (2000, 195919830, 213870137),
    (3000, 296301551, 318286418), (4000, 396999923, 422386047),
    (5000, 497900649, 526283322), (10000, 1004017229, 1044156743),
]


# ---- distribution functions ----

@functools.lru_cache(maxsize=None)
def bernoulli(n):
    """The Bernoulli number, a fraction."""
    if n == 0:
        return Fraction(1)
    return -sum(math.comb(n + 1, k) * bernoulli(k) for k in range(n)) / (n + 1)


@functools.lru_cache(maxsize=None)
def log_gamma(a):
    """Stirling's series, beyond 40, where 20 terms give 40 digits."""
    a, below = Decimal(a), Decimal(1)
    while a < 40:
        below *= a
        a += 1
    pi = Decimal("3.14159265358979323846264338327950288419716939937510")
    value = (a - Decimal("0.5")) * a.ln() - a + (2 * pi).ln() / 2
    for k in range(1, 21):
        b = bernoulli(2 * k)
        value += (Decimal(b.numerator) / b.denominator
                  / (2 * k * (2 * k - 1)) / a ** (2 * k - 1))
    return value - below.ln()


def series(ratio):
    """1 + ratio(0) + ratio(0) ratio(1) + ..."""
    total = term = 1.0
    n = 0
    while term > total * 1e-18:
        term *= ratio(n)
        total += term
        n += 1
    return total


def gamma_lower(a, x):
    """P(a, x)."""
    front = Decimal(a) * Decimal(x).ln() - Decimal(x) - log_gamma(a + 1)
    return float(front.exp()) * series(lambda n: x / (a + 1 + n))


def beta_lower(a, b, x):
    """I_x(a, b)."""
    front = (Decimal(a) * Decimal(x).ln()
             + Decimal(b) * (1 - Decimal(x)).ln()
             + log_gamma(a + b) - log_gamma(a + 1) - log_gamma(b))
    return float(front.exp()) * series(lambda n: (a + b + n) / (a + 1 + n) * x)


def bisect(lo, hi, is_below):
    """Where it ends to be below, to all digits of a double."""
    while True:
        mid = (lo + hi) / 2
        if mid in (lo, hi):
            return mid
        if is_below(mid):
            lo = mid
        else:
            hi = mid


@functools.lru_cache(maxsize=None)
def gamma_quantile(a, p):
    return math.exp(bisect(
        -120, math.log(a + 10 * math.sqrt(a) + 20),
        lambda u: gamma_lower(a, math.exp(u)) < p))


@functools.lru_cache(maxsize=None)
def beta_quantile(a, b, p):
    return bisect(0, 1, lambda x: beta_lower(a, b, x) < p)


def normal_quantile(p):
    return statistics.NormalDist().inv_cdf(p)


def failures_below(s, period, alpha):
    """(E5) The largest number of failures before hit s of a probability below
    alpha, for hits of 1 / period."""
    lo, hi = -1, int(period * (s + 10 * math.sqrt(s) + 10))
    while hi - lo > 1:
        mid = (lo + hi) // 2
        if failures_cdf(s, period, mid) < alpha:
            lo = mid
        else:
            hi = mid
    return lo


def failures_cdf(s, period, k):
    """At most k failures: hit s is among the first s + k bytes."""
    return beta_lower(s, k + 1, 1 / period)


def p3(k1, k2, k3, p):
    """(E7)"""
    if k2 == 0:
        return k1
    skewness = k3 / k2 ** 1.5
    if abs(skewness) < 0.01:
        t, h = normal_quantile(p), skewness / 6
        return k1 + math.sqrt(k2) * (t + (t * t - 1) * h
                                     + (t ** 3 - 6 * t) * h * h / 3
                                     - (t * t - 1) * h ** 3)
    if skewness < 0:
        return 2 * k1 - p3(k1, k2, -k3, 1 - p)
    return (k1 - 2 * k2 * k2 / k3
            + k3 / k2 / 2 * gamma_quantile(4 / skewness ** 2, p))


# ---- estimates ----

def missing(z, r, law="exp"):
    """(E2) The chance that nothing is sampled of z bytes; for .NET (E15) each
    byte is a trial."""
    if law == "exp":
        return (-Decimal(z) / Decimal(r)).exp()
    return (1 - 1 / Decimal(r)) ** z


def inclusion(z, r):
    return 1 - missing(z, r)


def terms(z, r, law="exp"):
    """(E3, E4) What one sample adds."""
    q = missing(z, r, law)
    pi = 1 - q
    w, n = z / pi, 1 / pi
    return {
        "pi": pi, "w": w, "k2": w * w * q, "k3": w ** 3 * q * (1 + q),
        "kz": w * w * q * z, "count": n, "c2": n * n * q,
        "c3": n ** 3 * q * (1 + q),
    }


class Sums:
    """Those of all samples."""

    def __init__(self, sizes, r):
        each = [terms(z, r) for z in sizes]
        self.r, self.n, self.bytes = float(r), len(sizes), float(sum(sizes))
        for name in ("w", "k2", "k3", "kz", "count", "c2", "c3"):
            setattr(self, name, float(sum(e[name] for e in each)))
        self.unseen = float(sum(e["w"] - z for e, z in zip(each, sizes)))
        self.missed = float(sum(e["count"] - 1 for e in each))
        self.step = self.kz / self.k2 if self.n else 0.0
        h = self.step / self.r / 2
        # delta of (E8) and (E10)
        self.lattice = 0.0
        if self.n:
            self.lattice = (self.r * (h / math.tanh(h) - 1) * self.k2
                            / (self.k2 + self.r ** 2))


def ending_at_zero(k1, k2, k3):
    """(E42)"""
    return min(k3, 2 * k2 * k2 / k1) if k1 > 0 else k3


def bytes_interval(a, confidence):
    """(E8)"""
    p, r = (1 - confidence) / 2, a.r
    hi = a.bytes + p3(a.unseen + r, a.k2 + r * r, a.k3 + 2 * r ** 3,
                      1 - p) + a.lattice
    least = p3(a.unseen, a.k2, ending_at_zero(a.unseen, a.k2, a.k3), p)
    return around(a.w, a.bytes + max(0, least - a.step / 2), hi)


def objects_interval(a, smallest, confidence):
    """(E11)"""
    p = (1 - confidence) / 2
    q = float(missing(smallest, a.r))
    n = 1 / float(inclusion(smallest, a.r))
    hi = a.n + 0.5 + p3(a.missed + q * n, a.c2 + q * n * n,
                        a.c3 + q * (1 + q) * n ** 3, 1 - p)
    least = p3(a.missed, a.c2, ending_at_zero(a.missed, a.c2, a.c3), p)
    return around(a.count, a.n + max(0, least - 0.5), hi)


def around(value, lo, hi):
    return [min(lo, value), max(hi, value)]


def with_total(a, b, total):
    """(E10) with (E40, E42), the limits of A at 95 %."""
    r = a.r
    m = total - a.bytes - b.bytes

    def moments(ka, kb, k3a, k3b, ma, mb):
        kappa = ka / (ka + kb)
        return (kappa, ma + kappa * (m - ma - mb), ka * kb / (ka + kb),
                (1 - kappa) ** 3 * k3a - kappa ** 3 * k3b)

    # the phantom in A
    ma = a.unseen + r
    kappa, k1, k2, k3 = moments(a.k2 + r * r, b.k2, a.k3 + 2 * r ** 3, b.k3,
                                ma, b.unseen)
    share = (a.unseen + b.unseen) / (a.w + b.w)
    if k3 < 0:
        t = max(0, (m - k1) / b.unseen)
        k2 *= 1 - share + share * t ** 2
        k3 *= 1 - share + share * t ** 3
    else:
        k2, k3 = (k * max(1, k1 / ma - 2) for k in (k2, k3))
    if m > k1:
        k3 = max(k3, -2 * k2 * k2 / (m - k1))
    hi = (p3(k1, k2, k3, 0.975) + (1 - kappa) * a.lattice
          + kappa * b.step / 2)
    kappa, k1, k2, k3 = moments(a.k2, b.k2 + r * r, a.k3, b.k3 + 2 * r ** 3,
                                a.unseen, b.unseen + r)
    lo = 0
    if a.n:
        t = max(0, k1 / a.unseen)
        k2 *= 1 - share + share * t ** 2
        k3 = ending_at_zero(k1, k2, k3 * (1 - share + share * t ** 3))
        lo = (p3(k1, k2, k3, 0.025) - (1 - kappa) * a.step / 2
              - kappa * b.lattice)
    kappa = a.k2 / (a.k2 + b.k2)
    value = a.unseen + kappa * (m - a.unseen - b.unseen)
    return [a.bytes + min(max(x, 0), m) for x in around(value, lo, hi)]


def share_interval(a, b):
    """(E12) at 95 %."""
    def quantile(x, kx, y, ky, p):
        f = x / (x + y)
        n = f * (1 - f) / (((1 - f) ** 2 * kx + f * f * ky) / (x + y) ** 2)
        return beta_quantile(f * n, (1 - f) * n, p)

    r, lo = a.r, 0
    if a.n:
        lo = quantile(a.w, a.k2, b.w + r + b.step / 2, b.k2 + r * r, 0.025)
    hi = quantile(a.w + r + a.step / 2, a.k2 + r * r, b.w, b.k2, 0.975)
    return around(a.w / (a.w + b.w), lo, hi)


def growth_p(before, after, z, r, rho):
    """(E13) of a site of so many objects of z bytes, which has grown by more
    than rho."""
    one = {name: float(value) for name, value in terms(z, r).items()}
    hb = before * one["w"] + r + (z / 2 if before else 0)
    ha = after * one["w"]
    f = ha / (ha + hb)
    n = f * (1 - f) * (ha + hb) ** 2 / (
        (1 - f) ** 2 * after * one["k2"] + f * f * (before * one["k2"] + r * r))
    return beta_lower(f * n, (1 - f) * n, rho / (1 + rho))


# ---- the vectors ----

def table():
    for s, lo, hi in DOTNET_TABLE:
        for alpha, k in ((0.025, lo), (0.975, hi)):
            if failures_below(s, DOTNET_R, alpha) != k:
                sys.exit(f"the table of {s} samples at {alpha} is not {k}")
        yield {"s": s, "lo": lo, "hi": hi}


def worked_example():
    """Eight samples of .NET, 10,908 bytes from the hit bytes on."""
    lo, hi = (failures_below(8, DOTNET_R, p) for p in (0.025, 0.975))
    return {
        "s": 8, "u": 10908, "interval": [lo + 10908, hi + 10908],
        "estimate_sq_over_p_plus_u": 8 * (DOTNET_R - 1) + 10908,
        "cdf_lo": failures_cdf(8, DOTNET_R, lo),
        "cdf_hi": failures_cdf(8, DOTNET_R, hi),
    }


R = 524288
SAMPLES = {
    "none": [],
    "one16": [16],
    "one4R": [4 * R],
    "8x48": 8 * [48],
    "100x1000": 100 * [1000],
    "mix": [16] * 3 + [4096] * 2 + [65536] * 2 + [R] * 2 + [4 * R, 16 * R],
    "three8MB": 3 * [16 * R],
    "20xR/2": 20 * [R // 2],
    "big_only": [100 * R],
}
REST = "40x16,20x4096,3x1048576,2x8388608"
REST_SIZES = [16] * 40 + [4096] * 20 + [MIB] * 3 + [8 * MIB] * 2


def intervals():
    for name, sizes in SAMPLES.items():
        a = Sums(sizes, R)
        yield {
            "name": name, "R": R, "conv": "exp", "samples": sizes,
            "acc": {"HT": a.w, "k2z": a.kz},
            "bytes_ci90": bytes_interval(a, 0.9),
            "bytes_ci95": bytes_interval(a, 0.95),
            "bytes_ci99": bytes_interval(a, 0.99),
            "count_ci95_zmin16": objects_interval(a, 16, 0.95),
        }


def known_totals():
    b = Sums(REST_SIZES, R)
    for name, sizes in SAMPLES.items():
        a = Sums(sizes, R)
        for part in (0.9, 1, 1.3):
            total = round(a.bytes + b.bytes + part * (a.unseen + b.unseen))
            yield {
                "A": name, "B": REST, "R": R, "T": total,
                "ci95": with_total(a, b, total),
                "share_ci95_total_unknown": share_interval(a, b),
            }


def curve(r, z):
    """What heapprofd's documents draw: the error of the bytes of one object,
    as the number of hits in it is by a Poisson law, and its chance of any."""
    x, pi = Decimal(z) / r, inclusion(z, r)
    hits = math.exp(-x)
    missed, error = hits, 0.0
    for k in range(1, int(x + 20 * x.sqrt() + 40)):
        hits *= float(x) / k
        error += abs(k / float(x) - 1) * hits
    return {
        "R": r, "z": z, "p_sampled": float(pi),
        "expected_rel_error": missed + error,
        "conditional": error / float(pi),
        "is_left_to_chance": float(x) < math.log(100),
        "rel_sd": math.sqrt(missing(z, r) / pi),
    }


def bytes_to_hit(k, r):
    """The gap that 53 random bits draw."""
    return int(-r * ((2 * Decimal(k) + 1) / 2 ** 54).ln())


def power(growth, alpha):
    """Objects before, so that growth is found with a power of 0.95."""
    z = normal_quantile(1 - alpha) + normal_quantile(0.95)
    n = z * z * (1 + 1 / (1 + growth)) / math.log(1 + growth) ** 2
    return {"growth": growth, "alpha_one_sided": alpha, "power": 0.95, "n": n}


def sum_then_unbias():
    """The sum of the sizes over the chance of their mean, which is wrong."""
    sizes, r = [8] * 8 + [8000000], 1000000
    total = sum(sizes)
    return {
        "R": r, "samples": sizes, "unbias_then_sum": Sums(sizes, r).w,
        "sum_then_unbias_wrong":
            float(total / inclusion(Decimal(total) / len(sizes), r)),
    }


def vectors():
    return {
        "nb_table": list(table()),
        "nb_worked_example": worked_example(),
        "nb_other": [
            {"inv_p": r, "s": s, "alpha": p, "k": failures_below(s, r, p)}
            for r in (R, 65536, 4096, 512) for s in (1, 2, 5, 20, 100, 1000)
            for p in (0.025, 0.975, 0.005, 0.995)],
        "ht": [
            {"z": z, "R": r, "conv": law,
             **{name: float(value)
                for name, value in terms(z, r, law).items()}}
            for r in (4096, DOTNET_R, R, 1 << 30, 1 << 40)
            for z in (1, 8, 16, 24, 48, 1000, 4096, DOTNET_R, R, 4 * R, 8000000)
            for law in ("exp", "bernoulli")],
        "sum_then_unbias_trap": sum_then_unbias(),
        "gamma_quantile": [
            {"a": a, "p": p, "x": gamma_quantile(a, p)}
            for a in (0.05, 0.3, 0.5, 1, 1.5, 2, 3.7, 10, 100, 1234.5, 30000)
            for p in (0.005, 0.025, 0.5, 0.975, 0.995)],
        "beta_quantile": [
            {"a": a, "b": b, "p": p, "x": beta_quantile(a, b, p)}
            for a, b in ((0.5, 0.5), (1, 1), (1, 9), (3, 8), (10.5, 200.25),
                         (1000, 2000))
            for p in (0.025, 0.5, 0.975)],
        "p3_quantile": [
            {"k1": k1, "k2": k2, "k3": k3, "p": p, "x": p3(k1, k2, k3, p)}
            for k1, k2, k3 in ((1, 1, 2), (0, 1, 0), (0, 1, 0.005),
                               (0, 1, -0.5), (10, 4, 3), (5, 2, -1), (2, 0, 0))
            for p in (0.025, 0.975)],
        "bytes_ci": list(intervals()),
        "bytes_ci_known_total": list(known_totals()),
        "growth_p": [
            {"before": before, "after": after, "z": z, "R": R, "rho0": rho,
             "p_greater": growth_p(before, after, z, R, rho)}
            for before, after, z in (
                (0, 5, 48), (5, 5, 48), (10, 20, 48), (100, 130, 64),
                (1000, 1100, 64), (30, 45, R // 2), (3, 9, 4 * R))
            for rho in (1, 1.05)],
        "heapprofd": [
            {"lam": x, "p_sampled": -math.expm1(-x)}
            for x in (0.01, 0.1, 0.5, 0.999, 1, 1.5, 2, 3, 1.75, 4.6, 5, 10, 50,
                      100)],
        "heapprofd_claims": {
            "p_512KiB_1p5MiB": float(inclusion(3 * MIB // 2, MIB // 2)),
            "p_2048KiB_3p5MiB": float(inclusion(7 * MIB // 2, 2 * MIB)),
            "cut_99pct_in_R": math.log(100),
        },
        "heapprofd_curves": [
            curve(1 << i, z) for i in range(15, 22)
            for z in range(65536, 8 * MIB + 1, 65536)],
        "gap_from_u53": [
            {"k": k, "R": r, "gap": bytes_to_hit(k, r)}
            for r in (256, DOTNET_R, R, 1 << 30, 1 << 40)
            for k in (0, 1, 1073754169, 2251799813685255, 4503599627370496,
                      6755399441155735, 9007199254740991)],
        "thinning": [
            {"z": z, "R_old": old, "R_new": new,
             "keep": float(inclusion(z, new) / inclusion(z, old))}
            for z in (16, 4096, R, 16 * R)
            for old, new in ((65536, 131072), (R, 2 * R), (4096, 65536))],
        "power": [
            power(growth, alpha) for growth in (0.05, 0.1, 0.2, 0.5)
            for alpha in (0.05, 0.025, 0.005, 0.0005)],
    }


if __name__ == "__main__":
    print(json.dumps(vectors()))
