# SPDX-License-Identifier: MIT
"""The functions and lines of Python programs, as the interpreter's frames say:
beside tracemalloc, and where the stack is an odd one.
"""

import collections
import functools
import json
import os
import subprocess
import sysconfig
import unittest

import harness

PYTHON = "/usr/bin/python3"

# Prints, as JSON, what each line has alive by tracemalloc's count.
TRACED = """
import itertools, json, sys, tracemalloc
class Box:
    def __init__(self, n):
        self.data = bytearray(n)
    def more(self, n):
        return [bytearray(n) for _ in range(3)]
def steps(n):
    for i in range(4):
        yield (bytearray(n),
               bytearray(2 * n))
def deep(times, n):
    for _ in times:
        return deep(times, n)
    return bytearray(n)
def pick(key=lambda v: bytearray(70000 + v)):
    return [key(v) for v in range(5)]
def caught(n):
    try:
        raise ValueError(bytearray(n))
    except ValueError as error:
        return error.args
async def wait(n):
    return bytearray(n)
def drive(n):
    try:
        wait(n).send(None)
    except StopIteration as done:
        return done.value
def work():
    kept = [Box(31000 + i) for i in range(7)]
    kept += [box.more(33000) for box in kept]
    kept.append(list(steps(35000)))
    kept.append(deep(itertools.repeat(0, 50), 37000))
    kept.append(deep(itertools.repeat(0, 2000), 38000))
    kept.append(pick())
    kept.append(caught(39000))
    kept.append(drive(41000))
    exec("def made(n):\\n    return bytearray(n)\\nkept.append(made(43000))",
         {"kept": kept})
    kept.append(
        (bytearray(46000),
         bytearray(47000), [
             bytearray(48000) for _ in
             range(2)],
         bytearray(49000)))
    exec("\\n" * 5000 + "kept.append(bytearray(50000))\\n" +
         "\\n" * 70 + "if 1:" + " " * 300 + "kept.append(bytearray(51000) +" +
         "\\n" * 600 + "bytearray(52000))\\nkept.append(bytearray(53000))",
         {"kept": kept})
    exec("\\n\\ndef made(n):\\n    return bytearray(n)\\n"
         "kept.append(made(45000))", {"kept": kept})
    return kept
sys.setrecursionlimit(5000)
tracemalloc.start()
before = tracemalloc.take_snapshot()
kept = work()
after = tracemalloc.take_snapshot()
sums = {}
for trace in after.traces:
    if trace.size > 20000:
        frame = trace.traceback[0]
        at = f"{frame.filename}:{frame.lineno}:{trace.size}"
        sums[at] = sums.get(at, 0) + 1
print(json.dumps(sums))
sys.stdout.flush()
import os
os._exit(0)
"""

# Each function makes objects of a size of its own, in an odd place.
ODD = """
import ctypes, os, signal, sys, threading
def in_thread(n):
    return [bytearray(n) for _ in range(10)]
def in_handler(signal, frame):
    bytearray(52000)
def in_callback(a, b):
    bytearray(53000)
    return 0
def in_child():
    for _ in range(10):
        bytearray(54000)
class Odd:
    def __del__(self):
        bytearray(55000)
    def __lt__(self, other):
        bytearray(56000)
        return True
def traced():
    bytearray(57000)
def grandchild():
    bytearray(58000)
threads = [threading.Thread(target=in_thread, args=(51000,))
           for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
signal.signal(signal.SIGUSR1, in_handler)
for _ in range(10): os.kill(os.getpid(), signal.SIGUSR1)
call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
numbers = (ctypes.c_int * 11)(*range(11))
ctypes.CDLL(None).qsort(numbers, 11, 4, call(in_callback))
child = os.fork()
if not child:
    in_child()
    if not os.fork():
        grandchild()
        os._exit(0)
    os.wait()
    os._exit(0)
os.waitpid(child, 0)
odd = [Odd() for _ in range(10)]
odd.sort()
del odd
sys.settrace(lambda *_: None)
for _ in range(10): traced()
sys.settrace(None)
"""

