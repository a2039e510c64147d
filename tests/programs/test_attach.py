# SPDX-License-Identifier: MIT
"""`sampleprof attach` and `detach`: totals to the byte between the two, over
four allocators, many times; live bytes from before; libraries that come and go;
children; each refusal.  The state of the program does not change."""

import glob
import os
import re
import shutil
import signal
import subprocess
import unittest

import attaching
import harness

ROUNDS = int(os.environ.get("SAMPLEPROF_TEST_ATTACH", harness.rounds(2, 50)))
THREADS = 4
LARGE = """
kept = [bytearray(1000) for i in range(160000)]
print(flush=True)
input()
"""
FORKS = """
import os, signal, sys
print(flush=True)
sys.stdin.readline()
child = os.fork()
if child:
    print(child, flush=True)
signal.pause()
"""


def voluntary_switches(pid):
    """How often the process has waited."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)",
                             f.read()).group(1))


class Case(harness.Case):

    def profile(self, path, end="detached"):
        found = harness.Profile(path)
        self.assertEqual(found.end, end)
        self.assertEqual(found.lost(), {})
        return found


class Totals(Case):

    def storm(self, *preload):
        talk = attaching.Talk(self, [harness.target("program_attached"),
                                     THREADS], preload=preload)
        self.assertEqual(talk.answer, ("totals", 0, 0))
        for i in range(ROUNDS):
            talk.say("go")
            talk.say("stop")  # not counted
            path, _ = attaching.attach(talk.pid, self.out + "/",
                                       "--period", "64K" if i or preload else "1")
            talk.say("go")
            truth = talk.say("stop")
            attaching.detach(talk.pid)
            profile = self.profile(path).require_samples()
            self.assertEqual(profile.exact, truth[1:])
            os.unlink(path)
        talk.end()

    @harness.nightly_too
    def test_glibc(self):
        self.storm()

    @harness.nightly_too
    def test_allocators(self):
        for name in ("jemalloc", "tcmalloc", "mimalloc")[
                :harness.rounds(1, 3)]:
            with self.subTest(name):
                self.storm(*harness.allocator(name))

    def test_before(self):
        talk = attaching.Talk(self, [harness.target("program_attached"), 1])
        talk.say("old")
        path, _ = attaching.attach(talk.pid, self.out + "/", "--period", "1")
        talk.say("free")
        talk.say("keep")
        attaching.detach(talk.pid)
        profile = self.profile(path)
        self.assertEqual(profile.exact, (10_000_000, 1))
        live = profile.json["estimate"]["live_bytes"]
        self.assertEqual((live["value"], live["lo"]), (10_000_000, 10_000_000))
        self.assertGreater(profile.json["attached_before_bytes"], 20_000_000)
        text = attaching.run("report", path).stdout
        self.assertRegex(" ".join(text.split()),
                         r"attached \S+ \w+ after the process began: all "
                         r"figures are of what it allocated since; "
                         r"(19|2\d)\.\d+ MiB were alive then")
        talk.end()

    def test_before_of_a_large_heap(self):
        """glibc would walk its free blocks, with a lock that all want: only
        when that is asked for."""
        process = self.start(["/usr/bin/python3", "-c", LARGE],
                             stdin=subprocess.PIPE, shim=False)
        self.addCleanup(process.kill)
        process.stdout.readline()
        for words in (), ("--before",):
            done = attaching.run("attach", process.pid, "--out",
                                 self.out + "/", *words)
            attaching.detach(process.pid)
            path, = glob.glob(self.out + "/*.sprof")
            before = self.profile(path).json["attached_before_bytes"]
            os.unlink(path)
            said = "not known: the heap has" in done.stdout
            with self.subTest(words):
                self.assertEqual(said, not words, done.stdout)
                if words:
                    self.assertGreater(before, 150_000_000)
                    self.assertLess(before, 300_000_000)
                else:
                    self.assertIsNone(before)
        process.communicate(b"\n", timeout=harness.TIMEOUT_S)
        self.assertEqual(process.returncode, 0)

    def test_end_and_kill(self):
        """Other ends than detach."""
        for kill in False, True:
            talk = attaching.Talk(self, [harness.target("program_attached"),
                                         1])
            path, _ = attaching.attach(talk.pid, self.out + "/")
            talk.say("go")
            truth = talk.say("stop")
            if kill:
                talk.process.kill()
                talk.process.wait()
                self.assertEqual(harness.Profile(path).end, "killed")
            else:
                talk.end()
                self.assertEqual(self.profile(path, "clean").exact,
                                 truth[1:])

    def test_control(self):
        talk = attaching.Talk(self, [harness.target("program_attached"), 1])
        path, _ = attaching.attach(talk.pid, self.out + "/", "--rate", "500/s")
        self.assertIn(path, attaching.run("ps").stdout)
        talk.say("go")
        attaching.run("ctl", talk.pid, "mark", "middle")
        attaching.run("ctl", talk.pid, "period", "4K")
        talk.say("stop")
        attaching.detach(talk.pid)
        phases = [p["name"] for p in self.profile(path).json["phases"]]
        self.assertIn("middle", phases)
        talk.end()

    def test_for(self):
        talk = attaching.Talk(self, [harness.target("program_attached"), 1])
        text = attaching.run("attach", talk.pid, "--for", "300ms", "--out",
                             self.out + "/").stdout
        self.assertIn("is not recorded any more\nnext: sampleprof report ",
                      text)
        path, = glob.glob(self.out + "/*.sprof")
        self.profile(path)
        said = harness.report(path)
        self.assertIn("went on after it was detached", said)
        self.assertNotIn("cleanly", said)
        listed = attaching.run("ls", self.out).stdout
        self.assertRegex(listed, r"\+ detached\b")
        self.assertIn("+ live: without what was alive before the attach",
                      listed)
        talk.end()


class Several(Case):
    """One command, several processes: each is recorded or named."""

    def attach(self, pids, *words):
        """Again if one of them was too busy."""
        for _ in range(attaching.TRIES):
            done = attaching.run("attach", *pids, "--out", self.out + "/",
                                 *words, check=False, tries=1)
            if " again" not in " ".join(done.stderr.split()):
                break
            for pid in pids:
                attaching.run("detach", pid, check=False)
        return done

    def talks(self):
        return [attaching.Talk(self, [harness.target("program_attached"), 1])
                for _ in range(2)]

    def test_all(self):
        talks = self.talks()
        done = self.attach([t.pid for t in talks], "--period", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.endswith(
            "\n2 of 2 processes are recorded\n"), done.stdout)
        paths = re.findall(r"is recorded into (.*)\n", done.stdout)
        for talk, path in zip(talks, paths):
            talk.say("go")
            truth = talk.say("stop")
            attaching.detach(talk.pid)
            self.assertEqual(self.profile(path).exact, truth[1:])
            talk.end()

    def test_one_is_not_there(self):
        first, second = self.talks()
        done = self.attach([first.pid, 2**22 + 5, second.pid],
                           "--for", "300ms")
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no process", done.stderr)
        self.assertIn("\n2 of 3 processes are recorded\n", done.stdout)
        self.assertEqual(done.stdout.count("is not recorded any more"), 2)
        paths = glob.glob(self.out + "/*.sprof")
        self.assertEqual(len(paths), 2)
        for path in paths:
            self.profile(path)
        first.end()
        second.end()

    def test_one_file(self):
        """None is attached to, if they would write over each other."""
        talks = self.talks()
        pids = [t.pid for t in talks]
        for words, said in ((["--out", "one.sprof"], "needs %p, or a directory"),
                            (["x"], "not a process id: x")):
            done = attaching.run("attach", *pids, *words, check=False,
                                 cwd=self.dir)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(said, " ".join(done.stderr.split()))
        self.assertNotIn(str(pids[0]), attaching.run("ps").stdout)
        for talk in talks:
            talk.end()


class Unnoticed(Case):

    def rounds(self, name, argument):
        process = self.start([harness.target(name), argument],
                             stdin=subprocess.PIPE, shim=False)
        self.addCleanup(process.kill)
        for _ in range(ROUNDS):
            path, _ = attaching.attach(process.pid, self.out + "/")
            harness.wait_for_cpu(process.pid, 0.002)
            attaching.detach(process.pid)
            os.unlink(path)
        stdout, stderr = process.communicate(b"end\n", harness.TIMEOUT_S)
        self.assertEqual((process.returncode, stdout, stderr),
                         (0, b"ok\n", b""))

    @harness.nightly_too
    def test_libraries_that_come_and_go(self):
        self.rounds("program_attached_loads", os.path.join(
            os.environ["SAMPLEPROF_TARGETS"], "libprogram_attached_plugin.so"))

    @harness.nightly_too
    def test_threads_that_end(self):
        """Also while it is detached, and with objects that others free: these
        are no objects of the next profile."""
        process = self.start([harness.target("program_attached_loads"),
                              "threads"], stdin=subprocess.PIPE, shim=False)
        self.addCleanup(process.kill)
        for _ in range(ROUNDS):
            path, _ = attaching.attach(process.pid, self.out + "/",
                                       "--period", "32K")
            harness.wait_for_cpu(process.pid, 0.02)
            attaching.detach(process.pid)
            found = harness.Profile(path)
            self.assertEqual(found.end, "detached")
            self.assertLessEqual(set(found.lost()),
                                 {"class_totals_not_published"})
            bytes_, objects = found.exact
            # But for what a thread is made of.
            self.assertGreater(bytes_, 25_000 * objects)
            os.unlink(path)
        stdout, stderr = process.communicate(b"end\n", harness.TIMEOUT_S)
        self.assertEqual((process.returncode, stdout, stderr),
                         (0, b"ok\n", b""))

    def test_children(self):
        """Recorded or not, as asked; each has what it allocates itself."""
        for follow in "all", "none":
            with self.subTest(follow):
                self.check_children(follow)

    def check_children(self, follow):
        shutil.rmtree(self.out)
        os.mkdir(self.out)
        process = self.start([harness.target("program_attached_loads"),
                              "fork"], stdin=subprocess.PIPE, shim=False)
        self.addCleanup(process.kill)
        # Its libraries are there once it forks.
        harness.wait_until(lambda: voluntary_switches(process.pid) > 2)
        path, _ = attaching.attach(process.pid, self.out + "/", "--follow",
                                   follow, "--period", "1")
        began = voluntary_switches(process.pid)
        harness.wait_until(lambda: voluntary_switches(process.pid) >
                           began + 20)
        attaching.detach(process.pid)
        stdout, stderr = process.communicate(b"end\n", harness.TIMEOUT_S)
        self.assertEqual((process.returncode, stdout, stderr),
                         (0, b"ok\n", b""))
        self.profile(path)
        children = set(glob.glob(self.out + "/*")) - {path}
        self.assertEqual(bool(children), follow == "all", children)
        for child in children:
            # _exit runs no destructor, so it is no clean end.
            found = harness.Profile(child)
            self.assertEqual(found.allocated_under("fork_once"),
                             (50 * 30000, 50))
            self.assertEqual(found.lost(), {})

    @harness.nightly_too
    def test_state(self):
        talk = attaching.Talk(self, [harness.target("program_attached"),
                                     "state"])
        for _ in range(ROUNDS):
            attaching.attach(talk.pid, self.out + "/")
            self.assertEqual(talk.say("look")[0], "same")
            attaching.detach(talk.pid)
            self.assertEqual(talk.say("look")[0], "same")
        talk.end()


class Refused(harness.Case):

    def refused(self, pid, *words, code=1):
        """The same reason for a path that only this command may understand."""
        for out in self.out + "/", "refused.sprof":
            done = attaching.run("attach", pid, "--out", out, check=False,
                                 says=words, cwd=self.dir)
            self.assertEqual((done.returncode, done.stdout), (code, ""))
            for word in words:
                self.assertIn(word, done.stderr)

    def sleeper(self, *argv, **how):
        how.setdefault("shim", False)
        process = self.start(argv or [harness.target("program_attached"), 1],
                             stdin=subprocess.PIPE, **how)
        self.addCleanup(process.kill)
        process.stdout.readline()
        return process

    def test_no_process(self):
        self.refused("x", "not a process id: x", code=2)
        self.refused(2**22 + 5, "there is no process")

    def test_ended(self):
        process = self.start(["true"], shim=False)
        harness.wait_until(lambda: "Z" in open(
            f"/proc/{process.pid}/stat", encoding="ascii").read())
        self.refused(process.pid, "has ended")

    def test_stopped(self):
        process = self.sleeper()
        process.send_signal(signal.SIGSTOP)
        harness.wait_until(lambda: ") T" in open(
            f"/proc/{process.pid}/stat", encoding="ascii").read())
        self.refused(process.pid, "is stopped", "kill -CONT")

    def test_traced(self):
        process = self.sleeper()
        strace = self.start([harness.require("strace", "strace"), "-o",
                             "/dev/null", "-p", process.pid], shim=False)
        self.addCleanup(strace.kill)
        harness.wait_until(lambda: "TracerPid:\t0" not in open(
            f"/proc/{process.pid}/status", encoding="ascii").read())
        self.refused(process.pid, f"is being traced by process {strace.pid}")

    def test_recorded(self):
        process = self.sleeper(shim=True)
        self.refused(process.pid, "being recorded already", "sampleprof ctl")
        done = attaching.run("detach", process.pid, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("was started under sampleprof: sampleprof ctl "
                      f"{process.pid} stop", done.stderr)
        self.assertIn("sampling  on",
                      attaching.run("ctl", process.pid, "status").stdout)

    def test_child(self):
        """A child that is not followed has the library, which rests."""
        parent = self.sleeper("/usr/bin/python3", "-c", FORKS)
        attaching.attach(parent.pid, self.out + "/", "--follow", "none")
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        child = int(parent.stdout.readline())
        self.addCleanup(os.kill, child, signal.SIGKILL)
        for _ in range(2):
            self.refused(child, "has the library, switched off",
                         "attach to its parent")
        done = attaching.run("detach", child, check=False)
        self.assertIn("nothing is attached", done.stderr)
        attaching.detach(parent.pid)

    def test_static(self):
        self.refused(self.sleeper(
            harness.target("program_attached_static"), 1).pid,
            "is linked statically")

    def test_own_malloc(self):
        self.refused(self.sleeper(
            harness.target("program_attached_stripped"), 1).pid,
            "has its own malloc", "it is stripped")
        process = self.sleeper(harness.target("program_attached_own_malloc"), 1)
        self.refused(process.pid, "has its own malloc", "cannot lead elsewhere")
        self.refused(process.pid, "has its own malloc", "cannot lead elsewhere")

    def test_no_file(self):
        process = self.sleeper()
        done = attaching.run("attach", process.pid, "--out",
                             "/proc/no/such/", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot create its profile", done.stderr)
        attaching.attach(process.pid, self.out + "/")
        attaching.detach(process.pid)

    def test_detach(self):
        process = self.sleeper()
        done = attaching.run("detach", process.pid, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing is attached", done.stderr)

    def test_detach_from_a_profile_that_was_deleted(self):
        process = self.sleeper()
        path, _ = attaching.attach(process.pid, self.out + "/")
        os.unlink(path)
        done = attaching.run("detach", process.pid)
        self.assertEqual(done.stdout,
                         f"process {process.pid} is not recorded any more\n")
        self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    unittest.main()
