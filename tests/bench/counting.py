# SPDX-License-Identifier: MIT
"""Instructions and cache misses, counted by callgrind: per call, inside one
loop of pairs.c or micro.c, and of whole programs."""

import os
import re
import shutil
import subprocess
import tempfile

import setups

# A period that no run reaches: the library works and never samples.
DORMANT = {"SAMPLEPROF_PERIOD": "1T"}
# Sampling that waits to be started, with a target for then.
OFF = {"SAMPLEPROF_START": "off", "SAMPLEPROF_RATE": "500/s"}

LOOPS = {"malloc": ("lists", "take_list"), "free": ("lists", "free_list"),
         "calloc": ("zeroed", "take_zeroed"),
         "realloc": ("resized", "resize_list"),
         "new": ("new", "take_new"), "delete": ("new", "delete_list")}


class BenchError(Exception):
    """Something that makes the numbers impossible or meaningless."""


def environment(library, settings):
    """That of this process with `library` preloaded and only `settings`."""
    env = setups.environment()
    if library:
        env.update(settings, LD_PRELOAD=library)
    return env


def collect(loop, command, library, settings, *options):
    """[(event, count)] of what callgrind sees inside the function `loop`."""
    if not shutil.which("valgrind"):
        raise BenchError("valgrind is not installed (tools/check installs it)")
    with tempfile.TemporaryDirectory() as scratch:
        settings = {"SAMPLEPROF_SEED": "1", "SAMPLEPROF_LOG": "quiet",
                    "SAMPLEPROF_OUT": scratch + "/", **settings}
        run = subprocess.run(
            ["valgrind", "--tool=callgrind",
             "--callgrind-out-file=/dev/null", "--toggle-collect=" + loop,
             *options, *map(str, command)],
            env=environment(library, settings), text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    events = re.search(r"Events    : (.*)", run.stderr)
    counts = re.search(r"Collected : (.*)", run.stderr)
    if run.returncode or not events or not counts:
        raise BenchError(f"callgrind failed:\n{run.stderr}")
    return dict(zip(events[1].split(), map(int, counts[1].split())))


def misses_per_free(micro, library, settings, mib):
    """Data misses of the first and of the last cache for each free of objects
    of 1 KiB that fill so much memory, in random order.  The caches are those
    of this machine, as far as callgrind simulates them."""
    count = mib * 1024
    events = collect("free_all", [micro, "frees", count], library, settings,
                     "--cache-sim=yes")
    return {level: (events[level + "mr"] + events[level + "mw"]) / count
            for level in ("D1", "DL")}


def whole_program(command, library, settings):
    """Instructions of a program and its children from start to end."""
    with tempfile.TemporaryDirectory() as scratch:
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--trace-children=yes",
             "--callgrind-out-file=/dev/null",
             "--log-file=" + scratch + "/log.%p", *command],
            env=environment(library, settings), text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        counts = []
        for name in os.listdir(scratch):
            with open(os.path.join(scratch, name), encoding="utf-8",
                      errors="replace") as log:
                counts += re.findall(r"Collected : (\d+)", log.read())
    if run.returncode or not counts:
        raise BenchError(f"callgrind failed: {run.stderr[-500:]}")
    return sum(map(int, counts))


class Subject:
    """One loop of pairs.c calling one function, under one library."""

    def __init__(self, pairs, library, settings, function):
        self.pairs, self.library = pairs, library
        self.settings, (self.mode, self.loop) = settings, LOOPS[function]

    def collected(self, size, count):
        """Instructions inside the loop of `count` calls."""
        return collect(self.loop, [self.pairs, self.mode, size, count],
                       self.library, self.settings)["Ir"]

    def per_call(self, size, count):
        """Mean over `count` calls after the first `count`, events included."""
        return (self.collected(size, 2 * count) -
                self.collected(size, count)) / count

    def per_eventless_call(self):
        """Instructions of a call in which the library only counts.

        It checks in every 4 KiB at first, whatever the time, later by the
        time.  These runs allocate less than that, so that at most one check-in
        is in any of their loops: in those of several neighbours, of whose
        differences two have it at one end only.  Those two are not alike, so
        the first that comes twice has none.
        """
        size, first, window = 8, 50, 50
        counts, steps = [], []
        for i in range(5):
            counts.append(self.collected(size, first + i * window))
            if i:
                steps.append(counts[i] - counts[i - 1])
            if i and steps[-1] in steps[:-1]:
                return steps[-1] / window
        raise BenchError(f"no two windows alike: {steps}")
