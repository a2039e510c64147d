# SPDX-License-Identifier: MIT
"""`sampleprof attach` in difficult cases: a process that executes another
program, hangs, or filters its system calls; other users, namespaces and
allocators; programs into which the library cannot be loaded."""

import ctypes
import errno
import os
import resource
import shutil
import signal
import struct
import subprocess
import time
import unittest

import attaching
import harness

YAMA = "/proc/sys/kernel/yama/ptrace_scope"
NOBODY = 65534
TARGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets")
OBJECTS = ("totals", 1_000_000, 1000)
EXEC_ROUNDS = harness.rounds(3, 8)
TWO_ROUNDS = 4
ROOMS_KIB = 4, 50, 100, 200, 400, 2000
SEIZE = 0x4206  # PTRACE_SEIZE
WALL = 0x40000000  # __WALL
MANY_OBJECTS = 5000

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


def anonymous_code(pid):
    """Its executable mappings that are of no file: the command's own code."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        return [line for line in f
                if "x" in line.split()[1] and len(line.split()) == 5]


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
                         ("detached", OBJECTS[1:], set(lost)))
        os.unlink(path)
        self.assertEqual(talk.say("go"), OBJECTS)

    def refused(self, pid, *words, command=(attaching.COMMAND,), env=None):
        done = attaching.run("attach", pid, "--out", self.out + "/",
                             check=False, says=words, command=command,
                             env={**os.environ, **(env or {})})
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        for word in words:
            self.assertIn(word, " ".join(done.stderr.split()))
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
        """Was the command, before or after its n-th request?  One that gave up
        before, without a processor, has another try."""
        preload = os.path.join(os.environ["SAMPLEPROF_TARGETS"],
                               "libprogram_attached_killed.so")
        for _ in range(attaching.TRIES):
            command = self.start([attaching.COMMAND, *words], shim=False,
                                 env={"LD_PRELOAD": preload,
                                      "KILLED": f"{when}:{n}"},
                                 start_new_session=True)
            _, stderr = command.communicate(timeout=harness.TIMEOUT_S)
            if b" again" not in stderr:
                break
        self.assertIn(command.returncode, (0, -signal.SIGKILL), stderr)
        harness.wait_until(lambda: not attaching.members(command.pid))
        return command.returncode != 0

    @harness.nightly_too
    def test_each_request(self):
        """The command and its worker at once, at each point (at each eighth in
        the short list): a thread that waits goes back to where it was, also
        from a system call for them."""
        self.check_each_request("program_attached", "killed")

    @harness.nightly_too
    def test_command_alone(self):
        """The worker ends with it, and lets go; at each point, or at each
        fourth in the short list."""
        talk = attaching.Talk(self, [harness.target("program_attached"),
                                     "killed"])
        n = 1
        while self.is_killed("command", n, "attach", talk.pid, "--out",
                             self.out + "/"):
            self.assertEqual(talk.say("look")[0], "same")
            attaching.run("detach", talk.pid, check=False)
            n += harness.rounds(4, 1)
        self.assertGreater(n, 10)
        talk.end()

    def start_long(self, talk):
        """A command that searches for 2 s, for a thread holds the loader, once
        it has a worker."""
        self.assertEqual(talk.say("hold")[0], "held")
        command = self.start([attaching.COMMAND, "attach", talk.pid, "--out",
                              self.out + "/"], shim=False,
                             start_new_session=True)
        self.addCleanup(command.communicate)
        self.addCleanup(command.kill)
        harness.wait_until(lambda: attaching.worker_of(command.pid))
        return command

    def talk_that_holds(self):
        return self.talk(os.path.join(os.environ["SAMPLEPROF_TARGETS"],
                                      "libprogram_attached_holding.so"))

    @harness.nightly
    def test_stopped_command(self):
        """It and all of its process group: the worker goes on, and ends."""
        talk = self.talk_that_holds()
        command = self.start_long(talk)
        os.killpg(command.pid, signal.SIGSTOP)
        harness.wait_until(lambda: set(attaching.members(
            command.pid).values()) == {command.pid})
        self.assertEqual(attaching.traced_threads(talk.pid), [])
        os.killpg(command.pid, signal.SIGCONT)
        self.assertEqual(command.wait(timeout=harness.TIMEOUT_S), 1)
        self.assertEqual(talk.say("drop")[0], "dropped")
        self.check_round(talk)
        talk.end()

    @harness.nightly
    def test_interrupted_command(self):
        """Which ends at once, by the signal, with its worker."""
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            talk = self.talk_that_holds()
            for _ in range(attaching.TRIES):
                command = self.start_long(talk)
                os.killpg(command.pid, number)
                stderr = command.communicate(timeout=harness.TIMEOUT_S)[1]
                harness.wait_until(
                    lambda command=command: not attaching.members(command.pid))
                self.assertEqual(attaching.traced_threads(talk.pid), [])
                self.assertEqual(talk.say("drop")[0], "dropped")
                # It had no processor until its 2 s had passed.
                if b" again" not in stderr:
                    break
            self.assertEqual(command.returncode, -number, stderr)
            self.check_round(talk)
            talk.end()

    @harness.nightly
    def test_killed_process(self):
        """While the command waits for its loader: it says so at once."""
        for _ in range(attaching.TRIES):
            talk = self.talk_that_holds()
            command = self.start_long(talk)
            talk.process.kill()
            talk.process.communicate(timeout=harness.TIMEOUT_S)
            stdout, stderr = command.communicate(timeout=harness.TIMEOUT_S)
            self.assertEqual((command.returncode, stdout), (1, b""))
            # It had no processor until its 2 s had passed.
            if b" again" not in stderr:
                break
        self.assertIn(b"process %d has ended" % talk.pid, stderr)
        self.assertEqual(attaching.members(command.pid), {})
        self.assertEqual(os.listdir(self.out), [])

    @harness.nightly
    def test_stopped_worker(self):
        """That does not move for 5 s: the command ends it."""
        talk = self.talk_that_holds()
        command = self.start_long(talk)
        os.kill(attaching.worker_of(command.pid), signal.SIGSTOP)
        stdout, stderr = command.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual((command.returncode, stdout), (1, b""))
        self.assertIn(b"it was let go: try again", stderr)
        self.assertEqual(attaching.members(command.pid), {})
        self.assertEqual(attaching.traced_threads(talk.pid), [])
        self.assertEqual(talk.say("drop")[0], "dropped")
        self.check_round(talk)
        talk.end()

    @harness.nightly
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
                    self.assertEqual(anonymous_code(talk.pid), [])
                attaching.run(*undo, check=False)
                n += harness.rounds(8, 1)
            self.assertGreater(n, 10)
            self.assertEqual(talk.say("look")[0], "same")
            if words == attach:
                attaching.run(*detach)
        talk.end()


class GivenUp(Case):

    def test_library_that_takes_too_long(self):
        """Nothing is recorded and nothing is left, although the thread has
        begun a profile; and the next attach works."""
        told = os.path.join(self.dir, "told")
        slow = os.path.join(os.environ["SAMPLEPROF_TARGETS"],
                            "libprogram_attached_slow.so")
        talk = self.talk(preload=[slow], env={"WAITS_FOR": told})
        why = ("has not finished a call to the library in 2 s; it continues by "
               "itself, and nothing is recorded: try again later")
        done = attaching.run("attach", talk.pid, "--out", self.out + "/",
                             check=False, says=(why,))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(why, done.stderr)
        with open(told, "w", encoding="ascii"):
            self.assertEqual(talk.say("go"), OBJECTS)
        self.assertEqual(os.listdir(self.out), [])
        self.assertEqual(anonymous_code(talk.pid), [])
        self.assertNotIn(f" {talk.pid} ", attaching.run("ps").stdout)
        for _ in range(2):
            self.check_round(talk)
        talk.end()

    def test_detach_whose_second_request_is_not_made(self):
        """The profile has ended at the first one, and has its names."""
        told = os.path.join(self.dir, "told")
        slow = os.path.join(os.environ["SAMPLEPROF_TARGETS"],
                            "libprogram_attached_slow.so")
        program = shutil.copy(harness.target("program_attached_places"),
                              self.dir)
        talk = attaching.Talk(self, [program], preload=[slow],
                              env={"STOPS_BY": told})
        why = ("the profile is complete, but a thread may still be in the "
               "library: detach again")

        def is_said():
            """Where it gives up earlier, for want of a processor, again from
            the beginning."""
            nonlocal path, done
            path, _ = attaching.attach(talk.pid, self.out + "/", "--period",
                                       "1")
            self.assertEqual(talk.say("go"), OBJECTS)
            with open(told, "w", encoding="ascii"):
                done = attaching.run("detach", talk.pid, check=False, tries=1)
            if why in " ".join(done.stderr.split()):
                return True
            self.assertIn(" again", done.stderr)
            os.unlink(told)
            talk.process.send_signal(signal.SIGCONT)
            attaching.run("detach", talk.pid, check=False)
            os.unlink(path)
            return False
        path = done = None
        harness.wait_until(is_said)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        os.unlink(program)
        profile = harness.Profile(path)
        self.assertEqual((profile.end, profile.exact),
                         ("detached", OBJECTS[1:]))
        self.assertTrue(profile.stacks_with("allocate_some"))
        os.unlink(told)
        talk.process.send_signal(signal.SIGCONT)
        attaching.detach(talk.pid)
        self.check_round(talk)
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

    @harness.nightly_too
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
            self.assertIn(profile.end, ("detached", "exec"))
            self.assertEqual(profile.exact, OBJECTS[1:])
            os.unlink(path)
            self.check_round(talk)
            talk.end()

    def test_end_right_after_it(self):
        """It was recorded, but into what cannot be found out any more."""
        preload = os.path.join(os.environ["SAMPLEPROF_TARGETS"],
                               "libprogram_attached_killed.so")
        for _ in range(attaching.TRIES):
            shutil.rmtree(self.out)
            os.mkdir(self.out)
            talk = self.talk()
            done = attaching.run("attach", talk.pid, "--out", self.out + "/",
                                 check=False, tries=1, env={
                                     **os.environ, "LD_PRELOAD": preload,
                                     "ENDED": str(talk.pid)})
            talk.process.communicate(timeout=harness.TIMEOUT_S)
            if " again" not in done.stderr:
                break
        self.assertRegex(
            " ".join(done.stdout.split()), f"^process {talk.pid} was recorded, "
            "and has just ended or executed another program: its profile has "
            "the name that --out gives thread [0-9]+ was stopped for ")
        self.assertEqual(len(os.listdir(self.out)), 1)

    def test_two_commands(self):
        """One comes first, and the other one is told which, and its file."""
        for _ in range(TWO_ROUNDS):
            talk = self.talk()
            for _ in range(attaching.TRIES):
                commands = [self.start([attaching.COMMAND, "attach", talk.pid,
                                        "--out", f"{self.out}/{name}"],
                                       shim=False) for name in "ab"]
                said = [c.communicate(timeout=harness.TIMEOUT_S)
                        for c in commands]
                codes = [c.returncode for c in commands]
                if not any(b" again" in stderr for _, stderr in said):
                    break
                # One had no processor for 2 s.
                if 0 in codes:
                    attaching.detach(talk.pid)
                    os.unlink(f"{self.out}/{'ab'[codes.index(0)]}")
            self.assertEqual(sorted(codes), [0, 1], said)
            first = codes.index(0)
            path = f"{self.out}/{'ab'[first]}"
            self.assertEqual(os.listdir(self.out), ["ab"[first]])
            self.assertIn(f"is recorded into {path}\n".encode(),
                          said[first][0])
            self.assertRegex(
                said[1 - first][1].decode(),
                f"{path}: (process {talk.pid} is recorded already: another "
                rf"sampleprof attach \(process {commands[first].pid}\)|"
                f"is the profile of process {talk.pid}, which is being)")
            self.assertEqual(talk.say("go"), OBJECTS)
            attaching.detach(talk.pid)
            os.unlink(path)
            talk.end()

    def test_settings_that_are_refused(self):
        talk = self.talk()
        for _ in range(2):
            self.refused(talk.pid, "a SAMPLEPROF_ variable is not valid",
                         env={"SAMPLEPROF_PERIOD": "abc"})
            self.check_round(talk)
        talk.end()

    def test_small_files(self):
        talk = self.talk(preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (65536, -1)))
        self.refused(talk.pid, "its limit for the size of files is too low",
                     f"prlimit --pid {talk.pid} --fsize=unlimited")
        resource.prlimit(talk.pid, resource.RLIMIT_FSIZE, (-1, -1))
        self.check_round(talk)
        talk.end()

    def test_context(self):
        """The stack of a coroutine has no end that is known."""
        talk = self.talk()
        self.assertEqual(talk.say("context")[0], "context")
        self.check_hang(talk, "stacks of its threads could not be followed",
                        "makecontext", "sampleprof run")
        self.assertEqual(talk.say("go"), OBJECTS)
        talk.end()

    def test_strict_seccomp(self):
        talk = self.talk()
        talk.say("go")
        self.assertEqual(talk.say("strict")[0], "strict")
        harness.wait_until(lambda: "Seccomp:\t1" in open(
            f"/proc/{talk.pid}/status", encoding="ascii").read())
        self.refused(talk.pid, "in the strict mode of seccomp")
        self.assertEqual(talk.say("go"), OBJECTS)
        talk.process.kill()

    def test_crowd(self):
        """More threads than there are places for at first: each of them is
        known when the profile ends."""
        talk = self.talk()
        path, _ = attaching.attach(talk.pid, self.out + "/")
        self.assertEqual(talk.say("crowd")[0], "crowd")
        attaching.detach(talk.pid)
        self.assertEqual(harness.Profile(path).end, "detached")
        os.unlink(path)
        self.check_round(talk)
        talk.end()

    def test_exec_that_waits(self):
        """It waits until another tracer has seen the end of a thread, and
        nobody can begin to trace the process meanwhile."""
        talk = self.talk(os.path.join(os.environ["SAMPLEPROF_TARGETS"],
                                      "libprogram_attached_holding.so"))
        self.assertEqual(talk.say("hold")[0], "held")
        thread, = {int(tid) for tid in os.listdir(f"/proc/{talk.pid}/task")} \
            - {talk.pid}
        self.assertEqual(ctypes.CDLL(None).ptrace(SEIZE, thread, 0, 0), 0)
        talk.process.stdin.write(b"exec\n")
        harness.wait_until(lambda: self.state(talk.pid) == "D")
        self.refused(talk.pid, "is executing another program", "try again")
        command = self.start([attaching.COMMAND, "attach", talk.pid, "--out",
                              self.out + "/"], shim=False,
                             start_new_session=True)
        self.addCleanup(command.communicate)
        self.addCleanup(command.kill)
        harness.wait_until(lambda: command.poll() is not None or
                           attaching.worker_of(command.pid))
        command.kill()
        harness.wait_until(lambda: not attaching.members(command.pid))
        os.waitpid(thread, WALL)
        self.assertEqual(talk.listen()[0], "begun")
        self.check_round(talk)
        talk.end()

    def test_main_thread_that_ends(self):
        talk = self.talk()
        self.assertEqual(talk.say("leave")[0], "left")
        self.assertEqual(talk.listen()[0], "begun")
        harness.wait_until(lambda: self.state(talk.pid) == "Z")
        self.check_round(talk)
        self.check_round(talk)
        talk.end()

    def check_hang(self, talk, *words):
        """Refused, at once or after the 2 s that are left to it; and nobody
        traces it any more."""
        self.refused(talk.pid, *words)
        self.assertFalse(self.tracer(talk.pid))

    def check_stop(self, talk):
        """Stopped while it is looked at, or just before.  Where the test is too
        late for the command's 2 s, it says so, and is given again."""
        for _ in range(20):
            command = subprocess.Popen(
                [attaching.COMMAND, "attach", str(talk.pid), "--out",
                 self.out + "/"], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, start_new_session=True)
            self.addCleanup(command.kill)
            # Its worker has begun.  A thread may be traced for too short a
            # time to be seen.
            harness.wait_until(lambda c=command: c.poll() is not None or
                               attaching.worker_of(c.pid))
            talk.process.send_signal(signal.SIGSTOP)
            said = command.communicate(timeout=harness.TIMEOUT_S)
            talk.process.send_signal(signal.SIGCONT)
            self.assertEqual((command.returncode, said[0]), (1, ""))
            if "in 2 s no thread was found" not in said[1]:
                break
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
        self.check_hang(talk, "in 2 s no thread was found that stops",
                        "wait in the kernel")
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

    @harness.nightly
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

    def test_memory_that_is_not_written_and_executed(self):
        """As systemd's MemoryDenyWriteExecute has it (Linux 6.3): also if the
        allocator's symbols are in the segment of its code."""
        packed = os.path.join(os.environ["SAMPLEPROF_TARGETS"],
                              "libprogram_attached_packed.so")
        for preload in [], [packed]:
            with self.subTest(preload):
                talk = self.talk(preload=preload)
                if talk.say("deny")[0] != "denied":
                    self.skipTest("this kernel cannot deny it")
                for _ in range(2):
                    self.check_round(talk)
                    self.assertEqual(anonymous_code(talk.pid), [])
                talk.end()

    def test_kernel_that_suspends_no_filter(self):
        talk = self.talk()
        self.assertEqual(talk.say("filter")[0], "filtered")
        preload = os.path.join(os.environ["SAMPLEPROF_TARGETS"],
                               "libprogram_attached_killed.so")
        for error in errno.EINVAL, errno.EIO:
            self.refused(talk.pid, "this kernel cannot suspend the filter",
                         "CONFIG_CHECKPOINT_RESTORE",
                         env={"LD_PRELOAD": preload,
                              "TRACE_ERROR": str(error)})
        self.refused(talk.pid, "suspending the filter needs CAP_SYS_ADMIN",
                     command=("setpriv", "--bounding-set", "-sys_admin",
                              "--inh-caps", "-sys_admin", attaching.COMMAND))
        self.assertEqual(talk.say("go"), OBJECTS)
        talk.end()

    def test_set_uid(self):
        command = self.command_for_all()
        if os.statvfs(self.dir).f_flag & os.ST_NOSUID:
            self.skipTest("no set-uid programs here")
        program = self.target_for_all("program_attached_places")
        os.chmod(program, 0o4755)
        talk = attaching.Talk(self, as_nobody(program))
        for words in [attaching.COMMAND], as_nobody(command):
            self.refused(talk.pid, "set-uid, set-gid or has capabilities",
                         command=words)
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
            done = attaching.run(word, talk.pid, *options,
                                 command=as_nobody(command))
            self.assertEqual(done.stderr, "")
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
                         ("detached", OBJECTS[1:]))
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


