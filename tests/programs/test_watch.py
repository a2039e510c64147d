# SPDX-License-Identifier: MIT
"""`sampleprof fleet watch`: each new profile of a directory is in the database
once, whatever is killed or deleted meanwhile; running processes are updated
until they end; dropped files are reported and counted."""

import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import harness
from test_attach import voluntary_switches
from test_fleet import VIEWS, Fleet, tool

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \S.*")
END = re.compile(r"UTC ended: (\d+) added, (\d+) updated, (\d+) there already, "
                 r"(\d+) waiting, (\d+) lost \((.*)\)\n$")


class Watch(Fleet):

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("in"))
        self.log = self.path("log")
        self.looks = 0

    def begin(self, *options, waits=True):
        """Watch in/, and write the log behind what is there."""
        before = self.said().count("UTC watching in/")
        with open(self.log, "ab") as log:
            # pylint: disable=consider-using-with
            process = subprocess.Popen(
                [tool("sampleprof"), "fleet", "watch", "--interval=100ms",
                 *options, "in"], cwd=self.dir, stderr=log,
                stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        if waits:
            harness.wait_until(
                lambda: self.said().count("UTC watching in/") > before)
        return process

    def said(self):
        with contextlib.suppress(FileNotFoundError), \
                open(self.log, encoding="utf-8") as log:
            return log.read()
        return ""

    def wait_for(self, text):
        harness.wait_until(lambda: text in self.said())

    def end(self, process):
        """(added, updated, there already, waiting, lost, bytes lost)"""
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(harness.TIMEOUT_S), 0)
        for line in self.said().splitlines():
            self.assertRegex(line, LINE)
        *counts, size = END.search(self.said()).groups()
        return (*map(int, counts), size)

    def put(self, file):
        """A file comes whole, as recordings do."""
        shutil.copy(self.path(file), self.path("in/.part"))
        os.rename(self.path("in/.part"), self.path("in/" + file))

    def sums(self):
        return self.rows("SELECT count(*), sum(samples), sum(alloc_bytes), "
                         "(SELECT count(*) FROM samples) FROM processes")[0]

    def truth(self, files):
        said = self.json("report", *files)
        return (len(files), said["samples"], said["exact"]["alloc_bytes"],
                said["samples"])

    def look(self):
        """The directory is looked at, from its first file to its last: of two
        files that are no profiles the second comes when the first was seen."""
        for _ in range(2):
            self.looks += 1
            name = f"no-{self.looks}.sprof.zst"
            with open(self.path(name), "wb") as text:
                text.write(b"\x28\xb5\x2f\xfd" + b"no profile" * 9)
            self.put(name)
            self.wait_for(f"cannot add {name}: ")

    def kept(self):
        with contextlib.suppress(FileNotFoundError):
            return sorted(os.listdir(self.path("in/.sampleprof-backlog")))
        return []


