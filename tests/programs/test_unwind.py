#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Unwind tables and frame pointers give the same stacks of a program that has
both; the unwinder loads no library; whole stacks of C++ (exceptions, signals,
coroutines), Python, node, java, clang, Rust, Go; the same stack as in gdb; the
bytes of stack that a sample needs."""

import collections
import os
import platform
import re
import shutil
import subprocess

import harness

NEEDS_DEBUG_FILES = True  # gdb does

# What the slow path may take of a program's stack.
STACK_BYTES = 8192

COPY = os.path.join(os.path.dirname(os.environ["SAMPLEPROF_SO"]),
                    "libsampleprof-unwind.so")

FORTRAN = """subroutine leaf(a)
  real(8) :: a(*)
  real(8), allocatable :: b(:)
  allocate(b(77))
  b = a(1)
  a(1) = sum(b)
end subroutine
subroutine with_array(n)
  integer :: n
  real(8) :: a(n)
  a = n
  call leaf(a)
  print *, a(1) > 0
end subroutine
program main
  call with_array(500000)
end program
"""

# Programs of the system, which have no frame pointers: following what stands
# in the register must do no harm.
PROGRAMS = [
    ("/bin/ls", "coreutils", ["-l", "/usr"], None),
    ("/bin/bash", "bash", ["-c", "x=(); for i in {1..200}; do x+=($i); done; "
                           "echo ${x[@]}"], None),
    ("/usr/bin/perl", "perl", ["-e", "my %h = map { $_ => [1..5] } 1..500; "
                               "print scalar(keys %h)"], None),
    ("/usr/bin/python3", "python3", ["-c", "import json, re; "
                                     "print(len(json.dumps(['x'] * 999)))"],
     None),
    ("/usr/bin/git", "git", ["--version"], None),
    ("/usr/bin/xmllint", "libxml2-utils", ["-"],
     b"<r>" + b"<a b='c'>d</a>" * 500 + b"</r>"),
    ("/usr/bin/sqlite3", "sqlite3", [":memory:"],
     b"create table t(a); insert into t values(1); select * from t;"),
    ("/usr/bin/redis-server", "redis-server", ["--version"], None),
    ("/usr/bin/gdb", "gdb", ["--version"], None),
]


class Unwind(harness.Case):

    def named_stacks(self, profile):
        """Bytes and samples by the names from leaf() to main or the start of
        the thread."""
        found = collections.Counter()
        for stack in profile.stacks:
            names = [f["function"] for f in stack["frames"]]
            if names[0] != "leaf":
                continue
            for last in ("main", "run_thread"):
                if last in names:
                    key = tuple(names[:names.index(last) + 1])
                    found[key, "bytes"] += stack["flat_bytes"]["value"]
                    found[key, "samples"] += stack["samples"]
                    break
        return found

    def run_stacks(self, **settings):
        result = self.execute(harness.target("program_unwind"), "stacks",
                              period=1, **settings)
        profile = result.profile().require_samples(1440)
        self.assertEqual((profile.end, profile.lost()), ("clean", {}))
        return result, profile

    def test_same_stacks(self):
        """A program with frame pointers: both ways find all its functions,
        under every function that allocates."""
        _, right = self.run_stacks()
        _, quick = self.run_stacks(unwind="fp")
        self.assertEqual(right.settings["unwinder"], "tables")
        self.assertEqual(quick.settings["unwinder"], "fp")
        stacks = self.named_stacks(right)
        self.assertGreater(len(stacks), 2 * 2 * 2 * 60 - 1)
        self.assertEqual(max(len(key) for key, _ in stacks), 65)
        self.assertEqual(self.named_stacks(quick), stacks)
        # The C library starts both threads; nothing is missing but that.
        for stack in quick.stacks_with("leaf"):
            self.assertFalse(stack["truncated"], stack)

    def test_marked_where_it_ends(self):
        """Called back by the C library, which has no frame pointers (on
        aarch64 it has): its own callers are missing, and the stack says so."""
        result = self.execute(harness.target("program_unwind"), "callback",
                              period=1, unwind="fp")
        stacks = result.profile().stacks_with("compare")
        self.assertTrue(stacks)
        for stack in stacks:
            self.assertEqual(stack["truncated"], not IS_AARCH64, stack)
            self.assertEqual("main" in [f["function"]
                                        for f in stack["frames"]], IS_AARCH64)
        result = self.execute(harness.target("program_unwind"), "callback",
                              period=1)
        for stack in result.profile().stacks_with("compare"):
            self.assertFalse(stack["truncated"], stack)
            self.assertIn("main", [f["function"] for f in stack["frames"]])

    def test_large_frames(self):
        """Of 2 and 24 MiB, on the stacks of main, a thread, a coroutine."""
        for unwind in ("tables", "fp"):
            result = self.execute(harness.target("program_unwind"), "large",
                                  period=1, unwind=unwind, clean=False)
            if result.returncode == 77:
                self.skipTest("the limit of the stack is too small here")
            self.assertEqual(result.returncode, 0)
            stacks = result.profile().stacks_with("leaf")
            for stack in stacks:
                # What makecontext leaves in the register is no frame.
                is_end_known = unwind == "tables" or not any(
                    f["function"] == "in_coroutine" for f in stack["frames"])
                self.assertEqual(stack["truncated"], not is_end_known, stack)
            found = {tuple(f["function"] for f in s["frames"]) for s in stacks}
            for outer in (("in_main", "make_large_frames", "main"),
                          ("in_thread",), ("in_coroutine",)):
                for large in (("large",), ("large_array",), ()):
                    frames = ("leaf", *large, "large_frames", *outer)
                    self.assertTrue(
                        any(s[:len(frames)] == frames for s in found),
                        (unwind, frames, found))

    def test_automatic_array(self):
        """Of 4 MB on the stack, in a language whose compiler puts it there."""
        gfortran = shutil.which("gfortran")
        if not gfortran:
            self.skipTest("no gfortran")
        program = os.path.join(self.dir, "array")
        with open(program + ".f90", "w", encoding="utf-8") as source:
            source.write(FORTRAN)
        subprocess.run([gfortran, "-Ofast", "-fno-inline", program + ".f90",
                        "-o", program], check=True, timeout=harness.TIMEOUT_S)
        profile = self.execute(program, period=1).profile()
        found = [[f["function"] for f in s["frames"]][:3]
                 for s in profile.stacks_with("leaf_") if not s["truncated"]]
        self.assertEqual(found, [["leaf_", "with_array_", "main"]])

    def test_thread_of_ruby(self):
        """It keeps its interpreter's stack, of 1 MiB, in one frame."""
        ruby = shutil.which("ruby")
        if not ruby:
            self.skipTest("no ruby")
        profile = self.execute(ruby, "--disable-gems", "-e", "keep = []; "
                               "Thread.new { 300.times { |i| "
                               "keep << 'x' * (5000 + i) } }.join",
                               period=1).profile()
        self.assertFalse([s for s in profile.stacks if s["truncated"]])
        self.assertGreaterEqual(sum(
            s["samples"] for s in profile.stacks
            if s["frames"][-1]["function"] != "_start"), 300)

    def test_libunwind(self):
        """The stacks of the tables."""
        if not os.path.exists(COPY):
            self.skipTest("built without libunwind: install libunwind-dev "
                          "and patchelf")
        for program in (harness.target("program_unwind"), "stacks"), (
                harness.target("program_unwind_rare"), "all"):
            found = []
            for unwind in ("libunwind", "tables"):
                profile = self.execute(*program, period=1,
                                       unwind=unwind).profile()
                self.assertEqual(profile.settings["unwinder"], unwind)
                self.assertEqual((profile.end, profile.lost()), ("clean", {}))
                found.append(collections.Counter({
                    tuple((f["function"], f.get("line"))
                          for f in s["frames"]): s["samples"]
                    for s in profile.stacks}))
            self.assertEqual(*found)

    def test_libunwind_is_missing(self):
        """Then it is the tables, and one note says why."""
        library = os.path.join(self.dir, "libsampleprof.so")
        shutil.copy(os.environ["SAMPLEPROF_SO"], library)
        for content in (None, b"no library"):
            if content:
                with open(os.path.join(self.dir, os.path.basename(COPY)),
                          "wb") as f:
                    f.write(content)
            result = self.execute(
                "/bin/true", shim=False, clean=False,
                env={**self.environment(shim=False), "LD_PRELOAD": library,
                     "SAMPLEPROF_UNWIND": "libunwind",
                     "SAMPLEPROF_OUT": os.path.join(self.dir, "a.sprof")})
            self.assertEqual(result.returncode, 0)
            self.assertRegex(result.stderr.decode(),
                             r"stacks are found by tables, not by libunwind: "
                             r"\S*libsampleprof-unwind.so (is|cannot)")
            text = harness.report(os.path.join(self.dir, "a.sprof"))
            self.assertEqual(re.sub(r"\s+", " ", text).count("not by libunwind"), 1)

    def test_nothing_is_loaded(self):
        """The process has the objects that it has alone, and the library."""
        objects = []
        for shim in (False, True):
            result = self.execute("/bin/cat", "/proc/self/maps", period=1,
                                  shim=shim)
            objects.append(set(re.findall(r"/\S*\.so\S*",
                                          result.stdout.decode())))
        added = {os.path.basename(path) for path in objects[1] - objects[0]}
        self.assertEqual(added, {"libsampleprof.so"})
        self.assertEqual(objects[0] - objects[1], set())

    @harness.nightly_too
    def test_programs_without_frame_pointers(self):
        for path, package, arguments, stdin in PROGRAMS[:harness.rounds(4, 9)]:
            with self.subTest(program=path):
                command = [harness.require(path, package), *arguments]
                bare = self.execute(*command, stdin=stdin, shim=False)
                result = self.execute(*command, stdin=stdin, period=1,
                                      follow="none", unwind="fp", log="quiet")
                self.assertEqual(result.stdout, bare.stdout)
                profile = result.profile().require_samples(5)
                self.assertEqual(profile.end, "clean")
                self.assertEqual(profile.lost(), {})

    def test_bytes_of_stack(self):
        for unwind in ("tables", "fp"):
            with self.subTest(unwind=unwind):
                result = self.execute(harness.target("program_unwind"), "paint",
                                      period=1, unwind=unwind)
                result.profile().require_samples(11)
                values = result.values()
                for name in ("first", "later", "free"):
                    self.assertGreater(values[name], 400, name)
                    self.assertLessEqual(values[name], STACK_BYTES, name)
                # What a program needs for good.
                self.assertLessEqual(values["later"], 1536)
                self.assertLessEqual(values["free"], 1024)


