# SPDX-License-Identifier: MIT
"""Who serves a file of a process (FUSE) does not answer: he is stopped, or has
read the question and keeps silent, so that who asks cannot even be killed.
Commands say so, go on, and end."""

import os
import re
import signal
import subprocess
import unittest

import harness
import hazards

HERE = os.path.dirname(os.path.abspath(__file__))
# What is not answered.  To look up a name is not asked of mapped files.
WAYS = ("STOP", "OPEN", "READ", "GETATTR", "FLUSH")

# Maps a file, after it is told to by a line with its name.
MAPS = """
import mmap, sys
for line in sys.stdin:
    with open(line.rstrip("\\n"), "r+b") as file:
        memory = mmap.mmap(file.fileno(), 1 << 16)
    print("mapped", flush=True)
"""


def asks(pid):
    """Whether that thread waits for who serves a file."""
    with open(f"/proc/{pid}/wchan", encoding="ascii") as file:
        return re.search("fuse|request_wait", file.read())


class Server:
    """`path` is a file with that content, which a process serves."""

    def __init__(self, case, content):
        self.place = os.path.join(case.dir, f"served{len(case.servers)}")
        self.path = os.path.join(self.place, "file")
        os.mkdir(self.place)
        self.process = case.start(
            ["/usr/bin/python3", os.path.join(HERE, "served.py"), self.place,
             content], shim=False, stdin=subprocess.PIPE)
        case.assertEqual(self.process.stdout.readline(), b"ready\n")

    def silence(self, way):
        if way == "STOP":
            self.process.send_signal(signal.SIGSTOP)
            return
        self.process.stdin.write(b"silent %s\n" % way.encode())
        self.process.stdin.flush()
        if self.process.stdout.readline() != b"silent\n":
            raise AssertionError("it goes on")

    def end(self):
        """Who waits for it goes on then."""
        self.process.kill()
        self.process.communicate()
        subprocess.run(["umount", "-l", self.place], check=False)


@unittest.skipUnless(hazards.can_mount() and os.path.exists("/dev/fuse"),
                     "needs root, and FUSE")
