# SPDX-License-Identifier: MIT
"""Hazards: other compilers, C libraries and architectures, a debugger, a faked
clock, file systems in user space, little memory.
"""

import errno
import os
import shutil
import signal
import subprocess
import time
import unittest

import harness
import hazards

TARGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets")
FAKETIME = harness.LIBDIR + "faketime/libfaketime.so.1"
LIBC_32 = "/lib32/libc.so.6"
CGROUPS = "/sys/fs/cgroup/memory"
NOBODY = 65534
ROOT = os.geteuid() == 0


class Compiled(hazards.Case):
    """Programs that another tool makes."""

    def build(self, tool, package, *arguments, env=None):
        program = os.path.join(self.dir, "program")
        subprocess.run([harness.require(tool, package), *arguments],
                       check=True, timeout=harness.TIMEOUT_S, cwd=self.dir,
                       env={**os.environ, **(env or {})})
        return program

    def same(self, program, period=1):
        """It prints what it prints alone; both results."""
        alone = self.execute(program, shim=False)
        result = self.execute(program, period=period)
        self.assertTrue(alone.stdout)
        self.assertEqual(result.stdout, alone.stdout)
        return alone, result

    @harness.nightly
    def test_go_that_calls_c(self):
        """On the system's stacks, called by goroutines on others."""
        program = self.build(
            "go", "golang-go", "build", "-o", "program",
            os.path.join(TARGETS, "hazard_cgo.go"),
            env={"GO111MODULE": "off", "CGO_ENABLED": "1",
                 "GOFLAGS": "", "GOCACHE": os.path.join(self.dir, "cache")})
        _, result = self.same(program)
        profile = result.profile()
        self.assertEqual(profile.allocated_under("in_c")[1], 3 * 5000)
        # Go ends a process without the C library.
        self.assertEqual((profile.end, profile.lost()), ("killed", {}))

    @unittest.skipUnless(harness.MACHINE == "x86_64",
                         "gcc has no -fsplit-stack elsewhere")
    def test_stack_in_pieces(self):
        """-fsplit-stack: each stack is whole across its pieces."""
        program = self.build(
            "gcc", "gcc", "-g", "-O1", "-fno-builtin", "-fsplit-stack",
            "-fuse-ld=gold", os.path.join(TARGETS, "hazard_split.c"), "-o",
            "program")
        _, result = self.same(program)
        profile = result.profile()
        self.assertEqual(profile.allocated_under("descend"),
                         (402000, 4020))
        self.assertTrue(profile.stacks_with("__morestack"))
        self.assertEqual((profile.end, profile.lost()), ("clean", {}))

    def test_other_c_library(self):
        """musl, which has no unwind tables of its own: the program's are read
        if the linker was asked to find them."""
        source = os.path.join(TARGETS, "plain.c")
        program = self.build(
            "musl-gcc", "musl-tools", *harness.musl_gcc()[1:], "-O1",
            "-fno-builtin", "-I", os.path.join(TARGETS, "../../../include"),
            source, "-o", "program", "-Wl,--eh-frame-hdr")
        result = self.execute(program, 300, 7, clean=False, period=1)
        self.assertEqual((result.returncode, result.stdout), (7, b"hello\n"),
                         result.stderr)
        profile = result.profile()
        self.assertEqual(profile.allocated_under("allocate"), (300000, 300))
        self.assertEqual(profile.end, "clean")
        for stack in profile.stacks_with("allocate"):
            self.assertIn("main", [f["function"] for f in stack["frames"]])
            self.assertFalse(stack["truncated"])

    @unittest.skipUnless(harness.MACHINE == "x86_64", "that of 32 bits is x86")
    def test_other_architecture(self):
        """The loader says that it cannot load the library, and goes on."""
        harness.require(LIBC_32, "libc6-i386")
        program = self.build(
            "gcc", "gcc", "-m32", "-O1", "-fno-builtin", "-ffreestanding",
            "-fno-stack-protector", "-fno-pie", "-no-pie", "-nostdlib",
            "-Wl,-dynamic-linker,/lib/ld-linux.so.2",
            os.path.join(TARGETS, "hazard_32.c"), LIBC_32, "-o", "program")
        try:
            _, result = self.same(program)
        except OSError as e:
            if e.errno != errno.ENOEXEC:
                raise
            self.skipTest(f"this kernel has no 32 bits: {e}")
        self.assertIn(b"wrong ELF class", result.stderr)
        self.assertEqual(result.paths, [])


