# SPDX-License-Identifier: MIT
"""The length of the file.  After a clean end it is the used part, and readers
find it complete, even if other threads allocate after the library's destructor;
their counts are then lost, without harm.  After `_exit`, a kill, or under a
system call filter it is the file's limit.  The name of the file if a process
executes one program after the other, and the facts that a process records about
itself."""

import os
import signal

import harness

LIMIT = 64 << 20
CHUNK = 64 << 10


class Length(harness.Case):

    def late(self, mode, **options):
        return self.execute(harness.target("program_late"), mode, period=1,
                            **options)

    def check_short(self, path):
        """All that was published is in it, and no more than a few chunks."""
        size = os.stat(path).st_size
        self.assertEqual(size % CHUNK, 0)
        self.assertLess(size, LIMIT // 2)
        profile = harness.Profile(path)
        profile.require_samples(100)
        self.assertEqual(profile.end, "clean")
        return profile

    def test_clean(self):
        for program in (harness.target("program_plain"), "true"):
            result = self.execute(program, *([1000] if "program_" in program
                                             else []), period=1)
            [path] = result.paths
            self.assertLess(os.stat(path).st_size, 40 * CHUNK)
            self.assertEqual(harness.Profile(path).end, "clean")

    def test_work_behind_the_end(self):
        """What does not fit is lost, and counted; nothing is discarded."""
        for mode in ("alone", "shared"):
            with self.subTest(mode=mode):
                result = self.late(mode)
                profile = self.check_short(result.paths[0])
                self.assertGreaterEqual(profile.samples, 100)
                self.assertGreater(profile.exact[1], 20000)
                self.assertGreater(sum(profile.lost().values()), 0)
                self.assertEqual(profile.json["discarded_bytes"], 0)

    @harness.nightly_too
    def test_threads_behind_the_end(self):
        for _ in range(harness.rounds(1, 10)):
            result = self.late("threads")
            profile = self.check_short(result.paths[0])
            self.assertEqual(profile.json["discarded_bytes"], 0)

    def test_child_outlives_its_parent(self):
        result = self.late("forked")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(len(result.paths), 2)
        for pid, profile in result.profiles().items():
            self.check_short(profile.path)
            self.assertGreaterEqual(
                profile.exact[1], 40000 if pid != result.pid else 100)

    def test_sandbox(self):
        """Opening the file again might kill the program."""
        [path] = self.late("sandbox", max_file="64M").paths
        self.assertEqual(os.stat(path).st_size, LIMIT)
        harness.Profile(path).require_samples(100)

    def test_other_ends(self):
        result = self.execute("/usr/bin/python3", "-c",
                              "import os; os._exit(0)")
        self.assertEqual(os.stat(result.paths[0]).st_size, LIMIT)
        harness.Profile(result.paths[0])
        result = self.execute("sh", "-c", "kill -KILL $$", clean=False)
        self.assertEqual(result.returncode, -signal.SIGKILL)
        self.assertEqual(os.stat(result.paths[0]).st_size, LIMIT)


class Name(harness.Case):

    def test_executed(self):
        """Each program in its file, the last one in that with the name."""
        out = os.path.join(self.dir, "name.sprof")
        plain = harness.target("program_plain")
        self.execute("sh", "-c", f"exec env A=1 {plain} 100", period=1,
                     env={"SAMPLEPROF_OUT": out})
        programs = [harness.Profile(path).json["program"] for path in (
            out, out.replace(".sprof", ".1.sprof"),
            out.replace(".sprof", ".2.sprof"))]
        self.assertTrue(os.path.samefile(programs[0], plain))
        self.assertEqual([os.path.basename(p) for p in programs[1:]],
                         [os.path.basename(os.path.realpath("/bin/sh")),
                          "env"])
        harness.Profile(out).require_samples()
        # That of another process is left alone.
        self.execute(plain, 100, period=1, env={"SAMPLEPROF_OUT": out})
        harness.Profile(out.replace(".sprof", ".3.sprof")).require_samples()

    def test_no_command(self):
        """Neither arguments nor a title nor environment is in any byte of
        the files of a process and its child.  The path is, and the names of
        threads are."""
        result = self.execute(
            "/usr/bin/perl", "-e", "$0 = 'what the thread is called t1tle'; "
            "fork ? wait : ($0 .= ' child'); "
            "@x = map { \"k$_\" x 9 } 1..20000", "s3cret",
            period="256", command="off",
            env={"PYTHONMALLOC": "mall0c"})
        self.assertEqual(len(result.paths), 2)
        for path in result.paths:
            with open(path, "rb") as file:
                data = file.read()
            for word in (b"s3cret", b"t1tle", b"mall0c"):
                self.assertFalse(word in data, word)
            profile = harness.Profile(path)
            profile.require_samples(3)
            self.assertEqual(profile.json["command"], "")
            self.assertIn("perl", profile.json["program"])
        self.assertIn("report: /usr/bin/perl",
                      harness.run_report(result.paths[0]).stdout.decode())

    def test_parent_and_title(self):
        script = ("import ctypes, os\n"
                  "def call_oneself(name):\n"
                  "    with open('/proc/self/stat', 'rb') as f:\n"
                  "        at = int(f.read().rpartition(b')')[2].split()[45])\n"
                  "    ctypes.memmove(at, name, len(name))\n"
                  "pid = os.fork()\n"
                  "if not pid: call_oneself(b'worker 7\\0')\n"
                  "words = [str(i) * 9 for i in range(200000)]\n"
                  "if pid: os.waitpid(pid, 0)\n")
        result = self.execute("/usr/bin/python3", "-c", script,
                              env={"PYTHONMALLOC": "malloc"}, period="4K")
        profiles = result.profiles()
        parent = profiles.pop(result.pid)
        [child] = profiles.values()
        child.require_samples()
        self.assertEqual(int(parent.settings["parent"]), os.getpid())
        self.assertEqual(int(child.settings["parent"]), result.pid)
        self.assertNotIn("title.end", parent.settings)
        self.assertEqual(child.settings["title.end"], "worker 7")
