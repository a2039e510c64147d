# SPDX-License-Identifier: MIT
"""`sampleprof attach` in difficult cases: a process that executes another
program, hangs, or filters its system calls; other users, namespaces and
allocators; programs into which the library cannot be loaded."""

import os
import shutil
import signal
import subprocess
import time
import unittest

import attaching
import harness

YAMA = "/proc/sys/kernel/yama/ptrace_scope"
NOBODY = 65534
TARGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets")
OBJECTS = ("totals", 1_000_000, 1000)
EXEC_ROUNDS = 8

# pause(), without a C library of that kind.
PAUSE_32 = "void _start(void) { for (;;) __asm__ volatile" \
    "(\"int $0x80\" :: \"a\"(29)); }"


def as_nobody(*argv):
    return ["setpriv", "--reuid", NOBODY, "--clear-groups", *argv]


def yama():
    with open(YAMA, encoding="ascii") as f:
        return int(f.read())


def set_yama(scope):
    if scope != yama():
        with open(YAMA, "w", encoding="ascii") as f:
            f.write(str(scope))


class Case(harness.Case):

    def talk(self, *words, **how):
        target = harness.target("program_attached_places")
        return attaching.Talk(self, [target, *words], **how)

    def check_round(self, talk, lost=()):
        path, _ = attaching.attach(talk.pid, self.out + "/")
        self.assertEqual(talk.say("go"), OBJECTS)
        attaching.detach(talk.pid)
        profile = harness.Profile(path)
        self.assertEqual((profile.end, profile.exact, set(profile.lost())),
                         ("clean", OBJECTS[1:], set(lost)))
        os.unlink(path)
        self.assertEqual(talk.say("go"), OBJECTS)

    def refused(self, pid, *words, command=(attaching.COMMAND,)):
        done = subprocess.run(
            [*map(str, command), "attach", str(pid), "--out", self.out + "/"],
            capture_output=True, check=False, text=True,
            timeout=harness.TIMEOUT_S)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(os.listdir(self.out), [])

    def command_for_all(self):
        """The command where every user can run it."""
        os.chmod(self.dir, 0o755)
        os.chmod(self.out, 0o777)
        for path in (attaching.COMMAND, os.environ["SAMPLEPROF_REPORT"],
                     os.environ["SAMPLEPROF_SO"]):
            folder = "src/agent" if path.endswith(".so") else "tools"
            os.makedirs(os.path.join(self.dir, folder), exist_ok=True)
            os.chmod(shutil.copy(path, os.path.join(self.dir, folder)), 0o755)
        return os.path.join(self.dir, "tools",
                            os.path.basename(attaching.COMMAND))

    def target_for_all(self, name):
        copy = shutil.copy(harness.target(name), self.dir)
        os.chmod(copy, 0o755)
        return copy


class Killed(Case):

    def is_killed(self, when, n, *words):
        """Was the command, before or after its n-th request?"""
        preload = os.path.join(os.environ["SAMPLEPROF_TARGETS"],
                               "libprogram_attached_killed.so")
        done = subprocess.run(
            [attaching.COMMAND, *map(str, words)],
            env={**os.environ, "LD_PRELOAD": preload,
                 "KILLED": f"{when}:{n}"},
            capture_output=True, check=False, start_new_session=True,
            timeout=harness.TIMEOUT_S)
        self.assertIn(done.returncode, (0, -signal.SIGKILL), done.stderr)
        return done.returncode != 0

    def test_each_request(self):
        """The command and its worker at once, at each point: a thread that
        waits goes back to where it was, also from a system call for them."""
        self.check_each_request("program_attached", "killed")

    def test_each_request_of_a_thread_that_computes(self):
        """Its registers are those that it had."""
        self.check_each_request("program_attached_computes")

    def check_each_request(self, name, *words):
        talk = attaching.Talk(self, [harness.target(name), *words])
        attach = ("attach", talk.pid, "--out", self.out + "/")
        detach = ("detach", talk.pid)
        for when, words, undo in (("before", attach, detach),
                                  ("after", attach, detach),
                                  ("before", detach, attach)):
            n = 1
            if words == detach:
                attaching.run(*attach)
            while self.is_killed(when, n, *words):
                with self.subTest(f"{words[0]}: {when} {n}"):
                    self.assertEqual(talk.say("look")[0], "same")
                attaching.run(*undo, check=False)
                n += 1
            self.assertGreater(n, 10)
            self.assertEqual(talk.say("look")[0], "same")
            if words == attach:
                attaching.run(*detach)
        talk.end()


