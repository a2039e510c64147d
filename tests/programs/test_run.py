# SPDX-License-Identifier: MIT
"""The summary of `sampleprof run`: with wrapper scripts it is about the process
of this run that allocated most.  Profiles have names of functions at the end;
an existing file name or a directory that cannot be written to is an error.
`sampleprof ls`, `preload-path` and the columns of `ps`."""

import csv
import io
import json
import os
import re
import shlex
import shutil
import stat
import subprocess

import harness


class Command(harness.Case):

    def setUp(self):
        super().setUp()
        self.plain = harness.target("program_plain")

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def files(self, directory=""):
        return sorted(f for f in os.listdir(self.path(directory))
                      if f.endswith(".sprof"))


class Python(Command):

    def test_settings(self):
        """What Python needs is set for the program, and run says so."""
        print_them = ("sh", "-c", "echo $PYTHONMALLOC")
        env = {k: v for k, v in self.environment(shim=False).items()
               if not k.startswith("PYTHON")}
        for options, want in (((), "\n"), (("--python",), "malloc\n")):
            done = self.sampleprof("run", *options, "--", *print_them, env=env)
            self.assertEqual(done.stdout, want)
            self.assertEqual("PYTHONMALLOC=malloc" in done.stderr,
                             bool(options))


class Labels(Command):

    def test_labels(self):
        """Labels of the environment and of the command line are in the file,
        in the report, in its JSON and in ls."""
        env = self.environment(
            shim=False, env={"SAMPLEPROF_LABELS": "service=shop"})
        self.sampleprof("run", "--label", "version=1.7,env=prod", "--label",
                        "n=3", "--out", "a.sprof", self.plain, env=env)
        text = self.sampleprof("report", "a.sprof").stdout
        self.assertIn("\n  labels    service=shop, version=1.7, env=prod, n=3\n",
                      text)
        said = json.loads(self.sampleprof("report", "--json", "a.sprof").stdout)
        self.assertEqual(said["labels"], {"service": "shop", "version": "1.7",
                                          "env": "prod", "n": "3"})
        self.assertEqual(said["fraction"], 1)
        self.assertIn("\n        service=shop, version=1.7, env=prod, n=3\n",
                      self.sampleprof("ls").stdout)

    def test_container(self):
        """The id in the name of the control group is in the file."""
        container = f"{os.getpid():064x}"
        group = f"/sys/fs/cgroup/memory/docker-{container}.scope"
        try:
            os.mkdir(group)
            self.addCleanup(os.rmdir, group)
        except OSError as error:
            self.skipTest(f"no control group to be had: {error}")
        self.sampleprof("run", "--quiet", "--out", "a.sprof", "sh", "-c",
                        f"echo $$ > {group}/cgroup.procs; exec {self.plain}")
        said = [json.loads(self.sampleprof("report", "--json", file).stdout)
                for file in self.files()]
        self.assertIn(container, [s["container"] for s in said])

    def test_hostile(self):
        """What is no label is an error of run.  From the environment it is
        ignored as a whole; the library says so once, and the report again."""
        for text in ('a="b"', "a=b\nc", "a=\x1b[31m", "a", "=b", "a=1,b",
                     "", "a=" + "x" * 129, "a=" + "x" * 100000):
            done = self.sampleprof("run", "--label", text, self.plain, code=2)
            self.assertIn("--label takes KEY=VALUE", done.stderr)
            self.assertNotIn("\x1b", done.stderr)
        done = self.sampleprof("run", "--label", "a=1", "--label", "a=2",
                               self.plain, code=2)
        self.assertIn("the same key twice", done.stderr)
        self.assertEqual(self.files(), [])
        for n, text in enumerate(("a=1,b='; DROP TABLE x", "a=" + "x" * 100000,
                                  "a=b\nc", "a=1,a=2")):
            env = self.environment(shim=False,
                                   env={"SAMPLEPROF_LABELS": text})
            done = self.sampleprof("run", "--out", f"{n}.sprof", "sh", "-c",
                                   f"{self.plain}; {self.plain}", env=env)
            self.assertEqual(done.stderr.count("SAMPLEPROF_LABELS is ignored"),
                             1, done.stderr)
            text = self.sampleprof("report", f"{n}.sprof").stdout
            self.assertIn("SAMPLEPROF_LABELS was ignored", text)
            self.assertNotIn("  labels ", text)


