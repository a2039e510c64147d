# SPDX-License-Identifier: MIT
"""Files that the report opens because of a profile (strace): only modules and
files below `--debug-path`, no pipe, no device, whatever links say.  Files of
100 bytes are read with 64 MiB of memory."""

import os
import random
import re
import resource
import shutil
import stat
import subprocess

import harness

# A bound that nothing small comes near: the libraries alone take half of it.
MEMORY_BYTES = 64 << 20
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                      "format", "golden")


class Opens(harness.Case):
    def setUp(self):
        super().setUp()
        self.program = os.path.join(self.dir, "program")
        shutil.copy(harness.target("program_plain"), self.program)
        self.profile = self.execute(
            self.program, 10, period="1").profile().require_samples().path
        self.roots = os.path.join(self.dir, "roots")
        os.mkdir(self.roots)

    def opened(self, *options):
        """The files that the report opened, or tried to, after the profile."""
        log = os.path.join(self.dir, "strace")
        done = subprocess.run(
            [harness.require("strace", "strace"), "-f", "-qq", "-o", log, "-e",
             "trace=open,openat,openat2,creat,execve,connect",
             os.environ["SAMPLEPROF_REPORT"], self.profile,
             "--debug-path", self.roots, "--stacks=0", *options],
            capture_output=True, timeout=harness.TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(log, encoding="utf-8", errors="replace") as f:
            calls = f.read().splitlines()
        first = next(i for i, c in enumerate(calls) if self.profile in c)
        return [re.search(r'"([^"]*)"', c).group(1)
                for c in calls[first + 1:]], done.stdout.decode()

    def check(self, paths):
        """Nothing but the program, the C library, and what is below the
        roots."""
        for path in paths:
            self.assertTrue(
                # The profile's head is looked at before it is read.
                path in (self.program, self.profile) or path.startswith(self.roots + "/")
                or re.fullmatch(r"/(usr/)?lib(64|/x86_64-linux-gnu)/"
                                r"(libc|libsampleprof|ld-linux-x86-64)"
                                r"\.so(\.\d)?", path)
                or path == os.environ["SAMPLEPROF_SO"]
                # Is the process still there?  What is the time zone?
                or re.fullmatch(r"/proc/\d+/maps|/etc/localtime", path)
                # A debug link is looked for beside the file that has it.
                or os.path.dirname(path) in (self.dir, self.dir + "/.debug"),
                f"{path} was opened; all: {paths}")

    def put_debug_file(self):
        """Where the build id of the program leads to; returns the path."""
        notes = subprocess.run(
            [harness.require("readelf", "binutils"), "-n", self.program],
            capture_output=True, check=True, text=True).stdout
        build_id = re.search(r"Build ID: (\w+)", notes).group(1)
        path = os.path.join(self.roots, ".build-id", build_id[:2],
                            build_id[2:] + ".debug")
        os.makedirs(os.path.dirname(path))
        subprocess.run(["objcopy", "--only-keep-debug", self.program, path],
                       check=True)
        subprocess.run(["objcopy", "--strip-debug", self.program], check=True)
        return path

    def test_only_modules_and_debug_path(self):
        debug = self.put_debug_file()
        paths, text = self.opened()
        self.check(paths)
        self.assertIn(self.program, paths)
        self.assertIn(debug, paths)
        self.assertIn("main", text)

    def test_what_took_the_place_of_a_module(self):
        os.unlink(self.program)
        os.mkfifo(self.program)
        self.replaced("is not a regular file")
        os.unlink(self.program)
        os.mkdir(self.program)
        self.replaced("is not a regular file")
        os.rmdir(self.program)
        os.symlink("/dev/zero", self.program)
        self.replaced("is not a regular file")
        os.unlink(self.program)
        with open(self.program, "w", encoding="ascii") as f:
            f.write("no program at all\n")
        self.replaced("is not an ELF", may_open=True)

    def replaced(self, why, may_open=False):
        paths, text = self.opened()
        self.check(paths)
        self.assertIn(why, " ".join(text.split()))
        if not may_open:
            self.assertNotIn(self.program, paths)

    def test_link_to_anywhere(self):
        """Links of a module to debug files, with directories in their names."""
        target = os.path.join(self.dir, "elsewhere")
        os.mkfifo(target)
        link = os.path.join(self.dir, "link")
        for section, padding in ((".gnu_debuglink", 8), (".gnu_debugaltlink",
                                                         20)):
            for name in (target, "../elsewhere", "x/.dwz/../../elsewhere"):
                with open(link, "wb") as f:
                    data = name.encode() + b"\0"
                    f.write(data + b"\1" * (-len(data) % 4 + padding))
                program = harness.target("program_plain")
                subprocess.run(
                    [harness.require("objcopy", "binutils"), "--strip-debug",
                     "--add-section", f"{section}={link}", program,
                     self.program], check=True)
                self.check(self.opened()[0])
        self.assertTrue(stat.S_ISFIFO(os.stat(target).st_mode))


class Memory(harness.Case):
    def run_limited(self, *argv):
        """Status and standard error, with few bytes to be had."""
        def limit():
            resource.setrlimit(resource.RLIMIT_AS,
                               (MEMORY_BYTES, MEMORY_BYTES))
        done = subprocess.run(argv, capture_output=True, preexec_fn=limit,
                              timeout=harness.TIMEOUT_S, check=False)
        return done.returncode, done.stderr.decode(errors="replace")

    def report(self, path):
        return self.run_limited(os.environ["SAMPLEPROF_REPORT"], path)

    def inputs(self):
        """Files of 100 bytes and a little more: beginnings of profiles, ELF
        and zstd files, and what is none, with bytes replaced."""
        with open(os.path.join(GOLDEN, "v1", "clean.sprof"), "rb") as f:
            profile = f.read(4096)
        with open(os.environ["SAMPLEPROF_REPORT"], "rb") as f:
            elf = f.read(4096)
        zstd = bytes.fromhex("28b52ffd") + b"\xe4" + b"\xff" * 8
        draw = random.Random(1)
        for start in (profile, elf, zstd + profile, b"", b"\0" * 100):
            for size in (100, 1000):
                yield start[:size]
                for _ in range(3):
                    data = bytearray(start[:size])
                    for _ in range(min(len(data), 3)):
                        at = draw.randrange(len(data))
                        data[at:at + 4] = b"\xff" * len(data[at:at + 4])
                    yield bytes(data)

    def test_few_bytes_take_little_memory(self):
        path = os.path.join(self.dir, "small.sprof")
        for data in set(self.inputs()):
            with open(path, "wb") as f:
                f.write(data)
            status, said = self.report(path)
            self.assertIn(status, (0, 1), said)
            self.assertNotIn("memory", said, data)
            self.assertTrue(status == 0 or path in said, said)

    def test_the_limit_is_felt(self):
        self.assertEqual(self.report(
            os.path.join(GOLDEN, "v1", "clean.sprof"))[0], 0)
        python = ["/usr/bin/python3", "-c"]
        self.assertEqual(self.run_limited(*python, "bytearray(1 << 20)")[0], 0)
        self.assertNotEqual(
            self.run_limited(*python, "bytearray(64 << 20)")[0], 0)
