# SPDX-License-Identifier: MIT
"""Beside the tools that watch a program for errors, sanitizers and valgrind,
every allocation is recorded and nothing is reported.
"""

import glob
import os
import re
import subprocess
import sys

import harness

NEEDS_DEBUG_FILES = True  # valgrind does

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "compat", "suites"))
import sources  # noqa: E402 pylint: disable=wrong-import-position

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


VALGRIND_TOOLS = ("memcheck", "helgrind", "drd", "dhat")


def valgrind(tool):
    return [harness.require("valgrind", "valgrind"), "-q", "--tool=" + tool,
            f"--error-exitcode={FOUND['valgrind']}",
            *(["--dhat-out-file=/dev/null"] if tool == "dhat" else []),
            # Its malloc is below ours, not in the place of it.
            "--soname-synonyms=somalloc=nouserintercepts"]


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

    @harness.nightly_too
    def test_of_gcc(self):
        """They are libraries, and come behind ours."""
        for sanitizer in harness.rounds(
                ("address",), ("thread", "address", "leak", "undefined")):
            with self.subTest(sanitizer):
                self.check(*AT_FIXED_PLACES,
                           program=self.compiled("gcc", sanitizer))

    @harness.nightly_too
    def test_of_clang(self):
        """They are in the program, whose malloc is before ours: the profile is
        empty and says why."""
        for sanitizer in harness.rounds(
                ("memory",), ("thread", "address", "memory")):
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

    @harness.nightly_too
    def test_operators(self):
        """With one sanitizer of each compiler, or with all."""
        for sanitizer in harness.rounds(
                ("thread",), ("thread", "address", "leak", "undefined")):
            with self.subTest("gcc", sanitizer=sanitizer):
                self.check_operators("g++", sanitizer, is_seen=True)
        for sanitizer in harness.rounds(
                ("address",), ("thread", "address", "memory", "undefined")):
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


# Each of three threads has a Lua of its own, and all are done before any is
# judged.
HOST = """
#include <pthread.h>
#include <stdio.h>
#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
static char said[3][64];
static const char *script;
static void *live(void *to)
{
	lua_State *l = luaL_newstate();
	luaL_openlibs(l);
	if (luaL_dofile(l, script))
		fprintf(stderr, "%s\\n", lua_tostring(l, -1));
	else
		snprintf(to, sizeof(*said), "%s", lua_tostring(l, -1));
	lua_close(l);
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t threads[3];
	script = argv[argc - 1];
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, live, said[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 3; i++)
		puts(said[i]);
	return 0;
}
"""
# Strings, tables, closures, coroutines, errors, and a collector that is busy.
SCRIPT = """
local sum, kept = 0, {}
local function squares(n)
  return coroutine.wrap(function()
    for i = 1, n do coroutine.yield(i * i) end
  end)
end
for round = 1, 20 do
  local words = {}
  for i = 1, 100 do words[i] = ("%d:%d"):format(i * 7919 % 101, round) end
  table.sort(words)
  kept[round % 7] = table.concat(words, ","):gsub("%d", function(d)
    return d + 0 == 7 and "seven" or nil
  end)
  for square in squares(50) do sum = sum + square end
  local fine, why = pcall(error, {round})
  sum = sum + #kept[round % 7] + (fine and 1 or why[1])
  if round % 5 == 0 then collectgarbage() end
end
return ("%d %d"):format(sum, #string.pack("s4z", kept[1], kept[2]))
"""


