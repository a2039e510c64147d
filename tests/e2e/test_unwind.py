#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""How call stacks are found: by libunwind and by frame pointers."""

import collections
import os
import unittest

import harness

# What the slow path may take of a program's stack.
STACK_BYTES = 8192

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
        result = self.execute(harness.target("e2e_unwind"), "stacks",
                              period=1, **settings)
        profile = result.profile().require_samples(1440)
        self.assertEqual((profile.end, profile.lost()), ("clean", {}))
        return result, profile

    def test_same_stacks(self):
        """A program with frame pointers: both ways find all its functions,
        under every function that allocates."""
        _, right = self.run_stacks()
        _, quick = self.run_stacks(unwind="fp")
        self.assertEqual(right.settings["unwinder"], "libunwind")
        self.assertEqual(quick.settings["unwinder"], "fp")
        stacks = self.named_stacks(right)
        self.assertGreater(len(stacks), 2 * 2 * 2 * 60 - 1)
        self.assertEqual(max(len(key) for key, _ in stacks), 65)
        self.assertEqual(self.named_stacks(quick), stacks)
        # The C library starts both threads; nothing is missing but that.
        for stack in quick.stacks_with("leaf"):
            self.assertFalse(stack["truncated"], stack)

    def test_marked_where_it_ends(self):
        """Called back by the C library, which has no frame pointers: its own
        callers are missing, and the stack says so."""
        result = self.execute(harness.target("e2e_unwind"), "callback",
                              period=1, unwind="fp")
        stacks = result.profile().stacks_with("compare")
        self.assertTrue(stacks)
        for stack in stacks:
            self.assertTrue(stack["truncated"], stack)
            self.assertNotIn("main", [f["function"] for f in stack["frames"]])
        result = self.execute(harness.target("e2e_unwind"), "callback",
                              period=1)
        for stack in result.profile().stacks_with("compare"):
            self.assertFalse(stack["truncated"], stack)
            self.assertIn("main", [f["function"] for f in stack["frames"]])

    def test_without_libunwind(self):
        """A library of that name that cannot be loaded."""
        with open(os.path.join(self.dir, "libunwind.so.8"), "wb") as broken:
            broken.write(b"\x7fELF, but no more than that")
        result, profile = self.run_stacks(env={"LD_LIBRARY_PATH": self.dir})
        self.assertIn(b"stacks are found by frame pointers", result.stderr)
        self.assertEqual(profile.settings["unwinder"], "fp")
        self.assertIn("frame pointers", profile.settings["diagnosis"])
        _, right = self.run_stacks()
        self.assertEqual(self.named_stacks(profile), self.named_stacks(right))

    def test_programs_without_frame_pointers(self):
        for path, package, arguments, stdin in PROGRAMS:
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
        for unwind in ("libunwind", "fp"):
            with self.subTest(unwind=unwind):
                result = self.execute(harness.target("e2e_unwind"), "paint",
                                      period=1, unwind=unwind)
                result.profile().require_samples(11)
                values = result.values()
                for name in ("first", "later", "free"):
                    self.assertGreater(values[name], 400, name)
                    self.assertLessEqual(values[name], STACK_BYTES, name)
                # What a program needs for good.
                self.assertLessEqual(values["later"], 1536)
                self.assertLessEqual(values["free"], 1024)


if __name__ == "__main__":
    harness.main()
