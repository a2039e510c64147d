# SPDX-License-Identifier: MIT
"""Beside the tools that watch a program for errors, sanitizers and valgrind,
every allocation is recorded and nothing is reported.
"""

import os
import re
import subprocess

import harness

TARGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets")
INCLUDE = os.path.join(TARGETS, "..", "..", "..", "include")
ROUNDS = 60
# Found by valgrind, and by sanitizers.
FOUND = {"valgrind": 99, "sanitizer": 66}
# What no memory is left for is NULL, not the end.
OPTIONS = "exitcode=66:allocator_may_return_null=1"
# Each text is allocated by calloc, malloc and realloc.
TEXTS = 6 * ROUNDS
SAMPLES = 3 * TEXTS
# With as many random bits as kernels have by now, the mappings of the program
# are where ThreadSanitizer and MemorySanitizer want theirs.
AT_FIXED_PLACES = ["setarch", "-R"]
# What valgrind reports of us: ours is the innermost frame.
OURS = (rb"== (Possible data race|Conflicting|Invalid|Conditional|Use of|"
        rb"Syscall param|Thread #).*\n(==\d+== Locks.*\n)?"
        rb"==\d+==    (at|by) 0x[0-9A-F]+: .*libsampleprof")


class Case(harness.Case):

    def watched(self, *argv, program, **env):
        """Every allocation of that program recorded, under whatever of argv
        starts it: how it ends, with the one profile of the program."""
        result = self.execute(
            *argv, period=1, follow=os.path.basename(program), clean=False,
            env={"ASAN_OPTIONS": "verify_asan_link_order=0:" + OPTIONS,
                 "MSAN_OPTIONS": OPTIONS, "LSAN_OPTIONS": OPTIONS,
                 "TSAN_OPTIONS": OPTIONS,
                 "UBSAN_OPTIONS": "halt_on_error=1:exitcode=66", **env})
        return result, [harness.Profile(p) for p in result.paths
                        if os.path.basename(program) in os.path.basename(p)]

    def check(self, *argv, program, samples=SAMPLES, says=b""):
        result, profiles = self.watched(*argv, program, ROUNDS,
                                        program=program)
        self.assertEqual((result.returncode, result.stderr), (0, says))
        self.assertEqual(result.values()["texts"], TEXTS)
        self.assertEqual(len(profiles), 1, result.paths)
        profile = profiles[0]
        self.assertEqual(profile.lost(), {})
        if samples:
            profile.require_samples(samples)
        else:
            self.assertEqual(profile.samples, 0)
        return profile


class Sanitizers(Case):

    def compiled(self, compiler, sanitizer, source="race_free.c", options=()):
        program = os.path.join(self.dir, f"{compiler}-{sanitizer}")
        subprocess.run(
            [harness.require(compiler, compiler), "-g", "-O1", "-fno-builtin",
             "-D_GNU_SOURCE", "-pthread", "-fsanitize=" + sanitizer, *options,
             os.path.join(TARGETS, source), "-o", program],
            check=True, timeout=harness.TIMEOUT_S)
        return program

    def check_operators(self, compiler, sanitizer, is_seen):
        """Four threads with the operators of C++.  The sanitizer says what it
        has no memory for, and nothing else."""
        program = self.compiled(
            compiler, sanitizer, "operators.cc",
            ["-std=c++17", "-fsized-deallocation", "-I", INCLUDE])
        result, profiles = self.watched(*AT_FIXED_PLACES, program, 4, 5,
                                        "nothrow", program=program)
        said = re.sub(rb"==\d+==WARNING: \w+Sanitizer failed to allocate .*\n|"
                      rb"sampleprof: malloc of this process is defined by .*\n",
                      b"", result.stderr)
        self.assertEqual((result.returncode, said), (0, b""))
        [profile] = profiles
        self.assertEqual(profile.lost(), {})
        if not is_seen:
            self.assertEqual(profile.samples, 0)
            return
        self.assertEqual(profile.samples, profile.exact[1])
        values = result.values()
        for name in (v for v in values if v.startswith("call_")):
            self.assertEqual(
                profile.allocated_under(f"(anonymous namespace)::{name}"),
                values[name])

    def test_of_gcc(self):
        """They are libraries, and come behind ours."""
        for sanitizer in ("thread", "address", "leak", "undefined"):
            with self.subTest(sanitizer):
                self.check(*AT_FIXED_PLACES,
                           program=self.compiled("gcc", sanitizer))

    def test_of_clang(self):
        """They are in the program, whose malloc is before ours: the profile is
        empty and says why."""
        for sanitizer in ("thread", "address", "memory"):
            with self.subTest(sanitizer):
                program = self.compiled("clang", sanitizer)
                says = (f"malloc of this process is defined by {program}, "
                        "which stands before sampleprof: what it does "
                        "not pass on is not seen")
                profile = self.check(*AT_FIXED_PLACES, program=program,
                                     samples=0,
                                     says=f"sampleprof: {says}\n".encode())
                self.assertIn(says, profile.settings["diagnosis"])
        self.check(program=self.compiled("clang", "undefined"))

    def test_operators(self):
        for sanitizer in ("thread", "address", "leak", "undefined"):
            with self.subTest("gcc", sanitizer=sanitizer):
                self.check_operators("g++", sanitizer, is_seen=True)
        for sanitizer in ("thread", "address", "memory", "undefined"):
            with self.subTest("clang", sanitizer=sanitizer):
                self.check_operators("clang++", sanitizer,
                                     is_seen=sanitizer == "undefined")

    def test_address_sanitizer_of_gcc_alone(self):
        """It refuses any library before it, and says so."""
        program = self.compiled("gcc", "address")
        refused, _ = self.watched(program, ROUNDS, program=program,
                                  ASAN_OPTIONS="")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(b"ASan runtime does not come first", refused.stderr)

    def test_errors_are_found(self):
        """A race, and memory that is used after it was freed."""
        source = os.path.join(self.dir, "bad.c")
        with open(source, "w", encoding="ascii") as f:
            f.write("#include <pthread.h>\n#include <stdlib.h>\n"
                    "char *volatile p;\n"
                    "void *f(void *a) { p[0]++; return a; }\n"
                    "int main(void) { pthread_t t; p = calloc(1, 1);\n"
                    "pthread_create(&t, 0, f, 0); p[0]++;\n"
                    "pthread_join(t, 0); free(p); return p[0]; }\n")
        for sanitizer in ("thread", "address"):
            with self.subTest(sanitizer):
                program = os.path.join(self.dir, sanitizer)
                subprocess.run(["gcc", "-pthread", "-fsanitize=" + sanitizer,
                                source, "-o", program], check=True,
                               timeout=harness.TIMEOUT_S)
                result, _ = self.watched(*AT_FIXED_PLACES, program,
                                         program=program)
                self.assertEqual(result.returncode, FOUND["sanitizer"])


