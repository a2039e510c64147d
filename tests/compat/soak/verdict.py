# SPDX-License-Identifier: MIT
"""What the soak measured, held against limits, and as tables."""

import math
import statistics

PERIOD_BYTES = 64 << 10
# Objects of more periods than this are sampled for certain (docs/format.md).
CERTAIN = 4.605170185988
CHUNK = 64 << 10

PERCENTILES = (("p10", .1), ("p50", .5), ("p99", .99), ("p999", .999))

# What the verdict allows.  "Grows" compares medians of the first and the last
# third after the warm-up, which is a twelfth of the run.
LIMITS = {
    "tables_growth_bytes": 128 << 10,
    "tables_bytes": 4 << 20,
    "difference_growth_bytes": 2 << 20,
    "file_growth_error": 0.10,
    "p10_ratio": 1.10,
    "p50_ratio": 1.15,
    "p99_ratio": 1.25,
    "p999_ratio": 1.50,
    "live_ratio": (0.75, 1.05),
    # Objects from while sampling was off are not known.
    "switched_live_ratio": (0.60, 1.05),
}

# What the library is held to with --switched, and how often it is switched.
SWITCHED = {"samples_per_s": 400, "file_bytes": 4 << 20, "cycles": 200}


def percentiles(values):
    values = sorted(values)
    return {name: values[int(len(values) * share)]
            for name, share in PERCENTILES}


def expected_samples(profile):
    """From the exact totals by size, not from the samples."""
    total = 0
    for c in profile["size_classes"]:
        size = c["alloc_bytes"] / max(1, c["alloc_objects"])
        hit = (1 if size >= PERIOD_BYTES * CERTAIN
               else -math.expm1(-size / PERIOD_BYTES))
        total += c["alloc_objects"] * hit
    return total


def samples_per_s(profile):
    """Over the time from which on the file has all samples."""
    span_ns = profile["duration_ns"] - profile.get("window_from_ns", 0)
    return sum(p["samples"] for p in profile["phases"]) / (span_ns / 1e9)


WORDS = {True: "good", False: "**FAILED**", None: "cannot tell"}


