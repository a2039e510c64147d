# SPDX-License-Identifier: MIT
"""What was measured, as tables in Markdown.  They can be made of any part."""

from pairing import differences, geometric_mean, of_row, ratios

MIB = 1024.0  # in KiB


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |",
             "|" + "|".join("---" if i == 0 else "---:"
                            for i in range(len(head))) + "|"]
    return "\n".join(lines + ["| " + " | ".join(r) + " |" for r in rows])


def short(s, digits=3):
    return f"{s['median']:.{digits}f}"


def full(s, digits=3):
    return (f"{s['median']:.{digits}f} ({s['min']:.{digits}f} to "
            f"{s['max']:.{digits}f})")


class Results:
    """The pairs of a record, by group of works."""

    def __init__(self, record):
        self.record = record
        self.pairs = {key: pairs for key, pairs in record["pairs"].items()
                      if pairs}

    def works(self, group):
        return [name for name, g in self.record["works"].items()
                if g["group"] == group]

    def comparisons(self):
        return self.record["comparisons"]

    def of(self, work, comparison):
        return self.pairs.get(f"{work} | {comparison}")

    def in_group(self, group, comparison):
        """{work: pairs} of those that were measured."""
        found = {w: self.of(w, comparison) for w in self.works(group)}
        return {w: pairs for w, pairs in found.items() if pairs}

    def medians(self, group, comparison, key):
        return {w: ratios(pairs, key)["median"]
                for w, pairs in self.in_group(group, comparison).items()}


def overview(results, group):
    """One row for each comparison: means and worst over the group."""
    rows = []
    for name in results.comparisons():
        found = results.in_group(group, name)
        if not found:
            continue
        wall, cpu = (results.medians(group, name, key)
                     for key in ("wall", "cpu"))
        worst = max(wall, key=wall.get)
        rss = [differences(p, "rss")["median"] / MIB for p in found.values()]
        files = [of_row(p, "file")["median"] / 1024 for p in found.values()]
        rounds = sorted(len(p) for p in found.values())
        rows.append([
            name, f"{geometric_mean(wall.values()):.3f}",
            f"{wall[worst]:.3f} {worst}",
            f"{geometric_mean(cpu.values()):.3f}", f"{max(cpu.values()):.3f}",
            f"{max(rss):+.1f}", f"{max(files):,.0f}",
            f"{rounds[0]}" if rounds[0] == rounds[-1]
            else f"{rounds[0]} to {rounds[-1]}"])
    return rows and table(
        ["row / base", "wall time, geometric mean", "worst",
         "processor time, geometric mean", "worst", "most RSS, MiB",
         "most in files, KiB", "pairs"], rows)


def matrix(results, group, key):
    """Medians of all comparisons by works."""
    works = [w for w in results.works(group)
             if any(results.of(w, c) for c in results.comparisons())]
    rows = []
    for name in results.comparisons():
        found = results.medians(group, name, key)
        if found:
            rows.append([name] + [f"{found[w]:.3f}" if w in found else ""
                                  for w in works])
    return rows and table(["row / base"] + works, rows)


def spreads(results, group, name):
    """One comparison with everything."""
    rows = [[work, full(ratios(pairs, "wall")), full(ratios(pairs, "cpu")),
             f"{differences(pairs, 'rss')['median'] / MIB:+.1f}",
             f"{of_row(pairs, 'file')['median'] / 1024:,.0f}",
             str(len(pairs))]
            for work, pairs in results.in_group(group, name).items()]
    return rows and table([name, "wall time", "processor time", "RSS, MiB",
                           "file, KiB", "pairs"], rows)


def servers(results):
    rows = []
    for name in results.comparisons():
        for work, pairs in results.in_group("server", name).items():
            rows.append([
                f"{work}: {name}"] + [full(ratios(pairs, key)) for key in
                                      ("rps", "p50", "p99")] +
                [full(ratios(pairs, "cpu")), str(len(pairs))])
    return rows and table(["row / base", "requests per second",
                           "50 % of latencies", "99 %", "processor time",
                           "pairs"], rows)


def starts(results):
    lines = []
    for name in results.comparisons():
        for work, pairs in results.in_group("start", name).items():
            calls = results.record["works"][work]["calls"]
            s = {key: value * 1000 / calls if key != "runs" else value
                 for key, value in differences(pairs, "cpu").items()}
            lines.append([name, full(s, 2), str(len(pairs))])
    return lines and table(["start and end of a process",
                            "ms of processor time more", "pairs"], lines)


