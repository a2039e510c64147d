# SPDX-License-Identifier: MIT
"""Programs that do unusual things: plug-ins, allocation before and after main,
signal handlers that allocate, closed descriptors, an allocator of their own,
set-uid.
"""

import os
import shutil
import stat
import subprocess
import unittest

import harness

NEEDS_DEBUG_FILES = True  # valgrind does

NOBODY = 65534
# Of valgrind: its malloc is below ours, not in the place of it.
MALLOC_IS_OURS = "--soname-synonyms=somalloc=nouserintercepts"


class Plugins(harness.Case):

    def plugins(self, *names):
        return [harness.target(f"libprogram_plugin_{n}.so") for n in names]

    def test_unloaded_libraries(self):
        """Frames keep their names after the library is gone, even if another
        one is loaded in its place."""
        rounds, each = 20, 15
        plugins = self.plugins("a", "b")
        result = self.execute(harness.target("program_host"), rounds, each,
                              *plugins, period=1)
        profile = result.profile()
        self.assertEqual(profile.lost(), {})
        self.assertEqual(profile.samples, profile.exact[1])
        for name, path in zip("ab", plugins):
            function = f"plugin_{name}_allocate"
            self.assertEqual(profile.allocated_under(function),
                             (31 * rounds * each, rounds * each))
            for stack in profile.stacks_with(function):
                names = [f["function"] for f in stack["frames"]]
                self.assertEqual(names[-1], "_start", names)
                self.assertIn("main", names)
            self.assertEqual(profile.function(function)["module"], path)

    def test_cxx_plugin_of_c_program(self):
        """Its operators are nowhere below the library; failing ones throw."""
        result = self.execute(harness.target("program_host"), 3, 40,
                              *self.plugins("cxx"), period=1)
        profile = result.profile()
        self.assertEqual(profile.samples, profile.exact[1])
        found = [f for f in profile.json["functions"]
                 if "plugin_cxx_allocate" in f["name"]]
        self.assertEqual([f["cum_samples"] for f in found], [120])
        self.assertEqual([f["cum_bytes"]["value"] for f in found], [120 * 51])


class Lifetimes(harness.Case):

    def test_before_and_after_main(self):
        """Constructors, destructors, atexit; also of a library that starts
        before this one and ends after it."""
        n = 60
        idle = self.execute(harness.target("program_lifetimes"), 0,
                            period=1).profile()
        profile = self.execute(harness.target("program_lifetimes"), n,
                               period=1).profile()
        sizes = {"in_constructor": 11, "in_destructor": 12, "in_atexit": 13,
                 "in_main": 14, "in_early_constructor": 21,
                 "in_late_destructor": 22, "in_early_main": 23}
        seen = {name: profile.allocated_under(name) for name in sizes}
        self.assertEqual(seen, {k: (v * n, n) for k, v in sizes.items()})
        self.assertEqual(
            (profile.exact[0] - idle.exact[0],
             profile.exact[1] - idle.exact[1]),
            (sum(sizes.values()) * n, len(sizes) * n))
        self.assertEqual(profile.samples, profile.exact[1])
        self.assertEqual(profile.end, "clean")
        self.assertEqual(profile.lost(), {})


class Signals(harness.Case):

    @harness.nightly_too
    def test_handler_that_allocates(self):
        """Every 50 us, at any instruction of the program, the library or
        the allocator.  All is counted; what the loop allocates is sampled; a
        handler that interrupted the library itself passes unsampled."""
        program = harness.target("program_signals")
        bump = (harness.target("libprogram_bump.so"),)
        for period in harness.rounds(("1", "512K"), ("1", "4K", "512K")):
            with self.subTest(period=period):
                idle = self.execute(program, 0, 0, preload=bump,
                                    period=period).profile()
                result = self.execute(program, 60000, 2000, preload=bump,
                                      period=period, max_file="256M")
                profile = result.profile()
                values = result.values()
                truth = tuple(a + b for a, b in zip(values["in_loop"],
                                                    values["in_handler"]))
                self.assertGreaterEqual(values["in_handler"][1], 2000)
                self.assertEqual(
                    (profile.exact[0] - idle.exact[0],
                     profile.exact[1] - idle.exact[1]), truth)
                self.assertEqual(profile.end, "clean")
                self.assertIn("bump", profile.settings["allocator"])
                lost = profile.lost()
                nested = lost.pop("allocations_in_signal_handlers", 0)
                self.assertEqual(lost, {})
                if period != "1":
                    continue
                loop = [s for s in profile.stacks_with("in_loop")
                        if s not in profile.stacks_with("in_handler")]
                self.assertEqual(
                    (sum(s["flat_bytes"]["value"] for s in loop),
                     sum(s["samples"] for s in loop)), values["in_loop"])
                handler = profile.allocated_under("in_handler")[1]
                self.assertGreater(handler, 0)
                self.assertLessEqual(handler + nested,
                                     values["in_handler"][1])


