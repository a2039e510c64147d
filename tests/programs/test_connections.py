# SPDX-License-Identifier: MIT
"""sampleprof serve and who connects: those that say nothing, a thousand at a
time, too many, by another name, without a token, by a Unix socket."""

import contextlib
import os
import resource
import socket
import subprocess
import time

import harness
from test_serve import Serve


class Connections(Serve):
    def connect(self):
        to = socket.create_connection(("127.0.0.1", self.port),
                                      timeout=harness.TIMEOUT_S)
        self.addCleanup(to.close)
        return to

    def test_silent(self):
        """Those that say nothing make room for those that do."""
        self.record_stacks("a.sprof")
        self.begin("--connections", "10")
        silent = [self.connect() for _ in range(100)]
        since = time.monotonic()
        for _ in range(20):
            self.assertEqual(self.get("/metrics")[0], 200)
        # It is not their time that ended, if the machine is not that slow.
        if time.monotonic() - since < 25:
            gone = 0
            for to in silent:
                to.setblocking(False)
                with contextlib.suppress(BlockingIOError, ConnectionError):
                    gone += not to.recv(1)
            self.assertGreaterEqual(gone, 90)

    def test_all_at_once(self):
        """A thousand requests that begin together are all answered."""
        self.record_stacks("a.sprof")
        self.begin()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE,
                        (soft, hard))
        asking = [self.connect() for _ in range(1000)]
        for to in asking:
            to.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        for to in asking:
            with to.makefile("rb") as answer:
                self.assertEqual(answer.readline(),
                                 b"HTTP/1.1 200 OK\r\n")
                self.assertIn(b"sampleprof_running", answer.read())

    def test_too_many(self):
        """Are told so, and when to come again."""
        process = self.start_idle()
        self.begin("--connections", "2")
        waiting = [self.connect() for _ in range(2)]
        for to in waiting:
            to.sendall(b"GET /debug/pprof/heap?seconds=600 HTTP/1.1\r\n"
                       b"Host: localhost\r\n\r\n")
        found = []

        def is_refused():
            to = self.connect()
            to.sendall(b"GET /debug/pprof/heap?seconds=600 HTTP/1.0\r\n\r\n")
            to.settimeout(1)
            with contextlib.suppress(TimeoutError):
                found[:] = to.makefile("rb").read().decode().split("\r\n")
            return bool(found)
        harness.wait_until(is_refused)
        self.assertEqual(found[0], "HTTP/1.1 503 Service Unavailable")
        self.assertIn("Retry-After: 1", found)
        self.assertEqual(found[-1], "too many requests at a time\n")
        self.assertIsNone(process.poll())

    def test_host(self):
        """Another site's name that was given our address reads nothing."""
        self.record_stacks("a.sprof")
        self.begin("--host", "metrics.example")
        for host, status in (
                ("evil.example", 421), ("evil.example:80", 421),
                (os.uname().nodename + ".evil.example", 421),
                ("localhost", 200), ("LocalHost:9", 200), ("10.1.2.3:9", 200),
                ("[::1]:9", 200), ("Metrics.Example:9", 200)):
            for path in ("/metrics", "/", "/debug/pprof/heap"):
                self.assertEqual(self.get(path, Host=host)[0], status, host)
        self.assertEqual(self.get("/", Host="\x1b]0;x\x07:1")[2].count(b"\x1b"),
                         0)
        # Reached from elsewhere, it has the host's name, too.
        self.begin("--listen", "0.0.0.0:0")
        name = os.uname().nodename
        for host, status in ((name, 200), (name + ":9400", 200),
                             (name + ".evil.example:9400", 421),
                             (name + "x", 421), ("evil.example", 421)):
            self.assertEqual(self.get("/metrics", Host=host)[0], status, host)

    def test_token(self):
        self.record_stacks("a.sprof")
        token = os.path.join(self.dir, "token")
        with open(token, "w", encoding="ascii") as file:
            file.write("s3cret\n")
        self.begin("--token-file", token)
        for given, status in ((None, 401), ("Bearer s3cret", 200),
                              ("bearer s3cret", 200), ("Bearer s3cre", 401),
                              ("Bearer s3crets", 401), ("Bearer ", 401),
                              ("Basic s3cret", 401)):
            headers = {"Authorization": given} if given else {}
            for path in ("/metrics", "/", "/debug/pprof/heap", "/nowhere"):
                self.assertEqual(self.get(path, **headers)[0],
                                 404 if (status, path) == (200, "/nowhere")
                                 else status, given)

    def test_unix(self):
        """For the user alone; a dead one is replaced, and no other file."""
        self.record_stacks("a.sprof")
        path = os.path.join(self.dir, "socket")

        def begin():
            # pylint: disable=consider-using-with
            process = subprocess.Popen(
                [harness.tool(), "serve", "--listen", "unix:" + path,
                 self.served], stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            return process, process.stderr.readline()

        def get():
            with socket.socket(socket.AF_UNIX) as to:
                to.connect(path)
                to.sendall(b"GET /metrics HTTP/1.0\r\nHost: a.b\r\n\r\n")
                return to.makefile("rb").read()
        first, line = begin()
        self.assertIn(f"serving /metrics at unix:{path};", line)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertIn(b"sampleprof_running", get())
        self.assertIn("Address already in use", begin()[1])
        self.assertIn(b"sampleprof_running", get())
        first.kill()
        first.wait()
        second, _ = begin()
        self.assertIn(b"sampleprof_running", get())
        second.terminate()
        self.assertEqual(second.wait(harness.TIMEOUT_S), 0)
        self.assertFalse(os.path.exists(path))
        with open(path, "w", encoding="ascii") as file:
            file.write("mine")
        self.assertIn("Address already in use", begin()[1])
        self.assertTrue(os.path.isfile(path))
