# SPDX-License-Identifier: MIT
"""What commands write: the mode of each file, and what root writes into a
directory that others can write to, where they plant links, pipes and files and
exchange them all the time: nothing of another place is written or read."""

import os
import shutil
import stat
import subprocess
import unittest

import harness

NOBODY = 65534


class Modes(harness.Case):
    """Whatever the umask leaves: what has a profile in it is for its owner
    alone, as the profile is; what is made for CI is for whom the umask
    says."""

    def test_modes(self):
        program = harness.target("program_plain")
        profiles = [self.execute(program, n, period="1").profile(
            ).require_samples().path for n in (10, 1000)]
        check = ("check", profiles[1], "--limit=alloc_bytes=+1%",
                 "--baseline", profiles[0])

        def run(*command, code=0):
            self.sampleprof(*command, code=code, umask=0)

        run("symbolize", profiles[0], "-o", "x.sprof")
        run("symbolize", profiles[0], "-o", "x.sprof.zst")
        for form in "html", "pprof", "jsonl":
            run("export", form, profiles[0], "-o", "x." + form)
        run("fleet", "init")
        run("fleet", "add", *profiles)
        run("fleet", "export", "html", "-o", "fleet.html")
        run(*check, "--format=json=x.json", "--format=summary=x.md",
            "--evidence=kept", code=3)
        run("check", profiles[0], "--baseline=base.json",
            "--update-baseline")
        texts = {"x.json", "x.md", "base.json", "check.txt", "check.json"}
        seen = set()
        for where, _, names in os.walk(self.dir):
            for name in names:
                mode = stat.S_IMODE(os.stat(os.path.join(where, name)).st_mode)
                self.assertEqual(mode, 0o666 if name in texts else 0o600, name)
                seen.add(name)
        self.assertEqual(len(seen - texts), 11, seen)
        self.assertEqual(seen & texts, texts)


class Closed(harness.Case):
    """Where a standard descriptor is closed, a file that a command opens does
    not get its number: a message would be among its bytes."""

    def test_closed(self):
        profile = self.execute(harness.target("program_plain"), 1000,
                               period="1").profile().require_samples().path
        self.sampleprof("symbolize", profile, "-o", "open")
        with open(os.path.join(self.dir, "open"), "rb") as f:
            right = f.read()
        for closed in "<&-", ">&-", "2>&-", "<&- >&- 2>&-":
            self.execute("sh", "-c", '"$@" ' + closed, "sh",
                         "strace", "-qq", "-e", "trace=openat,openat2", "-o",
                         "calls",
                         harness.tool(), "symbolize", profile, "-o", "closed",
                         shim=False, clean=False)
            with open(os.path.join(self.dir, "closed"), "rb") as f:
                self.assertEqual(f.read(), right, closed)
            with open(os.path.join(self.dir, "calls"), encoding="utf-8") as f:
                calls = f.read()
            # Before the first lies the loader's work, which ends there.
            own = calls[calls.rindex('"/dev/null"'):].splitlines()[1:]
            self.assertIn(profile, "".join(own))
            for call in own:
                self.assertFalse(call.endswith(("= 0", "= 1", "= 2")), call)


# A program that root starts, as daemons are started.  It copies its profile to
# where only root can write, and goes on as another user.
PREPARE = """
import os, shutil, sys
profile, victim = sys.argv[1:]
for path, copy in (profile, victim), (victim, victim + ".copy"):
    shutil.copyfile(path, copy)
    os.chmod(copy, 0o600)
"""
BECOME = "os.setgroups([]), os.setgid(65534), os.setuid(65534)"

# Exchanges two names for ever; when no link is left, another comes.
EXCHANGE = """
import ctypes, os, sys
name, other, victim = [os.fsencode(word) for word in sys.argv[1:]]
exchange = ctypes.CDLL(None).renameat2
while os.getppid() != 1:
    if not os.path.islink(name) and not os.path.islink(other):
        if os.path.lexists(other):
            os.unlink(other)
        os.symlink(victim, other)
        print("ready", flush=True)
    for _ in range(1000):
        exchange(-100, name, -100, other, 2)
"""

# How another user prepares a name: what stands there, and whether the command
# may take its place.
LINK, DANGLING, PIPE, FILE = "link", "dangling", "pipe", "file"


