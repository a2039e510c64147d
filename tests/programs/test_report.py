# SPDX-License-Identifier: MIT
"""The report: every option, each refusal and its message, CSV and JSON as other
programs read them, `--watch` in a pipe and in a terminal."""

import csv
import fcntl
import io
import json
import math
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import harness
from harness import report

SQL = """create table t(a, b);
with recursive c(i) as (select 1 union all select i + 1 from c where i < 20000)
insert into t select i, hex(zeroblob(i % 40)) from c;
create index x on t(b);
select count(distinct b) from t;
"""


class Report(harness.Case):
    """One profile of sqlite3, with some 2000 samples, for all of them."""

    kept = None

    def setUp(self):
        super().setUp()
        if not Report.kept:
            result = self.execute(harness.require("sqlite3", "sqlite3"),
                                  ":memory:", stdin=SQL.encode(), period="4K",
                                  seed=1)
            result.profile().require_samples(500)
            with open(result.paths[0], "rb") as f:
                Report.kept = f.read()
        self.path = os.path.join(self.dir, "sqlite3.sprof")
        with open(self.path, "wb") as f:
            f.write(Report.kept)

    def text(self, *arguments):
        return report(*arguments, self.path)

    def json(self, *arguments):
        return json.loads(self.text("--json", *arguments))

    def refused(self, words, *arguments, code=1, path=None):
        said = report(*arguments, path or self.path, code=code)
        self.assertRegex(said, r"\Asampleprof-report: ")
        self.assertIn(words, said)
        if code == 2:
            self.assertIn("try 'sampleprof-report --help'\n", said)

    # ---- what is said of the run ----

    def test_header(self):
        text = self.text()
        self.assertRegex(text, r"\Asampleprof report: \S*sqlite3 :memory:\n")
        self.assertRegex(text, r"\n  allocated \S+ MiB in [\d,]+ allocations, "
                               r"exact\n")
        self.assertRegex(text, r"\n  live      .* at the end\n")
        self.assertRegex(text, r"\n  peak      .* MiB \[.*\] MiB at \S+ m?s\n")
        self.assertIn("\n  view      alloc: what was allocated\n", text)
        self.assertRegex(text, r"\nintervals 95 %, method p3t; period 4 KiB, "
                               r"[\d,]+ samples,\s+[\d,]+ stacks, 1 thread\n")
        # sqlite3 allocates again and again, and frees all in the end.
        self.assertRegex(text, r"\nnext: \S+ --view \S+[^#]* \S+\s[^Z]*"
                               r"\n      \S+ tree ")
        self.assertRegex(text, r"\n      \S+ export html [^#]* -o ")
        # Each quantity once, and lines that a screen has room for.
        self.assertEqual(len(re.findall(r"95 %", text)), 1)
        self.assertNotIn("  < ", text)
        # Debian's sqlite3 is stripped, and nothing else is to be said.
        self.assertRegex(text, r"\nnotes:\n  - .* functions without names: "
                               r"libsqlite3\S+\s+is\s+stripped: .*\n"
                               r"(    .*\n)*\nintervals")

    def test_json_holds_together(self):
        d = self.json()
        self.assertEqual((d["view"], d["method"], d["confidence"]),
                         ("alloc", "p3t", 0.95))
        self.assertTrue(d["has_frees"])
        flat = sum(f["samples"] for f in d["functions"])
        self.assertEqual(flat, d["samples"])
        self.assertEqual(sum(s["samples"] for s in d["stacks"]), flat)
        total = d["estimate"]["view_bytes"]["value"]
        self.assertAlmostEqual(
            sum(f["flat_bytes"]["value"] for f in d["functions"]) / total,
            1, delta=0.02)
        for row in d["functions"] + d["stacks"]:
            for key in ("flat_bytes", "cum_bytes", "live_bytes",
                        "flat_objects"):
                self.assertLessEqual(row[key]["lo"], row[key]["value"])
                self.assertLessEqual(row[key]["value"], row[key]["hi"])
        self.assertEqual(sum(c["alloc_bytes"] for c in d["size_classes"]),
                         d["exact"]["alloc_bytes"])
        self.assertEqual(sum(c["alloc_objects"] for c in d["size_classes"]),
                         d["exact"]["alloc_objects"])
        times = [p["time_ns"] for p in d["timeline"]]
        self.assertEqual(times, sorted(times))
        self.assertEqual((len(times), times[0], times[-1]),
                         (201, 0, d["duration_ns"]))
        peak = d["estimate"]["peak_bytes"]
        self.assertLessEqual(peak["lo"], peak["value"])
        self.assertAlmostEqual(peak["time"], peak["time_ns"] / 1e9)
        self.assertGreater(peak["hi"], d["estimate"]["live_bytes"]["value"])

    # ---- views ----

    def test_views(self):
        for view, words in (("alloc", "alloc: what was allocated"),
                            ("live", "live: what is alive at the end"),
                            ("peak", "peak: what was alive at "),
                            ("leaks", "leaks: what is older than "),
                            ("temporary", "temporary: freed before its thread "
                                          "allocated anything else")):
            self.assertIn("\n  view      " + words,
                          self.text("--view", view))
            self.assertEqual(self.json("--view", view)["view"], view)

    def test_views_select(self):
        every = self.json()
        peak = self.json("--view", "peak")
        temporary = self.json("--view", "temporary")
        in_time = self.json("--within", "1h")
        live = self.json("--view", "live", "--at", "50%")
        leaks = self.json("--tail", "50%")

        def samples(d):
            return sum(s["samples"] for s in d["stacks"])
        # The rows are measured at the moments that the halves chose.
        self.assertLess(abs(samples(peak) -
                            every["estimate"]["peak_bytes"]["samples"]),
                        samples(peak))
        self.assertGreater(samples(peak), 20)
        self.assertGreater(samples(temporary), 20)
        # What this program freed at all, it freed within an hour.
        alive = sum(f["lifetime"]["alive"] for f in every["functions"]
                    if f["lifetime"])
        self.assertEqual(samples(in_time), samples(every) - alive)
        self.assertLessEqual(samples(leaks), alive)
        self.assertEqual(
            samples(live),
            [p["samples"] for p in every["timeline"]][100])
        self.assertEqual(live["selection"]["at_ns"],
                         every["timeline"][100]["time_ns"])

    def test_windows_add_up(self):
        every = self.json()
        parts = [self.json("--to", "30%"),
                 self.json("--from", "30%", "--to", "80%"),
                 self.json("--from", "80%")]
        self.assertEqual(sum(s["samples"] for p in parts for s in p["stacks"]),
                         every["samples"])
        small, large = self.json("--size", "-100"), self.json("--size", "101-")
        self.assertEqual(
            sum(s["samples"] for p in (small, large) for s in p["stacks"]),
            every["samples"])
        exact = sum(c["alloc_bytes"] for c in every["size_classes"]
                    if c["max_bytes"] is None or c["max_bytes"] > 128)
        figure = self.json("--size", "129-")["estimate"]["alloc_bytes"]
        self.assertIn(exact, harness.widened(figure))
        thread = self.json("--thread", "1")
        self.assertEqual(sum(s["samples"] for s in thread["stacks"]),
                         every["thread_infos"][0]["samples"])

    # ---- methods ----

    def test_estimators(self):
        self.assertIn("takes p3t or p3\n", report(
            "--estimator", "?", self.path, code=2))
        for name in ("p3t", "p3"):
            d = self.json("--estimator", name)
            self.assertEqual(d["method"], name)
            text = self.text("--estimator", name)
            if name == "p3t":
                continue
            self.assertIn(f"method {name} ({d['method_assumes']}); period ",
                          " ".join(text.split()))

    def test_confidence(self):
        widths = []
        for level in ("90", "95", "99", "99.9"):
            d = self.json("--confidence", level, "--estimator", "p3")
            self.assertAlmostEqual(d["confidence"], float(level) / 100)
            self.assertIn(f"intervals {level} %,",
                          self.text("--confidence", level))
            figure = d["functions"][0]["flat_bytes"]
            widths.append(figure["hi"] - figure["lo"])
        self.assertEqual(widths, sorted(widths))
        self.assertGreater(widths[-1], 1.5 * widths[0])

    def test_simultaneous(self):
        text = self.text("--simultaneous", "--top", "10", "--cum")
        d = self.json("--simultaneous")
        self.assertRegex(" ".join(text.split()),
                         r"intervals 95 %, of rows 99.\d+ %, so that all rows of "
                         "a column hold together, method p3t; period ")
        counted = [[row[key] > 1 for row in rows].count(True)
                   for rows, key in ((d["functions"], "cum_samples"),
                                     (d["stacks"], "samples"))]
        self.assertLess(counted[1], len(d["stacks"]))
        self.assertAlmostEqual(d["row_confidence"], 1 - 0.05 / max(counted))
        self.assertEqual(d["confidence"], 0.95)

    # ---- what is shown ----

    def test_top_sort_stacks(self):
        d = self.json()
        text = self.text("--top", 2)
        self.assertEqual(len(text.split("  function\n")[1].split("\n  and ")[0]
                             .splitlines()), 2)
        others = sum(f["samples"] > 0
                     for f in d["functions"]) - 2
        self.assertRegex(text, rf"\n  and .* \(.*%\) flat in {others:,} "
                               r"other functions?: see --top 0\n")
        text = self.text("--sort", "cum", "--top", "0")
        first = max(d["functions"], key=lambda f: f["cum_bytes"]["value"])
        rows = text.split("  function\n")[1].splitlines()
        self.assertIn("100.0%", rows[0])
        self.assertEqual(first["cum_bytes"]["value"],
                         d["estimate"]["view_bytes"]["value"])
        text = self.text("--stacks", 2)
        self.assertRegex(text, r"\n#1  .* MiB \[.*\] MiB  .*%\n"
                               r"    lifetime: median ")
        # Instead of the table, not behind it.
        self.assertNotIn("  function\n", text)
        self.assertNotIn("\n#3  ", text)

    def test_timeline(self):
        text = self.text("--timeline")
        self.assertIn("\u2588", text)
        self.assertRegex(text, " (\u25b2 peak|peak \u25b2)\n")
        ascii_text = self.text("--timeline", "--ascii")
        self.assertTrue(ascii_text.isascii())
        # And where the terminal could not show it.
        self.assertEqual(report("--timeline", self.path,
                                env={"LC_ALL": "C"}), ascii_text)
        rows = list(csv.DictReader(io.StringIO(
            self.text("--timeline", "--csv"))))
        self.assertEqual(len(rows), 201)
        d = self.json()
        for row, point in zip(rows, d["timeline"]):
            self.assertEqual(int(row["time_ns"]), point["time_ns"])
            # Both sum up what is alike, but not in the same order.
            for column, key in (("live_bytes", "value"),
                                ("live_bytes_hi", "hi")):
                self.assertAlmostEqual(
                    float(row[column]), point["live_bytes"][key],
                    delta=1e-9 * point["live_bytes"][key])
            self.assertEqual(row["rss_bytes"], "" if point["rss_bytes"] is None
                             else str(point["rss_bytes"]))

    def test_sizes(self):
        self.assertRegex(self.text("--sizes"),
                         r"\n  size up to +objects +% +bytes +%\n")
        rows = list(csv.DictReader(io.StringIO(
            self.text("--sizes", "--csv"))))
        self.assertEqual(
            [{k: int(v) for k, v in row.items()} for row in rows],
            self.json()["size_classes"])

    def test_sizes_of_a_view(self):
        part = "--view", "live", "--at", "50%"
        text = self.text("--sizes", *part)
        self.assertRegex(text, r"\n  view      live: what is alive at ")
        self.assertIn("\nEstimated bytes by object size in this view", text)
        self.assertRegex(text, r"\n    half at most .*  \[.*, .*\]\n")
        d = self.json(*part)
        rows = list(csv.DictReader(io.StringIO(
            self.text("--sizes", "--csv", *part))))
        self.assertGreater(len(rows), 0)
        # What is shown of the sizes is what the view has.
        self.assertEqual(sum(int(row["samples"]) for row in rows),
                         sum(f["samples"] for f in d["functions"]))
        sizes = [int(row["max_bytes"]) for row in rows]
        self.assertEqual(sizes, sorted(set(sizes)))
        self.assertEqual([p["share"] for p in d["view_size_percentiles"]],
                         [0.5, 0.9, 0.99])
        for p in d["view_size_percentiles"]:
            self.assertLessEqual(p["value"], sizes[-1])
            self.assertLessEqual(p["lo"], p["value"])
            if p["hi"] is not None:
                self.assertLessEqual(p["value"], p["hi"])

    def test_csv(self):
        d = self.json()
        rows = list(csv.DictReader(io.StringIO(self.text("--csv"))))
        self.assertEqual(len(rows), len(d["functions"]))
        for row, f in zip(rows, d["functions"]):
            self.assertNotIn(None, row)
            self.assertEqual(row["function"], f["name"])
            self.assertEqual(row["module"], f["module"] or "")
            for key in ("flat_bytes", "cum_bytes", "flat_objects",
                        "live_bytes"):
                # The two may add up samples in another order.
                for end, part in (("", "value"), ("_lo", "lo"), ("_hi", "hi")):
                    self.assertTrue(math.isclose(
                        float(row[key + end]), f[key][part], rel_tol=1e-12))
            self.assertEqual(int(row["flat_samples"]), f["samples"])
            self.assertEqual(int(row["cum_samples"]), f["cum_samples"])
        rows = list(csv.DictReader(io.StringIO(
            self.text("--csv", "--top", "2", "--sort", "cum"))))
        self.assertEqual(len(rows), 2)
        self.assertGreaterEqual(float(rows[0]["cum_bytes"]),
                                float(rows[1]["cum_bytes"]))

    # ---- refusals ----

    def test_usage(self):
        self.assertIn("usage: sampleprof-report", report("--help"))
        self.assertRegex(report("--version"), r"\Asampleprof-report \d")
        self.assertIn("no FILE was given", report(code=2))
        self.refused("unknown option --frob", "--frob", code=2)
        self.refused("--json takes no value", "--json=1", code=2)
        self.refused("--view takes alloc, live,", "--view", "dead", code=2)
        self.refused("--at needs --view live, leaks or peak", "--at", "1s",
                     "--view", "alloc", code=2)
        self.refused("--confidence takes 90, 95, 99 or 99.9",
                     "--confidence", "97", code=2)
        self.refused("--size takes a range", "--size", "5-4", code=2)
        self.refused("--watch takes a time", "--watch", "0s", code=2)
        self.refused("--json shows everything", "--json", "--top", "1",
                     code=2)

    def test_what_the_file_cannot_answer(self):
        self.refused("--at 2 h 00 min lies after the end", "--at", "2h")
        self.refused("no thread worker: there are 1;", "--thread", "worker")
        self.refused("nothing can be between", "--from", "50%", "--to",
                     "40%")
        self.refused("No such file", path="/nonexistent.sprof")
        self.refused("is not a sampleprof profile", path=__file__)
        self.refused("this is an ELF executable or library, no profile",
                     path=harness.target("program_plain"))

    def test_without_frees(self):
        result = self.execute(harness.target("program_plain"), 5000, period="1K",
                              frees="off")
        profile = result.profile().require_samples(100)
        self.assertFalse(profile.json["has_frees"])
        for key in ("live_bytes", "live_objects", "peak_bytes"):
            self.assertIsNone(profile.json["estimate"][key])
        self.assertIsNone(profile.json["timeline"])
        self.assertIsNone(profile.stacks[0]["live_bytes"])
        self.assertIsNone(profile.stacks[0]["lifetime"])
        text = report(profile.path)
        self.assertIn("view      alloc: what was allocated\n", text)
        self.assertNotIn("\n  live ", text)
        for option in (("--view", "live"), ("--view", "leaks"),
                       ("--view", "peak"), ("--within", "1s"),
                       ("--timeline",)):
            self.refused("needs frees, and this profile has none", *option,
                         path=profile.path)
            self.refused("record again with SAMPLEPROF_FREES=on", *option,
                         path=profile.path)

    def test_runtime_with_pools(self):
        """Whether python's pools are off is a fact of its file."""
        python = harness.require("/usr/bin/python3", "python3")
        pools = "Python takes objects of up to 512 bytes from pools of its own"
        for env, is_said in (({}, True), ({"PYTHONMALLOC": "pymalloc"}, True),
                             ({"PYTHONMALLOC": "malloc"}, False)):
            result = self.execute(
                python, "-c", "x = [bytes(100000) for i in range(100)]",
                env=env, period="16K")
            profile = result.profile().require_samples(100)
            text = " ".join(report(profile.path).split())
            self.assertEqual(pools in text, is_said, (env, text))

    def test_forked_child(self):
        """What it inherited is not in its file, and the report says so."""
        result = self.execute(harness.target("program_processes"), "fork", 3000,
                              5000, 2000, period=1)
        note = "this is a forked child: its live bytes do not contain"
        self.assertEqual(len(result.paths), 3)
        for pid, profile in result.profiles().items():
            profile.require_samples(1000)
            text = report(profile.path)
            self.assertEqual(note in text, pid != result.pid, text)

    def test_closed_pipe_and_full_disk(self):
        command = [os.environ["SAMPLEPROF_REPORT"], "--json", self.path]
        with subprocess.Popen(command, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
            self.assertEqual(process.wait(harness.TIMEOUT_S), 1)
        with open("/dev/full", "wb") as full:
            done = subprocess.run(command, stdout=full, check=False,
                                  stderr=subprocess.PIPE,
                                  timeout=harness.TIMEOUT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space left", done.stderr)


class Watch(harness.Case):
    """A process that allocates until it is told to end."""

    def setUp(self):
        super().setUp()
        self.process = self.start(
            [harness.require("/usr/bin/python3", "python3"), "-c",
             "import sys\n"
             "kept = []\n"
             "for line in iter(sys.stdin.readline, ''):\n"
             "    kept.append(bytearray(100000))\n"
             "    print(flush=True)\n"],
            settings={"period": "16K"}, stdin=subprocess.PIPE)
        self.addCleanup(self.end)
        self.feed(20)
        self.path = os.path.join(self.out, os.listdir(self.out)[0])
        harness.Profile(self.path).require_samples(10)

    def feed(self, lines):
        """The program has taken so many lines more."""
        for _ in range(lines):
            self.process.stdin.write(b"x\n")
            self.process.stdin.flush()
            self.process.stdout.readline()

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.stdout.read()
            self.process.wait(harness.TIMEOUT_S)
        self.process.stdout.close()
        self.process.stderr.close()

    def watch(self, *arguments, **popen):
        # pylint: disable=consider-using-with
        return subprocess.Popen(
            [os.environ["SAMPLEPROF_REPORT"], "--watch", "200ms", *arguments,
             self.path], stderr=subprocess.PIPE, **popen)

    def read_until(self, fd, words, least=1):
        """What comes from fd until the words came that often."""
        text = b""
        deadline = time.monotonic() + harness.TIMEOUT_S
        while text.count(words) < least:
            if not select.select([fd], [], [],
                                 max(0, deadline - time.monotonic()))[0]:
                self.fail(f"{least} times {words} did not come: {text[-2000:]}")
            part = os.read(fd, 65536)
            if not part:
                self.fail(f"ended before {words}: {text[-2000:]}")
            text += part
        return text

    def test_pipe(self):
        """Reports with form feeds in between, the last when it has ended."""
        watching = self.watch("--top", "3", stdout=subprocess.PIPE)
        text = self.read_until(watching.stdout.fileno(), b"\f")
        self.feed(50)
        text += self.read_until(watching.stdout.fileno(), b"\f", 3)
        self.end()
        text += watching.communicate(timeout=harness.TIMEOUT_S)[0]
        self.assertEqual(watching.returncode, 0)
        pages = text.decode().split("\f")
        self.assertGreaterEqual(len(pages), 5)
        for page in pages:
            self.assertTrue(page.startswith("sampleprof report: "), page)
            self.assertIn("\nnext: ", page)
        self.assertIn(", still running\n", pages[0])
        self.assertIn("\n  view      live: what is alive now\n", pages[0])
        self.assertIn(", ended cleanly\n", pages[-1])
        samples = [int(re.search(r" ([\d,]+) samples,", page)[1]
                       .replace(",", "")) for page in pages]
        self.assertEqual(samples, sorted(samples))
        self.assertGreater(samples[-1], samples[0] + 50)

    def terminal(self, rows, columns):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))
        return master, slave

    def test_terminal(self):
        """Redrawn in place, nothing wider or higher than the screen; the
        cursor is back after an interruption."""
        master, slave = self.terminal(18, 90)
        watching = self.watch(stdout=slave)
        os.close(slave)
        text = self.read_until(master, b"\x1b[J", 3)
        watching.send_signal(signal.SIGINT)
        text += self.read_until(master, b"\nnext: ")
        self.assertEqual(watching.wait(harness.TIMEOUT_S), 0)
        self.assertEqual(watching.stderr.read(), b"")
        watching.stderr.close()
        screens = text.decode().split("\x1b[H")
        self.assertEqual(screens[0], "\x1b[?25l")
        for screen in screens[1:-1]:
            self.assertTrue(screen.startswith("sampleprof report: "))
            drawn, rest = screen.split("\x1b[J")
            self.assertIn(rest, ("", "\x1b[?25l"))
            lines = drawn.split("\r\n")
            self.assertEqual(len(lines), 18)
            for line in lines:
                self.assertTrue(line.endswith("\x1b[K"))
                self.assertLessEqual(len(line) - len("\x1b[K"), 90)
            self.assertTrue(any(" function\x1b[K" in line for line in lines))
            self.assertNotIn("\x1b[1m", drawn)
        self.assertTrue(screens[-1].startswith(
            "\x1b[J\x1b[?25hsampleprof report: "))

    def test_terminal_until_the_end(self):
        master, slave = self.terminal(50, 120)
        watching = self.watch("--timeline", stdout=slave)
        os.close(slave)
        self.read_until(master, b"Live bytes over time", 2)
        self.end()
        text = self.read_until(master, b"\x1b[?25h")
        if b"\nnext: " not in text.split(b"\x1b[?25h")[1]:
            self.read_until(master, b"\nnext: ")
        self.assertEqual(watching.wait(harness.TIMEOUT_S), 0)
        watching.stderr.close()

    def test_file_that_goes_away(self):
        watching = self.watch(stdout=subprocess.PIPE)
        self.read_until(watching.stdout.fileno(), b"\f")
        os.rename(self.path, self.path + ".away")
        _, error = watching.communicate(timeout=harness.TIMEOUT_S)
        os.rename(self.path + ".away", self.path)
        self.assertEqual(watching.returncode, 1)
        self.assertIn(b"No such file", error)
