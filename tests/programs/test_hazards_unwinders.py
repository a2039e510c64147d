# SPDX-License-Identifier: MIT
"""Hazards: a second unwinder in the process.

SAMPLEPROF_TEST_UNWINDERS is the number of runs of each kind (default 1),
SAMPLEPROF_TEST_UNWINDERS_S the seconds of each (default 0.3, and 1 in the
nightly list)."""

import itertools
import os
import shutil

import harness
import hazards

RUNS = int(os.environ.get("SAMPLEPROF_TEST_UNWINDERS", "1"))
SECONDS = float(os.environ.get("SAMPLEPROF_TEST_UNWINDERS_S",
                               harness.rounds(0.3, 1)))
PLUGINS = 100
COPY = os.path.join(os.path.dirname(os.environ["SAMPLEPROF_SO"]),
                    "libsampleprof-unwind.so")
UNWINDERS = ("tables", "libunwind")[:1 + os.path.exists(COPY)]
PROFILER = harness.LIBDIR + "libprofiler.so.0"


@harness.nightly_too
class Unwinders(hazards.Case):

    def plugins(self):
        """Objects that nobody knew, each time they are loaded."""
        for i in range(PLUGINS):
            path = os.path.join(self.dir, f"plugin{i}.so")
            shutil.copy(harness.target("libprogram_plugin_a.so"), path)
            yield path

    def undisturbed(self, plugins, preload=(), **env):
        for period, unwind in harness.rounds(
                list(zip(("4K", "1"), UNWINDERS)),
                list(itertools.product(("1", "4K", "512K"), UNWINDERS))):
            with self.subTest(period=period, unwind=unwind):
                result = self.execute(
                    harness.target("program_hazard_unwinders"),
                    int(1000 * SECONDS), *plugins, period=period, env=env,
                    preload=preload, max_file="16M", unwind=unwind)
                self.assertIn(b"undisturbed\n", result.stdout)
                profile = self.profile_of(result).require_samples()
                self.assertEqual(profile.end, "clean")
                self.assertEqual(profile.settings["unwinder"], unwind)
                for path in result.paths:
                    os.unlink(path)

    def test_program_that_walks_in_a_signal_handler(self):
        """By the libunwind of the system, while we walk."""
        for _ in range(RUNS):
            if harness.rounds(False, True):
                self.undisturbed([], WALK="1")
            self.undisturbed(list(self.plugins()), WALK="1")

    def test_profiler_of_processor_time(self):
        """gperftools, which walks in a handler of SIGPROF."""
        profiler = harness.require(PROFILER, "libgoogle-perftools4")
        for _ in range(RUNS):
            self.undisturbed(list(self.plugins()), preload=(profiler,),
                             CPUPROFILE=os.path.join(self.dir, "cpu"),
                             CPUPROFILE_FREQUENCY="4000")
