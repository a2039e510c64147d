# SPDX-License-Identifier: MIT
"""`sampleprof fleet`: a database gives the figures of the report of the same
files, to 1e-9; a file sent twice counts once; kills and full disks leave no
half of a file; estimates of all processes from those that were drawn; hostile
labels, files and databases."""

import csv
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time

import harness
from harness import tool

SAME = 1e-9

# Of the whole, and parts; keys that the database does not answer.
NOT_THERE = {"file", "command", "symbol_problems", "mapped"}
VIEWS = ((), ("--view=live",), ("--view=peak",), ("--view=temporary",),
         ("--at=50%",), ("--confidence=99",), ("--size=1K-",),
         ("--focus=allocate",))

ALLOCATE = """
import random, sys
random.seed(int(sys.argv[1]))
kept = [bytearray(random.choice((600, 1500, 9000))) for i in range(2000)]
for i in range(20000):
    kept[i % 2000] = bytearray(random.choice((513, 800, 20000)))
del kept[::int(sys.argv[2])]
"""


class Fleet(harness.Case):

    # Files that were recorded once for all tests: their bytes.
    made = {}

    def fleet(self, *argv, **options):
        return self.sampleprof("fleet", *argv, **options)

    def json(self, *argv):
        """What is said; a report has its files in the order in which they were
        recorded, as the database has them."""
        if argv[0] == "report":
            files = list(self.made)
            argv = sorted(argv, key=lambda a: files.index(a) if a in files
                          else -1)
        return harness.with_frames(json.loads(
            self.sampleprof(*argv, "--json").stdout))

    def record(self, n, version="1", service="shop", **settings):
        """n processes, of which the files are returned: with no settings of
        their own they are those of the tests before."""
        files = []
        for i in range(n):
            file = f"{service}-{version}-{i}.sprof"
            files.append(file)
            if not settings and self.is_made(file):
                continue
            options = [f"--{k.replace('_', '-')}={v}"
                       for k, v in settings.items()]
            self.sampleprof(
                "run", "--quiet", "--no-symbols", "--period=32K",
                f"--label=service={service}", f"--label=version={version}",
                *options, "--out", file, "/usr/bin/python3", "-c", ALLOCATE,
                i, 2 + len(version))
            if not settings:
                self.keep(file)
        return [f for f in files if os.path.exists(os.path.join(self.dir, f))]

    def is_made(self, file):
        """Whether it was recorded before, and is here now."""
        if file in self.made:
            with open(self.path(file), "wb") as copy:
                copy.write(self.made[file])
        return file in self.made

    def keep(self, file):
        with open(self.path(file), "rb") as whole:
            self.made[file] = whole.read()

    def record_phases(self):
        """Files of one process that named no phase and of two that did."""
        files = self.record(1)
        for i in range(2):
            file = f"gated-{i}.sprof"
            files.append(file)
            if self.is_made(file):
                continue
            self.sampleprof(
                "run", "--quiet", "--no-symbols", "--period=4K", "--out", file,
                harness.target("program_gated"), "a:48:12000", "mark=second",
                "keep:96:4000", "mark=last", f"b:600:{2000 * i + 1000}")
            self.keep(file)
        return files

    def path(self, name):
        return os.path.join(self.dir, name)

    def rows(self, sql, db="fleet.db"):
        connection = sqlite3.connect(self.path(db))
        rows = connection.execute(sql).fetchall()
        connection.commit()
        connection.close()
        return rows

    def assert_same(self, one, other, where=""):
        if isinstance(one, dict):
            self.assertEqual(set(one), set(other), where)
            for key in one:
                if key not in NOT_THERE:
                    self.assert_same(one[key], other[key], f"{where}.{key}")
        elif isinstance(one, list):
            self.assertEqual(len(one), len(other), where)
            for i, (a, b) in enumerate(zip(one, other)):
                self.assert_same(a, b, f"{where}[{i}]")
        elif isinstance(one, float) and isinstance(other, float):
            self.assertLessEqual(
                abs(one - other), SAME * max(abs(one), abs(other)), where)
        elif ".lifetime." in where and isinstance(one, int):
            # Of groups the report knows lifetimes to this.
            self.assertAlmostEqual(one, other, delta=max(one, other) / 64,
                                   msg=where)
        else:
            self.assertEqual(one, other, where)

    @staticmethod
    def comparable(said):
        """Without the order of what is equally large and the numbers of
        stacks and frames."""
        harness.with_frames(said)
        said["functions"].sort(key=lambda f: (
            f["name"], f["module"] or "", f.get("defined_in") or "",
            f.get("file") or ""))
        for stack in said["stacks"]:
            stack.pop("id", None)
        # By what is the same to the letter first: figures are to 1e-9.
        said["stacks"].sort(key=lambda s: (
            json.dumps(s["frames"], sort_keys=True),
            json.dumps(s, sort_keys=True)))
        return said

    def table(self, text):
        """Rows of functions of a CSV by name and module: their numbers."""
        rows = list(csv.reader(text.splitlines()))[1:]
        self.assertGreater(len(rows), 3)
        return {tuple(r[:2]): [float(v) if v else None for v in r[4:]]
                for r in rows}

    def assert_rows(self, one, other):
        self.assertEqual(set(one), set(other))
        for key, row in one.items():
            for a, b in zip(row, other[key]):
                self.assertLessEqual(abs((a or 0) - (b or 0)),
                                     SAME * abs(a or 0), key)

    def check_same(self, files, *chosen, views=VIEWS):
        for view in views:
            with self.subTest(view=view):
                self.assert_same(
                    self.comparable(self.json("report", *view, *files)),
                    self.comparable(self.json("fleet", "report", *view,
                                              *chosen)))


