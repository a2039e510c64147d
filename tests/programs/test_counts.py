# SPDX-License-Identifier: MIT
"""Exact totals to the byte: every C function, every operator, `mallocx`; glibc,
jemalloc, tcmalloc and mimalloc, preloaded or linked.

A target counts its own requests and compares them with the library's counts in
the same thread.  The profile must agree: the totals of a run with the work,
less those of a run without it, must be the truth.  The same holds for totals by
size class.  With every allocation recorded, a run with the work leaves alive
only what a run without it does.

A failed request is not counted if it is larger than the rest of the thread's
window, which is at most the check-in distance of 1 MiB; the targets' failing
requests are larger.
"""

import errno
import os
import re
import subprocess
import unittest

import harness

TARGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets")

ALLOCATORS = ("glibc", "jemalloc", "tcmalloc", "mimalloc")
LINKED = {"jemalloc": "jemalloc", "tcmalloc": "tcmalloc_minimal",
          "mimalloc": "mimalloc"}

# What the targets must leave out: Debian's jemalloc has no pvalloc, so the C
# library's memory would reach jemalloc's free; mimalloc, being C, ends the
# program instead of throwing.
WITHOUT = {("program_entries", "jemalloc"): ["nopvalloc"],
           ("program_operators", "mimalloc"): ["nothrow"]}

PWRITE = 18  # pwrite64 of x86-64


def classes(profile):
    """(bytes, objects) of all size classes."""
    return tuple(sum(c[key] for c in profile.json["size_classes"])
                 for key in ("alloc_bytes", "alloc_objects"))


def live(profile):
    """(bytes, objects) alive at the end, at period 1."""
    estimate = profile.json["estimate"]
    return (estimate["live_bytes"]["value"],
            estimate["live_objects"]["value"])


