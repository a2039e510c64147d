# SPDX-License-Identifier: MIT
"""Hazards: resources that a process is refused, and rights that it gives up."""

import errno
import os
import resource
import struct
import unittest

import harness
import hazards

MIB = 1 << 20
ROOT = os.geteuid() == 0

# System calls that the library makes while it starts: of x86-64, of aarch64.
CALLS = {name: numbers[harness.MACHINE == "aarch64"] for name, numbers in {
    "read": (0, 63), "close": (3, 57), "fstat": (5, 80), "mmap": (9, 222),
    "mprotect": (10, 226), "munmap": (11, 215), "ioctl": (16, 29),
    "madvise": (28, 233), "getpid": (39, 172), "uname": (63, 160),
    "ftruncate": (77, 46), "getcwd": (79, 17), "getppid": (110, 173),
    "fstatfs": (138, 44), "openat": (257, 56), "newfstatat": (262, 79),
    "readlinkat": (267, 78), "prlimit64": (302, 261),
    "getrandom": (318, 278)}.items()}


# What the library takes of the address space, its file and all: with glibc.
TAKEN = 5 * MIB


def limited(which, to):
    return {"preexec_fn": lambda: resource.setrlimit(which, (to, to))}


class WhileItRuns(hazards.Case):

    def goes_on(self, scenario, *arguments, mistake=None, lost=(), **options):
        """All that is allocated afterwards is recorded too."""
        options.setdefault("max_file", "64M")
        profile = self.survives("hazard_resources", scenario, *arguments,
                                lost=lost, **options)
        self.assertEqual(profile.end, "clean")
        if set(lost) <= {"rss_not_recorded"}:
            for name in ("before", "after"):
                self.assertEqual(profile.allocated_under(name)[1], 8000)
        if mistake:
            self.bites(mistake, "hazard_resources", scenario, *arguments)
        return profile

    def test_limit_of_file_size_that_comes_later(self):
        """SIGXFSZ would be the program's end."""
        self.goes_on("file_size", mistake="write")

    def test_address_space_that_becomes_short(self):
        for room in (0, 64 << 10, 300 << 10, 2 * MIB):
            with self.subTest(room=room):
                profile = self.survives(
                    "hazard_resources", "address_space", room,
                    lost=("samples_file_full", "stacks_unwind_failed",
                          "samples_without_stack", "samples_not_followed",
                          "frees_not_recorded", "metadata_not_recorded",
                          "class_totals_not_published"))
                self.assertEqual(profile.allocated_under("before")[1], 8000)
                self.assertGreaterEqual(profile.exact[1], 16000)

    @unittest.skipUnless(ROOT, "needs root to lock memory")
    def test_locked_memory(self):
        """mlockall makes all that is mapped resident: less than 48 MiB."""
        self.goes_on("locked_memory", mistake="table")

    def test_no_descriptors_left(self):
        # A look at resident memory that comes then is lost.
        self.goes_on("descriptors", mistake="open",
                     lost=("rss_not_recorded",))

    @unittest.skipUnless(ROOT, "needs root to change the root")
    def test_other_root_directory(self):
        """Which has no /proc: where it lasts until the next look at resident
        memory, that look is lost."""
        empty = os.path.join(self.dir, "empty")
        os.mkdir(empty)
        self.goes_on("chroot", empty, mistake="open",
                     lost=("rss_not_recorded",))

    @unittest.skipUnless(ROOT, "needs root to become another")
    def test_dropped_privileges(self):
        """The child, which may not create a file here, goes without."""
        os.chmod(self.dir, 0o755)
        self.goes_on("dropped_privileges")

    def test_directory_that_vanishes(self):
        directory = os.path.join(self.dir, "here")
        os.mkdir(directory)
        for period in hazards.PERIODS:
            result = self.execute(
                harness.target("program_hazard_resources"), "vanished_directory",
                directory, period=period, max_file="64M",
                env={"SAMPLEPROF_OUT": directory})
            self.assertEqual((result.stdout, result.stderr), (b"", b""))
        names = os.listdir(directory)
        self.assertEqual(len(names), 2)
        for name in names:
            profile = harness.Profile(os.path.join(directory, name))
            self.assertEqual((profile.end, profile.lost()), ("clean", {}))
            self.assertGreaterEqual(profile.exact[1], 16000)

    def test_sandbox_that_kills_for_other_system_calls(self):
        self.goes_on("sandbox", mistake="syscall",
                     lost=("rss_not_recorded",))

    def test_child_that_enters_a_sandbox_at_once(self):
        """A descendant has no file before its first sample, and could not
        create one any more: it does so at the prctl that comes first."""
        self.survives("hazard_resources", "sandboxed_child",
                      lost=("rss_not_recorded",))
        result = self.execute(harness.target("program_hazard_resources"),
                              "sandboxed_child", period=1)
        profiles = result.profiles()
        del profiles[result.pid]
        child, = profiles.values()
        self.assertEqual(child.allocated_under("in_child")[1], 80)
        self.assertEqual((child.end, set(child.lost())),
                         ("clean", {"rss_not_recorded"}))

    def test_sandbox_that_refuses_memory(self):
        """Recording ends, counting goes on."""
        profile = self.goes_on(
            "refused_memory", lost=("samples_file_full", "frees_not_recorded",
                                    "samples_without_stack",
                                    "metadata_not_recorded",
                                    "stacks_unwind_failed",
                                    "samples_not_followed",
                                    "class_totals_not_published",
                                    "rss_not_recorded"))
        self.assertGreaterEqual(profile.exact[1], 24000)
        self.assertGreater(profile.json["losses"]["samples_file_full"], 0)

    def test_allocator_that_fails(self):
        """Each third request: what failed is not counted, errno is right, and
        the program sees its NULL."""
        failing = (harness.target("libprogram_hazard_failing.so"),)
        profile = self.survives("hazard_resources", "failing_allocator",
                                preload=failing, periods=("1",))
        truth = self.alone("hazard_resources", "failing_allocator",
                           preload=failing).values()["given"]
        self.assertEqual(profile.allocated_under("in_failing"), truth)
        self.bites("trusting", "hazard_resources", "failing_allocator",
                   preload=failing)


