# SPDX-License-Identifier: MIT
"""Readable names, and flat bytes at the program's own functions: C++, Rust,
redis with its zmalloc, Python with its allocators; `--all-frames`,
`--full-names`, `--see-through`; one baseline for all of these.  Functions of
one name are several in every view, and the same in another build; a symbol
without a size names no function but its own."""

import gzip
import json
import os
import re
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


# Static functions of one name; with `a` and `b` objects each.
NAMESAKES = {"a": """#include <stdlib.h>
static void *make(size_t n) { return malloc(n); }
void use_b(void);
int main(void) {
  for (int i = 0; i < A; i++) *(volatile char *)make(1000) = 1;
  use_b();
  return 0;
}
""", "b": """#include <stdlib.h>
static void *make(size_t n) { return malloc(n); }
void use_b(void) {
  for (int i = 0; i < B; i++) *(volatile char *)make(1000) = 1;
}
"""}

# Lambdas behind std::function, of which only the library's function has a frame.
CALLABLES = """#include <cstdlib>
#include <functional>
#include <vector>
static void *volatile kept[60000];
static int n;
struct Taker {
  void operator()() const {
    for (int i = 0; i < C; i++) kept[n++] = malloc(256);
  }
};
__attribute__((noinline)) void run(const std::function<void()> &f) { f(); }
int main() {
  run([] { for (int i = 0; i < A; i++) kept[n++] = malloc(256); });
  run([] { for (int i = 0; i < B; i++) kept[n++] = malloc(256); });
  run(Taker());
  return 0;
}
"""


def culprits(check):
    """The functions that one limit found."""
    return [c["function"] for c in check["limits"][0]["explained_by"]
            if "function" in c]


