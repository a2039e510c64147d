# SPDX-License-Identifier: MIT
"""Shared by the tests of hazards.  Each runs a program alone, under the
library, and under a profiler that makes the mistake which the hazard exposes
(targets/hazard_naive.c; where that takes long, in the nightly list only).  The
first two runs must not differ; the last must.
"""

import glob
import os
import subprocess

import harness

# Under the naive profiler a program hangs if one of its processes, which waits
# for no child, cannot run in so many looks at it; or if they use so much CPU
# time together.  No process here sleeps as long as these looks take.
LOOKS, LOOK_S = 6, 0.05
NAIVE_CPU_S = 2

# Each race there is hurt the naive profiler 25 times of 25, also on a machine
# with ten times as much to do as it could: of ten million tests less than one
# fails if a try fails with a chance of 0.4.
TRIES = 20

PERIODS = ("1", "512K")


def can_mount():
    """May this process mount, in a namespace of its own?"""
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"],
        stderr=subprocess.DEVNULL, check=False).returncode == 0


def threads_of(pid):
    """Of each thread that lives its state, and how often it has run."""
    threads = set()
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = dict(line.split(":", 1) for line in file)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if lines["State"].split()[0] != "Z":
            threads.add((path, lines["State"].split()[0],
                         lines["voluntary_ctxt_switches"],
                         lines["nonvoluntary_ctxt_switches"]))
    return threads


def waiting_in(session):
    """The processes of a session of which no thread can run, and that have no
    child: their threads.  And the CPU time of all, in seconds."""
    found, parents, ticks = {}, set(), 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        pid = int(path.split("/")[2])
        threads = threads_of(pid) if int(fields[3]) == session else None
        if threads:
            found[pid] = threads
            parents.add(int(fields[1]))
            ticks += sum(map(int, fields[11:15]))
    return ({pid: threads for pid, threads in found.items()
             if pid not in parents and
             all(state in "STt" for _, state, *_ in threads)},
            ticks / os.sysconf("SC_CLK_TCK"))


def communicate_or_hang(process):
    """What it writes until it ends; None: it is the first of its session, and
    a process of that makes no progress, however busy the machine is."""
    looks, last, cpu_s = {}, {}, 0
    while LOOKS not in looks.values() and cpu_s < NAIVE_CPU_S:
        try:
            return process.communicate(timeout=LOOK_S)[0]
        except subprocess.TimeoutExpired:
            now, cpu_s = waiting_in(process.pid)
        looks = {pid: looks.get(pid, 0) + 1 for pid, threads in now.items()
                 if threads == last.get(pid)}
        last = now
    os.killpg(process.pid, 9)
    process.communicate()
    return None


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

    def bites(self, mistake, program, *arguments, preload=(), popen=None):
        """The hazard is there: the naive profiler does not survive it.  One
        that races has some tries."""
        alone = self.alone(program, *arguments, preload=preload, popen=popen)
        self.assertTrue(any(self.naive_fails(mistake, program, *arguments,
                                             expected=alone, preload=preload,
                                             popen=popen)
                            for _ in range(TRIES)),
                        f"{program} {arguments} does not hurt a profiler "
                        f"that makes the mistake '{mistake}'")
        self.assertFalse(self.naive_fails("", program, *arguments,
                                          expected=alone, preload=preload,
                                          popen=popen),
                         f"{program} {arguments} fails under any profiler")

    def naive_fails(self, mistake, program, *arguments, expected, preload=(),
                    popen=None):
        environment = self.environment(
            [harness.target("libprogram_hazard_naive.so"), *preload],
            shim=False,
            env={"NAIVE": mistake,
                 "NAIVE_OUT": os.path.join(self.dir, "naive.log")})
        with subprocess.Popen(
                self.command(program, arguments), env=environment,
                cwd=self.dir, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                start_new_session=True, **(popen or {})) as process:
            stdout = (communicate_or_hang(process) if mistake else
                      process.communicate(timeout=harness.TIMEOUT_S)[0])
        return (process.returncode, stdout) != (expected.returncode,
                                                expected.stdout)
