# SPDX-License-Identifier: MIT
"""diff and check on programs that count what they allocate: planted changes,
exit statuses, every format through a reader of its own, and docs/ci.md as it
stands."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import xml.dom.minidom

import harness

HERE = os.path.dirname(os.path.abspath(__file__))
CI = os.path.join(HERE, "..", "..", "docs", "ci.md")

# What the program does unless a test says otherwise: 24 MB in four functions.
BASE = {"a": (128, 50000), "b": (256, 25000), "c": (1024, 10000),
        "d": (64, 24000), "keep": (100, 4000)}

HOSTILE = "x<b>&\"'%0A|`$(id)`]]>::error::\u202e\ufffe,"


class Gate(harness.Case):
    def setUp(self):
        super().setUp()
        self.programs = {}
        for name in ("gated", "gated_moved", "gated_renamed"):
            path = os.path.join(self.dir, name, "app")
            os.mkdir(os.path.dirname(path))
            shutil.copy(harness.target("e2e_" + name), path)
            self.programs[name] = path

    def record(self, program="gated", period="4K", env=None, seed=1,
               **changes):
        """The profile of a run with these changes to BASE: a=(128, 60000)."""
        work = dict(BASE, **changes)
        if period == "1":  # every object is a sample
            work = {k: (s, n // 20) for k, (s, n) in work.items()}
        specs = [f"{k}:{s}:{n}" for k, (s, n) in work.items() if n]
        path = self.programs.get(program, program)
        result = self.execute(path, *specs, period=period, env=env,
                              seed=seed)
        profile = result.profile().require_samples(
            1 if period == "1" else 100)
        _, *truth = result.stdout.decode().split()
        self.assertGreaterEqual(profile.exact[0], int(truth[0]))
        return profile.path

    def report(self, *words, code=0, stdin=None):
        done = subprocess.run(
            [os.environ["SAMPLEPROF_REPORT"], *words], capture_output=True,
            input=stdin, timeout=harness.TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, code,
                         f"{words}: {done.stdout.decode()}"
                         f"{done.stderr.decode()}")
        self.err = done.stderr.decode()
        return done.stdout.decode()

    def check(self, new, old, *limits, code=0, form="text"):
        new = [new] if isinstance(new, str) else new
        old = [old] if isinstance(old, str) else old
        words = [w for x in limits for w in ("--limit", x)]
        return self.report("check", *new, "--baseline", *old, *words,
                           "--format", form, code=code)


class Planted(Gate):
    def test_growth_of_the_total(self):
        old = self.record()
        total = sum(s * n for s, n in BASE.values())
        for percent in (1, 3, 10):
            more = total * percent // 100 // 128
            new = self.record(a=(128, 50000 + more), seed=2)
            text = self.check(new, old, "alloc_bytes=+0.5%", code=3)
            self.assertRegex(text, rf"REGRESSION.*\+{percent}\.[0-9]+ % "
                             r"\(exact\)")
            self.check(new, old, f"alloc_bytes=+{percent + 1}%")
        # with 10 % of all in one function, that function is named
        self.assertIn("site_a < work < main", text)

    def test_nothing_changed(self):
        old, new = self.record(), self.record(seed=7)
        self.check(new, old, "alloc_bytes=+-0%", "alloc_objects=+-0%",
                   "sites=+-10%", "peak_bytes=+150%", "live_bytes=+-50%",
                   "site(^site_[ab]$)=+-25%", "temporary_bytes=+-5%")

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
        text = self.check(new, old, "sites=+10%", "alloc_bytes=+0%")
        self.assertIn("taken for renamed: site_c -> site_renamed", text)
        self.assertIn("site_c -> site_renamed", self.report("diff", old, new))

    def test_moved(self):
        old, new = self.record(), self.record("gated_moved", seed=6)
        self.check(new, old, "sites=+-10%", "alloc_bytes=+-0%")
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
        runs = [self.record(noise=(512, 40000), seed=i) for i in range(10)]
        self.check(runs[:5], runs[5:], "alloc_bytes=+25%", "sites=+0%")
        # two runs that differ: chance may have made neighbours alike
        ranked = sorted(runs, key=lambda run: harness.Profile(run).json[
            "exact"]["alloc_bytes"])
        text = self.check(ranked[0], ranked[-1], "alloc_bytes=+-0%", code=3)
        self.assertIn("exact", text)
        # the same limit with the noise known: it cannot be told
        text = self.check(runs[:5], runs[5:], "alloc_bytes=+-0%", code=4)
        self.assertIn("CANNOT TELL", text)


class Phases(Gate):
    """Exact totals by phase, from profiles and from a baseline."""

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


class Statuses(Gate):
    def test_matrix(self):
        old = self.record()
        baseline = os.path.join(self.dir, "base.json")
        text = os.path.join(self.dir, "text.json")
        with open(text, "w", encoding="utf-8") as f:
            f.write("{\"a\": \n[}")
        limit = ("--limit", "alloc_bytes=+3%")
        self.report("check", old, "--baseline", old, *limit)
        for code, message, words in (
                (1, "cannot be opened", ("/nonexistent", "--limit",
                                         "alloc_bytes=1")),
                (1, "cannot open", (old, "--baseline", baseline, *limit)),
                (1, "line 2: ", (old, "--baseline", text, *limit)),
                (1, "text.json", (old, "--limits", text)),
                (1, "", (text, "--baseline", old, *limit)),
                (2, "give --baseline", (old, *limit)),
                (2, "no file was given", ()),
                (2, "all words after --baseline",
                 ("--baseline", old, old, *limit)),
                (2, "has no '='", (old, "--limit", "alloc_bytes")),
                (2, "none of text, json", (old, "--format", "html")),
                (2, "none of text, json", (old, "--format", "json=")),
                (2, "only one --format", (old, "--format", "json",
                                          "--format", "junit")),
                (2, "unknown or ambiguous", (old, "--nothing")),
                (2, "FILE.json", (old, "--update-baseline")),
                (3, "", (old, "--limit", "alloc_bytes=1K")),
                (4, "", (old, "--baseline", old, "--limit",
                         "alloc_bytes@load=+3%"))):
            with self.subTest(words=words):
                # text.json is a file of limits that is none: usage
                code = 2 if "--limits" in words else code
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
        text = self.check(cut, old, "sites=+90%", code=4)
        self.assertRegex(text, "note: new: .*lower limits")
        self.assertIn("is not whole", text)
        self.assertIn("is not whole",
                      self.check(old, cut, "alloc_bytes=+90%", code=4))
        # what is too much already stays too much
        self.report("check", cut, "--limit", "alloc_bytes=1K", code=3)
        self.report("check", cut, "--baseline",
                    os.path.join(self.dir, "b.json"), "--update-baseline",
                    code=4)
        self.assertIn("not written", self.err)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "b.json")))

    def test_too_few_samples(self):
        old = self.record()
        new = self.record(seed=2)
        text = self.check(new, old, "live_bytes=+1%", code=4)
        self.assertRegex(text, r"period of [0-9.]+ \w+ or less")

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
        self.assertIn("site_a", [p[0] for p in paths])
        # the same verdict as with the profiles themselves
        limits = ("sites=+10%", "alloc_bytes=+0.5%", "live_bytes=+30%",
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
        self.assertRegex(updated, r"EXACT +alloc_bytes .*\+5\.")
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


class Diff(Gate):
    def test_forms(self):
        old, new = self.record(), self.record(a=(128, 100000), seed=2)
        text = self.report("diff", old, new, "--stacks", "2")
        self.assertRegex(text, r"EXACT +alloc_objects +113,")
        first = re.search(r"function \(flat\)\n(.*)\n", text).group(1)
        self.assertRegex(first, r"\+[0-9.]+ MiB +\+[0-9.]+ % .* site_a$")
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
        self.assertEqual(rows[0]["function"], "site_a")
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
        self.assertEqual(part["totals"], {})
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


class Formats(Gate):
    """Each format through a reader of its own, with hostile names in all."""

    def setUp(self):
        super().setUp()
        program = os.path.join(self.dir, HOSTILE.replace("/", ""))
        shutil.copy(self.programs["gated"], program)
        self.new = self.record(program)
        base = os.path.join(self.dir, "base.json")
        self.report("check", self.new, "--baseline", base,
                    "--update-baseline")
        with open(base, encoding="utf-8") as f:
            baseline = json.load(f)
        # a function of hostile name that is gone
        gone = dict([p for p in baseline["views"]["alloc"]
                     if p["path"][0] == "site_a"][0], path=[HOSTILE, "main"])
        baseline["views"]["alloc"].append(gone)
        with open(base, "w", encoding="utf-8") as f:
            json.dump(baseline, f)
        self.limits = os.path.join(self.dir, "limits,%:x")
        with open(self.limits, "w", encoding="utf-8") as f:
            f.write("alloc_bytes = +1%\n"
                    "site(<&\"'>%)=+1%\n"
                    "sites = +-50%\n"
                    "peak_bytes = 1K\n"
                    "alloc_bytes@<b> = +1%\n")
        self.words = ("check", self.new, "--baseline", base, "--limits",
                      self.limits)

    def test_all(self):
        for name in ("text", "junit", "github", "summary", "metrics", "json",
                     "series"):
            with self.subTest(name):
                getattr(self, "read_" + name)()

    def write(self, form):
        text = self.report(*self.words, "--format", form, code=3)
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
        return text

    def read_text(self):
        text = self.write("text")
        self.assertRegex(text, "REGRESSION +peak_bytes")
        self.assertRegex(text, "IMPROVED +sites")
        self.assertRegex(text, "gone +x<b>")
        self.assertRegex(text, "CANNOT TELL +alloc_bytes@<b>")

    def read_junit(self):
        path = os.path.join(self.dir, "junit.xml")
        self.report(*self.words, "--format", "junit=" + path, code=3)
        done = subprocess.run(
            [harness.require("xmllint", "libxml2-utils"), "--noout",
             "--schema", os.path.join(HERE, "junit.xsd"), path],
            capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        suites = xml.dom.minidom.parse(path)
        suite = suites.getElementsByTagName("testsuite")[0]
        self.assertEqual([suite.getAttribute(a) for a in
                          ("tests", "failures", "errors")], ["5", "2", "2"])
        cases = suites.getElementsByTagName("testcase")
        self.assertEqual(cases[1].getAttribute("name"),
                         "site(<&\"'>%)=+1%")
        self.assertIn("x<b>&\"'%0A", cases[2].toxml()
                      .replace("&lt;", "<").replace("&gt;", ">")
                      .replace("&quot;", '"').replace("&amp;", "&"))
        # the schema does refuse something
        with open(path, encoding="utf-8") as f:
            bad = f.read().replace(" classname=", " class=")
        with open(path, "w", encoding="utf-8") as f:
            f.write(bad)
        self.assertNotEqual(subprocess.run(
            ["xmllint", "--noout", "--schema",
             os.path.join(HERE, "junit.xsd"), path], capture_output=True,
            check=False).returncode, 0)

    def read_github(self):
        lines = self.write("github").splitlines()
        self.assertEqual(len(lines), 4)
        for line in lines:
            command, properties, message = re.fullmatch(
                r"::(error|warning) ([^:\n]*)::(.*)", line).groups()
            names = [p.split("=")[0] for p in properties.split(",")]
            self.assertEqual(names, ["file", "line", "title"])
            self.assertNotRegex(properties + message, "%(?!25|0A|0D|3A|2C)")
            self.assertEqual(command == "warning", "cannot tell" in message)
        self.assertIn("line=3,", lines[1])
        self.assertIn("limits%2C%25%3Ax", lines[0])

    def read_summary(self):
        path = os.path.join(self.dir, "summary.md")
        for _ in range(2):
            self.report(*self.words, "--format", "summary=" + path, code=3)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        self.assertEqual(text.count("### Heap of"), 2)
        for line in text.splitlines():
            if line.startswith("| "):
                self.assertEqual(line.count("|"), 4, line)
        self.assertNotRegex(text, "[<`]")

    def read_metrics(self):
        text = self.write("gitlab")
        self.assertTrue(text.endswith("# EOF\n"))
        families, sample = [], re.compile(
            r"(sampleprof_[a-z_]+)\{((?:[a-z]+=\"(?:[^\"\\]|\\.)*\",?)+)\} "
            r"[0-9]+")
        for line in text.splitlines()[:-1]:
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                self.assertEqual(kind, "gauge")
                self.assertNotIn(name, families)
                families.append(name)
            else:
                self.assertEqual(sample.fullmatch(line).group(1),
                                 families[-1])
        self.assertIn("sampleprof_peak_bytes_upper", families)

    def read_json(self):
        import jsonschema  # pylint: disable=import-outside-toplevel
        with open(os.path.join(HERE, "check.schema.json"),
                  encoding="utf-8") as f:
            schema = json.load(f)
        data = json.loads(self.write("json"))
        jsonschema.validate(data, schema)
        self.assertEqual(data["verdict"], "regression")
        self.assertEqual([x["verdict"] for x in data["limits"]],
                         ["pass", "cannot tell", "improved", "regression",
                          "cannot tell"])
        del data["limits"][0]["verdict"]
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate(data, schema)

    def read_series(self):
        measures = list(json.loads(self.write("bencher")).values())[0]
        self.assertIn("alloc_objects", measures)
        for value in measures.values():
            self.assertEqual(sorted(value),
                             ["lower_value", "upper_value", "value"])
            self.assertTrue(value["lower_value"] <= value["value"] <=
                            value["upper_value"])
        rows = json.loads(self.write("benchmark-action"))
        for row in rows:
            self.assertEqual(sorted(row), ["name", "range", "unit", "value"])
        # benchstat: lines begin with Benchmark and no small letter, then
        # the number of iterations, then pairs of a value and a unit
        lines = self.write("gobench").splitlines()
        self.assertEqual(lines[:2], ["Unit B/op assume=exact",
                                     "Unit allocs/op assume=exact"])
        name, n, *pairs = lines[2].split()
        self.assertRegex(name, r"^Benchmark[A-Z][\w./]*$")
        self.assertEqual(n, "1")
        self.assertEqual(len(pairs) % 2, 0)
        self.assertEqual(pairs[1], "B/op")
        self.assertGreater(int(pairs[0]), 20000000)


class RealProgram(Gate):
    """xmllint reads elements with an attribute, and without."""

    def profile(self, attribute, period):
        path = os.path.join(self.dir, "x.xml")
        with open(path, "w", encoding="utf-8") as f:
            f.write("<r>" + f"<item id='1'{attribute}>text</item>" * 10000 +
                    "</r>")
        result = self.execute(harness.require("xmllint", "libxml2-utils"),
                              "--noout", path, period=period, seed=1)
        return result.profile().require_samples().path

    def test_explanation(self):
        """What is named at 2 KiB is what period 1 counts."""
        exact = json.loads(self.report(
            "diff", "--json", *(self.profile(a, "1")
                                for a in ("", " more='value'"))))
        truth = {r["name"]: r["change"]["value"] for r in exact["functions"]}
        old, new = (self.profile(a, "2K") for a in ("", " more='value'"))
        checked = json.loads(self.check(new, old, "sites=+10%",
                                        "alloc_bytes=+3%", code=3,
                                        form="json"))
        named = [c for c in checked["limits"][0]["explained_by"]
                 if "function" in c]
        self.assertEqual({c["function"] for c in named},
                         {n for n, v in truth.items() if v > 10000})
        for c in named:
            self.assertTrue(c["change"]["lo"] <= truth[c["function"]] <=
                            c["change"]["hi"], c)


APP = """
#include <stdlib.h>
static void *volatile sink;
__attribute__((noinline)) static void parse_all(void)
{
	for (int i = 0; i < 400000; i++) {
		sink = malloc(200);
		free(sink);
	}
}
int main(void)
{
	parse_all();
	sink = malloc(1000);
	return 0;
}
"""

MAKE_APP = "app: app.c\n\tcc -g -O1 -fno-builtin app.c -o app\n"


class Documented(harness.Case):
    """docs/ci.md, block by block, with the installed programs."""

    @classmethod
    def setUpClass(cls):
        with open(CI, encoding="utf-8") as f:
            cls.text = f.read()

    def setUp(self):
        super().setUp()
        self.prefix = os.path.join(self.dir, "prefix")
        build = os.path.dirname(os.path.dirname(
            os.environ["SAMPLEPROF_TARGETS"].rstrip("/")))
        self.run_in(None, "cmake", "--install", build, "--prefix",
                    self.prefix)
        self.work = os.path.join(self.dir, "work")
        os.mkdir(self.work)
        self.put("app.c", APP)
        self.put("Makefile", MAKE_APP)
        self.put("heap.limits", self.blocks("limits")[0])
        self.shell("make app")

    def put(self, name, text):
        with open(os.path.join(self.work, name), "w", encoding="utf-8") as f:
            f.write(text)

    def blocks(self, kind):
        found = re.findall(rf"<!-- try: {kind} -->\n\n(?:```\w+\n(.*?)```|"
                           r"((?:    [^\n]*\n|\n)+))", self.text, re.S)
        self.assertTrue(found, kind)
        return [fenced or re.sub("^    ", "", indented, flags=re.M)
                for fenced, indented in found]

    def environment_of(self):
        env = self.environment(shim=False)
        library = os.path.dirname(subprocess.run(
            ["find", self.prefix, "-name", "libsampleprof.so"],
            capture_output=True, check=True).stdout.decode().strip())
        env.update(PATH=f"{self.prefix}/bin:{env['PATH']}",
                   LD_LIBRARY_PATH=library, SAMPLEPROF_SEED="1",
                   CMAKE_PREFIX_PATH=self.prefix,
                   GITHUB_STEP_SUMMARY=os.path.join(self.dir, "summary.md"))
        return env

    def run_in(self, env, *argv, code=0):
        done = subprocess.run(argv, cwd=getattr(self, "work", None), env=env,
                              capture_output=True,
                              timeout=harness.TIMEOUT_S, check=False)
        text = done.stdout.decode() + done.stderr.decode()
        self.assertEqual(done.returncode, code, f"{argv}: {text}")
        return text

    def shell(self, script, code=0):
        return self.run_in(self.environment_of(), "bash", "-ec", script,
                           code=code)

    def make_baseline(self):
        self.shell(self.blocks("shell")[0])
        self.assertTrue(os.path.exists(os.path.join(self.work, "heap.json")))

    def grow(self):
        self.put("app.c", APP.replace("malloc(200)", "malloc(260)"))

    def test_shell(self):
        for block in self.blocks("shell"):
            self.assertIn("pass: 0 of 2 limits", self.shell(block))

    def test_yaml(self):
        import yaml  # pylint: disable=import-outside-toplevel
        self.make_baseline()
        github = yaml.safe_load(self.blocks("github")[0])
        steps = [s["run"] for s in github["jobs"]["heap"]["steps"]
                 if "run" in s]
        gitlab = yaml.safe_load(self.blocks("gitlab")[0])
        for script, mark in ((steps, "::error file=heap.limits,line="),
                             (gitlab["heap"]["script"], "REGRESSION")):
            shutil.rmtree(os.path.join(self.work, "heap"),
                          ignore_errors=True)
            self.put("app.c", APP)
            for line in script:
                self.shell(line)
            shutil.rmtree(os.path.join(self.work, "heap"))
            self.grow()
            for line in script[:-1]:
                self.shell(line)
            self.assertIn(mark, self.shell(script[-1], code=3))
            self.assertTrue(os.path.exists(os.path.join(
                self.work, "heap/evidence/check.txt")))
        for name in gitlab["heap"]["artifacts"]["reports"].values():
            self.assertTrue(os.path.exists(os.path.join(self.work, name)))
        self.assertTrue(os.path.exists(os.path.join(self.dir, "summary.md")))

    def test_make(self):
        self.make_baseline()
        self.put("Makefile", MAKE_APP + self.blocks("make")[0])
        self.shell("make check-heap")
        self.grow()
        self.assertIn("REGRESSION", self.shell("make check-heap", code=2))

    def test_cmake(self):
        self.put("CMakeLists.txt", self.blocks("cmake")[0])
        self.shell("cmake -S . -B b && cmake --build b")
        self.shell("cd b && SAMPLEPROF_UPDATE_BASELINE=1 ctest -R heap")
        self.shell("cd b && ctest -R heap")
        self.grow()
        self.shell("cmake --build b")
        self.assertIn("REGRESSION", self.shell(
            "cd b && ctest -R heap --output-on-failure", code=8))
        self.assertTrue(os.path.exists(os.path.join(
            self.work, "b/gate-heap/junit.xml")))


if __name__ == "__main__":
    harness.main()