@unittest.skipUnless(os.geteuid() == 0, "needs root to be another user, too")
class SharedDirectory(harness.Case):
    """What root writes into a directory that everybody can write to."""

    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        self.shared = os.path.join(self.dir, "shared")
        os.mkdir(self.shared)
        self.victim = os.path.join(self.dir, "victim")
        self.elsewhere = os.path.join(self.dir, "elsewhere")
        self.program = os.path.join(self.dir, "program")
        shutil.copy(harness.target("program_plain"), self.program)

    def record(self):
        return self.execute(self.program, 10, period="1").profile(
            ).require_samples().path

    def prepare(self, name, how):
        """Another user was there first; the path."""
        path = os.path.join(self.shared, name)
        if os.path.lexists(path):
            os.unlink(path)
        with open(self.victim, "w", encoding="ascii") as f:
            f.write("precious")
        os.chmod(self.victim, 0o600)
        if how in (LINK, DANGLING):
            os.symlink(self.victim if how == LINK else self.elsewhere, path)
        elif how == PIPE:
            os.mkfifo(path, 0o666)
        else:
            with open(path, "w", encoding="ascii"):
                os.chmod(path, 0o666)
        os.lchown(path, NOBODY, NOBODY)
        return path

    def unharmed(self, said):
        self.assertFalse(os.path.lexists(self.elsewhere), said)
        with open(self.victim, encoding="ascii") as f:
            self.assertEqual(f.read(), "precious", said)

    def refused(self, name, how, why, *command):
        path = self.prepare(name, how)
        before = os.lstat(path)
        said = self.sampleprof(*[w.replace("OUT", path) for w in command],
                               code=1).stderr
        self.assertIn(why, said)
        self.assertIn(path, said)
        after = os.lstat(path)
        self.assertEqual((before.st_ino, before.st_size),
                         (after.st_ino, after.st_size))
        self.unharmed(said)

    def test_outputs(self):
        """A link and a pipe of another user are refused, a file is replaced
        by one of ours, and none of it waits."""
        profile, old = self.record(), self.record()
        limit = ("--limit=alloc_bytes=+1%", "--baseline", old)
        commands = (
            ("x.html", ("export", "html", profile, "-o", "OUT"), 0o600),
            ("x.sprof", ("symbolize", profile, "-o", "OUT"), 0o600),
            ("x.zst", ("symbolize", profile, "-o", "OUT"), 0o600),
            ("x.json", ("check", profile, *limit, "--format=json=OUT"), 0o644))
        for mode in (0o777, 0o1777):
            os.chmod(self.shared, mode)
            for name, command, want in commands:
                for how in (LINK, DANGLING):
                    self.refused(name, how, "symbolic link of another user",
                                 *command)
                self.refused(name, PIPE, "is a pipe of another user", *command)
                path = self.prepare(name, FILE)
                self.sampleprof(*command[:-1],
                                command[-1].replace("OUT", path), umask=0o022)
                st = os.lstat(path)
                self.assertEqual((st.st_uid, stat.S_IMODE(st.st_mode)),
                                 (0, want), path)
                self.unharmed(path)

    def test_summary_that_is_appended_to(self):
        os.chmod(self.shared, 0o1777)
        command = ("check", self.record(), "--limit=alloc_bytes=+1%",
                   "--baseline", self.record(), "--format=summary=OUT")
        for how, why in ((LINK, "symbolic link of another user"),
                         (DANGLING, "symbolic link of another user"),
                         (PIPE, "is a pipe of another user"),
                         (FILE, "belongs to another user")):
            self.refused("summary", how, why, *command)

    def test_database(self):
        profile = self.record()
        os.chmod(self.shared, 0o1777)
        init = ("fleet", "init", "--db", "sqlite:OUT")
        for how, why in ((LINK, "symbolic link of another user"),
                         (DANGLING, "symbolic link of another user"),
                         (PIPE, "is a pipe of another user"),
                         (FILE, "belongs to another user")):
            self.refused("fleet.db", how, why, *init)
        path = os.path.join(self.shared, "fleet.db")
        os.unlink(path)
        self.sampleprof(*init[:-1], "sqlite:" + path, umask=0)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        # What lies beside it is written to as well.
        add = ("fleet", "add", "--db", "sqlite:" + path, profile)
        for how, why in ((PIPE, "fleet.db-journal is not a regular file"),
                         (FILE, "fleet.db-journal belongs to another user")):
            self.prepare("fleet.db-journal", how)
            self.assertIn(why, self.sampleprof(*add, code=1).stderr)
        # As it undid what was begun, SQLite has removed that.
        self.assertIn("1 added", self.sampleprof(*add).stdout)

    # ---- the profiles of a run ----

    def run_prepared(self, script, *options, code=0):
        """What `run` of such a program says."""
        os.chmod(self.shared, 0o777)
        self.profile = os.path.join(self.shared, "x.sprof")
        return self.sampleprof(
            "run", *options, "--follow=none", "--period=32K", "--out",
            self.profile, "--", "/usr/bin/python3", "-c", PREPARE + script,
            self.profile, self.victim, code=code,
            env=self.environment(shim=False, env={
                "SAMPLEPROF_MAX_FILE": "1M"})).stderr

    def test_profile_that_became_a_link(self):
        """Its program has put a link to a profile of root in its place: that
        is not the one that gets names, and the program's other profile
        does."""
        said = self.run_prepared(BECOME + """
os.rename(profile, profile[:-6] + ".1.sprof")
os.symlink(victim, profile)
""")
        with open(self.victim, "rb") as f:
            data = f.read()
        with open(self.victim + ".copy", "rb") as f:
            self.assertEqual(f.read(), data)
        self.assertIn("is a symbolic link of another user (uid 65534)", said)
        self.assertIn("names were not added to " + self.profile, said)
        self.assertTrue(os.path.islink(self.profile))
        self.assertNotIn("added to " + self.profile[:-6] + ".1", said)

    def test_profile_with_a_second_name(self):
        """How the program ended is not told to a file that has another
        name."""
        said = self.run_prepared("os.link(victim, profile + '.x')\n" + BECOME +
                                 """
os.rename(profile + ".x", profile)
os.kill(os.getpid(), 9)
""", "--no-symbols", code=-9)
        with open(self.victim, "rb") as f:
            data = f.read()
        with open(self.victim + ".copy", "rb") as f:
            self.assertEqual(f.read(), data)
        self.assertIn("the end of the process was not added: "
                      "the profile is now another file", said)

    @harness.nightly
    def test_names_that_are_exchanged_all_the_time(self):
        """A link and a file, while root reads and writes by that name: what
        the link leads to stays as it is, a profile as well as any file."""
        os.chmod(self.shared, 0o777)
        profile = self.record()
        for victim in ("text", "profile"):
            path = os.path.join(self.shared, victim + ".sprof")
            shutil.copy(profile, path)
            os.chown(path, NOBODY, NOBODY)
            with open(profile, "rb") as f:
                data = b"precious" if victim == "text" else f.read()
            with open(self.victim, "wb") as f:
                f.write(data)
            with subprocess.Popen(
                    ["/usr/bin/python3", "-c", EXCHANGE, path, path + "2",
                     self.victim], user=NOBODY, group=NOBODY, extra_groups=(),
                    stdout=subprocess.PIPE) as process:
                process.stdout.readline()
                for command in (("symbolize", path, "-o", path),
                                ("symbolize", profile, "-o", path),
                                ("export", "html", profile, "-o", path),
                                ("fleet", "init", "--db", "sqlite:" + path)):
                    for _ in range(100):
                        self.sampleprof(*command, code=None)
                process.kill()
            with open(self.victim, "rb") as f:
                self.assertTrue(f.read() == data, victim)
            self.assertEqual(os.stat(self.victim).st_uid, 0)

    def test_database_of_another_in_his_directory(self):
        """That one was asked for."""
        profile = self.record()
        path = os.path.join(self.shared, "fleet.db")
        os.chown(self.shared, NOBODY, NOBODY)
        self.sampleprof("fleet", "init", "--db", "sqlite:" + path)
        os.chown(path, NOBODY, NOBODY)
        self.assertIn("1 added", self.sampleprof(
            "fleet", "add", "--db", "sqlite:" + path, profile).stdout)