class Verdict:
    """Of the rows, one for each minute.  The methods fill `checks`; `good` is
    None for what cannot be told."""

    def __init__(self, rows):
        self.checks = []
        self.warm = rows[max(0, len(rows) // 12 - 1):]

    def check(self, name, value, limit, good):
        self.checks.append({"name": name, "value": value, "limit": limit,
                            "good": good})

    def below(self, name, value, limit):
        self.check(name, value, f"at most {LIMITS[limit]}",
                   value <= LIMITS[limit])

    def growth(self, key):
        third = max(1, len(self.warm) // 3)
        values = [row[key] for row in self.warm]
        return (statistics.median(values[-third:]) -
                statistics.median(values[:third]))

    def memory(self):
        self.below("growth of the library's tables, bytes",
                   self.growth("tables_bytes"), "tables_growth_bytes")
        self.below("greatest size of the library's tables, bytes",
                   max(row["tables_bytes"] for row in self.warm),
                   "tables_bytes")
        self.below("growth of what the profiled server has more than its "
                   "twin, without the mapped profile, bytes",
                   self.growth("difference_bytes"),
                   "difference_growth_bytes")
        last = self.warm[-1]
        self.check("mapped profile in memory, bytes",
                   last["profiled"]["profile"],
                   f"at most the file's {last['disk_bytes']} on disk",
                   last["profiled"]["profile"] <= last["disk_bytes"])

    def file(self):
        """What the file grows by is what the allocations, counted exactly,
        predict at the bytes per sample of the first third after the warm-up;
        but it grows by whole chunks."""
        first, last = self.warm[0], self.warm[-1]
        third = self.warm[max(1, len(self.warm) // 3)]
        samples = [r["expected_samples"] for r in (first, third, last)]
        disk = [r["disk_bytes"] for r in (first, third, last)]
        per_sample = (disk[1] - disk[0]) / (samples[1] - samples[0])
        predicted = per_sample * (samples[2] - samples[1])
        grown = disk[2] - disk[1]
        allowed = LIMITS["file_growth_error"] * predicted + 2 * CHUNK
        self.check("growth of the file, bytes",
                   f"{grown}, at {per_sample:.1f} per sample",
                   f"predicted {predicted:.0f}, within {allowed:.0f}",
                   abs(grown - predicted) <= allowed)

    def latency(self):
        """Against the geometric mean of the twins, in the median minute.  If
        the twins differ by as much, nothing can be told."""
        for name, _ in PERCENTILES:
            limit = LIMITS[name + "_ratio"]
            ratios, spreads = [], []
            for row in self.warm:
                profiled, twin, second = (
                    row[server]["latency_ns"][name]
                    for server in ("profiled", "twin", "second"))
                ratios.append(profiled / math.sqrt(twin * second))
                spreads.append(second / twin)
            ratio, spread = map(statistics.median, (ratios, spreads))
            noisy = max(spread, 1 / spread) > limit
            self.check(f"latency {name} against the twins; one twin against "
                       "the other", [round(ratio, 3), round(spread, 3)],
                       f"the former at most {limit}",
                       ratio <= limit or (None if noisy else False))

    def profile(self, profile, used_memory, is_switched=False):
        lost = {k: v for k, v in profile["losses"].items()
                if v}
        self.check("losses", lost, "none", not lost)
        self.check("damage", profile["damage"]["text"], "none",
                   not profile["damage"]["text"])
        self.check("end", profile["end"], "clean", profile["end"] == "clean")
        live = profile["estimate"]["live_bytes"]["value"] / used_memory
        low, high = LIMITS["switched_live_ratio" if is_switched else
                           "live_ratio"]
        self.check("live bytes against used_memory of redis, which includes "
                   "what objects are rounded up by", round(live, 3),
                   f"{low} to {high}", low <= live <= high)

    def samples(self, profile):
        """Of a run that was sampled alike from its beginning to its end."""
        estimate = profile["estimate"]["alloc_bytes"]
        exact = profile["exact"]["alloc_bytes"]
        self.check("bytes allocated: exact, and 99.9 % interval",
                   [exact, round(estimate["lo"]), round(estimate["hi"])],
                   "within the interval",
                   estimate["lo"] <= exact <= estimate["hi"])
        error = profile["samples"] / expected_samples(profile) - 1
        bound = 5 / math.sqrt(profile["samples"])
        self.check("samples against the expected number", f"{error:+.3%}",
                   f"within 5 standard deviations, {bound:.3%}",
                   abs(error) <= bound)

    def switched(self, switches, profile):
        """Of a run with a limited rate and file."""
        disk = max(row["disk_bytes"] for row in self.warm)
        self.check("greatest size of the file on disk, bytes", disk,
                   f"at most {SWITCHED['file_bytes']}",
                   disk <= SWITCHED["file_bytes"])
        discarded = profile.get("discarded_bytes", 0)
        self.check("allocations whose samples were discarded, bytes",
                   discarded, "most of all",
                   2 * discarded > profile["exact"]["alloc_bytes"])
        rate = max(row["samples_per_s"] for row in self.warm)
        limit = 1.1 * SWITCHED["samples_per_s"]
        self.check("samples per second, greatest of the minutes",
                   round(rate, 1), f"1 to {limit:.0f}", 1 <= rate <= limit)
        self.check("sampling stopped and started", switches,
                   f"at least {SWITCHED['cycles']}",
                   switches >= SWITCHED["cycles"])

    def children(self, profiles, forks, is_switched):
        """One that was forked while sampling was off has no samples."""
        damaged = [p["file"] for p in profiles if p["damage"]["text"]]
        lost = [p["file"] for p in profiles
                if any(p["losses"].values())]
        empty = [p["file"] for p in profiles if not p["samples"]]
        self.check("profiles of children: files, damaged, with losses, "
                   "without samples",
                   [len(profiles), len(damaged), len(lost), len(empty)],
                   f"[{forks}, 0, 0, 0], one for each fork",
                   len(profiles) == forks and not damaged + lost and
                   (is_switched or not empty))


def kib(n):
    return f"{n / 1024:,.0f}"


def micro(ns):
    return f"{ns / 1000:.0f}"


def markdown(rows, verdict):
    heads = ["minute", "commands", "RSS KiB", "twin", "tables KiB",
             "mapped profile KiB", "file KiB", "samples", "CPU s", "twin"]
    for name, _ in PERCENTILES:
        heads += [f"{name} µs", "twin", "second"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---:|" * len(heads)]
    step = max(1, len(rows) // 24)
    for row in rows[step - 1::step]:
        p, t = row["profiled"], row["twin"]
        cells = [row["minute"], row["commands"], kib(p["total"]),
                 kib(t["total"]), kib(row["tables_bytes"]), kib(p["profile"]),
                 kib(row["disk_bytes"]), row["samples"],
                 f"{p['cpu_s']:.1f}", f"{t['cpu_s']:.1f}"]
        for name, _ in PERCENTILES:
            cells += [micro(row[server]["latency_ns"][name])
                      for server in ("profiled", "twin", "second")]
        lines.append("| " + " | ".join(str(c) for c in cells) + " |")
    lines += ["", "| check | value | limit | |", "|---|---|---|---|"]
    for c in verdict.checks:
        lines.append(f"| {c['name']} | {c['value']} | {c['limit']} | "
                     f"{WORDS[c['good']]} |")
    return "\n".join(lines) + "\n"
