# SPDX-License-Identifier: MIT
"""Statistics of paired runs.  A pair is [base, row], the figures of two runs
that were neighbours in time: dictionaries with seconds `wall` and `cpu`,
`rss` in KiB, `file` in bytes, and what else a work has."""

import math
import random
import statistics

DRAWS = 1000
PAIRS_MIN = 2  # one says nothing of its own spread


def rotated(items, turn):
    """`items`, beginning with another one each turn."""
    start = turn % len(items) if items else 0
    return items[start:] + items[:start]


def run_pair(run, base, row, turn):
    """[figures of base, figures of row], the first to run changing by turn."""
    if turn % 2 == 0:
        first = run(base)
        return [first, run(row)]
    second = run(row)
    return [run(base), second]


def spread(values):
    """Of at least one value."""
    return {"median": statistics.median(values), "min": min(values),
            "max": max(values), "runs": len(values)}


def ratios(pairs, key):
    """Spread of row / base within each pair: what two neighbours suffered
    alike, cancels.  Not the ratio of the medians."""
    return spread([row[key] / base[key] for base, row in pairs])


def differences(pairs, key):
    """Spread of row - base within each pair."""
    return spread([row[key] - base[key] for base, row in pairs])


def of_row(pairs, key):
    return spread([row[key] for _, row in pairs])


def geometric_mean(values):
    """Of at least one value, all above 0."""
    return math.exp(statistics.fmean(math.log(v) for v in values))


def mean_ratio(works, key):
    """Geometric mean over works, lists of pairs, of their median ratios."""
    return geometric_mean(ratios(pairs, key)["median"] for pairs in works)


def resampled(works, key, seed):
    """What mean_ratio() would have been of other pairs of the same works, by
    the bootstrap."""
    rng = random.Random(seed)
    logs = [[math.log(row[key] / base[key]) for base, row in pairs]
            for pairs in works]
    return [math.exp(statistics.fmean(
        statistics.median(rng.choices(log, k=len(log))) for log in logs))
        for _ in range(DRAWS)]


def middle(values):
    """What 95 % of the values are between."""
    values = sorted(values)
    cut = len(values) // 40
    return values[cut], values[-1 - cut]


def interval(works, key):
    """Of mean_ratio(), 95 %; None of too few pairs."""
    if min(map(len, works)) < PAIRS_MIN:
        return None
    return middle(resampled(works, key, 1))


def interval_of_quotient(works, others, key):
    """Of mean_ratio(works) / mean_ratio(others), likewise."""
    if min(map(len, [*works, *others])) < PAIRS_MIN:
        return None
    return middle([a / b for a, b in zip(resampled(works, key, 1),
                                         resampled(others, key, 2))])
