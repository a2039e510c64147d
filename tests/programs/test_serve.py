# SPDX-License-Identifier: MIT
"""sampleprof serve: its figures over HTTP, read by promtool and google/pprof,
are those of the report; wrong requests, hostile names, and its end."""

import concurrent.futures
import contextlib
import gzip
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

import harness
from test_export import Pprof

OPEN_METRICS = "application/openmetrics-text"
SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\}'
                    r" (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Serve(harness.Case):
    def setUp(self):
        super().setUp()
        self.served = os.path.join(self.dir, "served")
        os.mkdir(self.served)
        self.port = None

    def begin(self, *arguments):
        """Start it on a port that is free."""
        # pylint: disable=consider-using-with
        process = subprocess.Popen(
            [harness.tool(), "serve", "--listen", "127.0.0.1:0", *arguments,
             self.served], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        line = process.stderr.readline().decode()
        self.port = int(re.search(r":(\d+)/metrics", line)[1])
        return process

    def get(self, path, method="GET", **headers):
        """(status, type, body)"""
        to = http.client.HTTPConnection("127.0.0.1", self.port,
                                        timeout=harness.TIMEOUT_S)
        try:
            to.request(method, path, headers=headers)
            answer = to.getresponse()
            return (answer.status, answer.getheader("Content-Type"),
                    answer.read())
        finally:
            to.close()

    def read_bytes(self, server):
        """By requests: not by the thread that it began first, which reads large
        files aside whenever it gets a processor."""
        def read_in(folder):
            with open(folder + "/io", encoding="ascii") as io:
                return int(re.search(r"rchar: (\d+)", io.read())[1])
        process = f"/proc/{server.pid}"
        # In the order of their beginnings, after the main thread.
        aside = f"{process}/task/{os.listdir(process + '/task')[1]}"
        while True:
            before, read = read_in(aside), read_in(process)
            if read_in(aside) == before:
                return read - before

    def metrics(self):
        """{name: {labels as JSON: value}}, each line well formed."""
        status, kind, body = self.get("/metrics", Accept=OPEN_METRICS)
        self.assertEqual(status, 200)
        self.assertTrue(kind.startswith(OPEN_METRICS), kind)
        lines = body.decode().split("\n")
        self.assertEqual(lines[-2:], ["# EOF", ""])
        found, family = {}, None
        for line in lines[:-2]:
            if line.startswith("# "):
                family = line.split()[2]
                continue
            name, labels, value = SAMPLE.fullmatch(line).groups()
            self.assertIn(name, (family, family + "_total"))
            key = json.dumps(dict(LABEL.findall(labels)), sort_keys=True)
            self.assertNotIn(key, found.setdefault(name, {}))
            found[name][key] = float(value)
        return found

    def record(self, name, *argv, **settings):
        """A profile of that name, in the directory."""
        run = self.execute(*argv, **settings)
        os.rename(run.paths[0], os.path.join(self.served, name))
        return os.path.join(self.served, name)

    def record_stacks(self, name, **settings):
        return self.record(name, harness.target("program_page_stacks"),
                           "20000", period="16K", **settings)

    def start_idle(self, *argv, **settings):
        self.out = self.served
        process = self.start([harness.target("program_idle"), *argv],
                             settings={"period": "1", **settings},
                             stdin=subprocess.PIPE, bufsize=0)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.allocate(process, 1)
        harness.wait_until(lambda: os.listdir(self.served))
        return process

    def allocate(self, process, kib):
        process.stdin.write(bytes([kib]))
        self.assertEqual(process.stdout.read(1), bytes([kib]))


class Metrics(Serve):
    def test_the_same_as_the_report(self):
        profile = harness.Profile(self.record_stacks(
            "a.sprof", labels="service=checkout,version=1.7,pid=x,9.lives=y"))
        profile.require_samples(100)
        self.begin("--keep", "1h")
        found = self.metrics()
        exact, estimate = profile.json["exact"], profile.json["estimate"]

        def one(name):
            (key, value), = found["sampleprof_" + name].items()
            labels = json.loads(key)
            self.assertEqual(
                {k: v for k, v in labels.items() if k != "host"},
                {"profile": "a.sprof", "program": "program_page_stacks",
                 "pid": str(profile.json["pid"]), "service": "checkout",
                 "version": "1.7", "label_pid": "x", "label_9_lives": "y"})
            return value

        self.assertEqual(one("allocated_bytes_total"), exact["alloc_bytes"])
        self.assertEqual(one("allocated_objects_total"),
                         exact["alloc_objects"])
        self.assertEqual(one("running"), 0)
        self.assertEqual(one("resident_bytes"),
                         profile.json["rss"][-1]["rss_bytes"])
        for name in ("live_bytes", "live_objects", "peak_bytes"):
            for end, key in (("", "value"), ("_lo", "lo"), ("_hi", "hi")):
                self.assertAlmostEqual(one(name + end), estimate[name][key],
                                       delta=0.5)
        for of, field in (("bytes", "alloc_bytes"),
                          ("objects", "alloc_objects")):
            classes = found[f"sampleprof_class_allocated_{of}_total"]
            self.assertGreater(len(classes), 20)
            self.assertEqual(sum(classes.values()), exact[field])
        self.begin("--keep", "1h", "--no-classes")
        self.assertEqual({k for k in found if "_class_" not in k},
                         set(self.metrics()))

    def test_promtool(self):
        self.record_stacks("a.sprof", labels="a.b=c")
        self.record_stacks('quote" and \\ and\nnewline.sprof')
        self.begin()
        status, kind, body = self.get("/metrics")
        self.assertEqual((status, kind),
                         (200, "text/plain; version=0.0.4; charset=utf-8"))
        done = subprocess.run(
            [harness.require("promtool", "prometheus"), "check", "metrics"],
            input=body, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (0, b"", b""))
        self.assertEqual(len(self.metrics()["sampleprof_running"]), 2)

    def test_running(self):
        """Read anew each time, exact at each."""
        process = self.start_idle(labels="service=a")
        self.begin("--keep", "1s")
        before = self.metrics()
        self.assertEqual(list(before["sampleprof_running"].values()), [1])
        self.allocate(process, 200)
        self.assertEqual(
            sum(self.metrics()["sampleprof_allocated_bytes_total"].values()) -
            sum(before["sampleprof_allocated_bytes_total"].values()),
            200 << 10)
        process.stdin.close()
        process.wait()
        harness.wait_until(
            lambda: not self.metrics().get("sampleprof_running"))

    def test_running_without_a_change(self):
        """The file is not read again; that its process was killed is seen."""
        process = self.start_idle()
        self.begin("--keep", "1h")
        before = self.metrics()
        self.assertEqual(self.metrics(), before)
        self.allocate(process, 3)
        self.assertNotEqual(self.metrics(), before)
        process.kill()
        process.wait()
        self.assertEqual(
            list(self.metrics()["sampleprof_running"].values()), [0])

    def test_running_without_its_main_thread(self):
        """Which has ended by pthread_exit: another one goes on."""
        process = self.start_idle("leave")

        def state():
            with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                return file.read()

        harness.wait_until(lambda: "State:\tZ (zombie)" in state(), state)
        self.begin("--keep", "1h")
        before = self.metrics()
        self.assertEqual(list(before["sampleprof_running"].values()), [1])
        self.allocate(process, 200)
        after = self.metrics()
        self.assertEqual(
            sum(after["sampleprof_allocated_bytes_total"].values()) -
            sum(before["sampleprof_allocated_bytes_total"].values()),
            200 << 10)
        self.assertEqual(list(after["sampleprof_running"].values()), [1])
        process.kill()
        process.wait()
        self.assertEqual(
            list(self.metrics()["sampleprof_running"].values()), [0])

    def test_large_and_running(self):
        """Nobody waits for a large file of a running process: a request
        reads its published totals, and no more of a longer file.  The rest
        comes later, and is what the report says; so does its end."""
        process = self.start_idle(period="1", max_file="64M")
        for _ in range(80):
            self.allocate(process, 255)
        path, = (os.path.join(self.served, f)
                 for f in os.listdir(self.served))
        self.assertGreater(os.stat(path).st_blocks * 512, 5 << 20)
        server = self.begin("--keep", "1h")
        def allocated():
            return sum(self.metrics()[
                "sampleprof_allocated_bytes_total"].values())
        truth, least = (1 + 80 * 255) << 10, allocated()
        self.assertTrue(truth - (1 << 20) <= least <= truth)
        for kib in (200, 7, 255, 255, 255, 255):
            self.allocate(process, kib)
            truth += kib << 10
            read = self.read_bytes(server)
            now = allocated()
            self.assertLess(self.read_bytes(server) - read, 2 << 20)
            # What a thread has not published yet.
            self.assertTrue(max(least, truth - (1 << 20)) <= now <= truth)
            least = now

        def is_as_reported():
            said = harness.Profile(path).json["estimate"]["live_bytes"]
            found = self.metrics()
            if allocated() != truth:
                return False
            return all(abs(said[key] - sum(
                found["sampleprof_live_bytes" + end].values())) < 1
                for end, key in (("", "value"), ("_lo", "lo"), ("_hi", "hi")))
        harness.wait_until(is_as_reported)
        process.kill()
        process.wait()
        self.assertEqual(
            list(self.metrics()["sampleprof_running"].values()), [0])
        harness.wait_until(is_as_reported)

    @harness.nightly
    def test_large_at_first_sight(self):
        """Also of a large file that nobody has read a request reads little:
        whose it is and its totals.  The rest comes by itself."""
        process = self.start_idle(period="1", labels="service=a",
                                  max_file="64M")
        for _ in range(80):
            self.allocate(process, 255)
        path, = (os.path.join(self.served, f)
                 for f in os.listdir(self.served))
        # One that has ended, and one that is no profile.
        with open(path, "rb") as file:
            data = bytearray(file.read())
        with open(os.path.join(self.served, "ended.sprof"), "wb") as file:
            file.write(data)
        with open(os.path.join(self.served, "none.sprof"), "wb") as file:
            file.write(b"x" * (8 << 20))
        server = self.begin("--keep", "1h")
        before = self.read_bytes(server)
        found = self.metrics()
        self.assertLess(self.read_bytes(server) - before, 15 << 20)
        self.assertEqual(sorted(found["sampleprof_running"].values()), [0, 1])
        for key in found["sampleprof_running"]:
            labels = json.loads(key)
            self.assertEqual((labels["service"], labels["program"]),
                             ("a", "program_idle"))
        said = harness.Profile(path).json["estimate"]["live_bytes"]["value"]
        harness.wait_until(lambda: list(self.metrics().get(
            "sampleprof_live_bytes", {}).values()) == [said, said])

    def test_what_is_no_profile(self):
        path = self.record_stacks("a.sprof")
        with open(path, "rb") as file:
            data = file.read()
        for name, content in (("b.sprof", b""), ("c.sprof", b"text\n" * 999),
                              ("d.sprof", data[:9000])):
            with open(os.path.join(self.served, name), "wb") as file:
                file.write(content)
        os.mkdir(os.path.join(self.served, "e.sprof"))
        os.mkfifo(os.path.join(self.served, "f.sprof"))
        self.begin()
        names = {json.loads(k)["profile"]
                 for k in self.metrics()["sampleprof_running"]}
        self.assertIn("a.sprof", names)
        self.assertLessEqual(names, {"a.sprof", "d.sprof"})
        os.unlink(path)
        names = {json.loads(k)["profile"]
                 for k in self.metrics().get("sampleprof_running", {})}
        self.assertNotIn("a.sprof", names)


class Profiles(Serve):
    def test_the_same_as_the_export(self):
        path = self.record_stacks("a.sprof")
        self.begin()
        # The second of each comes without opening a module.
        for name, view in 2 * (("allocs", "alloc"), ("heap", "live"),
                               ("peak", "peak")):
            status, kind, body = self.get("/debug/pprof/" + name)
            self.assertEqual((status, kind),
                             (200, "application/octet-stream"))
            done = harness.run_report("export", "pprof", "--view", view, path,
                                      "-o", "-")
            self.assertEqual(gzip.decompress(body),
                             gzip.decompress(done.stdout))

    def test_google_pprof(self):
        self.record_stacks("a.sprof")
        self.begin()
        done = subprocess.run(
            [harness.require("go", "golang-go"), "tool", "pprof", "-top",
             f"http://127.0.0.1:{self.port}/debug/pprof/heap"],
            env={**os.environ, "HOME": self.dir, "PPROF_TMPDIR": self.dir},
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"Type: inuse_space")
        self.assertRegex(done.stdout, r"% +descend")

    @harness.nightly
    def test_seconds(self):
        """What is allocated while it waits, and nothing else."""
        process = self.start_idle()
        self.allocate(process, 100)
        self.begin()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waits = pool.submit(self.get, "/debug/pprof/allocs?seconds=3")
            time.sleep(1)
            self.allocate(process, 50)
            # Another is answered meanwhile.
            self.assertEqual(self.get("/metrics")[0], 200)
            self.assertFalse(waits.done())
            status, _, body = waits.result()
        self.assertEqual(status, 200, body)
        whole = Pprof(self.get("/debug/pprof/allocs")[2])
        self.assertEqual(Pprof(body).total("alloc_space"), 50 << 10)
        self.assertGreaterEqual(whole.total("alloc_space"), 151 << 10)

    @harness.nightly
    def test_memory(self):
        """It goes with what is alive, not with samples; the figures are those
        of the samples, also while the process runs."""
        process = self.start_idle(period="1", max_file="256M")
        for _ in range(400):
            self.allocate(process, 255)
        server = self.begin()

        def most():
            with open(f"/proc/{server.pid}/status", encoding="ascii") as file:
                return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) << 10
        self.get("/debug/pprof/allocs?seconds=1")
        for name, view in (("allocs", "alloc"), ("heap", "live"),
                           ("peak", "peak")):
            status, _, body = self.get("/debug/pprof/" + name)
            self.assertEqual(status, 200)
            done = harness.run_report(
                "export", "pprof", "--view", view,
                *(os.path.join(self.served, f)
                  for f in os.listdir(self.served)), "-o", "-")
            ours, theirs = Pprof(body), Pprof(done.stdout)
            for kind, _ in ours.types:
                self.assertEqual(ours.total(kind), theirs.total(kind), name)
        # 64 MB were seen, of a file for the request and one for /metrics at a
        # time; every sample takes 270 MB.
        self.assertLess(most(), 128 << 20)

    @harness.nightly
    def test_longer_than_a_connection_may_be_idle(self):
        process = self.start_idle()
        self.begin()
        allocating = threading.Timer(32, self.allocate, (process, 7))
        allocating.start()
        status, _, body = self.get("/debug/pprof/allocs?seconds=33")
        allocating.join()
        self.assertEqual((status, Pprof(body).total("alloc_space")),
                         (200, 7 << 10))

    def test_several_processes(self):
        first, second = self.start_idle(), self.start_idle()
        self.begin()
        status, _, body = self.get("/debug/pprof/allocs")
        self.assertEqual((status, body),
                         (400, b"2 processes run: say which one by ?pid=N; / "
                          b"lists them\n"))
        self.allocate(second, 9)
        for process, kib in ((first, 1), (second, 10)):
            status, _, body = self.get(
                f"/debug/pprof/allocs?pid={process.pid}")
            self.assertEqual((status, Pprof(body).total("alloc_space")),
                             (200, kib << 10))
            self.assertRegex(self.get("/")[2].decode(),
                             rf"\n +{process.pid}  running  program_idle\n")

    def test_wrong_requests(self):
        self.record_stacks("a.sprof")
        self.begin()
        for path, status, text in (
                ("/nowhere", 404, "not found; / says what there is"),
                ("/debug/pprof/profile", 404, "there are allocs, heap and "
                 "peak"),
                ("/debug/pprof/heap?pid=1", 404, "no profile of that process "
                 "is here"),
                ("/debug/pprof/heap?pid=-1", 400, "pid takes a process id"),
                ("/debug/pprof/heap?seconds=601", 400, "seconds takes 0 to "
                 "600"),
                ("/debug/pprof/heap?seconds=", 400, "seconds takes 0 to 600"),
                ("/debug/pprof/heap?seconds=1", 400, "the process has ended: "
                 "leave out seconds"),
                ("/" + "x" * 5000, 404, "not found; / says what there is")):
            self.assertEqual(self.get(path)[::2],
                             (status, text.encode() + b"\n"))
        self.assertEqual(self.get("/metrics", "POST")[0], 405)
        self.assertEqual(self.get("/metrics", "HEAD")[0], 200)

    def test_many_at_a_time(self):
        self.record_stacks("a.sprof")
        self.begin()
        paths = ["/metrics", "/debug/pprof/heap", "/debug/pprof/allocs"] * 5
        with concurrent.futures.ThreadPoolExecutor(15) as pool:
            self.assertEqual({a[0] for a in pool.map(self.get, paths)}, {200})


    def test_nothing_since_then(self):
        """Of an idle process, a profile without samples, as Go has it."""
        self.start_idle()
        self.begin()
        for name in ("allocs", "heap", "peak"):
            status, _, body = self.get(f"/debug/pprof/{name}?seconds=1")
            self.assertEqual((status, Pprof(body).samples), (200, []), name)


