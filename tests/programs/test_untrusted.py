# SPDX-License-Identifier: MIT
"""Files that the report opens because of a profile (strace): only modules and
files below `--debug-path`, no pipe, no device, whatever links say.  Files of
100 bytes are read with 64 MiB of memory.  A process maps files and plants links
where their names lead, on file systems of its own, and holds locks: what
commands open is a profile of the process that they look at, and no lock is
waited for without an end."""

import contextlib
import fcntl
import os
import random
import re
import resource
import shutil
import socket
import stat
import struct
import subprocess
import time
import unittest
from unittest import mock

import harness
import hazards

# A bound that nothing small comes near: the libraries alone take half of it.
MEMORY_BYTES = 64 << 20
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                      "format", "golden")

NOBODY = 65534

# Map a file, and put a link where maps shows it.  Its inode has the number that
# is asked for, if not 0.
PLANT = """
import mmap, os, sys
path, target, inode = sys.argv[1], sys.argv[2], int(sys.argv[3])
while True:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    found = os.fstat(file).st_ino
    if not inode or found >= inode:
        break
    os.unlink(path)
    os.close(file)
os.ftruncate(file, 1 << 16)
memory = mmap.mmap(file, 1 << 16)
os.unlink(path)
os.symlink(target, path + " (deleted)")
print("mapped", found, flush=True)
sys.stdin.read()
"""