class Company(hazards.Case):
    """What is done to a process from outside, and beside it."""

    def test_clock_that_lies(self):
        """libfaketime, above and below: a process that lives in the past is
        recorded with the time that it is."""
        faketime = harness.require(FAKETIME, "libfaketime")
        shim = os.environ["SAMPLEPROF_SO"]
        now = time.time_ns()
        for order in ((shim, faketime), (faketime, shim)):
            with self.subTest(order=order):
                result = self.execute(
                    "/bin/date", "+%Y", period=1,
                    env={"LD_PRELOAD": " ".join(order),
                         "FAKETIME": "2001-02-03 04:05:06"})
                self.assertEqual((result.stdout, result.stderr),
                                 (b"2001\n", b""))
                profile = result.profile().require_samples()
                self.assertEqual(profile.end, "clean")
                self.assertLess(abs(profile.json["start_unix_ns"] - now),
                                3e12)

    def test_debugger(self):
        """gdb attaches, calls malloc in the program, and goes."""
        gdb = harness.require("gdb", "gdb")
        process = self.start([harness.target("program_processes"), "wait", 5000],
                             settings={"period": "1"}, stdin=subprocess.PIPE)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready 1\n")
        done = subprocess.run(
            [gdb, "-nx", "-batch", "-p", str(process.pid), "-ex", "bt",
             "-ex", "print ((void *(*)(unsigned long))malloc)(4321) != 0"],
            capture_output=True, check=False, timeout=harness.TIMEOUT_S)
        if b"Operation not permitted" in done.stderr:
            self.skipTest("may not attach a debugger here")
        if b"Couldn't write extended state status" in done.stderr:
            self.skipTest("gdb is older than this processor: it cannot call "
                          "a function in any program here")
        self.assertIn(b"main", done.stdout)
        self.assertIn(b"$1 = 1", done.stdout, done.stderr)
        result = self.finish(process)
        self.assertEqual(result.returncode, 0, result.stderr)
        profile = result.profile()
        self.assertEqual((profile.end, profile.lost()), ("clean", {}))
        self.assertEqual(profile.allocated_under("work"), (500000, 5000))
        self.assertIn(4321, [s["flat_bytes"]["value"]
                             for s in profile.stacks])

    def test_namespace_of_users(self):
        """A process with another thread may not have one of its own."""
        alone = self.alone("hazard_state", "user_namespace")
        if b"entered" not in alone.stdout:
            self.skipTest(f"no user namespaces here: {alone.stdout}")
        self.survives("hazard_state", "user_namespace")
        self.bites("thread", "hazard_state", "user_namespace")

    def test_closed_standard_error(self):
        """Descriptor 2 is a file of the program, and stays so: nothing is
        said there, not even that there is no profile."""
        mine = os.path.join(self.dir, "mine")
        closed = {"preexec_fn": lambda: os.close(2)}
        result = self.execute(
            harness.target("program_hazard_state"), "closed_error", mine,
            period=1, popen=closed,
            env={"SAMPLEPROF_OUT": "/no/such/directory/a.sprof"})
        self.assertEqual(result.stdout, b"mine\n")
        self.survives("hazard_state", "closed_error", mine, popen=closed)
        broken = self.execute(
            harness.target("program_hazard_state"), "closed_error", mine,
            shim=False, clean=False, popen=closed, env={"NAIVE": "say"},
            preload=(harness.target("libprogram_hazard_naive.so"),))
        self.assertNotEqual(broken.stdout, b"mine\n")

    @unittest.skipUnless(ROOT, "needs root to become another")
    def test_program_that_may_not_be_read(self):
        """Nor may what /proc says of it: it is run, and recorded, without."""
        for path in (os.environ["SAMPLEPROF_SO"],
                     harness.target("program_plain")):
            shutil.copy(path, self.dir)
        program = os.path.join(self.dir, "program_plain")
        os.chmod(program, 0o111)
        os.chmod(self.dir, 0o755)
        os.chmod(os.path.join(self.dir, "libsampleprof.so"), 0o755)
        os.chown(self.out, NOBODY, NOBODY)
        done = subprocess.run(
            [program, "50", "7"], user=NOBODY, group=NOBODY, extra_groups=(),
            cwd="/", capture_output=True, check=False,
            timeout=harness.TIMEOUT_S,
            env={"LD_PRELOAD": self.dir + "/libsampleprof.so",
                 "SAMPLEPROF_OUT": self.out, "SAMPLEPROF_PERIOD": "1"})
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (7, b"hello\n", b""))
        name, = os.listdir(self.out)
        profile = harness.Profile(os.path.join(self.out, name))
        self.assertGreaterEqual(profile.samples, 50)


