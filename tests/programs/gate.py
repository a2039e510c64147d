# SPDX-License-Identifier: MIT
"""Shared by the tests of diff and check: profiles of a program that counts its
own allocations, and the two commands."""

import os
import shutil

import harness

# What the program does unless a test says otherwise: 24 MB in four functions.
BASE = {"a": (128, 50000), "b": (256, 25000), "c": (1024, 10000),
        "d": (64, 24000), "keep": (100, 4000)}


class Gate(harness.Case):
    def setUp(self):
        super().setUp()
        self.programs = {}
        self.totals = {}  # what was allocated, by file
        for name in ("gated", "gated_moved", "gated_renamed"):
            path = os.path.join(self.dir, name, "app")
            os.mkdir(os.path.dirname(path))
            shutil.copy(harness.target("program_" + name), path)
            self.programs[name] = path

    def record(self, program="gated", period="4K", env=None, seed=1,
               **changes):
        """The profile of a run with these changes to BASE: a=(128, 60000)."""
        work = dict(BASE, **changes)
        if period == "1":  # every object is a sample
            work = {k: (s, n // 20) for k, (s, n) in work.items()}
        specs = [f"{k}:{s}:{n}" for k, (s, n) in work.items() if n]
        path = self.programs.get(program, program)
        result = self.execute(path, *specs, period=period, env=env,
                              seed=seed)
        profile = result.profile().require_samples(
            1 if period == "1" else 100)
        _, *truth = result.stdout.decode().split()
        self.assertGreaterEqual(profile.exact[0], int(truth[0]))
        self.totals[profile.path] = profile.exact[0]
        return profile.path

    def report(self, *words, code=0, stdin=None):
        done = harness.run_report(*words, input=stdin)
        self.assertEqual(done.returncode, code,
                         f"{words}: {done.stdout.decode()}"
                         f"{done.stderr.decode()}")
        self.err = done.stderr.decode()
        return done.stdout.decode()

    def check(self, new, old, *limits, code=0, form="text"):
        new = [new] if isinstance(new, str) else new
        old = [old] if isinstance(old, str) else old
        words = [w for x in limits for w in ("--limit", x)]
        return self.report("check", *new, "--baseline", *old, *words,
                           "--format", form, code=code)