def least_space(case, *command):
    """The smallest limit in which this runs without the library."""
    low, least = 0, 64 * MIB
    while least - low > 64 << 10:
        middle = (low + least) // 2
        if case.execute(*command, shim=False, clean=False,
                        popen=limited(resource.RLIMIT_AS,
                                      middle)).returncode == 0:
            least = middle
        else:
            low = middle
    return least


class FromTheStart(hazards.Case):
    """The host runs, whatever becomes of the profile."""

    def setUp(self):
        super().setUp()
        self.plain = harness.target("program_plain")

    def check(self, **options):
        """The program does what it does; returns what was said, and how many
        profiles there are."""
        result = self.execute(self.plain, 300, 7, clean=False, period=1,
                              **options)
        self.assertEqual((result.returncode, result.stdout), (7, b"hello\n"),
                         result.stderr)
        for path in result.paths:
            harness.Profile(path)
        return result.stderr.decode(), len(result.paths)

    @harness.nightly_too
    def test_little_address_space(self):
        """From the first limit at which the program itself starts.  Where not
        even the library can be mapped, the loader says so; where it took the
        room that the C library needs, the loader ends the program: only a
        smaller library could help."""
        profiles = []
        least = next(limit for limit in range(2 * MIB, 64 * MIB, MIB)
                     if self.execute(
                         self.plain, 300, shim=False, clean=False,
                         popen=limited(resource.RLIMIT_AS,
                                       limit)).returncode == 0)
        for limit in range(least + 4 * MIB, least + 24 * MIB,
                           harness.rounds(3, 1) * MIB):
            with self.subTest(limit=limit):
                said, n = self.check(popen=limited(resource.RLIMIT_AS, limit))
                profiles.append(n)
                if not n:
                    self.assertIn("unprofiled", said)
        self.assertEqual(profiles[-1], 1)
        self.bites("reserve", "plain", 300,
                   popen=limited(resource.RLIMIT_AS, 1024 * MIB))

    def test_address_space_that_is_taken(self):
        """So much, whatever is recorded, and the file grows in small steps: at
        most a sixteenth of what it has.  Of what is left it has a quarter."""
        program = harness.target("program_plain")
        least = least_space(self, program, 3000)
        for period in ("512K", "4K", "1"):
            with self.subTest(period=period):
                profile = self.execute(
                    program, 3000, period=period,
                    popen=limited(resource.RLIMIT_AS, least + TAKEN)).profile()
                self.assertEqual(profile.lost(), {})
                self.assertGreaterEqual(profile.exact[1], 3000)
                if period == "1":
                    profile.require_samples(profile.exact[1])
        profile = self.execute(
            program, 3000, period=1,
            popen=limited(resource.RLIMIT_AS, 1024 * MIB)).profile()
        with open(profile.path, "rb") as f:
            f.seek(72)  # max_file_bytes of the header
            most, = struct.unpack("<Q", f.read(8))
        self.assertEqual(profile.lost(), {})
        self.assertGreater(most, 200 * MIB)
        self.assertLess(most, 256 * MIB)

    @harness.nightly_too
    def test_address_space_that_is_left(self):
        """What the program needs later: the file and the tables have a quarter
        each, whatever is recorded."""
        def left(**how):
            result = self.execute(
                harness.target("program_hazard_resources"),
                "address_space_left", harness.rounds(100000, 200000),
                popen=limited(resource.RLIMIT_AS, 64 * MIB), **how)
            return result, result.values()["pieces"] * (256 << 10)

        _, bare = left(shim=False)
        result, with_us = left(period=1)
        lost = result.profile().lost()
        self.assertGreater(with_us, bare - TAKEN - 64 * MIB // 2)
        self.assertIn("samples_not_followed", lost)

    def test_few_processes_stack_and_data(self):
        for which, to in ((resource.RLIMIT_STACK, 256 << 10),
                          (resource.RLIMIT_DATA, 4 * MIB),
                          (resource.RLIMIT_NOFILE, 4),
                          (resource.RLIMIT_MEMLOCK, 0)):
            with self.subTest(which=which):
                self.check(popen=limited(which, to))

    def refused(self, what):
        library = harness.target("libprogram_hazard_refuse.so")
        return self.check(preload=(library,), env={
            "REFUSE": what,
            "SAMPLEPROF_OUT": os.path.join(self.out_next(), "a.sprof")})

    def out_next(self):
        """The directory that the next execute() makes."""
        return os.path.join(self.dir, f"profiles-{self.runs + 1}")

    def test_no_descriptor_to_be_had(self):
        said, n = self.refused("descriptors")
        self.assertEqual(n, 0)
        self.assertRegex(said, "too many open files")

    @harness.nightly_too
    def test_each_system_call_refused(self):
        """Of those that the library makes while it starts: there is a
        profile, or a sentence.  By one error, or by each."""
        errors = (errno.EPERM, errno.ENOSYS, errno.ENOMEM)
        for i, (name, number) in enumerate(CALLS.items()):
            for err in harness.rounds((errors[i % 3],), errors):
                with self.subTest(call=name, err=errno.errorcode[err]):
                    said, n = self.refused(f"{number}:{err}")
                    self.assertTrue(n == 1 or "unprofiled" in said, said)

    @unittest.skipUnless(hazards.can_mount(), "cannot mount here")
    def test_read_only_directory(self):
        script = (f"mount --bind {self.dir} {self.dir} && "
                  f"mount -o remount,ro,bind {self.dir} && "
                  f"LD_PRELOAD=$LIBRARY {self.plain} 300 7")
        result = self.execute(
            "unshare", "-m", "sh", "-c", script, shim=False, clean=False,
            env={"LIBRARY": os.environ["SAMPLEPROF_SO"],
                 "SAMPLEPROF_OUT": self.dir + "/a.sprof"})
        self.assertEqual((result.returncode, result.stdout), (7, b"hello\n"))
        self.assertRegex(result.stderr.decode(),
                         r"\Asampleprof: cannot create .*unprofiled: "
                         r"the file system is read-only \(EROFS\): .*\n\Z")