def instructions(record):
    found = record.get("instructions", {})
    functions = list(dict.fromkeys(f for row in found.values() for f in row))
    jump = found.get("jump", {})

    def cell(row, function):
        if function not in row:
            return ""
        if function not in jump:
            return f"{row[function]:.1f}"
        return f"{row[function]:.1f} ({row[function] - jump[function]:+.1f})"

    return functions and table(
        ["instructions (beyond the jump)"] + functions,
        [[name] + [cell(row, f) for f in functions]
         for name, row in found.items()])


def caches(record):
    found = record.get("caches", {})
    sizes = list(dict.fromkeys(s for row in found.values() for s in row))
    return sizes and table(
        ["misses per free: first / last level"] + [f"{s} MiB" for s in sizes],
        [[name] + [f"{row[s]['D1']:.2f} / {row[s]['DL']:.2f}" if s in row
                   else "" for s in sizes] for name, row in found.items()])


def goals(results):
    """Rows of what has to be reached: [what, limit, found, is it], for what
    was measured."""
    rows = []

    def add(what, limit, value, text=None):
        if value is not None:
            rows.append([what, f"<= {limit:g}", text or f"{value:.3f}",
                         "yes" if value <= limit else "**no**"])

    def mean(group, name, key="wall"):
        found = results.medians(group, name, key).values()
        return geometric_mean(found) if found else None

    def most(group, name, key="wall"):
        return max(results.medians(group, name, key).values(), default=None)

    def one(work, name, key="wall"):
        pairs = results.of(work, name)
        return ratios(pairs, key)["median"] if pairs else None

    usual = "512 KiB / jump"
    add("pair loop at 512 KiB over the jump, wall", 1.08, one("pair", usual))
    add("programs at 512 KiB over the jump, wall: geometric mean", 1.01,
        mean("program", usual))
    add("the same: worst", 1.03, most("program", usual))
    ours = mean("program", usual)
    for theirs in ("jemalloc prof / jemalloc", "tcmalloc sampling / tcmalloc"):
        value = mean("program", theirs)
        if value and ours:
            add(f"the same below that of {theirs}", round(value, 3), ours)
    add("programs, off, over the jump, wall: geometric mean", 1.005,
        mean("program", "off / jump"))
    for name, limit in (("64 KiB", 1.03), ("4 KiB", 1.12),
                        ("4 KiB, frame pointers", 1.07)):
        add(f"programs at {name} over no library, wall: geometric mean", limit,
            mean("program", f"{name} / no library"))
    heaptrack = mean("program", "heaptrack / no library")
    if heaptrack:
        add("programs, every byte, below heaptrack: geometric mean",
            round(heaptrack, 3), mean("program", "every byte / no library"))
    for work in ("large-calloc", "large-ladder"):
        add(f"{work} over the jump, wall", 1.03, one(work, usual))
    for work in ("cross, 8 threads", "larson, 8 threads"):
        add(f"{work}, over the jump, wall", 1.03, one(work, usual))
    rss = [differences(pairs, "rss")["median"] / MIB -
           0.01 * of_row([p[::-1] for p in pairs], "rss")["median"] / MIB
           for pairs in results.in_group("program", usual).values()]
    if rss:
        add("peak RSS at 512 KiB beyond 1.01 times the jump's: most, MiB", 2,
            max(rss), f"{max(rss):.1f}")
    return rows and table(["figure", "limit", "found", "reached"], rows)


def head(record):
    m = record["machine"]
    peers = ", ".join(f"{k} {v}" for k, v in record["versions"].items())
    return (f"{m['cpu']}, {m['cores']} cores, Linux {m['kernel']}, "
            f"{m['libc']}, built with {m['compiler']}; {record['date']}. "
            f"Beside it: {peers}.")


def document(record):
    """All of it; what was not measured is left out."""
    results = Results(record)
    parts = [head(record), goals(results)]

    def section(title, *tables):
        made = [t for t in tables if t]
        if made:
            parts.extend([f"### {title}", *made])

    section("Instructions per call", instructions(record))
    section("Cache misses of frees", caches(record))
    section("Real programs", overview(results, "program"),
            spreads(results, "program", "512 KiB / jump"))
    section("Real programs, wall time", matrix(results, "program", "wall"))
    section("Loops", overview(results, "loop"),
            spreads(results, "loop", "512 KiB / jump"))
    section("Loops, wall time", matrix(results, "loop", "wall"))
    section("Redis", servers(results))
    section("One sample, and one process", record.get("samples"),
            starts(results))
    if record["failed"]:
        parts.append("Not measured: " + "; ".join(
            f"{what}: {why}" for what, why in record["failed"].items()) + ".")
    return "\n\n".join(part for part in parts if part)