class Following(Watch):

    @harness.nightly_too
    def test_what_comes(self):
        """Files that are there, that come, that become whole, and that never
        will; the views say what the report says of the files."""
        files = self.record(3)
        self.fleet("init")
        self.put(files[0])
        with open(self.path("in/text.sprof.zst"), "wb") as text:
            text.write(b"\x28\xb5\x2f\xfd" + b"no profile" * 9)
        process = self.begin()
        self.wait_for(f"added {files[0]} (ended)")
        self.wait_for("cannot add text.sprof.zst: ")
        with open(self.path(files[1]), "rb") as whole:
            data = whole.read()
        with open(self.path("in/b.sprof"), "wb") as part:
            part.write(data[:len(data) // 2])
            part.flush()
            self.wait_for("cannot add b.sprof: was cut short")
            part.write(data[len(data) // 2:])
        self.wait_for("added b.sprof (ended)")
        self.put(files[2])
        os.link(self.path("in/" + files[2]), self.path("in/again.sprof"))
        shutil.copy(self.path(files[2]), self.path("in/copy.sprof"))
        harness.wait_until(lambda: self.sums()[0] == 3)
        self.look()
        self.assertEqual(self.end(process)[0:2], (3, 0))
        self.assertEqual(self.sums(), self.truth(files))
        self.assertEqual(self.said().count("text.sprof.zst"), 1)
        self.assertEqual(self.said().count("cannot add b.sprof"), 1)
        self.check_same(files, views=VIEWS[:harness.rounds(2, len(VIEWS))])
        # Another one finds all of them there.
        process = self.begin()
        self.look()
        self.assertEqual(self.end(process)[0:2], (0, 0))

    def test_running(self):
        """Each state replaces the one before, and the end comes at once."""
        self.fleet("init")
        self.out = self.path("in")
        target = self.start(
            ["/usr/bin/python3", "-c",
             "import sys\nx = []\n"
             "for line in sys.stdin:\n"
             " x += [bytearray(5000) for i in range(4000)]\n"
             " print(1, flush=True)\n"],
            settings={"period": "32K"}, stdin=subprocess.PIPE)
        self.addCleanup(target.stdout.close)
        self.addCleanup(target.stderr.close)
        watch = self.begin("--running=200ms")
        seen = []
        for _ in range(3):
            target.stdin.write(b"\n")
            target.stdin.flush()
            target.stdout.readline()
            harness.wait_until(
                lambda: self.sums()[1] and self.sums() not in seen)
            seen.append(self.sums())
            self.assertEqual(seen[-1][0], 1)
            self.assertEqual(seen[-1][1], seen[-1][3])
        target.stdin.close()
        target.wait(harness.TIMEOUT_S)
        name = os.listdir(self.path("in"))[0]
        self.wait_for(f"updated {name} (ended)")
        added, updated, *_ = self.end(watch)
        self.assertEqual(added, 1)
        self.assertGreaterEqual(updated, 3)
        self.assertEqual(self.sums(), self.truth(["in/" + name]))

    def test_running_off(self):
        """Nothing of a process before its end, which may be a kill."""
        self.fleet("init")
        self.out = self.path("in")
        target = self.start([harness.target("program_idle")],
                            settings={"period": "1"}, stdin=subprocess.PIPE,
                            bufsize=0)
        self.addCleanup(target.stdout.close)
        self.addCleanup(target.stderr.close)
        self.addCleanup(target.stdin.close)
        target.stdin.write(b"\x09")
        target.stdout.read(1)
        watch = self.begin("--running=off")
        self.look()
        self.assertEqual(self.sums()[0], 0)
        target.kill()
        target.wait(harness.TIMEOUT_S)
        self.wait_for("(no end recorded)")
        self.assertEqual(self.end(watch)[0], 1)


class Faults(Watch):

    @harness.nightly_too
    def test_killed(self):
        """kill -9 of the watch at any moment: nothing is lost, or twice."""
        files = self.record(6)
        rng = random.Random(3)
        self.fleet("init")
        for i in range(harness.rounds(7, 14)):
            process = self.begin(waits=False)
            if i < len(files):
                self.put(files[i])
            time.sleep(rng.random() * 0.3)
            process.kill()
            process.wait()
            processes, samples, _, rows = self.sums()
            self.assertEqual(samples or 0, rows)
            self.assertLessEqual(processes, len(files))
        process = self.begin()
        harness.wait_until(lambda: self.sums()[0] == len(files))
        self.end(process)
        self.assertEqual(self.sums(), self.truth(files))

    def test_database_away(self):
        """What is deleted while the database is away is kept, also over a kill
        of the watch, and sent when it is back."""
        files = self.record(3)
        self.fleet("init")
        process = self.begin()
        os.rename(self.path("fleet.db"), self.path("away.db"))
        for file in files[:2]:
            self.put(file)
        harness.wait_until(lambda: len(self.kept()) == 2)
        self.assertIn(" waiting\n", self.said())
        for file in files[:2]:
            os.unlink(self.path("in/" + file))
        seen = voluntary_switches(process.pid)
        harness.wait_until(lambda: voluntary_switches(process.pid) > seen + 3)
        process.kill()
        process.wait()
        os.rename(self.path("away.db"), self.path("fleet.db"))
        process = self.begin()
        self.put(files[2])
        harness.wait_until(lambda: self.sums()[0] == 3)
        for file in files:
            self.wait_for(f"added {file} (ended)")
        harness.wait_until(lambda: not self.kept())
        self.assertEqual(self.end(process), (3, 0, 0, 0, 0, "0 B"))
        self.assertEqual(self.sums(), self.truth(files))

    def test_limit(self):
        """Beyond the limit the oldest go, and each is said and counted; what
        is still in the directory is not lost."""
        files = self.record(4)
        for file in files:
            with open(self.path(file), "r+b") as profile:
                data = profile.read()
                profile.seek(0)
                # On disk, where files have holes.
                profile.write(data)
        large = [os.path.getsize(self.path(f)) for f in files]
        self.assertGreater(3 * min(large), 1280 << 10)
        self.assertLess(2 * max(large), 1280 << 10)
        self.fleet("init")
        process = self.begin("--backlog=1280K")
        os.rename(self.path("fleet.db"), self.path("away.db"))
        for i, file in enumerate(files):
            self.put(file)
            os.utime(self.path("in/" + file), (i, i))
        harness.wait_until(lambda: len(self.kept()) == 4)
        for file in files[:3]:
            os.unlink(self.path("in/" + file))
        self.wait_for(f"dropped {files[0]} ")
        harness.wait_until(lambda: len(self.kept()) == 3)
        os.rename(self.path("away.db"), self.path("fleet.db"))
        harness.wait_until(lambda: self.sums()[0] == 3)
        harness.wait_until(lambda: not self.kept())
        added, _, _, waiting, lost, size = self.end(process)
        self.assertEqual((added, waiting, lost), (3, 0, 1))
        self.assertNotEqual(size, "0 B")
        self.assertRegex(self.said(), rf"dropped {files[0]} \([\d.]+ KiB\): the "
                         "backlog is above its limit of 1.25 MiB; it is lost")
        self.assertEqual(self.sums(), self.truth(files[1:]))

    @staticmethod
    def has_open(process, name):
        with contextlib.suppress(FileNotFoundError):
            folder = f"/proc/{process.pid}/fd/"
            return any(os.readlink(folder + fd).endswith("/" + name)
                       for fd in os.listdir(folder))
        return False

    def test_another_writer(self):
        """One that holds the database is waited for, also if it is killed in
        the middle of what it writes."""
        files = self.record(2)
        self.fleet("init")
        self.fleet("add", files[0])
        writer = subprocess.Popen(  # pylint: disable=consider-using-with
            [sys.executable, "-c",
             "import sqlite3, time\n"
             "c = sqlite3.connect('fleet.db', isolation_level=None)\n"
             "c.execute('PRAGMA cache_size = 1')\n"
             "c.execute('BEGIN IMMEDIATE')\n"
             "c.execute('DELETE FROM samples')\n"
             "c.execute('DELETE FROM processes')\n"
             "print(1, flush=True)\n"
             "time.sleep(600)\n"], cwd=self.dir, stdout=subprocess.PIPE)
        self.addCleanup(writer.wait)
        self.addCleanup(writer.kill)
        self.addCleanup(writer.stdout.close)
        writer.stdout.readline()
        self.put(files[1])
        process = self.begin(waits=False)
        harness.wait_until(lambda: self.has_open(process, "fleet.db"))
        writer.kill()
        writer.wait()
        self.wait_for(f"added {files[1]} (ended)")
        self.end(process)
        self.assertEqual(self.sums(), self.truth(files))

    def test_end_without_another_try(self):
        """A database goes away once the end has come: no other try is
        promised."""
        files = self.record(1)
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            process = self.begin(f"--db=clickhouse://127.0.0.1:{port}/d",
                                 waits=False)
            server.accept()[0].close()  # it is looked for at the beginning
            self.wait_for("UTC watching in/")
            self.put(files[0])
            with server.accept()[0]:
                process.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(process)[:4], (0, 0, 0, 1))
        self.assertIn("cannot send", self.said())
        self.assertNotIn("next try", self.said())

    def test_backlog_of_another(self):
        """Nothing is deleted in a directory that somebody else chose."""
        self.fleet("init")
        os.mkdir(self.path("precious"))
        os.symlink(self.path("precious"), self.path("in/.sampleprof-backlog"))
        done = self.fleet("watch", "in", code=1)
        self.assertIn("is not a directory that only this user can write to",
                      done.stderr)

    def test_deleted_before(self):
        """A file that could not be kept is said to be lost."""
        files = self.record(1)
        self.fleet("init")
        process = self.begin()
        os.rename(self.path("fleet.db"), self.path("away.db"))
        self.put(files[0])
        harness.wait_until(self.kept)
        shutil.rmtree(self.path("in/.sampleprof-backlog"))
        os.unlink(self.path("in/" + files[0]))
        self.wait_for(f"{files[0]} was deleted before it was sent; it is lost")
        self.assertEqual(self.end(process)[4], 1)


class Command(Watch):

    def test_words(self):
        self.fleet("watch", "in", code=1)  # no database
        self.fleet("init")
        done = self.fleet("watch", "nowhere", code=1)
        self.assertIn("nowhere/: No such file or directory", done.stderr)
        self.fleet("watch", "in", "in", code=2)
        self.fleet("watch", "--top=3", code=2)
        self.fleet("watch", "--label=a=b", "in", code=2)
        self.fleet("top", "--interval=1s", code=2)
        for wrong in ("--interval=0s", "--interval=1ms", "--interval=ever",
                      "--running=25h", "--running=on", "--backlog=1K",
                      "--backlog=much"):
            done = self.fleet("watch", wrong, "in", code=2)
            self.assertRegex(done.stderr, r"--\w+ takes a")
        self.fleet("watch", "--db=sqlite:", "in", code=1)
