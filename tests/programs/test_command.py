# SPDX-License-Identifier: MIT
"""`sampleprof run` and `ctl`: exit statuses and signals of programs, refusals;
a process with eight allocating threads, which the command and a signal switch
on and off; a stopped and an idle process, which carry out queued commands in
order and refuse one too many.  The report has both times, of the command and of
its execution."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import time

import harness


class Command(harness.Case):
    def sampleprof(self, *argv, env=None, **popen):
        return super().sampleprof(
            *argv, code=None, env=self.environment(shim=False, env=env),
            **popen)

    def files(self):
        return sorted(f for f in os.listdir(self.dir)
                      if f.endswith(".sprof"))

    def wait_until_said(self, pid, test):
        """Until the process has a status of which that is true."""
        def asked():
            nonlocal done
            done = self.sampleprof("ctl", pid, "status")
            return done.returncode == 0 and test(done.stdout)

        done = None
        harness.wait_until(asked, lambda: done)


class Run(Command):
    def test_summary(self):
        done = self.sampleprof("run", "--period", "1", "--", harness.target(
            "program_plain"), 100)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 4, done.stderr)
        [file] = self.files()
        self.assertIn(" exact; ", lines[0])
        self.assertIn("peak ", lines[1])
        self.assertIn("alive at the end ", lines[2])
        self.assertEqual(lines[3],
                         f"sampleprof: next: sampleprof report {file}")
        harness.Profile(os.path.join(self.dir, file)).require_samples()

    def test_unsampled(self):
        """Nothing is said of what was alive: nobody knows."""
        done = self.sampleprof("run", "--off", harness.target(
            "program_plain"), 100)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, off, start, following = done.stderr.splitlines()
        self.assertIn(" 0 samples", first)
        self.assertRegex(off, "sampling was off while [0-9.]+ .iB of that ")
        self.assertIn("`sampleprof ctl PID start`", start)
        self.assertIn(" next: ", following)

    def test_discarded(self):
        """Nobody has switched sampling off."""
        done = self.sampleprof("run", harness.target("program_plain"), 40000,
                               env={**self.environment(shim=False),
                                    "SAMPLEPROF_MAX_FILE": "1M",
                                    "SAMPLEPROF_PERIOD": "1"})
        self.assertRegex(done.stderr, r"samples of [0-9.]+ .iB of that were "
                         "discarded, since the file was full")
        self.assertNotIn("sampling was off", done.stderr)

    def test_output_is_the_programs(self):
        plain = harness.target("program_plain")
        alone = subprocess.run([plain], capture_output=True, check=False)
        done = self.sampleprof("run", "--quiet", plain)
        self.assertEqual(done.stdout.encode(), alone.stdout)
        self.assertEqual(done.stderr.encode(), alone.stderr)

    def test_period(self):
        """It becomes the setting of the program."""
        done = self.sampleprof("run", "--rate", "700/s", "--period", "1",
                               harness.target("program_plain"), 100)
        self.assertEqual(done.returncode, 0, done.stderr)
        [file] = self.files()
        profile = harness.Profile(os.path.join(self.dir, file))
        profile.require_samples()
        self.assertEqual(profile.settings["setting.rate"], "700/s")

    def test_plain_ascii(self):
        """Where the locale is not UTF-8, names are written in ASCII alone; a
        terminal may take other bytes for commands."""
        name = "caf\u00e9\u009b.sprof"
        for locale, shown in (("C", r"$'caf\xc3\xa9\xc2\x9b.sprof'"),
                              ("C.UTF-8", "$'caf\u00e9\\xc2\\x9b.sprof'")):
            with self.subTest(locale=locale):
                done = self.sampleprof(
                    "run", "--out", name, harness.target("program_plain"),
                    env={"LC_ALL": locale})
                [file] = self.files()
                os.unlink(os.path.join(self.dir, file))
                self.assertEqual(
                    done.stderr.splitlines()[-1],
                    f"sampleprof: next: sampleprof report {shown}")

    def test_file_like_an_option(self):
        """Names are added to it, and what is proposed can be pasted."""
        done = self.sampleprof("run", "--out=-a b.sprof",
                               harness.target("program_plain"), 100)
        last = done.stderr.splitlines()[-1]
        self.assertEqual(last, "sampleprof: next: sampleprof report "
                         "./'-a b.sprof'")
        self.assertNotIn("names", done.stderr)
        self.assertTrue(self.sampleprof(*shlex.split(last)[3:]).stdout
                        .startswith("sampleprof report: "))

    def test_exit(self):
        for code in (0, 1, 77, 255):
            done = self.sampleprof("run", "--quiet", "sh", "-c",
                                   f"exit {code}")
            self.assertEqual(done.returncode, code, done.stderr)
        for name in ("TERM", "KILL", "SEGV", "USR1"):
            done = self.sampleprof("run", "--quiet", "sh", "-c",
                                   f"ulimit -c 0; kill -{name} $$")
            self.assertEqual(-done.returncode,
                             getattr(signal, "SIG" + name).value)

    def test_signals_are_passed_on(self):
        # pylint: disable=consider-using-with
        script = ("trap 'echo got; exit 5' USR1; echo ready; "
                  "while :; do sleep 0.05; done")
        process = subprocess.Popen(
            [harness.tool(), "run", "--quiet", "sh", "-c", script], text=True,
            stdout=subprocess.PIPE, cwd=self.dir,
            env=self.environment(shim=False))
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGUSR1)
        rest, _ = process.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual((process.returncode, rest), (5, "got\n"))

    def test_follow(self):
        # Copies: two programs of different names, one the other's child.
        outer, inner = (os.path.join(self.dir, n) for n in ("outer", "inner"))
        shutil.copy(harness.require("sh", "dash"), outer)
        shutil.copy(harness.target("program_plain"), inner)
        for follow, want in (("all", ["inner", "outer"]), ("none", ["outer"]),
                             ("inner", ["inner"])):
            self.sampleprof("run", "--quiet", "--period", "1", "--follow",
                            follow, outer, "-c", f"{inner} 10; :")
            got = {f.split(".")[0] for f in self.files()}
            self.assertEqual(sorted(got), want, follow)
            for file in self.files():
                os.unlink(os.path.join(self.dir, file))

    def test_refusals(self):
        source = os.path.join(self.dir, "empty.c")
        with open(source, "w", encoding="ascii") as file:
            file.write("int main(void) { return 3; }\n")
        static = os.path.join(self.dir, "static")
        subprocess.run([harness.require("gcc", "gcc"), "-static", source,
                        "-o", static], check=True)
        script = os.path.join(self.dir, "script")
        with open(script, "w", encoding="ascii") as file:
            file.write(f"#!{static}\n")
        os.chmod(script, 0o755)
        foreign = os.path.join(self.dir, "foreign")
        with open(static, "rb") as file:
            data = bytearray(file.read())
        # e_machine: AArch64, or there x86-64
        data[18] = 62 if os.uname().machine == "aarch64" else 183
        with open(foreign, "wb") as file:
            file.write(data)
        os.chmod(foreign, 0o755)
        for program, code, word in (
                (static, 126, "statically"), (script, 126, "statically"),
                (foreign, 126, "architecture"),
                (self.dir + "/absent", 127, "No such file"),
                ("no-such-program-at-all", 127, "No such file"),
                (source, 126, "Permission denied")):
            done = self.sampleprof("run", program)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(word, done.stderr)
        self.assertEqual(self.files(), [])

    def test_own_malloc(self):
        stripped = os.path.join(self.dir, "stripped")
        subprocess.run(["strip", "-o", stripped,
                        harness.target("program_own_malloc")], check=True)
        done = self.sampleprof("run", stripped)
        self.assertRegex(done.stderr, r"\Asampleprof: malloc of this process is "
                         r"defined by .*\nsampleprof: no allocation was seen\n")

    def test_usage(self):
        for argv in ((), ("run",), ("run", "--period", "0", "true"),
                     ("run", "--rate", "500", "true"),
                     ("run", "--rate", "0/s", "true"),
                     ("run", "--no-such-option", "true"), ("ps", "x"),
                     ("ctl",), ("ctl", "1"), ("ctl", "x", "start"),
                     ("ctl", "1", "fly"), ("ctl", "1", "mark"),
                     ("ctl", "1", "period", "0"), ("ctl", "1", "mark", ""),
                     ("ctl", "1", "mark", "x" * 65), ("nonsense",)):
            done = self.sampleprof(*argv)
            self.assertEqual(done.returncode, 2, argv)
            self.assertIn("--help", done.stderr)
        self.assertEqual(self.sampleprof("--help").returncode, 0)


class Rate(Command):
    def test_status(self):
        # pylint: disable=consider-using-with
        process = subprocess.Popen(
            [harness.target("program_control_storm"), "600000", "1", "outside"],
            cwd=self.dir, stdout=subprocess.DEVNULL, env=self.environment(
                rate="50/s", period="4K"))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_until_said(process.pid, lambda out: re.search(
            "sampling  on, period up to .* for at most 50/s", out))


class Control(Command):
    def setUp(self):
        super().setUp()
        # It is nice, so that the commands need not wait for a processor.
        # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
        self.process = subprocess.Popen(
            [harness.target("program_control_storm"), "600000", "1", "outside"],
            cwd=self.dir, stdout=subprocess.DEVNULL, env=self.environment(
                start="off", signal="USR2", period="64K"),
            preexec_fn=lambda: os.nice(5))
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.until(lambda out: "9 threads" in out)

    def ctl(self, *words):
        done = self.sampleprof("ctl", "--timeout", "1h", self.process.pid,
                               *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def until(self, test):
        self.wait_until_said(self.process.pid, test)

    def states(self):
        """Of the threads, as /proc has them."""
        tasks = f"/proc/{self.process.pid}/task"
        found = set()
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/stat", encoding="ascii",
                      errors="replace") as file:
                found.add(file.read().rsplit(")", 1)[1].split()[0])
        return found

    def test_switching(self):
        listed = self.sampleprof("ps").stdout
        self.assertRegex(listed, rf"(?m)^ *{self.process.pid} .* "
                         "program_control_storm")
        self.assertIn("sampling  off", self.ctl("status"))
        for word in (("mark", "quiet"), ("start",), ("mark", "busy"),
                     ("period", "4K"), ("snapshot", "here"), ("stop",),
                     ("stop",), ("mark", "over")):
            self.assertRegex(self.ctl(*word), r"^done at ")
        status = self.ctl("status")
        self.assertIn("sampling  off", status)
        self.assertIn("phase     over", status)
        self.process.kill()
        self.process.wait()
        [path] = [os.path.join(self.out, f) for f in os.listdir(self.out)]
        profile = harness.Profile(path).require_samples(100)
        json = profile.json
        self.assertEqual(
            [(s["phase"], s["period_bytes"]) for s in json["stretches"]],
            [("", 0), ("quiet", 0), ("quiet", 65536), ("busy", 65536),
             ("busy", 4096), ("busy", 0), ("over", 0)])
        self.assertEqual([s["name"] for s in json["snapshots"]], ["here"])
        self.assertEqual(profile.lost(), {})
        # Once, though with three periods.
        self.assertRegex(harness.report(path),
                         r"(?m) 1  busy\n +\([^)]* of it unsampled\)")
        for stretch in json["stretches"][:2]:
            self.assertEqual(stretch["alloc_bytes"],
                             stretch["unsampled_bytes"])
        [busy] = [p for p in json["phases"] if p["name"] == "busy"]
        observed = busy["alloc_bytes"] - busy["unsampled_bytes"]
        # Twice the width of an interval of 95 % and 20 samples of the longer
        # period, since how many there are depends on the threads: whatever their
        # number, by the Poisson law fewer than 1e-9 are beyond.  Samples of the
        # wrong period are sixteen times off.
        width = busy["estimated_bytes"]["hi"] - busy["estimated_bytes"]["lo"]
        self.assertAlmostEqual(busy["estimated_bytes"]["value"], observed,
                               delta=2 * width + 20 * 65536)

    @harness.nightly_too
    def test_signal(self):
        for _ in range(harness.rounds(1, 3)):
            os.kill(self.process.pid, signal.SIGUSR2)
            self.until(lambda out: "sampling  on" in out)
            os.kill(self.process.pid, signal.SIGUSR2)
            self.until(lambda out: "sampling  off" in out)

    def test_nobody_there(self):
        done = self.sampleprof("ctl", os.getpid(), "start")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no profile open", done.stderr)
        done = self.sampleprof("ctl", 2 ** 22 + 1, "start")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no process", done.stderr)

    def test_stopped(self):
        """What does not run carries its orders out when it goes on."""
        os.kill(self.process.pid, signal.SIGSTOP)
        harness.wait_until(lambda: self.states() == {"T"}, self.states)
        words = (("start",), ("mark", "load"), ("period", "4K"),
                 ("snapshot", "here"), ("stop",), ("mark", "later"),
                 ("start",), ("stop",))
        before = int(re.search(r"orders +(\d+)", self.ctl("status"))[1])
        for number, word in enumerate(words, before + 1):
            done = self.sampleprof("ctl", "--timeout", "0s",
                                   self.process.pid, *word)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(f"stays queued as order {number}\n", done.stderr)
            self.assertIn("when it goes on: it is stopped", done.stderr)
            self.assertEqual(done.stdout, "")
        status = self.ctl("status")
        for text in ("1 waits: start", "2 waits: mark load",
                     "3 waits: period 4 KiB", "8 waits: stop"):
            self.assertIn(f"  {text}", status)
        done = self.sampleprof("ctl", self.process.pid, "mark", "too-much")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no room for another", done.stderr)
        os.kill(self.process.pid, signal.SIGCONT)
        self.until(lambda out: "8 carried out" in out)
        status = self.ctl("status")
        self.assertIn("sampling  off", status)
        self.assertIn("phase     later", status)
        self.assertNotIn("waits", status)


class Idle(Command):
    """A process that allocates only when it is told to."""

    def setUp(self):
        super().setUp()
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(
            [harness.target("program_idle")], cwd=self.dir,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=self.environment(start="off", period="1"))
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.addCleanup(self.process.stdin.close)
        self.addCleanup(self.process.stdout.close)
        self.allocate()

    def allocate(self, n=5):
        """n KiB, and wait until it has."""
        self.process.stdin.write(bytes([n]))
        self.process.stdin.flush()
        self.assertEqual(self.process.stdout.read(1), bytes([n]))

    def queue(self, *words):
        done = self.sampleprof("ctl", "--timeout", "0s", self.process.pid,
                               *words)
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_all_in_a_row(self):
        """Each order is carried out, with the next 4 KiB."""
        for words in (("start",), ("mark", "load"), ("snapshot", "here"),
                      ("stop",)):
            self.queue(*words)
        self.allocate()
        status = self.sampleprof("ctl", self.process.pid, "status").stdout
        self.assertIn("sampling  off", status)
        self.assertIn("phase     load", status)
        self.assertIn("4 carried out", status)
        self.queue("start")
        for _ in range(20):
            self.allocate()
        self.process.stdin.close()
        self.assertEqual(self.process.wait(), 0)
        [path] = [os.path.join(self.out, f) for f in os.listdir(self.out)]
        profile = harness.Profile(path).require_samples(100)
        self.assertEqual([s["name"] for s in profile.json["snapshots"]],
                         ["here"])
        self.assertEqual(
            [(s["phase"], s["period_bytes"])
             for s in profile.json["stretches"]],
            [("", 0), ("", 1), ("load", 1), ("load", 0), ("load", 1)])
        self.assertEqual(profile.lost(), {})

    def test_asked(self):
        """When it was asked for is in the report, where that matters."""
        for words in (("start",), ("mark", "load"), ("snapshot", "here")):
            self.queue(*words)
        # Late is what is done 100 ms after it was asked for.
        time.sleep(0.4)
        self.allocate()
        for words in (("mark", "serve"), ("snapshot", "there")):
            with subprocess.Popen(
                    [harness.tool(), "ctl", "--timeout", "1h",
                     str(self.process.pid), *words],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    env=self.environment(shim=False)) as waiting:
                while waiting.poll() is None:
                    self.allocate()
        self.process.stdin.close()
        self.assertEqual(self.process.wait(), 0)
        [path] = [os.path.join(self.out, f) for f in os.listdir(self.out)]
        profile = harness.Profile(path).require_samples(100)
        first, _, load, serve = profile.json["stretches"]
        here, there = profile.json["snapshots"]
        self.assertEqual(first["asked_ns"], 0)
        for moment, ns in ((load, load["from_ns"]), (here, here["time_ns"])):
            self.assertGreater(ns - moment["asked_ns"], 39e7)
            self.assertGreater(moment["asked_ns"], 0)
        # At once, if the machine is not too busy for that.
        for moment, ns in ((serve, serve["from_ns"]),
                           (there, there["time_ns"])):
            self.assertGreaterEqual(moment["asked_ns"], load["from_ns"])
            late = ns - moment["asked_ns"]
            self.assertTrue(late == 0 or late >= 1e8, late)
        text = harness.report(path)
        for name in ("load", "here"):
            self.assertRegex(
                text,
                rf"  {name}\n    asked for at .*s, done at .*s\n")

    def test_wait_is_said(self):
        """At once, and not only when the time is over; and what came."""
        # pylint: disable=consider-using-with
        waiting = subprocess.Popen(
            [harness.tool(), "ctl", "--timeout", "1h", str(self.process.pid),
             "mark", "later"], stderr=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
            env=self.environment(shim=False))
        self.addCleanup(waiting.wait)
        self.addCleanup(waiting.kill)
        self.assertRegex(waiting.stderr.readline(),
                         r"waiting: process \d+ gave its last sign .* ago\n")
        self.assertIn("order 1 when a thread has allocated another 4 KiB\n",
                      waiting.stderr.readline())
        self.allocate()
        out, err = waiting.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual(waiting.returncode, 0, err)
        self.assertRegex(out, r"^done at .*\n$")
        self.assertEqual(err, "")

    def test_end_while_waiting(self):
        # pylint: disable=consider-using-with
        waiting = subprocess.Popen(
            [harness.tool(), "ctl", "--timeout", "1h", str(self.process.pid),
             "stop"], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=self.environment(shim=False))
        self.addCleanup(waiting.wait)
        self.addCleanup(waiting.kill)
        waiting.stderr.readline()
        # Not waited for: it stays as a process that has ended.
        self.process.kill()
        _, err = waiting.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual(waiting.returncode, 1)
        self.assertIn("has ended", err)

    def test_library_without_a_queue(self):
        [path] = [os.path.join(self.out, f) for f in os.listdir(self.out)]
        with open(path, "r+b") as file:
            file.seek(6144 + 120)
            file.write(bytes(8))
        done = self.sampleprof("ctl", self.process.pid, "start")
        self.assertEqual(done.returncode, 1)
        self.assertIn("of another version", done.stderr)
