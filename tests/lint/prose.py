#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Lines of pages have at most 100 characters.

    prose.py [ROOT]    1, and such lines on standard output

What cannot be broken may be longer: rows of tables, and code, which is indented
by four blanks or fenced.
"""
import os
import sys

WIDTH = 100


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


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    found = 0
    for path in sorted(pages(root)):
        with open(path, encoding="utf-8") as page:
            for number, length in long_lines(page.read()):
                print(f"{os.path.relpath(path, root)}:{number}: {length} "
                      f"characters, more than {WIDTH}")
                found += 1
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