class Command(Serve):
    def fails(self, *arguments):
        done = subprocess.run([harness.tool(), "serve", *arguments],
                              capture_output=True, text=True, check=False,
                              timeout=harness.TIMEOUT_S)
        return done.returncode, done.stderr

    def test_ends(self):
        """At once, also if a request waits."""
        self.start_idle()
        def sockets():
            folder = f"/proc/{process.pid}/fd/"
            with contextlib.suppress(FileNotFoundError):
                return sum("socket:" in os.readlink(folder + fd)
                           for fd in os.listdir(folder))
            return 0

        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.begin()
            before = sockets()
            with concurrent.futures.ThreadPoolExecutor() as pool:
                waits = pool.submit(self.get,
                                    "/debug/pprof/heap?seconds=600")
                harness.wait_until(lambda: sockets() > before)
                process.send_signal(number)
                self.assertEqual(process.wait(harness.TIMEOUT_S), 0)
                with contextlib.suppress(ConnectionError):
                    self.assertEqual(waits.result()[0], 503)

    def test_listen(self):
        for text in ("9400", "localhost:9400", "127.0.0.1:70000", "::1", ""):
            code, error = self.fails("--listen", text)
            self.assertEqual(code, 2, text)
            self.assertIn("--listen takes an address and a port", error)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            code, error = self.fails(
                "--listen", "127.0.0.1:%d" % taken.getsockname()[1])
        self.assertEqual(code, 1)
        self.assertIn("Address already in use", error)
        self.assertEqual(self.fails("a", "b")[0], 2)
        for wrong in (("--keep", "soon"), ("--connections", "0"),
                      ("--connections", "50001"), ("--host", "a:1"),
                      ("--listen", "unix:"), ("--listen", "unix:" + "x" * 200)):
            self.assertEqual(self.fails(*wrong)[0], 2, wrong)

    def test_no_directory(self):
        """Refused at the start; later it may go, and come again."""
        self.served = os.path.join(self.dir, "gone")
        code, error = self.fails("--listen", "127.0.0.1:0", self.served)
        self.assertEqual(code, 1)
        self.assertIn("gone: cannot be read: No such file", error)
        os.mkdir(self.served)
        self.begin()
        self.assertEqual(self.get("/metrics")[0], 200)
        os.rmdir(self.served)
        status, _, body = self.get("/metrics")
        self.assertEqual(status, 500)
        self.assertIn(b"No such file", body)
