# SPDX-License-Identifier: MIT
"""check: planted growth, a new, a moved and a renamed function, noise between
runs, totals and functions by phase; every exit status."""

import csv
import io
import json
import os
import shutil
import subprocess

import harness
from gate import BASE, Gate


class Planted(Gate):
    def test_growth_of_the_total(self):
        old = self.record()
        total = sum(s * n for s, n in BASE.values())
        for percent in (1, 3, 10):
            more = total * percent // 100 // 128
            new = self.record(a=(128, 50000 + more), seed=2)
            text = self.check(new, old, "alloc_bytes=+0.5%", code=3)
            self.assertRegex(text, rf"REGRESSION.*\+{percent}\.[0-9]+ %"
                             r"\s+\(exact\)")
            self.check(new, old, f"alloc_bytes=+{percent + 1}%")
        # with 10 % of all in one function, that function is named
        self.assertIn("site_a < work < main", text)

    def test_nothing_changed(self):
        old, new = self.record(), self.record(seed=7)
        self.check(new, old, "alloc_bytes=+-0%", "alloc_objects=+-0%",
                   "sites=+-40%&300K", "peak_bytes=+150%",
                   "live_bytes=+-50%", "site(^site_[ab]$)=+-25%",
                   "temporary_bytes=+-5%")

    def test_one_for_another(self):
        old = self.record()
        # site_a doubles, site_b halves: as many bytes as before
        new = self.record(a=(128, 75000), b=(256, 12500), seed=3)
        text = self.check(new, old, "alloc_bytes=+0%", "sites=+20%&64K",
                          code=3)
        self.assertRegex(text, "pass +alloc_bytes")
        self.assertRegex(text, r"REGRESSION +sites.* 1 beyond")
        self.assertIn("  site_a < work", text)
        self.assertNotIn("site_b", text)
        both = self.check(new, old, "sites=+-20%&64K", code=3)
        self.assertRegex(both, r"-[0-9.]+ MiB .*site_b")

    def test_new_site_of_half_a_percent(self):
        old = self.record(period="1K")
        new = self.record(period="1K", seed=4, e=(64, 24000000 // 200 // 64))
        text = self.check(new, old, "sites=+10%", "alloc_bytes=+1%", code=3)
        self.assertRegex(text, r"new +site_e\n")
        self.assertRegex(text, "pass +alloc_bytes")

    def test_renamed(self):
        old, new = self.record(), self.record("gated_renamed", seed=5)
        text = self.check(new, old, "sites=+40%&300K", "alloc_bytes=+0%")
        self.assertIn("taken for renamed: site_c -> site_renamed", text)
        self.assertIn("site_c -> site_renamed", self.report("diff", old, new))

    def test_moved(self):
        old, new = self.record(), self.record("gated_moved", seed=6)
        self.check(new, old, "sites=+-40%&300K", "alloc_bytes=+-0%")
        rows = json.loads(self.report("diff", "--json", old, new))
        self.assertFalse([r for r in rows["functions"] if r["is_told"]])
        # period 1: equal to the byte, function by function and path by path
        old, new = (self.record(p, period="1")
                    for p in ("gated", "gated_moved"))
        rows = json.loads(self.report("diff", "--json", old, new))
        self.assertGreater(len(rows["functions"]), 4)
        for row in rows["functions"] + rows["paths"]:
            self.assertEqual(row["change"],
                             {"value": 0.0, "lo": 0.0, "hi": 0.0}, row)

    def test_improvement_makes_the_baseline_stale(self):
        old, new = self.record(), self.record(a=(128, 30000), seed=8)
        self.check(new, old, "alloc_bytes=+3%")
        text = self.check(new, old, "alloc_bytes=+-3%", code=3)
        self.assertRegex(text, "IMPROVED +alloc_bytes")
        self.assertIn("--update-baseline", text)

    def test_leak(self):
        old, new = self.record(), self.record(keep=(100, 40000), seed=9)
        text = self.check(new, old, "live_bytes=+50%", "peak_bytes=+50%",
                          code=3)
        self.assertRegex(text, "REGRESSION +live_bytes")
        self.assertRegex(text, "REGRESSION +peak_bytes")
        self.assertIn("keeper < work", text)
        self.assertIn("keeper", self.report("diff", "--view", "live", old,
                                            new))

    def test_period_1_is_exact(self):
        old = self.record(period="1")
        new = self.record(period="1", b=(256, 25020))
        text = self.check(new, old, "sites=+0%", code=3)
        self.assertRegex(text, r"\+256 B  exact  site_b\n")
        self.check(new, old, "sites=+0%&256")

    def test_noise_between_runs(self):
        """A function that does 10 % more or less in each run."""
        runs = [self.record(period="16K", f=(512, count), seed=count)
                for count in (40300, 36900, 43200, 37600, 41700, 39500)]
        text = self.check(runs[:3], runs[3:], "alloc_bytes=+40%", "sites=+0%",
                          code=4)
        self.assertRegex(text, "CANNOT TELL +sites.* 0 beyond")
        # two runs that differ: chance may have made neighbours alike
        ranked = sorted(runs, key=self.totals.get)
        text = self.check(ranked[0], ranked[-1], "alloc_bytes=+-0%", code=3)
        self.assertIn("exact", text)
        # the same limit with the noise known: it cannot be told
        text = self.check(runs[:3], runs[3:], "alloc_bytes=+-0%", code=4)
        self.assertIn("CANNOT TELL", text)


class Names(Gate):
    """Which function of one side is which of the other."""

    def lambdas(self, kind, *objects):
        program = os.path.join(self.dir, kind, "app")
        if not os.path.exists(program):
            os.mkdir(os.path.dirname(program))
            shutil.copy(harness.target("program_gated_lambdas" + kind), program)
        return self.execute(program, *map(str, objects), period="1K",
                            seed=self.runs + 1).profile().require_samples(
                                1000).path

    def test_lambdas_and_overloads(self):
        old = self.lambdas("-g", 40000, 10000, 20000, 10000)
        # one lambda and one overload double, the others have less
        new = self.lambdas("-g", 20000, 20000, 40000, 1)
        found = json.loads(self.check(new, old, "sites=+25%&500K", code=3,
                                      form="json"))["limits"][0]
        self.assertEqual(
            {c["function"] for c in found["explained_by"]
             if "function" in c},
            {"main::{lambda(long)#2}::operator()", "shop::Cart::add(long)"})
        # the report has them apart as well, and by the same names
        names = {r["name"] for r in json.loads(self.report(
            "--json", old))["functions"]}
        self.assertLessEqual({"shop::Cart::add(long)",
                              "shop::Cart::add(double)"}, names)
        self.assertRegex(self.report("peek", "^shop::Cart::add$", old),
                         r"\* shop::Cart::add\(double\) ")
        self.assertRegex(self.report("--focus", r"add\(long\)", old),
                         r" shop::Cart::add  ")
        self.check(new, old, r"site(add\(double)=+5%",
                   r"site(lambda.*#1)=+5%")
        self.check(new, old, "site(^shop::Cart::add$)=+90%")
        self.check(new, old, r"site(lambda\(long\)#2)=+5%", code=3)

    @harness.nightly
    def test_numbers_that_shift(self):
        old = self.lambdas("-g", 10000, 40000, 20000, 10000)
        new = self.lambdas("-gmore", 10000, 40000, 20000, 10000)
        text = self.check(new, old, "sites=+25%&500K")
        self.assertRegex(text, r"lambdas whose numbers changed are compared\s+"
                         r"as\s+one:\s+main::{lambda\(long\)#\*}")
        new = self.lambdas("-gmore", 10000, 80000, 20000, 10000)
        text = self.check(new, old, "sites=+25%&500K", code=3)
        self.assertRegex(text, r"main::{lambda\(long\)#\*}::operator\(\)")

    @harness.nightly_too
    def test_other_flags(self):
        """Without -g inlined functions are their callers."""
        objects = 20000, 20000, 20000, 10000
        g, g0 = self.lambdas("-g", *objects), self.lambdas("-g0", *objects)
        for old, new in ((g, g0), (g0, g))[:harness.rounds(1, 2)]:
            text = self.check(new, old, "sites=+25%&500K", "alloc_bytes=+1%",
                              code=4)
            self.assertIn("other inlining", text)
            text = self.check(new, old, r"site(lambda\(long\))=+25%&500K",
                              code=4)
            self.assertIn("other inlining", text)
            rows = json.loads(self.report("diff", "--json", old, new))
            self.assertFalse([r for r in rows["functions"] + rows["paths"]
                              if r["is_told"]])
            text = self.report("diff", old, new)
            self.assertRegex(text, r"note: other inlining, build flags or "
                             r"code that\s+moved: \d+ rows marked \?")
            self.assertNotIn(" gone ", text)
        grown = self.lambdas("-g", 60000, 20000, 20000, 10000)
        self.check(grown, g0, "sites=+25%&500K", code=3)


class Rebuilt(Gate):
    """The program is built anew between two recordings."""

    def setUp(self):
        super().setUp()
        self.old = self.record()
        self.named = os.path.join(self.dir, "named.sprof")
        self.report("symbolize", self.old, "-o", self.named)
        shutil.copy(self.programs["gated_moved"], self.programs["gated"])
        self.new = self.record(a=(128, 100000), seed=2)

    def test_cannot_tell(self):
        text = self.check(self.new, self.old, "sites=+10%&64K",
                          "site(^site_a$)=+10%", "site(^nothing$)=+10%",
                          "alloc_bytes=+50%", code=4)
        self.assertRegex(" ".join(text.split()),
                         r"note: app\.\S+: no names in \S+/app, for 100 % of "
                         r"the bytes, \d of \d call paths: changed since the "
                         r"profile was recorded note: ")
        self.assertIn("`sampleprof-report symbolize`", text)
        self.assertNotRegex(text, r"\]  (gone|new)  ")
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        for words in (("diff", self.old, self.new),
                      ("top", self.new, "--base", self.old),
                      ("tree", self.new, "--base", self.old)):
            text = self.report(*words)
            self.assertRegex(text, r"note: .*no names in")
            self.assertRegex(text, r" \? .* site_a\n")
            self.assertNotRegex(text, r" (gone|new)  +\[")
            data = json.loads(self.report(*words, "--json"))
            table = data["tree" if words[0] == "tree" else "functions"]
            self.assertTrue(table)
            self.assertFalse([r for r in table if r["is_told"]])
            self.assertFalse([r for r in table
                              if r["name"] in ("site_a", "[unknown]")
                              and r["is_comparable"]])
        base = os.path.join(self.dir, "base.json")
        self.assertIn("no names in", self.report(
            "check", self.old, "--baseline", base, "--update-baseline"))
        self.check(self.new, base, "sites=+10%&64K", code=4)

    def test_names_that_were_kept(self):
        text = self.check(self.new, self.named, "sites=+10%&64K", code=3)
        self.assertIn("site_a", text)
        self.assertNotIn("no names", text)
        text = self.report("diff", self.named, self.new)
        self.assertRegex(text, r"\+[0-9.]+ MiB +\[.*  site_a\n")
        self.assertNotIn("no names", text)


class Phases(Gate):
    """Totals and functions by phase, from profiles and from a baseline."""

    def phases(self, load):
        result = self.execute(
            self.programs["gated"], "c:1024:2000", "mark=load",
            f"b:256:{load}", "mark=serve", "a:128:20000", period="4K")
        return result.profile().require_samples(100).path

    def test_growth_in_one_phase(self):
        old, new = self.phases(10000), self.phases(10600)
        base = os.path.join(self.dir, "base.json")
        self.report("check", old, "--baseline", base, "--update-baseline")
        with open(base, encoding="utf-8") as f:
            phases = json.load(f)["runs"][0]["phases"]
        self.assertGreaterEqual(phases["load"]["alloc_bytes"], 2560000)
        self.assertLess(phases["load"]["alloc_bytes"], 2570000)
        for side in (old, base):
            text = self.check(new, side, "alloc_bytes@load=+3%",
                              "alloc_bytes@serve=+-1%",
                              "alloc_objects@serve=+-1%&10",
                              "alloc_bytes=+3%", code=3)
            self.assertRegex(text, r"REGRESSION +alloc_bytes@load.*\+6\.")
            self.assertEqual(text.count("pass "), 3)
            self.check(new, side, "alloc_bytes@load=+10%")

        # a phase has no totals of the run
        part = json.loads(self.report("diff", "--json", "--phase", "load",
                                      old, new))
        self.assertEqual(list(part["totals"]), ["chosen_bytes"])
        self.assertEqual([r["name"] for r in part["functions"]], ["site_b"])
        rows = list(csv.DictReader(io.StringIO(self.report(
            "--by", "phase", "--csv", new, "--base", old))))
        load = [r for r in rows if r["name"] == "load"]
        self.assertEqual([r["table"] for r in load],
                         ["phases", "phases_objects"])
        self.assertTrue(float(load[0]["change_lo"]) <= 256 * 600 <=
                        float(load[0]["change_hi"]))
        self.assertTrue(float(load[1]["change_lo"]) <= 600 <=
                        float(load[1]["change_hi"]))

    def test_functions_in_one_phase(self):
        """What moves from one phase to the other is the same in all."""
        # The seed makes the samples the same in every run.
        def record(seed, *specs):
            return self.execute(self.programs["gated"], *specs, period="4K",
                                seed=seed).profile().require_samples(100).path
        old = record("1", "mark=load", "a:128:20000", "b:256:8000",
                     "mark=serve", "a:128:10000", "b:256:8000")
        new = record("2", "mark=load", "a:128:10000", "b:256:8000",
                     "mark=serve", "a:128:20000", "b:256:8000")
        base = os.path.join(self.dir, "base.json")
        self.report("check", old, "--baseline", base, "--update-baseline")
        for side in (old, base):
            self.check(new, side, "sites=+-30%&200K", "site(^site_b)=+50%")
            self.check(new, side, "sites@load=+35%&64K",
                       "site(.)@load=+100%&1M")
            text = self.check(new, side, "sites@serve=+20%&64K",
                              "site(^site_b)@serve=+50%",
                              "site(^site_a)@serve=+10%", code=3)
            self.assertRegex(text, r"REGRESSION +sites@serve=.*, 1 beyond")
            self.assertRegex(text, r"REGRESSION +site\(\^site_a\)@serve")
            self.assertRegex(text, r"pass +site\(\^site_b\)@serve")
            # what explains it is what that phase has
            found = json.loads(self.check(new, side, "sites@serve=+20%&64K",
                                          code=3, form="json"))
            site = found["limits"][0]["explained_by"][0]
            self.assertEqual(site["function"], "site_a")
            self.assertTrue(site["old"]["lo"] <= 1280000 <=
                            site["old"]["hi"], site)
            self.assertTrue(site["new"]["lo"] <= 2560000 <=
                            site["new"]["hi"], site)
            text = self.check(new, side, "sites@load=+-20%&64K", code=3)
            self.assertRegex(text, "IMPROVED +sites@load")
            self.check(new, side, "sites@nothing=+1%", code=4)
        # a baseline of an earlier version has no call paths of phases
        with open(base, encoding="utf-8") as f:
            baseline = json.load(f)
        del baseline["phases"]
        with open(base, "w", encoding="utf-8") as f:
            json.dump(baseline, f)
        text = self.check(new, base, "sites@serve=+20%", code=4)
        self.assertIn("no call paths of that phase", text)
        self.check(new, base, "alloc_bytes@serve=+80%")


class Statuses(Gate):
    def test_matrix(self):
        old = self.record(period="64K")
        baseline = os.path.join(self.dir, "base.json")
        text = os.path.join(self.dir, "text.json")
        with open(text, "w", encoding="utf-8") as f:
            f.write("{\"a\": \n[}")
        limit = ("--limit", "alloc_bytes=+3%")
        new = self.record(period="64K", seed=2)
        comments = os.path.join(self.dir, "comments.limits")
        with open(comments, "w", encoding="utf-8") as f:
            f.write("# alloc_bytes = +3%\n\n")
        lines = os.path.join(self.dir, "lines.limits")
        with open(lines, "w", encoding="utf-8") as f:
            f.write("# one\nalloc_bytes = +3%\nsite(^parse_) = +50%\n")
        self.report("check", new, "--baseline", old, *limit)
        for code, message, words in (
                (1, "cannot be opened", ("/nonexistent", "--limit",
                                         "alloc_bytes=1")),
                (1, "cannot open", (old, "--baseline", baseline, *limit)),
                (1, "line 2: ", (old, "--baseline", text, *limit)),
                (1, "text.json", (old, "--limits", text)),
                (1, "", (text, "--baseline", old, *limit)),
                (1, "lines.limits: line 3: the pattern of site(^parse_) = "
                    "+50% matches no function of either side",
                 (new, "--baseline", old, "--limits", lines)),
                (2, "comments.limits has no limit",
                 (new, "--baseline", old, "--limits", comments)),
                (2, "there is no limit", (new, "--baseline", old)),
                (2, "--undecided", (new, *limit, "--undecided", "never")),
                (1, "is named twice", (old, "--baseline", old, *limit)),
                (1, "is named twice", (new, new, "--baseline", old,
                                       *limit)),
                (2, "give --baseline", (old, *limit)),
                (2, "no file was given", ()),
                (2, "all words after --baseline",
                 ("--baseline", old, old, *limit)),
                (2, "has no '='", (old, "--limit", "alloc_bytes")),
                (2, "none of text, json", (old, "--format", "html")),
                (2, "none of text, json", (old, "--format", "json=")),
                (2, "only one --format", (old, "--format", "json",
                                          "--format", "junit")),
                (2, "unknown option", (old, "--nothing")),
                (2, "FILE.json", (old, "--update-baseline")),
                (3, "", (old, "--limit", "alloc_bytes=1K")),
                (4, "", (new, "--baseline", old, "--limit",
                         "alloc_bytes@load=+3%")),
                (0, "", (new, "--baseline", old, "--undecided", "warn",
                         "--limit", "alloc_bytes@load=+3%")),
                (3, "", (new, "--baseline", old, "--undecided", "pass",
                         "--limit", "alloc_bytes@load=+3%", "--limit",
                         "alloc_bytes=1K"))):
            with self.subTest(words=words):
                # text.json is a file of limits that is none: usage
                code = 2 if text in words and "--limits" in words else code
                self.report("check", *words, code=code)
                self.assertIn(message, self.err)

    def test_pairs_that_cannot_be_compared(self):
        old = self.record()
        other = os.path.join(self.dir, "other")
        shutil.copy(self.programs["gated"], other)
        named = self.record(other)
        text = self.check(named, old, "alloc_bytes=+3%", code=4)
        self.assertIn("note: different programs: app, other", text)
        self.report("check", named, "--baseline", old, "--any-program",
                    "--limit", "alloc_bytes=+3%")
        self.assertIn("different sampling periods: 4 KiB, 8 KiB",
                      self.check(self.record(period="8K"), old,
                                 "alloc_bytes=+3%"))
        frees = self.record(env={"SAMPLEPROF_FREES": "off"})
        text = self.check(frees, old, "peak_bytes=+90%", code=4)
        self.assertIn("no frees", text)
        self.check(frees, old, "alloc_bytes=+3%")

    def test_killed_and_cut(self):
        old = self.record()
        with open(old, "rb") as f:
            data = f.read().rstrip(b"\0")
        cut = os.path.join(self.dir, "cut.sprof")
        with open(cut, "wb") as f:
            f.write(data[:len(data) // 2])
        old = self.record(seed=2)
        text = self.check(cut, old, "sites=+90%", code=4)
        self.assertRegex(text, "note: new: .*lower limits")
        self.assertIn("is not whole", text)
        self.assertNotIn("would find", text)
        text = self.check(cut, old, "live_bytes=+90%", code=4)
        self.assertRegex(text, r"B -> [^,]+, limits unknown\n")
        self.assertNotIn("would find", text)
        self.assertIn("is not whole",
                      self.check(old, cut, "alloc_bytes=+90%", code=4))
        # what is too much already stays too much
        self.report("check", cut, "--limit", "alloc_bytes=1K", code=3)
        self.report("check", cut, "--baseline",
                    os.path.join(self.dir, "b.json"), "--update-baseline",
                    code=4)
        self.assertIn("not written", self.err)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "b.json")))

    def test_sampling_was_off(self):
        """A profile without samples passes no limit, and is no baseline."""
        old, base = self.record(), os.path.join(self.dir, "b.json")
        specs = [f"{k}:{s}:{n}" for k, (s, n) in BASE.items()]
        off = self.execute(self.programs["gated"], *specs, period="4K",
                           env={"SAMPLEPROF_START": "off"}).profile()
        self.assertEqual(off.json["samples"], 0)
        self.assertGreater(off.exact[0], 20000000)
        for new, baseline, side in ((off.path, old, "new"),
                                    (old, off.path, "old")):
            for limit in ("sites=+25%&64K", "site(^site_a)=+-50%",
                          "live_bytes=+50%", "peak_bytes=+50%"):
                text = self.check(new, baseline, limit, code=4)
                self.assertIn(f"{side}: no samples cover 100 % of what "
                              "was allocated", text)
            self.check(new, baseline, "alloc_bytes=+3%")
            rows = json.loads(self.report("diff", "--json", baseline, new))
            self.assertRegex(rows["notes"][0], "no samples cover 100 %")
            self.assertGreater(len(rows["functions"]), 3)
            self.assertFalse([r for r in rows["functions"] if r["is_told"]])
        self.report("check", off.path, "--baseline", base,
                    "--update-baseline", code=4)
        self.assertIn("sampling was off", self.err)
        self.assertFalse(os.path.exists(base))

    def test_too_few_runs(self):
        """Two runs that differ much tell little of a third: the check does
        not say that it would find what is usual."""
        new, *old = (self.record(period="64K", seed=seed, a=(128, count))
                     for seed, count in ((1, 600000), (2, 300000), (3, 900000)))
        answer = json.loads(self.report(
            "check", new, "--baseline", *old, "--limit", "sites=+10%",
            "--undecided", "warn", "--format", "json"))["limits"][0]
        self.assertEqual(answer["verdict"], "cannot tell")
        growth = answer["detectable_growth"]
        self.assertTrue(growth is None or growth > 10, growth)
        fresh = answer.get("detectable_new_bytes")
        self.assertTrue(fresh is None or fresh > 1 << 30, fresh)

    def test_runs_have_seeds_of_their_own(self):
        """Runs of one side with one seed are no runs, also of a baseline; old
        and new may share one; a sum of processes with one seed has a note."""
        again, old, new, third = (self.record(period="64K", seed=seed)
                                  for seed in (1, 1, 2, 3))
        base = os.path.join(self.dir, "base.json")
        limit = "alloc_bytes=+3%"
        self.check(new, [old, again], limit, code=1)
        self.assertIn("was recorded with the seed of " + old, self.err)
        self.check([again, old], new, limit, code=1)
        self.report("diff", new, "--baseline", old, again, code=1)
        self.check(again, old, limit)
        self.report("check", old, new, "--baseline", base,
                    "--update-baseline")
        self.check([again], [base], limit)
        self.check(third, [again, base], limit, code=1)
        self.assertIn("was recorded with the seed of " + again, self.err)
        note = "1 of 3 processes has the seed of another"
        self.assertIn(note, " ".join(
            self.report("top", old, new, again).split()))
        self.assertNotIn("the seed of", self.report("top", old, new))

    def test_one_recording_is_one_run(self):
        """Copies, packed ones too, and the baseline that was made of it."""
        old, new = (self.record(period="64K", seed=seed) for seed in (1, 2))
        copy = os.path.join(self.dir, "copy.sprof")
        shutil.copy(old, copy)
        packed = os.path.join(self.dir, "packed.sprof.zst")
        self.report("symbolize", old, "-o", packed)
        base = os.path.join(self.dir, "base.json")
        for _ in range(2):  # again: a baseline may be written twice
            self.report("check", old, "--baseline", base,
                        "--update-baseline")
        for same in (copy, packed, base):
            self.check(old, same, "alloc_bytes=+3%", code=1)
            self.assertIn("is the same recording as", self.err)
            self.report("diff", same, old, code=1)
            self.check([new], [old, same], "alloc_bytes=+3%", code=1)
        self.report("top", old, "--base", copy, code=1)
        self.report("top", old, new, "--base", copy, code=1)
        self.report("check", old, copy, "--baseline", base,
                    "--update-baseline", code=1)
        self.check(new, base, "alloc_bytes=+3%")

    def test_maximum_of_nothing(self):
        """A function that does not allocate keeps any maximum; where that
        was sampled, the interval has to keep it."""
        for period, limit, code, words in (
                ("1", "site(^no_such$)=0", 0, "no function on a recorded"),
                ("1", "module(no_such)=0", 0, "no module on a recorded"),
                ("4K", "site(^no_such$)=0", 4, "a smaller period"),
                ("4K", "site(^no_such$)=1M", 0, "no function on a recorded")):
            run = self.record(period=period, seed=3)
            done = self.report("check", run, "--limit", limit, code=code)
            self.assertIn(words, " ".join(done.split()))
        # The pool of libstdc++ is no function of the program.
        path = self.execute(harness.target("program_cxx_names"),
                            period="1").profile().path
        self.report("check", path, "--limit", "site(^no_such$)=0")

    def test_maximum_without_names(self):
        """What has no name may be what is meant."""
        program = os.path.join(self.dir, "stripped")
        subprocess.run(["strip", "-o", program,
                        harness.target("program_gated")], check=True)
        path = self.execute(program, "a:128:2000", period="1",
                            seed=3).profile().require_samples(100).path
        done = self.report("check", path, "--limit", "site(^site_a$)=0",
                           code=4)
        self.assertIn("no function matches, but some have no names", done)

    def test_too_few_samples(self):
        old = self.record()
        new = self.record(seed=2)
        text = self.check(new, old, "live_bytes=+1%", code=4)
        self.assertRegex(text, r"run --period [0-9]+K? \([0-9.]+ \w+ or less\)")

    def test_baseline(self):
        path = os.path.join(self.dir, "base.json")
        runs = [self.record(seed=i) for i in range(3)]
        self.assertIn("new baseline of 3 runs",
                      self.report("check", *runs, "--baseline", path,
                                  "--update-baseline"))
        with open(path, encoding="utf-8") as f:
            text = f.read()
        baseline = json.loads(text)
        self.assertEqual(len(baseline["runs"]), 3)
        self.assertNotRegex(text, r"0x|\.c:|\+0x")
        self.assertLess(len(text), 20000)
        paths = [p["path"] for p in baseline["views"]["alloc"]]
        self.assertEqual(paths, sorted(paths))
        self.assertIn("site_a [in gated.c]", [p[0] for p in paths])
        # the same verdict as with the profiles themselves
        limits = ("sites=+15%", "alloc_bytes=+0.5%", "live_bytes=+30%",
                  "site(^site_b)=+-30%", "peak_bytes=+50%")
        new = self.record(a=(128, 60000), seed=8)
        by_json = json.loads(self.check(new, path, *limits, code=3,
                                        form="json"))
        by_runs = json.loads(self.check(new, runs, *limits, code=3,
                                        form="json"))
        for a, b in zip(by_json["limits"], by_runs["limits"]):
            self.assertEqual(a["verdict"], b["verdict"])
            if a["change"]:
                self.assertAlmostEqual(a["change"]["hi"] / b["change"]["hi"],
                                       1, 4)
        updated = self.report("check", new, "--baseline", path,
                              "--update-baseline")
        self.assertRegex(updated, r"\+1\.\d* MiB +exact  alloc_bytes\n")
        self.assertRegex(updated, "site_a")
        # a later version is not touched
        baseline["version"] = 2
        with open(path, "w", encoding="utf-8") as f:
            json.dump(baseline, f)
        for words in (("--limit", "sites=+1%"), ("--update-baseline",)):
            self.report("check", new, "--baseline", path, *words, code=1)
            self.assertIn("a baseline of version 2", self.err)

    def test_evidence(self):
        old, new = self.record(), self.record(a=(128, 70000), seed=2)
        kept = os.path.join(self.dir, "evidence")
        self.report("check", new, "--baseline", old, "--evidence", kept,
                    "--limit", "alloc_bytes=+90%")
        self.assertFalse(os.path.exists(kept))
        text = self.report("check", new, "--baseline", old, "--evidence",
                           kept, "--limit", "alloc_bytes=+1%", code=3)
        names = sorted(os.listdir(kept))
        self.assertEqual(len(names), 4, names)
        with open(os.path.join(kept, "check.txt"), encoding="utf-8") as f:
            self.assertEqual(f.read(), text)
        # what was kept gives the same answer again
        new, old = (os.path.join(kept, n) for n in names[2:])
        self.check(new, old, "alloc_bytes=+1%", code=3)
