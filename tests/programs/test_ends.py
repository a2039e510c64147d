# SPDX-License-Identifier: MIT
"""Exact totals to the byte if threads stand still at the end, under four
allocators, and if the process ends by `_exit`, exec or in a child of vfork;
within the stated slack after a kill.  The head and `--sizes` agree."""

import os
import re
import signal
import subprocess

import harness

THREADS = 5
OBJECTS = 3000
CHECK_IN = 1 << 20
CLEAN = ("return", "exit_in_thread", "detached")
# No destructor runs, but the library is called.
LEFT = ("_exit", "_Exit", "quick_exit", "exec", "execl", "vfork", "signal")


def profile_of(result, program):
    """The profile of the program, not of what it executed."""
    profile, = [p for p in map(harness.Profile, result.paths)
                if os.path.samefile(p.json["program"], program)]
    return profile


class Ends(harness.Case):

    def scenario(self, how, objects, threads=THREADS, clean=True, **options):
        """What the program counted, and its profile."""
        program = harness.target("program_ends")
        result = self.execute(program, how, threads, objects, clean=clean,
                              **options)
        return (result, result.values()["counted"],
                profile_of(result, program))

    def more(self, how, **options):
        """Counted, and exact, beyond what the same program does when its
        threads allocate nothing; and the profile."""
        _, _, idle = self.scenario(how, 0, **options)
        _, counted, profile = self.scenario(how, OBJECTS, **options)
        self.assertEqual(counted[1], THREADS * OBJECTS)
        self.check_report(profile)
        return counted, (profile.exact[0] - idle.exact[0],
                         profile.exact[1] - idle.exact[1]), profile

    def check_report(self, profile):
        """The head and --sizes agree, and say what may be missing."""
        done = subprocess.run(
            [os.environ["SAMPLEPROF_REPORT"], "--sizes", profile.path],
            capture_output=True, check=True, timeout=harness.TIMEOUT_S)
        text = done.stdout.decode()
        exact = profile.json["exact"]
        head = re.search(r"\n  allocated (at least )?(\S+ \S+) in (\S+) "
                         r"allocations(?:, exact)?( \(up to (\S+ \S+) more\))?\n", text)
        self.assertTrue(head, text)
        self.assertEqual(head[1] is None, exact["is_complete"])
        self.assertEqual(head[4] is None, not exact["missing_bytes_max"])
        self.assertEqual(head[3].replace(",", ""),
                         str(exact["alloc_objects"]))
        classes = sum(c["alloc_bytes"] for c in profile.json["size_classes"])
        slack = profile.json["size_percentiles"]["unclassified_bytes_max"]
        self.assertLessEqual(classes, exact["alloc_bytes"])
        self.assertEqual(slack, exact["alloc_bytes"] - classes +
                         exact["missing_bytes_max"])

    @harness.nightly_too
    def test_threads_stand_still(self):
        for i, allocator in enumerate(harness.ALLOCATORS):
            for how in harness.rounds((CLEAN[i % 3],), CLEAN):
                with self.subTest(allocator=allocator, how=how):
                    counted, exact, profile = self.more(
                        how, preload=harness.allocator(allocator))
                    profile.require_samples()
                    self.assertEqual(exact, counted)
                    self.assertEqual(profile.end, "clean")
                    said = profile.json["exact"]
                    # They might have gone on, and nobody could say.
                    self.assertFalse(said["is_complete"])
                    self.assertLessEqual(said["missing_bytes_max"],
                                         (THREADS + 1) * CHECK_IN)
                    self.assertEqual(
                        profile.json["losses"]["bytes_after_exit"],
                        said["missing_bytes_max"])
                    self.assertEqual(profile.lost(), {})

    def test_nobody_else(self):
        _, _, profile = self.scenario("return", OBJECTS, threads=0)
        self.assertEqual(profile.json["exact"]["is_complete"], True)
        self.assertEqual(profile.json["exact"]["missing_bytes_max"], 0)

    def test_threads_go_on(self):
        """What they had before the end is there; and of what they allocate
        later not more than there can be: nobody counts it."""
        for allocator in harness.ALLOCATORS:
            with self.subTest(allocator=allocator):
                _, counted, profile = self.scenario(
                    "going_on", OBJECTS, preload=harness.allocator(allocator))
                profile.require_samples()
                self.assertGreaterEqual(profile.exact[0], counted[0])
                self.assertFalse(profile.json["exact"]["is_complete"])
                self.assertGreater(
                    profile.json["exact"]["missing_bytes_max"], 0)

    @harness.nightly_too
    def test_left_without_exit(self):
        """Nothing is missing, though the report cannot know that."""
        periods = ("1", "4K", "512K")
        for i, how in enumerate(LEFT):
            for period in harness.rounds((periods[i % 3],), periods):
                with self.subTest(period=period, how=how):
                    counted, exact, profile = self.more(how, period=period)
                    profile.require_samples()
                    self.assertEqual(exact, counted)
                    self.assertEqual(
                        profile.end,
                        "exec" if how in ("exec", "execl") else "killed")
                    self.assertFalse(profile.json["exact"]["is_complete"])

    def test_killed(self):
        """What is there is true, and what is not is within the bound.  At
        period 1 the samples prove all of it."""
        for period in ("1", "4K", "512K"):
            with self.subTest(period=period):
                result, counted, profile = self.scenario(
                    "kill", OBJECTS, clean=False, period=period)
                self.assertEqual(result.returncode, -signal.SIGKILL)
                profile.require_samples()
                self.check_report(profile)
                exact = profile.json["exact"]
                # With what the C library allocates for threads.
                self.assertLessEqual(exact["alloc_bytes"],
                                     counted[0] + (1 << 18))
                self.assertGreaterEqual(exact["alloc_bytes"] +
                                        exact["missing_bytes_max"],
                                        counted[0])
                self.assertLessEqual(exact["missing_bytes_max"],
                                     (THREADS + 1) * CHECK_IN)
                if period == "1":
                    self.assertGreaterEqual(exact["alloc_bytes"], counted[0])

    def test_failed_exec(self):
        """What goes on was not the end."""
        program = "/usr/bin/python3"
        result = self.execute(
            program, "-c", "import os\n"
            "try: os.execv('/nonexistent', ['x'])\n"
            "except OSError: pass\n"
            "x = [bytes(5000) for i in range(1000)]\n"
            "os.kill(os.getpid(), 9)", clean=False, period="4K")
        self.assertEqual(result.returncode, -signal.SIGKILL)
        profile = profile_of(result, program)
        profile.require_samples(500)
        self.assertEqual(profile.end, "killed")

    def test_shell(self):
        """It leaves by exec, and has never checked in."""
        result = self.execute("/bin/sh", "-c", "exec /bin/true", period=1)
        profile = profile_of(result, "/bin/sh")
        profile.require_samples()
        self.assertEqual(profile.end, "exec")
        self.assertEqual(profile.exact[1], profile.samples)
        self.assertEqual(profile.exact, profile.estimate)
