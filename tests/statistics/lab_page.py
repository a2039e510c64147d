#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The tables of docs/lab.md are the lab's output. False alarm: 0; 3 s.

    lab_page.py BUILD_DIR            write the page
    lab_page.py --check BUILD_DIR    status 1 if the page says something else
"""
import argparse
import difflib
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "lab.md")
BEGIN = "<!-- lab:begin (made by tests/statistics/lab_page.py) -->"
END = "<!-- lab:end -->"
COMMAND = ["sampleprof-lab", "--runs", "400"]


def tables(build):
    """What the command prints, a block for each workload."""
    done = subprocess.run(
        [os.path.join(build, "tools", COMMAND[0])] + COMMAND[1:],
        env={"LC_ALL": "C.UTF-8"}, capture_output=True, text=True, check=True)
    blocks = re.split(r"\n\n(?=[^\n]+\n[\d,]+ objects, )",
                      done.stdout.strip())
    return "\n\n".join(f"```\n{b}\n```" for b in blocks)


def page_with(text, middle):
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    return f"{head}{BEGIN}\n\n{middle}\n\n{END}{tail}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("build")
    options = parser.parse_args()
    with open(PAGE, encoding="utf-8") as page:
        old = page.read()
    new = page_with(old, tables(options.build))
    if not options.check:
        with open(PAGE, "w", encoding="utf-8") as page:
            page.write(new)
        return 0
    sys.stdout.writelines(difflib.unified_diff(
        old.splitlines(True), new.splitlines(True), "docs/lab.md", "now"))
    if old != new:
        print(f"lab_page.py: docs/lab.md is not what {' '.join(COMMAND)} says: "
              f"run {os.path.relpath(__file__, ROOT)} BUILD_DIR",
              file=sys.stderr)
    return int(old != new)


if __name__ == "__main__":
    sys.exit(main())
