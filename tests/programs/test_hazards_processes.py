# SPDX-License-Identifier: MIT
"""Hazards: libraries that come and go, and processes that create processes."""

import os
import unittest

import harness
import hazards

# Of each storm; the long form is some minutes (docs/contributing.md).
STORM_S = float(os.environ.get("SAMPLEPROF_TEST_STORM",
                               harness.rounds(0.3, 0.8)))
ALARMS = int(200 * max(STORM_S, 0.8))
harness.TIMEOUT_S += int(STORM_S)

# What long ones lose to the limit of the file.
FULL = ("samples_file_full", "samples_without_stack", "frees_not_recorded",
        "metadata_not_recorded") if STORM_S > 1 else ()


class Loader(hazards.Case):

    def plugin(self, name):
        return harness.target(f"libprogram_{name}.so")

    def test_library_bound_deeply(self):
        """RTLD_DEEPBIND: its malloc goes past us, its objects come to our
        free, and its free past us.  Its objects are not counted; ours that
        it frees are noticed when their address comes back."""
        profile = self.survives("hazard_loader", "deepbind",
                                self.plugin("hazard_plugin"),
                                lost=("frees_missed",))
        self.assertEqual(profile.allocated_under("plugin_make"), (0, 0))
        self.assertGreater(profile.allocated_under("exchange")[1], 900)
        self.bites("header", "hazard_loader", "deepbind",
                   self.plugin("hazard_plugin"))

    def test_library_with_an_allocator_of_its_own(self):
        profile = self.survives("hazard_loader", "own_allocator",
                                self.plugin("hazard_plugin_own"))
        self.assertEqual(profile.allocated_under("plugin_use"), (0, 0))

    def test_second_c_library(self):
        """In a namespace of its own, by dlmopen."""
        profile = self.survives("hazard_loader", "namespace",
                                self.plugin("plugin_a"))
        self.assertEqual(profile.allocated_under("plugin_a_allocate"), (0, 0))

    @harness.nightly_too
    def test_storm_in_the_loader(self):
        """Load, unload, walk, look up and allocate in eight threads; a
        watchdog in the program ends it if one of them hangs."""
        self.survives("hazard_loader", "storm", self.plugin("plugin_a"),
                      self.plugin("plugin_b"), int(1000 * STORM_S),
                      periods=("16K", "512K"), max_file="64M",
                      lost=("samples_without_stack", "modules_not_recorded",
                            *FULL))

    def test_allocation_while_another_holds_the_loaders_lock(self):
        """Our own passes in programs.threads; here is that the lock hurts."""
        self.bites("loader", "threads", "loader", 1, 500)

    def test_frames_registered_by_a_compiler(self):
        self.survives("hazard_loader", "registered_frames",
                      periods=("16K", "512K"), max_file="1G")


class Processes(hazards.Case):

    def survives_with_children(self, scenario, children, *arguments,
                               period="1", objects=20,
                               program="hazard_processes"):
        """Each child leaves one whole file with its own samples; the
        parent's profile."""
        self.survives(program, scenario, *arguments, periods=("512K",),
                      samples=0)
        result = self.execute(harness.target("program_" + program), scenario,
                              *arguments, period=period)
        parent = self.profile_of(result).require_samples()
        paths = [p for p in result.paths if p != parent.path and
                 program in os.path.basename(p)]
        self.assertEqual(len(paths), children, result.paths)
        for path in paths:
            child = harness.Profile(path)
            self.assertGreaterEqual(child.allocated_under("in_child")[1],
                                    objects)
            self.assertEqual({k: v for k, v in child.lost().items()
                              if k != "bytes_at_fork"}, {})
            self.assertEqual(child.allocated_under("make_objects"), (0, 0))
        return parent

    @harness.nightly_too
    def test_forks_from_sixteen_busy_threads(self):
        """The children end by exec or by exit, some have children; all others
        free what the parent allocated.  Of 20 objects those 5 that are larger
        than 4.6 periods are certain to be sampled."""
        children = harness.rounds(3, 9)
        self.survives_with_children("busy", children, children, period="4K",
                                    objects=5)
        if harness.MACHINE == "x86_64" and harness.rounds(False, True):
            self.survives_with_children("busy", children, children,
                                        period="4K", objects=5,
                                        program="hazard_processes_linked")
        if harness.rounds(False, True):
            self.bites("lock", "hazard_processes", "busy", children)

    @harness.nightly_too
    def test_fork_handlers_that_allocate(self):
        """Before the library's own, which then must not begin the child's
        life, and file, again; and a thread and a child before the library was
        constructed."""
        forks, children = harness.rounds((5, 4), (20, 30))
        self.survives("hazard_forks", "handlers", forks, max_file="1G",
                      lost=("allocations_during_start",))
        if harness.rounds(False, True):
            self.bites("atfork", "hazard_forks", "handlers", forks)
        result = self.execute(harness.target("program_hazard_forks"), "server",
                              children, period=1)
        # These children, one before main, and the parent.
        self.assertEqual(len(result.profiles()), children + 2)

    def test_alarms_that_allocate_and_fork(self):
        """1,000 a second, at any instruction of the program, the library and
        an allocator that bears it; at period 1."""
        bump = (harness.target("libprogram_bump.so"),)
        self.survives_alarms("hazard_processes", bump)
        if harness.MACHINE == "x86_64" and harness.rounds(False, True):
            self.survives_alarms("hazard_processes_linked", ())
        self.bites("lock", "hazard_processes", "alarms", ALARMS,
                   preload=bump)

    def survives_alarms(self, program, preload):
        profile = self.survives(
            program, "alarms", ALARMS, preload=preload, periods=("1",),
            max_file="32M", lost=("allocations_in_signal_handlers", *FULL))
        self.assertGreater(profile.samples, 1000)
        children = [p for p in self.run_of(profile) if p != profile.path]
        # Not those that were forked in the middle of the library's work: what
        # their handler allocates passes.
        self.assertGreaterEqual(len(children), ALARMS // 100)
        for path in children[:100]:
            harness.Profile(path, damaged=True)

    def run_of(self, profile):
        """The files of a run, by that of its first process."""
        directory = os.path.dirname(profile.path)
        return [os.path.join(directory, n) for n in os.listdir(directory)]

    def test_spawn_from_four_threads(self):
        self.survives("hazard_processes", "spawn")

    def test_children_made_by_clone(self):
        """A copy has a file of its own; one that shares the memory counts
        as the parent."""
        profile = self.survives_with_children("clone", 10)
        self.assertEqual(profile.allocated_under("cloned")[1], 10 * 12)

    @unittest.skipUnless(os.geteuid() == 0, "needs root for namespaces")
    def test_processes_of_the_same_number(self):
        """A process id tells neither that this is a child nor whose file it
        is."""
        self.survives_with_children("same_number", 2)

    @harness.nightly_too
    def test_fork_server(self):
        children = harness.rounds(8, 30)
        self.survives_with_children("server", children, children)

    def test_daemon(self):
        self.survives_with_children("daemon", 1)