class Numbers(Fleet):

    @harness.nightly_too
    def test_as_the_report(self):
        """Of all, of a service, of a version and of one process."""
        shop = self.record(2) + self.record(1, version="22")
        search = self.record(1, service="search")
        self.assertEqual(
            self.fleet("init").stdout,
            "sqlite:fleet.db is ready for profiles\n"
            "next: sampleprof fleet add FILE..., or fleet watch DIRECTORY\n")
        self.assertTrue(self.fleet("init", "--db=sqlite:b.db").stdout.endswith(
            "fleet watch DIRECTORY, with the same --db\n"))
        done = self.fleet("add", *shop, *search)
        self.assertEqual(done.stdout,
                         "4 added, 0 updated, 0 there already\n")
        said = self.json("report", *shop, *search)
        self.assertGreater(said["samples"], 1000)
        self.assertGreater(len(said["functions"]), 5)
        self.check_same(shop + search, views=harness.rounds(VIEWS[:1], VIEWS))
        self.check_same(search, "--label=service=search",
                        views=VIEWS[harness.rounds(1, 0):])
        self.check_same(shop[2:], "--label=service=shop",
                        "--label=version=22",
                        views=VIEWS[:harness.rounds(1, 2)])
        one = self.record(1, service="alone")
        self.fleet("add", *one)
        part = self.json("fleet", "report", "--label=service=alone")
        whole = self.json("report", *one)
        for function in part["functions"] + whole["functions"]:
            del function["lifetime"]  # of one file within 1/128
        for key in ("exact", "estimate", "functions", "size_classes"):
            self.assert_same(part[key], whole[key], key)

    @harness.nightly_too
    def test_phases(self):
        """Phases and resident memory, of a program that named some and of one
        that did not."""
        files = self.record_phases()
        self.fleet("init")
        self.fleet("add", *files)
        said = self.json("report", *files)
        self.assertIn("second", json.dumps(said["phases"]))
        self.assertGreater(len(said["rss"]), 2)
        self.check_same(files, views=harness.rounds(VIEWS[:2], VIEWS))
        self.assert_same(
            self.comparable(self.json("report", "--phase=last", *files)),
            self.comparable(self.json("fleet", "report", "--phase=last")))
        self.assertIn("last", self.fleet("report").stdout)

    def test_filters(self):
        files = self.record(2) + self.record(1, version="22")
        self.fleet("init")
        self.fleet("add", *files)
        host = self.json("report", files[0])["host"]
        of_host = self.json("fleet", "report", f"--host={host}")
        self.assertEqual(len(of_host["profiles"]), 3)
        done = self.fleet("top", "--host=elsewhere", code=1)
        self.assertIn("has 3 processes, and none of them matches", done.stderr)
        self.fleet("top", "--label=service=shop", "--label=version=9", code=1)
        self.fleet("top", "--to=2001-01-01", code=1)
        self.fleet("top", "--from=2101-01-01", code=1)
        whole = self.json("fleet", "report", "--from=2001-01-01",
                          "--to=2101-01-01")
        self.assertEqual(len(whole["profiles"]), 3)
        for wrong in ("yesterday", "2026-13-01", "2026-01-01T25:00", ""):
            done = self.fleet("top", f"--from={wrong}", code=2)
            self.assertIn("--from takes a time", done.stderr)
        self.fleet("top", "--from=2026-01-02", "--to=2026-01-01", code=2)
        labels = self.json("fleet", "report", "--label=version=22")["labels"]
        self.assertEqual(labels, {"service": "shop", "version": "22"})

    def test_views(self):
        """Each takes the options of its command, and names what it is of."""
        files = self.record(2)
        self.fleet("init")
        self.fleet("add", *files)
        for view in ("top", "tree", "live", "traces", "stats"):
            self.assertIn("2 processes of fleet.db", self.fleet(view).stdout)
        self.assertIn("callers", self.fleet("peek", "Py").stdout)
        self.fleet("export", "collapsed", "-o", "out.txt")
        self.assertGreater(os.path.getsize(self.path("out.txt")), 100)
        self.fleet("export", "html", "-o", "out.html")
        self.assertNotIn("next:", self.fleet("report").stdout)
        self.fleet("top", "--watch=1s", code=2)
        self.fleet("top", "other.sprof", code=2)
        done = self.fleet("tip", code=2)
        self.assertIn("did you mean fleet top?", done.stderr)
        self.fleet(code=2)


