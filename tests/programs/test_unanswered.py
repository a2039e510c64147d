# SPDX-License-Identifier: MIT
"""Who serves a file of a process (FUSE) does not answer: he is stopped, or has
read the question and keeps silent, so that who asks cannot even be killed.
Commands say so, go on, and end."""

import functools
import os
import re
import signal
import subprocess
import unittest
import urllib.request

import attaching
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
    """`paths` are files with these contents, which a process serves.  They are
    on one device: the second that is not answered takes half of the time."""

    def __init__(self, case, contents):
        self.place = os.path.join(case.dir, f"served{len(case.servers)}")
        self.paths = [os.path.join(self.place, f"file{i}")
                      for i in range(len(contents))]
        os.mkdir(self.place)
        self.process = case.start(
            ["/usr/bin/python3", os.path.join(HERE, "served.py"), self.place,
             *contents], shim=False, stdin=subprocess.PIPE)
        case.assertEqual(self.process.stdout.readline(), b"ready\n")

    def silence(self, file, way):
        if way == "STOP":
            self.process.send_signal(signal.SIGSTOP)
            return
        self.process.stdin.write(b"silent %d %s\n" % (file, way.encode()))
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

    def serve(self, *files):
        """A path and what silences it for each (way, content).  Who is to be
        stopped serves one alone."""
        served = {}
        alone = [[i] for i, (way, _) in enumerate(files) if way == "STOP"]
        for which in *alone, [i for i, (way, _) in enumerate(files)
                              if way != "STOP"]:
            server = Server(self, [files[i][1] for i in which])
            self.servers.append(server)
            served |= {i: (path, functools.partial(server.silence, at,
                                                   files[i][0]))
                       for at, (i, path) in enumerate(zip(which,
                                                          server.paths))}
        return [served[i] for i in range(len(files))]

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

    def map_profiles(self):
        """Processes whose profiles are served in the ways, the paths, and what
        silences them."""
        processes = []
        for way in WAYS:
            processes.append((os.path.join(self.dir, way + ".sprof"),
                              self.begin("/usr/bin/python3", "-c", MAPS,
                                         settings={
                                             "out": f"{self.dir}/{way}.sprof",
                                             "period": "1",
                                             "max_file": "1M"})))
        for profile, _ in processes:
            harness.wait_until(lambda path=profile: os.path.exists(path))
        served = self.serve(*zip(WAYS, (path for path, _ in processes)))
        for (profile, process), (path, _) in zip(processes, served):
            process.stdin.write(path.encode() + b"\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), b"mapped\n")
            # It is that of the process no more.
            os.unlink(profile)
        return [(process, path, silence) for (_, process), (path, silence)
                in zip(processes, served)]

    def begin_with_file(self, path):
        """The file comes before the profile in the list of mappings."""
        process = self.begin(
            "/usr/bin/python3", "-c", "import ctypes, sys\n"
            "libc = ctypes.CDLL(None)\n"
            "libc.mmap.restype = ctypes.c_void_p\n"
            "libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[\n"
            "    ctypes.c_int] * 3, ctypes.c_long]\n"
            f"file = open({path!r}, 'r+b')\n"
            "for at in 0x100000, 0x200000:\n"
            "    print(libc.mmap(at, 4096, 3, 1, file.fileno(), 0) == at)\n"
            "sys.stdout.flush()\nsys.stdin.read()", settings={"period": "1"})
        for _ in range(2):
            self.assertEqual(process.stdout.readline(), b"True\n")
        return process

    def test_profile(self):
        mapped = self.map_profiles()
        (path, silence), = self.serve(("OPEN", harness.target("program_idle")))
        good = [(self.begin_with_file(path), "python3"),
                (self.begin_idle(harness.target("program_idle"),
                                 settings={"period": "1"}), "program_idle")]
        listed = self.sampleprof("ps").stdout
        for process, path, _ in mapped:
            self.assertRegex(listed,
                             rf" {process.pid}  python3 .*\n +{path}\n")
        first = mapped[0][0].pid
        self.sampleprof("ctl", "--timeout", "0s", first, "mark", "later",
                        code=3)
        self.assertIn("later", self.sampleprof("ctl", first, "status").stdout)
        self.assertIn("python3", self.sampleprof("rss", "--timeout", "0s",
                                               first).stdout)
        silence()
        for *_, silence in mapped:
            silence()
        ends = self.ask([("ps",)] + [
            (command, process.pid, *rest) for process, *_ in mapped
            for command, *rest in (("ctl", "status"), ("ctl", "mark", "x"),
                                   ("rss",))])
        status, listed, said = ends.pop(0)
        self.assertEqual(status, 1)
        for process, name in good:
            self.assertIn(f" {process.pid}  {name}", listed)
        for (process, path, _), way in zip(mapped, WAYS):
            why = rf"process {process.pid}: its file {path} was not " \
                r"answered in \d+ ms"
            self.assertRegex(said, why)
            for command in "status", "mark", "rss":
                status, out, answer = ends.pop(0)
                with self.subTest(way=way, command=command):
                    self.assertEqual(status, 1, out + answer)
                    self.assertRegex(answer, why)

    def test_directory(self):
        """Anybody may have put links there, to what was answered for when the
        directory was listed."""
        good = self.execute(harness.target("program_plain"), 10,
                            period="1").profile()
        folder = os.path.join(self.dir, "found")
        os.mkdir(folder)
        os.link(good.path, os.path.join(folder, "z.sprof"))
        served = self.serve(("GETATTR", good.path), ("LATER", good.path))
        for number, (path, silence) in enumerate(served):
            os.symlink(path, os.path.join(folder, f"{number}.sprof"))
            silence()
        database = f"sqlite:{self.dir}/fleet.db"
        self.sampleprof("fleet", "init", "--db", database)
        watch, push, serve = (
            self.begin(harness.tool(), *words, folder, shim=False)
            for words in (("fleet", "watch", "--db", database),
                          ("push", "--pyroscope", "http://127.0.0.1:9"),
                          ("serve", "--listen", "127.0.0.1:0")))
        (status, listed, said), = self.ask([("ls", folder)])
        self.assertEqual(status, 0, said)
        self.assertIn("z.sprof", listed)
        url = re.search("http.*/metrics", serve.stderr.readline().decode())[0]
        with urllib.request.urlopen(url, timeout=harness.TIMEOUT_S) as answer:
            self.assertIn(b'profile="z.sprof"', answer.read())
        for process, says in (watch, b"added z.sprof"), (push, b"following"):
            said = []
            while not said or says not in said[-1]:
                said.append(process.stderr.readline())
                self.assertTrue(said[-1], said)
        for process in watch, push, serve:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=harness.TIMEOUT_S)
            self.assertEqual(process.returncode, 0)

    def test_named_file(self):
        """What the user names is waited for as long as it takes."""
        profile = self.execute(harness.target("program_plain"), 10,
                               period="1").profile()
        (path, silence), = self.serve(("STOP", profile.path))
        silence()
        report = self.begin(harness.tool("sampleprof-report"), path, shim=False)
        # It asks by itself: what has an end is asked by a child.
        harness.wait_until(lambda: asks(report.pid), lambda: asks(report.pid))
        self.servers[0].process.send_signal(signal.SIGCONT)
        self.assertIn(b"program_plain",
                      report.communicate(timeout=harness.TIMEOUT_S)[0])

    def test_executable(self):
        """Of a process that is attached to, and of one that is recorded."""
        served = self.serve(*((way, harness.target("program_idle"))
                              for way in WAYS))
        pids = [self.begin_idle(path, shim=False).pid for path, _ in served]
        for pid in pids:
            self.sampleprof("attach", pid, "--out",
                            os.path.join(self.dir, f"{pid}.sprof"))
            self.sampleprof("detach", pid)
        for pid in pids[::2]:
            self.sampleprof("attach", pid, "--out",
                            os.path.join(self.dir, f"{pid}-2.sprof"))
        for _, silence in served:
            silence()
        ends = self.ask([("detach" if pid in pids[::2] else "attach", pid)
                         for pid in pids])
        for pid, (status, _, said) in zip(pids, ends):
            self.assertEqual(status, 1, said)
            self.assertRegex(said, rf"process {pid}: its (executable|"
                             r"file .*) was not answered in \d+ ms")

    def test_directory_for_the_library(self):
        """The /tmp of a process without /proc, where the library would be put:
        it is refused without a question."""
        folder = os.path.join(self.dir, "jail")
        attaching.make_jail(folder, harness.target("program_idle"), "/program")
        os.mkdir(folder + "/tmp")
        (path, silence), = self.serve(("STOP", harness.target("program_idle")))
        place = os.path.dirname(path)
        subprocess.run(["mount", "--bind", place, folder + "/tmp"], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", folder + "/tmp"])
        process = self.begin("chroot", folder, "/program", shim=False)
        harness.wait_until(lambda: os.readlink(f"/proc/{process.pid}/exe") ==
                           folder + "/program")
        silence()
        (status, _, said), = self.ask([("attach", process.pid)])
        self.assertEqual(status, 1, said)
        self.assertIn("no /tmp that its user may write to", said)

    def test_names(self):
        """A profile names its executable, which was answered for once."""
        ways = (*WAYS, "LOOKUP")
        served = self.serve(*((way, harness.target("program_plain"))
                              for way in ways))
        profiles = [self.execute(path, 10, period="1").profile().path
                    for path, _ in served]
        self.assertNotRegex(self.sampleprof("report", profiles[0]).stdout,
                            r"file\d\+0x")
        for _, silence in served:
            silence()
        ends = self.ask([words for path in profiles for words in (
            ("report", path), ("symbolize", path, "-o", path + ".named"))])
        for (path, _), way in zip(served, ways):
            for command in "report", "symbolize":
                status, out, said = ends.pop(0)
                with self.subTest(way=way, command=command):
                    self.assertEqual(status, 0, said)
                    if command == "report":
                        self.assertRegex(out, r"file\d\+0x")
                        self.assertIn(f"{path} was not answered in time "
                                      "by who serves it", " ".join(out.split()))

    def test_run_ends(self):
        """Whether it has opened the file by then or not."""
        runs = []
        for (path, silence), way in zip(self.serve(*(
                (way, harness.target("program_idle")) for way in WAYS)), WAYS):
            folder = os.path.join(self.dir, way)
            os.mkdir(folder)
            runs.append((silence, way, folder, self.begin(
                harness.tool(), "run", "--quiet", "--out",
                os.path.join(folder, "x.sprof"), "--", "sh", "-c",
                f"cd {folder}; mkfifo pipe; exec 3<>pipe; printf '\\5' >&3; "
                f"{path} <&3 >out & while ! [ -s out ]; do sleep 0.01; "
                "done; : >begun; while ! [ -e silent ]; do sleep 0.01; done; "
                "sleep 1; kill -9 $!", shim=False)))
        for silence, way, folder, _ in runs:
            harness.wait_until(
                lambda: os.path.exists(os.path.join(folder, "begun")))
            silence()
            with open(os.path.join(folder, "silent"), "wb"):
                pass
        for _, way, _, process in runs:
            with self.subTest(way=way):
                process.communicate(timeout=harness.TIMEOUT_S)
                self.assertEqual(process.returncode, 0)
