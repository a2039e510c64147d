# SPDX-License-Identifier: MIT
"""Rounds of `sampleprof attach`, some work and `detach` against the programs of
tests/compat/attach/run: more busy threads than processors, redis, sqlite in
threads of Python, forks, linked allocators, no PIE and full RELRO, other
namespaces and root directories, a process under a debugger."""

import contextlib
import glob
import os
import random
import signal
import subprocess
import time
import unittest

import attaching
import harness

ROUNDS = int(os.environ.get("SAMPLEPROF_TEST_ATTACH", harness.rounds(2, 50)))
READ_EACH = 10  # a profile, of those whose totals are known
THREADS_BUSY = 64
MOMENT_S = 0.1
LONGEST_S = 30  # of a command
# What a command may say of such a program.
KNOWN = r"^$|nothing is attached|has ended|executing another program" \
    r"|one program after the other|no thread was found|helper that traces" \
    r"|let go: try again|detach again|is recorded already" \
    r"|is being recorded already"
SQLITE = """
import sqlite3, sys, threading
ended = threading.Event()
def work():
    db = sqlite3.connect(":memory:")
    db.execute("create table t(a integer primary key, b text)")
    while not ended.is_set():
        db.executemany("insert into t(b) values (?)",
                       [("x" * i,) for i in range(200)])
        row, = db.execute("select count(*), max(length(b)) from t")
        assert row == (200, 199), row
        db.execute("delete from t")
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
print("going", flush=True)
sys.stdin.readline()
ended.set()
for t in threads: t.join()
print("ok")
"""


class Case(harness.Case):

    def rounds(self, pid):
        """While it works all the time."""
        for _ in range(ROUNDS):
            path, _ = attaching.attach(pid, self.out + "/", "--follow", "none")
            harness.wait_for_cpu(pid, 0.002)
            attaching.detach(pid)
            os.unlink(path)

    def exact_rounds(self, talk, out=None, lost=()):
        """It stands still at both ends, and counts what it allocates."""
        for i in range(ROUNDS):
            path, _ = attaching.attach(talk.pid, out or self.out + "/",
                                       "--period", "64K")
            talk.say("go")
            truth = talk.say("stop")
            attaching.detach(talk.pid)
            if i % READ_EACH == 0:
                profile = harness.Profile(path)
                self.assertEqual(
                    (profile.end, profile.exact, set(profile.lost())),
                    ("detached", truth[1:], set(lost)))
            os.unlink(path)
        talk.end()

    def check_end(self, process):
        """It found nothing wrong itself."""
        stdout, stderr = process.communicate(b"end\n", harness.TIMEOUT_S)
        self.assertEqual((process.returncode, stdout, stderr),
                         (0, b"ok\n", b""))