class Namesakes(harness.Case):
    def build(self, where, options, files=("one.c", "two.c"), a=900, b=100):
        """The profile of a build of NAMESAKES in a directory of its own."""
        root = os.path.join(self.dir, where)
        for name, text in zip(files, NAMESAKES.values()):
            os.makedirs(os.path.dirname(os.path.join(root, name)),
                        exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                f.write(text)
        program = os.path.join(root, "app")
        subprocess.run([harness.require("gcc", "gcc"), *options, f"-DA={a}",
                        f"-DB={b}", *files, "-o", program], cwd=root,
                       check=True, timeout=harness.TIMEOUT_S)
        return self.execute(program, period=1).paths[0]

    def makes(self, path, *options):
        return {n: k for n, k in flat(path, *options).items()
                if n.startswith("make")}

    def test_every_view(self):
        files = {("one.c", "two.c"): ("one.c", "two.c"),
                 ("x/u.c", "y/u.c"): ("x/u.c", "y/u.c")}
        for options in (["-O2", "-g"], ["-O0", "-g"], ["-O0"]):
            for names, homes in files.items():
                path = self.build(f"{len(options)}{options[0]}{homes[0][0]}",
                                  options, names)
                if homes[0] == "x/u.c" and "-g" not in options:
                    # the symbol table has the same file of both
                    found = self.makes(path)
                    self.assertEqual(sorted(found.values()), [100, 900])
                    self.assertTrue(all("[in u.c+0x" in n for n in found))
                    continue
                with self.subTest(options=options, homes=homes):
                    self.check_views(path, homes, "-g" in options)

    def check_views(self, path, homes, has_files):
        rows = {f"make [in {homes[0]}]": 900, f"make [in {homes[1]}]": 100}
        self.assertEqual(self.makes(path), rows)
        functions = {f["name"]: f for f in json.loads(harness.report(
            "--json", path))["functions"]}
        for name, home in zip(rows, homes):
            self.assertEqual(functions[name]["full_name"], "make")
            self.assertEqual(functions[name]["defined_in"], home)
            if has_files:
                self.assertTrue(functions[name]["file"].endswith(home))
        text = harness.report(path)
        csv = harness.report("--csv", path)
        for name in rows:
            self.assertIn(f"  {name}  (app)\n", text)
            self.assertEqual(csv.count(f'"{name}",'), 1)
            for kind in ("collapsed", "pprof", "dhat", "html", "speedscope"):
                out = os.path.join(self.dir, "out." + kind)
                harness.report("export", kind, path, "-o", out)
                with open(out, "rb") as f:
                    data = f.read()
                if data[:2] == b"\x1f\x8b":
                    data = gzip.decompress(data)
                self.assertIn(name.encode(), data, kind)
        copy = os.path.join(self.dir, "copy.sprof.zst")
        harness.report("symbolize", path, "-o", copy)
        self.assertEqual(self.makes(copy), rows)
        os.unlink(copy)
        # patterns find both, and each
        self.assertEqual(self.makes(path, "--focus=^make$"), rows)
        self.assertEqual(list(self.makes(
            path, f"--focus=^make .in {homes[1]}").values()), [100])

    def test_between_builds(self):
        """An unchanged function is the same, wherever it was built, with debug
        information or without; one that grew is found."""
        for options in (["-O2", "-g"], ["-O0"]):
            old = self.build(f"old{len(options)}", options)
            same = self.build(f"same{len(options)}", options)
            other = self.build(f"other{len(options)}", options, a=800, b=200)
            base = os.path.join(self.dir, f"base{len(options)}.json")
            harness.report("check", old, "--update-baseline", "--baseline",
                           base)
            for before in (old, base):
                with self.subTest(options=options, before=before):
                    harness.report("check", same, "--baseline", before,
                                   "--limit", "sites=+1%")
                    found = json.loads(self.sampleprof(
                        "check", other, "--baseline", before, "--limit",
                        "sites=+5%", "--format", "json", code=3).stdout)
                    self.assertEqual(culprits(found), ["make [in two.c]"])
                    rows = {r["name"]: r["change"]["value"] for r in
                            json.loads(harness.report(
                                "diff", "--json", before, other))["functions"]}
                    self.assertEqual(rows["make [in one.c]"], -100000)
                    self.assertEqual(rows["make [in two.c]"], 100000)

    def test_merged(self):
        """Where only the address tells functions apart, which another build
        does not have, they are one, and that is said."""
        old = self.build("old", ["-O0"], ("x/u.c", "y/u.c"))
        new = self.build("new", ["-O0"], ("x/u.c", "y/u.c"), b=500)
        rows = {r["name"]: r["change"]["value"] for r in json.loads(
            harness.report("diff", "--json", old, new))["functions"]}
        self.assertEqual(rows["make [2 functions]"], 400000)

    def test_fleet(self):
        """A database of two builds has a row for each function, not for each
        build of it."""
        self.sampleprof("fleet", "init")
        for b in (100, 300):
            path = self.build("app", ["-O0", "-g"], b=b)
            self.sampleprof("fleet", "add", path)
        rows = json.loads(self.sampleprof("fleet", "report",
                                          "--json").stdout)["functions"]
        self.assertEqual({r["name"]: r["samples"] for r in rows
                          if r["name"].startswith("make")},
                         {"make [in one.c]": 1800, "make [in two.c]": 400})

    def test_callables(self):
        source = os.path.join(self.dir, "call.cc")
        with open(source, "w", encoding="utf-8") as f:
            f.write(CALLABLES)
        paths = []
        for where, counts in (("old", (20001, 19999, 5000)),
                              ("new", (1000, 39000, 5000)),
                              ("both", (26000, 25000, 5000))):
            program = os.path.join(self.dir, where)
            subprocess.run(
                [harness.require("g++", "g++"), "-O2", source, "-o", program,
                 *(f"-D{c}={n}" for c, n in zip("ABC", counts))],
                check=True, timeout=harness.TIMEOUT_S)
            paths.append(self.execute(program, period=1).paths[0])
            self.assertLessEqual(set(counts), set(flat(paths[-1]).values()))
        found = json.loads(self.sampleprof(
            "check", paths[1], "--baseline", paths[0], "--any-program",
            "--limit", "sites=+5%", "--format", "json", code=3).stdout)
        name, = culprits(found)
        self.assertIn("{lambda()#2}", name)
        # names that are cut do not become the same one
        text = self.sampleprof(
            "check", paths[2], "--baseline", paths[0], "--any-program",
            "--limit", "sites=+5%", code=3).stdout
        self.assertEqual(sorted(re.findall(r"exact  (std::.*)", text)), [
            "std::...::{lambda()#1}>::_M_invoke",
            "std::...::{lambda()#2}>::_M_invoke"], text)


# Of D, Fortran and Ada, as their compilers name functions, and parts that gcc
# makes of a function.
LANGUAGES = r"""#include <stdlib.h>
#define NAMED(c, symbol, n) \
  void *c(void) __asm__(symbol); \
  __attribute__((noinline)) void *c(void) { \
    void *volatile p = 0; \
    for (int i = 0; i < n; i++) p = malloc(64); \
    return p; \
  }
NAMED(d, "_D4till4Cash4openMFiZAv", 11)
NAMED(fortran, "__till_MOD_open", 12)
NAMED(ada, "till__drawer__open", 13)
NAMED(part, "open_till.constprop.0.isra.1", 14)
void __gnat_runtime_initialize(void) {}
int main(void) { d(); fortran(); ada(); part(); return 0; }
"""

# Two functions that a linker finds to be the same, and one more.
SAME = r"""#include <cstdlib>
static void *volatile kept;
struct Coin { long a[6]; };
struct Note { double a[6]; };
template <class T> __attribute__((noinline)) void draw(int n) {
  for (int i = 0; i < n; i++) kept = malloc(sizeof(T));
}
static __attribute__((noinline)) void alone() { kept = malloc(7); }
int main() { draw<Coin>(300); draw<Note>(100); alone(); return 0; }
"""

# A function that all know, and a copy and a part of it, which only its file
# knows; and a part of a static one.
COPIES = r"""#include <stdlib.h>
#define NAMED(kind, c, symbol, n) \
  kind void *c(void) __asm__(symbol); \
  __attribute__((noinline, used)) kind void *c(void) { \
    void *volatile p = 0; \
    for (int i = 0; i < n; i++) p = malloc(64); \
    return p; \
  }
NAMED(, take, "take", 11)
NAMED(static, copy, "take.constprop.0", 12)
NAMED(static, part, "take.part.0", 13)
NAMED(static, own, "give.part.0", 14)
int main(void) { take(); copy(); part(); own(); return 0; }
"""

# Coroutines that all know: what is allocated before the first suspension, and
# behind it.
COROUTINE = r"""#include <coroutine>
#include <cstdlib>
static void *volatile kept;
struct Task {
  struct promise_type {
    Task get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> h;
};
Task visit(int n) {
  for (int i = 0; i < n; i++) kept = malloc(64);
  co_await std::suspend_always{};
}
int main() {
  Task t = visit(20);
  while (!t.h.done()) t.h.resume();
  t.h.destroy();
  return 0;
}
"""


class Languages(harness.Case):
    def compile(self, compiler, name, text, *options):
        source = os.path.join(self.dir, name)
        program = os.path.splitext(source)[0]
        with open(source, "w", encoding="utf-8") as out:
            out.write(text)
        subprocess.run([harness.require(compiler, compiler), source, "-o",
                        program, *options], check=True,
                       timeout=harness.TIMEOUT_S)
        return program

    def test_beyond_cxx(self):
        program = self.compile("gcc", "till.c", LANGUAGES, "-O1")
        found = flat(self.execute(program, period=1).paths[-1])
        self.assertEqual(found, {"till.Cash.open": 11, "till::open": 12,
                                 "till.drawer.open": 13, "open_till": 14})

    def test_copies(self):
        """With or without debug information, parts and copies are the
        function, however local their symbols are."""
        program = self.compile("gcc", "copies.c", COPIES, "-O1")
        path = self.execute(program, period=1).paths[-1]
        self.assertEqual(flat(path), {"take": 36, "give": 14})
        named = os.path.join(self.dir, "named.sprof.zst")
        harness.report("symbolize", path, "-o", named)
        for file in (path, named):
            marked = sorted(re.findall(r"^    (take|give)( \(clone\))?",
                                       harness.report("traces", file), re.M))
            self.assertEqual(marked, [("give", " (clone)"), ("take", ""),
                                      *2 * [("take", " (clone)")]])
            if file == path:
                os.unlink(program)
        for debug in ((), ("-g",)):
            with self.subTest(debug=debug):
                program = self.compile("g++", "visit.cc", COROUTINE, "-O1",
                                       "-std=c++20", *debug)
                found = flat(self.execute(program, period=1).paths[-1])
                self.assertEqual(
                    {n: k for n, k in found.items() if "visit" in n},
                    {"visit": 21})

    def test_same_code(self):
        """A linker that keeps one of two functions: either may have been
        called.  One that keeps both: each."""
        for linker, package in (("lld", "lld"), ("gold", "binutils")):
            harness.require("ld." + linker, package)
            options = ("-O1", "-fno-ipa-icf", "-ffunction-sections",
                       "-fuse-ld=" + linker)
            for more, want in (
                    ((), {"draw<Coin>": 300, "draw<Note>": 100, "alone": 1}),
                    (("-Wl,--icf=all",),
                     {"draw<Coin> or draw<Note>": 400, "alone": 1})):
                for debug in ((), ("-g",)):
                    with self.subTest(linker=linker, more=more, debug=debug):
                        program = self.compile("g++", "same.cc", SAME,
                                               *options, *more, *debug)
                        self.check_same(program, want)
            with self.subTest(linker=linker, packaged=True):
                self.move_as_packages_do(program)
                self.check_same(program, want)
        rows = flat(self.execute(program, period=1).paths[-1],
                    "--full-names")
        self.assertEqual(rows["draw<Coin> or draw<Note>"], 400)

    def check_same(self, program, want):
        found = flat(self.execute(program, period=1).paths[-1])
        self.assertEqual({n: found.get(n) for n in want}, want)

    def move_as_packages_do(self, program):
        """Who linked it is said in the debug file alone."""
        for command in (
                ("objcopy", "--only-keep-debug", program, program + ".debug"),
                ("strip", "--strip-all", "-R", ".comment", "-R",
                 ".note.gnu.gold-version", program),
                ("objcopy", "--add-gnu-debuglink=" + program + ".debug",
                 program)):
            subprocess.run(command, check=True, timeout=harness.TIMEOUT_S,
                           cwd=self.dir)


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


INSTANCES = """
#include <cstdlib>
static void *volatile kept;
template <class T> __attribute__((noinline)) void take(T n) {
  for (T i = 0; i < n; i++) kept = malloc(100);
}
int main() { take<int>(30); take<long>(70); }
"""


# A label that others may use, and behind it two functions that nobody sees.
HIDDEN = r"""
#include <stdlib.h>
static void *volatile kept;
__asm__(".globl label\n.type label, @function\nlabel: ret");
static __attribute__((noinline)) void first(int n) {
  while (n--) kept = malloc(100);
}
static __attribute__((noinline)) void second(int n) {
  while (n--) kept = malloc(100);
  kept = NULL;
}
void seen(void) { first(30); second(70); }
"""


class Labels(harness.Case):
    def test_label_in_front_of_functions_without_symbols(self):
        """frame_dummy has no size.  Small symbol tables (.gnu_debugdata) lack
        weak functions, which then are in its reach."""
        source = os.path.join(self.dir, "app.cc")
        with open(source, "w", encoding="utf-8") as f:
            f.write(INSTANCES)
        program = os.path.join(self.dir, "app")
        subprocess.run([harness.require("g++", "g++"), "-O2", source, "-o",
                        program], check=True, timeout=harness.TIMEOUT_S)
        subprocess.run(["strip", "--strip-all", "-K", "frame_dummy", "-K",
                        "main", program], check=True,
                       timeout=harness.TIMEOUT_S)
        rows = flat(self.execute(program, period=1).paths[0])
        self.assertNotIn("frame_dummy", rows)
        self.assertEqual(sorted(n for name, n in rows.items()
                                if name.startswith("app+0x")), [30, 70])

    def test_label_where_no_table_is(self):
        """Nor is it the name of functions behind it, of which a stripped
        library without unwind tables says nothing; and they are not one, which
        begins where the last table ended."""
        source = os.path.join(self.dir, "hidden.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write(HIDDEN)
        library = os.path.join(self.dir, "hidden.so")
        gcc = harness.require("gcc", "gcc")
        subprocess.run([gcc, "-O1", "-s", "-shared", "-fPIC",
                        "-fno-toplevel-reorder",
                        "-fno-asynchronous-unwind-tables", source, "-o",
                        library], check=True, timeout=harness.TIMEOUT_S)
        program = os.path.join(self.dir, "app")
        subprocess.run([gcc, "-x", "c", "-", "-x", "none", library, "-o",
                        program], input=b"void seen(void);\nint main(void) "
                       b"{ seen(); return 0; }\n", check=True,
                       timeout=harness.TIMEOUT_S)
        path = self.execute(program, period=1).paths[0]
        rows = flat(path)
        self.assertNotIn("label", rows)
        self.assertEqual(sorted(n for name, n in rows.items()
                                if name.startswith("hidden.so+0x")), [30, 70])
        notes = " ".join(harness.report("report", path).split())
        self.assertRegex(notes,
                         r"hidden\.so\+0x\w+ is between label and seen ")