class Counts(harness.Case):

    def check(self, program, *arguments, threads, rounds, preload=()):
        """The truth of `program` by three ways of measuring."""
        runs = {}
        for n in (0, rounds):
            result = self.execute(program, threads, n, *arguments,
                                  preload=preload)
            runs[n] = result.values(), result.profile()
        work, idle = runs[rounds], runs[0]
        truth = work[0]["truth"]
        self.assertGreater(truth[0], 1 << 20)
        self.assertEqual(idle[0]["truth"], (0, 0))
        self.assertEqual(work[0]["measured"], truth, "by thread totals")
        for key, way in (("process", "by process totals"), (None, "in file")):
            of = [run[0][key] if key else run[1].exact for run in (work, idle)]
            self.assertEqual((of[0][0] - of[1][0], of[0][1] - of[1][1]), truth,
                             way)
        of = [classes(run[1]) for run in (work, idle)]
        self.assertEqual((of[0][0] - of[1][0], of[0][1] - of[1][1]), truth,
                         "by size class")
        for run in runs.values():
            self.assertEqual(run[1].end, "clean")
            self.assertEqual(run[1].lost(), {})
        self.check_frees(program, *arguments, threads=threads, preload=preload)
        return work

    def check_frees(self, program, *arguments, threads=2, preload=()):
        """Each object that the work allocates is seen being freed."""
        work, idle = (
            self.execute(program, threads, n, *arguments, preload=preload,
                         period=1, max_file="256M").profile()
            for n in (2, 0))
        self.assertGreater(work.samples, idle.samples + 100)
        self.assertEqual(work.samples, work.exact[1])
        self.assertEqual(classes(work), work.exact)
        self.assertEqual(live(work), live(idle))
        for profile in (work, idle):
            self.assertTrue(profile.json["has_frees"])
            self.assertEqual(profile.json["unmatched_frees"], 0)
            self.assertEqual(profile.lost(), {})

    def check_preloaded(self, program, allocator):
        """Under an allocator that is preloaded after the library."""
        preload = harness.allocator(allocator)
        for threads, rounds in ((8, 6), (1, 20))[:harness.rounds(1, 2)]:
            with self.subTest(allocator=allocator, threads=threads):
                _, profile = self.check(
                    harness.target(program),
                    *WITHOUT.get((program, allocator), ()), threads=threads,
                    rounds=rounds, preload=preload)
                below = preload[0] if preload else "libc.so.6"
                self.assertIn(below, profile.settings["allocator"])

    def check_linked(self, program, few):
        """Under the allocators that the program itself is linked with, or
        under one."""
        for name in harness.rounds((few,), LINKED):
            library = LINKED[name]
            with self.subTest(allocator=name):
                harness.allocator(name)
                _, profile = self.check(
                    harness.target(f"{program}_{library}"),
                    *WITHOUT.get((program, name), ()), threads=8, rounds=4)
                self.assertIn(library, profile.settings["allocator"])

    @harness.nightly_too
    @unittest.skipUnless(harness.MACHINE == "x86_64", "other machines")
    def test_in_the_program(self):
        """jemalloc and tcmalloc linked statically: their functions are seen at
        their entries.  (tc_malloc is another name of malloc.)"""
        for program, library, pie in (
                ("operators", "jemalloc", "local"),
                ("operators", "tcmalloc_minimal", "no-pie"),
                ("entries", "jemalloc", "pie"),
                ("operators", "jemalloc", "no-pie"),
                ("entries", "tcmalloc_minimal", "pie"),
                ("operators", "tcmalloc_minimal", "local"),
                ("entries", "jemalloc", "no-pie"),
                ("operators", "jemalloc", "pie"),
                ("entries", "tcmalloc_minimal", "no-pie"),
                ("operators", "tcmalloc_minimal", "pie"))[
                    :harness.rounds(3, 10)]:
            with self.subTest(program=program, library=library, pie=pie):
                target = harness.target(f"program_{program}_{library}_{pie}")
                # Debian's jemalloc has none, and tcmalloc's counts as the
                # memalign of whole pages that it calls.
                more = ["nopvalloc"] if program == "entries" else []
                _, profile = self.check(target, *more, threads=8, rounds=4)
                self.assertEqual(profile.settings["allocator.linked"],
                                 "malloc (jemalloc)" if library == "jemalloc"
                                 else "malloc")
                self.assertNotIn("unseen", profile.settings)
                said = " ".join(harness.report(profile.path).split())
                self.assertIn("linked into the program, and seen at its "
                              "entries: malloc", said)
                self.assertIn("; what was allocated before sampleprof's start "
                              "is in no total: by malloc", said)
                self.assertNotIn("allocations, exact", said)

    @unittest.skipUnless(harness.MACHINE == "x86_64", "other machines")
    def test_in_the_program_as_without_us(self):
        """What fails, what throws, and errno; also when every call is sampled."""
        for program, more, keys in (
                ("entries", ["nopvalloc"], ("failures", "errno_changes")),
                ("operators", [], ("thrown",))):
            target = harness.target(f"program_{program}_jemalloc_pie")
            alone = self.execute(target, 2, 2, *more, shim=False)
            for period in ("1", "512K"):
                under = self.execute(target, 2, 2, *more, period=period,
                                     max_file="256M")
                for key in keys:
                    self.assertEqual(under.values()[key], alone.values()[key])
                if program == "entries":
                    self.assertEqual(under.values()["counted_failures"], (0, 0))

    @unittest.skipUnless(harness.MACHINE == "x86_64", "other machines")
    def test_prefix_in_the_program(self):
        """Beside the C library's malloc; functions that call each other, keep
        registers that others may change, and have no aligned stack."""
        for name, threads, linked in (
                ("program_linked", 1, "je_malloc (jemalloc)"),
                ("program_linked", 8, "je_malloc (jemalloc)"),
                ("program_linked_lto", 2, "je_malloc (jemalloc)"),
                ("program_linked_usable", 1, "je_malloc (jemalloc)"),
                ("program_linked_mi", 2, "mi_malloc")):
            with self.subTest(name, threads=threads):
                _, profile = self.check(harness.target(name), threads=threads,
                                        rounds=6)
                self.assertEqual(profile.settings["allocator.linked"], linked)

    @unittest.skipUnless(harness.MACHINE == "x86_64", "other machines")
    def test_without_free_in_the_program(self):
        """The linker has left it out, as nobody calls it: other functions
        free."""
        run = self.execute(harness.target("program_linked_gone"), 2, 3)
        self.assertEqual(run.profile().settings["allocator.linked"],
                         "je_malloc (jemalloc)")
        self.assertEqual(run.values()["measured"], run.values()["truth"])

    @unittest.skipUnless(harness.MACHINE == "x86_64", "other machines")
    def test_in_a_library(self):
        """That the program needs, or that it loads and unloads: its functions
        are seen from before its constructors on."""
        library = harness.target("libprogram_linked_in.so")
        for times in (0, 3):
            with self.subTest(times=times):
                _, profile = self.check(
                    harness.target("program_loads" if times else
                                   "program_loads_linked"),
                    times, library, threads=2, rounds=6)
                name = "je_malloc in libprogram_linked_in.so"
                self.assertEqual(profile.settings["allocator.linked"],
                                 f"{name} (jemalloc)")
                said = " ".join(harness.report(profile.path).split())
                self.assertIn("linked into the program, and seen at its "
                              f"entries: {name}", said)
                # The constructor of the one that was there ran before ours.
                self.assertEqual(profile.settings.get("allocator.missed"),
                                 None if times else name)
                self.assertEqual("allocations, exact" in said, times > 0)

    @harness.nightly_too
    @unittest.skipUnless(harness.MACHINE == "x86_64", "other machines")
    def test_in_a_library_beside_others(self):
        """Which another thread loads and unloads meanwhile."""
        values = self.execute(
            harness.target("program_loads"), 2, 1, harness.rounds(8, 300),
            harness.target("libprogram_linked_in.so"), "others").values()
        self.assertGreater(values["truth"][0], 1 << 20)
        self.assertEqual(values["measured"], values["truth"])

    @unittest.skipUnless(harness.MACHINE == "x86_64", "other machines")
    def test_refused_in_the_program(self):
        """A family with one function that cannot lead elsewhere is left alone,
        byte for byte; the one beside it is seen."""
        refused = {"short": "is too short",
                   "loop": "jumps into its own beginning",
                   "odd": "has an instruction that is not understood"}
        runs = [self.execute(harness.target("program_refused"), n)
                for n in (0, 300)]
        profiles = [run.profile() for run in runs]
        for run in runs:
            values = run.values()
            self.assertEqual(values["fine"], (0, 2))
            for name in refused:
                self.assertEqual(values[name], (0, 0), name)
        self.assertEqual([a - b for a, b in zip(profiles[1].exact,
                                                profiles[0].exact)],
                         list(runs[1].values()["truth"]))
        profile = profiles[1]
        self.assertEqual(profile.settings["allocator.linked"], "fine_je_malloc")
        self.assertEqual(sorted(profile.settings["unseen"].split()),
                         sorted(f"{name}_je_malloc" for name in refused))
        said = " ".join(harness.report(profile.path).split())
        for name, why in refused.items():
            self.assertIn("linked into the program, and not seen: "
                          f"{name}_je_free {why}", said)

    @unittest.skipUnless(harness.MACHINE == "x86_64", "other machines")
    def test_more_allocators_in_the_program(self):
        """Than there is room for: no other function takes it, and the first
        one that is not looked at is told."""
        run = self.execute(harness.target("program_refused_more"), 1)
        settings = run.profile().settings
        linked = settings.get("allocator.linked", "").split(", ")
        unseen = settings["unseen"].split()
        values = run.values()
        beyond = re.search(r"not seen: (\S+) is one of more than 8 allocators",
                           settings["diagnosis"])[1]
        self.assertIn(beyond, unseen)
        looked_at = [*linked, *unseen]
        looked_at.remove(beyond)
        names = ("fine", "short", "loop", "odd", "fifth", "sixth", "seventh",
                 "eighth", "ninth")
        for name in names:
            self.assertEqual(values[name],
                             (0, 2 * (f"{name}_je_malloc" in linked)), name)
        self.assertEqual(values["long"], (0, 0))
        self.assertEqual(len(set(looked_at) - {""}), 8, settings)
        self.assertLessEqual(set(looked_at),
                             {f"{name}_je_malloc" for name in names})

    @unittest.skipUnless(harness.MACHINE == "x86_64", "other machines")
    def test_kernel_refuses_in_the_program(self):
        """pwrite fails, which is what writes code: the program goes on with all
        of its own, and is told."""
        library = harness.target("libprogram_hazard_refuse.so")
        for err in (errno.EACCES, errno.EIO, errno.ENOSYS):
            env = {"REFUSE": f"{PWRITE}:{err}"}
            result = self.execute(harness.target("program_refused"), 300,
                                  preload=(library,), env=env)
            self.assertEqual(result.values()["fine"], (0, 0))
            settings = result.profile().settings
            self.assertNotIn("allocator.linked", settings)
            self.assertIn("fine_je_malloc", settings["unseen"].split())
            self.assertIn("fine_je_malloc cannot be written: the kernel "
                          "refuses", settings["diagnosis"])
            settings = self.execute(
                harness.target("program_loads"), 1, 1, 2,
                harness.target("libprogram_linked_in.so"), preload=(library,),
                env=env).profile().settings
            self.assertNotIn("allocator.linked", settings)
            for program, more in (("entries", ["nopvalloc"]), ("operators", [])):
                target = harness.target(f"program_{program}_jemalloc_pie")
                result = self.execute(target, 2, 2, *more, preload=(library,),
                                      env=env)
                self.assertGreater(result.values()["truth"][0], 1 << 16)
                settings = result.profile().settings
                self.assertNotIn("allocator.linked", settings)
                self.assertIn("malloc", settings["unseen"].split())
                self.assertIn("malloc cannot be written: the kernel refuses",
                              settings["diagnosis"])

    @harness.nightly_too
    def test_c_entry_points(self):
        for name in ALLOCATORS:
            self.check_preloaded("program_entries", name)

    @harness.nightly_too
    def test_c_entry_points_linked(self):
        self.check_linked("program_entries", "jemalloc")

    def test_program_without_pie(self):
        """Its weak references to the library's functions are not lost."""
        self.check(harness.target("program_entries_no_pie"), threads=2, rounds=5)

    @harness.nightly_too
    def test_musl(self):
        """Whose calloc, memalign, posix_memalign and valloc go by malloc and
        aligned_alloc, once more."""
        program = os.path.join(self.dir, "entries")
        subprocess.run(
            [*harness.musl_gcc(), "-O1", "-g", "-fno-builtin",
             "-fno-optimize-sibling-calls",
             "-I", os.path.join(TARGETS, "../../../include"),
             os.path.join(TARGETS, "entries.c"), "-o", program],
            check=True, timeout=harness.TIMEOUT_S)
        # musl has no pvalloc, and many threads wait for its lock.
        for threads, rounds in harness.rounds(((2, 4),), ((1, 20), (8, 6))):
            with self.subTest(threads=threads):
                _, profile = self.check(program, "nopvalloc", threads=threads,
                                        rounds=rounds)
                self.assertIn("musl", profile.settings["allocator"])
        for period in (1, "64K"):
            with self.subTest(period=period):
                alone = self.execute(program, 1, 2, "nopvalloc", shim=False)
                under = self.execute(program, 1, 2, "nopvalloc",
                                     period=period, max_file="256M")
                for key in ("failures", "errno_changes"):
                    self.assertEqual(under.values()[key], alone.values()[key])
                self.assertEqual(under.values()["counted_failures"], (0, 0))

    @harness.nightly_too
    def test_cxx_operators(self):
        for name in ALLOCATORS[:harness.rounds(2, 4)]:
            self.check_preloaded("program_operators", name)

    @harness.nightly_too
    def test_cxx_operators_linked(self):
        self.check_linked("program_operators", "tcmalloc")

    def test_operators_of_another_allocator(self):
        """malloc is that of a library without operators; those of the allocator
        that the program is linked with do not call it.  (jemalloc's with
        an alignment call aligned_alloc, and free what that returned.)"""
        bump = harness.target("libprogram_bump.so")
        for name in ("tcmalloc", "mimalloc"):
            library = LINKED[name]
            with self.subTest(allocator=name):
                harness.allocator(name)
                _, profile = self.check(
                    harness.target(f"program_operators_{library}"),
                    *WITHOUT.get(("program_operators", name), ()), threads=2,
                    rounds=2, preload=(bump,))
                self.assertIn("bump", profile.settings["allocator"])
                self.assertNotIn("unseen", profile.settings)

    def test_exceptions_pass_through(self):
        for name in ALLOCATORS[:3]:
            with self.subTest(allocator=name):
                result = self.execute(harness.target("program_operators"), 1, 1,
                                      preload=harness.allocator(name))
                result.profile()
                self.assertEqual(result.values()["thrown"][0], 4)

    def test_failures_and_errno_as_without_us(self):
        """Failing requests end as they end without the library and are not
        counted; errno survives calls that succeed.  Also when every call takes
        the sampled path."""
        for name in ALLOCATORS:
            for period in ("1", "512K"):
                with self.subTest(allocator=name, period=period):
                    program = harness.target("program_entries")
                    preload = harness.allocator(name)
                    arguments = [1, 2, *WITHOUT.get(("program_entries", name), ())]
                    plain = self.execute(program, *arguments, preload=preload,
                                         shim=False).values()
                    result = self.execute(program, *arguments,
                                          preload=preload, period=period)
                    result.profile()
                    seen = result.values()
                    self.assertEqual(plain["truth"], seen["truth"])
                    self.assertEqual(plain["failures"], seen["failures"])
                    self.assertEqual(seen["counted_failures"], (0, 0))
                    self.assertEqual(plain["errno_changes"],
                                     seen["errno_changes"])
                    # Present for whoever tests for them, and working.
                    self.assertEqual(seen["c23"], (1, 1))

    def check_jemalloc_interface(self, program):
        for name in ALLOCATORS:
            preload = harness.allocator(name)
            with self.subTest(allocator=name):
                plain = self.execute(program, preload=preload, shim=False)
                result = self.execute(program, preload=preload, period=1)
                profile = result.profile()
                seen = result.values()
                self.assertEqual(seen["present"], plain.values()["present"])
                if name == "jemalloc":
                    self.assertEqual(seen["present"][0], 0x7f)
                    self.assertGreater(seen["truth"][1], 20)
                    self.assertEqual(seen["measured"], seen["truth"])
                    # All but what C++ keeps for emergencies is freed.
                    self.assertLessEqual(live(profile)[1], 1)
                    self.assertEqual(profile.lost(), {})
                else:
                    self.assertEqual(seen["present"][0] & 1, 0)

    def test_jemalloc_interface_of_program(self):
        """It seems to exist exactly where it does, and is counted."""
        self.check_jemalloc_interface(harness.target("program_jemalloc_program"))

    def test_jemalloc_interface_of_library(self):
        """The same for a shared library, which is relocated before us."""
        self.check_jemalloc_interface(harness.target("program_jemalloc_library"))

    def test_jemalloc_interface_says_nothing(self):
        """Nor does the loader have anything to say about it."""
        result = self.execute(harness.target("program_jemalloc_program"))
        result.profile()
        self.assertEqual(result.stderr, b"")

    def test_jemalloc_interface_in_a_library(self):
        """The loader reminds a library that refers to mallocx, once a symbol,
        and does nothing else: the one message that the profiler causes."""
        result = self.execute(harness.target("program_jemalloc_library"))
        result.profile()
        for line in result.stderr.splitlines():
            self.assertIn(b"for IFUNC symbol", line)


