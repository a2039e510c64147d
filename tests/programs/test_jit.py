# SPDX-License-Identifier: MIT
"""Code that is generated at run time: stacks go through it, and its names come
from perf's map or a jitdump; for node, CPython, and a target of our own.
"""

import json
import os
import shutil
import subprocess

import harness

JS = """
const zlib = require('zlib');
function hold(n) {
  const all = [];
  for (let i = 0; i < n; i++) all.push(Buffer.allocUnsafeSlow(3000));
  return all;
}
function pack(n) {
  for (let i = 0; i < n; i++) zlib.deflateSync(Buffer.alloc(2000, i));
}
function outer() {
  const kept = [];
  for (let i = 0; i < 60; i++) { kept.push(hold(20)); pack(5); }
  return kept;
}
outer();
"""
HOLD = """
exports.hold = function hold(n) {
  const all = [];
  for (let i = 0; i < n; i++) all.push(Buffer.allocUnsafeSlow(65536));
  return all;
}
"""
PY = """
import zlib
def hold(n):
    return [bytes(3000) for _ in range(n)]
def pack(n):
    for i in range(n):
        zlib.compress(bytes(20000))
def outer():
    kept = []
    for i in range(25):
        kept.append(hold(20))
        pack(5)
outer()
"""


class Case(harness.Case):

    def tearDown(self):
        for path in self.names:
            if os.path.exists(path):
                os.unlink(path)
        super().tearDown()

    def setUp(self):
        super().setUp()
        self.names = []

    def run_and_note(self, *argv, **options):
        result = self.execute(*argv, **options)
        for pid in [int(result.pid)]:
            self.names += [f"/tmp/perf-{pid}.map", f"/tmp/jit-{pid}.dump"]
        return result

    def share_named(self, profile, below):
        """Of the samples that `below` is in the stack of, how many have a name
        for each frame that is in no file, and a whole stack."""
        good = every = 0
        for stack in profile.stacks:
            names = [f["function"] for f in stack["frames"]]
            if below not in names:
                continue
            every += stack["samples"]
            if (names[-1] == "_start" and
                    not any(n.startswith("[anonymous]") for n in names)):
                good += stack["samples"]
        self.assertGreater(every, 50)
        return good / every


class Target(Case):
    OBJECTS = 150

    def check(self, profile, reused=True):
        for name in ("first", "framed", "py::large", "busy"):
            self.assertEqual(profile.allocated_under(name),
                             (1000 * self.OBJECTS, self.OBJECTS), name)
            for stack in profile.stacks_with(name):
                names = [f["function"] for f in stack["frames"]]
                self.assertEqual(names[-1], "_start", names)
                self.assertIn("main", names)
        # Nobody can tell which of the two it was.
        self.assertEqual(profile.allocated_under("new [reused]"),
                         (2000 * self.OBJECTS, 2 * self.OBJECTS))

    def test_map_and_dump(self):
        for kind in ("map", "dump"):
            with self.subTest(kind):
                result = self.run_and_note(harness.target("program_jit"),
                                           kind, self.OBJECTS, period=1)
                profile = result.profile().require_samples()
                self.check(profile)
                frame = next(f for s in profile.stacks_with("first")
                             for f in s["frames"] if f["function"] == "first")
                self.assertEqual((frame["file"], frame["line"]),
                                 ("/app/a.js", 10))

    def test_names_are_taken_along(self):
        result = self.run_and_note(harness.target("program_jit"), "map",
                                   self.OBJECTS, period=1)
        path = result.profile().require_samples().path
        self.assertIn("[jit]", harness.report("--granularity=module", "--cum", path))
        for copy in ("copy.sprof", "copy.sprof.zst"):
            harness.report("symbolize", path, "-o",
                        os.path.join(self.dir, copy))
        os.unlink(self.names[0])
        self.assertIn("[anonymous]+0x", harness.report("--cum", "--top=0", path))
        for copy in ("copy.sprof", "copy.sprof.zst"):
            text = harness.report("--cum", "--top=0", os.path.join(self.dir, copy))
            self.assertIn("framed", text)
            self.assertNotIn("[anonymous]", text)

    def test_interpreter(self):
        """Flat for the script's function, in the report as in a baseline, two
        of one name in two files by themselves; what is called so, but not by a
        script, keeps its bytes."""
        makes = {f"py::make [in {name}.py]": self.OBJECTS for name in "ab"}
        result = self.run_and_note(harness.target("program_jit"), "map",
                                   self.OBJECTS, "python", period=1)
        path = result.profile().require_samples().path
        wanted = {"py::large": self.OBJECTS, "allocate": 5 * self.OBJECTS,
                  **makes}
        self.assertLessEqual(wanted.items(), self.flat(path).items())
        self.assertEqual(self.flat(path, "--all-frames")["allocate"],
                         8 * self.OBJECTS)
        base = os.path.join(self.dir, "base.json")
        harness.report("check", path, "--update-baseline", "--baseline", base)
        again = self.run_and_note(harness.target("program_jit"), "map",
                                  self.OBJECTS, "python", period=1)
        rows = json.loads(harness.report("diff", "--json", base, again.paths[0]))
        self.assertEqual(
            {row["name"]: row["old_samples"] for row in rows["functions"]
             if row["old_samples"] >= self.OBJECTS}, wanted)
        for site, n in (("py::make", 2), (r"py::make \[in b", 1)):
            found = json.loads(self.sampleprof(
                "check", path, "--limit", f"site({site})=1G", "--format",
                "json").stdout)["limits"][0]
            self.assertEqual(found["new"]["value"], 1000 * n * self.OBJECTS)

    def flat(self, path, *options):
        report = harness.with_frames(json.loads(
            harness.report("--json", *options, path)))
        return {f["name"]: f["samples"] for f in report["functions"]
                if f["samples"]}

    def test_another_user(self):
        """/tmp is everybody's."""
        if os.geteuid():
            self.skipTest("only root gives files away")
        result = self.run_and_note(harness.target("program_jit"), "map",
                                   self.OBJECTS, period=1)
        path = result.profile().require_samples().path
        os.chown(self.names[0], 4711, 4711)
        text = harness.report("--cum", "--top=0", path)
        self.assertIn("[anonymous]+0x", text)
        self.assertIn("another user", " ".join(text.split()))


