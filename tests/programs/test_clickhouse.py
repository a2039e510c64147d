# SPDX-License-Identifier: MIT
"""`sampleprof fleet` on ClickHouse: the same numbers as from SQLite and from
the files, to 1e-9; a file counts once, whatever is cut or killed; servers that
answer nonsense, slowly or never; TLS; no password in a message."""

import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import harness
from clickhouse import (PASSWORD, ROWS, SECURE, Server, Stub, body,
                        cutting_proxy, free_ports, make_certificate, says,
                        slow_proxy)
from test_fleet import Fleet, tool

COUNTED = ("SELECT count(), sum(samples) FROM (SELECT * FROM processes "
           "ORDER BY file_id, samples DESC LIMIT 1 BY file_id)")


def setUpModule():  # pylint: disable=invalid-name
    # The longest way to a socket or a lock is short.
    Click.server = Server(tempfile.mkdtemp(prefix="sampleprof-click-"))
    unittest.addModuleCleanup(Click.server.remove)
    Click.server.start()


class Click(Fleet):

    server = None

    def setUp(self):
        super().setUp()
        self.database = "f" + str(random.SystemRandom().getrandbits(60))
        self.db = "--db=" + self.server.url(self.database)

    def fleet(self, *argv, password=PASSWORD, **options):
        options.setdefault("env", self.environment(
            shim=False, env={"SAMPLEPROF_DB_PASSWORD": password}))
        done = super().fleet(*argv, **options)
        self.assertNotIn(PASSWORD, done.stdout + done.stderr)
        return done

    def ask(self, sql):
        return self.server.ask(sql.replace("processes", f"{self.database}.processes", 1))

    def check_report(self, files):
        """The database says what the files say."""
        self.assert_same(self.comparable(self.json("report", *files)),
                         self.said("report", self.db))

    def check_whole(self):
        """Every process that counts has all of its samples, once."""
        self.assertEqual(self.server.ask(
            "SELECT count() FROM (SELECT process, samples FROM "
            f"{self.database}.processes) ANY LEFT JOIN (SELECT process, "
            "count() AS n, uniqExact(sample) AS u FROM "
            f"{self.database}.samples GROUP BY process) USING process "
            "WHERE samples != n OR n != u"), "0\n")

    def said(self, *argv):
        return self.comparable(json.loads(self.fleet(*argv, "--json").stdout))


