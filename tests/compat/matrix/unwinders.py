# SPDX-License-Identifier: MIT
"""Programs of this machine with stacks found in two ways: how many percent are
whole, and how many frames a sample has.  docs/internals.md, "Call stacks"."""

import glob
import json
import os
import shutil
import subprocess
import tempfile

from systems import ROOT
from targets import PYTHON3, SQLITE

TIMEOUT_S = 300

# Name to command; {} is a folder for what it makes.
PROGRAMS = {
    "ls": ["ls", "-lR", "/usr/share/doc"],
    "python3": PYTHON3.argv,
    "git": ["git", "-C", ROOT, "log", "--stat", "-30"],
    "sqlite3": SQLITE.argv,
    "jq": ["jq", "-n", "[range(20000) | {a: ., b: tostring}] | length"],
    "gcc": ["gcc", "-O2", "-c", "-x", "c++", "-o", "{}/out.o",
            os.path.join(ROOT, "tests/compat/matrix/targets/tower.cc")],
    "perl": ["perl", "-e", "my %h; $h{$_} = 'x' x $_ for 1..3000"],
    "node": ["node", "-e", "JSON.stringify([...Array(20000).keys()])"],
}


def figures(build, name, way):
    """(samples, percent whole, frames a sample) of its largest profile."""
    with tempfile.TemporaryDirectory(prefix="sampleprof-") as where:
        subprocess.run(
            [word.replace("{}", where) for word in PROGRAMS[name]],
            input=SQLITE.stdin if name == "sqlite3" else b"", check=True,
            stdout=subprocess.DEVNULL, timeout=TIMEOUT_S,
            env={**os.environ, **PYTHON3.env, "LD_PRELOAD": build.library,
                 "SAMPLEPROF_PERIOD": "4K", "SAMPLEPROF_SEED": "1",
                 "SAMPLEPROF_UNWIND": way, "SAMPLEPROF_LOG": "quiet",
                 "SAMPLEPROF_OUT": where + "/%p.sprof"})
        largest = max(glob.glob(where + "/*.sprof"),
                      key=lambda path: os.stat(path).st_blocks)
        said = json.loads(subprocess.run(
            [build.report, "--json", "--all-frames", largest], check=True,
            stdout=subprocess.PIPE, timeout=TIMEOUT_S).stdout)
    stacks = said["stacks"]
    samples = sum(s["samples"] for s in stacks)
    return (samples,
            100 * sum(s["samples"] for s in stacks if not s["truncated"])
            / samples,
            sum(s["samples"] * len(s["frames"]) for s in stacks) / samples)


def table(build, way):
    """Its lines, as they are known."""
    yield (f"| program | samples | whole, tables | {way} | "
           f"frames a sample, tables | {way} |")
    yield "|---|---|---|---|---|---|"
    for name, argv in PROGRAMS.items():
        if not shutil.which(argv[0]):
            continue
        samples, whole, frames = figures(build, name, "tables")
        _, its_whole, its_frames = figures(build, name, way)
        yield (f"| {name} | {samples} | {whole:.2f} | {its_whole:.2f} | "
               f"{frames:.2f} | {its_frames:.2f} |")
