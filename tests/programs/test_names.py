# SPDX-License-Identifier: MIT
"""Readable names, and flat bytes at the program's own functions: C++, Rust,
redis with its zmalloc, Python with its allocators; `--all-frames`,
`--full-names`, `--see-through`; one baseline for all of these."""

import json
import os
import shutil
import subprocess

import harness

OWN = {"fill_vector", "fill_map", "write_stream", "copy_text", "take_block",
       "make_shape"}


def flat(path, *options):
    """{name: samples} of the functions with flat samples."""
    report = json.loads(harness.report("report", "--json", *options, path))
    return {f["name"]: f["samples"] for f in report["functions"]
            if f["samples"]}


class Cxx(harness.Case):
    def setUp(self):
        super().setUp()
        self.result = self.execute(harness.target("program_names"), period=1)
        self.path = self.result.paths[0]
        self.result.profile().require_samples(2000)

    def test_flat_is_the_program_s_own(self):
        found = flat(self.path)
        self.assertLessEqual(OWN, set(found))
        # what the libraries do before main
        others = sum(n for name, n in found.items() if name not in OWN)
        self.assertLess(others, 10, found)
        self.assertEqual(found["copy_text"], 100)
        self.assertEqual(found["take_block"], 100)
        self.assertEqual(found["make_shape"], 100)
        self.assertGreater(found["fill_vector"], 500)

    def test_all_frames(self):
        found = flat(self.path, "--all-frames")
        self.assertEqual(found["xmalloc"], 100)
        self.assertEqual(found["Shape::operator new"], 100)
        self.assertTrue(any(n.startswith("std::vector<") or
                            n.startswith("std::_Vector_base<")
                            for n in found), found)
        self.assertFalse(OWN - {"copy_text"} & set(found), found)
        self.assertNotIn("operator new", found)

    def test_see_through(self):
        found = flat(self.path, "--see-through", "^fill_")
        self.assertGreater(found["main"], 2000)
        self.assertNotIn("fill_map", found)
        rules = os.path.join(self.dir, "rules")
        with open(rules, "w", encoding="utf-8") as f:
            f.write("# all but one\n^fill_\n^(copy|take|make)_\n")
        found = flat(self.path, "--see-through", "@" + rules)
        self.assertLess(sum(found.values()) - found["main"] -
                        found["write_stream"], 10)

    def test_names(self):
        report = self.result.profile().json
        by_name = {f["name"]: f["full_name"] for f in report["functions"]}
        for name in by_name:
            for word in ("__cxx11", "std::allocator<std::__cxx11", "> >",
                         "char_traits<char>, std::alloc", "[abi:"):
                self.assertNotIn(word, name)
        name = "std::vector<std::string>::push_back"
        self.assertIn(name, by_name)
        self.assertIn("std::allocator<std::__cxx11::basic_string<char,",
                      by_name[name])
        full = json.loads(harness.report("report", "--json", "--full-names",
                                   self.path))
        self.assertNotIn(name, {f["name"] for f in full["functions"]})
        self.assertEqual(len(full["functions"]), len(by_name))
        # either spelling is found
        for regex in ("std::string", "__cxx11::basic_string"):
            text = harness.report("peek", regex, self.path)
            self.assertIn("std::", text)

    def test_exports(self):
        out = os.path.join(self.dir, "out")
        harness.report("export", "collapsed", self.path, "-o", out)
        with open(out, encoding="utf-8") as f:
            stacks = f.read()
        # all frames are there
        self.assertIn("take_block;xmalloc", stacks)
        self.assertIn(";std::vector<std::string>::push_back;", stacks)
        self.assertNotIn("__cxx11", stacks)

    def test_baseline(self):
        """One baseline, whatever is seen through."""
        again = self.execute(harness.target("program_names"), period=1)
        base = os.path.join(self.dir, "base.json")
        harness.report("check", self.path, "--update-baseline", "--baseline", base)
        with open(base, encoding="utf-8") as f:
            paths = [p["path"] for p in json.load(f)["views"]["alloc"]]
        # it keeps what is seen through, as baselines always did
        self.assertIn("xmalloc", {p[0] for p in paths})
        for options in ([], ["--all-frames"], ["--see-through", "^fill_"]):
            with self.subTest(options=options):
                harness.report("check", *again.paths, "--baseline", base, "--limit",
                         "sites=+1%", *options)
        rows = json.loads(harness.report("diff", "--json", base, again.paths[0]))
        names = {row["name"] for row in rows["functions"]}
        self.assertLessEqual(OWN, names)
        self.assertNotIn("xmalloc", names)
        # limits on what is seen through still hold
        harness.report("check", *again.paths, "--limit", "site(^xmalloc$)=99000",
                 code=3)
        harness.report("check", *again.paths, "--limit", "site(^xmalloc$)=100000")

    def test_stored_names(self):
        copy = os.path.join(self.dir, "copy.sprof.zst")
        harness.report("symbolize", self.path, "-o", copy)
        self.assertEqual(flat(copy), flat(self.path))
        self.assertEqual(flat(copy, "--all-frames", "--full-names"),
                         flat(self.path, "--all-frames", "--full-names"))


