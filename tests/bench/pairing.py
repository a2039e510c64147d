# SPDX-License-Identifier: MIT
"""Statistics of paired runs.  A pair is [base, row], the figures of two runs
that were neighbours in time: dictionaries with seconds `wall` and `cpu`,
`rss` in KiB, `file` in bytes, and what else a work has."""

import math
import statistics


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
