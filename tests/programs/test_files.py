# SPDX-License-Identifier: MIT
"""The profile file: names, modes, links, pipes, full disks, limits; good and
bad settings.
"""

import json
import os
import re
import resource
import shutil
import stat
import subprocess
import time
import unittest

import harness

CONFIG_DEF = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), "src", "agent", "process",
    "config.def")

NOBODY = 65534


class Files(harness.Case):

    def setUp(self):
        super().setUp()
        self.plain = harness.target("program_plain")

    def profiled(self, *arguments, out, popen=None, **settings):
        """Run the target with that SAMPLEPROF_OUT; it does what it always
        does.  The files beside the profile are the caller's business."""
        process = self.start([self.plain, *(arguments or (50,))],
                             env={"SAMPLEPROF_OUT": out},
                             settings={"period": "1", **settings},
                             **(popen or {}))
        result = self.finish(process)
        self.assertEqual(result.stdout, b"hello\n")
        return result

    def good(self, path, objects=50):
        """A complete profile of the target."""
        profile = harness.Profile(path).require_samples(objects)
        self.assertEqual(profile.allocated_under("allocate"),
                         (objects * 1000, objects))
        self.assertEqual(profile.end, "clean")
        return profile

    # ---- names ----

    def test_name_patterns(self):
        path = os.path.join(self.dir, "%e-%p-%t-%h-%n-%%-%x-100%.sprof")
        result = self.profiled(out=path)
        names = [n for n in os.listdir(self.dir) if n != "profiles"]
        self.assertEqual(len(names), 1, names)
        name = re.fullmatch(
            r"program_plain-(\d+)-(\d+)-(.+)-0-%-%x-100%\.sprof", names[0])
        self.assertTrue(name, names[0])
        self.assertEqual(int(name[1]), result.pid)
        profile = self.good(os.path.join(self.dir, names[0]))
        self.assertEqual(int(name[2]),
                         profile.json["start_unix_ns"] // 10**9)
        self.assertEqual(name[3], os.uname().nodename)

    def test_sequence_number_in_pattern(self):
        path = os.path.join(self.dir, "run-%n.sprof")
        for _ in range(3):
            self.profiled(out=path)
        for n in range(3):
            self.good(os.path.join(self.dir, f"run-{n}.sprof"))

    def test_directory(self):
        for out in (self.out, self.out + "/"):
            result = self.profiled(out=out)
            self.good(os.path.join(self.out, f"program_plain.{result.pid}.sprof"))

    def test_relative_to_where_the_program_started(self):
        result = self.profiled(out="profiles/%e.sprof")
        self.good(os.path.join(self.out, "program_plain.sprof"))
        percent = os.path.join(self.dir, "100%p")
        os.mkdir(percent)
        result = self.profiled(out="a.sprof", popen={"cwd": percent})
        self.assertEqual(result.stderr, b"")
        self.good(os.path.join(percent, "a.sprof"))

    def test_default_name(self):
        environment = self.environment(period=1)
        del environment["SAMPLEPROF_OUT"]
        with subprocess.Popen([self.plain, "50"], cwd=self.out,
                              env=environment,
                              stdout=subprocess.DEVNULL) as process:
            process.wait(harness.TIMEOUT_S)
        self.good(os.path.join(self.out, f"program_plain.{process.pid}.sprof"))

    # ---- nothing that exists is touched ----

    def test_existing_file_is_kept(self):
        path = os.path.join(self.dir, "a.sprof")
        with open(path, "w", encoding="ascii") as f:
            f.write("precious")
        for n in (1, 2):
            self.profiled(out=path)
            self.good(os.path.join(self.dir, f"a.{n}.sprof"))
        with open(path, encoding="ascii") as f:
            self.assertEqual(f.read(), "precious")

    def test_link_is_not_followed(self):
        victim = os.path.join(self.dir, "victim")
        with open(victim, "w", encoding="ascii") as f:
            f.write("precious")
        for name, to in (("a", victim), ("b", self.dir + "/dangling")):
            os.symlink(to, os.path.join(self.dir, name + ".sprof"))
            self.profiled(out=os.path.join(self.dir, name + ".sprof"))
            self.good(os.path.join(self.dir, name + ".1.sprof"))
        with open(victim, encoding="ascii") as f:
            self.assertEqual(f.read(), "precious")
        self.assertFalse(os.path.exists(self.dir + "/dangling"))

    def test_pipe_does_not_block(self):
        path = os.path.join(self.dir, "a.sprof")
        os.mkfifo(path)
        self.profiled(out=path)
        self.good(os.path.join(self.dir, "a.1.sprof"))
        self.assertTrue(stat.S_ISFIFO(os.stat(path).st_mode))

    def test_mode(self):
        path = os.path.join(self.dir, "a.sprof")
        self.profiled(out=path, popen={"umask": 0})
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.good(path)

    # ---- no file to be had ----

    def unprofiled(self, out, **options):
        """The program runs as ever, one line says why there is no profile,
        and in quiet mode none."""
        result = self.profiled(50, 7, out=out, **options)
        self.assertEqual(result.returncode, 7)
        lines = result.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith("sampleprof: "), lines[0])
        self.assertIn(out.split("%")[0], lines[0])
        self.assertIn("unprofiled", lines[0])
        result = self.profiled(50, 7, out=out, log="quiet", **options)
        self.assertEqual((result.returncode, result.stderr), (7, b""))

    def test_no_such_directory(self):
        self.unprofiled(os.path.join(self.dir, "none", "a.sprof"))
        self.unprofiled(self.plain + "/a.sprof")
        self.unprofiled("/proc/a.sprof")
        self.unprofiled(os.path.join(self.dir, "a" * 300))

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become another")
    def test_unwritable_directory(self):
        # Somewhere that everybody may read and run.
        for path in (os.environ["SAMPLEPROF_SO"], self.plain):
            shutil.copy(path, self.dir)
            os.chmod(os.path.join(self.dir, os.path.basename(path)), 0o755)
        os.chmod(self.dir, 0o755)
        os.chmod(self.out, 0o555)
        self.plain = os.path.join(self.dir, "program_plain")
        copied = os.path.join(self.dir, "libsampleprof.so")
        # pylint: disable-next=consider-using-with
        process = subprocess.Popen(
            [self.plain, "50", "7"], user=NOBODY, group=NOBODY,
            extra_groups=(), cwd="/", stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"LD_PRELOAD": copied, "SAMPLEPROF_OUT": self.out})
        stdout, stderr = process.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual((process.returncode, stdout), (7, b"hello\n"))
        self.assertRegex(stderr.decode(),
                         r"\Asampleprof: cannot create .*unprofiled: .*\n\Z")
        self.assertEqual(os.listdir(self.out), [])

    # ---- files that are too small ----

    def check_full(self, profile, objects):
        """What did not fit is counted, and exact totals are still exact."""
        self.assertGreater(profile.samples, 100)
        self.assertLess(profile.samples, objects)
        losses = profile.json["losses"]
        self.assertGreater(losses["samples_file_full"], 0)
        self.assertEqual(profile.samples + losses["samples_file_full"],
                         profile.exact[1])
        self.assertGreaterEqual(profile.exact[1], objects)
        self.assertEqual(profile.end, "clean")

    def check_bounded(self, profile, objects):
        """The last part of the run is there, nothing of it is lost, and the
        report says which part."""
        self.assertEqual((profile.end, profile.lost()), ("clean", {}))
        self.assertGreaterEqual(profile.exact[1], objects)
        discarded = profile.json["discarded_objects"]
        kept = profile.exact[1] - discarded
        self.assertGreater(discarded, objects // 2)
        self.assertGreater(kept, 1000)
        self.assertEqual(profile.json["estimate"]["alloc_bytes"]["value"],
                         profile.exact[0] - profile.json["discarded_bytes"])
        # Survivors of what was discarded: none but the last object.
        self.assertIn(profile.samples - kept, (0, 1))
        self.assertGreater(profile.json["window_from_ns"], 0)
        # Live bytes may have been higher before.
        peak = profile.json["estimate"]["peak_bytes"]
        self.assertEqual((peak["at_least"], peak["hi"]), (True, None))
        self.assertGreaterEqual(peak["time_ns"],
                                profile.json["window_from_ns"])
        stretches = profile.json["stretches"]
        self.assertEqual([s["to_ns"] for s in stretches],
                         [profile.json["window_from_ns"], None])
        self.assertEqual([s["alloc_objects"] for s in stretches],
                         [discarded, kept])

    @harness.nightly_too
    def test_limit_of_file(self):
        """After some hundred turns of its ring, or a third of them."""
        objects = harness.rounds(300000, 1000000)
        path = os.path.join(self.dir, "a.sprof")
        self.profiled(objects, out=path, max_file="1M")
        self.assertLessEqual(os.stat(path).st_size, 1 << 20)
        self.check_bounded(harness.Profile(path), objects)
        self.assertRegex(harness.report(path),
                         r"\n  discarded .* allocated before ")
        # So may those of both, with a process of which all is known.
        other = os.path.join(self.dir, "b.sprof")
        self.profiled(1000, out=other)
        for both in ((path, other), (other, path)):
            peak = json.loads(harness.report("--json", *both))["estimate"][
                "peak_bytes"]
            self.assertEqual((peak["at_least"], peak["hi"]), (True, None))
            self.assertRegex(harness.report(*both), r"\n  peak +at least ")

    @harness.nightly
    def test_reading_while_it_turns(self):
        """A report on a process that discards samples meanwhile is whole, or
        says that it could not be made."""
        path = os.path.join(self.dir, "a.sprof")
        process = self.start([harness.target("program_kill_storm"), 4],
                             settings={"out": path, "max_file": "2M",
                                       "period": "16K"})
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        discarded, refused = [], 0
        deadline = time.monotonic() + harness.TIMEOUT_S
        while len(discarded) < 5:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
            done = harness.run_report("--json", path)
            if done.returncode:
                self.assertIn(b"discarded while it was read", done.stderr)
                refused += 1
                continue
            found = json.loads(done.stdout)
            self.assertEqual((found["end"], found["damage"]["text"],
                              found["unmatched_frees"]), ("running", "", 0))
            # Half a thousand places, each with an object of some hundred
            # bytes: a few samples are alive, if it has all of them.
            self.assertLess(found["estimate"]["live_bytes"]["lo"], 2e6)
            self.assertGreater(found["estimate"]["live_bytes"]["hi"], 2e5)
            if found["discarded_bytes"]:
                discarded.append(found["discarded_bytes"])
        self.assertEqual(discarded, sorted(discarded))
        process.kill()
        self.finish(process)
        print(f"{refused} times refused", flush=True)

    def test_limit_of_process(self):
        """RLIMIT_FSIZE would end the program with SIGXFSZ."""
        objects, limit = 100000, 512 << 10
        path = os.path.join(self.dir, "a.sprof")
        result = self.profiled(objects, out=path, popen={
            "preexec_fn": lambda: resource.setrlimit(
                resource.RLIMIT_FSIZE, (limit, limit))})
        self.assertEqual(result.returncode, 0)
        self.assertLessEqual(os.stat(path).st_size, limit)
        self.check_bounded(harness.Profile(path), objects)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount")
    def test_full_disk(self):
        """A sparse mapping of a full file system would end in SIGBUS."""
        objects = 100000
        disk = os.path.join(self.dir, "disk")
        copy = os.path.join(self.dir, "a.sprof")
        os.mkdir(disk)
        self.fill_disk("400k", disk, copy, objects)
        self.check_full(harness.Profile(copy), objects)


class Settings(harness.Case):

    def hello(self, *arguments, **settings):
        result = self.execute(harness.target("program_plain"), *arguments,
                              **settings)
        self.assertEqual(result.stdout, b"hello\n")
        return result

    def knobs(self):
        with open(CONFIG_DEF, encoding="utf-8") as f:
            names = re.findall(r"^SP_KNOB_\w+\((\w+),", f.read(), re.M)
        self.assertGreater(len(names), 3)
        return names

    def test_bad_values(self):
        """Unprofiled, and the message names variable, value and range."""
        bad = {"PERIOD": (["0", "-1", "1X", "2T", "1.5K", " 1", "0x10"],
                          "a size from 1 to 1T"),
               "SEED": (["x", "-1", "18446744073709551616"],
                        "from 0 to 18446744073709551615"),
               "DEPTH": (["0", "1001", "many"], "frames from 1 to 1000"),
               "MAX_FILE": (["1K", "65G"], "a size from 1M to 64G"),
               "NEAR_LIMIT": (["101", "-1", "90%"], "percent from 0 to 100"),
               "LOG": (["loud", "norma"], "one of normal|quiet"),
               "LAW": (["net", "Exponential"], "one of exponential|dotnet"),
               "FREES": (["no", "1"], "one of on|off"),
               "COMMAND": (["no"], "one of on|off"),
               "RSS": (["yes", "ON"], "one of on|off"),
               "LEDGER": (["yes"], "one of off|end|peak"),
               "FOLLOW": (["x" * 256], "text of 1 to 255 bytes"),
               "RUN": (["x" * 33], "text of 1 to 32 bytes"),
               "START": (["yes"], "one of on|off"),
               "SIGNAL": (["usr1", "9"], "one of none|USR1|USR2"),
               "UNWIND": (["dwarf", "FP"], "one of tables|fp"),
               "RATE": (["500", "0/s", "1000001/s"],
                        "off, or a rate from 1/s to 1000000/s"),
               "FRACTION": (["5", "0%", "101%", "0.00001%"],
                            "a share of more than 0%, up to 100%"),
               "HELP": (["yes"], "one of 0|1"),
               "OUT": (["x" * 1025], "text of 1 to 1024 bytes")}
        # Labels change nothing of a recording: test_run.py.
        self.assertEqual(set(bad) | {"LABELS"}, set(self.knobs()))
        for knob, (values, expected) in bad.items():
            for value in values:
                with self.subTest(knob=knob, value=value):
                    result = self.execute(
                        harness.target("program_plain"), 9, 3, clean=False,
                        env={"SAMPLEPROF_" + knob: value})
                    self.assertEqual(result.returncode, 3)
                    self.assertEqual(result.stdout, b"hello\n")
                    self.assertEqual(result.paths, [])
                    text = result.stderr.decode()
                    self.assertEqual(text.count("\n"), 1, text)
                    self.assertIn(f"SAMPLEPROF_{knob}={value[:300]}", text)
                    if len(value) < 300:
                        self.assertIn(expected, text)
                        self.assertIn("unprofiled", text)

    def test_good_values(self):
        for settings in ({"period": "1"}, {"period": "4k"},
                         {"period": "1T"}, {"depth": "1"}, {"depth": "1000"},
                         {"max_file": "1M"}, {"max_file": "4G"},
                         {"rate": "1/s"}, {"rate": "1000000/s"},
                         {"seed": "18446744073709551615"}):
            with self.subTest(settings=settings):
                result = self.hello(100, **settings)
                self.assertEqual(result.stderr, b"")
                profile = result.profile()
                self.assertGreaterEqual(profile.exact[1], 100)
                for name in settings:
                    self.assertIn("setting." + name, profile.settings)

    def test_empty_values(self):
        """The default, without a word."""
        # 0 is what it is without one, and the harness gives one.
        defaults = self.hello(100, seed=0).profile().settings
        for knob in self.knobs():
            # The harness needs a place for the file.
            if knob == "OUT":
                continue
            with self.subTest(knob=knob):
                result = self.hello(100, **{knob.lower(): ""})
                self.assertEqual(result.stderr, b"")
                profile = result.profile()
                self.assertGreaterEqual(profile.exact[1], 100)
                name = "setting." + knob.lower()
                self.assertEqual(profile.settings.get(name),
                                 defaults.get(name))

    def test_help_lists_every_setting(self):
        result = self.hello(help=1)
        lines = result.stderr.decode()
        for name in self.knobs():
            self.assertRegex(lines, rf"(?m)^sampleprof: +SAMPLEPROF_{name}=")
        result.profile()

    def test_unknown_setting(self):
        result = self.hello(preiod="1")
        self.assertRegex(
            result.stderr.decode(),
            r"\Asampleprof: unknown setting SAMPLEPROF_PREIOD=1 .*\n\Z")
        result.profile()
        self.assertEqual(self.hello(preiod="1", log="quiet").stderr, b"")
        # It is for the tools, and nobody is to see it.
        self.assertEqual(self.hello(db_password="secret").stderr, b"")

    def test_says_nothing_if_all_is_well(self):
        result = self.hello(100)
        self.assertEqual(result.stderr, b"")
        self.assertGreaterEqual(result.profile().exact[1], 100)
