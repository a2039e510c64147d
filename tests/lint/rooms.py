#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Rooms and arrows: every line of layers.txt is used, no modules include each
other in a circle of more than three, and the picture in src/README.md is true.

    rooms.py [ROOT]            1, and what is wrong on standard output
    rooms.py --picture [ROOT]  the picture

A module is a source with its header.  The picture leaves out an arrow where
others lead to the same room.
"""
import os
import re
import sys

CIRCLE_MAX = 3
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]((?:(?<=")|sampleprof/)[^">]+)',
                     re.M)


def layers(root):
    """Room: the rooms that it may include, in the order of layers.txt."""
    allowed = {}
    with open(f"{root}/tests/lint/layers.txt", encoding="utf-8") as f:
        for line in f:
            line = line.partition("#")[0]
            if ":" in line:
                room, _, others = line.partition(":")
                allowed[room.strip()] = others.split()
    return allowed


def includes(root):
    """Module: the modules that it includes."""
    found = {}
    for top in ("src", "tools"):
        for folder, _, names in os.walk(f"{root}/{top}"):
            for name in names:
                if not name.endswith((".c", ".h")):
                    continue
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    headers = INCLUDE.findall(f.read())
                path = os.path.relpath(path, root)
                path = path.removeprefix("src/")
                module = os.path.splitext(path)[0]
                into = {os.path.splitext(h)[0] for h in headers}
                found.setdefault(module, set()).update(into - {module})
    return found


def circles(edges):
    """Tarjan's strongly connected components."""
    index, low, stack, out = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            out.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return [c for c in out if len(c) > 1]


def reachable(allowed, room):
    seen, todo = set(), list(allowed.get(room, ()))
    while todo:
        other = todo.pop()
        if other not in seen:
            seen.add(other)
            todo += allowed.get(other, ())
    return seen


def picture(allowed):
    wide = max(map(len, allowed))
    lines = []
    for room in reversed(allowed):
        direct = [o for o in allowed[room] if not any(
            o in reachable(allowed, p) for p in allowed[room])]
        if direct:
            lines.append(f"    {room:{wide}} -> {', '.join(direct)}")
    return "\n".join(lines) + "\n"


def complaints(root):
    allowed, edges = layers(root), includes(root)
    rooms = {m: os.path.dirname(m) for m in edges}
    used = {(rooms[m], os.path.dirname(o)) for m, into in edges.items()
            for o in into}
    for room, others in allowed.items():
        if room in reachable(allowed, room):
            yield f"layers.txt: {room} includes itself by way of others"
        for other in others:
            if (room, other) not in used:
                yield f"layers.txt: {room} does not use {other}"
    for circle in circles(edges):
        if len(circle) > CIRCLE_MAX:
            yield f"{len(circle)} modules in a circle: {' '.join(circle)}"
    with open(f"{root}/src/README.md", encoding="utf-8") as f:
        if picture(allowed) not in f.read():
            yield "src/README.md: not the picture of rooms.py --picture"


def main(arguments):
    wanted = arguments[:1] == ["--picture"]
    root = (arguments[wanted:] or ["."])[0]
    if wanted:
        print(picture(layers(root)), end="")
        return 0
    found = list(complaints(root))
    print("".join(f"{text}\n" for text in found), end="")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