class Memory(hazards.Case):

    def group(self, limit):
        """A function for a child that puts it into a group with so much."""
        path = os.path.join(CGROUPS, f"sampleprof-test-{os.getpid()}")
        try:
            os.mkdir(path)
            self.addCleanup(harness.remove_group, path)
            with open(path + "/memory.limit_in_bytes", "w",
                      encoding="ascii") as f:
                f.write(str(limit))
        except OSError as error:
            self.skipTest(f"no memory cgroup to be had: {error}")

        def enter():
            with open(path + "/cgroup.procs", "w", encoding="ascii") as f:
                f.write("0")
        return enter

    def test_group_with_little(self):
        """16 MiB, and a file of more than that: its pages are given back.
        (On tmpfs they are not: they are memory of the group.)"""
        profile = self.execute(
            harness.target("program_plain"), 900000, period=1, max_file="128M",
            popen={"preexec_fn": self.group(16 << 20)}).profile()
        self.assertGreater(os.stat(profile.path).st_blocks * 512, 16 << 20)
        self.assertGreaterEqual(profile.samples, 900000)
        self.assertEqual((profile.end, profile.lost()), ("clean", {}))

    def test_reservations_that_are_refused(self):
        """As where memory may not be promised twice: no mapping of more than
        a MiB.  The library needs none at the start."""
        library = harness.target("libprogram_hazard_refuse.so")
        result = self.execute(
            harness.target("program_plain"), 300, preload=(library,), period=1,
            env={"REFUSE": "reservations"})
        self.assertEqual((result.stdout, result.stderr), (b"hello\n", b""))
        profile = result.profile()
        self.assertEqual(profile.allocated_under("allocate")[1], 300)
        naive = harness.target("libprogram_hazard_naive.so")
        refused = self.execute(
            harness.target("program_plain"), 300, preload=(naive, library),
            shim=False, clean=False,
            env={"REFUSE": "reservations", "NAIVE": "table"})
        self.assertEqual(refused.returncode, -signal.SIGABRT)


@unittest.skipUnless(hazards.can_mount(), "cannot mount here")
@unittest.skipUnless(os.path.exists("/dev/fuse"), "no /dev/fuse here")
class FileSystemThatIsAProgram(hazards.Case):

    def on_fuse(self, *options):
        """The target with its profile there: (what was said, profiles)."""
        bindfs = harness.require("bindfs", "bindfs")
        behind, mount = (os.path.join(self.dir, n) for n in ("behind", "here"))
        for path in (behind, mount):
            os.makedirs(path, exist_ok=True)
        result = self.execute(
            "unshare", "-m", "sh", "-c",
            f"{bindfs} {' '.join(options)} {behind} {mount} || exit 99; "
            f"LD_PRELOAD=$LIBRARY {harness.target('program_plain')} 3000 7; "
            f"e=$?; umount {mount} || umount -l {mount}; exit $e",
            shim=False, clean=False,
            env={"LIBRARY": os.environ["SAMPLEPROF_SO"],
                 "SAMPLEPROF_OUT": mount + "/a.sprof",
                 "SAMPLEPROF_PERIOD": "1"})
        if result.returncode == 99:
            self.skipTest(f"cannot mount here: {result.stderr.decode()}")
        self.assertEqual((result.returncode, result.stdout), (7, b"hello\n"),
                         result.stderr)
        return (result.stderr.decode(),
                [os.path.join(behind, n) for n in os.listdir(behind)])

    def test_mapped(self):
        said, (path,) = self.on_fuse()
        self.assertEqual(said, "")
        profile = harness.Profile(path)
        self.assertEqual(profile.allocated_under("allocate")[1], 3000)
        self.assertEqual((profile.end, profile.lost()), ("clean", {}))

    def test_that_cannot_be_mapped(self):
        """A whole profile, or a sentence and no file."""
        said, paths = self.on_fuse("-o", "direct_io")
        if paths:
            self.assertEqual(harness.Profile(*paths).end, "clean")
        else:
            self.assertIn("unprofiled", said)