class Fraction(Command):
    RUNS = 300
    SHARE = 0.3

    def test_share(self):
        """Of 300 processes 30 % leave a profile, which says so; the others run
        as always.  False alarm: 6e-8, the binomial law beyond 90 - 43 and 90 +
        43.  Power: 0.97 for a share of 50 %, 1 for that of all or none."""
        self.sampleprof("run", "--fraction", "30%", "--quiet", "--no-symbols",
                        "--follow", "program_plain", "--out", "%e.%p.sprof",
                        "sh", "-c",
                        f"for i in $(seq {self.RUNS}); do {self.plain} || "
                        "exit 1; done")
        files = [f for f in self.files() if f.startswith("program_plain")]
        self.assertLessEqual(abs(len(files) - self.RUNS * self.SHARE), 43)
        said = json.loads(self.sampleprof("report", "--json", files[0]).stdout)
        self.assertEqual(said["fraction"], 0.3)

    def test_forks(self):
        """Forked children are there where their parent is, and share its
        draw.  Of 26 processes some are drawn, some are not (3e-8)."""
        fork = ("import os\nif os.fork(): os.wait()\n"
                "x = b'y' * 900000")
        drawn = []
        for n in range(26):
            self.sampleprof("run", "--fraction", "50%", "--quiet",
                            "--no-symbols", "--period=16K", "--out",
                            f"{n}.%n.sprof",
                            "/usr/bin/python3", "-IS", "-c", fork)
            drawn.append(len([f for f in self.files()
                              if f.startswith(f"{n}.")]))
        self.assertEqual(set(drawn), {0, 2})

    def test_seed_does_not_decide(self):
        """With a seed that is the same everywhere, each process is still drawn
        by itself: of 40 some are recorded, some are not (2e-12)."""
        env = self.environment(shim=False, env={"SAMPLEPROF_SEED": "7"})
        for n in range(40):
            self.sampleprof("run", "--fraction=50%", "--quiet", "--no-symbols",
                            "--out", f"{n}.sprof", self.plain, env=env)
        self.assertNotIn(len(self.files()), (0, 40))

    def test_not_drawn(self):
        """Nothing is left, and run says why; of two processes one at least is
        not drawn (1e-12)."""
        said = [self.sampleprof("run", "--fraction", "0.0001%",
                                self.plain).stderr for _ in range(2)]
        self.assertIn("SAMPLEPROF_FRACTION did not draw", "".join(said))
        for text in ("5", "0%", "101%", "0.00001%", ""):
            done = self.sampleprof("run", "--fraction", text, self.plain,
                                   code=2)
            self.assertIn("--fraction takes a share", done.stderr)