class Names(Fleet):
    SOURCE = r"""#include <stdlib.h>
static inline __attribute__((always_inline)) void *inner(size_t n) {
  return malloc(n);
}
static __attribute__((noinline)) void *part(size_t n, const char *s) {
  if (!s) return 0;
  void *p = inner(n);
  *(volatile char *)p = *s;
  return n > 90000 ? part(n / 2, s) : p;
}
int main(void) {
  for (int i = 0; i < 300; i++) part(100 + i, "x");
  return 0;
}
"""

    def test_what_is_known_of_them(self):
        """Copies of functions, inlined ones, and what is missing of those:
        as the report of the file says it."""
        for name, is_whole in ("whole", True), ("split", False):
            with open(self.path("app.c"), "w", encoding="utf-8") as file:
                file.write(self.SOURCE)
            program = self.path(name)
            subprocess.run(
                [harness.require("gcc", "gcc"), "-O2", "-g", "app.c", "-o",
                 program, *([] if is_whole else ["-gsplit-dwarf"])],
                cwd=self.dir, check=True, timeout=harness.TIMEOUT_S)
            for unit in os.listdir(self.dir):
                if unit.endswith(".dwo"):
                    os.unlink(self.path(unit))
            self.sampleprof("run", "--quiet", "--period=1", "--out",
                            name + ".sprof", program)
            os.unlink(program)
            db = f"--db=sqlite:{name}.db"
            self.fleet("init", db)
            self.fleet("add", db, name + ".sprof")
            traces = self.fleet("traces", db).stdout
            self.assertIn("part (clone)", traces)
            self.assertEqual("inner (inline)" in traces, is_whole)
            for said in (self.fleet("report", db).stdout,
                         self.sampleprof("report", name + ".sprof").stdout):
                self.assertEqual("inlined functions are missing" in
                                 " ".join(said.split()), not is_whole)