class Process(Case):

    def test_exec(self):
        talk = self.talk()
        path, _ = attaching.attach(talk.pid, self.out + "/")
        self.assertEqual(talk.say("go"), OBJECTS)
        self.assertEqual(talk.say("exec")[0], "begun")
        profile = harness.Profile(path)
        self.assertEqual((profile.end, profile.exact), ("exec", OBJECTS[1:]))
        os.unlink(path)
        self.check_round(talk)
        talk.end()

    def test_exec_while_it_is_detached(self):
        """Whatever comes first: the profile is whole, and the next program is
        let be."""
        for _ in range(EXEC_ROUNDS):
            talk = self.talk()
            path, _ = attaching.attach(talk.pid, self.out + "/")
            self.assertEqual(talk.say("go"), OBJECTS)
            detaching = subprocess.Popen(
                [attaching.COMMAND, "detach", str(talk.pid)],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.assertEqual(talk.say("exec")[0], "begun")
            _, said = detaching.communicate(timeout=harness.TIMEOUT_S)
            if detaching.returncode:
                self.assertRegex(said, "nothing is attached|has ended|again")
            profile = harness.Profile(path)
            self.assertIn(profile.end, ("clean", "exec"))
            self.assertEqual(profile.exact, OBJECTS[1:])
            os.unlink(path)
            self.check_round(talk)
            talk.end()

    def test_main_thread_that_ends(self):
        talk = self.talk()
        self.assertEqual(talk.say("leave")[0], "left")
        harness.wait_until(lambda: self.state(talk.pid) == "Z")
        self.refused(talk.pid, "the main thread", "has ended",
                     "sampleprof run")
        talk.process.kill()

    def check_hang(self, talk, *words):
        """Refused, at once or after the 2 s that are left to it; and nobody
        traces it any more."""
        self.refused(talk.pid, *words)
        self.assertFalse(self.tracer(talk.pid))

    def check_stop(self, talk):
        """Stopped while it is looked at."""
        command = subprocess.Popen(
            [attaching.COMMAND, "attach", str(talk.pid), "--out",
             self.out + "/"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        self.addCleanup(command.kill)
        harness.wait_until(lambda: command.poll() is not None or
                           self.tracer(talk.pid))
        talk.process.send_signal(signal.SIGSTOP)
        said = command.communicate(timeout=harness.TIMEOUT_S)
        talk.process.send_signal(signal.SIGCONT)
        self.assertEqual((command.returncode, said[0]), (1, ""))
        self.assertIn("is stopped: continue it first (kill -CONT", said[1])

    def state(self, pid):
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rpartition(")")[2].split()[0]

    def tracer(self, pid):
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            return "TracerPid:\t0\n" not in f.read()

    def test_uninterruptible(self):
        talk = self.talk()
        talk.process.stdin.write(b"vfork\n")
        harness.wait_until(lambda: self.state(talk.pid) == "D")
        self.check_hang(talk, "in 2 s no thread was found")
        children = f"/proc/{talk.pid}/task/{talk.pid}/children"
        with open(children, encoding="ascii") as f:
            os.kill(int(f.read()), 9)
        self.assertEqual(talk.listen()[0], "back")
        self.check_round(talk)
        talk.end()

    def test_loader_that_is_held(self):
        talk = self.talk(os.path.join(os.environ["SAMPLEPROF_TARGETS"],
                                      "libprogram_attached_holding.so"))
        self.assertEqual(talk.say("hold")[0], "held")
        self.check_hang(talk, "in 2 s no thread was found")
        self.check_stop(talk)
        self.assertEqual(talk.say("drop")[0], "dropped")
        self.check_round(talk)
        talk.end()

    def test_loader_that_is_held_for_a_second(self):
        """The command learns of it by one stop, and then waits without any: a
        thread that waited for the lock would be traced at each look."""
        talk = self.talk(os.path.join(os.environ["SAMPLEPROF_TARGETS"],
                                      "libprogram_attached_holding.so"))
        self.assertEqual(talk.say("hold")[0], "held")
        # pylint: disable-next=consider-using-with
        command = subprocess.Popen(
            [attaching.COMMAND, "attach", str(talk.pid), "--out",
             self.out + "/"], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(command.kill)
        time.sleep(0.4)
        traced = 0
        for _ in range(100):
            traced += self.tracer(talk.pid)
            time.sleep(0.005)
        self.assertIsNone(command.poll())
        self.assertLess(traced, 50)
        self.assertEqual(talk.say("drop")[0], "dropped")
        _, said = command.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual(command.returncode, 0, said)
        attaching.detach(talk.pid)
        talk.end()


class Rights(Case):

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs root")

    def test_filter(self):
        """Which kills for what loading a library needs: root may suspend it,
        others are told."""
        talk = self.talk()
        self.assertEqual(talk.say("filter")[0], "filtered")
        for _ in range(2):
            self.check_round(talk, lost=["rss_not_recorded"])
        talk.end()
        command = self.command_for_all()
        talk = attaching.Talk(self, as_nobody(self.target_for_all(
            "program_attached_places")))
        self.assertEqual(talk.say("filter")[0], "filtered")
        self.refused(talk.pid, "filters its system calls (seccomp)",
                     "run as root", command=as_nobody(command))
        self.assertEqual(talk.say("go"), OBJECTS)
        talk.end()

    def test_root_without_the_right(self):
        talk = self.talk()
        self.refused(talk.pid, "although you are root", "CAP_SYS_PTRACE",
                     command=("setpriv", "--bounding-set", "-sys_ptrace",
                              "--inh-caps", "-sys_ptrace", attaching.COMMAND))
        talk.end()

    def test_another_user(self):
        command = self.command_for_all()
        talk = self.talk()
        self.refused(talk.pid, "may not be traced", "run as its user, or root",
                     command=as_nobody(command))
        self.assertEqual(talk.say("go"), OBJECTS)
        talk.end()

    def test_same_user(self):
        """Without any rights besides."""
        command = self.command_for_all()
        if os.path.exists(YAMA) and yama():
            self.skipTest("yama forbids it")
        talk = attaching.Talk(self, as_nobody(self.target_for_all(
            "program_attached_places")))
        for word in "attach", "detach":
            options = ["--out", self.out + "/"] if word == "attach" else []
            done = subprocess.run(
                [*map(str, as_nobody(command)), word, str(talk.pid), *options],
                capture_output=True, check=False, text=True,
                timeout=harness.TIMEOUT_S)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(talk.say("go"), OBJECTS)
        path, = (os.path.join(self.out, n) for n in os.listdir(self.out))
        self.assertEqual(harness.Profile(path).exact, OBJECTS[1:])
        talk.end()

    def test_yama(self):
        if not os.path.exists(YAMA):
            self.skipTest("this kernel has no yama")
        scopes = [yama()]
        if os.environ.get("SAMPLEPROF_TEST_YAMA"):
            self.addCleanup(set_yama, yama())
            scopes = [1, 2]
        elif scopes == [0]:
            self.skipTest("yama allows all")
        command = self.command_for_all()
        talk = attaching.Talk(self, as_nobody(self.target_for_all(
            "program_attached_places")))
        for scope in scopes:
            set_yama(scope)
            self.refused(talk.pid, f"kernel.yama.ptrace_scope is {scope}",
                         command=as_nobody(command))
            self.check_round(talk)
        talk.end()

    def test_namespaces(self):
        """Another process id, and other mounts; the profile is where the
        process finds it."""
        talk = self.talk_in_namespaces()
        mounted = os.path.join(self.out, "mounted")
        self.assertEqual(os.listdir(mounted), [])
        path, _ = attaching.attach(talk.pid, mounted + "/")
        self.assertEqual(talk.say("go"), OBJECTS)
        attaching.detach(talk.pid)
        self.assertEqual(os.listdir(mounted), [])
        name, = os.listdir(f"/proc/{talk.pid}/root{mounted}")
        self.assertEqual(os.path.basename(path), name)
        profile = harness.Profile(f"/proc/{talk.pid}/root{mounted}/{name}")
        self.assertEqual((profile.end, profile.exact),
                         ("clean", OBJECTS[1:]))
        talk.process.stdin.write(b"end\n")

    def talk_in_namespaces(self):
        mounted = os.path.join(self.out, "mounted")
        os.mkdir(mounted)
        script = f"mount -t tmpfs none {mounted} && exec " + \
            harness.target("program_attached_places")
        if subprocess.run(["unshare", "-pmf", "true"], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no namespaces here")
        talk = attaching.Talk(self, ["unshare", "--pid", "--mount", "--fork",
                                     "--kill-child", "sh", "-c", script])
        with open(f"/proc/{talk.pid}/task/{talk.pid}/children",
                  encoding="ascii") as f:
            talk.pid = int(f.read())
        return talk


class Allocators(Case):

    def test_linked(self):
        for name in "jemalloc", "tcmalloc_minimal", "mimalloc":
            with self.subTest(name):
                talk = attaching.Talk(self, [
                    harness.target("program_attached_" + name), 2])
                path, _ = attaching.attach(talk.pid, self.out + "/")
                talk.say("go")
                truth = talk.say("stop")
                attaching.detach(talk.pid)
                profile = harness.Profile(path)
                self.assertEqual((profile.end, profile.exact, profile.lost()),
                                 ("clean", truth[1:], {}))
                talk.end()

    def test_own_operator_new(self):
        """What it asks malloc for is counted, once."""
        talk = attaching.Talk(self, [
            harness.target("program_attached_operators")])
        path, _ = attaching.attach(talk.pid, self.out + "/", "--period", "1")
        truth = talk.say("go")
        attaching.detach(talk.pid)
        profile = harness.Profile(path)
        self.assertEqual(profile.exact, truth[1:])
        self.assertEqual(profile.allocated_under("operator new"), truth[1:])
        talk.end()


class Foreign(Case):

    def compile(self, *argv, source=None):
        subprocess.run([*argv, "-o", os.path.join(self.dir, "program")],
                       input=source, check=True, text=True,
                       timeout=harness.TIMEOUT_S)
        return os.path.join(self.dir, "program")

    def test_musl(self):
        program = self.compile(
            *harness.musl_gcc(), "-O1", "-I",
            os.path.join(TARGETS, "../../../include"),
            os.path.join(TARGETS, "attached.c"))
        talk = attaching.Talk(self, [program, "1"])
        self.refused(talk.pid, "another C library than glibc (such as musl)",
                     "sampleprof run")
        talk.end()

    @unittest.skipUnless(harness.MACHINE == "x86_64", "other machines")
    def test_32_bit(self):
        program = self.compile(
            "gcc", "-m32", "-nostdlib", "-static", "-fno-pie", "-no-pie",
            "-fno-stack-protector", "-x", "c", "-", source=PAUSE_32)
        try:
            process = self.start([program], shim=False)
        except OSError as e:
            self.skipTest(f"this kernel has no 32 bits: {e}")
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.refused(process.pid, "runs a 32-bit program")


if __name__ == "__main__":
    unittest.main()
