# SPDX-License-Identifier: MIT
"""Runs groups of a suite side by side, and reads the profiles they leave."""

import collections
import concurrent.futures
import glob
import json
import os
import pwd
import queue
import shutil
import signal
import subprocess
import time

from sources import Failed


class Run:
    """What the groups of one run had for outcomes and profiles."""

    def __init__(self, shim):
        self.shim = shim
        self.outcomes = {}
        self.profiles = 0
        self.samples = 0
        self.losses = collections.Counter()
        self.problems = []
        self.seconds = 0


class Runner:
    """`preloads`: what to preload for each allocator, by name."""

    def __init__(self, build, work, jobs, preloads):
        # Copies, so that a rebuild does not change what runs.
        self.library, self.report = (
            shutil.copy(os.path.join(build, name), work)
            for name in ("src/agent/libsampleprof.so",
                         "tools/sampleprof-report"))
        self.work, self.jobs, self.preloads = work, jobs, preloads
        self.runs = 0
        # Suites refuse root, and do as root what they had better not.
        self.nobody = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self.check_reach()

    def check_reach(self):
        done = subprocess.run(["test", "-r", self.library], check=False,
                              **self.identity())
        if done.returncode != 0:
            raise Failed(f"the user nobody cannot read {self.work}: choose "
                         "another place with --work")

    def identity(self):
        if not self.nobody:
            return {}
        return {"user": self.nobody.pw_uid, "group": self.nobody.pw_gid,
                "extra_groups": []}

    def run(self, suite, allocator, shim, groups=None):
        """The groups, or all."""
        self.runs += 1
        result = Run(shim)
        start = time.monotonic()
        base = os.path.join(self.work, f"run-{suite.name}-{self.runs}")
        shutil.rmtree(base, ignore_errors=True)
        workers = queue.Queue()
        jobs = min(self.jobs, suite.jobs)
        for i in range(jobs):
            workers.put(Worker(self, suite, allocator, shim, base, i))

        def one(group):
            worker = workers.get()
            try:
                return worker.group(group)
            finally:
                workers.put(worker)

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for part in pool.map(one, groups or suite.groups()):
                result.outcomes.update(part.outcomes)
                result.profiles += part.profiles
                result.samples += part.samples
                result.losses += part.losses
                result.problems += part.problems
        if not result.problems:
            shutil.rmtree(base)
        result.seconds = time.monotonic() - start
        return result


class Worker:
    """A directory in which one group runs at a time."""

    def __init__(self, runner, suite, allocator, shim, base, number):
        self.runner, self.suite, self.shim = runner, suite, shim
        self.number = number
        self.place = place = os.path.join(base, str(number))
        self.scratch = os.path.join(place, "scratch")
        self.profiles = os.path.join(place, "profiles")
        temporary = os.path.join(place, "tmp")
        for path in (self.scratch, self.profiles, temporary):
            os.makedirs(path)
        suite.stage(self.scratch)
        self.give_away()
        self.environment = {
            k: v for k, v in os.environ.items()
            if not k.startswith(("SAMPLEPROF_", "LD_", "MALLOC_", "MAKE"))}
        self.environment.update(HOME=place, TMPDIR=temporary, LC_ALL="C.UTF-8")
        preload = ([runner.library] if shim else []) + list(
            runner.preloads[allocator])
        if preload:
            self.environment["LD_PRELOAD"] = " ".join(preload)
        if shim:
            self.environment.update(SAMPLEPROF_PERIOD="64K",
                                    SAMPLEPROF_OUT=self.profiles)

    def give_away(self):
        if not self.runner.nobody:
            return
        for path, directories, files in os.walk(self.place):
            for name in [".", *directories, *files]:
                os.chown(os.path.join(path, name), self.runner.nobody.pw_uid,
                         self.runner.nobody.pw_gid, follow_symlinks=False)

    def group(self, group):
        """Run it, and read what it printed and its profiles."""
        result = Run(self.shim)
        argv, cwd = self.suite.command(group, self.scratch, self.number)
        log = os.path.join(self.place, "output")
        with open(log, "wb") as output:
            status = self.execute(argv, cwd, output)
        with open(log, encoding="utf-8", errors="replace") as f:
            text = f.read()
        seen = collections.Counter()
        for name, outcome in self.suite.outcomes(group, text):
            seen[name] += 1
            number = f" #{seen[name]}" if seen[name] > 1 else ""
            result.outcomes[group, name + number] = outcome
        result.outcomes[group, "exit status"] = (
            "ok 0" if status == 0 else f"failed {status}")
        self.read_profiles(result)
        return result

    def execute(self, argv, cwd, output):
        """The exit status, or a text."""
        process = subprocess.Popen(
            argv, cwd=cwd, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            **self.runner.identity())
        late = time.monotonic() + self.suite.timeout_s
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while not os.waitid(os.P_PID, process.pid, flags):
            if time.monotonic() > late:
                break
            time.sleep(0.01)
        # What the suite left behind ends, too.  It is not reaped before, so
        # that its number still is this group's.
        ended = os.waitid(os.P_PID, process.pid, flags)
        os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        return status if ended else f"none within {self.suite.timeout_s} s"

    def read_profiles(self, result):
        for path in glob.glob(os.path.join(self.profiles, "*")):
            # Without debug files: there are thousands of profiles.
            done = subprocess.run(
                [self.runner.report, "--json", "--debug-path", self.scratch,
                 path], capture_output=True, check=False)
            if done.returncode != 0:
                result.problems.append(f"{path}: {done.stderr.decode()}")
                continue
            profile = json.loads(done.stdout)
            if profile["damage"]["text"]:
                result.problems.append(f"{path}: {profile['damage']}")
                continue
            result.profiles += 1
            result.samples += profile["samples"]
            result.losses.update(
                {k: v for k, v in profile["losses"].items() if v})
            os.unlink(path)
