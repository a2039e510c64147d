# SPDX-License-Identifier: MIT
"""`sampleprof push`: the deltas that a server accepted add up to the exact
totals, byte by byte, whether it refuses, cuts connections, or answers nonsense,
nothing or too late; nothing counts twice; tokens are in no command line and no
log.  With PUSH_SECONDS=600 the first test takes ten minutes at least."""

import email
import gzip
import http.server
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

import harness
import pprof_rules
from test_export import Pprof
from test_fleet import Fleet, tool

SECONDS = int(os.environ.get("PUSH_SECONDS", "0"))
TYPES = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
NAME = re.compile(r"([\w.-]+)\{(\w+=[\w.:/@+-]+(?:,\w+=[\w.:/@+-]+)*)\}")
END = re.compile(r"UTC ended: ([\d,]+) profiles sent \(([\d,]+) bytes allocated\)"
                 r", ([\d,]+) without an answer \(([\d,]+)\)\n$")
ALLOCATE = """
import sys
kept = []
for line in sys.stdin:
    kept += [bytearray(700 + i % 90) for i in range(300)]
    more = [bytearray(5000) for i in range(int(line))]
    print(1, flush=True)
"""


class Server(http.server.ThreadingHTTPServer):
    """Takes profiles as Pyroscope does, and does to each what `faults` says:
    "take" it, answer a status, "silent": take it and hang up, "nonsense": take
    it and answer no HTTP, "cut": hang up in the middle, "slow": take it and
    answer late."""
    daemon_threads = True

    def __init__(self, faults=(), handler=None):
        super().__init__(("127.0.0.1", 0), handler or Handler)
        self.faults = iter(faults)
        self.taken = []   # (name, {tag: value}, from, until, pprof)
        self.answered = []  # those of them that the client knows of
        self.wrong = []
        self.headers = []
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def sum_of(self, kind):
        return sum(p.total(kind) for *_, p in self.taken)

    def known(self, kind):
        return sum(p.total(kind) for *_, p in self.answered)

    def handle_error(self, request, client_address):
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass

    def do_POST(self):
        server = self.server
        with server.lock:
            fault = next(server.faults, "take")
            server.headers.append(dict(self.headers))
        size = int(self.headers["Content-Length"])
        if fault == "cut":
            self.rfile.read(min(size // 2, 400))
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                       b"\1\0\0\0\0\0\0\0")
            self.connection.close()
            return
        body = self.rfile.read(size)
        if isinstance(fault, int):
            self.send_response(fault)
            self.end_headers()
            self.wfile.write(b"no \x1b]0;title\x07, sorry\nand more")
            return
        with server.lock:
            try:
                checked = self.check(body)
                server.taken.append(checked)
                if fault in ("take", "slow"):
                    server.answered.append(checked)
            except (AssertionError, KeyError, ValueError, TypeError) as error:
                server.wrong.append(repr(error))
        if fault == "silent":
            self.connection.close()
            return
        if fault == "nonsense":
            self.wfile.write(b"hello\n" * 100)
            self.close_connection = True
            return
        if fault == "slow":
            time.sleep(1)
        self.answer(fault)

    def answer(self, _):
        self.send_response(200)
        self.end_headers()

    def check(self, body):
        """What Pyroscope wants of a request."""
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, strict_parsing=True))
        assert url.path == "/ingest", url.path
        assert query["format"] == "pprof" and query["spyName"]
        name, tags = NAME.fullmatch(query["name"]).groups()
        tags = dict(t.split("=") for t in tags.split(","))
        since, until = int(query["from"]), int(query["until"])
        assert since < until <= time.time() + 2, (since, until)
        form = email.message_from_bytes(
            b"Content-Type: " + self.headers["Content-Type"].encode() +
            b"\r\n\r\n" + body)
        parts = {p.get_param("name", header="content-disposition"):
                 p.get_payload(decode=True) for p in form.get_payload()}
        assert set(parts) == {"profile", "sample_type_config"}, parts
        config = json.loads(parts["sample_type_config"])
        assert list(config) == TYPES
        assert not config["alloc_space"]["cumulative"]
        profile = Pprof(parts["profile"])
        assert [t for t, _ in profile.types] == TYPES
        assert profile.time_nanos == since * 10**9
        assert profile.duration_nanos == (until - since) * 10**9
        assert all(any(values) for _, values, _ in profile.samples)
        rules = pprof_rules.Profile(gzip.decompress(parts["profile"]))
        for rule in (pprof_rules.parca, pprof_rules.pyroscope):
            assert not list(rule(rules)), list(rule(rules))
        return name, tags, since, until, profile


