# SPDX-License-Identifier: MIT
"""One run of one work under one setup, and the figures of it."""

import csv
import dataclasses
import os
import shutil
import signal
import subprocess
import time

from counting import BenchError
from setups import environment

# Valgrind on a program of half a second is well below this.
LONGEST_S = 180


class Failure(Exception):
    """A work that cannot be run under a setup; the others can."""


class Runner:
    """Runs commands by bench_timed, with a directory for what they leave."""

    def __init__(self, timed, scratch):
        self.timed, self.scratch = timed, scratch
        self.out = os.path.join(scratch, "out") + "/"
        self.errors = os.path.join(scratch, "stderr")
        os.mkdir(self.out)

    def start(self, command, settings, setup):
        """The process of bench_timed; its directory for files is empty."""
        shutil.rmtree(self.out)
        os.mkdir(self.out)
        with open(self.errors, "wb") as errors:
            return subprocess.Popen(
                [self.timed, *settings, *setup.assignments(self.out),
                 *setup.command(self.out), *command],
                env=environment(), cwd=self.scratch, text=True, stderr=errors,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                start_new_session=True)

    def finish(self, process, setup, timeout=LONGEST_S):
        """The figures of a process when it has ended."""
        try:
            told, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise Failure(f"longer than {timeout} s") from error
        finally:
            self.stop(process)
        with open(self.errors, encoding="utf-8", errors="replace") as errors:
            said = errors.read().strip()
        if "cannot be preloaded" in said:
            raise Failure(said.splitlines()[0])
        if process.returncode:
            raise BenchError(f"bench_timed failed: {said}")
        wall, cpu, rss, status = map(int, told.split())
        if status:
            raise Failure(f"wait status {status}: {said[-200:]}")
        return {"wall": wall / 1e9, "cpu": cpu / 1e9, "rss": rss,
                "file": self.written(setup)}

    @staticmethod
    def stop(process):
        """Whatever of its session is still there."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def run(self, command, settings, setup):
        return self.finish(self.start(command, settings, setup), setup)

    def left(self, setup):
        """The one file that a setup leaves of the last run."""
        found = [name for name in os.listdir(self.out)
                 if name.endswith(setup.leaves)]
        if len(found) != 1:
            raise BenchError(f"{len(found)} files *{setup.leaves}, not one")
        return self.out + found[0]

    def written(self, setup):
        """Bytes on disk of the files that were left: some are sparse."""
        names = os.listdir(self.out)
        if not any(name.endswith(setup.leaves) for name in names) and \
                setup.leaves:
            raise Failure(f"left no file *{setup.leaves}: it did not work")
        stats = [os.stat(self.out + name) for name in names]
        return sum(min(s.st_size, 512 * s.st_blocks) for s in stats)


@dataclasses.dataclass(frozen=True)
class Traits:
    """What the plan has to know of a work."""
    group: str = "program"  # the table that it is in
    small: bool = False  # bearable at fifty times its time
    main_only: bool = False  # for the main comparisons alone
    long: bool = False  # for those of every allocation alone
    most_rounds: int = 100
    calls: int = 0  # of allocation functions that return memory, if known


class Program:
    """A command that runs to its end."""

    def __init__(self, name, command, settings=(), **traits):
        self.name, self.command = name, command
        self.settings = list(settings)
        self.traits = Traits(**traits)

    def missing(self):
        return None if shutil.which(self.command[0]) else self.command[0]

    def measure(self, runner, setup):
        return runner.run(self.command, self.settings, setup)


class Redis:
    """A server under a setup, and its client without: what the client sees,
    and processor time and memory of the server."""

    name, traits = "redis", Traits(group="server", most_rounds=7)

    def __init__(self, requests):
        self.requests = requests

    def missing(self):
        return next((name for name in ("redis-server", "redis-benchmark",
                                       "redis-cli")
                     if not shutil.which(name)), None)

    def measure(self, runner, setup):
        socket = os.path.join(runner.scratch, "redis.sock")
        if os.path.exists(socket):
            os.unlink(socket)
        server = runner.start(
            ["redis-server", "--port", "0", "--unixsocket", socket, "--save",
             "", "--appendonly", "no", "--io-threads", "1"], [], setup)
        try:
            self.wait_for(socket, server)
            seen = self.load(socket)
            subprocess.run(["redis-cli", "-s", socket, "shutdown", "nosave"],
                           env=environment(), stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=LONGEST_S,
                           check=False)
        except BaseException as error:
            runner.stop(server)
            if isinstance(error, subprocess.SubprocessError):
                raise Failure(f"the client failed: {error}") from error
            raise
        return {**runner.finish(server, setup), **seen}

    @staticmethod
    def wait_for(socket, server):
        deadline = time.monotonic() + 30
        while not os.path.exists(socket):
            if server.poll() is not None or time.monotonic() > deadline:
                raise Failure("the server does not start")
            time.sleep(0.01)

    def load(self, socket):
        """Requests per second, milliseconds of percentiles of latency."""
        told = subprocess.run(
            ["redis-benchmark", "-s", socket, "--csv", "-t", "set", "-P", "16",
             "-r", "100000", "-d", "200", "-n", str(self.requests)],
            env=environment(), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=LONGEST_S, check=True).stdout
        rows = [row for row in csv.DictReader(told.splitlines())
                if row["test"] == "SET"]
        if not rows:
            raise Failure("redis-benchmark printed no figures")
        return {"rps": float(rows[0]["rps"]),
                **{p: float(rows[0][f"{p}_latency_ms"])
                   for p in ("p50", "p95", "p99", "max")}}