class Summary(Command):

    def next_of(self, done):
        [line] = re.findall(r"(?m)^sampleprof: next: sampleprof report (.*)$",
                            done.stderr)
        return self.path(*shlex.split(line))

    def check_next(self, done, program):
        profile = harness.Profile(self.next_of(done))
        profile.require_samples()
        self.assertTrue(os.path.samefile(profile.json["program"], program))
        [samples] = re.findall(r"(?m); ([\d,]+) samples?$", done.stderr)
        self.assertEqual(int(samples.replace(",", "")),
                         profile.json["samples"])
        return profile

    @harness.nightly_too
    def test_wrappers(self):
        """Those that execute the program, that have it as a child, and that
        allocate more than nothing themselves."""
        for wrapper in (["env", "A=1"],
                        ["sh", "-c", 'ls >/dev/null; "$@"; ls >/dev/null',
                         "sh"],
                        ["timeout", "100"], ["sh", "-c", '"$@"', "sh"],
                        ["sh", "-c", '"$@"; true', "sh"],
                        )[:harness.rounds(2, 5)]:
            with self.subTest(wrapper=wrapper):
                done = self.sampleprof("run", "--period", "1", *wrapper,
                                       self.plain, 20000)
                self.check_next(done, self.plain)
                self.assertRegex(done.stderr, r"(?m)^sampleprof: program_plain:"
                                 " .* exact; ")

    def test_three_largest(self):
        done = self.sampleprof(
            "run", "--period", "1", "sh", "-c", " ".join(
                f"{self.plain} {n};" for n in (3000, 20000, 100, 9000)))
        rows = re.findall(r"(?m)^sampleprof: +(\S+ \S+)  (\S+)  (\S+)$",
                          done.stderr)
        self.assertIn("5 processes were recorded", done.stderr)
        self.assertEqual([row[1] for row in rows], 3 * ["program_plain"])
        exact = [harness.Profile(self.path(row[2])).exact[0] for row in rows]
        self.assertEqual(exact, sorted(exact, reverse=True))
        self.assertEqual(exact, sorted(
            (harness.Profile(self.path(f)).exact[0] for f in self.files()),
            reverse=True)[:3])
        self.assertEqual(self.next_of(done), self.path(rows[0][2]))
        self.assertIn("sampleprof ls .\n", done.stderr)

    def test_other_runs(self):
        """In the same directory, at the same time, and larger."""
        script = (f"LD_PRELOAD= {harness.tool()} run --quiet --period 1 "
                  f"{self.plain} 90000; exec {self.plain} 10")
        done = self.sampleprof("run", "--period", "1", "sh", "-c", script)
        profile = self.check_next(done, self.plain)
        self.assertEqual(len(self.files()), 3)
        self.assertLess(profile.exact[1], 90000)

    def test_off(self):
        """A smaller period is of no use to what was never sampled."""
        self.sampleprof("run", "--quiet", "--off", "--out", "p.sprof",
                        self.plain, 100000)
        text = self.sampleprof("report", "p.sprof").stdout
        self.assertIn("0 samples: sampling was off all the time", text)
        self.assertNotIn("SAMPLEPROF_PERIOD", text)

    def test_place(self):
        """Files that are there, and places that cannot be written to."""
        out = self.path("there.sprof")
        with open(out, "w", encoding="ascii") as f:
            f.write("precious")
        for option in (["--out", out], []):
            env = self.environment(shim=False)
            if not option:
                env["SAMPLEPROF_OUT"] = "there.sprof"
            done = self.sampleprof("run", *option, "touch", self.path("ran"),
                                   code=126, env=env)
            self.assertRegex(done.stderr, "there.sprof: exists already: .*--out")
        done = self.sampleprof("run", "--out", self.path("absent", "x"),
                               "touch", self.path("ran"), code=126)
        self.assertRegex(done.stderr, "absent/.*No such file.*--out")
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assertEqual(os.listdir(self.dir).count("there.1.sprof"), 0)
        os.mkdir(self.path("d"))
        for out in (self.path("d"), self.path("d", "x.%p.sprof"),
                    self.path("d", "y.sprof")):
            done = self.sampleprof("run", "--out", out, self.plain, 100)
            self.assertTrue(os.path.exists(self.next_of(done)))


