# SPDX-License-Identifier: MIT
"""aarch64, emulated: the tests of tests/compat/aarch64, and the short form of
the matrix under a kernel for each size of pages."""

import dataclasses
import json
import os
import re
import subprocess

import verdict
from systems import ROOT
from targets import PLUGINS, PYTHON3, SQLITE

FOLDER = os.path.join(ROOT, "tests", "compat", "aarch64")
PAGES = ("4K", "16K", "64K")
BUILD = "cross"


def passed(text):
    """What ctest says of its tests: "passed/all", "-" if there were none."""
    found = re.search(r"(\d+) tests failed out of (\d+)", text)
    if not found:
        return "-"
    failed, number = map(int, found.groups())
    return f"{number - failed}/{number}"


def cells_of(name, text):
    """Those of the short form that ran in a machine of that name."""
    fields = [field.name for field in dataclasses.fields(verdict.Cell)]
    cells = [verdict.Cell(**{key: row[key] for key in fields})
             for row in json.loads(text)]
    if not cells:
        raise ValueError("no cells")
    for cell in cells:
        cell.system = cell.system.replace("here", name, 1)
        cell.build = BUILD
    return cells


def call(command, log):
    with open(log, "w", encoding="utf-8") as file:
        subprocess.run(command, stdout=file, stderr=subprocess.STDOUT,
                       stdin=subprocess.DEVNULL, check=False)
    with open(log, encoding="utf-8", errors="replace") as file:
        return file.read()


def run_pages(matrix, directory, pages, tests):
    name = f"arm64 {pages}"
    path = f"{directory}/matrix-{pages}.json"
    if os.path.exists(path):
        os.unlink(path)
    log = f"{directory}/machine-{pages}.log"
    text = call([FOLDER + "/machine", "--pages", pages, "--matrix", path,
                 directory, *tests], log)
    matrix.describe(name, BUILD, compiler="gcc 12", suite=passed(text))
    try:
        with open(path, encoding="utf-8") as file:
            cells = cells_of(name, file.read())
    except (OSError, ValueError):
        matrix.leave_out(name, BUILD, [SQLITE, PYTHON3, PLUGINS],
                         f"there is no table in {log}", True)
        return
    for cell in cells:
        matrix.add(cell)


def run(matrix, options):
    """Without --suite no tests, only cells."""
    directory = os.path.join(options.dir, "aarch64")
    os.makedirs(directory, exist_ok=True)
    tests = [] if options.suite else ["-N"]
    text = call([FOLDER + "/run", directory, *tests], directory + "/run.log")
    matrix.describe("arm64 qemu-user", BUILD, compiler="gcc 12",
                    suite=passed(text))
    for pages in PAGES:
        run_pages(matrix, directory, pages, tests)