class Valgrind(Case):

    def valgrind(self, tool):
        return [harness.require("valgrind", "valgrind"), "-q",
                "--tool=" + tool, f"--error-exitcode={FOUND['valgrind']}",
                *(["--dhat-out-file=/dev/null"] if tool == "dhat" else []),
                # Its malloc is below ours, not in the place of it.
                "--soname-synonyms=somalloc=nouserintercepts"]

    def test_every_tool(self):
        program = harness.target("program_race_free")
        for tool in ("memcheck", "helgrind", "drd", "dhat"):
            with self.subTest(tool):
                self.check(*self.valgrind(tool), program=program)

    def test_libunwind(self):
        """Is not used: it would be reported."""
        program = harness.target("program_race_free")
        for tool in ("memcheck", "helgrind"):
            with self.subTest(tool):
                result, profiles = self.watched(
                    *self.valgrind(tool), program, ROUNDS, program=program,
                    SAMPLEPROF_UNWIND="libunwind")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(b"stacks are found by tables", result.stderr)
                self.assertEqual(profiles[0].settings["unwinder"], "tables")

    @harness.nightly
    def test_programs(self):
        """A tool says of larger programs what it says without the library, and
        nothing of ours.  Frames of ours may be in what it says of them."""
        script = ("import threading, json\n"
                  "t = [threading.Thread(target=lambda: json.dumps(\n"
                  "     [str(i) * 9 for i in range(2000)])) for _ in range(3)]\n"
                  "[x.start() for x in t]; [x.join() for x in t]; print('end')")
        queries = ("create table t(a, b); insert into t select value, 'x' || "
                   "value from generate_series(1, 400); select count(*) from "
                   "t join t u using (a);")
        programs = [
            [harness.require("/usr/bin/python3", "python3"), "-S", "-c",
             script],
            [harness.require("sqlite3", "sqlite3"), ":memory:", queries],
            [harness.require("perl", "perl"), "-e",
             "$h{$_} = [1 .. $_ % 9] for 1 .. 3000; print scalar keys %h"]]
        for tool in ("memcheck", "helgrind", "drd", "dhat"):
            for argv in programs:
                with self.subTest(tool=tool, program=argv[0]):
                    program = os.path.realpath(argv[0])
                    bare = self.execute(*self.valgrind(tool), *argv,
                                        shim=False, clean=False,
                                        env={"PYTHONMALLOC": "malloc"})
                    result, profiles = self.watched(
                        *self.valgrind(tool), *argv, program=program,
                        PYTHONMALLOC="malloc")
                    self.assertEqual((result.returncode, result.stdout),
                                     (bare.returncode, bare.stdout))
                    self.assertNotRegex(result.stderr, OURS)
                    self.assertEqual(len(profiles), 1, result.paths)
                    profiles[0].require_samples(1000)
