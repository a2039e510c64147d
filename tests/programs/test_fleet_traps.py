# SPDX-License-Identifier: MIT
"""Traps of a fleet; each test rejects the wrong answer: colliding ids, hosts
with different clocks, time zones, files that are added while they grow, sums of
drawn processes that are only scaled, numbers above 2^63."""

import csv
import glob
import shutil
import sqlite3
import subprocess
import time

import harness
from test_fleet import Fleet, tool

HOUR_NS = 3600 * 10**9
# Until its standard input is closed, some 4 MB a second at most.
GROWS = """
import select, sys
x = []
print(1, flush=True)
while not select.select([sys.stdin], [], [], 0.01)[0]:
    for _ in range(10):
        x.append(bytearray(3000))
        x.append(bytearray(700))
    del x[::7]
"""


class Ids(Fleet):

    def test_that_collide(self):
        """An id that stands for another stack or module, or a file's for another
        sample: nothing of the file is added, and what is there stays."""
        files = self.record(2)
        self.fleet("init")
        self.fleet("add", files[0])
        shutil.copy(self.path("fleet.db"), self.path("good.db"))
        for change, what in (
                ("stacks SET frames = substr(frames, 1, length(frames) - 16)",
                 "call stack"),
                ("stacks SET flags = flags + 1", "call stack"),
                ("modules SET path = path || 'x'", "module"),
                ("modules SET build_id = x'00'", "module"),
                ("modules SET end_pc = end_pc + 1", "module")):
            with self.subTest(change=change):
                shutil.copy(self.path("good.db"), self.path("fleet.db"))
                self.rows(f"UPDATE {change}")
                before = self.rows("SELECT count(*) FROM samples")
                done = self.fleet("add", files[1], code=1)
                self.assertIn(f"has a {what} whose id stands for another one",
                              done.stderr)
                self.assertEqual(self.rows("SELECT count(*) FROM processes"),
                                 [(1,)])
                self.assertEqual(self.rows("SELECT count(*) FROM samples"),
                                 before)

    def test_across_databases(self):
        """Databases that do not know of each other give the same ids: rows of
        one mean the same in the other."""
        files = self.record(2)
        for i, db in enumerate(("a.db", "b.db")):
            self.fleet("init", f"--db=sqlite:{db}")
            self.fleet("add", f"--db=sqlite:{db}", *files[:2 - i])
        self.fleet("add", "--db=sqlite:b.db", files[1])
        for table in ("stacks", "modules"):
            self.assertEqual(
                self.rows(f"SELECT * FROM {table} ORDER BY 1", "a.db"),
                self.rows(f"SELECT * FROM {table} ORDER BY 1", "b.db"))


