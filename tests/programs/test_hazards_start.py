# SPDX-License-Identifier: MIT
"""Hazards: other preloaded libraries, and the start."""

import os
import re
import subprocess
import time

import harness
import hazards

TARGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets")
HEAPTRACK = "/usr/lib/heaptrack/libheaptrack_preload.so"


class Compiled(hazards.Case):

    def compiled(self, compiler, *options):
        """targets/plain.c by that compiler with these options."""
        program = os.path.join(self.dir, "plain" + "".join(options))
        subprocess.run(
            [harness.require(compiler, compiler), "-g", "-O1",
             "-fno-builtin", "-I", os.path.join(TARGETS, "../../../include"),
             *options, os.path.join(TARGETS, "plain.c"), "-o", program],
            check=True, timeout=harness.TIMEOUT_S)
        return program


class Start(Compiled):

    def test_indirect_function_that_allocates(self):
        """Its resolver runs before anything is relocated or constructed."""
        for program in ("hazard_start", "hazard_start_now",
                        "hazard_start_no_pie"):
            with self.subTest(program=program):
                self.survives(program, "indirect", periods=("1",))

    @harness.nightly_too
    def test_threads_of_another_constructor(self):
        """They sample while the library is being set up, and walk their
        stacks with libunwind at the same time."""
        library = (harness.target("libprogram_hazard_racing.so"),)
        for env in ([{}] * harness.rounds(2, 5) +
                    [{"RACING": "1"}] * harness.rounds(4, 10)):
            result = self.execute(harness.target("program_plain"), 200, period=1,
                                  preload=library, env=env)
            self.assertEqual((result.stdout, result.stderr), (b"hello\n", b""))
            profile = self.profile_of(result).require_samples(200)
            lost = profile.lost()
            bare = sum(stack["samples"] for stack in profile.stacks
                       if any(f["module"] is None for f in stack["frames"]))
            # Both threads meet libunwind in their first walk, once each: one
            # that would wait long for the other has its bare address.
            if env and lost.pop("modules_not_recorded", 0):
                self.assertLessEqual(bare, 1)
            else:
                self.assertEqual(bare, 0)
            self.assertEqual(lost, {})
            self.assertGreaterEqual(profile.allocated_under("main")[1], 200)
        # Whether the threads meet is up to the processor.
        if harness.rounds(False, True):
            self.bites("early", "plain", 200, preload=library)

    def test_environment_that_is_gone(self):
        library = harness.target("libprogram_hazard_refuse.so")
        result = self.execute(harness.target("program_plain"), 50,
                              preload=(library,), period=1,
                              env={"REFUSE": "environment"})
        self.assertEqual((result.stdout, result.stderr), (b"hello\n", b""))

    def test_auditor_of_the_loader(self):
        """Then a preloaded library's thread-local data comes out of 1.6 KiB,
        and one that has more ends every program."""
        audit = {"LD_AUDIT": harness.target("libprogram_hazard_audit.so")}
        result = self.execute(harness.target("program_plain"), 50, period=1,
                              env=audit)
        self.assertEqual((result.stdout, result.stderr), (b"hello\n", b""))
        result.profile().require_samples(50)
        large = harness.target("libprogram_hazard_naive_large_tls.so")
        broken = self.execute(harness.target("program_plain"), 50, shim=False,
                              preload=(large,), env=audit, clean=False)
        self.assertNotEqual(broken.returncode, 0)

    def test_exceptions_are_unwound_by_libgcc(self):
        """Nothing that we bring has functions of the same names."""
        result = self.execute(harness.target("program_hazard_throw"),
                              "exceptions", period=1,
                              env={"LD_DEBUG": "bindings",
                                   "LD_BIND_NOW": "1"})
        bound = re.findall(r"binding file (\S+) .* to (\S+) .*"
                           r"normal symbol `(_Unwind_\w+)'",
                           result.stderr.decode())
        self.assertGreater(len(bound), 3)
        for file, to, symbol in bound:
            self.assertIn("libgcc_s", to, (file, symbol))

    def test_static_programs(self):
        """Nothing is preloaded into them: they run, unprofiled."""
        for kind in ("-static", "-static-pie"):
            with self.subTest(kind=kind):
                program = self.compiled("gcc", kind)
                result = self.execute(program, 50, period=1)
                self.assertEqual((result.stdout, result.stderr,
                                  result.paths), (b"hello\n", b"", []))


class Preloads(hazards.Case):

    def both_orders(self, library, program, *arguments, **env):
        """Above us and below us; returns the profiles."""
        alone = self.alone(program, *arguments)
        shim = os.environ["SAMPLEPROF_SO"]
        profiles = []
        for order in ((shim, library), (library, shim)):
            with self.subTest(order=order):
                result = self.execute(
                    *self.command(program, arguments), period=1,
                    env={"LD_PRELOAD": " ".join(order), **env})
                self.assertEqual(result.stdout, alone.stdout)
                profiles.append(self.profile_of(result))
        return profiles

    def test_heaptrack_above_and_below(self):
        below, above = self.both_orders(
            harness.require(HEAPTRACK, "heaptrack"), "plain", 200,
            DUMP_HEAPTRACK_OUTPUT=os.path.join(self.dir, "heaptrack"))
        for profile in (below, above):
            self.assertGreaterEqual(profile.allocated_under("main")[1],
                                    200)

    @harness.nightly_too
    def test_shim_that_allocates_under_a_lock(self):
        """Around the clock and the mutexes, as libraries do that fake the
        time or check locks: the library asks neither of them."""
        shim = harness.target("libprogram_hazard_shim.so")
        now = time.time_ns()
        for profile in self.both_orders(shim, "hazard_start", "clock"):
            profile.require_samples(2400)
            self.assertEqual(profile.lost(), {})
            # The shim's clock is a day ahead.
            self.assertLess(abs(profile.json["start_unix_ns"] - now), 3e12)
        if harness.rounds(False, True):
            self.bites("clock", "hazard_start", "clock", preload=(shim,))