# The outermost functions of processes and threads, with symbols or without.
ENDS = {"main", "__libc_start_call_main", "__libc_start_main_impl", "_start",
        "_dl_start_user", "start_thread", "__clone3", "clone3", "__clone",
        "__start_context", "__startcontext", "runtime.main", "runtime.mstart"}
IS_AARCH64 = platform.machine() == "aarch64"


def named_as_on_x86(function):
    """What a signal handler returns to is in the C library there, and in the
    kernel's own object on aarch64."""
    return ("__restore_rt" if function == "__kernel_rt_sigreturn"
            else function)


PYTHON = """
import json, re, threading
t = threading.Thread(target=lambda: json.dumps(["x"] * 999))
t.start()
t.join()
print(len(sorted(range(99), key=lambda x: [x] * 50)))
"""

JAVASCRIPT = """
const kept = [];
function grow(n) {
  return n ? grow(n - 1) + 1 : (kept.push(Buffer.alloc(100000)), 1);
}
for (let i = 0; i < 200; i++) grow(i % 20);
const zlib = require("zlib");
for (let i = 0; i < 10; i++) zlib.gzipSync(Buffer.alloc(100000));
setTimeout(() => console.log(kept.length + grow(3)), 10);
"""

JAVA = """
public class Main {
    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 300; i++) {
            java.util.zip.Deflater d = new java.util.zip.Deflater();
            d.setInput(new byte[10000]);
            d.finish();
            d.deflate(new byte[20000]);
            d.end();
        }
        Thread t = new Thread(() -> java.nio.ByteBuffer.allocateDirect(5000));
        t.start();
        t.join();
        System.out.println("done");
    }
}
"""