class Hostile(Case):
    """A process of another user that wants root to do what it may not."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs root")
        os.chmod(self.dir, 0o755)
        os.chmod(self.out, 0o777)

    def attach(self, talk, when):
        killed = os.path.join(os.environ["SAMPLEPROF_TARGETS"],
                              "libprogram_attached_killed.so")
        return subprocess.run(
            [attaching.COMMAND, "attach", str(talk.pid), "--out",
             self.out + "/"], env={**os.environ, "LD_PRELOAD": killed,
                                   "EXCHANGED": when},
            capture_output=True, check=False, text=True,
            timeout=harness.TIMEOUT_S)

    def check_exchange(self, when, path, *words):
        talk = attaching.Talk(self, as_nobody(self.target_for_all(
            "program_attached_places"), path))
        self.assertEqual(talk.say("exchange")[0], "ready")
        done = self.attach(talk, when)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        for word in words:
            self.assertIn(word, " ".join(done.stderr.split()))
        self.assertEqual(os.listdir(self.out), [])
        self.assertEqual(talk.say("go"), OBJECTS)
        talk.end()

    def test_file_in_the_place_of_the_library(self):
        """A file that the process may not even read, nor may anybody else."""
        path = os.path.join(self.dir, "victim")
        with open(path, "w", encoding="ascii") as f:
            os.chmod(path, 0o600)
            f.write("as it was")
        self.check_exchange("open", path, "has changed the file")
        with open(path, encoding="ascii") as f:
            self.assertEqual(f.read(), "as it was")

    def test_library_in_the_place_of_the_library(self):
        self.check_exchange("sealed", self.target_for_all(
            "libprogram_attached_plugin.so"), "has loaded another file")

    def test_library_that_came_late(self):
        """One that an attach before has loaded, when that had been given up:
        the loader has it by the same name.  It is ours, if it has our code."""
        path = os.path.join(self.dir, "libsampleprof.so")
        shutil.copy(os.environ["SAMPLEPROF_SO"], path)
        os.chmod(path, 0o644)
        talk = attaching.Talk(self, as_nobody(self.target_for_all(
            "program_attached_places"), path))
        self.assertEqual(talk.say("exchange")[0], "ready")
        done = self.attach(talk, "sealed")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(talk.say("go"), OBJECTS)
        attaching.detach(talk.pid)
        name, = os.listdir(self.out)
        self.assertEqual(harness.Profile(os.path.join(self.out, name)).exact,
                         OBJECTS[1:])
        talk.end()

    def test_library_of_other_code(self):
        """It has the library's name and first page.  What differs is behind
        the last function, so nothing but the check sees it."""
        with open(os.environ["SAMPLEPROF_SO"], "rb") as f:
            library = bytearray(f.read())
        table, = struct.unpack_from("<Q", library, 32)
        size, n = struct.unpack_from("<HH", library, 54)
        ends = [offset + length for kind, flags, offset, _, _, length in (
            struct.unpack_from("<IIQQQQ", library, table + i * size)
            for i in range(n)) if kind == 1 and flags & 1]
        self.assertEqual(library[ends[0]], 0)
        library[ends[0]] = 1
        path = os.path.join(self.dir, "libsampleprof.so")
        with open(path, "wb") as f:
            f.write(library)
        os.chmod(path, 0o644)
        self.check_exchange("sealed", path, "has loaded another file")

    def jail(self, link):
        """Where /tmp is that link, and there is no /proc."""
        folder = os.path.join(self.dir, "jail")
        attaching.make_jail(folder, harness.target("program_attached_places"),
                            "/program")
        os.symlink(link, folder + "/tmp")
        talk = attaching.Talk(self, ["chroot", "--userspec",
                                     f"{NOBODY}:{NOBODY}", folder, "/program"])
        return folder, talk

    def test_directory_of_the_host(self):
        outside = os.path.join(self.dir, "outside")
        os.mkdir(outside)
        os.chmod(outside, 0o777)
        before = os.stat(outside).st_mtime_ns
        _, talk = self.jail(outside)
        self.refused(talk.pid, "has no /proc in its root directory")
        self.assertEqual(os.stat(outside).st_mtime_ns, before)
        self.assertEqual(talk.say("go"), OBJECTS)
        talk.end()

    def test_directory_of_the_same_name(self):
        """A link from the root directory of the process leads to where it
        leads for the process."""
        folder, talk = self.jail("/var/tmp")
        os.makedirs(folder + "/var/tmp")
        # It may not create a file there, so nobody does for it.
        self.refused(talk.pid, "no /tmp that its user may write to")
        os.chmod(folder + "/var/tmp", 0o1777)
        self.refused(talk.pid, "this kernel (before Linux 5.6) has no safe way "
                     "to its /tmp", command=(harness.target(
                         "program_hazard_old_kernel"), "openat2",
                                             attaching.COMMAND))
        self.assertEqual(os.listdir(folder + "/var/tmp"), [])
        path, _ = attaching.attach(talk.pid, "/var/tmp/")
        self.assertEqual(talk.say("go"), OBJECTS)
        attaching.detach(talk.pid)
        self.assertEqual(os.listdir(folder + "/var/tmp"),
                         [os.path.basename(path)])
        self.assertEqual(harness.Profile(
            folder + "/var/tmp/" + os.path.basename(path)).exact, OBJECTS[1:])
        talk.end()


class Memory(Case):
    """A process that may hardly take more: the kernel would kill it."""

    def setUp(self):
        super().setUp()
        root = "/sys/fs/cgroup/memory"
        self.limit, self.usage = "memory.limit_in_bytes", \
            "memory.usage_in_bytes"
        if not os.path.exists(root):
            root = "/sys/fs/cgroup"
            self.limit, self.usage = "memory.max", "memory.current"
        self.group = os.path.join(root, f"sampleprof-test-{os.getpid()}")
        try:
            os.mkdir(self.group)
            self.addCleanup(harness.remove_group, self.group)
            self.write(self.limit, 1 << 30)
        except OSError as error:
            self.skipTest(f"no control group can be made: {error}")

    def write(self, name, value):
        with open(os.path.join(self.group, name), "w", encoding="ascii") as f:
            f.write(str(value))

    def usage_now(self):
        with open(os.path.join(self.group, self.usage),
                  encoding="ascii") as f:
            return int(f.read())

    def leave_room(self, kib):
        self.write(self.limit, (self.usage_now() + (kib << 10)) & -4096)

    def talk_in_group(self, *words):
        return attaching.Talk(
            self, [harness.target("program_attached"), *words],
            preexec_fn=lambda: self.write("cgroup.procs", os.getpid()))

    def check_command(self, talk, *words):
        """Done, or refused with the reason; and the process lives."""
        done = attaching.run(*words, check=False)
        self.assertIsNone(talk.process.poll())
        self.assertEqual(talk.say("stop")[0], "totals")
        if done.returncode:
            self.assertIn("more in its control group", done.stderr)
        return done.returncode

    def rounds(self, word, threads, rooms=ROOMS_KIB):
        """With little and with more room.  How much is too little depends on
        the files whose pages were charged to the group."""
        codes = []
        for kib in rooms:
            self.write(self.limit, 1 << 30)
            talk = self.talk_in_group(threads)
            words = ["attach", talk.pid, "--out", self.out + "/"]
            talk.say("go")
            if word == "detach":
                attaching.run(*words)
                words = ["detach", talk.pid]
            talk.say("stop")
            self.leave_room(kib)
            codes.append(self.check_command(talk, *words))
            self.write(self.limit, 1 << 30)
            if codes[-1]:
                attaching.run(*words)
            talk.end()
        self.assertEqual(codes[-1], 0)

    @harness.nightly_too
    def test_detach(self):
        self.rounds("detach", 1, ROOMS_KIB[::-harness.rounds(3, 1)][::-1])

    @harness.nightly_too
    def test_detach_of_many_threads(self):
        """Each of them has counted something that has to be written."""
        self.rounds("detach", *harness.rounds((20, ROOMS_KIB[1::4]),
                                              (60, ROOMS_KIB)))

    def test_attach(self):
        self.rounds("attach", 1)


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
                                 ("detached", truth[1:], {}))
                talk.end()

    def test_parts_of_the_c_library(self):
        """The empty ones of today, for older programs, which lie below it
        once they are loaded."""
        for name in "libdl.so.2", "libpthread.so.0":
            with self.subTest(name):
                talk = self.talk(name)
                self.assertEqual(talk.say("load")[0], "loaded")
                with open(f"/proc/{talk.pid}/maps", encoding="utf-8") as f:
                    maps = f.read()
                if name not in maps:
                    self.skipTest(f"this C library has no {name}")
                self.assertLess(maps.index(name), maps.index("libc.so.6"))
                for _ in range(2):
                    self.check_round(talk)
                talk.end()

    @harness.nightly
    def test_many_objects(self):
        """The stop is linear in their number: a square would exceed the 2 s
        after which the command gives up."""
        folder = os.path.join(self.dir, "objects")
        os.mkdir(folder)
        for i in range(MANY_OBJECTS):
            shutil.copy(os.path.join(os.environ["SAMPLEPROF_TARGETS"],
                                     "libprogram_attached_plugin.so"),
                        f"{folder}/{i}.so")
        talk = self.talk(folder)
        self.assertEqual(talk.say("load")[0], "loaded")
        self.check_round(talk)
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
