# SPDX-License-Identifier: MIT
"""google/pprof, built from Debian's sources, and how to run it."""

import collections
import os
import re
import subprocess
import tempfile

import harness

SOURCES = "/usr/share/gocode/src/github.com/google/pprof/pprof.go"


def build():
    """The program; built once for all drivers, which may run side by side."""
    built = os.path.join(os.environ["SAMPLEPROF_TARGETS"], "go-pprof")
    if os.path.exists(built):
        return built
    harness.require(SOURCES, "golang-github-google-pprof-dev")
    go = harness.require("go", "golang-go")
    with tempfile.TemporaryDirectory(dir=os.path.dirname(built)) as directory:
        new = os.path.join(directory, "go-pprof")
        subprocess.run(
            [go, "build", "-o", new, "github.com/google/pprof"],
            env={**os.environ, "GO111MODULE": "off",
                 "GOPATH": "/usr/share/gocode", "GOFLAGS": "",
                 "GOCACHE": built + "-cache"},
            check=True, timeout=200)
        os.rename(new, built)
    return built


def run(directory, *arguments):
    """Standard output; the profile is the last argument."""
    done = subprocess.run(
        [build(), "-symbolize=none", *arguments], capture_output=True,
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
