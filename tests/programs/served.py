# SPDX-License-Identifier: MIT
"""A file system with the files `file0`, `file1`, ..., which this process serves
(FUSE), as `served.py DIRECTORY CONTENT...`: whoever stops it has others wait
for an answer.  It says "ready", and ends with its standard input.  A line
there, "silent 1 OPEN READ", names operations of a file that it reads from then
on and never answers: who asks cannot even be killed.  It says "silent".  LATER
is to read what is not its beginning."""

import ctypes
import os
import select
import struct
import sys

ROOT, FILE = 1, 2  # and following
LOOKUP, FORGET, GETATTR, OPEN, READ, WRITE = 1, 2, 3, 14, 15, 16
RELEASE, FSYNC, FLUSH, INIT, OPENDIR, INTERRUPT = 18, 20, 25, 26, 27, 36
BATCH_FORGET = 42
LATER = 1000
MAX_BYTES = 1 << 17


def attributes(node, size):
    mode = 0o40755 if node == ROOT else 0o100777
    return struct.pack("<6Q10I", node, size, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0,
                       0, 0, 4096, 0)


def find(name):
    """The node of that name."""
    number = name.removeprefix(b"file")
    return FILE + int(number) if number.isdigit() else ROOT


def answer(operation, node, text, contents):
    """(Error, answer).  Nothing may be kept: each question is asked again."""
    content = contents.get(node, b"")
    if operation == INIT:
        return 0, struct.pack("<4I2H2I2H8I", 7, 31, MAX_BYTES, 0, 12, 9,
                              MAX_BYTES, 1, 32, 0, *[0] * 8)
    if operation == LOOKUP:
        node = find(text.rstrip(b"\0"))
        if node not in contents:
            return -2, b""
        return 0, struct.pack("<5Q", node, 0, 0, 0, 0) + attributes(
            node, len(contents[node]))
    if operation == GETATTR:
        return 0, struct.pack("<2Q", 0, 0) + attributes(node, len(content))
    if operation in (OPEN, OPENDIR):
        return 0, struct.pack("<Q2I", 1, 0, 0)
    if operation == READ:
        _, at, size = struct.unpack("<2QI", text[:20])
        return 0, bytes(content[at:at + size])
    if operation == WRITE:
        _, at, size = struct.unpack("<2QI", text[:20])
        content[at:at + size] = text[40:40 + size]
        return 0, struct.pack("<2I", size, 0)
    return (0 if operation in (RELEASE, FSYNC, FLUSH) else -38), b""


def is_silent(silent, operation, node, text):
    """`silent`: pairs of an operation and a node.  A name is looked up in the
    root."""
    if operation == LOOKUP:
        node = find(text.rstrip(b"\0"))
    return (operation, node) in silent or (
        operation == READ and (LATER, node) in silent and
        struct.unpack("<Q", text[8:16])[0])


def main(folder, *paths):
    contents = {}
    for path in paths:
        with open(path, "rb") as file:
            contents[FILE + len(contents)] = bytearray(file.read())
    device = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"served", folder.encode(), b"fuse", 0,
                  b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" %
                  device):
        sys.exit(os.strerror(ctypes.get_errno()))
    print("ready", flush=True)
    silent = set()
    while True:
        if 0 in select.select([device, 0], [], [])[0]:
            words = os.read(0, 4096).split()
            if not words:
                return
            silent |= {(globals()[w.decode()], FILE + int(words[1]))
                       for w in words[2:]}
            print("silent", flush=True)
            continue
        question = os.read(device, MAX_BYTES + 4096)
        _, operation, number, node = struct.unpack("<2I2Q", question[:24])
        if operation in (FORGET, BATCH_FORGET, INTERRUPT) or (
                is_silent(silent, operation, node, question[40:])):
            continue
        error, text = answer(operation, node, question[40:], contents)
        os.write(device, struct.pack("<IiQ", 16 + len(text), error, number) +
                 text)


if __name__ == "__main__":
    main(*sys.argv[1:])