class Names(Command):

    def functions(self, file, **options):
        done = subprocess.run(
            [harness.tool(), "report", "--json", file], capture_output=True,
            text=True, check=True, timeout=harness.TIMEOUT_S, **options)
        return done.stdout

    def run_copy(self, *options):
        """A program that is gone afterwards."""
        program = self.path("gone")
        shutil.copy(self.plain, program)
        self.sampleprof("run", "--quiet", "--period", "1", "--out", "p.sprof",
                        *options, program, 100)
        os.unlink(program)
        path = self.path("p.sprof")
        harness.Profile(path).require_samples()
        names = {f["function"] for s in harness.Profile(path).stacks
                 for f in s["frames"]}
        mode = stat.S_IMODE(os.stat(path).st_mode)
        os.unlink(path)
        return names, mode

    def test_names(self):
        self.assertIn("main", self.run_copy()[0])
        self.assertNotIn("main", self.run_copy("--no-symbols")[0])

    def test_file_is_its_owners(self):
        """As before its names came."""
        old = os.umask(0o022)
        self.addCleanup(os.umask, old)
        self.assertEqual(self.run_copy()[1], 0o600)

    def test_children(self):
        """Those that have ended; not one that goes on."""
        program = self.path("gone")
        shutil.copy(self.plain, program)
        script = f"{program} 100; sleep 1000 >/dev/null 2>&1 & echo $!"
        done = self.sampleprof("run", "--period", "1", "--quiet", "sh", "-c",
                               script)
        sleeper = int(done.stdout.split()[-1])
        self.addCleanup(os.kill, sleeper, 15)
        os.unlink(program)
        [path] = [p for p in self.files() if p.startswith("gone")]
        names = {f["function"] for s in harness.Profile(self.path(path)).stacks
                 for f in s["frames"]}
        self.assertIn("main", names)

    def test_debug_file_comes_later(self):
        """Names without lines are looked up again; nothing is said of a program
        that is not there if the profile has its names."""
        program = self.path("app")
        shutil.copy(self.plain, program)
        objcopy = harness.require("objcopy", "binutils")
        subprocess.run([objcopy, "--only-keep-debug", program,
                        program + ".debug"], check=True)
        subprocess.run([objcopy, "--strip-debug", program], check=True)
        self.sampleprof("run", "--quiet", "--period", "1", "--out", "p.sprof",
                        program, 100)

        def main_frame(*options):
            done = self.sampleprof("report", "--json", *options, "p.sprof")
            report = harness.with_frames(json.loads(done.stdout))
            self.assertNotIn(program, [p["module"] for p in
                                       report["symbol_problems"]])
            frames = [f for s in report["stacks"] for f in s["frames"]
                      if f["function"] == "main"]
            return frames[0]["file"]

        self.assertIsNone(main_frame())
        with open(program, "rb") as f:
            build_id = re.search(rb"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"
                                 rb"(.{20})", f.read(), re.S)[1].hex()
        os.makedirs(self.path("debug", ".build-id", build_id[:2]))
        os.rename(program + ".debug",
                  self.path("debug", ".build-id", build_id[:2],
                            build_id[2:] + ".debug"))
        self.assertTrue(main_frame("--debug-path", self.path("debug")).endswith(
            "plain.c"))
        os.unlink(program)
        self.assertIsNone(main_frame())

    def test_standard_output_is_the_programs(self):
        done = self.sampleprof("run", "echo", "hello")
        self.assertEqual(done.stdout, "hello\n")

    def test_without_the_report(self):
        """The profile is as it was, and the exit status that of the
        program."""
        bin_dir = self.path("bin", "tools")
        os.makedirs(bin_dir)
        os.makedirs(self.path("bin", "src", "agent"))
        shutil.copy(harness.tool(), bin_dir)
        shutil.copy(os.environ["SAMPLEPROF_SO"],
                    self.path("bin", "src", "agent"))
        done = subprocess.run(
            [os.path.join(bin_dir, "sampleprof"), "run", "--out", "p.sprof",
             "sh", "-c", "exit 7"], capture_output=True, text=True, check=False,
            cwd=self.dir, env=self.environment(shim=False),
            timeout=harness.TIMEOUT_S)
        self.assertEqual(done.returncode, 7)
        self.assertIn("names were not added", done.stderr)
        harness.Profile(self.path("p.sprof"))


