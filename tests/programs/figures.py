# SPDX-License-Identifier: MIT
"""Figures of --json in the words of the text and of the page: written anew from
docs/guide.md, so that a digit that differs anywhere is seen."""

import math
import re

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
FEW_SAMPLES = 3


def rounded(number, way):
    """To a whole number, without the noise of a sum."""
    if abs(number) < 1e9:
        number = round(number * 1e6) / 1e6
    return {"near": round, "down": math.floor, "up": math.ceil}[way](number)


def split(amount, way, is_fine):
    """(digits, unit): one decimal where it is fine, else three digits."""
    unit = 0
    while amount >= 1024 and unit + 1 < len(UNITS):
        amount /= 1024
        unit += 1
    for decimals in range(2 if unit else 0, -1, -1):
        value = rounded(amount * 10**decimals, way) / 10**decimals
        if value < 10 or decimals == 0 or (
                decimals == 1 and (is_fine or value < 100)):
            break
    if value >= 1024 and unit + 1 < len(UNITS):
        value, unit, decimals = value / 1024, unit + 1, 2
    return f"{value:.{decimals}f}", UNITS[unit]


def amount(value):
    return " ".join(split(value, "near", True)) if value > 0 else "0"


def interval(of):
    if of["hi"] is None:
        return ("at least " + " ".join(split(of["lo"], "down", True))
                if of["lo"] else "unknown")
    if of["lo"] >= of["hi"]:
        return "exact"
    low, high = split(of["lo"], "down", False), split(of["hi"], "up", False)
    if not of["lo"] > 0:
        return f"[0, {high[0]}] {high[1]}"
    if low[1] == high[1]:
        return f"[{low[0]}, {high[0]}] {high[1]}"
    return f"[{' '.join(low)}, {' '.join(high)}]"


def estimate(of, samples):
    """As a row has it: the interval first where there are few samples."""
    if of["hi"] is None:
        return (interval(of) if of["lo"] or not samples
                else amount(of["value"]) + " limits unknown")
    if of["lo"] >= of["hi"] or (samples > FEW_SAMPLES and of["lo"] > 0):
        return f"{amount(of['value'])} {interval(of)}"
    if not samples:
        return "<= " + " ".join(split(of["hi"], "up", False))
    return f"{interval(of)} ~{amount(of['value'])}"


def percent(part, whole):
    share = rounded(100 * part / whole * 1e6, "near") / 1e6 if whole else 0
    return ("0%" if not part > 0 else "<0.1%" if share < 0.05
            else f"{share:.1f}%")


def signed(value, text):
    """A zero has no sign."""
    is_zero = not text.split(" ")[0].strip("0.")
    return text if is_zero else ("-" if value < 0 else "+") + text


def change(value):
    return signed(value, amount(abs(value)))


def change_interval(of):
    """Of a change, rounded outwards."""
    if of["lo"] is None and of["hi"] is None:
        return "unknown"
    if of["lo"] >= of["hi"]:
        return "exact"
    limits = []
    for key, is_upper in (("lo", False), ("hi", True)):
        value = of[key]
        way = "up" if is_upper == (value > 0) else "down"
        limits.append(signed(value, " ".join(split(abs(value), way, True))
                             if value else "0"))
    units = [limit.partition(" ")[2] for limit in limits]
    if units[0] == units[1] and units[0]:
        return (f"[{limits[0].partition(' ')[0]}, "
                f"{limits[1].partition(' ')[0]}] {units[0]}")
    return f"[{limits[0]}, {limits[1]}]"


NUMBER = r"[-+]?[0-9][0-9,.]*(?:e\+[0-9]+)?"
UNIT = r" (?:[KMGTPE]i)?B"
FIGURE = re.compile(
    rf"(?:({NUMBER}{UNIT}) )?(\[{NUMBER}(?:{UNIT})?, {NUMBER}(?:{UNIT})?\]"
    rf"(?:{UNIT})?)(?: ~({NUMBER}{UNIT}))?")


def walk(value):
    yield value
    for part in (value.values() if isinstance(value, dict) else
                 value if isinstance(value, list) else ()):
        yield from walk(part)


def known_figures(document):
    """(intervals, (amount, interval) pairs) of all that has limits."""
    intervals, pairs = set(), set()
    for of in walk(document):
        if not isinstance(of, dict) or not {"value", "lo", "hi"} <= set(of):
            continue
        if of["value"] is None or of["lo"] is None or of["hi"] is None:
            continue
        pairs.add((amount(of["value"]), interval(of)))
        intervals |= {interval(of), change_interval(of),
                      f"[{rounded(of['lo'], 'down'):,}, "
                      f"{rounded(of['hi'], 'up'):,}]"}
        pairs.add((change(of["value"]), change_interval(of)))
    return intervals, pairs


def unknown_figures(text, document):
    """Intervals in the text that none of the document's figures has, or that
    stand beside another figure; and how many were compared."""
    intervals, pairs = known_figures(document)
    found, n = [], 0
    for line in text.splitlines():
        for match in FIGURE.finditer(re.sub(r"\s+", " ", line)):
            before, limits, behind = match.groups()
            n += 1
            if limits not in intervals or (
                    (before or behind) and
                    (before or behind, limits) not in pairs):
                found.append(match[0])
    return found, n