class Rollup(Fleet):

    def asked(self, *argv):
        return self.table(self.sampleprof(*argv, "--csv", "--top=0").stdout)

    def check(self, files, *chosen):
        self.assert_rows(
            self.asked("report", "--view=alloc", *files),
            self.asked("fleet", "top", "--view=alloc", *chosen))
        self.assert_rows(self.asked("report", "--view=live", *files),
                         self.asked("fleet", "live", *chosen))
        self.assert_rows(
            self.asked("report", "--size=1K-", "--focus=Py", *files),
            self.asked("fleet", "top", "--size=1K-", "--focus=Py", *chosen))

    def test_as_the_samples(self):
        """What the hours say is what the files say, of all and of some
        processes; they are what is asked."""
        shop = self.record(1) + self.record(1, version="22")
        search = self.record(1, service="search")
        self.fleet("init")
        self.fleet("add", *shop, *search)
        self.check(shop + search)
        self.check(shop[1:], "--label=version=22")
        tree = self.fleet("tree").stdout
        self.rows("DELETE FROM samples")
        self.check(shop + search)
        self.assertEqual(self.fleet("tree").stdout, tree)
        done = self.fleet("report", code=1)
        self.assertIn("lacks a part of a process", done.stderr)

    def test_hours(self):
        """Rows are sums of samples, as SQL adds them up; a process that lives
        for hours has some of each, and whole hours are asked of them."""
        file = self.record(1)[0]
        first = self.json("report", file)["start_unix_ns"]
        self.fleet("init")
        self.fleet("add", file)
        counted = ("SELECT (start_unix_ns + born_ns) / 3600000000000, stack, "
                   "s.size_bytes, s.period_bytes, s.freed_ns IS NULL, "
                   "count(*), sum(s.size_bytes - s.offset_bytes) FROM samples "
                   "s JOIN processes USING (process) GROUP BY 1, 2, 3, 4, 5 "
                   "ORDER BY 1, 2, 3, 4, 5")
        rolled = ("SELECT hour, stack, size_bytes, period_bytes, is_alive, "
                  "sum(samples), sum(tail_bytes) FROM hours "
                  "GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5")
        self.assertEqual(self.rows(counted), self.rows(rolled))
        hour = first // 3600000000000
        span = [time.strftime("%Y-%m-%dT%H:00", time.gmtime(3600 * (hour + i)))
                for i in range(3)]
        # As if half of the samples had been taken an hour later, and none of
        # the others at the turn of an hour.
        self.rows(f"UPDATE hours SET hour = {hour} + (row % 2 = 0)")
        self.rows("UPDATE processes SET duration_ns = 7200000000000")
        whole = self.asked("fleet", "top", "--view=alloc")
        parts = [self.asked("fleet", "top", "--view=alloc",
                            f"--from={span[i]}", f"--to={span[i + 1]}")
                 for i in range(2)]
        for key, row in whole.items():
            samples = [part[key][3] if key in part else 0 for part in parts]
            self.assertEqual(sum(samples), row[3], key)
        self.assertTrue(all(parts))

    def test_moments(self):
        """What hours cannot answer is asked of the samples."""
        files = self.record(2)
        self.fleet("init")
        self.fleet("add", *files)
        self.assert_rows(self.asked("report", "--view=live", "--at=25%",
                                    *files),
                         self.asked("fleet", "live", "--at=25%"))
        # By the clock: a process of two hours that freed all in the first.
        self.rows("UPDATE processes SET start_unix_ns = 1767225600000000000, "
                  "duration_ns = 7200000000000")
        self.rows("UPDATE samples SET born_ns = 0, freed_ns = 3600000000000")
        then = self.asked("fleet", "live", "--at=2026-01-01T00:59")
        self.assertEqual(
            {k: v[3] for k, v in then.items()},
            {k: v[3] for k, v in self.asked("fleet", "top").items()})
        done = self.fleet("live", "--at=2026-01-01T01:01")
        self.assertIn("nothing", done.stdout)
        done = self.fleet("live", "--at=2025-12-31", code=1)
        self.assertIn("before the first of the processes", done.stderr)
        self.assertRegex(self.fleet("report").stdout, r"  peak +[\d.]+ [KM]iB")
        self.assertIn("  peak      not known from hourly sums",
                      self.fleet("top").stdout)


