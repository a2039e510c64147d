# SPDX-License-Identifier: MIT
"""Executables whose segments lie apart, by five link lines; loaders run as a
command, glibc's and musl's; no `/proc`.
"""

import ctypes
import os
import subprocess

import harness

TARGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets")
INCLUDE = os.path.join(TARGETS, "../../../include")
PLAIN = (300000, 300)
CLONE_NEWNS = 0x20000
MS_REC_PRIVATE = 0x44000
PIES = (["-fPIE", "-pie"], ["-fno-pie", "-no-pie"])[:harness.rounds(1, 2)]


def hide_proc():
    """In a child: an empty directory over its /proc."""
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.unshare(CLONE_NEWNS) or
            libc.mount(None, b"/", None, MS_REC_PRIVATE, None) or
            libc.mount(b"none", b"/proc", b"tmpfs", 0, None)):
        raise OSError(ctypes.get_errno(), "/proc")


class Segments(harness.Case):
    """Holes between the segments of an executable."""

    LINKS = {
        "bfd": ("ld.bfd", "binutils", ["-Wl,-z,max-page-size=0x200000"]),
        "bfd, code apart": ("ld.bfd", "binutils",
                            ["-Wl,-z,max-page-size=0x200000",
                             "-Wl,-z,separate-code"]),
        "gold": ("ld.gold", "binutils", ["-Wl,-z,max-page-size=0x200000"]),
        "lld": ("ld.lld", "lld", ["-Wl,-z,max-page-size=0x200000"]),
        "lld, loadable apart": ("ld.lld", "lld",
                                ["-Wl,-z,max-page-size=0x200000",
                                 "-Wl,-z,separate-loadable-segments"]),
    }

    def holes(self, program):
        """Pages between the segments of the file that nothing is mapped to."""
        done = subprocess.run(["readelf", "-lW", program], check=True,
                              capture_output=True, timeout=harness.TIMEOUT_S)
        loads = [line.split() for line in done.stdout.decode().splitlines()
                 if line.split()[:1] == ["LOAD"]]
        ends = [(int(f[2], 16) + int(f[5], 16) + 4095) // 4096 for f in loads]
        starts = [int(f[2], 16) // 4096 for f in loads]
        return sum(max(0, b - a) for a, b in zip(ends, starts[1:]))

    @harness.nightly_too
    def test_link_lines(self):
        """Names and whole stacks, as a position-independent program and, in
        the nightly list, as one that is not."""
        compiler = harness.require("g++", "g++")
        program = os.path.join(self.dir, "apart")
        for pie in PIES:
            subprocess.run([compiler, "-g", "-O1", pie[0], "-c",
                            os.path.join(TARGETS, "apart.cc"), "-o",
                            program + ".o"],
                           check=True, timeout=harness.TIMEOUT_S)
            for name, (linker, package, flags) in self.LINKS.items():
                harness.require(linker, package)
                with self.subTest(link=name, pie=pie):
                    subprocess.run(
                        [compiler, "-g", *pie, *flags,
                         "-fuse-ld=" + linker[3:], program + ".o", "-o",
                         program], check=True, timeout=harness.TIMEOUT_S)
                    self.assertGreater(self.holes(program), 100)
                    self.check(self.execute(program, 500, period=1))

    def check(self, result):
        profile = result.profile().require_samples(1000)
        self.assertEqual(result.stdout, b"objects 500\n")
        # A string object, and its 99 characters with a 0.
        self.assertEqual(profile.allocated_under("fill")[1], 1000)
        self.assertEqual(profile.allocated_under("run")[1], 1001)
        # aarch64's loader begins at a _start of its own, below which a
        # constructor of libstdc++ allocates one object.
        constructed = harness.MACHINE == "aarch64"
        self.assertEqual(profile.allocated_under("main")[1] + constructed,
                         profile.allocated_under("_start")[1])
        self.assertEqual(profile.lost(), {})


class Commands(harness.Case):
    """A loader as the program that the kernel runs."""

    def build_musl(self):
        program = os.path.join(self.dir, "program")
        subprocess.run(
            [*harness.musl_gcc(), "-g", "-O1", "-fno-builtin", "-I", INCLUDE,
             os.path.join(TARGETS, "plain.c"), "-o", program], check=True, timeout=harness.TIMEOUT_S)
        return program

    def check(self, result, program):
        self.assertEqual(result.stdout, b"hello\n", result.stderr)
        profile = result.profile().require_samples()
        self.assertEqual(profile.allocated_under("allocate"), PLAIN)
        self.assertEqual(os.path.realpath(profile.settings["exe"]), program)
        self.assertIn(os.path.basename(program), profile.modules())
        return profile

    def run_all(self, **popen):
        """glibc and musl, by their loaders and as usual; the profiles."""
        profiles = []
        for loader, path in ((harness.LOADER, harness.target("program_plain")),
                             (harness.MUSL_LOADER, self.build_musl())):
            program = os.path.realpath(path)
            cwd, name = os.path.split(program)
            for argv in ([program], ["./" + name], [loader, program],
                         [loader, "./" + name]):
                with self.subTest(argv=argv):
                    result = self.execute(*argv, 300, period=1,
                                          popen={"cwd": cwd, **popen})
                    profiles.append(self.check(result, program))
        return profiles

    def test_loader_as_command(self):
        for profile in self.run_all():
            self.assertNotIn("/proc", profile.settings.get("diagnosis", ""))

    def test_no_proc(self):
        """All but the command line is there, and the profile says so."""
        try:
            subprocess.run(["/bin/true"], check=True, preexec_fn=hide_proc,
                           timeout=harness.TIMEOUT_S)
        except subprocess.SubprocessError:
            self.skipTest("may not hide /proc here")
        for profile in self.run_all(preexec_fn=hide_proc):
            self.assertEqual(profile.json["command"], "")
            self.assertIn("/proc is not mounted",
                          profile.settings["diagnosis"])
            self.assertEqual(profile.end, "clean")