class Unanswered(harness.Case):
    def setUp(self):
        super().setUp()
        self.servers = []
        self.others = []
        self.addCleanup(self.end)

    def end(self):
        """Who closes a file waits for the server too, and cannot be killed."""
        for server in self.servers:
            server.end()
        for process in self.others:
            process.kill()
            process.communicate()

    def serve(self, content):
        self.servers.append(Server(self, content))
        return self.servers[-1]

    def begin(self, *argv, **how):
        process = self.start(argv, stdin=subprocess.PIPE, **how)
        self.others.append(process)
        return process

    def begin_idle(self, path, **how):
        process = self.begin(path, **how)
        process.stdin.write(b"\5")
        process.stdin.flush()
        self.assertEqual(process.stdout.read(1), b"\5")
        return process

    def ask(self, words):
        """How each of those commands ends, which begin together: (status,
        standard output, standard error on one line)."""
        # pylint: disable-next=consider-using-with
        asked = [subprocess.Popen(
            [harness.tool(), *map(str, w)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=self.dir,
            env=self.environment(shim=False)) for w in words]
        self.others += asked
        ends = [p.communicate(timeout=harness.TIMEOUT_S) for p in asked]
        return [(p.returncode, out, " ".join(said.split()))
                for p, (out, said) in zip(asked, ends)]

    def map_profile(self):
        """A process whose profile is served, and who serves it."""
        profile = os.path.join(self.dir, f"{len(self.servers)}.sprof")
        process = self.begin("/usr/bin/python3", "-c", MAPS,
                             settings={"out": profile, "period": "1",
                                       "max_file": "1M"})
        harness.wait_until(lambda: os.path.exists(profile))
        server = self.serve(profile)
        process.stdin.write(server.path.encode() + b"\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"mapped\n")
        # It is that of the process no more.
        os.unlink(profile)
        return process, server

    def test_profile(self):
        pairs = [self.map_profile() for _ in WAYS]
        good = self.begin_idle(harness.target("program_idle"),
                               settings={"period": "1"})
        listed = self.sampleprof("ps").stdout
        for process, server in pairs:
            self.assertRegex(listed,
                             rf" {process.pid}  python3 .*\n +{server.path}\n")
        first = pairs[0][0].pid
        self.sampleprof("ctl", "--timeout", "0s", first, "mark", "later",
                        code=3)
        self.assertIn("later", self.sampleprof("ctl", first, "status").stdout)
        self.assertIn("python3", self.sampleprof("rss", first).stdout)
        for (_, server), way in zip(pairs, WAYS):
            server.silence(way)
        ends = self.ask([("ps",)] + [
            (command, process.pid, *rest) for process, _ in pairs
            for command, *rest in (("ctl", "status"), ("ctl", "mark", "x"),
                                   ("rss",))])
        status, listed, said = ends.pop(0)
        self.assertEqual(status, 1)
        self.assertIn(f" {good.pid}  program_idle ", listed)
        for (process, server), way in zip(pairs, WAYS):
            why = rf"process {process.pid}: its file {server.path} was not " \
                r"answered in \d+ ms"
            self.assertRegex(said, why)
            for command in "status", "mark", "rss":
                status, out, answer = ends.pop(0)
                with self.subTest(way=way, command=command):
                    self.assertEqual(status, 1, out + answer)
                    self.assertRegex(answer, why)

    def test_search_goes_on(self):
        """The file comes before the profile in the list of mappings."""
        server = self.serve(harness.target("program_idle"))
        process = self.begin(
            "/usr/bin/python3", "-c", "import ctypes, sys\n"
            "libc = ctypes.CDLL(None)\n"
            "libc.mmap.restype = ctypes.c_void_p\n"
            "libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[\n"
            "    ctypes.c_int] * 3, ctypes.c_long]\n"
            f"file = open({server.path!r}, 'r+b')\n"
            "for at in 0x100000, 0x200000:\n"
            "    print(libc.mmap(at, 4096, 3, 1, file.fileno(), 0) == at)\n"
            "sys.stdout.flush()\nsys.stdin.read()", settings={"period": "1"})
        for _ in range(2):
            self.assertEqual(process.stdout.readline(), b"True\n")
        server.silence("OPEN")
        self.assertIn(f" {process.pid}  python3",
                      self.sampleprof("ps").stdout)

    def test_named_file(self):
        """What the user names is waited for as long as it takes."""
        profile = self.execute(harness.target("program_plain"), 10,
                               period="1").profile()
        server = self.serve(profile.path)
        server.silence("STOP")
        report = self.begin(harness.tool("sampleprof-report"), server.path,
                            shim=False)
        # It asks by itself: what has an end is asked by a child.
        harness.wait_until(lambda: asks(report.pid), lambda: asks(report.pid))
        server.process.send_signal(signal.SIGCONT)
        self.assertIn(b"program_plain",
                      report.communicate(timeout=harness.TIMEOUT_S)[0])

    def test_executable(self):
        """Of a process that is attached to, and of one that is recorded."""
        pairs = []
        for _ in WAYS:
            server = self.serve(harness.target("program_idle"))
            pairs.append((self.begin_idle(server.path, shim=False), server))
        pids = [process.pid for process, _ in pairs]
        for pid in pids:
            self.sampleprof("attach", pid, "--out",
                            os.path.join(self.dir, f"{pid}.sprof"))
            self.sampleprof("detach", pid)
        for pid in pids[::2]:
            self.sampleprof("attach", pid, "--out",
                            os.path.join(self.dir, f"{pid}-2.sprof"))
        for (_, server), way in zip(pairs, WAYS):
            server.silence(way)
        ends = self.ask([("detach" if pid in pids[::2] else "attach", pid)
                         for pid in pids])
        for (process, _), (status, _, said) in zip(pairs, ends):
            self.assertEqual(status, 1, said)
            self.assertRegex(said, rf"process {process.pid}: its (executable|"
                             r"file .*) was not answered in \d+ ms")

    def test_names(self):
        """A profile names its executable, which was answered for once."""
        ways = (*WAYS, "LOOKUP")
        pairs = []
        for _ in ways:
            server = self.serve(harness.target("program_plain"))
            pairs.append((server, self.execute(server.path, 10,
                                               period="1").profile().path))
        self.assertNotIn("file+0x",
                         self.sampleprof("report", pairs[0][1]).stdout)
        for (server, _), way in zip(pairs, ways):
            server.silence(way)
        ends = self.ask([words for _, path in pairs for words in (
            ("report", path), ("symbolize", path, "-o", path + ".named"))])
        for (server, _), way in zip(pairs, ways):
            for command in "report", "symbolize":
                status, out, said = ends.pop(0)
                with self.subTest(way=way, command=command):
                    self.assertEqual(status, 0, said)
                    if command == "report":
                        self.assertIn("file+0x", out)
                        self.assertIn(f"{server.path} was not answered in time "
                                      "by who serves it", " ".join(out.split()))

    def test_run_ends(self):
        """Whether it has opened the file by then or not."""
        runs = []
        for way in WAYS:
            server = self.serve(harness.target("program_idle"))
            folder = os.path.join(self.dir, way)
            os.mkdir(folder)
            runs.append((server, way, folder, self.begin(
                harness.tool(), "run", "--quiet", "--out",
                os.path.join(folder, "x.sprof"), "--", "sh", "-c",
                f"cd {folder}; mkfifo pipe; exec 3<>pipe; printf '\\5' >&3; "
                f"{server.path} <&3 >out & while ! [ -s out ]; do sleep 0.01; "
                "done; : >begun; while ! [ -e silent ]; do sleep 0.01; done; "
                "sleep 1; kill -9 $!", shim=False)))
        for server, way, folder, _ in runs:
            harness.wait_until(
                lambda: os.path.exists(os.path.join(folder, "begun")))
            server.silence(way)
            with open(os.path.join(folder, "silent"), "wb"):
                pass
        for _, way, _, process in runs:
            with self.subTest(way=way):
                process.communicate(timeout=harness.TIMEOUT_S)
                self.assertEqual(process.returncode, 0)