class Others(harness.Case):
    def test_rust(self):
        rustc = shutil.which("rustc")
        if not rustc:
            self.skipTest("no rustc")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                              "targets", "names.rs")
        for scheme in ("v0", "legacy"):
            with self.subTest(scheme=scheme):
                program = os.path.join(self.dir, "names_" + scheme)
                subprocess.run(
                    [rustc, "-g", "-Zunstable-options", "-C",
                     "symbol-mangling-version=" + scheme, "-o", program,
                     source],
                    env={**os.environ, "RUSTC_BOOTSTRAP": "1"}, check=True,
                    capture_output=True, timeout=harness.TIMEOUT_S)
                result = self.execute(program, period=1)
                path = result.paths[-1]
                found = flat(path)
                self.assertGreater(found["names::load"], 3000)
                self.assertGreater(found["names::index"], 1000)
                self.assertGreater(found["names::Order::clone"], 3000)
                self.assertGreater(found["names::Order::fmt"], 1000)
                own = sum(n for name, n in found.items()
                          if name.startswith("names::"))
                self.assertGreater(own, 0.99 * sum(found.values()), found)
                names = set(flat(path, "--all-frames"))
                self.assertTrue(any("RawVec" in n or "Global" in n
                                    for n in names), names)
                for name in names:
                    self.assertNotRegex(name, r"::h[0-9a-f]{16}$")
                    self.assertNotIn("alloc::raw_vec::RawVec", name)

    def test_python(self):
        """Debian's has the names that it exports."""
        result = self.execute(
            "/usr/bin/python3", "-c",
            "x = [{'k': str(i), 'l': [i]} for i in range(20000)]",
            env={"PYTHONMALLOC": "malloc"}, period="4K", seed=1)
        path = result.paths[-1]
        harness.Profile(path).require_samples(500)
        for name in flat(path):
            self.assertNotRegex(name, "^_?Py(Mem|Object)_.*alloc$")
            self.assertNotRegex(name, "^_PyObject_GC_New$")
        self.assertIn("_PyObject_GC_New", flat(path, "--all-frames"))

    def test_redis(self):
        process, ask, _ = self.start_redis(settings={"period": "4K"})
        ask("eval", "for i=1,5000 do redis.call('set','key:'..i,"
            "string.rep('x',100)) end", "0")
        ask("shutdown", "nosave")
        path = self.finish(process).paths[0]
        harness.Profile(path).require_samples(50)
        found = flat(path)
        for name in found:
            self.assertNotRegex(name, "^z(try)?(m|c|re)alloc")
        self.assertIn("_sdsnewlen", found)
        self.assertTrue(any(name.startswith("zmalloc")
                            for name in flat(path, "--all-frames")))
