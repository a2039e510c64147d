# SPDX-License-Identifier: MIT
"""The probes otel_memory:alloc and :free: notes that readelf finds, and events
that a kernel's uprobes see, with and without a file. False alarm: 1e-7.

The kernel's part is skipped if there is no tracefs, or no right to use it.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import harness

TRACING = "/sys/kernel/tracing"
PERIOD = 4096
OBJECTS = harness.rounds(25000, 100000)
# |z| beyond has a probability of 6e-8 with a normal distribution.
Z_MAX = 5.4


def library():
    return os.environ["SAMPLEPROF_SO"]


def notes():
    """{name: (location, semaphore, [argument])} as readelf prints them."""
    text = subprocess.run(["readelf", "-n", library()], check=True,
                          capture_output=True, text=True).stdout
    return {name: (int(at, 16), int(semaphore, 16), arguments.split())
            for name, at, semaphore, arguments in re.findall(
                r"Provider: otel_memory\s+Name: (\w+)\s+"
                r"Location: (0x[0-9a-f]+), Base: 0x[0-9a-f]+, "
                r"Semaphore: (0x[0-9a-f]+)\s+Arguments: (.*)", text)}


def file_offset(address):
    """Where the file has what is loaded at an address."""
    with open(library(), "rb") as file:
        data = file.read()
    at, = struct.unpack_from("<Q", data, 32)
    size, n = struct.unpack_from("<HH", data, 54)
    for i in range(n):
        kind, _, offset, start, _, length = struct.unpack_from(
            "<IIQQQQ", data, at + i * size)
        if kind == 1 and start <= address < start + length:
            return offset + address - start
    raise AssertionError(f"{address:#x} is in no segment of the file")


def operand(text):
    """An operand of a note, 8@%rax or 8@-8(%rbp), as the kernel spells it."""
    def register(name):
        return name[1:] if re.match(r"r[a-d]x|r[sb]p|r[sd]i", name) else name

    place = text.split("@")[1]
    if place.startswith("%"):
        return "%" + register(place[1:])
    offset, base = re.fullmatch(r"(-?\d*)\(%(\w+)\)", place).groups()
    return f"{int(offset or 0):+d}(%{register(base)})"


def can_trace():
    if os.geteuid() != 0:
        return False
    if not os.path.exists(TRACING + "/uprobe_events"):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING],
                       stderr=subprocess.DEVNULL, check=False)
    return os.access(TRACING + "/uprobe_events", os.W_OK)


def write(path, text):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


class Trace:
    """The events of both probes, in a buffer of their own."""

    def __init__(self):
        self.group = f"sampleprof_{os.getpid()}"
        self.buffer = f"{TRACING}/instances/{self.group}"

    def __enter__(self):
        for name, (at, semaphore, arguments) in notes().items():
            values = " ".join(f"v{i}={operand(a)}:u64"
                              for i, a in enumerate(arguments))
            write(TRACING + "/uprobe_events",
                  f"p:{self.group}/{name} {library()}:{file_offset(at):#x}"
                  f"({file_offset(semaphore):#x}) {values}\n")
        os.mkdir(self.buffer)
        write(self.buffer + "/buffer_size_kb", "16384")
        write(f"{self.buffer}/events/{self.group}/enable", "1")
        return self

    def __exit__(self, *_):
        write(f"{self.buffer}/events/{self.group}/enable", "0")
        os.rmdir(self.buffer)
        for name in ("alloc", "free"):
            write(TRACING + "/uprobe_events", f"-:{self.group}/{name}\n")

    def events(self, pid):
        """[(name, (value, ...))] of a process, in their order."""
        with open(self.buffer + "/trace", encoding="ascii",
                  errors="replace") as file:
            lines = re.findall(
                rf"-{pid} +\[.*: (alloc|free): \(0x[0-9a-f]+\)(.*)",
                file.read())
        return [(name, tuple(int(v) for v in re.findall(r"=(\d+)", values)))
                for name, values in lines]


class Notes(harness.Case):
    def test_there_are_two(self):
        found = notes()
        self.assertEqual({name: len(a) for name, (_, _, a) in found.items()},
                         {"alloc": 3, "free": 1})
        semaphores = [s for _, s, _ in found.values()]
        self.assertEqual(len(set(semaphores)), 2)
        self.assertNotIn(0, semaphores)


@unittest.skipUnless(can_trace(), "needs tracefs with uprobes, and root")
class Events(harness.Case):
    """Objects of 16 to 2,320 bytes, of which OBJECTS are allocated, a sixth
    never freed."""

    def traced(self, **settings):
        settings = {"period": PERIOD, "seed": 7, **settings}
        with Trace() as trace:
            result = self.execute(harness.target("program_page_stacks"),
                                  OBJECTS, **settings)
            return result, trace.events(result.pid)

    def check(self, result, events):
        """Against what the program says of itself.  The estimate of a sample is
        w = z / p, and its variance w^2 (1 - p)."""
        truth = result.values()
        left, total, variance, freed = {}, 0, 0, 0
        for name, values in events:
            if name == "free":
                self.assertIn(values[0], left, "is no sample")
                del left[values[0]]
                freed += 1
                continue
            address, size, weight = values
            self.assertNotIn(address, left, "a free is missing")
            left[address] = weight, size
            total += weight
            variance += weight * (weight - size)
        self.assertGreater(len(events), OBJECTS / 4,
                           "was the library bypassed?")
        self.assertGreater(freed, 0.15 * OBJECTS)
        # The table of addresses, and a name that is markup.
        alloc = truth["alloc"][0] + 8 * (OBJECTS + 1) + 100
        self.assertLess(abs(total - alloc), Z_MAX * variance ** 0.5 + 8192)
        alive = sum(w for w, _ in left.values())
        spread = sum(w * (w - z) for w, z in left.values()) ** 0.5
        self.assertLess(abs(alive - truth["leaked"][0]),
                        Z_MAX * spread + 8192)
        return left

    @harness.nightly_too
    def test_without_a_file(self):
        result, events = self.traced(out="none")
        self.check(result, events)
        self.assertEqual(result.paths, [])
        self.assertEqual(sorted(os.listdir(self.dir)),
                         ["profiles", "profiles-1"])
        self.assertEqual(result.stderr, b"")

    @harness.nightly_too
    def test_the_same_samples_as_the_file(self):
        """Each weight is the file's, rounded up or down by chance."""
        result, events = self.traced()
        left = self.check(result, events)
        text = harness.report("export", "jsonl", *result.paths, "-o", "-")
        samples = [s for s in map(json.loads, text.splitlines())
                   if s["type"] == "sample"]
        samples.sort(key=lambda s: s["size"])
        weights = sorted(v[1:] for name, v in events if name == "alloc")
        self.assertEqual([s["size"] for s in samples],
                         [size for size, _ in weights])
        off = [w - s["weight_bytes"] for s, (_, w) in zip(samples, weights)]
        self.assertLess(max(map(abs, off)), 1)
        self.assertLess(abs(sum(off)), Z_MAX * 0.5 * len(off) ** 0.5)
        self.assertEqual(sum(s["freed_ns"] is None for s in samples),
                         len(left))

    @harness.nightly_too
    def test_every_allocation(self):
        """At period 1 weights are sizes, and the sums are exact."""
        result, events = self.traced(period=1, out="none")
        truth = result.values()
        for name, values in events:
            if name == "alloc":
                self.assertEqual(values[1], values[2])
        total = sum(v[2] for name, v in events if name == "alloc")
        self.assertGreaterEqual(total, truth["alloc"][0])
        self.assertLess(total, truth["alloc"][0] + 8 * (OBJECTS + 1) + 16384)

    def test_losses(self):
        """Without a file they are said at the end, if there are any."""
        for log, expected in (
                ("normal", rb"sampleprof: SAMPLEPROF_OUT=none: what the probes "
                 rb"have not seen, or not right: .*calls_left \d+\n"),
                ("quiet", b"")):
            result = self.execute(harness.target("program_left"), "alarm", 300,
                                  period=1, out="none", log=log,
                                  preload=(harness.target(
                                      "libprogram_bump.so"),))
            self.assertRegex(result.stderr, rb"\A" + expected + rb"\Z")

    def test_nobody_watches(self):
        """Semaphores are zero again, and nothing is left behind."""
        with Trace():
            pass
        result = self.execute(harness.target("program_page_stacks"), "2000",
                              period=PERIOD, out="none")
        self.assertEqual((result.paths, result.stderr), ([], b""))


def main(run):
    """With a copy of the library: an event puts a trap into the pages of its
    file, and so into every other program that has it loaded just then.  Where
    that runs in valgrind, the trap is its end."""
    with tempfile.TemporaryDirectory(prefix="sampleprof-probes-") as place:
        copy = os.path.join(place, os.path.basename(library()))
        shutil.copyfile(library(), copy)
        os.environ["SAMPLEPROF_SO"] = copy
        run()