class Lists(Command):

    def test_preload_path(self):
        library = self.sampleprof("preload-path").stdout.rstrip("\n")
        self.assertTrue(os.path.samefile(library, os.environ["SAMPLEPROF_SO"]))

    def test_ls(self):
        os.mkdir(self.path("d"))
        self.assertRegex(self.sampleprof("ls", "d").stderr, "no profile in d")
        self.sampleprof("run", "--quiet", "--period", "1", "--out", "d", "sh",
                        "-c", f"{self.plain} 5000; kill -KILL $$", code=-9)
        with open(self.path("d", "text"), "w", encoding="ascii") as f:
            f.write("no profile")
        shutil.copy(self.path("d", self.files("d")[1]),
                    self.path("d", "other.sprof"))
        text = self.sampleprof("ls", "d").stdout
        self.assertEqual(self.sampleprof("ls", cwd=self.path("d")).stdout, text)
        lines = text.splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertEqual(lines[0].split(), ["pid", "parent", "start", "ran",
                                            "allocated", "live", "end"])
        self.assertRegex(lines[1], r"^\d{4}-\d\d-\d\d$")
        self.assertTrue(lines[-1].startswith("+ allocated: at least"), text)
        rows = dict(zip([l.split()[0] for l in lines[3:-1:2]],
                        [l.split() for l in lines[2:-1:2]]))
        self.assertEqual(set(rows), {*self.files("d")}, text)
        self.assertIn("other.sprof  (program_plain)", text)
        # What tells processes of one program apart.
        self.assertRegex(text, r"program_plain\.\d+\.sprof  \(5000\)\n")
        self.assertRegex(text, r"sh\.\d+\.sprof  \(-c .*\.\.\.\)\n")
        for file, row in rows.items():
            profile = harness.Profile(self.path("d", file))
            self.assertEqual(int(row[0]), profile.json["pid"])
            self.assertEqual(row[1], profile.settings["parent"])
            # The shell was killed; who was not waited for may have been.
            self.assertIn(row[-1], ["clean"] if profile.end == "clean"
                          else ["killed?", "sig9"])
        # For programs: the same, with all of each name.
        said = json.loads(self.sampleprof("ls", "--json", "d").stdout)
        self.assertEqual({os.path.basename(r["file"]): str(r["pid"])
                          for r in said}, {f: r[0] for f, r in rows.items()})
        for row in said:
            self.assertEqual(row["end"],
                             rows[os.path.basename(row["file"])][-1])
            self.assertEqual(set(row["live_bytes"]), {"value", "lo", "hi"})
        os.rename(self.path("d", "other.sprof"),
                  self.path("d", "caf\u00e9.sprof"))
        for locale in "C", "C.UTF-8":
            table = self.sampleprof("ls", "--csv", "d",
                                    env=self.in_locale(locale)).stdout
            self.assertIn('"d/caf\u00e9.sprof"', table)
        table = list(csv.DictReader(io.StringIO(
            table.replace("caf\u00e9", "other"))))
        self.assertEqual([r["file"] for r in table], [r["file"] for r in said])
        self.assertEqual([int(r["alloc_bytes"]) for r in table],
                         [r["alloc_bytes"] for r in said])
        # The shell, and its child.
        [shell] = [f for f in rows if "program_plain" not in f
                   and f != "other.sprof"]
        self.assertEqual(rows[self.files("d")[-1]][1], rows[shell][0])

    def in_locale(self, name):
        return self.environment(shim=False, env={"LC_ALL": name})

    def test_ls_errors(self):
        self.assertIn("No such file", self.sampleprof(
            "ls", self.path("absent"), code=1).stderr)
        self.sampleprof("ls", "a", "b", code=2)
        for command in "ls", "ps":
            self.sampleprof(command, "--json", "--csv", code=2)
        self.assertEqual(self.sampleprof("ls", "--json", ".").stdout, "[]\n")
        self.sampleprof("preload-path", "x", code=2)

    def test_ps(self):
        """The header stands above its columns, and the name is the present
        one."""
        # pylint: disable=consider-using-with
        process = subprocess.Popen(
            ["/usr/bin/python3", "-c",
             "import sys; open('/proc/self/comm', 'w').write('renamed'); "
             "print(1, flush=True); sys.stdin.read()", "caf\u00e9",
             "x" * 5000], text=True,
            cwd=self.dir, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=self.environment())
        self.addCleanup(process.communicate)
        self.assertEqual(process.stdout.readline(), "1\n")
        lines = self.sampleprof("ps").stdout.splitlines()
        [n] = [n for n, l in enumerate(lines)
               if l.split()[0] == str(process.pid)]
        row = lines[n]
        for word, name in ("name", "renamed"), ("command", "python3 -c"):
            at = lines[0].index(word)
            self.assertEqual(row[at:at + len(name)], name, lines)
        said = json.loads(self.sampleprof("ps", "--json").stdout)
        [one] = [r for r in said if r["pid"] == process.pid]
        self.assertEqual((one["name"], one["command"], one["profile"]),
                         ("renamed", " ".join(process.args),
                          lines[n + 1].strip()))
        for locale in "C", "C.UTF-8":
            table = csv.DictReader(io.StringIO(self.sampleprof(
                "ps", "--csv", env=self.in_locale(locale)).stdout))
            self.assertIn({**one, "pid": str(process.pid)}, table)
        # As in `ls`: a path is never cut, and has a line of its own.
        self.assertTrue(os.path.isfile(lines[n + 1].strip()), lines)
        self.assertTrue(all(len(l) <= 80 for l in lines
                            if "/" not in l), lines)
