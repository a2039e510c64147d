# SPDX-License-Identifier: MIT
"""Instructions per call, counted by callgrind inside one loop of pairs.c."""

import os
import re
import shutil
import subprocess
import tempfile

# A period that no run reaches: the library works and never samples.
DORMANT = {"SAMPLEPROF_PERIOD": "1T"}

LOOPS = {"malloc": ("lists", "take_list"), "free": ("lists", "free_list"),
         "calloc": ("zeroed", "take_zeroed"),
         "realloc": ("resized", "resize_list"),
         "new": ("new", "take_new"), "delete": ("new", "delete_list")}


class BenchError(Exception):
    """Something that makes the numbers impossible or meaningless."""


def environment(library, settings):
    """That of this process with `library` preloaded and only `settings`."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("SAMPLEPROF_") and k != "LD_PRELOAD"}
    if library:
        env.update(settings, LD_PRELOAD=library)
    return env


class Subject:
    """One loop of pairs.c calling one function, under one library."""

    def __init__(self, pairs, library, settings, function):
        self.pairs, self.library = pairs, library
        self.settings, (self.mode, self.loop) = settings, LOOPS[function]

    def collected(self, size, count):
        """Instructions inside the loop of `count` calls."""
        if not shutil.which("valgrind"):
            raise BenchError("valgrind is not installed "
                             "(tools/check installs it)")
        with tempfile.TemporaryDirectory() as scratch:
            settings = {"SAMPLEPROF_SEED": "1", "SAMPLEPROF_LOG": "quiet",
                        "SAMPLEPROF_OUT": scratch + "/", **self.settings}
            run = subprocess.run(
                ["valgrind", "--tool=callgrind",
                 "--callgrind-out-file=/dev/null",
                 "--toggle-collect=" + self.loop, self.pairs, self.mode,
                 str(size), str(count)],
                env=environment(self.library, settings), text=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                check=False)
        found = re.search(r"Collected : (\d+)", run.stderr)
        if run.returncode or not found:
            raise BenchError(f"callgrind failed:\n{run.stderr}")
        return int(found[1])

    def per_call(self, size, count):
        """Mean over `count` calls after the first `count`, events included."""
        return (self.collected(size, 2 * count) -
                self.collected(size, count)) / count

    def per_eventless_call(self):
        """Instructions of a call in which the library only counts.

        It checks in once in a while, less and less often: of two neighbouring
        windows this small at most one meets that.  The events before them are
        the same in all runs but for a few instructions in the kernel's clock,
        which count seconds: less than a hundredth of one per call.
        """
        size, first, window = 16, 20000, 4000
        a, b, c = (self.collected(size, first + i * window) for i in range(3))
        count = min(b - a, c - b) / window
        return round(count) if abs(count - round(count)) < 0.01 else count
