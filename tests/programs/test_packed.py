# SPDX-License-Identifier: MIT
"""Packed copies give the same reports: of real programs, threads, killed
processes, files that discarded samples, `tests/format/golden`.  Packing again
gives the same bytes; damage is kept; a file that was cut short is reported."""

import csv
import glob
import json
import os
import re
import shutil
import signal

import harness

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
MS = 1000000
VIEWS = [["--view", view] for view in ("alloc", "live", "peak", "leaks",
                                       "temporary")]
# What is asked of most copies, and whether they are packed again.
SHORT = harness.rounds((VIEWS[1:3], False), (VIEWS, True))
# The other kinds are in the nightly list.
GOLDEN = harness.rounds(("v1-live/exit", "v1-segments/bounded", "v1-steps/*",
                         "v1/killed"), ("*/*",))


def is_time(key):
    return key == "time" or key.endswith("_ns")


def rows(text):
    """Of a table: numbers with a point are numbers."""
    return [[float(cell) if re.fullmatch(r"\d+\.\d+", cell) else cell
             for cell in row] for row in csv.reader(text.decode().split())]


class Packed(harness.Case):

    def json(self, path, *options):
        # A function with few objects can have a lifetime that ends with the
        # run, give or take a millisecond; with all frames none does.
        done = harness.run_report("--json", "--all-frames", *options, path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def pack(self, path, name="packed.sprof.zst"):
        to = os.path.join(self.dir, name)
        done = harness.run_report("symbolize", path, "-o", to)
        self.assertEqual(done.returncode, 0, done.stderr)
        return to, done.stdout.decode()

    def same(self, a, b, error_ns, where=""):
        """All keys and values, but for times within the error."""
        if is_time(where.rpartition(".")[2]) and isinstance(a, (int, float)):
            unit = 1 if where.endswith("_ns") else 1e9
            # A lifetime lies between two times; each may be that wrong, since
            # events are spread evenly over their millisecond.
            # Quantiles of lifetimes are within 1/128, in either file.
            times, near = (2, a / 64) if ".lifetime." in where else (1, 0)
            self.assertLessEqual(abs(a - b) * unit,
                                 times * error_ns + near * unit, where)
            return
        self.assertIs(type(a), type(b), where)
        if isinstance(a, dict):
            self.assertEqual(list(a), list(b), where)
            for key, value in a.items():
                self.same(value, b[key], error_ns, f"{where}.{key}")
        elif isinstance(a, list):
            self.assertEqual(len(a), len(b), where)
            for i, value in enumerate(a):
                self.same(value, b[i], error_ns, f"{where}[{i}]")
        elif isinstance(a, float):  # summed up in another order
            self.assertAlmostEqual(a, b, delta=1e-9 * abs(a), msg=where)
        else:
            self.assertEqual(a, b, where)

    def copies(self, path):
        """Two copies with symbols, a plain and a packed one, and what is told
        of that."""
        return self.pack(path, "plain.sprof")[0], *self.pack(path)

    def check(self, copies, error_ns, *options):
        """Of one question; the symbols are those of the copy in both."""
        plain, packed, told = copies
        before, after = (self.json(p, *options) for p in (plain, packed))
        self.assertEqual(after["time_error_ns"], error_ns)
        self.assertEqual("to within 1 ms" in told, error_ns == MS)
        for document in (before, after):
            file = document.pop("file")
            document.pop("time_error_ns")
            for key in ("notes", "remedies"):
                document[key] = [line.replace(file, "FILE")
                                 for line in document[key]]
            for part in document["profiles"]:
                part.pop("file")
            document["settings"].pop("time_error_ns", None)
            within = [note for note in document["notes"]
                      if note.startswith("times are right to within 1 ms")]
            # Of a run that lasts long enough it is not said.
            self.assertLessEqual(len(within),
                                 document is after and error_ns == MS)
            document["notes"] = [note for note in document["notes"]
                                 if note not in within]
            # In the order in which the file mentions them.
            document["thread_infos"].sort(key=lambda t: t["index"])
            if error_ns:  # its points fall between samples
                document.pop("timeline", None)
        self.same(before, after, error_ns)
        return packed, after

    def check_all(self, path, error_ns, views=tuple(VIEWS), again=True):
        copies = self.copies(path)
        for view in views:
            packed, _ = self.check(copies, error_ns, *view)
        if not again:
            return packed
        with open(packed, "rb") as file:
            first = file.read()
        again, _ = self.pack(packed, "again.sprof.zst")
        with open(again, "rb") as file:
            self.assertEqual(file.read(), first)
        return packed

    # ---- programs ----

    @harness.nightly_too
    def test_every_allocation(self):
        """Times to the millisecond, less than a fiftieth of the size."""
        result = self.execute("perl", "-e", "for my $t (1..10) { my %h; "
                              "$h{'k' . $_ % 300} .= 'x' x ($_ % 50) "
                              "for 1..40000; }", period=1)
        path, = result.paths
        samples = harness.Profile(path).require_samples(10000).samples
        packed = self.check_all(path, MS, harness.rounds(VIEWS[::3], VIEWS))
        size = os.path.getsize(packed)
        self.assertLess(size, 512 * os.stat(path).st_blocks / 50)
        self.assertLess(size, 2 * samples)

    @harness.nightly_too
    def test_sampled(self):
        """Few samples have all their nanoseconds."""
        result = self.execute(harness.target("program_live_shapes"), "cache",
                              period=1 << 20)
        path, = result.paths
        harness.Profile(path).require_samples(1)
        self.check_all(path, 0, *SHORT)

    @harness.nightly_too
    def test_threads(self):
        """Objects that other threads free."""
        result = self.execute(harness.target("program_live_threads"), period=512)
        path, = result.paths
        harness.Profile(path).require_samples(100)
        self.check_all(path, MS, *SHORT)

    def test_without_frees(self):
        result = self.execute(harness.target("program_live_threads"), period=64,
                              frees="off")
        path, = result.paths
        harness.Profile(path).require_samples(100)
        copies = self.copies(path)
        self.check(copies, self.json(copies[1])["time_error_ns"])

    def test_killed(self):
        """What was being written stays unfinished, and that is no damage."""
        process = self.start([harness.target("program_kill_storm"), 4],
                             env={"SAMPLEPROF_OUT": os.path.join(
                                 self.dir, "killed.sprof")},
                             settings={"period": "64"})
        self.assertEqual(process.stdout.readline(), b"ready\n")
        harness.wait_for_cpu(process.pid, 0.05)
        process.send_signal(signal.SIGKILL)
        self.finish(process)
        _, document = self.check(self.copies(
            os.path.join(self.dir, "killed.sprof")), MS)
        self.assertEqual(document["end"], "killed")
        self.assertGreater(document["samples"], 100)

    @harness.nightly_too
    def test_bounded(self):
        """A file that has discarded samples."""
        result = self.execute("perl", "-e", "for my $t (1..20) { my %h; "
                              "$h{'k' . $_ % 300} .= 'x' x ($_ % 50) "
                              "for 1..20000; }", period=1, max_file="1M")
        path, = result.paths
        before = self.json(path)
        self.assertGreater(before["discarded_bytes"], 0)
        self.check_all(path, MS, *SHORT)

    # ---- files ----

    @harness.nightly_too
    def test_golden(self):
        """They are kept without the zeros at their end."""
        done = 0
        for golden in sorted(path for kind in GOLDEN for path in glob.glob(
                os.path.join(ROOT, "tests", "format", "golden",
                             kind + ".sprof"))):
            path = shutil.copy(golden, os.path.join(self.dir, "golden.sprof"))
            with open(path, "rb") as file:
                head = file.read(96)
            os.truncate(path, int.from_bytes(head[72:80], "little"))
            with self.subTest(golden=golden):
                copies = self.copies(path)
                error_ns = self.json(copies[1])["time_error_ns"]
                frees = self.json(path)["has_frees"]
                for view in ["alloc"] + ["live"] * frees:
                    self.check(copies, error_ns, "--view", view)
                for by in ("phase", "thread"):
                    self.same(*(sorted(rows(harness.run_report(
                        "--csv", "--by", by, p).stdout)) for p in (
                            path, copies[1])), error_ns)
            done += 1
        self.assertGreaterEqual(done, harness.rounds(4, 6))

    def test_damage_stays(self):
        """A copy of a damaged file has the damage."""
        result = self.execute("perl", "-e", "my @a = map { 'x' x $_ } "
                              "1..5000", period=1)
        path, = result.paths
        with open(path, "r+b") as file:
            file.seek(2 * 65536 + 30000)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        before = self.json(path)["damage"]
        self.assertTrue(before["text"])
        after = self.json(self.pack(path)[0])
        self.assertEqual(after["damage"], before)
        self.assertEqual(after["time_error_ns"], 0)

    def test_cut(self):
        """Half of a packed file says that it is."""
        result = self.execute("perl", "-e", "my @a = map { rand } 1..50000",
                              period=1)
        packed, _ = self.pack(result.paths[0])
        os.truncate(packed, os.path.getsize(packed) * 9 // 10)
        done = harness.run_report(packed)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"cut short", done.stdout)
        self.assertNotIn(b", exact", done.stdout)
        self.assertNotIn(b"cleanly", done.stdout)
        whole = json.loads(harness.run_report("--json", packed).stdout)
        self.assertTrue(whole["whole"]["cut"])
        self.assertFalse(whole["exact"]["is_complete"])
        self.assertIsNone(whole["estimate"]["live_bytes"]["hi"])
        done = harness.run_report("leaks", packed)
        self.assertIn(b"cut short", done.stdout + done.stderr)

    def test_name_decides(self):
        """A packed file under a plain name is still one, and smaller."""
        result = self.execute(harness.target("program_live_shapes"), "cache",
                              period=4096)
        path, = result.paths
        packed, _ = self.pack(path)
        plain, _ = self.pack(packed, "unpacked.sprof")
        with open(plain, "rb") as file:
            self.assertEqual(file.read(4), b"\x89spr")
        plain, packed = self.json(plain), self.json(packed)
        for key in ("samples", "exact", "stacks", "estimate"):
            self.assertEqual(plain[key], packed[key])