class Push(Fleet):
    TO, HANDLER = "--pyroscope", Handler

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("in"))
        self.log = self.path("log")

    def serve(self, faults=()):
        server = Server(faults, self.HANDLER)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def begin(self, url, *arguments, **environment):
        with open(self.log, "ab") as log:
            # pylint: disable=consider-using-with
            process = subprocess.Popen(
                [tool("sampleprof"), "push", self.TO, url,
                 "--interval=200ms", *arguments], cwd=self.dir, stderr=log,
                stdin=subprocess.DEVNULL, env={**os.environ, **environment})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def follow(self, url):
        """Of in/, what is allocated after the return."""
        before = self.said().count("UTC following in/ for ")
        process = self.begin(url, "in")
        harness.wait_until(
            lambda: self.said().count("UTC following in/ for ") > before)
        return process

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(harness.TIMEOUT_S), 0)

    def said(self):
        if not os.path.exists(self.log):
            return ""
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def wait_for(self, text):
        harness.wait_until(lambda: text in self.said())

    def start_steps(self, **settings):
        """A program that allocates when it gets a line."""
        self.out = self.path("in")
        target = self.start(["/usr/bin/python3", "-c", ALLOCATE],
                            settings={"period": "8K", **settings},
                            stdin=subprocess.PIPE)
        for stream in (target.stdin, target.stdout, target.stderr):
            self.addCleanup(stream.close)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        return target

    @staticmethod
    def step(target, n):
        target.stdin.write(b"%d\n" % n)
        target.stdin.flush()
        target.stdout.readline()

    def finish(self, target):
        """Its exact totals."""
        target.stdin.close()
        target.wait(harness.TIMEOUT_S)
        name, = os.listdir(self.path("in"))
        self.wait_for(f"{name} ended")
        exact = self.json("report", "in/" + name)["exact"]
        return exact["alloc_bytes"], exact["alloc_objects"]

    def check_sums(self, server, exact):
        self.assertEqual(server.wrong, [])
        self.assertEqual(
            (server.sum_of("alloc_space"), server.sum_of("alloc_objects")),
            exact)