class Hosts(harness.Case):

    def test_closed_descriptors(self):
        """closefrom(3), and every low descriptor taken by the program: its
        file has what it wrote, and the profile what it allocated."""
        mine = os.path.join(self.dir, "mine")
        profile = self.execute(harness.target("program_closefrom"), mine, 30000,
                               period=1).profile()
        with open(mine, "rb") as f:
            self.assertEqual(f.read(), b"mine\n")
        self.assertEqual(profile.allocated_under("work"), (3000000, 30000))
        self.assertEqual(profile.end, "clean")
        self.assertEqual(profile.lost(), {})

    def test_no_descriptor_is_left_open(self):
        listing = self.execute("/bin/ls", "/proc/self/fd", shim=False)
        profiled = self.execute("/bin/ls", "/proc/self/fd", period=1)
        profiled.profile().require_samples()
        self.assertEqual(profiled.stdout, listing.stdout)

    def check_bypassed(self, result):
        """An empty profile, and the reason in it."""
        self.assertEqual(result.stdout, b"hello\n")
        self.assertIn(b"sampleprof", result.stderr)
        profile = result.profile()
        self.assertEqual(profile.samples, 0)
        text = profile.settings["diagnosis"]
        self.assertIn("before sampleprof", text)
        self.check_unseen(profile, "malloc")
        return text

    def check_unseen(self, profile, entry):
        """The totals are the least that there is; none is of nothing."""
        self.assertIn(entry, profile.settings["unseen"].split())
        self.assertFalse(profile.json["exact"]["is_complete"])
        text = harness.report(profile.path).split("notes:")[0]
        if profile.exact[1]:
            self.assertRegex(text, r"\n  allocated at least [^,]*\n")
        else:
            self.assertIn("\n  allocated not seen: see the notes\n", text)
            self.assertNotIn("exact", text)

    def test_own_malloc(self):
        path = os.path.join(self.dir, "stripped")
        subprocess.run(["strip", "-o", path,
                        harness.target("program_own_malloc")], check=True)
        text = self.check_bypassed(self.execute(path, 100, period=1))
        self.assertIn(path, text)

    def test_allocator_before_us(self):
        """The wrong order in LD_PRELOAD."""
        jemalloc, = harness.allocator("jemalloc")
        order = jemalloc + " " + os.environ["SAMPLEPROF_SO"]
        text = self.check_bypassed(
            self.execute(harness.target("program_plain"), 100, period=1,
                         env={"LD_PRELOAD": order}))
        self.assertIn(jemalloc, text)

    def test_allocators_before_us(self):
        """Before and after: only what stands first is asked.  One that passes
        on what it is asked for does not make less of what is seen."""
        us = os.environ["SAMPLEPROF_SO"]
        jemalloc, = harness.allocator("jemalloc")
        tcmalloc, = harness.allocator("tcmalloc")
        for order in ((jemalloc, us, tcmalloc), (jemalloc, tcmalloc, us)):
            with self.subTest(order=order):
                text = self.check_bypassed(self.execute(
                    harness.target("program_plain"), 100, period=1,
                    env={"LD_PRELOAD": " ".join(order)}))
                self.assertIn(jemalloc, text)
        passing = harness.require(harness.LIBDIR + "libmemusage.so", "libc6")
        profile = self.execute(
            harness.target("program_plain"), 100, period=1,
            env={"LD_PRELOAD": f"{passing} {us}",
                 "MEMUSAGE_OUTPUT": "/dev/null"}).profile()
        self.assertGreaterEqual(profile.exact[1], 100)
        self.check_unseen(profile, "malloc")

    def test_library_between_us_and_the_allocator(self):
        """It has a malloc, and no operators: those are of the allocator, whose
        own malloc is not asked."""
        between = harness.require(harness.LIBDIR + "libmemusage.so", "libc6")
        result = self.execute(
            harness.target("program_operators_tcmalloc_minimal"), 2, 20,
            "nothrow", period=1, preload=(between,),
            env={"MEMUSAGE_OUTPUT": "/dev/null"})
        profile = result.profile()
        values = result.values()
        self.assertEqual(values["measured"], values["truth"])
        for name in (v for v in values if v.startswith("call_")):
            self.assertEqual(
                profile.allocated_under(f"(anonymous namespace)::{name}"),
                values[name])
        self.assertGreaterEqual(profile.exact[1], values["truth"][1])
        self.assertEqual(profile.samples, profile.exact[1])

    def test_kin_of_malloc_before_us(self):
        """A program with an aligned_alloc of its own, and malloc of ours."""
        source = os.path.join(self.dir, "kin.c")
        program = os.path.join(self.dir, "kin")
        with open(source, "w", encoding="ascii") as f:
            f.write("#include <stdlib.h>\n#include <stdio.h>\n"
                    "static char pool[4096];\n"
                    "void *aligned_alloc(size_t a, size_t n)\n"
                    "{ return n < 4096 ? pool : NULL; }\n"
                    "int main(void) { return !(aligned_alloc(64, 64) &&\n"
                    "malloc(40) && puts(\"hello\") > 0); }\n")
        subprocess.run(["gcc", "-rdynamic", "-w", source, "-o", program],
                       check=True, timeout=harness.TIMEOUT_S)
        profile = self.execute(program, period=1).profile()
        self.assertIn("defined by " + program, profile.settings["diagnosis"])
        self.check_unseen(profile, "aligned_alloc")
        self.assertNotIn("malloc", profile.settings["unseen"].split())

    @harness.nightly_too
    def test_valgrind(self):
        """It takes malloc for itself, unless it is told not to (in the ordinary
        list tools.Valgrind tells it), and operator new always."""
        for target, option, unseen in (
                ("program_plain", [], "malloc"),
                ("program_live_vector", [MALLOC_IS_OURS], "_Znwm"),
                ("program_plain", [MALLOC_IS_OURS], None))[
                    :harness.rounds(2, 3)]:
            with self.subTest(target=target, option=option):
                program = harness.target(target)
                result = self.execute(
                    harness.require("valgrind", "valgrind"), "-q", *option,
                    program, 50, period=1, follow=os.path.basename(program))
                profile = result.profile()
                if unseen:
                    self.assertIn(b"valgrind takes", result.stderr)
                    self.check_unseen(profile, unseen)
                else:
                    self.assertEqual(result.stderr, b"")
                    self.assertNotIn("unseen", profile.settings)
                    profile.require_samples(50)

    def test_stripped_environment(self):
        """With nothing but LD_PRELOAD in it."""
        with subprocess.Popen(
                [harness.target("program_plain"), "10"], cwd=self.out,
                env={"LD_PRELOAD": os.environ["SAMPLEPROF_SO"]},
                stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            stdout, stderr = process.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual((process.returncode, stdout, stderr),
                         (0, b"hello\n", b""))
        name = f"program_plain.{process.pid}.sprof"
        profile = harness.Profile(os.path.join(self.out, name))
        self.assertGreaterEqual(profile.exact[1], 10)

    @unittest.skipUnless(os.geteuid() == 0, "needs root for a set-uid program")
    def test_set_uid(self):
        """Left alone: no file, no message."""
        for path in (os.environ["SAMPLEPROF_SO"],
                     harness.target("program_identity")):
            shutil.copy(path, self.dir)
        program = os.path.join(self.dir, "program_identity")
        os.chmod(os.path.join(self.dir, "libsampleprof.so"), 0o755)
        os.chmod(self.dir, 0o755)
        os.chmod(self.out, 0o777)

        def run():
            with subprocess.Popen(
                    [program], user=NOBODY, group=NOBODY, extra_groups=(),
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
                    env={"LD_PRELOAD": self.dir + "/libsampleprof.so",
                         "SAMPLEPROF_OUT": self.out,
                         "SAMPLEPROF_PERIOD": "1"}) as process:
                stdout, stderr = process.communicate(
                    timeout=harness.TIMEOUT_S)
            self.assertEqual(process.returncode, 0)
            return stdout, stderr

        # The same program, not set-uid, does leave a file.
        os.chmod(program, 0o755)
        self.assertEqual(run(), (b"euid %d 0\n" % NOBODY, b""))
        self.assertEqual(len(os.listdir(self.out)), 1)
        for name in os.listdir(self.out):
            os.unlink(os.path.join(self.out, name))
        os.chmod(program, 0o755 | stat.S_ISUID)
        stdout, stderr = run()
        if stdout != b"euid 0 0\n":
            self.skipTest("set-uid has no effect in the temporary directory")
        self.assertNotIn(b"sampleprof:", stderr)
        self.assertEqual(os.listdir(self.out), [])
