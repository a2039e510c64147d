#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Debug information in other places: units in files of their own
(`-gsplit-dwarf`), sections compressed with zstd, a compressed table of symbols,
a file shared by `dwz -m`, a debug file.  Inlined functions are there, or a
note says which file is missing."""

import json
import os
import re
import subprocess

import harness

INLINED = """
#include <cstdlib>
static void *volatile kept;
static inline __attribute__((always_inline)) void inner(int n) {
  for (int i = 0; i < n; i++) kept = malloc(100);
}
static inline __attribute__((always_inline)) void outer(int n) { inner(n); }
__attribute__((noinline)) void real(int n) { outer(n); }
int main() { real(30); }
"""
ALL = ["inner", "outer", "real", "main"]

# As nginx is built: palloc has jumped to a function that has no name where the
# program is stripped, and `scan` to one that is not below a wrapper.
JUMPS = r"""#include <stdlib.h>
static __attribute__((noipa)) void *take(size_t n) {
  char *p = malloc(n);
  p[0] = 1;
  return p;
}
static __attribute__((noipa)) void *look(size_t n) {
  char *p = malloc(n);
  p[0] = 2;
  return p;
}
__attribute__((noipa)) void *palloc(size_t n) { return take(n + 1); }
__attribute__((noipa)) void *scan(size_t n) { return look(n + 1); }
static __attribute__((noipa)) int first(void) { return palloc(19) != 0; }
__attribute__((noipa)) int answer(void) {
  return first() + (palloc(99) == scan(49));
}
int main(void) { return answer() > 1; }
"""


class DebugInfo(harness.Case):
    def setUp(self):
        super().setUp()
        with open(os.path.join(self.dir, "app.cc"), "w",
                  encoding="utf-8") as f:
            f.write(INLINED)

    def call(self, *command):
        subprocess.run(command, check=True, cwd=self.dir,
                       timeout=harness.TIMEOUT_S)

    def build(self, *options, name="app"):
        self.call(harness.require("g++", "g++"), "-O2", *options, "app.cc",
                  "-o", name)

    def look(self, name="app"):
        """The names of the stack, and the notes in one line."""
        return self.read(
            self.execute(os.path.join(self.dir, name), period=1).paths[0])

    def read(self, path):
        profile = harness.Profile(path)
        stack = max(profile.stacks, key=lambda s: s["samples"])
        names = [f["function"] for f in stack["frames"]]
        text = harness.report("report", path)
        notes = text[text.index("notes:"):] if "notes:" in text else ""
        return names, " ".join(notes.split())

    def check_all(self):
        names, notes = self.look()
        self.assertEqual(names[:4], ALL)
        self.assertNotIn("missing", notes)
        self.assertNotIn("not there", notes)

    def test_split(self):
        for version in ("-gdwarf-5", "-gdwarf-4"):
            self.build("-g", version, "-gsplit-dwarf")
            self.check_all()
        for name in os.listdir(self.dir):
            if name.endswith(".dwo"):
                os.unlink(os.path.join(self.dir, name))
                os.mkfifo(os.path.join(self.dir, name))
        names, notes = self.look()
        self.assertEqual(names[:2], ["real", "main"])
        self.assertIn("inlined functions are missing: they are in", notes)
        self.assertIn(".dwo", notes)

    def test_split_with_names_in_the_profile(self):
        """Files that were missing then are read if they are back."""
        units = os.path.join(self.dir, "units")
        self.build("-g", "-gsplit-dwarf")
        os.mkdir(units)
        for name in os.listdir(self.dir):
            if name.endswith(".dwo"):
                os.rename(os.path.join(self.dir, name),
                          os.path.join(units, name))
        program = os.path.join(self.dir, "app")
        recorded = self.execute(program, period=1).paths[0]
        for form in ("named.sprof", "named.sprof.zst"):
            named = os.path.join(self.dir, form)
            harness.report("symbolize", recorded, "-o", named)
            names, notes = self.read(named)
            self.assertEqual(names[:2], ["real", "main"])
            self.assertIn("missing: they are in", notes)
            os.rename(program, program + ".gone")
            names, notes = self.read(named)
            self.assertEqual(names[:2], ["real", "main"])
            self.assertIn("missing: their *.dwo files were not there", notes)
            os.rename(program + ".gone", program)
        for name in os.listdir(units):
            os.rename(os.path.join(units, name), os.path.join(self.dir, name))
        names, notes = self.read(named)
        self.assertEqual(names[:4], ALL)
        self.assertNotIn("missing", notes)

    def test_split_package(self):
        """Nothing here reads *.dwp: the note names it, and says what helps."""
        dwp = harness.require("dwp", "binutils")
        self.build("-g", "-gdwarf-4", "-gsplit-dwarf")
        units = [n for n in os.listdir(self.dir) if n.endswith(".dwo")]
        self.call(dwp, *units, "-o", "app.dwp")
        self.check_all()
        for name in units:
            os.unlink(os.path.join(self.dir, name))
        names, notes = self.look()
        self.assertEqual(names[:2], ["real", "main"])
        self.assertIn("app.dwp, which this report cannot read; keep the *.dwo "
                      "files, or build it without -gsplit-dwarf", notes)

    def test_zstd(self):
        done = subprocess.run(["ld", "--help"], capture_output=True, text=True,
                              check=True)
        if "zstd" not in done.stdout:
            self.skipTest("this linker does not compress with zstd")
        self.build("-g", "-Wl,--compress-debug-sections=zstd")
        self.check_all()

    def test_compressed_symbols(self):
        compress = harness.require("eu-elfcompress", "elfutils")
        self.build("-g0")
        self.call(compress, "-f", "-n", ".symtab", "-n", ".strtab", "app")
        self.assertEqual(self.look()[0][:2], ["real", "main"])

    def test_shared_beside_it(self):
        dwz = harness.require("dwz", "dwz")
        self.build("-g", "-gdwarf-4")
        self.build("-g", "-gdwarf-4", "-DB", name="other")
        self.call(dwz, "-m", "common.dbg", "app", "other")
        self.check_all()
        os.unlink(os.path.join(self.dir, "common.dbg"))
        # Nothing is flat for an inlined function whose name is not there.
        names, notes = self.look()
        self.assertEqual(names[:2], ["real", "main"])
        self.assertIn("was moved to common.dbg, which is not there", notes)

    def test_debug_file(self):
        self.build("-g")
        self.call("objcopy", "--only-keep-debug", "app", "app.dbg")
        self.call("strip", "app")
        self.call("objcopy", "--add-gnu-debuglink=app.dbg", "app")
        self.check_all()
        os.unlink(os.path.join(self.dir, "app.dbg"))
        self.assertIn("was moved to app.dbg, which is not there",
                      self.look()[1])

    def test_stripped_library(self):
        """The command that installs what has its names."""
        self.build("-g", "-Wl,--no-as-needed")
        notes = self.look()[1]
        found = re.search(r"is stripped: (\S+) has its names", notes)
        if not found:
            self.skipTest("libstdc++ is not stripped, or of no package")
        self.assertRegex(notes, "install " + re.escape(found[1]) + " # as root")

    def test_none(self):
        self.build("-g0")
        names, notes = self.look()
        self.assertEqual(names[:2], ["real", "main"])
        self.assertIn("app, which has no debug information: lines and inlined "
                      "functions are missing; build it with -g", notes)

    def test_jumps(self):
        """What a wrapper has jumped to is flat for who called the wrapper, also
        by names in the profile."""
        with open(os.path.join(self.dir, "app.c"), "w", encoding="utf-8") as f:
            f.write(JUMPS)
        self.call(harness.require("gcc", "gcc"), "-O2", "-rdynamic", "app.c",
                  "-o", "app")
        self.call("strip", "app")
        program = os.path.join(self.dir, "app")
        recorded = self.execute(program, period=1).paths[0]
        frames = [[f["function"] for f in s["frames"]]
                  for s in harness.Profile(recorded).stacks]
        self.assertFalse(any("palloc" in names for names in frames), frames)
        flat = self.flat(recorded)
        self.assertEqual(flat["answer"], 100)
        self.assertEqual(sorted(flat[n] for n in flat
                                if re.match(r"app\+0x\w+$", n)), [20, 50])
        named = [os.path.join(self.dir, n) for n in ("n.sprof", "n.sprof.zst")]
        for path in named:
            harness.report("symbolize", recorded, "-o", path)
        os.rename(program, program + ".gone")
        for path in named:
            self.assertEqual(self.flat(path), flat)

    def test_another_build(self):
        """Without a build id the code says whether the file is the one that
        ran: nobody has the names of another one."""
        with open(os.path.join(self.dir, "app.c"), "w", encoding="utf-8") as f:
            f.write(JUMPS)
        build = [harness.require("gcc", "gcc"), "app.c", "-Wl,--build-id=none",
                 "-o", "app"]
        self.call(*build, "-O2")
        recorded = self.execute(os.path.join(self.dir, "app"),
                                period=1).paths[0]
        self.assertEqual(self.flat(recorded)["take"], 120)
        self.call(*build, "-O0", "-fstack-protector-all")
        self.assertFalse({"main", "answer", "take", "first", "scan", "look"} &
                         set(self.flat(recorded)))
        self.assertIn("has no build id, and is not the file that ran",
                      self.read(recorded)[1])

    def flat(self, path):
        said = json.loads(harness.report("report", "--json", path))
        return {f["name"]: f["flat_bytes"]["value"] for f in said["functions"]
                if f["flat_bytes"]["value"]}
