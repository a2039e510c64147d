# SPDX-License-Identifier: MIT
"""What was measured, as tables in Markdown, and these as rows between tabs.
They can be made of any part."""

from pairing import (differences, geometric_mean, interval,
                     interval_of_quotient, mean_ratio, of_row, ratios)

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


def between(limits):
    return f" ({limits[0]:.3f} to {limits[1]:.3f})" if limits else ""


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
            name, f"{geometric_mean(wall.values()):.3f}" +
            between(interval(found.values(), "wall")),
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


def every_allocation(results):
    """The programs with nothing, with every allocation recorded, and under
    heaptrack: medians of the runs, and of the ratios to nothing."""
    ours, theirs = (results.in_group("program", f"{name} / no library")
                    for name in ("every byte", "heaptrack"))
    keys = (("wall", 1, 2), ("cpu", 1, 2), ("rss", MIB, 0))
    rows, quotients = [], []
    for work in [w for w in ours if w in theirs]:
        both = ours[work], theirs[work]
        bare = [pair[::-1] for pairs in both for pair in pairs]
        cells = [[f"{of_row(pairs, key)['median'] / unit:.{digits}f}"
                  for pairs in (bare, *both)] for key, unit, digits in keys]
        quotients.append([ratios(ours[work], key)["median"] /
                          ratios(theirs[work], key)["median"]
                          for key in ("wall", "cpu")])
        for i, quotient in enumerate(quotients[-1]):
            cells[i].append(f"{quotient:.2f}")
        rows.append([work, *sum(cells, [])])
    if not rows:
        return None
    means = [f"{geometric_mean(q):.2f}" for q in zip(*quotients)]
    rows.append(["geometric mean", "", "", "", means[0], "", "", "", means[1],
                 "", "", ""])
    three = ["bare", "every byte", "heaptrack"]
    return table(["program"] + [f"wall s, {three[0]}", *three[1:], "quotient",
                                f"CPU s, {three[0]}", *three[1:], "quotient",
                                f"RSS MiB, {three[0]}", *three[1:]], rows)


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
                            "extra ms of processor time", "pairs"], lines)


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


def reached(value, limit, limits):
    """What the runs say of a limit."""
    low, high = limits or (value, value)
    return "yes" if high <= limit else "**no**" if low > limit else "open"


def goals(results):
    """Rows of what has to be reached: [what, limit, found, is it], for what
    was measured."""
    rows = []
    usual = "512 KiB / jump"

    def add(what, limit, works, digits=3):
        works = list(works)
        if works:
            value, limits = mean_ratio(works, "wall"), interval(works, "wall")
            rows.append([what, f"<= {limit:g}",
                         f"{value:.{digits}f}" + between(limits),
                         reached(value, limit, limits)])

    def programs(name):
        return list(results.in_group("program", name).values())

    def add_worst(what, limit, name):
        medians = results.medians("program", name, "wall")
        if medians:
            worst = max(medians, key=medians.get)
            add(f"{what}: {worst}", limit, [results.of(worst, name)])

    def add_below(what, name, others):
        works, others = programs(name), programs(others)
        if works and others:
            value = mean_ratio(works, "wall") / mean_ratio(others, "wall")
            limits = interval_of_quotient(works, others, "wall")
            rows.append([what, "<= 1", f"{value:.3f}" + between(limits),
                         reached(value, 1, limits)])

    def add_worst_below(what, key, name, others):
        ours = results.medians("program", name, key)
        theirs = results.medians("program", others, key)
        ratio = {w: ours[w] / theirs[w] for w in ours.keys() & theirs.keys()}
        if ratio:
            worst = max(ratio, key=ratio.get)
            rows.append([f"{what}: {worst}", "<= 1", f"{ratio[worst]:.3f}",
                         reached(ratio[worst], 1, None)])

    def one(work, name):
        return filter(None, [results.of(work, name)])

    add("pair loop at 512 KiB over the jump, wall", 1.08, one("pair", usual))
    add("programs at 512 KiB over the jump, wall: geometric mean", 1.01,
        programs(usual))
    add_worst("the same, worst", 1.03, usual)
    for theirs in ("jemalloc prof / jemalloc", "tcmalloc sampling / tcmalloc"):
        add_below(f"the same: {usual}, by {theirs}", usual, theirs)
    add("programs, off, over the jump, wall: geometric mean", 1.005,
        programs("off / jump"))
    for name, limit in (("64 KiB", 1.03), ("4 KiB", 1.12),
                        ("4 KiB, frame pointers", 1.07)):
        add(f"programs at {name} over no library, wall: geometric mean", limit,
            programs(f"{name} / no library"))
    add_below("programs, every byte by heaptrack, wall: geometric mean",
              "every byte / no library", "heaptrack / no library")
    for key, name in (("wall", "wall"), ("cpu", "processor time")):
        add_worst_below(f"the same, worst, {name}", key,
                        "every byte / no library", "heaptrack / no library")
    for work in ("large-calloc", "large-ladder", "cross, 8 threads",
                 "larson, 8 threads"):
        add(f"{work}, over the jump, wall", 1.03, one(work, usual))
    rss = [differences(pairs, "rss")["median"] / MIB -
           0.01 * of_row([p[::-1] for p in pairs], "rss")["median"] / MIB
           for pairs in programs(usual)]
    if rss:
        rows.append(["peak RSS at 512 KiB beyond 1.01 times the jump's: most, "
                     "MiB", "<= 2", f"{max(rss):.1f}",
                     reached(max(rss), 2, None)])
    ratio = {work: f["packed"] / f["heaptrack"]
             for work, f in results.record.get("files", {}).items()}
    if ratio:
        worst = max(ratio, key=ratio.get)
        rows.append(["packed files with every allocation over heaptrack's: "
                     f"worst, {worst}", "<= 1", f"{ratio[worst]:.3f}",
                     reached(ratio[worst], 1, None)])
    return rows and table(["figure", "limit", "found (95 %)", "reached"], rows)