class Clocks(Fleet):

    def top(self, *words, zone="UTC"):
        return self.fleet("top", *words, "--csv", "--top=0",
                          env=self.environment(shim=False, env={"TZ": zone})
                          ).stdout

    def said(self):
        """Sums of the samples, and of the rollup."""
        said = self.json("fleet", "report")
        rows = list(csv.reader(self.top().splitlines()))[1:]
        self.assertGreater(len(rows), 5)
        return {"exact": said["exact"],
                "view": said["estimate"]["view_bytes"],
                "functions": {f["name"] + f["module"]: f["flat_bytes"]["value"]
                              for f in said["functions"]},
                "hours": {r[0] + r[1]: [float(v) for v in r[4:] if v]
                          for r in rows}}

    def move(self, host, by_ns):
        """As if that host's clock were wrong by so much."""
        self.rows("UPDATE hours SET hour = max(0, hour + "
                  f"{by_ns // HOUR_NS}) WHERE process IN (SELECT process FROM "
                  f"processes WHERE host = '{host}')")
        self.rows("UPDATE processes SET start_unix_ns = max(0, start_unix_ns "
                  f"+ {by_ns}) WHERE host = '{host}'")

    @harness.nightly_too
    def test_that_differ(self):
        """A host is hours ahead or in 1970, in the nightly list a second behind
        or in 2200, too: all sums stay, of samples and of hours; and by time its
        processes are chosen by its own clock."""
        self.fleet("init")
        self.fleet("add", *self.record(2))
        self.rows("UPDATE processes SET host = 'h' || process")
        sums = self.said()
        shutil.copy(self.path("fleet.db"), self.path("good.db"))
        for by_ns in (3 * HOUR_NS, -100 * 365 * 24 * HOUR_NS, -10**9,
                      174 * 365 * 24 * HOUR_NS)[:harness.rounds(2, 4)]:
            with self.subTest(by_ns=by_ns):
                shutil.copy(self.path("good.db"), self.path("fleet.db"))
                self.move("h2", by_ns)
                self.assert_same(sums, self.said())
                start, duration = self.rows(
                    "SELECT start_unix_ns, duration_ns FROM processes WHERE "
                    "host = 'h2'")[0]
                span = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(s))
                        for s in (start // 10**9,
                                  (start + duration) // 10**9 + 1)]
                done = self.fleet("stats", f"--from={span[0]}",
                                  f"--to={span[1]}", "--host=h2")
                self.assertIn("1 process of", done.stdout)
                if abs(by_ns) >= HOUR_NS:
                    self.fleet("top", f"--from={span[0]}", f"--to={span[1]}",
                               "--host=h1", code=1)

    def test_zones(self):
        """--from, --to and --at are UTC, wherever it is asked."""
        self.fleet("init")
        self.fleet("add", *self.record(2))
        self.rows("UPDATE processes SET start_unix_ns = 1767225600000000000 + "
                  "7200000000000 * (process - 1), duration_ns = 3600000000000")
        self.rows("UPDATE hours SET hour = 490896 + 2 * (process - 1)")
        for words in (("--from=2026-01-01", "--to=2026-01-01T01:00"),
                      ("--from=2026-01-01T02:00",),
                      ("--view=live", "--at=2026-01-01T00:30:00")):
            said = {self.top(*words, zone=zone) for zone in (
                "UTC", "Asia/Kathmandu", "America/New_York")}
            self.assertEqual(len(said), 1, words)
            self.assertGreater(len(said.pop().splitlines()), 1, words)


class Growing(Fleet):

    def test_added_while_it_grows(self):
        """Each state that is added is whole, has no less than the one before,
        and the last is what the file says; copies made amid writes are taken
        as they are or refused."""
        program = self.start(["/usr/bin/python3", "-c", GROWS],
                             settings={"period": "4K"}, stdin=subprocess.PIPE)
        self.addCleanup(program.kill)
        program.stdout.readline()
        file = glob.glob(self.out + "/*.sprof")[0]
        self.fleet("init")
        last, states = 0, 0
        ended = False
        while not ended:
            ended = states > 2
            if ended:
                self.assertEqual(self.finish(program).returncode, 0)
            shutil.copy(file, self.path("copy.sprof"))
            for path in (file, self.path("copy.sprof")):
                done = subprocess.run(
                    [tool("sampleprof"), "fleet", "add", path], cwd=self.dir,
                    capture_output=True, text=True, check=False,
                    env=self.environment(shim=False))
                if done.returncode:
                    self.assertIn("was cut short", done.stderr)
                    continue
                (process, samples, there, hours), = self.rows(
                    "SELECT process, samples, (SELECT count(*) FROM samples), "
                    "(SELECT sum(samples) FROM hours) FROM processes")
                self.assertEqual((there, hours), (samples, samples), process)
                self.assertGreaterEqual(samples, last)
                states += samples > last
                last = samples
        self.assert_same(
            self.comparable(self.json("report", file))["functions"],
            self.comparable(self.json("fleet", "report"))["functions"])


class Sums(Fleet):

    def test_of_drawn_processes(self):
        """Of drawn processes the interval is wider than that of those that were
        recorded, scaled: that only knows the error of sampling objects."""
        self.fleet("init")
        self.fleet("add", *self.record(6))
        self.rows("UPDATE processes SET fraction = 0.25, draw = process")
        drawn = self.json("fleet", "report")["estimate"]["view_bytes"]
        self.rows("UPDATE processes SET fraction = 1")
        whole = self.json("fleet", "report")["estimate"]["view_bytes"]
        # The one knows exact totals, the other only samples.
        self.assertAlmostEqual(drawn["value"] / whole["value"], 4, delta=0.4)
        self.assertGreater(drawn["hi"] - drawn["lo"],
                           1.5 * 4 * (whole["hi"] - whole["lo"]))

    def test_large_numbers(self):
        """Totals beyond 2^63 are numbers, and sums of them stay at the largest
        one instead of beginning again."""
        self.fleet("init")
        self.fleet("add", *self.record(2))
        with sqlite3.connect(self.path("fleet.db")) as connection:
            connection.execute("UPDATE processes SET alloc_bytes = -2 "
                               "WHERE process = 1")
        connection.close()
        exact = self.json("fleet", "report")["exact"]
        self.assertEqual(exact["alloc_bytes"], 2**64 - 1)