class Numbers(Click):

    @harness.nightly_too
    def test_as_sqlite_and_the_report(self):
        """All, a service, a version; views; two versions compared."""
        files = self.record(3) + self.record(2, version="22") + \
            self.record(1, service="search")
        for db in (self.db, "--db=sqlite:fleet.db"):
            self.fleet("init", db)
            done = self.fleet("add", db, *files)
            self.assertEqual(done.stdout,
                             "6 added, 0 updated, 0 there already\n")
        views = (), ("--at=50%",), ("--view=live",), ("--view=peak",)
        for chosen, asked in (
                ((), views[:harness.rounds(2, 4)]),
                (("--label=service=shop", "--label=version=22"),
                 views[1:harness.rounds(2, 3)]),
                (("--label=service=shop",), views[:harness.rounds(0, 2)])):
            for view in asked:
                with self.subTest(chosen=chosen, view=view):
                    words = ("report", *chosen, *view)
                    self.assert_same(self.said(*words),
                                     self.said(*words, self.db))
        for words in (("top", "--view=alloc"), ("live",),
                      ("top", "--sort=cum", "--label=version=1")):
            self.assert_rows(*(self.table(self.fleet(
                *words, "--csv", "--top=0", db).stdout)
                for db in ("--db=sqlite:fleet.db", self.db)))
        for words in (("tree",), ("peek", "_PyEval_EvalFrameDefault")):
            # Rows that are as large come in any order.
            said = [sorted(re.findall(r".*\d%  .*",
                                      self.fleet(*words, db).stdout))
                    for db in ("--db=sqlite:fleet.db", self.db)]
            self.assertGreater(len(said[0]), 3)
            self.assertEqual(*said)
        whole = self.said("report", self.db)
        self.assertGreater(whole["samples"], 1000)
        self.assert_same(self.comparable(self.json("report", *files)), whole)
        diff = ("diff", "--base=version=1", "--label=service=shop", "--json")
        before = self.queries()
        self.assertEqual(self.fleet(*diff).stdout,
                         self.fleet(*diff, self.db).stdout)
        # A side's processes are asked for together.
        self.assertLess(self.queries() - before, 36)

    def documented(self, table):
        """The query of docs/fleet.md over that table."""
        root = os.path.dirname(os.path.dirname(os.path.dirname(
            os.path.abspath(__file__))))
        with open(os.path.join(root, "docs", "fleet.md"),
                  encoding="utf-8") as file:
            found, = re.findall(r"^    (SELECT process, sum.*\n    FROM " +
                                table + r" .*)$", file.read(), re.M)
        return found

    def test_documented_queries(self):
        """Over samples and over hours they say the same of each file, in both
        engines; a product of large integers does not begin again at 2^64."""
        files = self.record(2) + self.record(1, version="22")
        for db in (self.db, "--db=sqlite:fleet.db"):
            self.fleet("init", db)
            self.fleet("add", db, *files)
        said = []
        ids = {str(number): str(file % 2**64) for number, file in self.rows(
            "SELECT process, file_id FROM processes")}
        for table in ("samples", "hours"):
            sql = self.documented(table)
            said.append({ids[str(number)]: value
                         for number, value in self.rows(sql)})
            rows = self.server.ask(sql.replace(
                f"FROM {table}", f"FROM {self.database}.{table}"))
            of = dict(line.split("\t") for line in self.ask(
                "SELECT process, file_id FROM processes").splitlines())
            said.append({of[number]: float(value) for number, value in (
                line.split("\t") for line in rows.splitlines())})
        for one in said:
            self.assertEqual(set(one), set(ids.values()))
            for file, value in one.items():
                self.assertLessEqual(abs(value - said[0][file]),
                                     1e-9 * said[0][file])
        large = self.server.ask(self.documented("hours").replace(
            "FROM hours", "FROM (SELECT toUInt64(1) AS process, toUInt64("
            "1099511627776) AS samples, samples AS size_bytes, toUInt64(524288)"
            " AS period_bytes)"))
        self.assertAlmostEqual(float(large.split()[1]) / 2**80, 1, delta=1e-9)

    def test_once(self):
        """Twice, a copy and with names: the file counts once; a later state
        replaces an earlier one."""
        files = self.record(2)
        self.fleet("init", self.db)
        self.fleet("add", self.db, files[0])
        before = self.ask(COUNTED)
        shutil.copy(self.path(files[0]), self.path("copy.sprof"))
        self.sampleprof("symbolize", files[0], "-o", "packed.sprof.zst")
        done = self.fleet("add", self.db, "copy.sprof", "packed.sprof.zst",
                          files[0])
        self.assertEqual(done.stdout, "0 added, 0 updated, 3 there already\n")
        self.assertEqual(self.ask(COUNTED), before)
        self.fleet("init", self.db)
        self.assertEqual(self.ask(COUNTED), before)

    def test_rows_twice(self):
        """Every row of every table is there twice, as after a block that was
        sent again: each counts once. Phases, snapshots and resident memory are
        among them."""
        files = self.record_phases()
        self.fleet("init", self.db)
        self.fleet("add", self.db, *files)
        said = self.comparable(self.json("report", *files))
        self.assertIn("second", json.dumps(said["phases"]))
        self.assertGreater(len(said["rss"]), 2)
        self.assert_same(said, self.said("report", self.db))
        for table, row in (("snapshots", "0, 'named', 1, 1, 0, 0"),
                           ("losses", "0, 3")):
            self.server.ask(f"INSERT INTO {self.database}.{table} SELECT "
                            f"process, {row} FROM {self.database}.processes")
        said = self.said("report", self.db)
        self.assertEqual(len(said["snapshots"]), 3)
        hours = self.fleet("top", self.db, "--json").stdout
        for table in self.server.ask(
                "SELECT name FROM system.tables WHERE engine LIKE '%MergeTree'"
                f" AND database = '{self.database}'").split():
            name = f"{self.database}.{table}"
            self.server.ask(f"INSERT INTO {name} SELECT * FROM {name}")
        self.assert_same(said, self.said("report", self.db))
        self.assertEqual(hours, self.fleet("top", self.db, "--json").stdout)

    @harness.nightly
    def test_columns_more(self):
        """Somebody has given every table a column, behind its first one: what
        is there is read as before, and more is added."""
        files = self.record_phases()
        files += self.record(1, version="22")
        for db in (self.db, "--db=sqlite:fleet.db"):
            self.fleet("init", db)
            self.fleet("add", db, files[0])
        for table in self.server.ask(
                "SELECT name FROM system.tables WHERE engine LIKE '%MergeTree'"
                f" AND database = '{self.database}'").split():
            name = f"{self.database}.{table}"
            first = self.server.ask(f"DESCRIBE TABLE {name}").split()[0]
            self.server.ask(f"ALTER TABLE {name} ADD COLUMN own String DEFAULT "
                            f"'x' AFTER {first}")
            self.rows(f"ALTER TABLE {table} ADD COLUMN own TEXT DEFAULT 'x'")
        self.check_report(files[:1])
        for db in (self.db, "--db=sqlite:fleet.db"):
            self.fleet("add", db, *files[1:])
            self.assert_same(self.comparable(self.json("report", *files)),
                             self.said("report", db))

    def queries(self):
        return int(self.server.ask("SELECT value FROM system.events WHERE "
                                   "event = 'Query'"))

    def test_requests(self):
        """Files are sent together: some 20 requests for all that they have, and
        at most 4 for each to know what is there. One that cannot be added does
        not keep the others out, nor a copy of one that waits."""
        files = self.record(6)
        self.fleet("init", self.db)
        before = self.queries()
        self.fleet("add", self.db, *files[:5])
        self.assertLess(self.queries() - before, 20 + 4 * 5)
        shutil.copy(self.path(files[5]), self.path("copy.sprof"))
        with open(self.path(files[0]), "rb") as whole, \
                open(self.path("cut.sprof"), "wb") as part:
            part.write(whole.read()[:20000])
        done = self.fleet("add", self.db, files[5], "cut.sprof", "copy.sprof",
                          "none.sprof", files[0], code=1)
        self.assertEqual(done.stdout, "1 added, 0 updated, 2 there already, "
                         "2 not added\n")
        self.assertIn("cut.sprof: was cut short", done.stderr)
        self.assertIn("none.sprof", done.stderr)
        self.check_report(files)

    def test_hostile_words(self):
        """What is asked for reaches SQL as a text, whatever it has."""
        self.record(1)
        self.fleet("init", self.db)
        self.fleet("add", self.db, "shop-1-0.sprof")
        for host in ("'; DROP TABLE processes; --", "a\\", "\\'", "\n", "'",
                     "{processes}", "?", "%s%n", "x" * 100000):
            done = self.fleet("top", self.db, "--host", host, code=1)
            self.assertIn("has 1 process, and none of them matches",
                          done.stderr)
        self.assertEqual(self.ask(COUNTED).split()[0], "1")