@unittest.skipUnless(os.geteuid() == 0, "needs root to be another user, too")
class Named(harness.Case):
    """Root gives names to the profile of another user, from what that user can
    read, in a process that has that user's rights."""

    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        self.place = os.path.join(self.dir, "place")
        os.mkdir(self.place)
        os.chmod(self.place, 0o1777)
        self.copy = os.path.join(self.dir, "copy.sprof")
        self.program = os.path.join(self.dir, "program")
        shutil.copy(harness.target("program_plain"), self.program)

    def become(self, *argv):
        return ["setpriv", "--reuid", NOBODY, "--regid", NOBODY,
                "--clear-groups", *argv]

    def record(self, *options):
        """The profile of a program that its user can run, and not read."""
        os.chmod(self.program, 0o711)
        path = os.path.join(self.place, "x.sprof")
        self.sampleprof("run", "--quiet", "--period=1", "--follow", "program",
                        "--out", path, *options, *self.become(self.program, 50))
        self.assertEqual(os.stat(path).st_uid, NOBODY)
        return path

    def is_named(self, path):
        with open(path, "rb") as f:
            return b"allocate" in f.read(1 << 20)

    def symbolize(self, *words, code=0, prefix=(), env=None):
        done = subprocess.run(
            [str(word) for word in (
                *prefix, os.environ["SAMPLEPROF_REPORT"], "symbolize", *words)],
            cwd=self.dir, capture_output=True, check=False, text=True,
            timeout=harness.TIMEOUT_S,
            env=self.environment(shim=False, env=env))
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_run(self):
        """The file stays the user's, also where only root can put files."""
        for mode in (0o711, 0o755):
            path = self.record("--no-symbols")
            os.chmod(self.program, mode)
            for place in (0o1777, 0o755):
                os.chmod(self.place, place)
                self.symbolize(path, "-o", path)
                st = os.stat(path)
                self.assertEqual((st.st_uid, stat.S_IMODE(st.st_mode)),
                                 (NOBODY, 0o600))
                self.assertEqual(self.is_named(path), mode == 0o755)
            os.chmod(self.place, 0o1777)
            os.unlink(path)
        self.assertFalse(self.is_named(self.record()))

    def test_no_time(self):
        """Nothing is written, and nothing left."""
        path = self.record("--no-symbols")
        before = os.stat(path)
        for out in (path, self.copy):
            self.assertIn("took too long", self.symbolize(
                path, "-o", out, "--timeout", "0s", code=1))
        self.assertEqual((os.listdir(self.place), os.path.exists(self.copy)),
                         (["x.sprof"], False))
        self.assertEqual(os.stat(path).st_ino, before.st_ino)
        self.symbolize(path, "-o", self.copy, "--timeout", "4h")

    def test_whose_rights(self):
        path = self.record("--no-symbols")
        said = self.symbolize(path, "-o", self.copy)
        self.assertFalse(self.is_named(self.copy))
        self.assertIn(f"(uid {NOBODY}), whose rights are taken, cannot read "
                      f"{self.program}: `symbolize --user 0` keeps", said)
        for user, is_named in (("0", True), (NOBODY, False), (4711, False)):
            self.symbolize(path, "-o", self.copy, "--user", user)
            self.assertEqual(self.is_named(self.copy), is_named, user)
        os.chown(self.program, 4711, 4711)
        for mode in (0o700, 0o077):
            os.chmod(self.program, mode)
            self.symbolize(path, "-o", self.copy, "--user", 4711)
            self.assertEqual(self.is_named(self.copy), mode == 0o700)
        self.assertIn("only root can", self.symbolize(
            path, "-o", "/dev/null", "--user", "0", code=1,
            prefix=self.become()))

    def test_what_only_root_reaches(self):
        """Is said, of options as well."""
        path = self.record("--no-symbols")
        os.chmod(self.program, 0o755)
        closed = os.path.join(self.dir, "closed")
        os.mkdir(closed, 0o700)
        shutil.copy(self.program, os.path.join(closed, "it"))
        for name, value, unread in (
                ("--module", f"{self.program}={closed}/it", "it"),
                ("--debug-path", f"/usr/lib/debug:{closed}/roots", "roots")):
            options = name, value
            said = self.symbolize(path, "-o", self.copy, *options)
            self.assertIn(f"cannot read {closed}/{unread}: ", said)
            self.assertTrue(self.is_named(self.copy))
            self.assertEqual(self.symbolize(
                path, "-o", self.copy, "--user", "0", *options), "")

    def test_crash(self):
        """Of the process that reads ELF files: the profile stays."""
        path = self.record("--no-symbols")
        os.chmod(self.program, 0o755)
        with open(path, "rb") as f:
            before = f.read()
        for number, name in ("SIGBUS", "Bus error"), ("SIGSEGV", "Segmentation"):
            said = self.symbolize(path, "-o", path, code=1, prefix=(
                harness.require("strace", "strace"), "-fqq", "-o", "/dev/null",
                "-P", self.program, "-e",
                f"inject=openat,openat2:signal={number}:when=1"))
            self.assertIn(f"{path}: nothing was written: ", said)
            self.assertIn(name, said)
            with open(path, "rb") as f:
                self.assertTrue(f.read() == before)
            self.assertEqual(os.listdir(self.place), ["x.sprof"])
        # There is no room for what it writes.
        said = self.symbolize(path, "-o", path, code=1,
                              prefix=("prlimit", "--fsize=70000"))
        self.assertIn("File size limit", said)
        with open(path, "rb") as f:
            self.assertTrue(f.read() == before)

    def test_what_a_misled_child_says(self):
        """Has an end, although it gives none."""
        said = self.symbolize(
            self.record("--no-symbols"), "-o", self.copy,
            env={"LD_PRELOAD": os.path.join(os.environ["SAMPLEPROF_TARGETS"],
                                            "libprogram_misled.so")})
        self.assertEqual("".join(said.split()),
                         "sampleprof-report:" + 575 * "A")

    def test_file_system_without_root(self):
        """As one of another machine that takes root for nobody."""
        path = self.record("--no-symbols")
        os.chmod(self.program, 0o755)
        os.chown(self.place, NOBODY, NOBODY)
        powerless = ("setpriv", "--bounding-set=-dac_override,-dac_read_search",
                     "--inh-caps=-all")
        for mode, user in (0o755, ()), (0o700, ("--user", NOBODY)):
            os.chmod(self.place, mode)
            self.symbolize(path, "-o", path, *user, prefix=powerless)
            self.assertEqual(os.stat(path).st_uid, NOBODY)
            self.assertTrue(self.is_named(path))
        self.assertIn("--user says who may", self.symbolize(
            path, "-o", path, code=1, prefix=powerless))

    def test_process_that_its_user_cannot_look_at(self):
        """Only root sees that it still writes the file."""
        path = os.path.join(self.place, "x.sprof")
        process = self.start(
            self.become("/usr/bin/python3", "-c", "import ctypes\n"
                        "ctypes.CDLL(None).prctl(4, 0)\n"
                        "print('ready', flush=True)\ninput()"),
            stdin=subprocess.PIPE, settings={"period": "32K"},
            env={"SAMPLEPROF_OUT": path, "SAMPLEPROF_FOLLOW":
                 os.path.basename(os.path.realpath("/usr/bin/python3"))})
        self.addCleanup(process.communicate)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.assertIn("still runs", self.symbolize(path, "-o", path, code=1))

    def test_path_that_only_root_can_walk(self):
        path = self.record("--no-symbols")
        os.chmod(self.program, 0o755)
        closed = os.path.join(self.dir, "closed")
        os.mkdir(closed, 0o700)
        moved = os.path.join(closed, "x.sprof")
        os.rename(path, moved)
        self.symbolize(moved, "-o", moved)
        self.assertEqual(os.stat(moved).st_uid, NOBODY)
        self.assertTrue(self.is_named(moved))

    def test_odd_surroundings(self):
        """Without /proc; where SIGCHLD is ignored and SIGALRM is blocked."""
        path = self.record("--no-symbols")
        os.chmod(self.program, 0o755)
        for prefix in (("unshare", "-m", "sh", "-c",
                        'mount -t tmpfs none /proc && exec "$@"', "-"),
                       ("env", "--ignore-signal=CHLD", "--block-signal=ALRM")):
            if subprocess.run([*prefix, "true"], check=False,
                              stderr=subprocess.DEVNULL).returncode:
                self.skipTest(f"cannot run {prefix}")
            self.symbolize(path, "-o", self.copy, prefix=prefix)
            self.assertTrue(self.is_named(self.copy))
            os.unlink(self.copy)
