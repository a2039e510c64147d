# SPDX-License-Identifier: MIT
"""The rows of one recording have the same values in every output, each read by
that format's usual reader if there is one.

The page is compared with --json and with diff in programs.page and programs.page_diff.
"""

import collections
import csv
import io
import json
import os
import re
import signal
import subprocess

import figures
import gopprof
import harness

VIEWER = "/usr/libexec/valgrind/dh_view.js"
HERE = os.path.dirname(os.path.abspath(__file__))
# Some sites of a few samples to some hundred, two of which share a size.
SITES = ("a:48:12000", "b:80:9000", "c:120:6000", "d:2000:90", "e:64:5000",
         "f:64:900", "keep:96:9000")
PERIOD = 8192


def report(*arguments, codes=(0,)):
    done = harness.run_report(*arguments)
    if done.returncode not in codes:
        raise AssertionError(f"{arguments}: {done.stderr.decode()}")
    return done.stdout.decode()


class OneValue(harness.Case):

    def setUp(self):
        super().setUp()
        runs = [self.execute(harness.target("program_gated"), *SITES,
                             period=PERIOD, seed=seed) for seed in (1, 2)]
        self.old, self.new = [run.paths[0] for run in runs]
        for run in runs:
            run.profile().require_samples(100)
        self.stacks = len(runs[1].profile().stacks)

    def shown(self, view="alloc"):
        """What the report shows: rows by name, (flat, cum), and their sum."""
        found = json.loads(report("--json", "--view", view, self.new))
        rows = {f["name"]: (f["flat_bytes"]["value"], f["cum_bytes"]["value"])
                for f in found["functions"]}
        self.assertGreater(len([r for r in rows.values() if r[0]]),
                           5 if view == "alloc" else 0)
        total = sum(flat for flat, _ in rows.values())
        # What was never sampled is in the row that has all samples.
        self.never = found["estimate"]["view_bytes"]["value"] - total
        self.assertGreater(self.never, -1)
        self.assertLess(self.never, 16 * PERIOD)
        return rows, total, found

    def export(self, form, *arguments):
        path = os.path.join(self.dir, "out." + form)
        report("export", form, *arguments, self.new, "-o", path)
        return path

    def near(self, got, want, roundings):
        self.assertLessEqual(abs(got - want), roundings + 1e-9 * want)

    def same_rows(self, got, want, roundings):
        """Of every function that either has, flat and cumulative."""
        for name in set(got) | set(want):
            for a, b in zip(got.get(name, (0, 0)), want.get(name, (0, 0))):
                self.assertLessEqual(abs(a - b), roundings + 1e-9 * b,
                                     (name, got.get(name), want.get(name)))

    def test_rows_add_up_to_what_is_exact(self):
        rows, total, found = self.shown()
        exact = found["exact"]["alloc_bytes"]
        # the samples alone say something else, or this compares nothing
        plain = json.loads(report("--json", "--estimator", "p3", self.new))
        off = abs(plain["estimate"]["view_bytes"]["value"] - exact)
        self.assertGreater(off, 0.002 * exact)
        self.assertLess(abs(total - exact), 0.5 * off)
        self.assertEqual(max(cum for _, cum in rows.values()),
                         found["estimate"]["view_bytes"]["value"])

    def test_text_csv_and_diff(self):
        rows, _, _ = self.shown()
        csv = {}
        for line in report("--csv", self.new).splitlines()[1:]:
            fields = re.findall(r'"([^"]*)"|([^,]+|(?<=,)(?=,))', line)
            values = [a or b for a, b in fields]
            csv[values[0]] = float(values[4]), float(values[8])
        self.assertEqual(csv, rows)
        diff = json.loads(report("diff", "--json", self.old, self.new))
        got = {row["name"].split("!")[-1]: row["new"]["value"]
               for row in diff["functions"]}
        for name in ("site_a", "site_b", "site_c", "site_d", "site_e",
                     "site_f"):
            self.near(got[name], rows[name][0], 0)
        text = {line.split()[-2]: line.split("[")[0].split()
                for line in report(self.new).splitlines()
                if re.search(r"\bsite_[a-f]  ", line)}
        table = {line.split()[-1]: line for line in
                 report("diff", self.old, self.new).splitlines()
                 if re.search(r"\bsite_[a-f]$", line)}
        self.assertGreater(len(table), 3)
        for name, line in table.items():
            if text.get(name) and not line.startswith("~"):
                self.assertIn(" ".join(text[name][:2]), line)

    def digits(self, *arguments, of="report"):
        """The document of --json, its numbers as they are written there."""
        return json.loads(report(of, "--json", *arguments), parse_int=str,
                          parse_float=lambda text: text.removesuffix(".0"))

    def same_digits(self, row, column, interval):
        """An interval of --json in three columns of --csv."""
        self.assertEqual(
            [row[column + end] for end in ("", "_lo", "_hi")],
            [interval[key] or "" for key in ("value", "lo", "hi")], column)

    def test_digits(self):
        """Of one question, each output has the very same digits."""
        for view in ("alloc", "live", "peak", "leaks", "temporary"):
            found = self.digits("--view", view, self.new)
            rows = self.csv("--view", view, self.new)
            self.assertEqual(len(rows), len(found["functions"]))
            for row, function in zip(rows, found["functions"]):
                self.assertEqual(row["function"], function["name"])
                for key in ("flat_bytes", "cum_bytes", "flat_objects",
                            "live_bytes"):
                    self.same_digits(row, key, function[key])
        for options in (("--simultaneous",),
                        ("--simultaneous", "--confidence", "99")):
            found = self.digits(*options, self.new)
            for row, function in zip(self.csv(*options, self.new),
                                     found["functions"]):
                self.same_digits(row, "flat_bytes", function["flat_bytes"])
        found = self.digits(self.new)
        rows = self.csv("--timeline", self.new)
        self.assertEqual(len(rows), len(found["timeline"]))
        for row, point in zip(rows, found["timeline"]):
            for key in ("live_bytes", "live_objects"):
                self.same_digits(row, key, point[key])
        self.same_digits(
            {"live_bytes" + end: rows[-1]["live_bytes" + end]
             for end in ("", "_lo", "_hi")}, "live_bytes",
            found["estimate"]["live_bytes"])

    def test_digits_of_commands(self):
        """Each command has the figures of the report: in this program each
        function has one call path."""
        for options in ((), ("--confidence", "99.9"), ("--view", "peak"),
                        ("--view", "live", "--confidence", "90")):
            found = self.digits(*options, self.new)
            rows = {f["name"]: f for f in found["functions"]}
            if "peak" in options:  # the head is about the moment of the rows
                for key in ("value", "lo"):
                    self.assertEqual(found["estimate"]["peak_bytes"][key],
                                     found["estimate"]["view_bytes"][key])
            tree = self.digits(*options, self.new, of="tree")["tree"]
            self.assertGreater(len(tree), 2)
            for node in tree:
                self.assertEqual(
                    (node["bytes"], node["flat_bytes"]),
                    (rows[node["name"]]["cum_bytes"],
                     rows[node["name"]]["flat_bytes"]), (options, node))
            for name in ("keeper", "main"):
                row, = self.digits(f"^{name}$", *options, self.new,
                                   of="peek")["functions"]
                for key in ("flat_bytes", "cum_bytes", "flat_objects"):
                    self.assertEqual(row[key], rows[name][key], options)
            traces = self.digits(*options, self.new, of="traces")["stacks"]
            self.assertEqual([s["bytes"] for s in traces],
                             [s["flat_bytes"] for s in found["stacks"]])
            self.assertEqual(found["functions"], self.digits(
                *options, self.new, of="top")["functions"])

    def test_digits_of_a_diff(self):
        """A side of a diff is the report on it; its CSV is its JSON."""
        for view in ("alloc", "live", "peak"):
            diff = json.loads(
                report("diff", "--json", "--view", view, self.old, self.new),
                parse_float=lambda text: text.removesuffix(".0"))
            sides = [{f["name"]: f["flat_bytes"]["value"] for f in
                      self.digits("--view", view, path)["functions"]}
                     for path in (self.old, self.new)]
            rows = {row["name"]: row for row in csv.DictReader(io.StringIO(
                report("diff", "--csv", "--view", view, self.old, self.new)))
                    if row["table"] == "functions"}
            self.assertGreater(len(rows), 0)
            for row in diff["functions"]:
                name = row["name"].split("!")[-1]
                for kind, side in zip(("old", "new"), sides):
                    self.assertEqual(row[kind]["value"], side.get(name, "0"),
                                     (view, name, kind))
                    self.assertEqual(rows[row["name"]][kind],
                                     row[kind]["value"])
                self.same_digits(rows[row["name"]], "change", row["change"])

    def same_figures(self, argv, texts, *options, skips=None,
                     as_json=("--json",), run=report):
        """Each figure with limits in the texts is one of --json, as
        figures.py writes that."""
        found = run(*argv, *as_json, *options, codes=(0, 1, 3, 4))
        if not found:  # nothing of this view is in that part
            return 0
        document, compared = json.loads(found), 0
        for extra in texts:
            text = "\n".join(
                line for line in run(*argv, *extra, *options,
                                     codes=(0, 3, 4)).splitlines()
                if not skips or not re.search(skips, line))
            unknown, n = figures.unknown_figures(text, document)
            self.assertEqual(unknown, [], (argv, extra, options, text))
            compared += n
        return compared

    def turned(self):
        """The last 64th of its samples is in the file, but for what lives."""
        run = self.execute(harness.target("program_gated"), "keep:96:5000",
                           "a:48:400000", "keep:200:3000", "b:80:900000",
                           period=256, max_file="1M", seed=5)
        self.assertTrue(json.loads(report(
            "--json", run.paths[0]))["whole"]["discarded"])
        return run.paths[0]

    def every_text(self, path, site, *options):
        """Of one question; how many figures were compared."""
        every = "--top=0", "--nodefraction=0"
        n = self.same_figures(["report"], (
            (), every, ("--cum", *every), ("--stacks", "100"),
            ("--cum", "--all-frames")), *options, path)
        n += self.same_figures(["top"], ((),), *options, path)
        if "--simultaneous" in options:
            return n
        n += self.same_figures(["tree"], ((), every[1:]), *options, path,
                               skips="other places?$")
        n += self.same_figures(["traces"], ((),), *options, path)
        n += self.same_figures(["peek", site], ((),), *options, path)
        return n

    @harness.nightly_too
    def test_text_is_json(self):
        """Every figure of every text of a question, of whole files, of one
        that has turned, and of parts."""
        paths = [(self.new, "main"), (self.turned(), "main")]
        for path, site in paths:
            for view in ("peak", "live", "alloc", "leaks")[
                    :harness.rounds(2, 4)]:
                for options in ((), ("--simultaneous",),
                                ("--simultaneous", "--confidence", "90"),
                                ("--confidence", "99.9"),
                                ("--estimator", "p3"),
                                ("--from", "20%", "--to", "80%"))[
                                    :harness.rounds(2, 6)]:
                    n = self.every_text(path, site, "--view", view, *options)
                    if not options and view != "leaks":
                        self.assertGreater(n, 20, (path, view))

    def test_text_of_a_diff_is_json(self):
        for view in ("alloc", "live", "peak")[:harness.rounds(3, 3)]:
            for confidence in ("95", "99.9"):
                options = ("--view", view, "--confidence", confidence)
                n = self.same_figures(["diff"], ((), ("--top=0",)), *options,
                                      self.old, self.new)
                self.assertGreater(n, 4)
        turned = self.turned()
        self.same_figures(["diff"], ((),), "--view", "live", self.old, turned)
        text = report("diff", "--view", "live", turned, self.new)
        self.assertRegex(text, r"at most [-+]\S+ .iB +peak_bytes\n")

    def test_text_of_check_leaks_and_fleet_is_json(self):
        grown = self.execute(
            harness.target("program_gated"), "a:48:30000", "keep:96:30000",
            *SITES[1:], period=PERIOD, seed=3).paths[0]
        for limit in ("sites=+1%", "site(site_[a-e])=+0%", "live_bytes=+0%",
                      "peak_bytes=+0%", "live_bytes=1M"):
            n = self.same_figures(
                ["check"], ((),), grown, "--limit", limit, "--baseline",
                self.old, as_json=("--format", "json"))
            self.assertGreater(n, 0, limit)
        path = self.execute(harness.target("program_leaky"), period=400,
                            seed=7).paths[0]
        self.assertGreater(self.same_figures(
            ["leaks"], ((), ("--top", "0")), path), 0)
        found = self.digits(path, of="leaks")
        rows = list(csv.DictReader(io.StringIO(report("leaks", "--csv", path))))
        self.assertEqual(len(rows), len(found["sites"]))
        for row, site in zip(rows, found["sites"]):
            for key in ("bytes_per_s", "bytes_per_mib", "second_half_bytes"):
                self.same_digits(row, key, site[key])
        database = f"--db=sqlite:{self.dir}/f.db"
        for argv in (("init",), ("add", self.old, self.new)):
            self.sampleprof("fleet", *argv, database)
        for page in ("report", "top", "live"):
            for confidence in ("95", "99.9"):
                self.assertGreater(self.same_figures(
                    ["fleet", page], ((),), database, "--confidence",
                    confidence, run=lambda *argv, codes=(): self.sampleprof(
                        *argv).stdout), 1, page)

    def test_at_least(self):
        """A lower bound is rounded down wherever it is printed: 93,400,000 B
        are 89.07 MiB, with what else dd allocates."""
        out = os.path.join(self.dir, "low", "dd.sprof")
        os.mkdir(os.path.dirname(out))
        process = self.start([harness.tool(), "run", "--out", out, "dd",
                              "bs=93400000", "status=none"], shim=False,
                             stdin=subprocess.PIPE)
        process.stdin.write(b"x")
        process.stdin.flush()
        self.assertEqual(process.stdout.read(1), b"x")
        pid = str(harness.Profile(out).json["pid"])
        self.assertRegex(self.sampleprof("ctl", pid, "status").stdout,
                         r"\nallocated at least 89\.0 MiB in ")
        self.assertIn(" 89.0 MiB+ ",
                      self.sampleprof("ls", os.path.dirname(out)).stdout)
        os.kill(int(pid), signal.SIGKILL)
        _, stderr = process.communicate(timeout=harness.TIMEOUT_S)
        self.assertIn(b" at least 89.0 MiB in ", stderr)
        self.assertIn(" at least 89.0 MiB in ", report(out))
        self.assertIn(" 89.0 MiB+ ",
                      self.sampleprof("ls", os.path.dirname(out)).stdout)

    def test_check_and_baseline(self):
        rows, _, _ = self.shown()
        base = os.path.join(self.dir, "base.json")
        report("check", self.new, "--update-baseline", "--baseline", base)
        for old in (self.new, base):
            checked = json.loads(report(
                "check", self.old, "--baseline", old, "--limit",
                "site(^site_a$)=+1000%", "--format", "json", codes=(0, 4)))
            self.near(checked["limits"][0]["old"]["value"],
                      rows["site_a"][0], 1e-3 * rows["site_a"][0] / 1000)

    def test_pprof(self):
        for view, kind in (("alloc", "alloc_space"), ("live", "inuse_space"),
                           ("peak", "inuse_space")):
            rows, total, _ = self.shown(view)
            path = self.export("pprof", "--view", view)
            got, seen, whole = gopprof.top(self.dir, path, kind)
            self.near(whole, total, 3 * self.stacks + 20)
            self.assertGreater(seen, 0)
            for name in got:
                if name in rows and name.startswith("site_"):
                    for a, b in zip(got[name], rows[name]):
                        self.near(a, b, 3 * self.stacks + 20)

    def test_speedscope_and_collapsed(self):
        for view in ("alloc", "live"):
            rows, total, _ = self.shown(view)
            got = collections.Counter()
            with open(self.export("collapsed", "--view", view),
                      encoding="utf-8") as file:
                for line in file:
                    path, weight = line.rsplit(" ", 1)
                    for name in set(path.split(";")):
                        got[name] += int(weight)
            for name in rows:
                self.near(got[name.replace(";", ":")], rows[name][1],
                          self.stacks + 1 + self.never)
            with open(self.export("speedscope"), encoding="utf-8") as file:
                found = json.load(file)
            part, = [p for p in found["profiles"] if p["name"] == view]
            self.near(part["endValue"], total, self.stacks + 1)

    def test_dhat_massif_jsonl_and_timeline(self):
        _, alloc, found = self.shown()
        _, peak, _ = self.shown("peak")
        _, live, at_end = self.shown("live")
        self.near(found["estimate"]["live_bytes"]["value"], live, 0)
        for key in ("value", "lo", "hi"):
            self.near(found["timeline"][-1]["live_bytes"][key],
                      at_end["estimate"]["live_bytes"][key], 0)
        text = subprocess.run(
            [harness.require("node", "nodejs"),
             os.path.join(HERE, "dh_view.js"),
             harness.require(VIEWER, "valgrind"), self.export("dhat")],
            capture_output=True, check=True, timeout=harness.TIMEOUT_S).stdout
        sums = json.loads(text)["sums"]
        for field, want in (("_totalBytes", alloc), ("_atTGmaxBytes", peak),
                            ("_atTEndBytes", live)):
            self.near(sums[field], want, self.stacks + 1)
        with open(self.export("massif"), encoding="utf-8") as file:
            snapshots = re.findall(r"mem_heap_B=(\d+)\n(?:.*\n){2}"
                                   r"heap_tree=(\w+)", file.read())
        self.near(int(snapshots[-1][0]), live, 1)
        self.near([int(b) for b, kind in snapshots if kind == "peak"][0],
                  peak, 1)
        for view, want in (("alloc", alloc), ("peak", peak), ("live", live)):
            with open(self.export("jsonl", "--view", view),
                      encoding="utf-8") as file:
                samples = [s for s in map(json.loads, file)
                           if s["type"] == "sample"]
            self.assertTrue(samples)
            self.near(sum(s["value_bytes"] for s in samples), want, 0.01)

    def phased(self):
        """Two runs with phases, and what is kept through both of them."""
        for seed, more, kind in ((3, 1, "old"), (4, 2, "new")):
            run = self.execute(
                harness.target("program_gated"), "a:48:12000", "keep:96:4000",
                "mark=load", "b:80:9000", f"keep:300:{900 * more}",
                "mark=serve", f"c:120:{6000 * more}", "keep:64:2000", "mark=load",
                "a:48:3000", period=2048, seed=seed)
            run.profile().require_samples(100)
            setattr(self, kind, run.paths[0])

    def found(self, path, *arguments):
        return json.loads(report("--json", *arguments, path))

    def csv(self, *arguments):
        return list(csv.DictReader(io.StringIO(report("--csv", *arguments))))

    def test_phases(self):
        """The rows of phases are what the report says of each, and add up."""
        self.phased()
        for view in ("alloc", "live", "peak"):
            whole = self.found(self.new, "--view", view)
            rows = {row["phase"]: row for row in self.csv(
                "--by", "phase", "--view", view, self.new)}
            self.assertEqual(set(rows), {"", "load", "serve"})
            self.near(sum(float(row["bytes"]) for row in rows.values()),
                      sum(f["flat_bytes"]["value"]
                          for f in whole["functions"]), 0.01)
            self.assertEqual(
                sum(int(row["samples"]) for row in rows.values()),
                sum(f["samples"] for f in whole["functions"]))
            self.assertEqual(
                sum(int(row["exact_bytes"]) for row in rows.values()),
                whole["exact"]["alloc_bytes"])
            self.assertEqual(
                {p["name"]: (str(p["alloc_bytes"]), str(p["alloc_objects"]))
                 for p in whole["phases"]},
                {name: (row["exact_bytes"], row["exact_objects"])
                 for name, row in rows.items()})
            for name, row in rows.items():
                if view == "peak":  # of a phase alone it is another moment
                    continue
                alone = self.found(self.new, "--view", view, "--phase",
                                   name or "(start)")
                for key, column in (("value", "bytes"), ("lo", "bytes_lo"),
                                    ("hi", "bytes_hi")):
                    self.near(float(row[column]),
                              alone["estimate"]["view_bytes"][key], 0.01)

    def test_phases_of_a_pair(self):
        self.phased()
        sides = [{p["name"] or "(start)": (p["alloc_bytes"],
                                           p["alloc_objects"])
                  for p in self.found(path)["phases"]}
                 for path in (self.old, self.new)]
        rows = self.csv("--by", "phase", "--base", self.old, self.new)
        for table, at in (("phases", 0), ("phases_objects", 1)):
            got = {row["name"]: row for row in rows if row["table"] == table}
            self.assertLessEqual({"load", "serve"}, set(got))
            for name, row in got.items():
                old, new = [side[name][at] for side in sides]
                self.assertEqual(
                    [int(row[key]) for key in ("old", "new", "change",
                                               "change_lo", "change_hi")],
                    [old, new, new - old, new - old, new - old], name)
        self.assertGreater(sides[1]["serve"][0], sides[0]["serve"][0])

    def test_diff_of_peaks_and_phases(self):
        """A row has on either side what the report has of that side."""
        self.phased()
        for question in (("--view", "peak"), ("--phase", "load"),
                         ("--phase", "serve", "--view", "peak"),
                         ("--phase", "serve", "--view", "live")):
            diff = json.loads(report("diff", "--json", *question, self.old,
                                     self.new))
            sides = [self.found(path, *question)
                     for path in (self.old, self.new)]
            wants = [{f["name"]: f["flat_bytes"] for f in side["functions"]
                      if f["samples"]} for side in sides]
            self.assertGreater(len(wants[1]), 0, question)
            rows = {row["name"].split("!")[-1]: row
                    for row in diff["functions"]}
            self.assertEqual(len(rows), len(diff["functions"]))
            self.assertEqual(set(rows), set(wants[0]) | set(wants[1]))
            for side, kind, want in zip(sides, ("old", "new"), wants):
                # the limits of a change are of the samples alone (E27)
                for name, row in rows.items():
                    self.near(row[kind]["value"],
                              want.get(name, {"value": 0})["value"], 0)
                # of all that was allocated, also what was never sampled
                self.near(sum(row[kind]["value"] for row in rows.values()),
                          side["estimate"]["view_bytes"]["value"],
                          16 * 2048 * ("--view" not in question))
                if "--phase" not in question:
                    for name in ("peak_bytes", "live_bytes"):
                        for key in ("value", "lo", "hi"):
                            self.near(diff["totals"][name][kind][key],
                                      side["estimate"][name][key], 0)

    def test_overloads_and_lambdas(self):
        """Each is a row of its own, under one name in every output."""
        run = self.execute(harness.target("program_gated_lambdas-g"), "9000",
                           "1000", "5000", "2000", period="1K")
        self.new = run.paths[0]
        self.stacks = len(run.profile().require_samples(1000).stacks)
        found = harness.with_frames(json.loads(report("--json", self.new)))
        own = {row["name"]: row["flat_bytes"]["value"]
               for row in found["functions"] if row["flat_bytes"]["value"]}
        self.assertEqual(set(own), {
            "shop::Cart::add(long)", "shop::Cart::add(double)",
            "main::{lambda(long)#1}::operator()",
            "main::{lambda(long)#2}::operator()"})
        # so unlike that no row has another one's value
        values = sorted(own.values())
        for less, more in zip(values, values[1:]):
            self.assertGreater(more - less, 1000 + 6 * self.stacks)
        self.assertEqual({s["frames"][0]["function"]
                          for s in found["stacks"]}, set(own))
        got, _, _ = gopprof.top(self.dir, self.export("pprof"), "alloc_space")
        self.same_own(own, {name: flat for name, (flat, _) in got.items()})
        with open(self.export("collapsed"), encoding="utf-8") as file:
            self.same_own(own, {path.split(";")[-1]: int(weight) for
                                path, weight in (line.rsplit(" ", 1)
                                                 for line in file)})
        with open(self.export("speedscope", "--view", "live"),
                  encoding="utf-8") as file:
            found = json.load(file)
        got, names = collections.Counter(), found["shared"]["frames"]
        for stack, weight in zip(found["profiles"][0]["samples"],
                                 found["profiles"][0]["weights"]):
            got[names[stack[-1]]["name"]] += weight
        self.same_own(own, got)
        with open(self.export("dhat"), encoding="utf-8") as file:
            found = json.load(file)
        got = collections.Counter()
        for point in found["pps"]:
            text = found["ftbl"][point["fs"][0]]
            got[re.sub(r"0x\w+: (.*) \(.*?\)$", r"\1", text)] += point["tb"]
        self.same_own(own, got)
        with open(self.export("jsonl", "--view", "live"),
                  encoding="utf-8") as file:
            stacks = [s for s in map(json.loads, file) if s["type"] == "stack"]
        self.assertLessEqual({s["frames"][0]["function"] for s in stacks},
                             set(own))
        text = report("--stacks", "20", self.new)
        self.assertEqual({re.sub(r"(| \(inline\))  .*", "", line) for line in
                          re.findall(r"\n#.*\n(?:    lifetime.*\n(?:      .*\n)?)?"
                                     r"    (.*)", text)}, set(own))

    def same_own(self, own, got):
        for name, value in own.items():
            self.near(got.get(name, 0), value, 3 * self.stacks + 20)