class Runtimes(Case):

    def test_node(self):
        node = shutil.which("node")
        if not node:
            self.skipTest("no node")
        script = os.path.join(self.dir, "a.js")
        with open(script, "w", encoding="utf-8") as f:
            f.write(JS)
        result = self.run_and_note(
            node, "--perf-basic-prof", "--interpreted-frames-native-stack",
            "--no-short-builtin-calls", script, period=1024)
        profile = result.profile().require_samples(100)
        self.assertGreaterEqual(self.share_named(profile, "outer"), 0.95)
        self.assertGreaterEqual(self.share_named(profile, "pack"), 0.95)

    @harness.nightly
    def test_namesakes(self):
        """Functions of one name in two scripts are two, in any directory."""
        node = shutil.which("node")
        if not node:
            self.skipTest("no node")
        paths = []
        for where in ("old", "new"):
            root = os.path.join(self.dir, where)
            os.mkdir(root)
            for name, text in (
                    ("one.js", HOLD), ("two.js", HOLD), ("main.js", """
const a = require('./one.js').hold(900), b = require('./two.js').hold(300);
""")):
                with open(os.path.join(root, name), "w",
                          encoding="utf-8") as f:
                    f.write(text)
            result = self.run_and_note(
                node, "--perf-basic-prof", "--interpreted-frames-native-stack",
                "--no-short-builtin-calls", os.path.join(root, "main.js"),
                period=1024)
            paths.append(result.profile().path)
            held = {f["name"]: f["cum_samples"] for f in json.loads(
                harness.report("--json", paths[-1]))["functions"]
                if f["name"].startswith("hold ")}
            self.assertEqual(set(held),
                             {"hold [in one.js]", "hold [in two.js]"})
            # 900 and 300 objects of 64 periods
            self.assertGreaterEqual(held["hold [in one.js]"], 900)
            self.assertLess(held["hold [in two.js]"], 900)
        names = {r["name"] for r in json.loads(harness.report(
            "diff", "--json", "--prune-from=^hold$", *paths))["functions"]}
        self.assertLessEqual({"hold [in one.js]", "hold [in two.js]"}, names)
        self.assertFalse([n for n in names if self.dir in n], names)

    def test_python(self):
        python = next((p for p in ("python3.14", "python3.13", "python3.12",
                                   "python3")
                       if shutil.which(p) and subprocess.run(
                           [p, "-X", "perf", "-c", "import sys; sys.exit("
                            "not sys.is_stack_trampoline_active())"],
                           capture_output=True, check=False).returncode == 0),
                      None)
        if not python:
            self.skipTest("no python3 with -X perf")
        script = os.path.join(self.dir, "a.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write(PY)
        result = self.run_and_note(shutil.which(python), "-X", "perf", script,
                                   env={"PYTHONMALLOC": "malloc"},
                                   period=1024)
        profile = result.profile().require_samples(100)
        self.assertGreaterEqual(self.share_named(profile, "py::outer"), 0.95)
        # What the interpreter allocates below a function is flat for that.
        report = json.loads(harness.report("--json", "--focus=^py::outer$",
                                           profile.path))
        flat = {f["name"]: f["samples"] for f in report["functions"]
                if f["samples"]}
        self.assertGreater(flat["py::hold"], 100)
        for name in ("PyBytes_FromStringAndSize", "_PyEval_EvalFrameDefault"):
            self.assertNotIn(name, flat)