class Versions(Fleet):

    def test_diff_and_check(self):
        """Processes are runs: what a version allocates more is found, what
        differs between processes is not."""
        files = self.record(3) + self.record(3, version="22")
        self.fleet("init")
        self.fleet("add", *files)
        said = self.json("fleet", "diff", "--base=version=1")
        of_files = self.json("diff", *files[3:], *sum(
            (["--baseline", f] for f in files[:3]), []))
        self.assert_same(said["functions"], of_files["functions"])
        done = self.fleet("check", "--base=version=1", "--limit",
                          "alloc_bytes=+50%")
        self.assertIn("PASS", done.stdout.upper())
        self.fleet("check", "--base=version=1", "--limit", "alloc_bytes=1K",
                   code=3)
        self.rows("UPDATE processes SET fraction = 0.25 WHERE process = 6")
        done = self.fleet("diff", "--base=version=1", code=1)
        self.assertIn("of the new side some processes were recorded with the "
                      "probability 1 and others with 0.25", done.stderr)
        done = self.fleet("diff", code=2)
        self.assertIn("--base KEY=VALUE", done.stderr)
        done = self.fleet("diff", "--base=version=9", code=1)
        self.assertIn("old side", done.stderr)
        # Said before the old ones are read, whose fractions differ.
        done = self.fleet("diff", "--base=service=shop", code=1)
        self.assertIn("has no process for the new side", done.stderr)