class Rounds(Case):

    @harness.nightly
    def test_busy(self):
        """While many threads do nothing but allocate, so that hardly one is
        run, or outside the allocator: totals within what was allocated."""
        talk = attaching.Talk(self, [harness.target("program_attached"),
                                     THREADS_BUSY])
        talk.say("go")
        for _ in range(ROUNDS):
            # Often a thread is in a sample when the profile ends.
            path, _ = attaching.attach(talk.pid, self.out + "/", "--period",
                                       "32K")
            attaching.detach(talk.pid)
            talk.process.send_signal(signal.SIGSTOP)
            found = harness.Profile(path)
            talk.process.send_signal(signal.SIGCONT)
            self.assertEqual(found.end, "detached")
            # A thread without a processor may be just counting, and others
            # allocate before the one that begins the profile is done.
            self.assertLessEqual(set(found.lost()),
                                 {"class_totals_not_published",
                                  "allocations_during_start"})
        truth = talk.say("stop")
        self.assertLess(harness.Profile(path).exact[0], truth[1])
        talk.end()

    @harness.nightly_too
    def test_forks(self):
        process = self.start([harness.target("program_attached_loads"),
                              "fork"], stdin=subprocess.PIPE, shim=False)
        self.addCleanup(process.kill)
        self.rounds(process.pid)
        self.check_end(process)

    @harness.nightly_too
    def test_sqlite(self):
        process = self.start(["/usr/bin/python3", "-c", SQLITE],
                             stdin=subprocess.PIPE, shim=False)
        self.addCleanup(process.kill)
        process.stdout.readline()
        self.rounds(process.pid)
        self.check_end(process)

    @harness.nightly
    def test_redis(self):
        process, ask, socket = self.start_redis(shim=False)
        load = self.start([harness.require("redis-benchmark", "redis-tools"),
                           "-s", socket, "-l", "-q", "-r", 1000, "-d", 300,
                           "-t", "set,get,lpush,lpop"], shim=False)
        self.addCleanup(load.kill)
        ask("set", "kept", "x" * 500)
        self.rounds(process.pid)
        self.assertIsNone(load.poll())
        self.assertEqual(ask("get", "kept"), b"x" * 500 + b"\n")
        load.kill()
        load.communicate(timeout=harness.TIMEOUT_S)
        ask("shutdown", "nosave")
        process.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual(process.returncode, 0)

    @harness.nightly_too
    def test_linked(self):
        """In other ways, and to other allocators (in the ordinary list those
        have one round each: attach_places.Allocators)."""
        for name in ("no_pie", "relro", "lazy", "jemalloc",
                     "tcmalloc_minimal", "mimalloc")[:harness.rounds(3, 6)]:
            with self.subTest(name):
                self.exact_rounds(attaching.Talk(self, [
                    harness.target("program_attached_" + name), 2]))

    @harness.nightly_too
    def test_traced(self):
        talk = attaching.Talk(self, [harness.target("program_attached"), 1])
        strace = self.start([harness.require("strace", "strace"), "-o",
                             "/dev/null", "-p", talk.pid], shim=False)
        self.addCleanup(strace.kill)
        harness.wait_until(lambda: "TracerPid:\t0" not in open(
            f"/proc/{talk.pid}/status", encoding="ascii").read())
        for _ in range(ROUNDS):
            done = attaching.run("attach", talk.pid, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(f"is being traced by process {strace.pid}",
                          done.stderr)
        strace.terminate()
        strace.communicate(timeout=harness.TIMEOUT_S)
        talk.end()


class Restless(Case):
    """Programs that execute themselves, have children and end all the time,
    and commands that are ended at any moment: nobody waits for ever, and
    nothing is left."""

    def check_left(self, command, process):
        """Nothing of the command."""
        harness.wait_until(lambda: not attaching.members(command.pid))
        self.assertEqual(attaching.traced_threads(process.pid), [])

    def send(self, number, victims):
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def do_something(self, draw, command):
        """To the command or its worker, at some moment, or nothing."""
        number = draw.choice([0, 0, 0, signal.SIGKILL, signal.SIGINT,
                              signal.SIGTERM, signal.SIGSTOP])
        if not number:
            return
        time.sleep(draw.random() * MOMENT_S)
        victims = [command.pid]
        if draw.random() < 0.3:
            victims = list(attaching.members(command.pid))
        self.send(number, victims)
        if number == signal.SIGSTOP:
            time.sleep(draw.random() * MOMENT_S)
            self.send(signal.SIGCONT, victims)

    def restless(self, pause_ms, rounds, seed):
        draw = random.Random(seed)
        process = None
        for i in range(rounds):
            if not process or process.poll() is not None:
                process = self.start(
                    [harness.target("program_attached_restless"), pause_ms,
                     draw.randrange(1 << 30)], stdin=subprocess.PIPE,
                    shim=False)
                self.addCleanup(process.communicate)
                self.addCleanup(process.kill)
            words = (["detach", process.pid] if i % 2 else
                     ["attach", process.pid, "--out", self.out + "/"])
            command = self.start([attaching.COMMAND, *words], shim=False,
                                 start_new_session=True)
            self.addCleanup(command.kill)
            self.do_something(draw, command)
            _, stderr = command.communicate(timeout=LONGEST_S)
            self.check_left(command, process)
            for path in glob.glob(self.out + "/*"):
                os.unlink(path)
            self.assertRegex(stderr.decode(), KNOWN)
        # What it still runs, it runs as before.
        harness.wait_until(lambda: self.says_ok(process))

    def says_ok(self, process):
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(b"end\n")
            process.stdin.flush()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        return process.returncode is not None

    @harness.nightly
    def test_that_execute_all_the_time(self):
        self.restless(10, 2 * ROUNDS, 1)

    @harness.nightly
    def test_that_execute_now_and_then(self):
        self.restless(100, 2 * ROUNDS, 2)


@harness.nightly_too
class Elsewhere(Case):

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs root")

    def test_root_directory_without_our_files(self):
        jail = os.path.join(self.dir, "jail")
        program = harness.target("program_attached")
        attaching.make_jail(jail, program)
        # The build may be in /tmp, and is there then.
        os.makedirs(jail + "/tmp", exist_ok=True)
        before = os.listdir(jail + "/tmp")
        self.exact_rounds(attaching.Talk(self, ["chroot", jail, program, 1]),
                          "/tmp/", lost=["rss_not_recorded"])
        self.assertEqual(os.listdir(jail + "/tmp"), before)

    def test_namespaces(self):
        argv = ["unshare", "--pid", "--mount", "--fork", "--kill-child"]
        if subprocess.run([*argv, "true"], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no namespaces here")
        talk = attaching.Talk(self, [*argv, harness.target("program_attached"),
                                     2])
        with open(f"/proc/{talk.pid}/task/{talk.pid}/children",
                  encoding="ascii") as f:
            talk.pid = int(f.read())
        self.exact_rounds(talk)


if __name__ == "__main__":
    unittest.main()
