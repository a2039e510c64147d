# SPDX-License-Identifier: MIT
"""Shared by the end-to-end tests: running a program under the library, and
reading the profiles that it leaves.

A preload that was silently ignored looks like a program without allocations.
So every check of a profile first requires samples or exact counts
(Profile.require_samples).
"""

import ctypes
import dataclasses
import functools
import glob
import importlib
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

MACHINE = platform.machine()
LIBDIR = f"/usr/lib/{MACHINE}-linux-gnu/"
# The dynamic loaders of glibc and of musl.
LOADER = {"x86_64": "/lib64/ld-linux-x86-64.so.2",
          "aarch64": "/lib/ld-linux-aarch64.so.1"}[MACHINE]
MUSL_LOADER = f"/lib/ld-musl-{MACHINE}.so.1"

# Allocators below the library: name, file, Debian package.
ALLOCATORS = {
    "glibc": None,
    "jemalloc": (LIBDIR + "libjemalloc.so.2", "libjemalloc2"),
    "tcmalloc": (LIBDIR + "libtcmalloc_minimal.so.4",
                 "libtcmalloc-minimal4"),
    "mimalloc": (LIBDIR + "libmimalloc.so.2", "libmimalloc2.0"),
}

# A program that runs longer has hung, also where others want the processor.
TIMEOUT_S = 240


def _library():
    return os.environ["SAMPLEPROF_SO"]


def _report():
    return os.environ["SAMPLEPROF_REPORT"]


def target(name):
    """Path of a program or library made from targets/."""
    path = os.path.join(os.environ["SAMPLEPROF_TARGETS"], name)
    if not os.path.exists(path):
        raise AssertionError(
            f"{path} was not built; a package that it is linked with was "
            "missing when the build was configured")
    return path


def tool(name="sampleprof"):
    """A program beside sampleprof-report."""
    return os.path.join(os.path.dirname(_report()), name)


def run_report(*arguments, **how):
    """How sampleprof-report ended, and what it wrote."""
    how.setdefault("timeout", TIMEOUT_S)
    return subprocess.run([_report(), *map(str, arguments)],
                          capture_output=True, check=False, **how)


def report(*arguments, code=0, env=None):
    """What sampleprof-report writes, or says where it is to fail; then it
    writes nothing, unless it judges (3)."""
    done = run_report(*arguments, env={**os.environ, "LC_ALL": "C.UTF-8",
                                       **(env or {})})
    if done.returncode != code:
        raise AssertionError(f"{arguments}: exit {done.returncode}, expected "
                             f"{code}: {done.stderr.decode()}")
    if code in (1, 2) and done.stdout:
        raise AssertionError(f"{arguments}: fails, and says {done.stdout}")
    return (done.stderr if code else done.stdout).decode()


def require(path, package):
    """A file of the system, or a failure that says what to install."""
    found = path if os.path.isabs(path) else shutil.which(path)
    if not found or not os.path.exists(found):
        raise AssertionError(f"{path} is missing: install the Debian package "
                             f"{package}")
    return found


def musl_gcc():
    """musl's compiler.  On aarch64 gcc's own library asks glibc whether the
    processor has atomic instructions, so they are compiled in place."""
    compiler = [require("musl-gcc", "musl-tools")]
    return compiler + ["-mno-outline-atomics"] * (MACHINE == "aarch64")


