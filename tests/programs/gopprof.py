# SPDX-License-Identifier: MIT
"""google/pprof, and how to run it."""

import collections
import functools
import os
import re
import subprocess

import harness

@functools.cache
def program():
    """The one that comes with Go, which is built."""
    go = harness.require("go", "golang-go")
    return subprocess.run([go, "tool", "-n", "pprof"], capture_output=True,
                          check=True, text=True).stdout.strip()


def run(directory, *arguments):
    """Standard output; the profile is the last argument."""
    done = subprocess.run(
        [program(), "-symbolize=none", *arguments], capture_output=True,
        check=False, timeout=harness.TIMEOUT_S,
        env={"HOME": directory, "PPROF_TMPDIR": directory,
             "PATH": os.environ["PATH"]})
    if done.returncode:
        raise AssertionError(f"pprof {arguments}: {done.stderr.decode()}")
    return done.stdout.decode()


def top(directory, file, sample_type, *arguments):
    """{function: (flat, cum)}, the bytes that are shown and those of all."""
    text = run(directory, "-top", "-nodefraction=0", "-nodecount=100000",
               "-unit=B", "-sample_index=" + sample_type, *arguments, file)
    total = re.search(r"\nShowing nodes accounting for (\d+)B?, [\d.]+% of "
                      r"(\d+)B? total", text)
    if not total:
        raise AssertionError(f"pprof {arguments}: {text[:2000]}")
    rows = collections.defaultdict(lambda: (0, 0))
    for line in text.split("cum%\n")[1].splitlines():
        flat, _, _, cum, _, name = line.split(None, 5)
        name = re.sub(r" \((partial-)?inline\)$", "", name)
        values = int(flat.rstrip("B")), int(cum.rstrip("B"))
        rows[name] = tuple(map(sum, zip(rows[name], values)))
    return dict(rows), int(total[1]), int(total[2])
