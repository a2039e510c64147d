# SPDX-License-Identifier: MIT
"""Ledgers of resident memory in profiles: of a constructed program at its end
(`run --rss`), near its peak and at a snapshot, each row within 2 % of the
constructed value; every way to end; no process that makes the ledger, or one
that never finishes.  Without a request a program makes no further system call
(strace)."""

import collections
import json
import os
import re
import signal
import socket
import subprocess
import time

import harness
import test_rss

MIB = 1 << 20


class Case(test_rss.Case):
    def start_run(self, *argv, how="", **settings):
        """`sampleprof run` of program_ledger, when that is ready, and what it
        made."""
        file = os.path.join(self.dir, "mapped")
        with open(file, "wb") as mapped:
            mapped.write(b"x" * test_rss.FILE_BYTES)
        self.out = os.path.join(self.dir, "run.sprof")
        run = self.start([harness.tool(), "run", "--no-symbols", *argv,
                          harness.target("program_ledger"), file, how],
                         stdin=subprocess.PIPE, shim=False,
                         env={"SAMPLEPROF_OUT": self.out,
                              **{"SAMPLEPROF_" + k.upper(): str(v)
                                 for k, v in settings.items()}})
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        made = {}
        for line in run.stdout:
            if line == b"ready\n":
                break
            name, *numbers = line.decode().split()
            made[name] = [int(n) for n in numbers]
        else:
            self.fail(run.stderr.read().decode())
        return run, made

    def run_to_peak(self, **settings):
        """Of one that is killed, when it has a ledger near its peak: what the
        run said, and what it made.  A look that comes late, where the machine
        is busy, is not made again: then it is another run."""
        done = []

        def was_looked_at():
            run, made = self.start_run("--rss-at-peak", how="kill", **settings)

            def is_stored():
                return test_rss.rss(self.out).returncode == 0

            harness.wait_until(lambda: is_stored() or "ledgers_not_taken" in
                               harness.Profile(self.out, damaged=True).lost())
            _, stderr = run.communicate(b"x")
            self.assertEqual(run.returncode, -signal.SIGKILL, stderr)
            if is_stored():
                done.append((stderr.decode(), made))
            else:
                os.remove(self.out)
            return done

        harness.wait_until(was_looked_at)
        return done[0]

    def run_ledger(self, *argv, how="", code=0, **settings):
        run, made = self.start_run(*argv, how=how, **settings)
        _, stderr = run.communicate(b"x")
        self.assertEqual(run.returncode, code, stderr)
        return stderr.decode(), made

    def stored(self, *argv):
        done = test_rss.rss("--json", *argv, self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def none_stored(self):
        done = test_rss.rss(self.out)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("there is no ledger of resident memory in it: "
                      "`sampleprof run --rss`", " ".join(done.stderr.split()))

    def check_stored(self, ledger, made):
        rows = {r["name"]: r["bytes"] for r in ledger["rows"]}
        objects, small, usable = made["small"]
        self.assertEqual(sum(rows.values()) // test_rss.PAGE,
                         ledger["rss_bytes"] // test_rss.PAGE)
        self.assertLess(abs(ledger["rss_bytes"] - ledger["vm_rss_bytes"]),
                        100 * test_rss.PAGE + test_rss.late_bytes(9))
        self.check(rows["heap_alive"],
                   made["alive"][0] + made["large"][0] + small)
        self.check(rows["heap_rounding"], usable - small + 8 * objects +
                   made["alive"][0] // 1024 * 16)
        self.check(rows["files"], made["file"][0])
        self.check(rows["thread_stacks"], made["threads"][0], 8)
        self.check(rows["anonymous"], made["anonymous"][0] +
                   made["copied"][0] + made["huge"][0], 8)
        free = made["freed"][0] * 1040
        if ledger["allocator"]:
            self.check(rows["heap_kept"], free)
        else:
            self.check(rows["heap_rest"], free)


class Ends(Case):
    def test_returns(self):
        stderr, made = self.run_ledger("--rss", period=1)
        ledger = self.stored()
        self.assertEqual(ledger["why"], "end")
        self.assertEqual(ledger["allocator"]["name"], "glibc")
        self.check_stored(ledger, made)
        text = test_rss.rss(self.out).stdout
        self.assertIn(", as it ended, at ", text)
        # What `run` says at the end is that.
        self.assertIn(text, stderr)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        done = test_rss.rss("--when", "nothing", self.out)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no ledger called so: nothing (there is end)",
                      " ".join(done.stderr.split()))

    def test_at_once(self):
        """The allocator is not asked: a signal handler may call _exit in the
        middle of malloc."""
        stderr, made = self.run_ledger("--rss", how="_exit", period=1)
        ledger = self.stored()
        self.assertIsNone(ledger["allocator"])
        self.check_stored(ledger, made)
        self.assertIn("left by _exit, quick_exit or in a signal handler",
                      " ".join(stderr.split()))

    @harness.nightly_too
    def test_handler(self):
        """A signal handler that calls exit may be in the middle of malloc,
        too."""
        for unwind in harness.rounds(("tables",), ("tables", "fp")):
            with self.subTest(unwind=unwind):
                _, made = self.run_ledger("--rss", how="handler", period=1,
                                          unwind=unwind)
                ledger = self.stored()
                self.assertIsNone(ledger["allocator"])
                self.check_stored(ledger, made)
                os.remove(self.out)
                if harness.rounds(True, False):
                    continue  # test_returns
                self.run_ledger("--rss", period=1, unwind=unwind)
                os.rename(self.out, self.out + "." + unwind)
                self.out += "." + unwind
                self.assertEqual(self.stored()["allocator"]["name"], "glibc")

    def test_child_of_vfork(self):
        """It has the memory of its parent, and is not it."""
        _, made = self.run_ledger("--rss", how="vfork", period=1)
        ledger = self.stored()
        self.assertEqual(ledger["allocator"]["name"], "glibc")
        self.check_stored(ledger, made)

    def test_killed(self):
        stderr, _ = self.run_ledger("--rss", how="kill",
                                    code=-signal.SIGKILL)
        self.none_stored()
        self.assertIn("no ledger of resident memory: it was killed",
                      " ".join(stderr.split()))

    def test_executes_another(self):
        """Of the program that it became there is one, if it has a file."""
        stderr, _ = self.run_ledger("--rss", how="exec")
        self.assertIn("no ledger of resident memory: it executed another "
                      "program", " ".join(stderr.split()))

    def test_not_asked_for(self):
        stderr, _ = self.run_ledger()
        self.none_stored()
        self.assertNotIn("ledger", stderr)

    def test_copies_have_it(self):
        self.run_ledger("--rss", period="64K")
        ledger = self.stored()
        packed = os.path.join(self.dir, "packed.sprof.zst")
        subprocess.run([harness.tool(), "symbolize", self.out, "-o", packed],
                       check=True, capture_output=True)
        self.out = packed
        self.assertEqual(self.stored(), ledger)


class During(Case):
    @harness.nightly
    def test_peak(self):
        """A killed process has the one of the last growth by 5 %.  A look
        that comes late is not made again: then it is another run."""
        done = []

        def was_looked_at():
            done[:] = self.run_ledger("--rss-at-peak", how="peak", period=1)
            is_late = "ledgers_not_taken" in harness.Profile(self.out).lost()
            if is_late:
                os.remove(self.out)
            return not is_late

        harness.wait_until(was_looked_at, lambda: "no look in time")
        stderr, made = done
        ledger, end = self.stored("--when", "peak"), self.stored()
        self.assertEqual((ledger["why"], end["why"]), ("peak", "end"))
        profile = json.loads(harness.report("--json", self.out))
        recorded = profile["rss"]
        self.assertFalse([k for k in profile["settings"]
                          if k.startswith("ledger.")])
        most = max(r["rss_bytes"] for r in recorded)
        self.assertGreater(ledger["rss_bytes"], most / 1.06)
        alive = {r["name"]: r["bytes"] for r in ledger["rows"]}["heap_alive"]
        self.check(alive, made["peak"][0] + made["alive"][0] +
                   made["large"][0] + made["small"][1], share=0.06)
        self.check_stored(end, made)
        self.assertIn("also: --when peak, RSS ",
                      test_rss.rss(self.out).stdout)
        self.assertIn("as it ended", stderr)

    def test_peak_of_a_killed_process(self):
        stderr, _ = self.run_to_peak(period="64K")
        self.assertEqual(self.stored()["why"], "peak")
        self.assertIn("near its peak, at ", stderr)

    def snapshot(self, pid, *argv):
        return subprocess.run([harness.tool(), "ctl", "--timeout", "1m", "--rss",
                               str(pid), *argv], capture_output=True,
                              text=True, check=False)

    def test_snapshot(self):
        process, made = self.start_ledger(settings={"period": 1})
        done = self.snapshot(process.pid, "snapshot", "before load")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(", at snapshot before load, at ", done.stdout)
        done = self.snapshot(process.pid, "snapshot", "later")
        self.assertEqual(done.returncode, 0, done.stderr)
        [name] = os.listdir(self.out)
        self.out = os.path.join(self.out, name)
        first = self.stored("--when", "before load")
        self.assertEqual((first["why"], first["mark"]),
                         ("snapshot", "before load"))
        self.check_stored(first, made)
        self.assertEqual(self.stored()["mark"], "later")
        self.assertIn("also: --when 'before load', RSS ",
                      test_rss.rss(self.out).stdout)
        report = json.loads(harness.report("--json", self.out))
        self.assertEqual([s["name"] for s in report["snapshots"]],
                         ["before load", "later"])

    def test_snapshot_refused(self):
        process, _ = self.start_ledger(settings={"period": "64K"})
        done = self.snapshot(process.pid, "mark", "x")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--rss is only for snapshot NAME", done.stderr)


class Nobody(Case):
    """Who waits for somebody who does not look."""

    def end(self, **settings):
        process, _ = self.start_ledger(settings={"ledger": "end", **settings})
        begin = time.monotonic()
        process.communicate(b"x")
        took = time.monotonic() - begin
        self.assertEqual(process.returncode, 0)
        [name] = os.listdir(self.out)
        self.out = os.path.join(self.out, name)
        self.none_stored()
        return took

    def test_no_socket(self):
        self.end(run="nobody-has-this-name")

    def test_no_name(self):
        self.end()

    @harness.nightly
    def test_never_looks(self):
        """10 s, and the process ends as it would have."""
        name = f"never-{os.getpid()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind("\0sampleprof-look-" + name)
            listener.listen()
            self.assertGreater(self.end(run=name), 9)

    def test_looks_away(self):
        """Who closes is not waited for."""
        name = f"away-{os.getpid()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind("\0sampleprof-look-" + name)
            listener.listen()
            file = os.fork()
            if not file:
                peer, _ = listener.accept()
                peer.close()
                os._exit(0)
            try:
                self.end(run=name)
            finally:
                os.waitpid(file, 0)


class Calls(Case):
    """What the kernel is asked for, where nobody wants a ledger."""

    def trace(self, **how):
        """By call, after all was made, and while `rss` looks at it."""
        log = os.path.join(self.dir, "strace")
        strace = harness.require("strace", "strace")
        file = os.path.join(self.dir, "mapped")
        with open(file, "wb") as mapped:
            mapped.write(b"x" * test_rss.FILE_BYTES)
        environment = self.environment(**how)
        preload = environment.pop("LD_PRELOAD", "")
        # pylint: disable=consider-using-with
        process = subprocess.Popen(
            [strace, "-f", "-qq", "-o", log, "-E", "LD_PRELOAD=" + preload,
             harness.target("program_ledger"), file],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
            cwd=self.dir)
        pid = self.ready_child(process)
        for _ in range(5):
            done = test_rss.rss("--timeout", "1m", pid)
            self.assertEqual(done.returncode, 0, done.stderr)
        # So that RSS is due once more: it is after 100 ms.
        time.sleep(0.11)
        process.communicate(b"x")
        with open(log, encoding="utf-8", errors="replace") as lines:
            lines = lines.read()
        main = re.match(r"\d+", lines)[0]
        seen, calls = False, []
        for line in lines.splitlines():
            seen = seen or 'write(1, "ready' in line
            found = re.match(rf"{main} +(\w+)\((.*)", line)
            if seen and found:
                calls.append((found[1], found[2]))
        return calls

    @harness.nightly_too
    def test_same_calls(self):
        """While it runs, the program's own, and statm at check-ins; and at its
        end what it did before there were ledgers."""
        alone = self.trace(shim=False)
        profiled = self.trace(period="64K")
        self.assertEqual({name for name, _ in alone},
                         {"write", "poll", "exit_group"})
        own = collections.Counter(name for name, _ in profiled)
        for name, arguments in profiled:
            if name == "openat":
                self.assertRegex(arguments,
                                 r'"(/proc/(thread-)?self/(statm|cmdline)|.*\.sprof)"')
        self.assertGreater(own["openat"], 2)
        # A descriptor of each; the file is cut at the end, and where a file
        # that is mapped is gone, run is waited for.
        self.assertEqual(set(own) - {"write", "poll", "exit_group"},
                         {"openat", "read", "close", "fstat", "ftruncate",
                          "getpid", "faccessat"} & set(own), profiled)
        self.assertEqual(own["close"], own["openat"])
        if harness.rounds(True, False):
            return
        off = self.trace(period="64K", rss="off")
        self.assertFalse([c for c in off if "statm" in c[1]])


if __name__ == "__main__":
    harness.main()