def wait_until(condition, why=lambda: ""):
    """Until the condition holds; why() says what is there instead."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never came true: {why()}")
        time.sleep(0.005)


class widened:  # pylint: disable=invalid-name
    """An interval of 95 % with its ends three times as far from its value: a
    right one misses the truth with a probability of 4e-9 (5.9 standard errors),
    given samples enough for the normal law.  For single results, of which a
    wrong implementation is far off."""

    def __init__(self, interval, times=3):
        value = interval["value"]
        self.lo = value - times * (value - interval["lo"])
        self.hi = (math.inf if interval["hi"] is None else
                   value + times * (interval["hi"] - value))

    def __contains__(self, truth):
        return self.lo <= truth <= self.hi

    def __repr__(self):
        return f"[{self.lo}, {self.hi}]"


def remove_group(path):
    """A control group, once its last process has left it."""
    def is_gone():
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True
    wait_until(is_gone, lambda: path)


def wait_for_cpu(pid, seconds):
    """Until a process has used so much CPU time from now on: what it does
    meanwhile does not depend on who else wants the processor."""
    clock = ~pid << 3 | 2  # as clock_getcpuclockid(3) has it
    start = time.clock_gettime(clock)
    wait_until(lambda: time.clock_gettime(clock) - start >= seconds)


def allocator(name):
    """What to preload after the library so that it works on `name`."""
    if ALLOCATORS[name] is None:
        return ()
    return (require(*ALLOCATORS[name]),)


def with_frames(said):
    """The JSON of the report, which has each frame once, with the frames in each
    stack."""
    frames = said.pop("frames", None)
    for stack in said["stacks"] if frames is not None else ():
        stack["frames"] = [frames[i] for i in stack["frames"]]
    return said


class Profile:
    """One profile file as sampleprof-report --json tells it."""

    def __init__(self, path, damaged=False):
        self.path = path
        self.json = with_frames(json.loads(report("--json", path)))
        if self.json["damage"]["text"] and not damaged:
            raise AssertionError(f"{path} is damaged: {self.json['damage']}")

    @property
    def end(self):
        return self.json["end"]

    @property
    def samples(self):
        return self.json["samples"]

    @property
    def exact(self):
        """(bytes, objects) that were allocated."""
        exact = self.json["exact"]
        return exact["alloc_bytes"], exact["alloc_objects"]

    @property
    def estimate(self):
        """(bytes, objects) as estimated."""
        estimate = self.json["estimate"]
        return (estimate["alloc_bytes"]["value"],
                estimate["alloc_objects"]["value"])

    @property
    def settings(self):
        return self.json["settings"]

    def lost(self):
        """The losses that happened, but for one that every process may have:
        threads may be alive when it ends."""
        return {k: v for k, v in self.json["losses"].items()
                if v and k != "bytes_after_exit"}

    @property
    def stacks(self):
        return self.json["stacks"]

    def function(self, name):
        """Figures of a function, all zero if it is not there."""
        found = [f for f in self.json["functions"] if f["name"] == name]
        if len(found) > 1:
            raise AssertionError(f"{self.path}: {len(found)} functions {name}")
        zero = {"value": 0, "lo": 0, "hi": 0}
        return found[0] if found else {
            "name": name, "module": None, "samples": 0, "cum_samples": 0,
            "flat_bytes": zero, "cum_bytes": zero, "flat_objects": zero}

    def modules(self):
        """Names, without directories, of the modules in all stacks."""
        return {os.path.basename(f["module"] or "")
                for s in self.stacks for f in s["frames"]}

    def stacks_with(self, name):
        """The stacks with a frame of that function."""
        return [s for s in self.stacks
                if any(f["function"] == name for f in s["frames"])]

    def allocated_under(self, name):
        """(bytes, samples) of the stacks with a frame of that function: at
        period 1 the exact bytes and the number of allocations."""
        stacks = self.stacks_with(name)
        return (sum(s["flat_bytes"]["value"] for s in stacks),
                sum(s["samples"] for s in stacks))

    def require_samples(self, least=1):
        if self.samples < least:
            raise AssertionError(
                f"{self.path}: {self.samples} samples, expected at least "
                f"{least}: was the library bypassed? {self.settings}")
        return self


@dataclasses.dataclass
class Result:
    """How a program ended, what it wrote, the profiles it left."""
    returncode: int
    stdout: bytes
    stderr: bytes
    paths: list
    pid: int

    def values(self):
        """The lines "name number..." that the targets print; values of the
        same name are added."""
        values = {}
        for line in self.stdout.decode().splitlines():
            name, *numbers = line.split()
            numbers = [int(n) for n in numbers]
            if name in values:
                numbers = [a + b for a, b in zip(values[name], numbers)]
            values[name] = numbers
        return {k: v[0] if len(v) == 1 else tuple(v)
                for k, v in values.items()}

    def profile(self):
        """The only profile."""
        if len(self.paths) != 1:
            raise AssertionError(f"{len(self.paths)} profiles, expected one: "
                                 f"{self.paths}; standard error was "
                                 f"{self.stderr.decode()}")
        return Profile(self.paths[0])

    def profiles(self):
        """By process id, as the names say; one per process."""
        by_pid = {}
        for path in self.paths:
            pid = int(os.path.basename(path).split(".")[-2])
            if pid in by_pid:
                raise AssertionError(f"two profiles of {pid}: {self.paths}")
            by_pid[pid] = Profile(path)
        return by_pid


@functools.cache
def _directory():
    """Where tests have theirs: not in memory, which would be that of a control
    group, as where /tmp is a tmpfs."""
    directory = tempfile.gettempdir()
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        kinds = {f[1]: f[2] for f in map(str.split, mounts)}
    return "/var/tmp" if kinds.get(directory) == "tmpfs" else directory


def beside_others(ask, *words):
    """How ask() ended, which runs the command of these words.  `ps` looks at
    every process, also at those that programs.unanswered makes so that it
    cannot: it is asked again until these are gone."""
    while True:
        done = ask()
        if words[:1] != ("ps",) or \
                "was not answered" not in " ".join(done.stderr.split()):
            return done


class Case(unittest.TestCase):
    """A test with a directory of its own."""

    longMessage = True

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sampleprof-test-",
                                    dir=_directory())
        self.addCleanup(shutil.rmtree, self.dir)
        self.runs = 0
        self.out = os.path.join(self.dir, "profiles")
        os.mkdir(self.out)

    def environment(self, preload=(), shim=True, env=None, **settings):
        """Environment of a program; settings period="1" become
        SAMPLEPROF_PERIOD=1.  Whoever gives no seed has the same in each run:
        no test fails by the chance of its samples.  No program reads what the
        user has set in files, as .gitconfig."""
        full = {k: v for k, v in os.environ.items()
                if not k.startswith(("SAMPLEPROF_", "LD_", "MALLOC_"))}
        full["LC_ALL"] = "C"
        full["HOME"] = os.path.join(self.dir, "home")  # root can make any
        libraries = ([_library()] if shim else []) + list(preload)
        if libraries:
            full["LD_PRELOAD"] = " ".join(libraries)
        if shim:
            full["SAMPLEPROF_OUT"] = self.out
            full["SAMPLEPROF_SEED"] = "1"
            for name, value in settings.items():
                full["SAMPLEPROF_" + name.upper()] = str(value)
        full.update(env or {})
        return full

    def start(self, argv, preload=(), shim=True, env=None, settings=None,
              **popen):
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("cwd", self.dir)
        # pylint: disable=consider-using-with
        return subprocess.Popen(
            [str(a) for a in argv], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment(preload, shim, env, **(settings or {})),
            **popen)

    def start_redis(self, **how):
        """A server that keeps nothing, once it answers: the process, a function
        that says a command to it and returns what it says, and its socket.
        `how` as for start()."""
        server = require("redis-server", "redis-server")
        client = require("redis-cli", "redis-tools")
        socket = os.path.join(self.dir, "redis.sock")
        process = self.start(
            [server, "--port", "0", "--unixsocket", socket, "--save", "",
             "--appendonly", "no", "--dir", self.dir, "--loglevel", "warning"],
            **how)
        self.addCleanup(process.kill)

        def ask(*command):
            return subprocess.run([client, "-s", socket, *command],
                                  capture_output=True, check=False,
                                  timeout=TIMEOUT_S).stdout

        wait_until(lambda: process.poll() is not None or
                   ask("ping") == b"PONG\n")
        self.assertIsNone(process.poll(), "the server ended")
        return process, ask, socket

    def ready_child(self, process):
        """The pid of its child, a program_ledger that is ready.  Both are gone
        when the test ends."""
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        while process.stdout.readline() != b"ready\n":
            self.assertIsNone(process.poll())
        with open(f"/proc/{process.pid}/task/{process.pid}/children",
                  encoding="ascii") as children:
            return int(children.read().split()[0])

    def finish(self, process, stdin=None):
        try:
            stdout, stderr = process.communicate(stdin, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.fail(f"{process.args} hung for {TIMEOUT_S} s")
        paths = sorted(glob.glob(os.path.join(self.out, "*.sprof*")))
        return Result(process.returncode, stdout, stderr, paths, process.pid)

    def execute(self, *argv, stdin=None, clean=True, preload=(), shim=True,
                env=None, popen=None, **settings):
        """Run to the end, with profiles in a new directory.  `clean`: it must
        exit with 0."""
        self.runs += 1
        self.out = os.path.join(self.dir, f"profiles-{self.runs}")
        os.mkdir(self.out)
        popen = dict(popen or {})
        if stdin is not None:
            popen["stdin"] = subprocess.PIPE
        process = self.start(argv, preload, shim, env, settings, **popen)
        result = self.finish(process, stdin)
        if clean:
            self.assertEqual(
                result.returncode, 0,
                f"{argv}: {result.stdout.decode(errors='replace')[-2000:]} "
                f"{result.stderr.decode(errors='replace')[-2000:]}")
        return result

    def sampleprof(self, *argv, code=0, **popen):
        """How the command ended, which is to be with that code unless it is
        None, and what it wrote, as text."""
        popen.setdefault("cwd", self.dir)
        popen.setdefault("env", self.environment(shim=False))
        done = beside_others(lambda: subprocess.run(
            [tool(), *map(str, argv)], capture_output=True, text=True,
            timeout=TIMEOUT_S, check=False, **popen),
                             *(argv if code == 0 else ()))
        if code is not None:
            self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def fill_disk(self, size, disk, copy, *argv, program="program_plain"):
        """Record all objects of a program, or of so many of program_plain, on
        a file system of that size at `disk`; its profile is `copy`."""
        script = (f"mount -t tmpfs -o size={size} none {disk} && "
                  f"LD_PRELOAD=$LIBRARY {target(program)} "
                  f"{' '.join(map(str, argv))}; "
                  f"e=$?; cp --sparse=always {disk}/a.sprof {copy}; exit $e")
        result = self.execute(
            "unshare", "-m", "sh", "-c", script, shim=False, clean=False,
            env={"LIBRARY": os.environ["SAMPLEPROF_SO"],
                 "SAMPLEPROF_OUT": disk + "/a.sprof",
                 "SAMPLEPROF_PERIOD": "1"})
        if b"mount" in result.stderr or b"unshare" in result.stderr:
            self.skipTest(f"cannot mount here: {result.stderr.decode()}")
        self.assertEqual(result.returncode, 0, result.stderr)


def nightly(item):
    """Mark a test, or a whole class, that may fail by chance once in ten
    million runs or more often, or that needs the timing of another program:
    it runs in tools/check --nightly only."""
    item.is_nightly = True
    return item


def nightly_too(item):
    """Mark a test, or a whole class, that runs in both lists: it does few
    rounds of something, and many in the nightly list (rounds())."""
    item.is_in_both = True
    return item


def rounds(few, many):
    """So many, or so many in the nightly list."""
    return many if "SAMPLEPROF_TEST_NIGHTLY" in os.environ else few


class _Loader(unittest.TestLoader):
    """Finds the nightly tests, or the others."""

    def __init__(self, wanted):
        super().__init__()
        self.wanted = wanted

    def getTestCaseNames(self, case):  # pylint: disable=invalid-name
        def has(name, mark):
            return hasattr(case, mark) or hasattr(getattr(case, name), mark)

        return [name for name in super().getTestCaseNames(case)
                if has(name, "is_in_both") or
                self.wanted == has(name, "is_nightly")]


# Variables, by how their names begin, that change what the programs and tools
# of the tests do.
FOREIGN = ("ASAN_", "CI", "COLUMNS", "DEBUGINFOD_", "GIT", "GLIBC_TUNABLES",
           "JAVA_TOOL_", "JQ_", "LANG", "LC_", "LD_", "LESS", "LINES", "LSAN_",
           "MALLOC_", "MIMALLOC_", "NODE_OPTIONS", "NO_COLOR", "PAGER", "PERL",
           "POSIXLY", "PYROSCOPE_", "PYTHON", "TCMALLOC_", "TSAN_", "TZ",
           "UBSAN_", "VALGRIND_", "all_proxy", "http_proxy", "https_proxy",
           "ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "XDG_")


def clean_environment():
    """Drops what the user has set, but for the paths and lengths of tests."""
    for name in list(os.environ):
        if name.startswith(FOREIGN) or (
                name.startswith("SAMPLEPROF_") and name not in PATHS and
                not name.startswith("SAMPLEPROF_TEST_")):
            del os.environ[name]
    os.environ["LANG"] = "C.UTF-8"


DEBUG_FILES = "/usr/lib/debug"
CLONE_NEWNS = 0x20000


def hide_debug_files():
    """What debug packages are installed (valgrind needs the C library's) is not
    to change what a report says, and to unpack them is two thirds of what a
    small one costs.  Where we may, they are hidden from this process and its
    children."""
    libc = ctypes.CDLL(None)
    if (os.path.isdir(DEBUG_FILES) and os.geteuid() == 0 and
            libc.unshare(CLONE_NEWNS) == 0):
        for words in (["--make-rprivate", "/"],
                      ["-t", "tmpfs", "none", DEBUG_FILES]):
            subprocess.run(["mount", *words], check=False)


PATHS = ("SAMPLEPROF_SO", "SAMPLEPROF_REPORT", "SAMPLEPROF_TARGETS")


def print_kinds():
    # Nothing is run; modules make paths of these when they are imported.
    os.environ.update(dict.fromkeys(PATHS, ""))
    for path in sorted(glob.glob(os.path.join(os.path.dirname(__file__),
                                              "test_*.py"))):
        test = os.path.basename(path)[:-len(".py")]
        module = importlib.import_module(test)
        for kind in ("programs", "nightly"):
            tests = _Loader(kind == "nightly").loadTestsFromModule(module)
            if tests.countTestCases():
                print(test.replace("test_", kind + ".", 1))


def main():
    """harness.py TEST [--build-dir DIRECTORY] [--nightly | --all] [unittest
    options]: run the tests of tests/programs/test_TEST.py, those that are
    marked nightly, or both.  harness.py --kinds: a line programs.TEST or
    nightly.TEST for what each file has."""
    if sys.argv[1] == "--kinds":
        print_kinds()
        return
    clean_environment()
    test = "test_" + sys.argv.pop(1)
    loader = _Loader("--nightly" in sys.argv)
    if {"--nightly", "--all"} & set(sys.argv):
        os.environ["SAMPLEPROF_TEST_NIGHTLY"] = "1"
    if "--all" in sys.argv:
        loader = unittest.TestLoader()
    sys.argv = [word for word in sys.argv
                if word not in ("--nightly", "--all")]
    if "--build-dir" in sys.argv:
        at = sys.argv.index("--build-dir")
        build = os.path.abspath(sys.argv[at + 1])
        del sys.argv[at:at + 2]
        os.environ.setdefault("SAMPLEPROF_SO",
                              build + "/src/agent/libsampleprof.so")
        os.environ.setdefault("SAMPLEPROF_REPORT",
                              build + "/tools/sampleprof-report")
        os.environ.setdefault("SAMPLEPROF_TARGETS", build + "/tests/programs")
    for name in PATHS:
        if not os.path.exists(os.environ.get(name, "")):
            sys.exit(f"give --build-dir, or {name} in the environment")
    run = functools.partial(unittest.main, module=test, verbosity=2,
                            testLoader=loader)
    module = importlib.import_module(test)
    if not getattr(module, "NEEDS_DEBUG_FILES", False):
        hide_debug_files()
    # What a module has to do around its tests.
    getattr(module, "main", lambda run: run())(run)


if __name__ == "__main__":
    main()