RUST = """
use std::collections::BTreeMap;
fn nested(n: u32) -> String {
    if n == 0 { format!("{:?}", vec![1, 2, 3]) } else { nested(n - 1) + "x" }
}
fn main() {
    let map: BTreeMap<u32, String> =
        (0..500).map(|i| (i, nested(i % 30))).collect();
    let thread = std::thread::spawn(|| nested(20).len());
    println!("{} {}", map.len(), thread.join().unwrap());
}
"""


class Whole(harness.Case):
    """Stacks that lead from each allocation to main or the start of its
    thread."""

    def check_whole(self, profile, least=0.99, ends=None):
        reached = collections.Counter()
        for stack in profile.stacks:
            names = [f["function"] for f in stack["frames"]]
            is_whole = bool((ends or ENDS) & set(names[-4:]))
            reached[is_whole] += stack["samples"]
        self.assertGreater(reached.total(), 0)
        self.assertGreaterEqual(reached[True] / reached.total(), least,
                                reached)

    def run_whole(self, *command, period=1, least=0.99, ends=None, **options):
        result = self.execute(*command, period=period, depth=1000,
                              follow="none", **options)
        profile = result.profile().require_samples(5)
        self.check_whole(profile, least, ends)
        return profile

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def test_cxx(self):
        """Exceptions, catch blocks, signals, realigned frames, coroutines."""
        profile = self.run_whole(harness.target("program_unwind_rare"), "all",
                                 least=1)
        self.assertEqual(profile.lost(), {})
        self.assertEqual([s for s in profile.stacks if s["truncated"]], [])
        for stack in profile.stacks_with("handle_and_step"):
            frames = stack["frames"]
            names = [named_as_on_x86(f["function"]) for f in frames]
            at = names.index("handle_and_step")
            # What the handler returns to, and what it has interrupted.
            self.assertEqual(names[at + 1:at + 3],
                             ["__restore_rt", "interrupted"])
            with open(frames[at + 2]["file"], encoding="utf-8") as source:
                line = source.readlines()[frames[at + 2]["line"] - 1]
            self.assertIn("this line was interrupted", line)
        for name in ("handle", "handle_and_step", "realigned", "catch_one",
                     "~holder", "run_coroutine"):
            self.assertTrue(any(name in f["function"]
                                for s in profile.stacks
                                for f in s["frames"]), name)

    def test_as_a_debugger_sees_it(self):
        """Below a signal handler in a catch block, called back by the C
        library from a function with a realigned stack."""
        gdb = harness.require("gdb", "gdb")
        process = self.start([harness.target("program_unwind_rare"), "wait"],
                             settings={"period": "1"}, stdin=subprocess.PIPE)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        done = subprocess.run([gdb, "-nx", "-batch", "-p", str(process.pid),
                               "-ex", "bt"], capture_output=True, text=True,
                              check=False, timeout=harness.TIMEOUT_S)
        if "Operation not permitted" in done.stderr:
            self.skipTest("may not attach a debugger here")
        theirs = [m[1] or "__restore_rt" for m in re.finditer(
            r"(?m)^#\d+ +(?:0x\w+ in )?(?:([\w~:]+)|<signal handler)",
            done.stdout)]
        result = self.finish(process)
        ours = [[f["function"] for f in s["frames"]]
                for s in result.profile().stacks
                if s["flat_bytes"]["value"] == 7777]
        self.assertEqual(len(ours), 1)
        # What libraries have inlined depends on who reads which symbols.
        own = ("wait_here", "compare", "sort_in", "handle_and_wait",
               "__restore_rt", "catch_and_wait", "main")
        ours = [name for name in (re.sub(r"\(.*", "", named_as_on_x86(n))
                                  for n in ours[0]) if name in own]
        self.assertEqual(ours, list(own))
        self.assertEqual([n for n in theirs if n in own], ours)

    def test_interpreters(self):
        self.run_whole("/usr/bin/python3", "-c", PYTHON, least=0.995)
        self.run_whole(harness.require("/usr/bin/node", "nodejs"),
                       self.write("main.js", JAVASCRIPT), period="4K",
                       least=0.995)

    @harness.nightly
    def test_java(self):
        java = harness.require("/usr/bin/java", "default-jdk-headless")
        self.run_whole(java, "-Xmx256m", self.write("Main.java", JAVA),
                       period="64K", least=0.97)

    @harness.nightly
    def test_clang(self):
        self.run_whole(harness.require("/usr/bin/clang", "clang"), "-c", "-O1",
                       self.write("a.c", "int f(int a) { return a * a; }\n"),
                       "-o", self.dir + "/a.o", period="4K")

    def test_rust(self):
        rustc = "/usr/bin/rustc"
        if not os.path.exists(rustc):
            self.skipTest("no rustc: install the package rustc")
        program = os.path.join(self.dir, "program")
        subprocess.run([rustc, "-O", self.write("main.rs", RUST), "-o",
                        program], check=True, timeout=harness.TIMEOUT_S,
                       cwd=self.dir)
        self.run_whole(program)

    @harness.nightly
    def test_go(self):
        """Goroutines call C: from the thread's stack back to theirs."""
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                              "targets/hazard_cgo.go")
        subprocess.run(
            [harness.require("go", "golang-go"), "build", "-o", "program",
             source], check=True, timeout=harness.TIMEOUT_S, cwd=self.dir,
            env={**os.environ, "GO111MODULE": "off", "CGO_ENABLED": "1",
                 "GOFLAGS": "", "GOCACHE": os.path.join(self.dir, "cache")})
        profile = self.run_whole(os.path.join(self.dir, "program"),
                                 ends=ENDS | {"main.main.func2",
                                              "main.main.func1"})
        stacks = [s for s in profile.stacks_with("in_c")]
        self.assertTrue(stacks)
        for stack in stacks:
            self.assertFalse(stack["truncated"], stack)