class Cut(Click):

    @harness.nightly_too
    def test_connections(self):
        """A proxy ends connections after some bytes: a file is there whole or
        not at all, and adding again adds what is missing."""
        files = self.record(3)
        whole = self.json("report", *files)["samples"]
        self.fleet("init", self.db)
        rng = random.Random(1)
        failed = 0
        limits = harness.rounds((0, 300, 1500, 4000, 30000), (
            0, 1, 100, 300, 700, 1500, 4000, 9000, 30000))
        for limit in limits:
            proxy = cutting_proxy(self.server.http,
                                  lambda n, limit=limit: limit + n % 7)
            self.addCleanup(proxy.close)
            done = subprocess.run(
                [tool("sampleprof"), "fleet", "add",
                 f"--db=clickhouse://default@127.0.0.1:{proxy.port}/"
                 f"{self.database}?timeout=5s",
                 *rng.sample(files, rng.randrange(1, 4))],
                cwd=self.dir, capture_output=True, text=True, check=False,
                timeout=harness.TIMEOUT_S, env=self.environment(
                    shim=False, env={"SAMPLEPROF_DB_PASSWORD": PASSWORD}))
            failed += done.returncode != 0
            self.assertIn(done.returncode, (0, 1), done.stderr)
            self.check_whole()
        self.assertGreater(failed, len(limits) // 2)
        self.fleet("add", self.db, *files)
        self.assertEqual(self.ask(COUNTED), f"3\t{whole}\n")
        self.check_report(files)

    @harness.nightly_too
    def test_kill(self):
        """`add` is killed at any moment: likewise."""
        files = self.record(2)
        whole = self.json("report", *files)["samples"]
        rng = random.Random(2)
        self.fleet("init", self.db)
        for _ in range(harness.rounds(3, 8)):
            process = subprocess.Popen(  # pylint: disable=R1732
                [tool("sampleprof"), "fleet", "add", self.db, *files],
                cwd=self.dir, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, env=self.environment(
                    shim=False, env={"SAMPLEPROF_DB_PASSWORD": PASSWORD}))
            time.sleep(rng.random() * 0.2)
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.check_whole()
        self.fleet("add", self.db, *files)
        self.assertEqual(self.ask(COUNTED), f"2\t{whole}\n")


class Following(Click):

    def begin(self):
        """`fleet watch` of in/, which writes the log."""
        with open(self.path("log"), "ab") as log:
            # pylint: disable=consider-using-with
            process = subprocess.Popen(
                [tool("sampleprof"), "fleet", "watch", "--interval=100ms",
                 self.db, "in"], cwd=self.dir, stderr=log, env=self.environment(
                     shim=False, env={"SAMPLEPROF_DB_PASSWORD": PASSWORD}))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def log(self):
        with open(self.path("log"), encoding="utf-8") as log:
            return log.read()

    def wait_added(self, *files):
        harness.wait_until(lambda: all(f"added {f}" in self.log()
                                       for f in files), self.log)

    def end(self, watch):
        watch.send_signal(signal.SIGTERM)
        self.assertEqual(watch.wait(harness.TIMEOUT_S), 0, self.log())

    def put(self, names):
        os.makedirs(self.path("in"), exist_ok=True)
        for name in names:
            shutil.copy(self.path(name), self.path("in/.part"))
            os.rename(self.path("in/.part"), self.path("in/" + name))

    def test_watch(self):
        """The server is killed while files come, of which some are deleted
        before it is back; then the watch is, and begins again: each file counts
        once."""
        files = self.record(5)
        self.fleet("init", self.db)
        self.put(files[:2])
        watch = self.begin()
        self.wait_added(files[1])
        self.server.kill()
        self.put(files[2:4])
        harness.wait_until(lambda: len(glob.glob(
            self.path("in/.sampleprof-backlog/*"))) == 2, self.log)
        self.assertIn("cannot be reached", self.log())
        os.unlink(self.path("in/" + files[2]))
        self.server.start()
        self.wait_added(*files[:4])
        watch.kill()
        watch.wait()
        self.put(files[4:])
        watch = self.begin()
        self.wait_added(files[4])
        self.end(watch)
        self.assertNotIn(PASSWORD, self.log())
        self.assertEqual(self.ask("SELECT count(), uniqExact(file_id) FROM "
                                  "processes"), "5\t5\n")
        self.check_report(files)

    @harness.nightly
    def test_hangs(self):
        """A server that takes connections and does not answer, as behind a
        network that is gone: what comes meanwhile waits, also what is deleted.
        Then it goes on, with what it had heard, and each file counts once."""
        files = self.record(4)
        self.db = "--db=" + self.server.url(self.database, timeout="5s")
        self.fleet("init", self.db)
        self.put(files[:1])
        watch = self.begin()
        self.wait_added(files[0])
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            self.put(files[1:])
            harness.wait_until(lambda: "sent nothing for 5 s" in self.log(),
                               self.log)
            harness.wait_until(lambda: len(glob.glob(
                self.path("in/.sampleprof-backlog/*"))) == 3, self.log)
            os.unlink(self.path("in/" + files[2]))
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        self.wait_added(*files)
        self.end(watch)
        self.check_whole()
        self.assertEqual(self.ask(COUNTED), "4\t" + str(self.json(
            "report", *files)["samples"]) + "\n")
        self.check_report(files)

    @harness.nightly
    def test_slow(self):
        """Each answer comes half a second late: that is no failure, and what
        comes meanwhile is sent, once."""
        files = self.record(4)
        self.fleet("init", self.db)
        proxy = slow_proxy(self.server.http, 0.5)
        self.addCleanup(proxy.close)
        straight = self.db
        self.db = straight.replace(f":{self.server.http}/", f":{proxy.port}/")
        self.put(files[:1])
        watch = self.begin()
        self.wait_added(files[0])
        self.put(files[1:])
        self.wait_added(*files)
        self.end(watch)
        self.assertNotIn("cannot", self.log())
        self.db = straight
        self.check_whole()
        self.check_report(files)

    @harness.nightly
    def test_ends_without_an_answer(self):
        """It does not wait for a silent server when it is told to end; what
        was not sent is kept for the next one."""
        files = self.record(2)
        self.db = "--db=" + self.server.url(self.database, timeout="3600s")
        self.fleet("init", self.db)
        self.put(files[:1])
        watch = self.begin()
        self.wait_added(files[0])
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            self.put(files[1:])
            time.sleep(1)
            self.end(watch)
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        self.assertIn("interrupted before the server answered", self.log())
        self.assertIn(", 1 waiting, 0 lost", self.log())
        os.unlink(self.path("in/" + files[1]))
        watch = self.begin()
        self.wait_added(files[1])
        self.end(watch)
        self.check_whole()


class Secure(harness.Case):

    def test_tls(self):
        """With the certificate's own file; without it, for another name, for a
        file that is none and from one kind of port to the other: an error that
        says which."""
        folder = tempfile.mkdtemp(prefix="sampleprof-click-")
        make_certificate(folder)
        port, = free_ports(1)
        server = Server(folder, SECURE.format(port=port, dir=folder))
        self.addCleanup(server.remove)
        server.start()

        def init(host, port, *words):
            done = subprocess.run(
                [tool("sampleprof"), "fleet", "init", "--db=clickhouse://"
                 f"default@{host}:{port}/d?" + "&".join(("timeout=60s", *words))],
                capture_output=True, text=True, check=False,
                timeout=harness.TIMEOUT_S, env=self.environment(
                    shim=False, env={"SAMPLEPROF_DB_PASSWORD": PASSWORD}))
            self.assertNotIn(PASSWORD, done.stderr)
            return done.returncode, done.stderr
        cert = f"ca={folder}/cert.pem"
        self.assertEqual(init("127.0.0.1", port, "secure=on", cert), (0, ""))
        self.assertIn("sampleprof_fleet_", server.ask("SHOW TABLES FROM d"))
        for host, to, words, why in (
                ("127.0.0.1", port, ("secure=on",),
                 "certificate is not trusted"),
                ("localhost", port, ("secure=on", cert),
                 "certificate is not trusted"),
                ("127.0.0.1", port, ("secure=on", f"ca={folder}/key.pem"),
                 "the file of ca= has no certificate"),
                ("127.0.0.1", server.http, ("secure=on", cert),
                 "is that its port for https|are host, port and secure="),
                ("127.0.0.1", port, (), r"add \?secure=on to --db")):
            with self.subTest(host=host, words=words):
                code, said = init(host, to, *words)
                self.assertEqual(code, 1)
                # Of a port that speaks no TLS the server may say nothing.
                self.assertRegex(said, why)


class Servers(Click):

    def refused(self, answer, timeout="300s"):
        stub = Stub(answer)
        self.addCleanup(stub.close)
        done = self.fleet("top", f"--db=clickhouse://u@127.0.0.1:{stub.port}/"
                          f"d?timeout={timeout}", code=1)
        self.assertNotIn("\x1b", done.stderr)
        return done.stderr

    def test_that_are_none(self):
        """Nonsense, silence, a drip, lies about lengths: an error that says
        so, soon."""
        chunked = ROWS + b"Transfer-Encoding: chunked\r\n\r\n"
        text = ROWS.replace(b"application/octet-stream", b"text/plain")
        for answer, why in (
                (says(b""), "try again; if that is a port for https"),
                (says(b"\x15\x03\x01\0\x02\x02\x46"), "add ?secure=on to"),
                (says(b"SSH-2.0-OpenSSH\r\n"), "the connection failed"),
                (says(ROWS + b"Content-Length: 9\r\n\r\n\0"),
                 "): try again\n"),
                (says(body(b"<html>hello</html>" * 9)), "makes no sense"),
                (says(body(b"<html>hello</html>" * 9, text)),
                 "a ClickHouse server? It says <html>hello"),
                (says(body(b"<html>", b"HTTP/1.1 200 OK\r\n")),
                 "a ClickHouse server? It says <html>"),
                (says(body(b"\x05name")), "makes no sense"),
                (says(body(b"\x04name\xff\xff\xff\xff\xff\x01")),
                 "makes no sense"),
                (says(body(b"Code: 241, e.displayText() = DB::Exception: "
                           b"Memory limit\x1b[31m", text)),
                 "Exception: Memory"),
                (says(body(b"DB::Exception: no " + PASSWORD.encode() +
                           b"\x1b[31m", b"HTTP/1.1 500 Oh\r\n")),
                 "the server refused (500)"),
                (says(body(b"", b"HTTP/1.1 401 No\r\n")),
                 "does not let this user in"),
                (says(body(b"", b"HTTP/1.1 302 Found\r\n")),
                 "the server refused (302)"),
                (says(ROWS + b"\r\n\x04name"), "was cut"),
                (says(chunked + b"5\r\n\x04na"), "the connection")):
            with self.subTest(why=why):
                self.assertIn(why, self.refused(answer))
        for answer in (b"", chunked):
            self.assertRegex(
                self.refused(says(answer, is_whole=False), "1s"),
                r"sent nothing for 1 s: .* \?timeout=")

        def drip(client):
            client.recv(1 << 16)
            client.sendall(chunked)
            while True:
                client.sendall(b"1\r\n\x00\r\n")
                time.sleep(0.1)
        self.assertIn("sent nothing for 1 s", self.refused(drip, "1s"))

    @harness.nightly
    def test_an_error_amid_rows(self):
        """What goes wrong when the server has made rows is an error, and no
        row: it is the server's answer."""
        server = Server(tempfile.mkdtemp(prefix="sampleprof-click-"),
                        settings="<max_result_rows>200000</max_result_rows>")
        self.addCleanup(server.remove)
        server.start()
        self.db = "--db=" + server.url("d")
        self.fleet("init", self.db)
        server.ask("INSERT INTO d.processes (process, file_id, samples) SELECT "
                   "number, number, 1 FROM system.numbers LIMIT 300000")
        self.assertRegex(
            self.fleet("top", self.db, code=1).stderr,
            r"the server refused \(500\): .*Limit for result exceeded")

    def test_who(self):
        """Passwords come from the environment or a file, and nowhere else."""
        done = self.fleet("init", self.db, password="wrong", code=1)
        self.assertIn("does not let this user in", done.stderr)
        with open(self.path("secret"), "w", encoding="ascii") as out:
            out.write(PASSWORD + "\n")
        self.fleet("init", self.db + "?password-file=secret", password="wrong")
        done = self.fleet("top", "--db=clickhouse://u:pw@h/d", code=1)
        self.assertIn("a password does not go in here", done.stderr)
        self.assertNotIn("pw", done.stderr.replace("password", ""))
        for url, why in (("h", "DATABASE is wanted"), ("/d", "HOST is wanted"),
                         ("h/d;x", "DATABASE is wanted"),
                         ("h'/d", "HOST is wanted"),
                         ("h/d?cluster=a'b", "cluster is a name"),
                         ("h/d?timeout=0s", "1s to 86400s"),
                         ("h/d?timeout=5", "1s to 86400s"),
                         ("h/d?other=1", "parameters are"),
                         ("h/d?password-file=none", "cannot be opened"),
                         ("127.0.0.1:1/d", "cannot be reached")):
            done = self.fleet("top", f"--db=clickhouse://{url}", code=1)
            self.assertIn(why, done.stderr)

    def test_versions(self):
        """A database of another version, and of something else."""
        done = self.fleet("top", self.db, code=1)
        self.assertIn("sampleprof fleet init", done.stderr)
        self.server.ask(f"CREATE DATABASE {self.database}")
        self.server.ask(f"CREATE TABLE {self.database}.sampleprof_fleet_7 "
                        "(version UInt64) ENGINE = Null")
        for action in ("top", "init"):
            done = self.fleet(action, self.db, code=1)
            self.assertIn("version 7", done.stderr)


