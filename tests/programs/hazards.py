# SPDX-License-Identifier: MIT
"""Shared by the tests of hazards.  Each runs a program alone, under the
library, and under a profiler that makes the mistake which the hazard exposes
(targets/hazard_naive.c).  The first two runs must not differ; the last must.
"""

import os
import subprocess

import harness

# A program that runs longer under the naive profiler has hung.
NAIVE_TIMEOUT_S = 2

PERIODS = ("1", "512K")


def can_mount():
    """May this process mount, in a namespace of its own?"""
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"],
        stderr=subprocess.DEVNULL, check=False).returncode == 0


class Case(harness.Case):

    def command(self, program, arguments):
        return [harness.target("program_" + program), *map(str, arguments)]

    def alone(self, program, *arguments, **options):
        """What the program prints without any profiler."""
        return self.execute(*self.command(program, arguments), shim=False,
                            **options)

    def survives(self, program, *arguments, periods=PERIODS, lost=(),
                 preload=(), samples=1, **options):
        """The program ends and prints as it does alone, and nothing is lost
        but what `lost` names; the profile with the first period."""
        alone = self.alone(program, *arguments, preload=preload,
                           popen=options.get("popen"))
        first = None
        for period in periods:
            with self.subTest(period=period):
                result = self.execute(*self.command(program, arguments),
                                      period=period, preload=preload,
                                      **options)
                self.assertEqual((result.stdout, result.stderr),
                                 (alone.stdout, alone.stderr))
                profile = self.profile_of(result)
                if period == periods[0]:
                    first = profile.require_samples(samples)
                self.assertEqual({k: v for k, v in profile.lost().items()
                                  if k not in lost}, {})
        return first

    def profile_of(self, result, **options):
        """Of the process that was started, which may have had children."""
        mine = [p for p in result.paths
                if os.path.basename(p).split(".")[1] == str(result.pid)]
        self.assertEqual(len(mine), 1, result.paths)
        return harness.Profile(mine[0], **options)

    def bites(self, mistake, program, *arguments, preload=(), popen=None,
              tries=1):
        """The hazard is there: the naive profiler does not survive it, at the
        latest in the last of the tries, if it is a race."""
        alone = self.alone(program, *arguments, preload=preload, popen=popen)
        self.assertTrue(any(self.naive_fails(mistake, program, *arguments,
                                             expected=alone, preload=preload,
                                             popen=popen)
                            for _ in range(tries)),
                        f"{program} {arguments} does not hurt a profiler "
                        f"that makes the mistake '{mistake}'")
        self.assertFalse(self.naive_fails("", program, *arguments,
                                          expected=alone, preload=preload,
                                          popen=popen),
                         f"{program} {arguments} fails under any profiler")

    def naive_fails(self, mistake, program, *arguments, expected, preload=(),
                    popen=None):
        library = harness.target("libprogram_hazard_naive.so")
        timeout_s = NAIVE_TIMEOUT_S if mistake else harness.TIMEOUT_S
        environment = self.environment(
            [library, *preload], shim=False,
            env={"NAIVE": mistake,
                 "NAIVE_OUT": os.path.join(self.dir, "naive.log")})
        with subprocess.Popen(
                self.command(program, arguments), env=environment,
                cwd=self.dir, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                start_new_session=True, **(popen or {})) as process:
            try:
                stdout, _ = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.communicate()
                return True
        return (process.returncode, stdout) != (expected.returncode,
                                                expected.stdout)