class Adding(Fleet):

    def counts(self):
        return [self.rows(f"SELECT count(*) FROM {t}")[0][0]
                for t in ("processes", "samples", "hours", "facts", "labels",
                          "totals", "threads", "stacks", "modules", "names")]

    def test_twice(self):
        """Any copy of a file counts once, packed and renamed ones too."""
        files = self.record(2)
        self.fleet("init")
        self.fleet("add", *files)
        before = self.counts()
        shutil.copy(self.path(files[0]), self.path("copy.sprof"))
        self.sampleprof("symbolize", files[1], "-o", "packed.sprof.zst")
        done = self.fleet("add", *files, "copy.sprof", "packed.sprof.zst")
        self.assertEqual(done.stdout, "0 added, 0 updated, 4 there already\n")
        self.assertEqual(self.counts()[:7], before[:7])
        self.fleet("init")
        self.assertEqual(self.counts()[:7], before[:7])

    def test_running(self):
        """A process that runs is added as that, and replaced by what it is
        later; an earlier copy that comes after it changes nothing."""
        process = self.start(
            ["/usr/bin/python3", "-c",
             "import sys\nx = [bytearray(5000) for i in range(2000)]\n"
             "print(1, flush=True)\nsys.stdin.read()\n"
             "x += [bytearray(5000) for i in range(2000)]"],
            settings={"period": "32K"}, stdin=subprocess.PIPE)
        process.stdout.readline()
        file = os.path.join(self.out, os.listdir(self.out)[0])
        shutil.copy(file, self.path("early.sprof"))
        self.fleet("init")
        self.fleet("add", file)
        early = self.rows("SELECT ending, samples FROM processes")
        process.communicate(b"", timeout=harness.TIMEOUT_S)
        process.stdout.close()
        done = self.fleet("add", file)
        self.assertEqual(done.stdout, "0 added, 1 updated, 0 there already\n")
        late = self.rows("SELECT ending, samples FROM processes")
        self.assertEqual(self.rows("SELECT sum(samples) FROM hours"),
                         [(late[0][1],)])
        self.assertEqual((early[0][0], late[0][0]), (3, 0))
        self.assertGreater(late[0][1], early[0][1])
        done = self.fleet("add", self.path("early.sprof"))
        self.assertEqual(done.stdout, "0 added, 0 updated, 1 there already\n")
        self.assertEqual(
            self.rows("SELECT count(*) FROM samples")[0][0], late[0][1])

    def test_not_whole(self):
        """A file that was cut is refused with a remedy; one that is damaged is
        added as that; neither keeps the others out."""
        files = self.record(2)
        with open(self.path(files[0]), "rb") as whole:
            data = whole.read()
        with open(self.path("cut.sprof"), "wb") as cut:
            cut.write(data[:len(data) * 2 // 3])
        with open(self.path("empty.sprof"), "wb"):
            pass
        with open(self.path("text.sprof"), "w", encoding="ascii") as text:
            text.write("hello\n" * 10000)
        self.fleet("init")
        done = self.fleet("add", "cut.sprof", "empty.sprof", "text.sprof",
                          "none.sprof", files[1], code=1)
        self.assertIn("1 added, 0 updated, 0 there already, 4 not added",
                      done.stdout)
        self.assertIn("cut short: send the whole file", done.stderr)
        subprocess.run([tool("sampleprof"), "symbolize", files[0], "-o",
                        "packed.zst"], cwd=self.dir, check=True,
                       stdout=subprocess.DEVNULL)
        os.truncate(self.path("packed.zst"),
                    os.path.getsize(self.path("packed.zst")) * 2 // 5)
        done = self.fleet("add", "packed.zst", code=1)
        self.assertIn("cut short: send the whole file", done.stderr)
        self.assertEqual(self.counts()[0], 1)

    @harness.nightly_too
    def test_kill(self):
        """Killed at any moment, `add` leaves whole files or none; the next one
        goes on."""
        files = self.record(3)
        whole = self.json("report", *files)["samples"]
        rng = random.Random(1)
        self.fleet("init")
        for _ in range(harness.rounds(4, 12)):
            process = subprocess.Popen(  # pylint: disable=R1732
                [tool("sampleprof"), "fleet", "add", *files], cwd=self.dir,
                stdout=subprocess.DEVNULL)
            time.sleep(rng.random() * 0.06)
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.assertEqual(self.rows(
                "SELECT count(*) FROM processes p WHERE samples <> (SELECT "
                "count(*) FROM samples s WHERE s.process = p.process)"),
                [(0,)])
        self.fleet("add", *files)
        self.assertEqual(self.rows("SELECT count(*), sum(samples) FROM "
                                   "processes"), [(3, whole)])
        self.assertEqual(self.rows("PRAGMA integrity_check"), [("ok",)])

    def test_full_disk(self):
        """Where the database cannot grow, nothing of the file is there, and
        what was there stays."""
        files = self.record(2)
        self.fleet("init")
        self.fleet("add", files[0])
        before = self.counts()
        size = os.path.getsize(self.path("fleet.db"))
        done = subprocess.run(
            ["prlimit", f"--fsize={size}", tool("sampleprof"), "fleet", "add",
             files[1]], cwd=self.dir, capture_output=True, text=True,
            check=False, env=self.environment(shim=False))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.counts(), before)

    def test_memory(self):
        """`add` needs no more for ten times the samples."""
        peaks = []
        self.fleet("init")
        for n in (20000, 200000):
            file = f"{n}.sprof"
            self.execute(harness.target("program_plain"), n, period=1,
                         env={"SAMPLEPROF_OUT": self.path(file)})
            done = subprocess.run(
                ["/usr/bin/python3", "-c",
                 "import resource, subprocess, sys\n"
                 "subprocess.run(sys.argv[1:], check=True, "
                 "stdout=subprocess.DEVNULL)\n"
                 "print(resource.getrusage(resource.RUSAGE_CHILDREN)"
                 ".ru_maxrss)", tool("sampleprof"), "fleet", "add", file],
                cwd=self.dir, capture_output=True, text=True, check=True,
                env=self.environment(shim=False))
            peaks.append(int(done.stdout))
        self.assertGreaterEqual(self.rows(
            "SELECT max(samples) FROM processes")[0][0], 200000)
        self.assertLess(peaks[1], peaks[0] + (24 << 10), peaks)


class Drawn(Fleet):

    def check_drawn(self, files):
        """What is said of all, of whom 30 % were drawn."""
        self.fleet("init")
        self.fleet("add", *files)
        said = self.json("fleet", "report", "--confidence=99.9")
        self.assertEqual(said["method"], "two-stage")
        self.assertEqual((said["recorded"], said["draws"]),
                         (len(files), len(files)))
        there = said["estimate"]
        self.assertAlmostEqual(there["processes"]["value"], len(files) / 0.3)
        flat = sum(f["flat_bytes"]["value"] for f in said["functions"])
        self.assertLess(abs(flat / there["view_bytes"]["value"] - 1), 1e-9)
        return there

    def test_two_stages(self):
        files = []
        while not files:
            files = self.record(3, fraction="30%")
        self.check_drawn(files)
        self.assertIn("method two-stage", self.fleet("top").stdout)
        done = self.fleet("tree", code=1)
        self.assertIn("SAMPLEPROF_FRACTION", done.stderr)

    @harness.nightly
    def test_all_are_estimated(self):
        """40 equal processes, of which 30 % are recorded: intervals of how many
        there are and of what they allocate have the truth.  False alarm: each
        of three intervals at 99.9 %, 3e-3 in all, and they are wider."""
        n = 40
        exact = self.json("report", *self.record(1, service="whole"))["exact"]
        files = self.record(n, fraction="30%")
        self.assertGreater(len(files), 0)
        there = self.check_drawn(files)
        for key, truth in (("processes", n),
                           ("alloc_bytes", n * exact["alloc_bytes"]),
                           ("view_bytes", n * exact["alloc_bytes"])):
            self.assertLessEqual(there[key]["lo"], truth, key)
            self.assertGreaterEqual(there[key]["hi"], truth, key)

    def test_forks_are_one_draw(self):
        fork = ("import os\nx = [bytearray(9000) for i in range(900)]\n"
                "if not os.fork(): x += [bytearray(9000) for i in range(900)]\n"
                "else: os.wait()")
        files = []
        while not files:
            self.sampleprof("run", "--quiet", "--no-symbols", "--fraction=50%",
                            "--period=16K", "--out", "%e.%p.sprof",
                            "/usr/bin/python3", "-c", fork)
            files = [f for f in os.listdir(self.dir) if f.endswith(".sprof")]
        self.fleet("init")
        self.fleet("add", *files)
        said = self.json("fleet", "report")
        self.assertEqual((said["recorded"], said["draws"]), (2, 1))
        self.assertEqual(said["estimate"]["processes"]["value"], 4)


class Hostile(Fleet):

    def test_databases(self):
        """What is no database, of something else, of another version, damaged
        or forged is said to be that."""
        with open(self.path("text.db"), "w", encoding="ascii") as text:
            text.write("hello\n" * 1000)
        open(self.path("empty.db"), "w", encoding="ascii").close()
        self.rows("CREATE TABLE x (y)", "other.db")
        for db, why in (("text.db", "no SQLite database"),
                        ("empty.db", "is empty"),
                        ("other.db", "something else"),
                        ("none.db", "sampleprof fleet init")):
            done = self.fleet("top", f"--db=sqlite:{db}", code=1)
            self.assertIn(why, done.stderr)
        done = self.fleet("top", "--db=mysql:x", code=1)
        self.assertIn("sqlite:PATH is wanted", done.stderr)
        self.fleet("init")
        with sqlite3.connect(self.path("fleet.db")) as connection:
            connection.execute("PRAGMA user_version = 7")
        connection.close()
        done = self.fleet("top", code=1)
        self.assertIn("version 7", done.stderr)

    @harness.nightly_too
    def test_forged_rows(self):
        """Values that no profile has are refused by name, whichever column
        has them; in the fast list one column of each table."""
        tried = set()
        self.record(1)
        self.fleet("init")
        self.fleet("add", "shop-1-0.sprof")
        self.rows("INSERT INTO stretches SELECT process, 0, 0, 0, 1, '', 1, 0,"
                  " 0, 0, 0, 0, 0 FROM processes")
        self.rows("INSERT INTO snapshots SELECT process, 0, 'x', 1, 1, 0, 0 "
                  "FROM processes")
        shutil.copy(self.path("fleet.db"), self.path("good.db"))
        for change, what in (
                ("samples SET size_bytes = 0", "a sample"),
                ("samples SET offset_bytes = size_bytes", "a sample"),
                ("samples SET period_bytes = 1 << 50", "a sample"),
                ("samples SET stack = 7", "a sample"),
                ("samples SET entry = 200", "a sample"),
                ("samples SET freed_ns = 0 WHERE born_ns > 0", "a sample"),
                ("samples SET stack = 'x'", "a sample"),
                ("stacks SET frames = x'00'", "a call stack"),
                ("stacks SET frames = zeroblob(16000016)", "a call stack"),
                ("names SET function = ''", "a name"),
                ("stacks SET frames = 'sixteen letters.'", "a module"),
                ("modules SET end_pc = start_pc - 1", "a module"),
                ("modules SET build_id = zeroblob(65)", "a module"),
                ("totals SET class = class + 9999", "a size class"),
                ("threads SET name = zeroblob(999)", "a thread"),
                ("hours SET size_bytes = 0", "an hour"),
                ("hours SET period_bytes = 1 << 50", "an hour"),
                ("hours SET samples = 0", "an hour"),
                ("hours SET samples = -1", "an hour"),
                ("hours SET stack = 7", "an hour"),
                ("stretches SET from_ns = 1 << 62", "a stretch"),
                ("stretches SET period_bytes = 1 << 60", "a stretch"),
                ("snapshots SET asked_ns = time_ns + 1", "a snapshot"),
                ("processes SET ending = 9", "a row of processes"),
                ("processes SET fraction = 0", "a row of processes"),
                ("processes SET fraction = 'nan'", "a row of processes"),
                ("processes SET period_bytes = 0", "a row of processes"),
                ("processes SET duration_ns = -1", "a duration")):
            if what in tried and harness.rounds(True, False):
                continue
            tried.add(what)
            shutil.copy(self.path("good.db"), self.path("fleet.db"))
            with sqlite3.connect(self.path("fleet.db")) as connection:
                connection.execute("UPDATE " + change)
            connection.close()
            view = ("top",) if what == "an hour" else ("report", "--json")
            done = self.fleet(*view, code=1)
            self.assertIn(f"is damaged: {what}", done.stderr, change)

    def test_escapes(self):
        """Names of a database do not reach the terminal as they are, nor SQL
        as text."""
        self.record(1)
        self.fleet("init")
        self.fleet("add", "shop-1-0.sprof")
        with sqlite3.connect(self.path("fleet.db")) as connection:
            connection.execute("UPDATE names SET function = 'a' || char(27) "
                               "|| '[31mb' || char(10) || 'c', is_fallback=0")
            connection.execute("UPDATE facts SET value = char(27) || ']0;x'"
                               " WHERE key LIKE 'label.%'")
        connection.close()
        for view in ("top", "tree", "traces", "stats"):
            self.assertNotIn("\x1b", self.fleet(view).stdout)
        self.assertNotIn("\x1b", self.fleet("report", "--json").stdout)
        for label in ("a='x' OR '1'='1", "a=\"", "a", "=b", "a=" + "x" * 200,
                      "a=" + "x" * 100000):
            done = self.fleet("top", "--label", label, code=2)
            self.assertIn("--label takes KEY=VALUE", done.stderr)
        done = self.fleet("top", "--host", "'; DROP TABLE processes; --",
                          code=1)
        self.assertEqual(self.rows("SELECT count(*) FROM processes"), [(1,)])
