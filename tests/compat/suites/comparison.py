# SPDX-License-Identifier: MIT
"""What a suite did without the library, held against what it did under it."""

REPEATS = 3


def differences(plain, under):
    """Tests whose outcomes are not the same, as (group, name)."""
    return sorted(key for key in plain.keys() | under.keys()
                  if plain.get(key) != under.get(key))


def markdown(rows):
    """The lines of a table; the first row has all columns."""
    heads = list(rows[0])
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(str(row[h]) for h in heads) + " |"


class Comparison:
    """One suite: the run without the library, and those under it.  `bad`: what
    must not be; `found`: every difference, with all outcomes; `failing`: tests
    that fail without the library."""

    def __init__(self, suite, runner):
        self.suite, self.runner = suite, runner
        self.plain = None
        self.failing = []
        self.rows = []
        self.found = []
        self.bad = []

    def _row(self, allocator, run, kinds):
        outcomes = [o.split()[0] for o in run.outcomes.values()]
        lost = ", ".join(f"{k} {v}" for k, v in sorted(run.losses.items()))
        row = {"suite": self.suite.name, "allocator": allocator,
               "tests": len(outcomes)}
        for title in ("ok", "skipped", "failed"):
            row[title] = outcomes.count(title)
        for kind in ("different", "flaky", "allocator's"):
            row[kind] = kinds.count(kind) if run.shim else ""
        row["profiles"] = run.profiles if run.shim else ""
        row["samples"] = run.samples if run.shim else ""
        row["losses"] = lost or "none" if run.shim else ""
        row["seconds"] = round(run.seconds)
        self.rows.append(row)

    def without(self):
        """To be called first."""
        self.plain = self.runner.run(self.suite, "glibc", shim=False)
        self._row("without the library", self.plain, [])
        self.failing = [(self.suite.name, *key)
                        for key, o in sorted(self.plain.outcomes.items())
                        if o.startswith("failed")]
        if not any(o.startswith("ok") for o in self.plain.outcomes.values()):
            self.bad.append(f"{self.suite.name}: no test passes")

    def under(self, allocator):
        run = self.runner.run(self.suite, allocator, shim=True)
        explained = self._explain(allocator, run)
        self.found += explained
        self._row(allocator, run, [f["kind"] for f in explained])
        name = f"{self.suite.name} over {allocator}"
        self.bad += [f"{name}: {problem}" for problem in run.problems]
        if not run.samples:
            self.bad.append(f"{name}: no samples: was the library loaded?")
        self.bad += [f"{name}: {f['group']}: {f['test']}" for f in explained
                     if f["kind"] == "different"]

    def _explain(self, allocator, run):
        keys = differences(self.plain.outcomes, run.outcomes)
        groups = sorted({group for group, _ in keys})
        again = {shim: [self.runner.run(self.suite, allocator, shim, groups)
                        for _ in range(REPEATS)] if groups else []
                 for shim in (False, True)}
        explained = []
        for key in keys:
            without = [r.outcomes.get(key) for r in again[False]]
            under = [r.outcomes.get(key) for r in [run] + again[True]]
            plain = self.plain.outcomes.get(key)
            explained.append({
                "suite": self.suite.name, "allocator": allocator,
                "group": key[0], "test": key[1], "plain": plain,
                "without": without, "under": under,
                "kind": kind_of(plain, without, under, allocator)})
        return explained


def kind_of(plain, without, under, allocator):
    """`plain`: without the library over glibc; `without`: again, over the same
    allocator as `under`.  None stands for a test that was not there."""
    if not set(under) <= {plain, *without}:
        return "different"
    if allocator != "glibc" and set(without) == set(under) and (
            len(set(without)) == 1):
        return "allocator's"
    return "flaky"
