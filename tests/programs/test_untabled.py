#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Whole stacks of code without unwind tables, by its instructions: a program
of many shapes at five degrees of optimisation, with glibc and with musl, which
has none itself; tables that no header leads to; and a stack that ends nowhere
is marked."""

import itertools
import os
import platform
import subprocess
import unittest

import harness

TARGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets")
WITHOUT = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables",
           "-fno-exceptions"]

# Which functions lead from take() to shapes().
SHAPES = {
    2000: ("plainly",), 2001: ("with_registers",), 2002: ("with_array",),
    2003: ("with_alloca",), 2004: ("with_branches",),
    2005: None, 2006: ("give_up", "in_despair"),
    2007: None, 2009: ("plainly", "by_pointer"),
}
# What musl's own functions lead to main by.
LIBRARY = {
    ("strdup", "in_library", "main"),
    ("fdopen", "fopen", "in_library", "main"),
    ("vasprintf", "asprintf", "in_library", "main"),
    ("fdopen", "fopen", "in_files", "in_library", "main"),
    *((name, "in_files", "in_library", "main")
      for name in ("fdopen", "opendir", "getdelim")),
}

# Whose last act is a call, which compilers make a jump into the library; its
# frames there may have more than 4 KiB.  And calls by pointers, in turn.
JUMPS = r"""
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
static void *volatile kept;
static int visit(const char *path, const struct stat *s, int f, struct FTW *w) {
  kept = malloc(3000 + f);
  return path[0] == 0;
}
static __attribute__((noinline)) int go_through(const char *path) {
  return nftw(path, visit, 9, FTW_PHYS);
}
static __attribute__((noinline)) char *copy(const char *text) {
  return strdup(text);
}
static void handle(int signal) { kept = malloc(3010); free(kept); }
static void method(void) { kept = malloc(3030); free(kept); kept = NULL; }
static void (*volatile call)(void) = method;
static int compare(const void *a, const void *b) {
  call();
  call();
  return *(const int *)a - *(const int *)b;
}
static __attribute__((noinline)) int interrupt(void) { return raise(SIGUSR1); }
static void *run_thread(void *arg) {
  kept = malloc(3020);
  interrupt();
  return copy(arg);
}
int main(int argc, char **argv) {
  pthread_t thread;
  int two[2] = {2, 1};
  qsort(two, 2, sizeof(int), compare);
  signal(SIGUSR1, handle);
  go_through(argv[1]);
  kept = copy("it");
  if (pthread_create(&thread, NULL, run_thread, "that")) return 1;
  return pthread_join(thread, NULL);
}
"""


@unittest.skipIf(platform.machine() == "aarch64",
                 "compilers keep frame pointers there")
class Untabled(harness.Case):

    def build(self, compiler, *options):
        program = os.path.join(self.dir, "program")
        subprocess.run([*compiler, "-D_GNU_SOURCE", "-fno-builtin", "-pthread",
                        "-fno-optimize-sibling-calls",
                        *options, os.path.join(TARGETS, "untabled.c"),
                        "-o", program], check=True, timeout=harness.TIMEOUT_S)
        return program

    def stacks_of(self, *command):
        result = self.execute(*command, period=1)
        self.assertEqual(result.stdout, b"done\n")
        profile = result.profile().require_samples(50)
        self.assertEqual((profile.end, profile.lost()), ("clean", {}))
        return [(s["flat_bytes"]["value"] / s["samples"],
                 [f["function"] for f in s["frames"]], s["truncated"])
                for s in profile.stacks]

    def check(self, stacks):
        found = set()
        for size, names, truncated in stacks:
            if "take" not in names or size < 2000:
                continue
            self.assertEqual(names[0], "take")
            if size == 2008:
                self.assertEqual((names, truncated),
                                 (["take", "without_trace"], True))
                found.add((size, None))
                continue
            self.assertFalse(truncated, (size, names))
            self.assertIn("shapes", names, (size, names))
            at = names.index("shapes")
            if size == 2005:
                self.assertEqual(set(names[1:at]), {"recursive"})
            elif size == 2007:
                self.assertEqual(names[1], "handle")
                self.assertEqual(names[at - 1], "interrupted")
            else:
                self.assertEqual(tuple(names[1:at]), SHAPES[size])
            self.assertIn(names[at + 1], ("main", "run_thread"))
            found.add((size, names[at + 1]))
        self.assertEqual(found, {(2008, None), *(
            (size, by) for size in SHAPES for by in ("main", "run_thread"))})

    @harness.nightly_too
    def test_optimised(self):
        gcc = harness.require("gcc", "gcc")
        for level in ("-O0", "-O2", "-O1", "-O3", "-Os")[
                :harness.rounds(2, 5)]:
            with self.subTest(level=level):
                self.check(self.stacks_of(self.build([gcc], level, *WITHOUT)))

    def test_frame_pointers(self):
        gcc = harness.require("gcc", "gcc")
        self.check(self.stacks_of(self.build(
            [gcc], "-O2", "-fno-omit-frame-pointer", *WITHOUT)))

    def test_clang(self):
        """Which knows no attribute noipa: its functions are not inlined."""
        clang = harness.require("clang", "clang")
        self.check(self.stacks_of(self.build(
            [clang], "-O2", "-Dnoipa=noinline", *WITHOUT)))

    def build_tables(self, compiler, name, *options):
        path = os.path.join(self.dir, name)
        subprocess.run([harness.require(compiler, compiler), "-O2", *options,
                        os.path.join(TARGETS, "tables.c"),
                        "-Wl,--no-eh-frame-hdr", "-o", path], check=True,
                       timeout=harness.TIMEOUT_S)
        headers = subprocess.run(["readelf", "-lW", path], check=True,
                                 capture_output=True,
                                 timeout=harness.TIMEOUT_S).stdout
        self.assertNotIn(b"GNU_EH_FRAME", headers)
        return path

    def check_tables(self, stacks, function):
        found = set()
        for size, names, truncated in stacks:
            if size not in (3000, 3001):
                continue
            self.assertFalse(truncated, names)
            last = function if size == 3000 else "before_main"
            self.assertEqual(
                names[:5], ["take", "deeper", "deep", "call_all", last])
            self.assertGreater(len(names), 5)
            found.add(size)
        self.assertEqual(found, {3000, 3001})

    @harness.nightly_too
    def test_without_header(self):
        """Tables that no header leads to, which the agent sorts itself: also
        where a constructor allocates before main."""
        cases = list(itertools.product(
            (("gcc", ()), ("g++", ("-x", "c++"))),
            (("-pie", "-fPIE"), ("-no-pie", "-fno-pie"),
             ("-pie", "-fPIE", "-Wl,-z,noseparate-code"),
             ("-pie", "-fPIE", "-fuse-ld=gold"),
             ("-pie", "-fPIE", "-fuse-ld=lld"))))
        for (compiler, options), kind in cases[::harness.rounds(3, 1)]:
            with self.subTest(compiler=compiler, kind=kind):
                path = self.build_tables(compiler, "tables", *kind, *options)
                self.check_tables(self.stacks_of(path), "main")

    def test_library_without_header(self):
        """One that may be unloaded."""
        library = self.build_tables("gcc", "tables.so", "-shared", "-fPIC",
                                    "-DENTRY=run")
        host = self.build_tables("gcc", "host", "-DHOST", "-fPIE", "-pie")
        self.check_tables(self.stacks_of(host, library), "run")

    def test_musl(self):
        """And what its own functions allocate."""
        for options in (WITHOUT, []):
            stacks = self.stacks_of(self.build(harness.musl_gcc(), "-O1",
                                               *options))
            self.check(stacks)
            found = set()
            for _, names, truncated in stacks:
                if "main" not in names:
                    continue
                path = tuple(names[:names.index("main") + 1])
                while path and path[0] not in {p[0] for p in LIBRARY}:
                    path = path[1:]
                self.assertFalse(path and truncated, path)
                found.add(path)
            self.assertEqual(found - {()}, LIBRARY)

    def paths_of_jumps(self, compiler, *options):
        program = os.path.join(self.dir, "jumps")
        subprocess.run([*compiler, "-D_GNU_SOURCE", "-w", "-pthread", *options,
                        "-x", "c", "-", "-o", program], input=JUMPS.encode(),
                       check=True, timeout=harness.TIMEOUT_S)
        places = os.path.join(self.dir, "places", "below")
        os.makedirs(places, exist_ok=True)
        result = self.execute(program, os.path.dirname(places), period=1)
        stacks = result.profile().require_samples(5).stacks
        for stack in stacks:
            names = [f["function"] for f in stack["frames"]]
            self.assertFalse(stack["truncated"], names)
            if names[0] == "visit":
                self.assertIn("main", names)
            if names[0] == "method":
                self.assertEqual(names[1], "compare")
                self.assertIn("main", names)
            if "handle" in names:
                self.assertIn("run_thread", names)
        return sorted([f["function"].split("+")[0] for f in s["frames"]]
                      for s in stacks)

    def test_jumps(self):
        """Stacks are the same with tables and without."""
        for compiler in ([harness.require("gcc", "gcc")],
                         [harness.require("clang", "clang")],
                         harness.musl_gcc()):
            for level in ("-O1", "-O2"):
                with self.subTest(compiler=compiler, level=level):
                    paths = self.paths_of_jumps(compiler, level)
                    self.assertEqual(
                        self.paths_of_jumps(compiler, level, *WITHOUT), paths)
