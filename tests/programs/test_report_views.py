# SPDX-License-Identifier: MIT
"""The commands of the report with a program whose call tree is known.  Filters
of the report and of google/pprof give the same bytes for every function."""

import csv
import io
import json
import os

import gopprof
import harness
from harness import report as run

READ_LINE = {"load": 1000, "render": 2000}
PARSE_ITEM = 5 * 4 * 64
GROW = 2 * 3000
WORK = 4 * 500
MINE = "^(read_line|parse_item|grow|work)$"

SQL = """create table t(a, b);
with recursive c(i) as (select 1 union all select i + 1 from c where i < 9000)
insert into t select i, hex(zeroblob(i % 40)) from c;
create index x on t(b);
select count(distinct b) from t;
"""


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def exact(interval):
    """The value of an estimate that is none."""
    if interval["lo"] != interval["value"] != interval["hi"]:
        raise AssertionError(interval)
    return interval["value"]


class Views(harness.Case):
    kept = {}

    def keep(self, name, *command, **how):
        """The path of a profile that is recorded once."""
        if name not in Views.kept:
            result = self.execute(*command, **how)
            profile = result.profile()
            profile.require_samples(how.pop("samples", 20))
            with open(result.paths[0], "rb") as f:
                Views.kept[name] = f.read()
        path = os.path.join(self.dir, name + ".sprof")
        with open(path, "wb") as f:
            f.write(Views.kept[name])
        return path

    def setUp(self):
        super().setUp()
        self.path = self.keep("views", harness.target("program_views"), period=1)

    def text(self, *arguments):
        return run(*arguments, self.path)

    def json(self, *arguments):
        return json.loads(run(*arguments, "--json", self.path))

    def rows(self, *arguments):
        return table(run(*arguments, "--csv", self.path))

    # ---- top ----

    def test_top(self):
        rows = {r["function"]: r for r in self.rows("top")}
        for name, flat, cum in (
                ("read_line", 3000, 3000), ("load", 0, 1000),
                ("render", 0, 2000), ("parse_item", PARSE_ITEM, PARSE_ITEM),
                ("grow", GROW, GROW), ("parse", 0, PARSE_ITEM + GROW),
                ("work", WORK, WORK)):
            row = rows[name]
            for key, value in (("flat_bytes", flat), ("cum_bytes", cum)):
                for end in ("", "_lo", "_hi"):
                    self.assertEqual(float(row[key + end]), value,
                                     (name, key + end))
        self.assertIn("  function\n", self.text("top"))

    def test_sort(self):
        def names(*arguments):
            return [r["function"] for r in self.rows(*arguments)]

        self.assertEqual(names("--sort", "name"), sorted(names()))
        self.assertEqual(names("--cum"), names("--sort", "cum"))
        self.assertEqual(names("--cum"), names("top", "-cum"))
        self.assertEqual(names("--sort", "count")[0], "read_line")
        self.assertEqual(names()[0], "grow")
        self.assertRegex(self.text("--sort", "count"),
                         r"(?m)^ +30 exact .*  read_line")

    def test_nodefraction(self):
        every = self.rows()
        total = float(max(every, key=lambda r: float(r["cum_bytes"]))
                      ["cum_bytes"])
        whole = exact(self.json()["estimate"]["view_bytes"])
        self.assertLessEqual(total, whole)
        some = self.rows("--nodefraction", "0.2")
        self.assertEqual([r for r in every
                          if float(r["cum_bytes"]) >= 0.2 * whole], some)
        text = self.text("--nodefraction", "0.2")
        shown = text.split("  function\n")[1].split("\n  and ")[0]
        self.assertEqual(len(shown.splitlines()), sum(
            float(r["flat_bytes"]) > 0 for r in some))
        self.assertRegex(text, r" flat in \d+ other functions: see "
                               r"--nodefraction 0\n")

    def test_granularity(self):
        whole = exact(self.json()["estimate"]["view_bytes"])
        for what in ("function", "file", "line", "module", "address"):
            rows = self.rows("--granularity", what)
            self.assertEqual(sum(float(r["flat_bytes"]) for r in rows), whole)
            d = self.json("--granularity", what)
            self.assertEqual(d["granularity"], what)
            self.assertEqual(len(d["functions"]), len(rows))
        modules = {os.path.basename(r["function"]): float(r["flat_bytes"])
                   for r in self.rows("--granularity", "module",
                                      "--all-frames")}
        mine = 3000 + PARSE_ITEM + GROW + WORK
        self.assertEqual(modules["program_views"], mine)
        files = {os.path.basename(r["function"]): float(r["flat_bytes"])
                 for r in self.rows("--granularity", "file",
                                    "--all-frames")}
        self.assertEqual(files["views.c"], mine)
        lines = [r for r in self.rows("--granularity", "line")
                 if r["function"] == "parse"]
        self.assertEqual(sorted(float(r["cum_bytes"]) for r in lines),
                         [PARSE_ITEM, GROW])

    def test_by_thread_and_size(self):
        worker, = [r for r in self.rows("--by", "thread")
                   if r["name"] == "worker"]
        self.assertEqual(float(worker["bytes"]), WORK)
        self.assertEqual(int(worker["exact_alloc_bytes"]), WORK)
        self.assertRegex(self.text("--by", "thread"),
                         r"(?m)^ +1.95 KiB exact .* worker \(tid \d+\)$")
        sizes = {int(r["max_bytes"]): float(r["view_bytes"])
                 for r in self.rows("--by", "size", "--focus", MINE)}
        self.assertEqual(sum(sizes.values()),
                         3000 + PARSE_ITEM + GROW + WORK)
        self.assertEqual(sizes[64], PARSE_ITEM)

    def test_unit(self):
        self.assertRegex(self.text("--unit", "B"),
                         r"(?m)^ +6000 B exact .* grow ")
        self.assertRegex(self.text("--unit", "MiB"),
                         r"(?m)^ +0\.01 MiB exact .* grow ")

    # ---- the call tree and the call graph ----

    def paths(self, *arguments):
        """{path: node} of the tree; what is below adds up."""
        nodes = self.json("tree", *arguments)["tree"]
        path, found = [], {}
        for i, node in enumerate(nodes):
            below = []
            for other in nodes[i + 1:]:
                if other["depth"] <= node["depth"]:
                    break
                if other["depth"] == node["depth"] + 1:
                    below.append(exact(other["bytes"]))
            if below:
                self.assertEqual(sum(below), exact(node["bytes"]))
            path[node["depth"]:] = [node.get("name", node["kind"])]
            found[tuple(path)] = node
        return found

    def test_tree(self):
        options = ("--show-from", "^main$", "--all-frames")
        found = self.paths(*options)
        item = ["main", "parse"]
        for depth in range(4):
            item.append("parse_item")
            node = found[tuple(item)]
            self.assertEqual(exact(node["bytes"]), 5 * 64 * (4 - depth))
            self.assertEqual(exact(node["flat_bytes"]), 5 * 64)
        self.assertNotIn(tuple(item + ["parse_item"]), found)
        self.assertEqual(exact(found["main", "parse", "grow"]["bytes"]), GROW)
        self.assertEqual(
            exact(found["main", "load", "read_line"]["bytes"]), 1000)
        self.assertEqual(found["main", "render"]["flat_samples"], 0)
        some = self.paths(*options, "--nodefraction", "0.3")
        self.assertEqual(some["main", "others"]["places"],
                         len({p[1] for p in found if len(p) > 1}) - 1)
        text = self.text("tree", "--show-from", "^main$")
        self.assertRegex(text, r"(?m)^ .*% +parse  \(program_views\)$")
        self.assertRegex(text, r"(?m)^ .*% +itself$")
        self.assertRegex(
            text, r"\nnext: \S+[\s\\]+traces[\s\\]+--show-from[\s\\]+'\^main\$'[\s\\]+"
                  r"\S+\n\Z")
        rows = self.rows("tree", *options)
        self.assertEqual(len(rows), len(found))

    def test_peek(self):
        f, = self.json("peek", "^read_line$")["functions"]
        self.assertEqual({e["name"]: exact(e["bytes"]) for e in f["callers"]},
                         READ_LINE)
        self.assertEqual([(e["name"], exact(e["bytes"]))
                          for e in f["callees"]], [(None, 3000)])
        # Recursion: each stack counts once, with whoever called it first.
        f, = self.json("peek", "^parse_item$")["functions"]
        self.assertEqual([(e["name"], exact(e["bytes"]))
                          for e in f["callers"]], [("parse", PARSE_ITEM)])
        text = self.text("peek", "^read_line$")
        self.assertRegex(text, r"(?s)    render  \(program_views\)\n"
                         r".*    load  \(program_views\)\n"
                         r".*%  \* read_line  \(program_views\)\n.*itself\n")
        rows = self.rows("peek", "read_line|parse_item")
        self.assertEqual(
            {(r["name"], r["relation"], r["other_name"]):
             float(r["bytes"]) for r in rows},
            {("read_line", "caller", "load"): 1000,
             ("read_line", "caller", "render"): 2000,
             ("read_line", "callee", ""): 3000,
             ("parse_item", "caller", "parse"): PARSE_ITEM,
             ("parse_item", "callee", ""): PARSE_ITEM})
        self.assertIn("no function of this view matches nobody",
                      run("peek", "nobody", self.path, code=1))

    def test_list(self):
        text = self.text("list", "^parse$")
        self.assertRegex(text, r"\nparse  \(program_views\)\n  in /\S*/views\.c"
                         r"[^\n]*\n")
        self.assertRegex(text, r"(?m)^ +\. +5.86 KiB +\d+  "
                         r" +grow\(\); /\* where the source says so \*/$")
        self.assertRegex(text, r"(?m)^ +\. +\. +\d+  \{$")
        # With symbols in the profile, the files that are here say the name.
        copy = os.path.join(self.dir, "copy.sprof")
        run("symbolize", self.path, "--output", copy)
        self.assertRegex(run("list", "^parse$", copy),
                         r"(?m)^ +\. +5.86 KiB +\d+  "
                         r" +grow\(\); /\* where the source says so \*/$")
        lines = self.json("list", "^parse$")["listings"][0]["lines"]
        self.assertEqual(sorted(exact(x["cum_bytes"]) for x in lines),
                         [PARSE_ITEM, GROW])
        self.assertEqual(len(self.rows("list", "^parse$")), 2)
        # Elsewhere, and with what a terminal must not get.
        os.makedirs(os.path.join(self.dir, "src", "targets"))
        with open(os.path.join(self.dir, "src", "targets", "views.c"), "w",
                  encoding="utf-8") as f:
            f.write("\x1b[31m\tother text\n" * 100)
        text = self.text("list", "^parse$", "--source-path",
                         f"/nonexistent:{self.dir}/src")
        self.assertIn("\\x1b[31m   other text\n", text)
        self.assertNotIn("\x1b", text)
        self.assertIn(": changed since the process began\n", text)

    def test_traces_and_stats(self):
        whole = exact(self.json()["estimate"]["view_bytes"])
        # Each frame is once; the form before has it in each stack.
        for words in ((), ("traces",)):
            new = self.json(*words)
            self.assertEqual(len({json.dumps(f) for f in new["frames"]}),
                             len(new["frames"]))
            old = json.loads(run(*words, "--json-old", self.path))
            self.assertEqual((new.pop("schema_version"),
                              old.pop("schema_version")), (2, 1))
            self.assertEqual(harness.with_frames(new), old)
        d = self.json("traces")
        self.assertEqual(sum(exact(s["bytes"]) for s in d["stacks"]), whole)
        self.assertEqual(len(self.json("traces", "--stacks", 2)["stacks"]), 2)
        text = self.text("traces")
        self.assertIn(f"\nShowing {len(d['stacks'])} of {len(d['stacks'])} "
                      "call stacks", text)
        d = self.json("stats", "--focus", MINE)
        self.assertEqual({e["name"]: exact(e["bytes"]) for e in d["entries"]},
                         {"malloc": 3000 + PARSE_ITEM, "realloc": GROW,
                          "calloc": WORK})
        self.assertEqual(d["top_bytes"][0]["name"], "grow")
        self.assertEqual(d["top_objects"][0]["name"], "read_line")
        self.assertEqual(sum(exact(s["bytes"]) for s in d["sizes"]),
                         3000 + PARSE_ITEM + GROW + WORK)
        text = self.text("stats")
        for words in ("Exact totals by object size", "By allocation function",
                      "Most bytes, flat", "Most objects, flat"):
            self.assertIn(words, text)

    def test_commands_refuse(self):
        for words, *arguments in (
                ("no REGEX was given", "peek"),
                ("only x was given", "peek", "x"),
                ("--focus: missing closing parenthesis", "--focus", "(",
                 self.path),
                ("REGEX: ", "list", "[", self.path),
                ("--top is only for report, top and stats", "tree", "--top",
                 "3", self.path)):
            said = run(*arguments, code=2)
            self.assertIn(words, said)
            self.assertIn("try 'sampleprof-report --help'\n", said)

    # ---- filters ----

    def test_filter_is_said(self):
        text = self.text("--focus", "read_line", "--hide", "a b")
        self.assertRegex(text, r"\n  filter    --focus read_line --hide 'a "
                         r"b': 2 of \d+ call stacks,\s+"
                         r"\d+\.\d% of the bytes\n")
        d = self.json("--focus", "read_line")
        self.assertEqual(d["filter"], {
            "focus": "read_line", "ignore": None, "hide": None, "show": None,
            "show-from": None, "prune-from": None})
        self.assertEqual(exact(d["estimate"]["view_bytes"]), 3000)
        self.assertIsNone(self.json()["filter"])
        # Shares stay those of the whole view.
        share = {f["name"]: f["flat_share"]["value"]
                 for f in self.json("--all-frames")["functions"]}
        for f in self.json("--focus", "read_line",
                           "--all-frames")["functions"]:
            self.assertAlmostEqual(f["flat_share"]["value"],
                                   share[f["name"]])

    def test_filter_of_timeline_and_sizes(self):
        points = self.rows("--timeline", "--focus", "read_line")
        self.assertEqual(max(float(p["live_bytes"]) for p in points), 3000)
        rows = self.rows("--sizes", "--focus", "parse_item")
        self.assertEqual([float(r["view_bytes"]) for r in rows], [PARSE_ITEM])

    FILTERS = (
        ("--focus", "sqlite3VdbeExec"),
        ("--ignore", "BtreeInsert"),
        ("--hide", "^sqlite3Malloc$"),
        ("--show", "libsqlite3"),
        ("--prune-from", "^sqlite3BtreeInsert$"),
        ("--focus", "(?i)BTREE", "--ignore", "Sorter", "--hide", "_start_",
         "--show-from", "sqlite3_step", "--prune-from", "^sqlite3VdbeExec$"),
        ("--focus", "nothing at all"),
    )

    def compare(self, path, sample_type, filters, *options):
        """Filtered by us and shown by pprof, or shown and filtered by pprof:
        the same bytes for each function."""
        out = os.path.join(self.dir, "filtered.pb.gz")
        whole = os.path.join(self.dir, "whole.pb.gz")
        run("export", "pprof", *options, *filters, path, "-o", out)
        if not os.path.exists(whole):
            run("export", "pprof", *options, path, "-o", whole)
        theirs = [("-" + a[2:].replace("-", "_") if a.startswith("--") else a)
                  for a in filters]
        theirs = [f"{a}={b}" for a, b in zip(theirs[::2], theirs[1::2])]
        ours, shown, _ = gopprof.top(self.dir, out, sample_type)
        other, other_shown, total = gopprof.top(self.dir, whole, sample_type,
                                                *theirs)
        self.assertEqual(ours, other, filters)
        self.assertEqual(shown, other_shown)
        self.assertLessEqual(shown, total)
        return ours, shown, total

    def test_filters_are_those_of_pprof(self):
        path = self.keep("sqlite3", harness.require("sqlite3", "sqlite3"),
                         ":memory:", stdin=SQL.encode(), period="4K", seed=1)
        seen = set()
        for filters in self.FILTERS:
            rows, shown, total = self.compare(path, "alloc_space", filters)
            seen.add(shown)
            if "nothing at all" in filters:
                self.assertEqual((rows, shown), ({}, 0))
        # Most of them choose something of their own.
        self.assertGreater(len(seen), 4)

    def test_filters_of_the_peak(self):
        """Of what was alive when most was in all, not when most of it was."""
        path = self.keep("sqlite3", harness.require("sqlite3", "sqlite3"),
                         ":memory:", stdin=SQL.encode(), period="4K", seed=1)
        _, shown, total = self.compare(path, "inuse_space",
                                       ("--focus", "Btree"), "--view", "peak")
        self.assertTrue(0 < shown < total)

    def test_filters_and_inlines(self):
        """At period 1 also against the report's own table, of all frames:
        pprof sees through allocators alone."""
        for filters in (("--focus", "^grow$"), ("--hide", "^grow$"),
                        ("--show", "^parse$"), ("--show-from", "^grow$"),
                        ("--prune-from", "^parse$"),
                        ("--hide", "^parse_item$"),
                        ("--show", "views\\.c")):
            rows, shown, _ = self.compare(self.path, "alloc_space", filters)
            mine = {r["function"]: (float(r["flat_bytes"]),
                                    float(r["cum_bytes"]))
                    for r in self.rows("--all-frames", *filters)}
            # The loader's calloc counts as its caller in both; pprof leaves
            # its row out.
            self.assertEqual(mine.pop("calloc", (0, 0))[0], 0)
            self.assertEqual(mine, rows, filters)
            self.assertEqual(sum(f for f, _ in mine.values()), shown)