class Larger(Case):
    """Lua in three threads, from Debian's source: the same output and status
    as without the library, and no report of a tool."""

    def setUp(self):
        super().setUp()
        work = os.path.join(os.environ["SAMPLEPROF_TARGETS"], "..", "..",
                            "suites")
        os.makedirs(work, exist_ok=True)
        try:
            tree = sources.Sources(os.path.realpath(work)).tree("lua5.4")
        except (OSError, sources.Failed) as why:
            self.skipTest(f"no source of lua5.4 to be had: {why}")
        self.lua = os.path.join(tree, "src")
        self.script, self.host = (os.path.join(self.dir, name)
                                  for name in ("script.lua", "host.c"))
        for path, text in ((self.script, SCRIPT), (self.host, HOST),
                           (self.dir + "/lua5.4-deb-multiarch.h",
                            '#define DEB_HOST_MULTIARCH "none"\n')):
            with open(path, "w", encoding="ascii") as f:
                f.write(text)

    def build(self, compiler, *options):
        program = os.path.join(self.dir, "lua" + "".join(
            c if c.isalnum() else "-" for c in compiler + "".join(options)))
        files = [name for name in glob.glob(self.lua + "/*.c")
                 if os.path.basename(name) not in ("lua.c", "luac.c")]
        subprocess.run(
            [harness.require(compiler, compiler), "-g1", "-O1", "-w",
             "-pthread", "-DLUA_USE_POSIX", "-I", self.lua, "-I", self.dir,
             *options, self.host, *files, "-o", program, "-lm"],
            check=True, timeout=harness.TIMEOUT_S)
        return program

    def compare(self, *prefix, program, is_seen=True):
        """With and without; what is said on standard error with it."""
        bare = self.execute(*prefix, program, self.script, shim=False,
                            clean=False, env={"TSAN_OPTIONS": OPTIONS})
        result, profiles = self.watched(*prefix, program, self.script,
                                        program=program)
        said = re.sub(rb"sampleprof: malloc of this process is defined by .*\n",
                      b"", result.stderr)
        self.assertEqual((bare.returncode, len(bare.stdout.splitlines())),
                         (0, 3), bare.stderr)
        self.assertEqual((result.returncode, result.stdout),
                         (bare.returncode, bare.stdout), result.stderr)
        [profile] = profiles
        self.assertEqual(profile.lost(), {})
        if is_seen:
            profile.require_samples(5000)
            self.assertEqual(profile.samples, profile.exact[1])
        return said

    @harness.nightly
    def test_sanitizers(self):
        for compiler, names, seen in (
                ("gcc", ("thread", "address", "leak", "undefined"),
                 ("thread", "address", "leak", "undefined")),
                ("clang", ("thread", "address", "memory", "undefined"),
                 ("undefined",))):
            for name in names:
                with self.subTest(compiler, sanitizer=name):
                    program = self.build(compiler, "-fsanitize=" + name)
                    self.assertEqual(self.compare(
                        *AT_FIXED_PLACES, program=program,
                        is_seen=name in seen), b"")

    @harness.nightly
    def test_valgrind(self):
        program = self.build("gcc")
        for tool in VALGRIND_TOOLS:
            with self.subTest(tool):
                self.assertNotRegex(
                    self.compare(*valgrind(tool), program=program), OURS)


class Valgrind(Case):

    @harness.nightly_too
    def test_every_tool(self):
        program = harness.target("program_race_free")
        for tool in VALGRIND_TOOLS[:harness.rounds(2, 4)]:
            with self.subTest(tool):
                self.check(*valgrind(tool), program=program)

    @harness.nightly_too
    def test_libunwind(self):
        """Is not used: it would be reported."""
        program = harness.target("program_race_free")
        for tool in ("memcheck", "helgrind")[:harness.rounds(1, 2)]:
            with self.subTest(tool):
                result, profiles = self.watched(
                    *valgrind(tool), program, ROUNDS, program=program,
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
        for tool in VALGRIND_TOOLS:
            for argv in programs:
                with self.subTest(tool=tool, program=argv[0]):
                    program = os.path.realpath(argv[0])
                    bare = self.execute(*valgrind(tool), *argv,
                                        shim=False, clean=False,
                                        env={"PYTHONMALLOC": "malloc"})
                    result, profiles = self.watched(
                        *valgrind(tool), *argv, program=program,
                        PYTHONMALLOC="malloc")
                    self.assertEqual((result.returncode, result.stdout),
                                     (bare.returncode, bare.stdout))
                    self.assertNotRegex(result.stderr, OURS)
                    self.assertEqual(len(profiles), 1, result.paths)
                    profiles[0].require_samples(1000)
