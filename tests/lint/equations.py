#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The functions that docs/statistics.md names for its equations exist.

    equations.py [ROOT]    1, and each that does not, on standard output

In the column "implemented by", `name` is a function of src or tools, and
`name_*` means that at least one function begins so.  Anywhere on the page,
`name` (`src/ROOM/FILE.c`) says that this file defines or declares it.
"""
import os
import re
import sys

PAGE = "docs/statistics.md"
HEAD = "| equation | implemented by |"
# A name, and the file in parentheses if there is one.
NAMED = re.compile(r"`(\w+\*?)`(?: \(`([\w/.]+\.[ch])`\))?")
# A definition or a declaration: its line begins with a type, in column 1.
FUNCTION = re.compile(r"^(?!return\b)[A-Za-z_][\w \t*]*[\s*](\w+)\(", re.M)


def sources(root):
    """Path: the functions that the source defines or declares."""
    found = {}
    for top in "src", "tools":
        for folder, _, names in os.walk(f"{root}/{top}"):
            for name in names:
                if name.endswith((".c", ".h")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as f:
                        found[os.path.relpath(path, root)] = set(
                            FUNCTION.findall(f.read()))
    return found


def complaints(root):
    functions = sources(root)
    everywhere = set().union(*functions.values())
    with open(f"{root}/{PAGE}", encoding="utf-8") as f:
        page = f.read()
    rows = page.partition(HEAD)[2].partition("\n\n")[0].splitlines()[2:]
    listed = [n for row in rows for n in NAMED.findall(row.split("|")[2])]
    if not listed:
        yield f"{PAGE}: no functions under \"{HEAD}\""
    for name, path in listed + [n for n in NAMED.findall(page) if n[1]]:
        if path and path not in functions:
            yield f"{PAGE}: there is no {path}, which is to have {name}"
        elif not any(re.fullmatch(name.replace("*", r"\w+"), function)
                     for function in functions.get(path, everywhere)):
            yield f"{PAGE}: {path or 'src'} has no function {name}"


if __name__ == "__main__":
    wrong = sorted(set(complaints((sys.argv[1:] or ["."])[0])))
    print("".join(f"{text}\n" for text in wrong), end="")
    sys.exit(bool(wrong))
