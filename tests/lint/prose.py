#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Lines of pages have at most 100 characters, and pages at most so many words.

    prose.py [ROOT]    1, and what is longer on standard output

What cannot be broken may be longer: rows of tables, and code, which is indented
by four blanks or fenced.  A word is what stands between blanks, of tables too.
"""
import glob
import os
import sys

WIDTH = 100
# At most so many words in all of the files that match.  What one is raised by
# is worth more to readers than what they read less of.
WORDS = [
    (["README.md", "src/README.md", "docs/*.md"], 90000),
    (["docs/contributing.md"], 5000),
    (["docs/benchmarks.md"], 2500),
    (["docs/statistics.md", "docs/measurements.md"], 13200),
]


def pages(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders
                      if f[0] != "." and not f.startswith("build")]
        yield from (os.path.join(folder, name) for name in names
                    if name.endswith(".md"))


def long_lines(text):
    """Number and length of each."""
    is_fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        is_fenced ^= line.startswith("```")
        is_fixed = is_fenced or line.startswith("    ") or \
            line.lstrip().startswith("|")
        if len(line) > WIDTH and not is_fixed:
            yield number, len(line)


def too_many_words(root):
    for patterns, most in WORDS:
        words = 0
        for pattern in patterns:
            for path in glob.glob(os.path.join(root, pattern)):
                with open(path, encoding="utf-8") as page:
                    words += len(page.read().split())
        if words > most:
            yield f"{' '.join(patterns)}: {words} words, more than {most}"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    found = 0
    for path in sorted(pages(root)):
        with open(path, encoding="utf-8") as page:
            for number, length in long_lines(page.read()):
                print(f"{os.path.relpath(path, root)}:{number}: {length} "
                      f"characters, more than {WIDTH}")
                found += 1
    for complaint in too_many_words(root):
        print(complaint)
        found += 1
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
