#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Every test says in its head comment what it shows, up to the first empty line,
and those of the label statistics with which chance they fail ("False alarm: 0");
every test of the build has a source, and every source is a test of the build.

    tests.py ROOT [BUILD]         1, and what is wrong on standard output
    tests.py --list ROOT [BUILD]  a table of what each test shows, and with BUILD
                                  of the list that runs it
"""
import glob
import os
import re
import subprocess
import sys

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
                    ("tests/statistics/long", "statistics.long"),
                    ("tests/statistics/study/run", "statistics.study"),
                    ("tests/statistics/study/gate", "statistics.study_gate"),
                    ("tests/statistics/study/verdicts",
                     "statistics.study_verdicts")]),
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
                ("tests/compat/matrix/compilers.py", "matrix.compilers"),
                ("tests/compat/newcomer/test_judge.py", "newcomer.judge")]),
    ("bench", [("tests/bench/test_*.py", "bench.{}"),
               ("tests/bench/instructions", "bench.instructions"),
               ("tests/bench/sample", "bench.sample")]),
    ("lint", [("tests/lint/*.sh", "lint.{}"), ("tests/lint/*.py", "lint.{}"),
              ("docs/pictures/draw", "lint.pictures")]),
]
# What ctest prints of a test, and the label of the list of long ones.
NAME = r"Test +#\d+: (\S+)"
NIGHTLY = "nightly"
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


def tests_of(root):
    """(label, name, what it says of itself), in the order of their files."""
    for label, pattern, name in ((label, *pair) for label, pairs in LABELS
                                 for pair in pairs):
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            stem = os.path.splitext(os.path.basename(path))[0]
            test = name.format(re.sub("^(test|fuzz)_", "", stem))
            head = head_of(path)
            if test == PARTS:
                for part, says in PART.findall(head):
                    yield label, f"{test}.{part}", " ".join(says.split())
            else:
                says = re.split(r"\n\s*\n|\nUsage:", head)[0]
                yield label, test, " ".join(says.split())


def registered(build):
    """The tests of a build directory, and the lists that run each.  A .whole one
    is the long form of a test, nightly.NAME the nightly part of programs.NAME."""
    listing = subprocess.run(["ctest", "--test-dir", build, "-N"], check=True,
                             capture_output=True, text=True).stdout
    fast = subprocess.run(["ctest", "--test-dir", build, "-N", "-LE", NIGHTLY],
                          check=True, capture_output=True, text=True).stdout
    fast = set(re.findall(NAME, fast))
    lists = {}
    for test in re.findall(NAME, listing):
        name = test.removesuffix(".whole").replace("nightly.", "programs.", 1)
        lists.setdefault(name, set()).add(
            "ordinary" if test in fast else NIGHTLY)
    return lists


def print_table(tests, lists):
    print("label\tlists\ttest\tshows")
    for label, name, says in tests:
        which = " ".join(sorted(lists.get(name, []), reverse=True))
        print(f"{label}\t{which}\t{name}\t{says}")


def complaints(tests, lists):
    names = [name for _, name, _ in tests]
    for label, name, says in tests:
        if not says:
            yield f"{name}: its source has no head comment"
        elif label == "statistics" and "False alarm: " not in says:
            yield f"{name}: does not say its chance of a false alarm"
    if lists:
        yield from (f"{name}: no source is known; see tests/lint/tests.py"
                    for name in lists if name not in names)
        yield from (f"{name}: no build runs it" for name in names
                    if name not in lists)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--list"]
    tests = list(tests_of(arguments[0]))
    lists = registered(arguments[1]) if len(arguments) > 1 else {}
    if "--list" in sys.argv:
        print_table(tests, lists)
        return 0
    wrong = list(complaints(tests, lists))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