def whole_programs(record):
    """Instructions of programs, row / base, and the mean over them."""
    found = record.get("whole", {})
    rows = []
    for row, base in (("off", "jump"), ("512 KiB", "jump"),
                      ("jemalloc prof", "jemalloc"),
                      ("tcmalloc sampling", "tcmalloc")):
        ratio = {work: counts[row] / counts[base]
                 for work, counts in found.items()
                 if row in counts and base in counts}
        if ratio:
            rows.append([f"{row} / {base}",
                         f"{geometric_mean(ratio.values()):.4f}"] +
                        [f"{ratio[w]:.4f}" if w in ratio else ""
                         for w in found])
    return rows and table(["instructions, row / base", "geometric mean",
                           *found], rows)


def files(record):
    """Of every allocation: as recorded, packed, and heaptrack's."""
    found = record.get("files", {})
    if not found:
        return None
    ratio = {work: f["packed"] / f["heaptrack"] for work, f in found.items()}
    rows = [[work] + [f"{f[key] / 1024:,.1f}" for key in
                      ("recorded", "packed", "heaptrack")] +
            [f"{ratio[work]:.3f}"] for work, f in found.items()]
    rows.append(["geometric mean", "", "", "",
                 f"{geometric_mean(ratio.values()):.3f}"])
    return table(["files, KiB, every allocation", "as recorded", "packed",
                  "heaptrack's", "packed / heaptrack's"], rows)


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
    section("Instructions of real programs", whole_programs(record))
    section("Real programs", overview(results, "program"),
            spreads(results, "program", "512 KiB / jump"))
    section("Real programs, wall time", matrix(results, "program", "wall"))
    section("Every allocation", every_allocation(results))
    section("Loops", overview(results, "loop"),
            spreads(results, "loop", "512 KiB / jump"))
    section("Loops, wall time", matrix(results, "loop", "wall"))
    section("Files", files(record))
    section("Redis", servers(results))
    section("One sample, and one process", record.get("samples"),
            starts(results))
    if record["failed"]:
        parts.append("Not measured: " + "; ".join(
            f"{what}: {why}" for what, why in record["failed"].items()) + ".")
    return "\n\n".join(part for part in parts if part)


def summary_and_rows(text):
    """Of a document what stands before its sections, and {subject: rows} of the
    tables in them: cells, that of the first column first."""
    summary, *sections = text.split("\n\n### ")
    rows = {}
    for section in sections:
        subject, _, body = section.partition("\n")
        rows[subject] = [
            [cell.strip() for cell in line.strip("| ").split("|")]
            if line.endswith("|") else [line]
            for line in body.splitlines()
            if line and not line.startswith("|--")]
    return summary, rows


def replaced(old, rows):
    """The lines of a file of tables, SUBJECT and cells between tabs, with other
    rows for some subjects."""
    kept = [line for line in old.splitlines()
            if line.split("\t")[0] not in rows]
    return "".join(line + "\n" for line in kept + [
        "\t".join([subject, *cells])
        for subject, cells in ((s, c) for s in rows for c in rows[s])])
