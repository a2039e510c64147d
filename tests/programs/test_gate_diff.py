# SPDX-License-Identifier: MIT
"""diff, and `--base` in every command of the report: they agree with diff,
trees and callers add up, sizes are those of the program; refusals."""

import csv
import io
import json
import os
import re

from gate import Gate


class Diff(Gate):
    def test_forms(self):
        old, new = self.record(), self.record(a=(128, 100000), seed=2)
        text = self.report("diff", old, new, "--stacks", "2")
        self.assertRegex(text, r"\n *113,\d+ .* exact  alloc_objects\n")
        first = re.search(r"function \(flat\)\n(.*)\n", text).group(1)
        self.assertRegex(first, r"\+[0-9.]+ MiB +\[\+.*\] MiB  site_a$")
        self.assertRegex(text, "~ .*site_b")
        self.assertRegex(text, "and [0-9]+ more")
        data = json.loads(self.report("diff", "--json", "--confidence",
                                      "99.9", old, new))
        top = data["functions"][0]
        self.assertEqual(top["name"], "site_a")
        self.assertTrue(top["is_told"])
        self.assertTrue(top["change"]["lo"] <= 6400000 <= top["change"]["hi"])
        exact = data["totals"]["alloc_bytes"]["change"]
        self.assertEqual(exact, {"value": 6.4e6, "lo": 6.4e6, "hi": 6.4e6})
        rows = list(csv.DictReader(io.StringIO(
            self.report("diff", "--csv", old, new))))
        self.assertEqual(rows[0]["table"], "functions")
        self.assertEqual(rows[0]["name"], "site_a")
        self.assertEqual(rows[0]["is_told"], "1")
        # the other way round
        back = json.loads(self.report("diff", "--json", new, old))
        self.assertAlmostEqual(back["functions"][0]["change"]["value"],
                               -top["change"]["value"])
        # several runs on a side
        several = json.loads(self.report("diff", "--json", new, "--baseline",
                                         old, self.record(seed=5)))
        self.assertEqual(several["old"]["runs"], 2)

    def test_parts_and_refusals(self):
        old, new = self.record(), self.record(a=(128, 100000), seed=2)
        part = json.loads(self.report("diff", "--json", "--size", "256-",
                                      old, new))
        self.assertEqual(list(part["totals"]), ["chosen_bytes"])
        self.assertNotIn("site_a", [r["name"] for r in part["functions"]])
        focus = json.loads(self.report("diff", "--json", "--focus", "site_a",
                                       old, new))
        self.assertEqual([r["name"] for r in focus["functions"]], ["site_a"])
        base = os.path.join(self.dir, "base.json")
        self.report("check", old, "--baseline", base, "--update-baseline")
        self.assertRegex(self.report("diff", base, new), "site_a")
        self.report("diff", "--focus", "a", base, new, code=1)
        self.assertIn("only whole runs", self.err)
        self.report("diff", "--view", "leaks", base, new, code=1)
        self.assertIn("no such view", self.err)
        for words in ((), (old,), (old, new, new), ("--json", "--csv", old,
                                                    new)):
            self.report("diff", *words, code=2)
        self.report("diff", old, "/nonexistent", code=1)
        for command in ("diff", "check"):
            self.assertIn("usage: ", self.report(command, "--help"))
            self.assertIn("sampleprof-report ",
                          self.report(command, "--version"))


    def test_parts_of_one_run(self):
        """Each object is in one of two parts; at two moments, those between
        are the change."""
        run = self.record(period="1")
        split = json.loads(self.report("report", "--json", run))
        end_ns = split["duration_ns"]
        at = f"{end_ns // 2}ns"

        def compare(*words):
            data = json.loads(self.report("diff", "--json", *words, run))
            return data, data["totals"]["chosen_bytes"]
        for view in "alloc", "live":
            data, chosen = compare("--view", view, "--base-to", at,
                                   "--from", at)
            both = data["old"], data["new"]
            self.assertEqual([s.get("to_ns") for s in both],
                             [end_ns // 2, None])
            self.assertEqual([s.get("from_ns") for s in both],
                             [None, end_ns // 2])
            whole = json.loads(self.report("report", "--json", "--view", view,
                                           run))
            for row in whole["functions"]:
                found = [r for r in data["functions"]
                         if r["name"] == row["name"]]
                self.assertEqual(sum(r["old"]["value"] + r["new"]["value"]
                                     for r in found), row["flat_bytes"]["value"])
            self.assertEqual(chosen["old"]["value"] + chosen["new"]["value"],
                             sum(r["flat_bytes"]["value"]
                                 for r in whole["functions"]))
            self.assertEqual(chosen["change"]["lo"], chosen["change"]["hi"])
        _, grown = compare("--base-at", at)
        _, ends = compare("--view", "live", "--base-at", "0s")
        self.assertEqual(ends["old"]["value"], 0)
        self.assertEqual(ends["new"], grown["new"])
        for words in ((run,), ("--base-at", at, "--view", "alloc", run),
                      ("--base-from", at, run, run, run)):
            self.report("diff", *words, code=2)

    def test_one_recording_is_said(self):
        """Parts that overlap have objects in common, which intervals do not
        know; others are as two runs."""
        run = self.record()
        common = "one recording on both sides: objects"
        for words, is_said in ((("--base-to", "50%", "--from", "50%"), False),
                               (("--base-to", "50%", "--from", "40%"), True),
                               (("--base-at", "50%"), True)):
            text = " ".join(self.report("diff", *words, run).split())
            self.assertEqual(common in text, is_said)
            self.assertNotIn("same seed", text)


class Base(Gate):
    """Every page with --base says of a function what diff says of it."""

    def setUp(self):
        super().setUp()
        self.old = self.record()
        self.new = self.record(a=(128, 100000), d=(64, 0), seed=2)

    def page(self, *words):
        return json.loads(self.report(*words, self.new, "--base", self.old,
                                      "--json"))

    def figures(self, rows, **wanted):
        found = [r for r in rows
                 if all(r.get(k) == v for k, v in wanted.items())]
        self.assertEqual(len(found), 1, (wanted, rows))
        return {k: found[0][k] for k in ("old", "new", "change",
                                         "old_samples", "new_samples")}

    def test_pages_agree(self):
        diff = json.loads(self.report("diff", "--json", self.old, self.new))
        for name in ("site_a", "site_b"):
            wanted = self.figures(diff["functions"], name=name)
            for words, key, more in (
                    (("report",), "functions", {}),
                    (("top",), "functions", {}),
                    (("report",), "cum", {}),
                    (("tree",), "tree", {"kind": "place"}),
                    (("peek", "^site_"), "peek", {"kind": "function"}),
                    (("stats", "--top", "0"), "functions", {})):
                rows = self.page(*words)[key]
                self.assertEqual(self.figures(rows, name=name, **more),
                                 wanted, words)
        paths = {r["name"]: r for r in self.page("traces")["paths"]}
        for name, row in paths.items():
            if name.startswith("site_a <"):
                self.assertEqual(self.figures([row]),
                                 self.figures(diff["functions"],
                                              name="site_a"))
        self.assertEqual(self.page("report")["totals"], diff["totals"])

    def test_tree_adds_up(self):
        """A place has what is within it; a caller has what its callees
        have."""
        rows = self.page("tree")["tree"]
        for i, row in enumerate(rows):
            within = []
            for other in rows[i + 1:]:
                if other["depth"] <= row["depth"]:
                    break
                if other["depth"] == row["depth"] + 1:
                    within.append(other)
            if within:
                for side in ("old_samples", "new_samples"):
                    self.assertEqual(sum(r[side] for r in within), row[side])
        edges = self.page("peek", "^work$")["peek"]
        of = [r for r in edges if r["kind"] == "function"][0]
        for kind in ("caller", "callee"):
            self.assertEqual(sum(r["new_samples"] for r in edges
                                 if r["kind"] == kind), of["new_samples"])

    def test_appeared_and_gone(self):
        text = self.report("top", self.new, "--base", self.old)
        self.assertRegex(text, r" 0 +-.*  site_d  \(gone\)\n")
        self.assertRegex(self.report("top", self.old, "--base", self.new),
                         r"  site_d  \(new\)\n")

    def test_exact_tables(self):
        """Sizes and entries: what the program did."""
        text = self.report("--sizes", self.new, "--base", self.old, "--csv")
        rows = {r["name"]: r for r in csv.DictReader(io.StringIO(text))}
        self.assertEqual(int(rows["128 B"]["change"]), 128 * 50000)
        self.assertEqual(int(rows["64 B"]["change"]), -64 * 24000)
        self.assertEqual(rows["256 B"]["change"], "0")
        entries = self.page("stats")["entries"]
        self.assertIn("malloc", [r["name"] for r in entries])
        threads = list(csv.DictReader(io.StringIO(self.report(
            "--by", "thread", self.new, "--base", self.old, "--csv"))))
        self.assertEqual([r["table"] for r in threads], ["threads"])
        self.report("--by", "phase", self.new, "--base", self.old, code=1)
        self.assertIn("neither side has phases", self.err)
        by_size = self.report("--by", "size", "--view", "live", self.new,
                              "--base", self.old)
        self.assertRegex(by_size, "~ .* 128 B")

    def test_granularity_module(self):
        text = self.report("top", "--granularity", "module", self.new,
                           "--base", self.old)
        self.assertRegex(text, r"\[program\]\n")
        self.report("top", "--granularity", "line", self.new, "--base",
                    self.old, code=2)
        self.assertIn("by name", self.err)

    def test_parts(self):
        focus = self.page("top", "--focus", "site_b")
        self.assertEqual([r["name"] for r in focus["functions"]], ["site_b"])
        self.assertEqual(list(focus["totals"]), ["chosen_bytes"])
        # several files of a side are one profile
        more = [self.record(seed=seed) for seed in (3, 4)]
        both = json.loads(self.report(
            "top", "--json", self.new, more[0], "--base", self.old,
            "--diff_base", more[1]))
        self.assertEqual(both["new"]["runs"], 1)
        self.assertEqual(both["notes"], [])
        self.assertIn("1 files against 2: the sums", self.report(
            "top", self.new, more[0], "--base", self.old))
        total = both["totals"]["alloc_bytes"]
        alone = self.page("top")["totals"]["alloc_bytes"]
        self.assertEqual(total["change"], alone["change"])
        self.assertGreater(total["new"]["value"],
                           alone["new"]["value"] + 20000000)

    def test_baseline(self):
        base = os.path.join(self.dir, "base.json")
        self.report("check", self.old, "--baseline", base,
                    "--update-baseline")
        for words in (("top",), ("tree",), ("traces",),
                      ("peek", "site_a")):
            self.assertIn("site_a", self.report(*words, self.new, "--base",
                                                base))
        for words in (("stats",), ("--sizes",), ("--by", "thread")):
            self.report(*words, self.new, "--base", base, code=1)
            self.assertIn("only call paths", self.err)

    def test_refusals(self):
        for words, why in (
                (("list", "site_a"), "peek REGEX --base"),
                (("--timeline",), "--view peak --base"),
                (("top", "--watch", "1s"), "--watch cannot be used with"),
                (("top", "--simultaneous"), "all rows together"),
                (("top", "--estimator", "p3"), "used with --estimator")):
            self.report(*words, self.new, "--base", self.old, code=2)
            self.assertIn(why, self.err)
        self.report("top", *(65 * ("--base", self.old)), self.new, code=2)
        self.assertIn("at most 64 times", self.err)
        self.report("peek", "nothing_like_it", self.new, "--base", self.old,
                    code=1)
        self.assertIn("of either side", self.err)
        self.report("top", self.new, "--base", "/nonexistent", code=1)
        self.report("top", "--view", "leaks", self.new, "--base",
                    self.record(env={"SAMPLEPROF_FREES": "off"}), code=1)
        self.assertIn("no such view", self.err)