class Deltas(Push):

    def test_add_up(self):
        """To the exact totals, through every fault; each stack follows its
        estimate."""
        rng = random.Random(5)
        faults = ["take", 500, "take", "cut", "take", "silent", "take",
                  "nonsense", "take", "slow", 429]
        faults += [rng.choice(faults) for _ in range(SECONDS // 2)]
        # The server is there again before the program ends.
        server = self.serve(faults)
        push = self.follow(server.url)
        target = self.start_steps(labels="service=shop,a.b=c,pid=x")
        until = time.monotonic() + SECONDS
        while len(server.headers) < len(faults) or time.monotonic() < until:
            self.step(target, rng.randrange(300))
            time.sleep(0.1)
        exact = self.finish(target)
        self.end(push)
        # What got no answer may be there or not, and is not sent again.
        self.assertEqual(server.wrong, [])
        n, sent, n_unknown, unknown = (
            int(i.replace(",", "")) for i in END.search(self.said()).groups())
        self.assertEqual((n, sent), (len(server.answered),
                                     server.known("alloc_space")))
        self.assertEqual(sent + unknown, exact[0])
        self.assertLessEqual(server.sum_of("alloc_space"), exact[0])
        self.assertLessEqual(server.sum_of("alloc_objects"), exact[1])
        self.assertGreaterEqual(n_unknown, 2)
        self.assertGreater(len(server.taken), 5)
        names = {(name, *sorted(tags.items()))
                 for name, tags, *_ in server.taken}
        self.assertEqual(len(names), 1)
        name, tags, *_ = server.taken[0]
        self.assertEqual(name, "shop")
        self.assertEqual((tags["a_b"], tags["label_pid"], tags["program"]),
                         ("c", "x", "python3.11"))
        self.assertEqual(set(tags), {"a_b", "label_pid", "program", "pid",
                                     "host"})
        starts = [since for _, _, since, *_ in server.taken]
        self.assertEqual(starts, sorted(starts))
        # What is alive is a state, and no delta.
        self.assertGreater(server.taken[-2][-1].total("inuse_space"),
                           server.taken[0][-1].total("inuse_space"))
        self.assertNotIn("\x1b", self.said())

    def test_exact(self):
        """Where each request is answered, all of it is there, also what a
        server refused at first."""
        server = self.serve([503, 404, "take", 413, "slow"])
        push = self.follow(server.url)
        target = self.start_steps()
        for n in (3, 200, 1, 50, 0, 0, 170):
            self.step(target, n)
            time.sleep(0.25)
        exact = self.finish(target)
        self.end(push)
        self.check_sums(server, exact)

    def test_past(self):
        """Of a directory what was allocated before is not sent; so another
        push sends nothing twice."""
        server = self.serve()
        target = self.start_steps()
        self.step(target, 500)
        harness.wait_until(lambda: os.listdir(self.path("in")))
        path = "in/" + os.listdir(self.path("in"))[0]
        before = self.json("report", path)["exact"]["alloc_bytes"]
        for _ in range(2):
            push = self.follow(server.url)
            sent = server.sum_of("alloc_space")

            def is_sent(least=sent + 1000000):
                """While it does nothing, the file may lack its last part."""
                self.step(target, 100)
                return server.sum_of("alloc_space") > least
            harness.wait_until(is_sent, self.said)
            push.kill()
            push.wait()
        # Nothing was allocated between.
        sent = server.sum_of("alloc_space")
        after = self.json("report", path)["exact"]["alloc_bytes"]
        self.assertEqual(server.wrong, [])
        self.assertGreater(sent, 2000000)
        self.assertLessEqual(sent, after - before)

    def test_files(self):
        """All of them, once; copies and what is no profile change nothing."""
        server = self.serve()
        files = self.record(2)
        shutil.copy(self.path(files[0]), self.path("copy.sprof"))
        push = self.begin(server.url, *files, "copy.sprof")
        self.assertEqual(push.wait(harness.TIMEOUT_S), 0)
        exact = self.json("report", *files)["exact"]
        self.check_sums(server, (exact["alloc_bytes"],
                                 exact["alloc_objects"]))
        self.assertEqual(len(server.taken), 2)
        with open(self.path("text.sprof"), "w", encoding="ascii") as text:
            text.write("hello\n" * 1000)
        push = self.begin(server.url, "text.sprof", files[0])
        self.assertEqual(push.wait(harness.TIMEOUT_S), 1)
        self.assertEqual(len(server.taken), 3)
        self.assertIn("cannot read text.sprof: ", self.said())
        # It has the profile and does not say so: that is an error, once.
        silent = self.serve(["silent"])
        push = self.begin(silent.url, files[0])
        self.assertEqual(push.wait(harness.TIMEOUT_S), 1)
        self.assertEqual(len(silent.taken), 1)


class Command(Push):

    def test_token(self):
        """In the header, and nowhere else."""
        server = self.serve()
        files = self.record(1)
        with open(self.path("token"), "w", encoding="ascii") as token:
            token.write("s3cret\n")
        push = self.begin(server.url, "--token-file", "token", *files)
        self.assertEqual(push.wait(harness.TIMEOUT_S), 0)
        push = self.begin(server.url, *files, PYROSCOPE_AUTH_TOKEN="s4cret")
        self.assertEqual(push.wait(harness.TIMEOUT_S), 0)
        self.assertEqual([h.get("Authorization") for h in server.headers],
                         ["Bearer s3cret", "Bearer s4cret"])
        self.assertNotRegex(self.said(), "s[34]cret")
        for content in ("", "a\x01b\n"):
            with open(self.path("token"), "w", encoding="ascii") as token:
                token.write(content)
            self.sampleprof("push", "--pyroscope", server.url, "--token-file",
                            "token", *files, code=1)

    def test_no_server(self):
        """Ends when it is told to, and within the time that it names."""
        files = self.record(1)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            url = "http://127.0.0.1:%d" % taken.getsockname()[1]
            push = self.begin(url, *files)
            self.wait_for("next try in 2.0 s")
            push.send_signal(signal.SIGTERM)
            self.assertEqual(push.wait(harness.TIMEOUT_S), 1)
            # One that takes connections, and says nothing.
            taken.listen()
            push = self.begin(url, *files)
            with taken.accept()[0]:
                push.send_signal(signal.SIGTERM)
                self.assertEqual(push.wait(harness.TIMEOUT_S), 1)

    def test_words(self):
        def fails(*arguments):
            return self.sampleprof("push", *arguments, code=2).stderr

        self.assertIn("--otlp URL or --pyroscope URL names a server", fails("in"))
        for url, why in (("ftp://a", "begins with http"), ("http://", "host"),
                         ("http://me:s3cret@a", "must not have a user"),
                         ("http://a/?b", "must not have ?")):
            said = fails("--pyroscope", url)
            self.assertIn(why, said)
            self.assertNotIn("s3cret", said)
        fails("--pyroscope=http://a", "in", "in")
        fails("--pyroscope=http://a", "--interval=1ms", "in")
        self.sampleprof("push", "--pyroscope=http://a", "none.sprof", code=1)