class Settings(harness.Case):
    """What settings leave in the file."""

    def record(self, **settings):
        result = self.execute(harness.target("program_entries"), 1, 3, **settings)
        return result.profile().require_samples().json

    def test_default(self):
        seen = self.record()
        self.assertEqual(seen["law"], "exponential")
        self.assertEqual(seen["period_bytes"], 512 << 10)
        self.assertTrue(seen["has_frees"])
        self.assertIsNotNone(seen["estimate"]["live_bytes"])
        self.assertGreater(len(seen["rss"]), 0)
        for point in seen["rss"]:
            self.assertGreater(point["rss_bytes"], 1 << 20)

    def test_frees_off(self):
        seen = self.record(frees="off", period=1)
        self.assertFalse(seen["has_frees"])
        self.assertIsNone(seen["estimate"]["live_bytes"])
        self.assertEqual(seen["samples"], seen["exact"]["alloc_objects"])

    def test_law(self):
        seen = self.record(law="dotnet")
        self.assertEqual((seen["law"], seen["period_bytes"]),
                         ("dotnet", 102400))
        seen = self.record(law="dotnet", period="64K")
        self.assertEqual((seen["law"], seen["period_bytes"]),
                         ("dotnet", 65536))

    def test_resident_memory(self):
        self.assertEqual(self.record(rss="off")["rss"], [])
