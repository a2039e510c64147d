# SPDX-License-Identifier: MIT
"""What the kernel knows of a process, and of the library inside it."""

import os
import re

PAGE_HEAD = re.compile(
    r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ (\d+)\s*(.*)$")

# Objects that are in the process because of the library.
OBJECTS = ("libsampleprof.so",)


def _mappings(pid):
    """(inode, name, resident bytes, flags) of each mapping."""
    inode, name, rss = None, None, 0
    with open(f"/proc/{pid}/smaps", encoding="utf-8",
              errors="replace") as lines:
        for line in lines:
            head = PAGE_HEAD.match(line)
            if head:
                inode, name, rss = int(head[1]), head[2], 0
            elif line.startswith("Rss:"):
                rss = int(line.split()[1]) * 1024
            elif line.startswith("VmFlags:"):
                yield inode, name, rss, line.split()[1:]


def memory(pid):
    """Resident bytes: `total`; `tables`, the anonymous mappings without huge
    pages, as the library makes its tables and newer kernels thread stacks;
    `profile`, the mapped part of the profile; `objects`, code and data of the
    library."""
    found = {"total": 0, "tables": 0, "profile": 0, "objects": 0}
    for inode, name, rss, flags in _mappings(pid):
        found["total"] += rss
        if inode == 0 and not name and "nh" in flags:
            found["tables"] += rss
        elif name.endswith(".sprof"):
            found["profile"] += rss
        elif os.path.basename(name).startswith(OBJECTS):
            found["objects"] += rss
    return found


def cpu_s(pid):
    """Seconds of processor time, with those of its ended children."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        fields = f.read().rpartition(")")[2].split()
    return sum(int(n) for n in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def disk_bytes(path):
    """Bytes of disk that a sparse file takes."""
    return os.stat(path).st_blocks * 512
