# SPDX-License-Identifier: MIT
"""Several files: sums of the parts, to the byte at period 1.  `symbolize`:
names without the program, compressed, everything else byte by byte the same.
Terminals, pipes, locales."""

import collections
import http.server
import json
import os
import pty
import re
import shutil
import subprocess
import threading

import harness



def report(*arguments, **options):
    return harness.run_report(*arguments, **options)


def by_stack(document):
    """Bytes and samples of each distinct stack of function names."""
    sums = collections.Counter()
    for stack in document["stacks"]:
        names = tuple(f["function"] for f in stack["frames"])
        sums[names, "bytes"] += stack["flat_bytes"]["value"]
        sums[names, "samples"] += stack["samples"]
    return sums


class Offline(harness.Case):

    def json(self, *files):
        done = report("--json", *files)
        self.assertEqual(done.returncode, 0, done.stderr)
        return harness.with_frames(json.loads(done.stdout))

    # ---- several files ----

    def test_sum_of_parts(self):
        """A program and its children: each stack's bytes are the sum over
        the processes, to the byte at period 1, and so are the totals."""
        result = self.execute(harness.target("program_processes"), "fork", 3000,
                              5000, 2000, period=1)
        self.assertEqual(len(result.paths), 3)
        parts = [self.json(p) for p in result.paths]
        merged = self.json(*result.paths)
        self.assertGreater(merged["samples"], 10000)
        self.assertEqual(merged["samples"],
                         sum(p["samples"] for p in parts))
        for total in ("alloc_bytes", "alloc_objects"):
            self.assertEqual(merged["exact"][total],
                             sum(p["exact"][total] for p in parts))
        expected = sum((by_stack(p) for p in parts), collections.Counter())
        self.assertEqual(by_stack(merged), expected)
        self.assertEqual(merged["estimate"]["live_bytes"]["value"],
                         sum(p["estimate"]["live_bytes"]["value"]
                             for p in parts))

    def test_head_names_them(self):
        result = self.execute(harness.target("program_processes"), "fork", 3000,
                              5000, 2000, period=64)
        done = report(*result.paths)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout.decode()
        self.assertIn("3 profiles: ", " ".join(text.split()))
        for path in result.paths:
            self.assertIn(path, text.split("\nnext: ")[1])
        done = report("export", "collapsed", *result.paths, "-o", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"work", done.stdout)

    def test_refused(self):
        result = self.execute(harness.target("program_known"), "main", 1,
                              period=512)
        done = report(result.paths[0], result.paths[0])
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"name each file once", done.stderr)

    def test_newer_format(self):
        """A file of a later version is refused by its number and left as it
        is, nothing is written, and other files are not lost."""
        good = self.execute(harness.target("program_known"), "main", 1,
                            period=512).paths[0]
        newer = os.path.join(self.dir, "newer.sprof")
        with open(good, "rb") as file:
            content = bytearray(file.read())
        content[8] += 1
        with open(newer, "wb") as file:
            file.write(content)
        to = os.path.join(self.dir, "to")
        database = "sqlite:" + os.path.join(self.dir, "fleet.db")
        self.sampleprof("fleet", "init", "--db", database)
        for arguments in (
                ("report", newer), ("report", good, newer), ("top", newer),
                ("export", "collapsed", newer, "-o", to),
                ("symbolize", newer, "-o", to), ("diff", good, newer),
                ("check", newer, "--limit", "alloc_bytes=1G"),
                ("advise", newer), ("lab", newer),
                ("fleet", "add", "--db", database, newer, good)):
            done = self.sampleprof(*arguments, code=1)
            self.assertIn(newer + ": offset 8: version: format version 2, but "
                          "this sampleprof-report reads version 1; use",
                          done.stderr, arguments)
            self.assertFalse(os.path.exists(to), arguments)
        self.assertIn("1 added", done.stdout + done.stderr)
        with open(newer, "rb") as file:
            self.assertEqual(file.read(), content)

    # ---- on another machine ----

    def test_symbolize(self):
        """Without the program the names are those from the file."""
        program = shutil.copy(harness.target("program_known"), self.dir)
        result = self.execute(program, "main", 1, period=512)
        path, = result.paths
        here = by_stack(self.json(path))
        carried = [os.path.join(self.dir, name)
                   for name in ("carried.sprof", "carried.sprof.zst")]
        for to in carried:
            done = report("symbolize", path, "-o", to)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(b"addresses have a name", done.stdout)
        os.unlink(program)
        self.assertNotEqual(by_stack(self.json(path)), here)
        for to in carried:
            self.assertEqual(by_stack(self.json(to)), here)
        self.assertLess(os.path.getsize(carried[1]),
                        os.path.getsize(path) // 10)
        # Once more changes nothing.
        for source in carried:
            again = source.replace("carried", "again")
            self.assertEqual(report("symbolize", source, "-o",
                                    again).returncode, 0)
            with open(again, "rb") as a, open(source, "rb") as b:
                self.assertEqual(a.read(), b.read())

    def test_all_else_stays(self):
        """Every chunk that was there is there, byte by byte."""
        result = self.execute(harness.target("program_known"), "main", 1,
                              period=512)
        path, = result.paths
        to = os.path.join(self.dir, "to.sprof")
        self.assertEqual(report("symbolize", path, "-o", to).returncode, 0)
        with open(path, "rb") as a, open(to, "rb") as b:
            before, after = a.read(), b.read()
        size = 65536
        # A file of its true length has no room for them.
        self.assertGreaterEqual(len(after), len(before))
        before = before.ljust(len(after), b"\0")
        changed = [at for at in range(0, len(after), size)
                   if before[at:at + size] != after[at:at + size]]
        self.assertTrue(changed)
        for at in changed:
            self.assertFalse(any(before[at:at + size]))
            self.assertEqual(after[at:at + 8], b"chnk\3\0\0\0")

    def test_symbolize_refused(self):
        result = self.execute(harness.target("program_known"), "main", 1,
                              period=512)
        path, = result.paths
        to = os.path.join(self.dir, "to.sprof")
        cut = os.path.join(self.dir, "cut.sprof")
        with open(path, "rb") as whole, open(cut, "wb") as part:
            part.write(whole.read(70000))
        for arguments, code, words in [
                ((path,), 2, b"-o OUT"),
                ((path, "-o", "-"), 2, b"-o"),
                ((path, path, "-o", to), 2, b"more than one FILE"),
                (("-o", to), 2, b"no FILE"),
                ((cut, "-o", to), 1, b"cut short"),
                (("missing", "-o", to), 1, b"missing"),
                ((path, "-o", "/nowhere/x"), 1, b"/nowhere/x")]:
            done = report("symbolize", *arguments)
            self.assertEqual(done.returncode, code, arguments)
            self.assertIn(words, done.stderr)
            self.assertFalse(os.path.exists(to))

    def moved(self):
        """A profile whose program is gone: its path, what the report said of
        it before, the program's build id and its debug file."""
        program = shutil.copy(harness.target("program_known"), self.dir)
        result = self.execute(program, "main", 1, period=512)
        path, = result.paths
        here = by_stack(self.json(path))
        notes = subprocess.run(["readelf", "-n", program], check=True,
                               capture_output=True).stdout.decode()
        build_id = re.search("Build ID: ([0-9a-f]+)", notes).group(1)
        debug = os.path.join(self.dir, "debug")
        subprocess.run(["objcopy", "--only-keep-debug", program, debug],
                       check=True)
        os.rename(program, os.path.join(self.dir, "moved"))
        self.assertNotEqual(by_stack(self.json(path)), here)
        return path, here, build_id, debug

    def test_debug_path(self):
        """The program by build id, by path or by name below a directory, or
        its debug file alone."""
        path, here, build_id, debug = self.moved()
        program = os.path.join(self.dir, "moved")
        by_id = os.path.join(".build-id", build_id[:2], build_id[2:])
        places = {by_id: program, by_id + ".debug": debug,
                  "program_known": program,
                  harness.target("program_known").lstrip("/"): None}
        root = os.path.join(self.dir, "root")
        for place, source in places.items():
            with self.subTest(place=place):
                at = os.path.join(root, place)
                os.makedirs(os.path.dirname(at))
                shutil.copy(source or "/bin/true", at)
                found = by_stack(self.json(
                    "--debug-path", root + ":/usr/lib/debug", path))
                shutil.rmtree(root)
                self.assertEqual(found == here, source is not None)

    def test_debuginfod(self):
        """From a server, if that is asked for and one is named."""
        path, here, build_id, debug = self.moved()
        asked = []

        class Server(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                if self.path != f"/buildid/{build_id}/debuginfo":
                    self.send_error(404)
                    return
                with open(debug, "rb") as f:
                    body = f.read()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Server)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        env = {**os.environ, "DEBUGINFOD_URLS":
               f"http://127.0.0.1:{server.server_port}",
               "DEBUGINFOD_CACHE_PATH": os.path.join(self.dir, "cache")}
        done = report("--json", path, env=env)
        self.assertNotEqual(by_stack(harness.with_frames(
            json.loads(done.stdout))), here)
        self.assertEqual(asked, [])
        done = report("--json", "--debuginfod", path, env=env)
        if b"is not installed" in done.stderr:
            self.skipTest("libdebuginfod.so.1 is not installed")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(by_stack(harness.with_frames(
            json.loads(done.stdout))), here)
        self.assertIn(f"/buildid/{build_id}/debuginfo", asked)
        # A server that sends another build is not believed.
        shutil.copy("/bin/true", debug)
        env["DEBUGINFOD_CACHE_PATH"] += "2"
        done = report("--json", "--debuginfod", path, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(by_stack(harness.with_frames(
            json.loads(done.stdout))), here)
        if os.geteuid() == 0:
            del asked[:]
            self.refuses_cache_of_another(path, env)
            self.assertEqual(asked, [])
        for urls in ("", " "):
            env["DEBUGINFOD_URLS"] = urls
            done = report("--debuginfod", path, env=env)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"DEBUGINFOD_URLS", done.stderr)

    def refuses_cache_of_another(self, path, env):
        """As $HOME is one under sudo; a link of that user as well."""
        theirs = os.path.join(self.dir, "theirs")
        os.mkdir(theirs)
        link = os.path.join(self.dir, "link")
        os.symlink(self.dir, link)
        for name in theirs, link:
            os.lchown(name, 65534, 65534)
            for variable in ("DEBUGINFOD_CACHE_PATH", "XDG_CACHE_HOME",
                             "HOME"):
                done = report("--debuginfod", path, env={
                    **{k: v for k, v in env.items()
                       if k not in ("DEBUGINFOD_CACHE_PATH", "XDG_CACHE_HOME")},
                    variable: name})
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"another user (uid 65534)", done.stderr)
        self.assertEqual(os.listdir(theirs), [])

    # ---- on a terminal, and not ----

    def test_no_escapes_in_a_pipe(self):
        result = self.execute(harness.target("program_known"), "main", 1,
                              period=512)
        done = report(*result.paths, env={**os.environ, "TERM": "xterm"})
        self.assertEqual(done.returncode, 0)
        self.assertNotIn(b"\033", done.stdout + done.stderr)

    def test_ascii_where_the_locale_is(self):
        """In a locale without UTF-8 nothing is drawn with it."""
        result = self.execute(harness.target("program_known"), "main", 1,
                              period=512)
        outputs = {}
        for locale in ("C", "C.UTF-8"):
            done = report("--timeline", *result.paths,
                          env={**os.environ, "LC_ALL": locale})
            self.assertEqual(done.returncode, 0, done.stderr)
            outputs[locale] = done.stdout
        outputs["C"].decode("ascii")
        self.assertIn("█", outputs["C.UTF-8"].decode())

    def terminal(self, arguments):
        """What a terminal shows of standard error, and standard output."""
        master, slave = pty.openpty()
        with subprocess.Popen(
                [os.environ["SAMPLEPROF_REPORT"], *arguments],
                stdout=subprocess.PIPE, stderr=slave) as process:
            os.close(slave)
            stdout = process.stdout.read()
            process.wait(harness.TIMEOUT_S)
        shown = b""
        try:
            while part := os.read(master, 65536):
                shown += part
        except OSError:
            pass
        os.close(master)
        return shown, stdout

    def test_progress_leaves_nothing(self):
        """A short report shows none; what is shown is erased."""
        result = self.execute(harness.target("program_known"), "main", 1,
                              period=512)
        shown, stdout = self.terminal(result.paths)
        self.assertIn(b"sampleprof report", stdout)
        self.assertNotIn(b"\033", stdout)
        if shown:
            self.assertTrue(shown.endswith(b"\r\033[K"), shown)
