#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The tables of tests in docs/contributing.md are the head comments of the
tests, up to their first empty line; every test of the build has a row, and
every row a test.

    tests.py ROOT [BUILD]    1, and what is wrong on standard output
    tests.py --write ROOT    write the tables
"""
import difflib
import glob
import os
import re
import subprocess
import sys

PAGE = "docs/contributing.md"
BEGIN = "<!-- tests:begin (made by tests/lint/tests.py) -->\n"
END = "<!-- tests:end -->\n"

# Label, and which files are its tests: a pattern, and the name of the test, in
# which {} is the file's.
LABELS = [
    ("unit", [("tests/unit/*/test_*.[cj]*", "unit.{}")]),
    ("statistics", [("tests/statistics/test_*.c", "statistics.{}"),
                    ("tests/statistics/acceptance.c", "statistics.acceptance"),
                    ("tests/statistics/coverage.c", "statistics.coverage"),
                    ("tests/statistics/simulated.c", "statistics.simulated"),
                    ("tests/statistics/mutants.py", "statistics.mutants"),
                    ("tests/statistics/lab_page.py", "statistics.lab_page"),
                    ("tests/statistics/study/run", "statistics.study"),
                    ("tests/statistics/study/gate", "statistics.study_gate")]),
    ("format", [("tests/format/compare", "format.reader"),
                ("tests/format/compare_packed", "format.packed")]),
    ("fuzz", [("tests/format/fuzz/fuzz_*.c", "fuzz.{}")]),
    ("programs", [("tests/programs/test_*.py", "programs.{}"),
                  ("tests/programs/cli/run", "cli"),
                  ("tests/programs/install.sh", "install.prefix"),
                  ("tests/programs/package.sh", "install.archive")]),
    ("compat", [("tests/compat/stress/test_*.c", "stress.{}"),
                ("tests/compat/suites/test_suites.py", "suites.conclusions"),
                ("tests/compat/suites/run", "suites.short"),
                ("tests/compat/soak/test_verdict.py", "soak.verdict"),
                ("tests/compat/matrix/test_verdict.py", "matrix.verdict"),
                ("tests/compat/matrix/run", "matrix.short"),
                ("tests/compat/newcomer/test_judge.py", "newcomer.judge")]),
    ("bench", [("tests/bench/test_*.py", "bench.{}"),
               ("tests/bench/instructions", "bench.instructions"),
               ("tests/bench/sample", "bench.sample")]),
    ("lint", [("tests/lint/*.sh", "lint.{}"), ("tests/lint/*.py", "lint.{}"),
              ("docs/pictures/draw", "lint.pictures")]),
]
# Each line of the usage of this one is a test.
PARTS = "lint.library"
PART = re.compile(r"^  (\w+)(?: [A-Z]+)?  +(.*(?:\n {10,}.*)*)", re.M)


def head_of(path):
    """The head comment without its marks, "" if there is none."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".c"):
        found = re.match(r"[^\n]*\n/\*(.*?)\*/", text, re.S)
        marks = r"^ \* ?"
    elif path.endswith((".js", ".sh")):
        found = re.match(r"(?:#!.*\n)?.*SPDX.*\n((?:(?://|#).*\n)*)", text)
        marks = r"^(?://|#) ?"
    else:
        found = re.match(r'(?:#[^\n]*\n)*"""(.*?)"""', text, re.S)
        marks = r"^(?!)"
    return re.sub(marks, "", found[1], flags=re.M).strip() if found else ""


def join(text):
    return " ".join(text.split()).replace("|", "\\|")


def tests_of(root, patterns):
    """(name, what it says of itself), in the order of their files."""
    for pattern, name in patterns:
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            stem = os.path.splitext(os.path.basename(path))[0]
            test = name.format(re.sub("^(test|fuzz)_", "", stem))
            head = head_of(path)
            if test == PARTS:
                for part, says in PART.findall(head):
                    yield f"{test}.{part}", join(says)
            else:
                yield test, join(re.split(r"\n\s*\n|\nUsage:", head)[0])


def make_tables(root):
    """The text between the markers, and the names that have a row."""
    text, names = "", []
    for label, patterns in LABELS:
        rows = list(tests_of(root, patterns))
        if not rows:
            continue
        text += f"\n### {label}\n\n| test | shows |\n|---|---|\n"
        text += "".join(f"| `{name}` | {says} |\n" for name, says in rows)
        names += rows
    return text + "\n", dict(names)


def registered(build):
    """The tests of a build directory: what has a row.  A .whole one is the
    long form of a test, nightly.NAME the nightly part of programs.NAME."""
    listing = subprocess.run(["ctest", "--test-dir", build, "-N"], check=True,
                             capture_output=True, text=True).stdout
    return [name.removesuffix(".whole").replace("nightly.", "programs.", 1)
            for name in re.findall(r"Test +#\d+: (\S+)", listing)]


def main():
    arguments = [a for a in sys.argv[1:] if a != "--write"]
    root = arguments[0]
    page = os.path.join(root, PAGE)
    tables, says = make_tables(root)
    with open(page, encoding="utf-8") as file:
        before, now = file.read().split(BEGIN)
    now, after = now.split(END)
    if "--write" in sys.argv:
        with open(page, "w", encoding="utf-8") as file:
            file.write(before + BEGIN + tables + END + after)
        return 0
    wrong = [f"{name}: its source has no head comment"
             for name, text in says.items() if not text]
    if len(arguments) > 1:
        tests = registered(arguments[1])
        wrong += [f"{name}: has no row; see tests/lint/tests.py"
                  for name in tests if name not in says]
        wrong += [f"{name}: no build runs it" for name in says
                  if name not in tests]
    if now != tables:
        wrong.append(f"{PAGE} has other tables: tests/lint/tests.py --write .")
        wrong += difflib.unified_diff(now.split("\n"), tables.split("\n"),
                                      "the page", "the tests", "", "", 0, "")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
