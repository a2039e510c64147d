# SPDX-License-Identifier: MIT
"""A process that the kernel kills at the memory limit of a control group,
growing slowly and fast.  Its profile names the limit, how near it was, and the
function that grew; `run` says who sent the signal.  Changes of the limit, the
shorter period near it, profiles on tmpfs.  How processes ended that `run`
waited for; `--last`.

With SAMPLEPROF_TEST_GROUPS=20, 20 processes are killed at 10 MiB/s and 20 at 1
GiB/s, in some two minutes."""

import concurrent.futures
import os
import signal
import subprocess
import unittest

import harness

MIB = 1 << 20
LIMIT = 96 * MIB
KILLS = int(os.environ.get("SAMPLEPROF_TEST_GROUPS", "0"))


def own_group():
    """The directory of the control group that limits the memory of this
    process, and the name of the file with its limit; None: there is none."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            root = "/sys/fs/cgroup/memory"
            at = root + path.rstrip("/")
            return (at if os.path.isdir(at) else root,
                    "memory.limit_in_bytes")
    return None


class Group:
    """A control group with a limit of memory, as a context."""

    def __init__(self, test, limit, name=""):
        found = own_group()
        if not found:
            test.skipTest("no control group of the first version limits "
                          "memory here")
        parent, self.file = found
        self.path = os.path.join(parent, f"sampleprof-{os.getpid()}{name}")
        try:
            os.mkdir(self.path)
        except OSError as error:
            test.skipTest(f"no control group can be made: {error}")
        test.addCleanup(harness.remove_group, self.path)
        self.set_limit(limit)

    def set_limit(self, limit):
        with open(os.path.join(self.path, self.file), "w",
                  encoding="ascii") as file:
            file.write(str(limit))

    def join(self):
        """In a child, before it executes."""
        with open(os.path.join(self.path, "cgroup.procs"), "w",
                  encoding="ascii") as file:
            file.write("0")


def sampleprof(*argv):
    return subprocess.run([harness.tool(), *argv],
                          capture_output=True, check=True,
                          timeout=harness.TIMEOUT_S).stdout.decode()


def samples_of(path):
    lines = sampleprof("export", "jsonl", path, "-o", "-").splitlines()
    return [sample for sample in map(harness.json.loads, lines)
            if sample["type"] == "sample"]


class AtTheLimit(harness.Case):

    def grow(self, rate, mib, group=None, **settings):
        popen = {"preexec_fn": group.join} if group else {}
        return self.execute(harness.target("program_grow"), rate, mib,
                            clean=False, popen=popen, **settings)

    def check_killed(self, rate):
        group = Group(self, LIMIT)
        result = self.grow(rate, 1000, group, period="64K")
        self.assertEqual(result.returncode, -signal.SIGKILL)
        profile = result.profile().require_samples(500)
        self.assertEqual(profile.end, "killed")
        self.assertEqual(profile.json["memory_limit_bytes"], LIMIT)
        self.assertTrue(profile.json["is_killed_for_memory"])
        self.assertGreater(profile.json["rss"][-1]["rss_bytes"], LIMIT * 0.9)
        rows = harness.json.loads(sampleprof(
            "report", "--view", "live", "--json", profile.path))["functions"]
        self.assertEqual(rows[0]["name"], "fill_cache")
        # What is resident beside the cache is less than 12 MiB; a limit of 95 %
        # is off by 15 MiB here with a chance of 1e-8.
        live = profile.json["estimate"]["live_bytes"]
        self.assertGreater(live["value"], LIMIT - 27 * MIB)
        self.assertLess(live["value"], LIMIT + 15 * MIB)
        text = sampleprof("report", profile.path)
        self.assertIn("limit     96.0 MiB of memory in its control group",
                      text)
        self.assertIn("probably killed for memory", " ".join(text.split()))
        self.assertRegex(" ".join(text.split()),
                         r"growth [^a-z]*MiB.* allocated in the last "
                         r"[0-9.]+ m?s, most by fill_cache ")
        return profile

    def test_slowly(self):
        profile = self.check_killed(40)
        [snapshot] = profile.json["snapshots"]
        self.assertEqual(snapshot["name"], "near-limit")
        # From there on the period is 8K: the byte that is sampled next may have
        # been drawn before.
        samples = samples_of(profile.path)
        after = sorted((sample["born_ns"], sample["period_bytes"])
                       for sample in samples
                       if sample["born_ns"] > snapshot["time_ns"])
        self.assertGreater(len(after), 100)
        self.assertEqual({period for _, period in after[2:]}, {8192})
        self.assertEqual({sample["period_bytes"] for sample in samples
                          if sample["born_ns"] < snapshot["time_ns"] - 10**7},
                         {65536})

    def test_fast(self):
        """Where the whole limit is filled between two readings of RSS, only
        `run` knows: Ends.test_memory."""
        self.check_killed(200)

    def test_no_limit_below(self):
        """A process that stays below the limit is not near it."""
        profile = self.grow(1000, 20, Group(self, 2 * LIMIT)).profile()
        self.assertEqual(profile.json["memory_limit_bytes"], 2 * LIMIT)
        self.assertFalse(profile.json["is_killed_for_memory"])
        self.assertEqual(profile.json["snapshots"], [])

    def test_near_limit_off(self):
        result = self.grow(200, 1000, Group(self, LIMIT), near_limit=0)
        self.assertEqual(result.returncode, -signal.SIGKILL)
        profile = result.profile()
        self.assertEqual(profile.json["snapshots"], [])
        self.assertTrue(profile.json["is_killed_for_memory"])

    def test_another_limit(self):
        """Who raises the limit while the process runs is believed."""
        group = Group(self, LIMIT)
        process = self.start(
            [harness.target("program_grow"), 1000, 40, "wait"],
            preexec_fn=group.join, stdin=subprocess.PIPE)
        line = process.stdout.readline()
        self.assertTrue(line.startswith(b"cache "), line)
        group.set_limit(3 * LIMIT)
        result = self.finish(process, b"x")
        self.assertEqual(result.returncode, 0)
        # It allocates nothing since: it may look once more at its end.
        self.assertIn(result.profile().json["memory_limit_bytes"],
                      (LIMIT, 3 * LIMIT))
        # Near the limit of 192 MiB it looks at that again each 100 ms; the last
        # 30 MiB take 0.7 s at least.
        group.set_limit(2 * LIMIT)
        process = self.start(
            [harness.target("program_grow"), 40, 100, "wait", 85],
            preexec_fn=group.join, stdin=subprocess.PIPE)
        line = process.stdout.readline()
        self.assertTrue(line.startswith(b"cache "), line)
        path, = {os.path.join(self.out, name)
                 for name in os.listdir(self.out)} - set(result.paths)
        self.assertEqual(harness.Profile(path).json["memory_limit_bytes"],
                         2 * LIMIT)
        group.set_limit(3 * LIMIT)
        result = self.finish(process, b"x")
        self.assertEqual(result.returncode, 0)
        profile = harness.Profile(path)
        self.assertEqual(profile.json["memory_limit_bytes"], 3 * LIMIT)

    def test_on_tmpfs(self):
        group = Group(self, LIMIT)
        out = f"/dev/shm/sampleprof-{os.getpid()}.sprof"
        self.addCleanup(lambda: os.path.exists(out) and os.remove(out))
        result = self.grow(1000, 20, group, out=out)
        self.assertIn(b"the profile is on tmpfs", result.stderr)
        self.assertIn("the profile is on tmpfs",
                      " ".join(sampleprof("report", out).split()))
        os.remove(out)
        # Without a limit nobody cares.
        result = self.grow(1000, 20, out=out)
        self.assertEqual(result.stderr, b"")


class Ends(harness.Case):
    """What `run` knows of the end, and adds to the profile."""

    def run_it(self, *argv, **popen):
        out = os.path.join(self.dir, f"{self.runs}.sprof")
        self.runs += 1
        done = subprocess.run(
            [harness.tool(), "run", "--out", out, *argv],
            capture_output=True, check=False, timeout=harness.TIMEOUT_S,
            cwd=self.dir, **popen)
        # The head is a paragraph, of more lines where the path is long.
        head = sampleprof("report", out).split("\n\n")[0]
        return done, " ".join(head.split()), out

    def test_memory(self):
        group = Group(self, LIMIT)
        done, head, out = self.run_it(harness.target("program_grow"), "1000",
                                      "1000", preexec_fn=group.join)
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.assertIn(b"the kernel's OOM killer killed the program",
                      done.stderr)
        self.assertIn("was killed by the kernel's OOM killer", head)
        self.assertTrue(harness.Profile(out).json["is_killed_for_memory"])
        self.assertIn(" oom", sampleprof("ls", self.dir))

    def test_memory_of_another(self):
        """Of another group, while the program was killed by itself."""
        script = "read line; kill -KILL $$"
        run = self.start([harness.tool(), "run", "--out", "a.sprof", "sh", "-c",
                          script], shim=False, stdin=subprocess.PIPE)
        # It has looked at the counters: its program is there.
        harness.wait_until(lambda: os.path.exists(self.dir + "/a.sprof"))
        killed = self.execute(
            harness.target("program_grow"), 1000, 1000, clean=False,
            popen={"preexec_fn": Group(self, LIMIT).join})
        self.assertEqual(killed.returncode, -signal.SIGKILL)
        result = self.finish(run, b"\n")
        self.assertEqual(result.returncode, -signal.SIGKILL)
        self.assertIn(b"SIGKILL came from another process, or from the OOM "
                      b"killer, which killed a process of another control group",
                      result.stderr)
        self.assertFalse(harness.Profile(self.dir + "/a.sprof").json[
            "is_killed_for_memory"])

    def test_signals(self):
        # Another test may be killed for memory meanwhile.
        for name, number, word in (("KILL", 9,
                                    b"SIGKILL came from another process, "),
                                   ("SEGV", 11, b"")):
            with self.subTest(signal=name):
                done, head, out = self.run_it("sh", "-c", f"kill -{name} $$")
                self.assertEqual(done.returncode, -number)
                self.assertIn(word, done.stderr)
                self.assertIn(f"was killed by signal {number}", head)
                profile = harness.Profile(out)
                self.assertEqual(profile.end, "killed")
                self.assertFalse(profile.json["is_killed_for_memory"])
                self.assertIn(f" sig{number}", sampleprof("ls", self.dir))

    def test_address_space(self):
        _, _, out = self.run_it("sh", "-c", "ulimit -v 4194304; exec "
                                "sh -c 'kill -SEGV $$'")
        self.assertIn("limit     4.00 GiB of address space (RLIMIT_AS)",
                      sampleprof("report", out))

    def test_exit(self):
        done, head, _ = self.run_it("perl", "-MPOSIX", "-e", "POSIX::_exit(3)")
        self.assertEqual(done.returncode, 3)
        self.assertIn("ended by _exit()", head)
        self.assertIn(" _exit", sampleprof("ls", self.dir))

    def test_clean(self):
        _, head, _ = self.run_it("true")
        self.assertIn("ended cleanly", head)

    def test_last(self):
        """--last is --from, counted from the end; it never comes before the
        start."""
        _, _, out = self.run_it("--period", "4K",
                                harness.target("program_grow"), "40", "20")
        profile = harness.Profile(out).require_samples(1000)
        run_ns = profile.json["duration_ns"]
        # Something is allocated in it, however late the end is.
        last_ns = run_ns - sorted(sample["born_ns"]
                                  for sample in samples_of(out))[500]

        def view(*options):
            answer = harness.json.loads(sampleprof("report", "--json",
                                                   *options, out))
            return answer["selection"]["from_ns"], answer["functions"]

        last = view("--last", f"{last_ns}ns")
        self.assertEqual(last, view("--from", f"{run_ns - last_ns}ns"))
        self.assertTrue(last[1])
        self.assertEqual(view("--last", "1h")[1], view()[1])


class Rates(harness.Case):
    """In a group of 200 MiB, at 10 MiB/s and at 1 GiB/s: what grew is named
    first, with the limit and who killed."""

    def check_kill(self, rate, out, group):
        done = subprocess.run(
            [harness.tool(), "run", "--out", out, harness.target("program_grow"),
             str(rate), "2000"], capture_output=True, check=False,
            cwd=self.dir, preexec_fn=group.join)
        self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
        self.assertIn(b"the kernel's OOM killer killed the program",
                      done.stderr)
        profile = harness.Profile(out)
        self.assertEqual(profile.json["memory_limit_bytes"], 200 * MIB)
        self.assertTrue(profile.json["is_killed_for_memory"])
        rows = harness.json.loads(sampleprof(
            "report", "--view", "live", "--json", out))["functions"]
        self.assertEqual(rows[0]["name"], "fill_cache")
        text = " ".join(sampleprof("report", out).split())
        self.assertIn("was killed by the kernel's OOM killer", text)
        self.assertIn("limit 200.0 MiB of memory in its control group", text)
        self.assertRegex(text, "growth .*, most by fill_cache ")

    def kill_some(self, rate, n):
        """As many at once as there is room for; each in a group of its own."""
        def one(i):
            self.check_kill(rate, os.path.join(self.dir, f"{rate}-{i}.sprof"),
                            groups[i])
            return 1

        groups = [Group(self, 200 * MIB, f"-{i}") for i in range(n)]
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            self.assertEqual(sum(pool.map(one, range(n))), n)

    @harness.nightly
    def test_fast(self):
        """In the ordinary list: Ends.test_memory and AtTheLimit.test_fast."""
        self.kill_some(1024, KILLS or 1)

    @unittest.skipUnless(KILLS, "the long form: SAMPLEPROF_TEST_GROUPS=20")
    def test_slow(self):
        self.kill_some(10, KILLS)


if __name__ == "__main__":
    harness.unittest.main()