class Opens(harness.Case):
    def setUp(self):
        super().setUp()
        self.program = os.path.join(self.dir, "program")
        shutil.copy(harness.target("program_plain"), self.program)
        self.profile = self.execute(
            self.program, 10, period="1").profile().require_samples().path
        self.roots = os.path.join(self.dir, "roots")
        os.mkdir(self.roots)

    def opened(self, *options):
        """The files that the report opened, or tried to, after the profile;
        also those that it only looked at (O_PATH), as (name, is opened)."""
        log = os.path.join(self.dir, "strace")
        done = subprocess.run(
            [harness.require("strace", "strace"), "-fyqq", "-o", log, "-e",
             "trace=open,openat,openat2,creat,execve,connect",
             os.environ["SAMPLEPROF_REPORT"], self.profile,
             "--debug-path", self.roots, "--stacks=0", *options],
            capture_output=True, timeout=harness.TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(log, encoding="utf-8", errors="replace") as f:
            # The child that opens what was not looked up before is killed.
            calls = [c for c in f.read().splitlines() if "+++" not in c]
        first = next(i for i, c in enumerate(calls) if self.profile in c)
        return [(self.name_in(c), "O_PATH" not in c)
                for c in calls[first + 1:]], done.stdout.decode()

    def name_in(self, call):
        """What was looked at is opened by its descriptor."""
        name = re.search(r'"([^"]*)"', call).group(1)
        if not name.startswith("/proc/self/fd/"):
            return name
        return re.search(r" = \d+<(.*)>$", call).group(1)

    def check(self, paths):
        """Nothing but the program, the C library, and what is below the
        roots."""
        for path in (p for p, is_opened in paths if is_opened):
            self.assertTrue(
                # The profile's head is looked at before it is read.
                path in (self.program, self.profile) or path.startswith(self.roots + "/")
                or re.fullmatch(r"/(usr/)?lib(64|/x86_64-linux-gnu)/"
                                r"(libc|libsampleprof|ld-linux-x86-64)"
                                r"\.so(\.\d)?", path)
                or path == os.environ["SAMPLEPROF_SO"]
                # Is the process still there?  What is the time zone?
                or re.fullmatch(r"/proc/\d+(/task/\d+/stat)?|maps"
                                r"|/proc/self/maps|/etc/localtime", path)
                # Does a process serve it?
                or re.fullmatch(r"/proc/self/(fdinfo/\d+|mountinfo)", path)
                # Which package has its names, and where do packages come from?
                or re.match(r"/var/lib/dpkg/info(/|$)|/etc/(apt/|os-release"
                            r"|debian_version)", path)
                # A debug link is looked for beside the file that has it.
                or os.path.dirname(path) in (self.dir, self.dir + "/.debug"),
                f"{path} was opened; all: {paths}")

    def put_debug_file(self):
        """Where the build id of the program leads to; returns the path."""
        notes = subprocess.run(
            [harness.require("readelf", "binutils"), "-n", self.program],
            capture_output=True, check=True, text=True).stdout
        build_id = re.search(r"Build ID: (\w+)", notes).group(1)
        path = os.path.join(self.roots, ".build-id", build_id[:2],
                            build_id[2:] + ".debug")
        os.makedirs(os.path.dirname(path))
        subprocess.run(["objcopy", "--only-keep-debug", self.program, path],
                       check=True)
        subprocess.run(["objcopy", "--strip-debug", self.program], check=True)
        return path

    def test_only_modules_and_debug_path(self):
        debug = self.put_debug_file()
        paths, text = self.opened()
        self.check(paths)
        self.assertIn((self.program, True), paths)
        self.assertIn((debug, True), paths)
        self.assertIn("main", text)

    def test_what_took_the_place_of_a_module(self):
        os.unlink(self.program)
        os.mkfifo(self.program)
        self.replaced("is not a regular file")
        os.unlink(self.program)
        os.mkdir(self.program)
        self.replaced("is not a regular file")
        os.rmdir(self.program)
        os.symlink("/dev/zero", self.program)
        self.replaced("is not a regular file")
        os.unlink(self.program)
        with open(self.program, "w", encoding="ascii") as f:
            f.write("no program at all\n")
        self.replaced("is not an ELF", may_open=True)

    def replaced(self, why, may_open=False):
        paths, text = self.opened()
        self.check(paths)
        self.assertIn(why, " ".join(text.split()))
        if not may_open:
            self.assertIn((self.program, False), paths)
            self.assertNotIn((self.program, True), paths)

    def test_link_to_anywhere(self):
        """Links of a module to debug files, with directories in their names."""
        target = os.path.join(self.dir, "elsewhere")
        os.mkfifo(target)
        link = os.path.join(self.dir, "link")
        for section, padding in ((".gnu_debuglink", 8), (".gnu_debugaltlink",
                                                         20)):
            for name in (target, "../elsewhere", "x/.dwz/../../elsewhere"):
                with open(link, "wb") as f:
                    data = name.encode() + b"\0"
                    f.write(data + b"\1" * (-len(data) % 4 + padding))
                program = harness.target("program_plain")
                subprocess.run(
                    [harness.require("objcopy", "binutils"), "--strip-debug",
                     "--add-section", f"{section}={link}", program,
                     self.program], check=True)
                self.check(self.opened()[0])
        self.assertTrue(stat.S_ISFIFO(os.stat(target).st_mode))


class Memory(harness.Case):
    def run_limited(self, *argv):
        """Status and standard error, with few bytes to be had."""
        def limit():
            resource.setrlimit(resource.RLIMIT_AS,
                               (MEMORY_BYTES, MEMORY_BYTES))
        done = subprocess.run(argv, capture_output=True, preexec_fn=limit,
                              timeout=harness.TIMEOUT_S, check=False)
        return done.returncode, done.stderr.decode(errors="replace")

    def report(self, path):
        return self.run_limited(os.environ["SAMPLEPROF_REPORT"], path)

    def inputs(self):
        """Files of 100 bytes and a little more: beginnings of profiles, ELF
        and zstd files, and what is none, with bytes replaced."""
        with open(os.path.join(GOLDEN, "v1", "clean.sprof"), "rb") as f:
            profile = f.read(4096)
        with open(os.environ["SAMPLEPROF_REPORT"], "rb") as f:
            elf = f.read(4096)
        zstd = bytes.fromhex("28b52ffd") + b"\xe4" + b"\xff" * 8
        draw = random.Random(1)
        for start in (profile, elf, zstd + profile, b"", b"\0" * 100):
            for size in (100, 1000):
                yield start[:size]
                for _ in range(3):
                    data = bytearray(start[:size])
                    for _ in range(min(len(data), 3)):
                        at = draw.randrange(len(data))
                        data[at:at + 4] = b"\xff" * len(data[at:at + 4])
                    yield bytes(data)

    def test_few_bytes_take_little_memory(self):
        path = os.path.join(self.dir, "small.sprof")
        for data in set(self.inputs()):
            with open(path, "wb") as f:
                f.write(data)
            status, said = self.report(path)
            self.assertIn(status, (0, 1), said)
            self.assertNotIn("memory", said, data)
            self.assertTrue(status == 0 or path in said, said)

    def test_the_limit_is_felt(self):
        self.assertEqual(self.report(
            os.path.join(GOLDEN, "v1", "clean.sprof"))[0], 0)
        python = ["/usr/bin/python3", "-c"]
        self.assertEqual(self.run_limited(*python, "bytearray(1 << 20)")[0], 0)
        self.assertNotEqual(
            self.run_limited(*python, "bytearray(64 << 20)")[0], 0)


class Misled(harness.Case):
    """A process that wants to lead those who look at it astray: nobody's, if
    root looks; else our own."""

    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        self.open = os.path.join(self.dir, "open")
        os.mkdir(self.open)
        os.chmod(self.open, 0o777)

    def as_nobody(self, *argv):
        return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY),
                "--clear-groups", *argv] if os.geteuid() == 0 else list(argv)

    def plant(self, path, target, inode=0, inside=()):
        process = self.start(
            [*inside, *self.as_nobody("/usr/bin/python3", "-c", PLANT, path,
                                      target, inode)],
            shim=False, stdin=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.assertEqual(process.stdout.readline(),
                         b"mapped %d\n" % inode if inode else mock.ANY)
        return process

    def record(self, out, inside=(), argument=()):
        """A program_idle that has written a profile of that name."""
        environment = self.environment(period="1")
        environment["SAMPLEPROF_OUT"] = out
        shim = environment.pop("LD_PRELOAD")
        # pylint: disable-next=consider-using-with
        process = subprocess.Popen(
            [*inside, "env", f"LD_PRELOAD={shim}",
             harness.target("program_idle"), *argument], cwd=self.dir,
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            bufsize=0)
        self.addCleanup(process.communicate)
        process.stdin.write(b"\5")
        self.assertEqual(process.stdout.read(1), b"\5")
        return process

    def opened(self, *words):
        """(Flags, what was opened) of a command, and what it says."""
        log = os.path.join(self.dir, "strace")
        done = harness.beside_others(lambda: subprocess.run(
            [harness.require("strace", "strace"), "-fyqq", "-o", log, "-e",
             "trace=open,openat,openat2", harness.tool(), *words],
            capture_output=True, text=True, timeout=harness.TIMEOUT_S,
            check=False, env=self.environment(shim=False)), *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(log, encoding="utf-8", errors="replace") as f:
            return re.findall(r", ([A-Z_|]+)(?:, [^)]*)?\) = \d+<(.*)>",
                              f.read()), done.stdout

    def test_ps_reads_profiles_alone(self):
        """Wherever a name leads that maps has; and writes nothing."""
        profile = os.path.join(self.dir, "own.sprof")
        self.record(profile)
        secret = os.path.join(self.dir, "secret")
        with open(secret, "w", encoding="ascii") as file:
            file.write("not for everybody")
        pipe = os.path.join(self.open, "pipe")
        os.mkfifo(pipe)
        self.plant(os.path.join(self.open, "a"), secret)
        self.plant(os.path.join(self.open, "b"), pipe)
        calls, listed = self.opened("ps")
        self.assertIn(profile, listed)
        opened = [path for flags, path in calls if "O_PATH" not in flags]
        self.assertIn(profile, opened)
        self.assertNotIn(secret, opened)
        self.assertNotIn(pipe, opened)
        self.assertEqual([c for c in calls if "O_RDONLY" not in c[0] and
                          "O_PATH" not in c[0]], [])

    def test_ls_opens_nothing_but_files(self):
        pipe = os.path.join(self.open, "pipe.sprof")
        os.mkfifo(pipe)
        os.symlink("/dev/zero", os.path.join(self.open, "zero.sprof"))
        profile = os.path.join(self.open, "own.sprof")
        self.record(profile)
        calls, listed = self.opened("ls", self.open)
        self.assertIn("own.sprof", listed)
        opened = [path for flags, path in calls if "O_PATH" not in flags]
        self.assertIn(profile, opened)
        self.assertNotIn(pipe, opened)
        self.assertNotIn("/dev/zero", opened)

    @unittest.skipUnless(hazards.can_mount(), "needs root, and to mount")
    def test_order_for_another(self):
        """A process maps a file whose inode has the number of another's
        profile, on another file system, and the name leads to that profile:
        an order to it is none to the other."""
        other = os.path.join(self.dir, "other")
        os.mkdir(other)
        place = self.start(
            ["unshare", "-m", "sh", "-c", f"mount -t tmpfs none {other} && "
             f"mount -t tmpfs -o mode=777 none {self.open} && echo ready && "
             "exec cat"], shim=False, stdin=subprocess.PIPE)
        self.addCleanup(place.communicate)
        self.assertEqual(place.stdout.readline(), b"ready\n")
        inside = ["nsenter", "-t", str(place.pid), "-m"]
        profile = os.path.join(other, "x.sprof")
        victim = self.record(profile, inside)
        inode = int(subprocess.run(
            [*inside, "stat", "-c", "%i", profile], capture_output=True,
            check=True).stdout)
        evil = self.plant(os.path.join(self.open, "x"), profile, inode, inside)
        done = subprocess.run(
            [*inside, harness.tool(), "ctl", "--timeout", "0s", str(evil.pid),
             "stop"], capture_output=True, check=False,
            timeout=harness.TIMEOUT_S)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"no profile open", done.stderr)
        status = subprocess.run(
            [*inside, harness.tool(), "ctl", str(victim.pid), "status"],
            capture_output=True, check=True, timeout=harness.TIMEOUT_S).stdout
        self.assertIn(b"orders    0 carried out\n", status)
        self.assertNotIn(b"waits", status)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_file_system_of_a_user(self):
        """What a user has mounted may lead to where nobody answers.  A file
        system in memory always does."""
        for name in ("low", "up", "work", "on"):
            os.mkdir(os.path.join(self.open, name))
            os.chown(os.path.join(self.open, name), NOBODY, NOBODY)
        at = os.path.join(self.open, "on")
        for kind, options in (
                ("tmpfs", "mode=777"),
                ("overlay", f"lowerdir={self.open}/low,"
                 f"upperdir={self.open}/up,workdir={self.open}/work")):
            inside = self.as_nobody("unshare", "-Urm", "sh", "-c",
                                    f"mount -t {kind} -o {options} none {at} "
                                    '&& exec "$@"', "-")
            if subprocess.run([*inside, "true"], check=False,
                              stderr=subprocess.DEVNULL).returncode:
                self.skipTest(f"a user cannot mount {kind} here")
            process = self.record(os.path.join(at, "x.sprof"), inside)
            words = [harness.tool(), "ctl", str(process.pid), "status"]
            for user, fine in ((self.as_nobody(), True),
                               ([], kind == "tmpfs")):
                done = subprocess.run(
                    [*user, *words], capture_output=True, check=False,
                    text=True, timeout=harness.TIMEOUT_S)
                with self.subTest(kind=kind, user=user):
                    self.assertEqual(done.returncode, 0 if fine else 1,
                                     done.stderr)
                    self.assertIn("sampling  on" if fine else "never answer",
                                  done.stdout + done.stderr)

    def test_lock_that_is_held(self):
        """Whoever can read the profile can lock it: the order has an end."""
        profile = os.path.join(self.dir, "own.sprof")
        process = self.record(profile)
        with open(profile, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            done = self.sampleprof("ctl", process.pid, "stop", code=1)
            self.assertRegex(
                done.stderr, r"waited \d s for the lock of the profile of "
                rf"process {process.pid}, .*: process {os.getpid()} holds it; "
                "end that one, or try again\n")
        done = self.sampleprof("ctl", "--timeout", "0s", process.pid, "stop",
                               code=3)
        self.assertIn("stays queued as order 1\n", done.stderr)

    def connect(self, name):
        """To where processes ask for their ledger."""
        stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(stranger.close)
        stranger.connect("\0sampleprof-look-" + name)
        return stranger

    def test_stranger_asks_for_a_ledger(self):
        """It is not the process that was asked, and comes before it."""
        process = self.record(os.path.join(self.dir, "own.sprof"))
        ctl = self.start(
            [harness.tool(), "ctl", "--timeout", "60s", "--rss", process.pid,
             "snapshot", "here"], shim=False)
        self.addCleanup(ctl.communicate)
        self.addCleanup(ctl.kill)
        names = rf"@sampleprof-look-({ctl.pid}-{process.pid}-\w+)\n"

        def allocate():
            process.stdin.write(b"\5")
            self.assertEqual(process.stdout.read(1), b"\5")

        def listens():
            self.assertIsNone(ctl.poll())
            with open("/proc/net/unix", encoding="utf-8",
                      errors="replace") as file:
                return re.search(names, file.read())

        def has_snapshot():
            with open(os.path.join(self.dir, "own.sprof"), "rb") as profile:
                profile.seek(6144 + 96)  # the last order that was carried out
                return struct.unpack("<Q", profile.read(8))[0]

        # It takes the snapshot first; then it is asked to come, and does not
        # before it allocates again.
        harness.wait_until(lambda: has_snapshot() or allocate())
        harness.wait_until(listens)
        stranger = self.connect(listens()[1])
        with contextlib.suppress(BrokenPipeError):  # sent away by now
            stranger.send(struct.pack("<IIQQ64s", 2, 1, 0, 0, b""))
        while ctl.poll() is None:
            allocate()
        self.assertEqual(ctl.returncode, 0)
        self.assertIn(b"process %d, program_idle" % process.pid,
                      ctl.stdout.read())

    def test_strangers_at_the_end_of_a_run(self):
        """They connect and say nothing: the command ends nevertheless."""
        command = self.start(
            [harness.tool(), "run", "--quiet", "--rss", "--out", "x.sprof",
             "--", "env", "-u", "LD_PRELOAD", "sh", "-c",
             "echo $SAMPLEPROF_RUN; exec cat"],
            shim=False, stdin=subprocess.PIPE)
        self.addCleanup(command.kill)
        name = command.stdout.readline().decode().strip()
        strangers = [self.connect(name) for _ in range(200)]
        begin = time.monotonic()
        command.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual(command.returncode, 0)
        # Each of them could be waited for 2 s.
        self.assertLess(time.monotonic() - begin, len(strangers))

    def test_main_thread_that_ended(self):
        """The kernel shows nothing of it but through another thread."""
        profile = os.path.join(self.dir, "own.sprof")
        process = self.record(profile, argument=["leave"])

        def state():
            with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                return file.read()

        harness.wait_until(lambda: "State:\tZ (zombie)" in state(), state)
        listed = self.sampleprof("ps").stdout
        self.assertRegex(listed, rf" {process.pid}  program_idle +program_idle "
                         rf"leave\n +{profile}\n")
        self.assertIn("running", self.sampleprof("ls").stdout)
        self.assertIn("still running", harness.report(profile))
        self.sampleprof("ctl", "--timeout", "0s", process.pid, "mark", "later",
                        code=3)
        process.stdin.write(b"\5")
        self.assertEqual(process.stdout.read(1), b"\5")
        status = self.sampleprof("ctl", process.pid, "status").stdout
        self.assertIn("phase     later", status)
        self.assertIn("2 threads", self.sampleprof("rss", process.pid).stdout)