RUNNING = """
import sys
def serve(n):
    return bytearray(n)
def loop():
    while True:
        kept = [serve(60000) for _ in range(100)]
        print("turn", flush=True)
        sys.stdin.readline()
loop()
"""

# What allocates in another interpreter of the process has no names in 3.11.
OTHER = """
import _xxsubinterpreters
def run(other):
    _xxsubinterpreters.run_string(other, "for _ in range(7): bytearray(61000)")
def here():
    bytearray(62000)
run(_xxsubinterpreters.create())
here()
"""

EMBEDDED = """
def embedded():
    for _ in range(10):
        bytearray(63000)
embedded()
"""

INSTALLED = """
def load():
    return [bytearray(64000) for _ in range(10)]
"""


class Python(harness.Case):

    def start_text(self, text, run, **settings):
        path = os.path.join(self.dir, "program.py")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return run(path, env={"PYTHONMALLOC": "malloc"}, **settings)

    def run_text(self, text, **settings):
        return self.start_text(
            text, lambda path, **how: self.execute(
                PYTHON, "-I", "-S", path, **how),
            period=1, **settings)

    def samples(self, path):
        """(frames, size) of each sample; functions of Python as
        ("py::load", file, line)."""
        stacks, samples = {}, []
        lines = map(json.loads, harness.report(
            "export", "jsonl", "--all-frames", "-o", "-",
            path).splitlines())
        for line in lines:
            if line["type"] == "stack":
                stacks[line["id"]] = [
                    (f["function"], f["file"], f["line"])
                    for f in line["frames"]]
            elif line["type"] == "sample":
                samples.append((line["stack"], line["size"]))
        self.assertTrue(samples)
        return [(stacks.get(stack, []), size) for stack, size in samples]

    def check_lines(self, **settings):
        """Where tracemalloc says that each large object was allocated."""
        result = self.run_text(TRACED, **settings)
        truth = json.loads(result.stdout)
        self.assertGreater(len(truth), 9, truth)
        found = collections.Counter()
        for frames, size in self.samples(result.profile().path):
            at = next((f for f in frames if f[0].startswith("py::")), None)
            if at:
                found[f"{at[1]}:{at[2]}:{size}"] += 1
        self.assertEqual({at: found[at] for at in truth}, truth)

    def test_lines(self):
        self.check_lines()

    def test_libunwind(self):
        """Of whose walk the registers at each frame are not known."""
        self.check_lines(unwind="libunwind")

    def check_callers(self, samples, size, times, *callers):
        """So many objects of that size have these functions of Python, the
        innermost first, and whole stacks."""
        stacks = [frames for frames, s in samples if s == size + 1]
        self.assertEqual(len(stacks), times, size)
        for frames in stacks:
            names = [f[0].partition(" [in ")[0] for f in frames
                     if f[0].startswith("py::")]
            self.assertEqual(names[:len(callers)],
                             ["py::" + caller for caller in callers])
            self.assertFalse(frames[-1][0].startswith("py::"))

    def test_odd_places(self):
        """Threads, handlers of signals, calls from C, destructors, operators,
        tracing, forked children."""
        result = self.run_text(ODD, clean=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        profiles = result.profiles()
        self.assertEqual(len(profiles), 3)
        samples = self.samples(profiles[result.pid].path)
        check = functools.partial(self.check_callers, samples)
        check(51000, 40, "in_thread.<locals>.<listcomp>", "in_thread",
              "Thread.run", "Thread._bootstrap_inner", "Thread._bootstrap")
        check(52000, 10, "in_handler", "<module>")
        check(53000, sum(s == 53001 for _, s in samples), "in_callback",
              "<module>")
        check(55000, 10, "Odd.__del__", "<module>")
        check(56000, 9, "Odd.__lt__", "<module>")
        check(57000, 10, "traced", "<module>")
        others = [self.samples(profile.path)
                  for pid, profile in profiles.items() if pid != result.pid]
        child = next(o for o in others if any(s == 54001 for _, s in o))
        self.check_callers(child, 54000, 10, "in_child", "<module>")
        grandchild = next(o for o in others if any(s == 58001 for _, s in o))
        self.check_callers(grandchild, 58000, 1, "grandchild", "<module>")
        for profile in profiles.values():
            self.assertEqual(profile.lost(), {})

    def test_attached(self):
        """A process that runs: from the next turn on."""
        process = self.start_text(
            RUNNING, lambda path, **how: self.start(
                [PYTHON, "-I", "-S", path], shim=False, stdin=subprocess.PIPE, **how))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"turn\n")
        path = os.path.join(self.dir, "attached.sprof")
        self.sampleprof("attach", "--period", "1", "--out", path,
                        str(process.pid))
        for _ in range(2):
            process.stdin.write(b"\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), b"turn\n")
        self.sampleprof("detach", str(process.pid))
        self.check_callers(self.samples(path), 60000, 200, "serve",
                           "loop.<locals>.<listcomp>", "loop", "<module>")

    def test_report(self):
        """Flat bytes are those of Python's functions, with their files."""
        result = self.run_text(TRACED)
        profile = result.profile()
        found = profile.function("py::deep")
        self.assertEqual(found["module"], "[python]")
        self.assertEqual(os.path.basename(found["file"]), "program.py")
        self.assertGreaterEqual(found["flat_bytes"]["value"], 75002)
        self.assertIn("py::deep  (program.py)\n",
                      harness.report("report", profile.path))
        # Its own source, which the profile names, is read.
        done = harness.run_report("list", "py::deep", profile.path)
        self.assertIn(b"return deep(times, n)", done.stdout)
        # Two of one name on different lines of texts are one, in one "file".
        made = profile.function("py::made")
        self.assertGreaterEqual(made["flat_bytes"]["value"], 88002)


    def test_another_interpreter(self):
        """Its functions have no names, which is counted; those around it do."""
        profile = self.run_text(OTHER).profile()
        samples = self.samples(profile.path)
        self.check_callers(samples, 61000, 7, "run", "<module>")
        self.check_callers(samples, 62000, 1, "here", "<module>")
        lost = profile.lost()
        self.assertEqual(list(lost), ["python_not_read"])
        self.assertGreaterEqual(lost["python_not_read"], 7)

    def test_unread(self):
        """A version that cannot be read is named, also after a kill."""
        result = self.execute(harness.target("program_python_unread"),
                              clean=False, period=1)
        self.assertEqual(result.returncode, -9)
        text = harness.report(result.profile().path)
        self.assertIn("and this is 3.99", " ".join(text.split()))

    def test_embedded(self):
        """In a library that is loaded twice, each time at another place."""
        library = os.path.join(*sysconfig.get_config_vars(
            "LIBDIR", "INSTSONAME"))
        if not os.path.exists(library):
            self.skipTest("the library of Python is not installed")
        result = self.execute(harness.target("program_embeds"), library,
                              EMBEDDED, "2", period=1,
                              env={"PYTHONMALLOC": "malloc"})
        profile = result.profile()
        self.check_callers(self.samples(profile.path), 63000, 20, "embedded",
                           "<module>")
        self.assertEqual(profile.lost(), {})

    def test_installed(self):
        """The same function, wherever its file is installed."""
        paths = []
        for place in ("lib/python3.11/dist-packages/shop",
                      "venv/lib64/python3.9/site-packages/shop"):
            place = os.path.join(self.dir, place)
            os.makedirs(place)
            with open(os.path.join(place, "load.py"), "w",
                      encoding="ascii") as out:
                out.write(INSTALLED)
            profile = self.run_text(
                f"import sys; sys.path.insert(0, {place!r})\n"
                "import load; load.load()").profile()
            found = profile.function("py::load.<locals>.<listcomp>")
            self.assertEqual(found["file"], os.path.join(place, "load.py"))
            paths.append(profile.path)
        both = json.loads(harness.report("--json", *paths))["functions"]
        self.assertEqual([f["flat_bytes"]["value"] for f in both
                          if f["name"].startswith("py::load.")], [1280020])


if __name__ == "__main__":
    unittest.main()
