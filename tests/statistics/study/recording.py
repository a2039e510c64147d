# SPDX-License-Identifier: MIT
"""One run of a program under the library, and what its profile says."""

import dataclasses
import glob
import json
import os
import subprocess
import tempfile

TIMEOUT_S = 120


class Failed(Exception):
    """A run or a reading that makes the study impossible."""


@dataclasses.dataclass
class Interval:
    value: float
    lo: float
    hi: float


@dataclasses.dataclass
class Site:
    """What one recording says of a call stack, or of the whole process.

    `size` is the exact total for the process, else the sum of the sampled
    sizes.  `variances`, of a recording of everything: those of the estimate
    with the periods of the study, in their order."""
    samples: int
    size: int
    p3: Interval
    p3t: Interval
    variances: list


def absent(period):
    """A stack that is in no sample: less than 3.7 periods (97.5 %)."""
    return Site(0, 0, *(Interval(0.0, 0.0, 3.688879454 * period)
                        for _ in range(2)), [])


@dataclasses.dataclass
class Recording:
    process: Site
    stacks: dict  # from frames, "module+offset<...", innermost first


class Study:
    """The tools of a build directory, and a place for files."""

    def __init__(self, build, scratch):
        self.scratch = scratch
        self.library = os.path.join(build, "src/agent/libsampleprof.so")
        self.report = os.path.join(build, "tools/sampleprof-report")
        self.sites = os.path.join(build, "tests/statistics/study/study_sites")
        self.threads = os.path.join(build, "tests/statistics/study/study_threads")
        for path in (self.library, self.report, self.sites, self.threads):
            if not os.path.exists(path):
                raise Failed(f"{path} is missing: build it first")

    def record(self, workload, settings, read):
        """read(path) of the profile of one run, which is then deleted."""
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent",
               "LC_ALL": "C", "LD_PRELOAD": self.library,
               "SAMPLEPROF_LOG": "quiet"}
        with tempfile.TemporaryDirectory(dir=self.scratch) as out:
            env["SAMPLEPROF_OUT"] = out + "/"
            env.update({"SAMPLEPROF_" + k.upper(): str(v)
                        for k, v in settings.items()})
            done = subprocess.run(
                workload.command, env=env, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                timeout=TIMEOUT_S, check=False)
            found = glob.glob(f"{out}/{workload.process}.*.sprof")
            if done.returncode or len(found) != 1:
                raise Failed(f"{workload.command} ended with "
                             f"{done.returncode} and left {len(found)} "
                             f"profiles of {workload.process}: "
                             f"{done.stderr.decode(errors='replace')}")
            return read(found[0])

    def read(self, path, periods=()):
        """The stacks of a profile; `periods` asks for their variances."""
        done = subprocess.run(
            [self.sites, path, *map(str, periods)], capture_output=True,
            timeout=TIMEOUT_S, check=False, text=True)
        if done.returncode:
            raise Failed(f"{path}: {done.stderr}")
        process, stacks = None, {}
        for line in done.stdout.splitlines():
            kind, *fields = line.split("\t")
            numbers = [float(f) for f in fields[2:8]]
            site = Site(int(fields[0]), int(fields[1]),
                        Interval(*numbers[:3]), Interval(*numbers[3:]), [])
            if kind == "process":
                process = site
                continue
            site.variances = [float(f) for f in fields[8:-1]]
            if fields[-1] in stacks:
                raise Failed(f"{path}: two stacks {fields[-1]}")
            stacks[fields[-1]] = site
        if not process or not process.samples:
            raise Failed(f"{path}: no samples; was the library bypassed?")
        return Recording(process, stacks)

    def ask_report(self, path, estimator):
        """{frames: (names, Interval)} as sampleprof-report tells it."""
        done = subprocess.run(
            [self.report, "--json", "--estimator", estimator, path],
            capture_output=True, timeout=TIMEOUT_S, check=False)
        if done.returncode:
            raise Failed(f"{path}: {done.stderr.decode()}")
        stacks = {}
        said = json.loads(done.stdout)
        for stack in said["stacks"]:
            frames = [said["frames"][i] for i in stack["frames"]]
            frames = [f for f in frames if not f["inlined"]]
            key = "<".join(f"{os.path.basename(f['module'] or '')}+"
                           f"{f['offset']:x}" for f in frames)
            names = [f["function"] for f in frames]
            flat = stack["flat_bytes"]
            stacks[key] = (names, Interval(flat["value"], flat["lo"],
                                           flat["hi"]))
        return stacks
