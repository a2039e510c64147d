# SPDX-License-Identifier: MIT
"""The study's results as tables of docs/measurements.txt, and as the figures that
the pictures of docs/ are drawn from."""

import statistics
import textwrap

METHODS = ("p3", "p3t")
SHORTEN = 46
LARGE = 5
# A number has this many digits in a file that is kept.
DIGITS = 6


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |",
             "|" + "|".join("---" if i == 0 else "---:"
                            for i in range(len(head))) + "|"]
    return "\n".join(lines + ["| " + " | ".join(r) + " |" for r in rows])


def percent(value, digits=1):
    return f"{100 * value:.{digits}f} %"


def half(width):
    """Half the width of an interval, in percent of the truth."""
    value = 50 * width
    return f"±{value:.1f} %" if value < 10 else f"±{value:.0f} %"


def signed(z):
    return "-" if z is None else f"{z:+.1f}"


def coverage(verdict):
    return percent(verdict["covered"] / verdict["runs"])


def z_values(run, method):
    return [s[method]["z"] for s in run["sites"]
            if s[method]["z"] is not None]


def width_ratio(sites):
    """Geometric mean over sites of the width with to that without totals; of
    a site that is alone in its classes nothing is left."""
    return statistics.geometric_mean(
        max(s["p3t"]["width"] / s["p3"]["width"], 1e-3) for s in sites)


def summary_row(run):
    process = run["process"]
    z = [max(map(abs, z_values(run, m)), default=0) for m in METHODS]
    covered = [[s[m]["covered"] / s[m]["runs"] for s in run["sites"]]
               for m in METHODS]
    return [
        f"{run['program']}, {run['period']}iB", f"{run['samples']:,.0f}",
        f"{100 * process['bias']:+.2f} % ({signed(process['z'])})",
        coverage(process),
        f"{len(z_values(run, 'p3'))}: {z[0]:.1f} / {z[1]:.1f}",
        *(f"{percent(min(c))}, {percent(statistics.fmean(c))}"
          for c in covered),
        f"{width_ratio(run['sites'][:LARGE]):.2f}",
        f"{width_ratio(run['sites']):.2f}",
    ]


def summary(found):
    return table(
        ["program, period", "samples", "total: bias (z)", "covered",
         "sites tested: largest \\|z\\| P3 / P3T",
         "covered P3: least, mean", "P3T: least, mean",
         f"width P3T/P3, largest {LARGE}", "all 20"],
        [summary_row(run) for run in found])


def site_cells(site):
    p3, p3t = site["p3"], site["p3t"]
    return [f"{p3['expected_samples']:.1f}",
            f"{100 * p3['bias']:+.1f} % ({signed(p3['z'])})",
            f"{coverage(p3)} / {coverage(p3t)}",
            f"{half(p3['width'])} / {half(p3t['width'])}"]


def shorten(name):
    text = name if len(name) <= SHORTEN else name[:SHORTEN - 3] + "..."
    return f"`{text}`".replace("|", "\\|") if text else "(no names)"


def steadiness(runs):
    spread = max(run["spread"] for run in runs)
    unsteady = runs[0]["unsteady_sites"]
    if not spread and not unsteady:
        return "all recordings agree on the total to the byte"
    return (f"the totals of the recordings differ by up to "
            f"{percent(spread, 3)}; between recordings with period 1, "
            f"{unsteady or 'none'} of the sites below differ")


def program_part(runs):
    first = runs[0]
    head = ["call stack (innermost functions)", "share", "bytes per object"]
    for run in runs:
        head += [f"{run['period']}iB: samples", "bias (z)",
                 "covered P3 / P3T", "width P3 / P3T"]
    rows = []
    for i, site in enumerate(first["sites"]):
        row = [shorten(site["name"]), percent(site["share"], 2),
               f"{site['mean_size']:,.0f}"]
        for run in runs:
            row += site_cells(run["sites"][i])
        rows.append(row)
    said = textwrap.fill(f"{first['bytes'] / 2**20:.1f} MiB in "
                         f"{first['allocations']:,} allocations from "
                         f"{first['stacks']:,} call stacks; "
                         f"{steadiness(runs)}.", 100, break_on_hyphens=False)
    return f"### {first['program']}\n\n{said}\n\n{table(head, rows)}"


def document(found):
    programs = list(dict.fromkeys(run["program"] for run in found))
    parts = [f"{found[0]['seeds']} recordings of each program at each "
             "period.", summary(found)]
    parts += [program_part([r for r in found if r["program"] == name])
              for name in programs]
    return "\n\n".join(parts)


def replace(path, part, text):
    """The part of the page between its markers."""
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    with open(path, encoding="utf-8") as page:
        before, rest = page.read().split(begin)
    _, after = rest.split(end)
    with open(path, "w", encoding="utf-8") as page:
        page.write(f"{before}{begin}\n{text}\n{end}{after}")


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return value


def figures(found):
    """What the pictures are drawn from."""
    return rounded([{
        "program": run["program"], "period": run["period"],
        "seeds": run["seeds"], "largest": run["largest"],
        "sites": [{
            "share": site["share"],
            "samples": site["p3"]["expected_samples"],
            **{m: {"covered": site[m]["covered"] / site[m]["runs"],
                   "width": site[m]["width"]} for m in METHODS},
        } for site in run["sites"]],
    } for run in found])
