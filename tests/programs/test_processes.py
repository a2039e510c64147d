# SPDX-License-Identifier: MIT
"""Processes: fork, vfork, exec, `_exit`, signals; profiles of running and
killed processes."""

import os
import signal
import subprocess

import harness

BYTES = 100  # of each allocation in targets/processes.c


def times(objects):
    """(bytes, objects) of that many allocations of the target."""
    return objects * BYTES, objects


class Processes(harness.Case):

    def setUp(self):
        super().setUp()
        self.program = harness.target("program_processes")

    def scenario(self, *arguments, **options):
        return self.execute(self.program, *arguments, **options)

    def minus(self, a, b):
        return a[0] - b[0], a[1] - b[1]

    def check_children(self, result):
        """Each child's file has what the child says, to the byte; returns the
        parent's profile."""
        profiles = result.profiles()
        parent = profiles.pop(result.pid)
        truths = {int(k): v for k, v in result.values().items()}
        truths.pop(result.pid)
        self.assertEqual(set(profiles), set(truths))
        for pid, truth in truths.items():
            child = profiles[pid]
            self.assertEqual(child.exact, truth)
            self.assertEqual(child.end, "clean")
            self.assertEqual(child.lost(), {})
            self.assertEqual(child.json["pid"], pid)
        return parent

    # ---- a tree ----

    def test_wrong_settings(self):
        """A tree of processes says once what is wrong with a setting."""
        tree = "/bin/true; sh -c '/bin/true; :'; :"
        for settings, word in (({"depth": 0}, b"SAMPLEPROF_DEPTH=0 is not"),
                               ({"dept": 1}, b"unknown setting")):
            said = self.execute("sh", "-c", tree, **settings).stderr
            self.assertEqual(said.count(b"\n"), 1, said)
            self.assertIn(word, said)
        # Another mistake is news.
        said = self.execute("sh", "-c", "SAMPLEPROF_DEPTH=x /bin/true; :",
                            frees="off").stderr
        self.assertEqual(said.count(b"\n"), 1, said)
        self.assertIn(b"SAMPLEPROF_DEPTH=x is not", said)

    # ---- fork ----

    def test_fork(self):
        """Child and grandchild: files of their own, all totals exact."""
        idle = self.scenario("fork", 0, 5000, 5000, period=1)
        result = self.scenario("fork", 3000, 5000, 2000, period=1)
        self.assertEqual(len(result.paths), 3)
        parent = self.check_children(result)
        self.assertEqual(parent.end, "clean")
        self.assertEqual(parent.lost(), {})
        self.assertEqual(
            self.minus(parent.exact, idle.profiles()[idle.pid].exact),
            times(6000))
        for pid, profile in result.profiles().items():
            truth = result.values()[str(pid)]
            # Every sample too is in the file of the process that took it.
            self.assertEqual(profile.allocated_under("work"), truth)
            self.assertEqual(profile.samples, profile.exact[1])

    def test_fork_at_default_period(self):
        """200 MB in the child, which counts from zero."""
        n = 2000000
        result = self.scenario("fork", 1000, n, n, seed=1)
        self.assertEqual(len(result.paths), 3)
        self.check_children(result)
        for pid, profile in result.profiles().items():
            if pid != result.pid:
                profile.require_samples(200)
                figure = profile.json["estimate"]["alloc_bytes"]
                self.assertLess(figure["lo"] * 0.8, profile.exact[0])
                self.assertGreater(figure["hi"] * 1.2, profile.exact[0])

    def test_siblings_draw_different_samples(self):
        """Children of one parent with one seed: not the same samples in each.

        With the parent's random state all 12 would have one and the same
        count; if they differ as they should, that happens by chance with a
        probability below 1e-12 (a Poisson count of mean 76).
        """
        result = self.scenario("siblings", 12, 50000, period="64K", seed=1)
        self.check_children(result)
        counts = [p.samples for pid, p in result.profiles().items()
                  if pid != result.pid]
        self.assertEqual(len(counts), 12)
        self.assertGreater(len(set(counts)), 1)
        # Mean 12 * 76.3, 6 sigma.
        self.assertLess(abs(sum(counts) - 915.5), 6 * 30.3)

    @harness.nightly_too
    def test_fork_from_busy_threads(self):
        """6 or 20 children while 8 threads allocate; and what the parent counts
        does not depend on the children."""
        children, per_child, per_thread = harness.rounds(6, 20), 700, 40000
        alone = self.scenario("busy", 0, per_child, per_thread, period="4K")
        result = self.scenario("busy", children, per_child, per_thread,
                               period="4K")
        self.assertEqual(len(result.paths), 1 + children)
        parent = self.check_children(result)
        self.assertEqual(parent.exact, alone.profile().exact)
        self.assertGreaterEqual(parent.exact[1], 8 * per_thread)
        self.assertEqual(parent.lost(), {})
        self.assertEqual(parent.json["threads"], 9)

    def test_fork_in_signal_handler(self):
        """Wherever the signal finds the process, also inside malloc."""
        for period in ("1", "512K"):
            with self.subTest(period=period):
                result = self.scenario("handler", 100, period=period,
                                       max_file="1G")
                profile = result.profiles()[result.pid]
                self.assertGreaterEqual(profile.exact[1],
                                        result.values()[str(result.pid)][1])
                if period == "1":
                    self.assertEqual(profile.samples, profile.exact[1])
                self.assertEqual(profile.end, "clean")

    def test_unannounced_child(self):
        """A child that no handler hears of, by _Fork: own file, and the
        parent's is unharmed."""
        idle = self.scenario("unannounced", 0, 5000, period=1)
        result = self.scenario("unannounced", 3000, 5000, period=1)
        profiles = result.profiles()
        self.assertEqual(len(profiles), 2)
        parent = profiles.pop(result.pid)
        self.assertEqual(
            self.minus(parent.exact, idle.profiles()[idle.pid].exact),
            times(6000))
        self.assertEqual(parent.allocated_under("work"), times(6000))
        child, = profiles.values()
        self.assertEqual(child.allocated_under("work"), times(5000))
        self.assertEqual(child.end, "clean")
        self.assertEqual(child.lost(), {"bytes_at_fork": 1})

    def test_vfork(self):
        """The child works in the parent's memory, and is counted there."""
        idle = self.scenario("vfork", 3000, 0, period=1).profile()
        profile = self.scenario("vfork", 3000, 500, period=1).profile()
        self.assertEqual(self.minus(profile.exact, idle.exact), times(500))
        self.assertEqual(profile.allocated_under("work"), times(6500))
        self.assertEqual(profile.end, "clean")
        self.assertEqual(profile.lost(), {})

    # ---- exec ----

    def test_spawned_child_that_samples(self):
        result = self.scenario("spawn", harness.target("program_plain"), 300,
                               period=1)
        profiles = result.profiles()
        self.assertEqual(len(profiles), 2)
        self.assertEqual(profiles.pop(result.pid).end, "clean")
        child, = profiles.values()
        self.assertEqual(child.allocated_under("allocate"), (300000, 300))
        self.assertEqual(child.end, "clean")
        self.assertTrue(os.path.basename(child.path).startswith("program_plain."))

    def test_spawned_child_without_samples(self):
        """No file of a child that nobody asked about: neither if it allocates
        nothing, nor if it takes no sample; but the one that was started under
        the library leaves a file in either case."""
        plain = harness.target("program_plain")
        for objects, period in ((0, "1"), (300, "1T")):
            with self.subTest(objects=objects):
                result = self.scenario("spawn", plain, objects, period=period,
                                       seed=1)
                self.assertEqual(list(result.profiles()), [result.pid])
                profile = self.execute(plain, objects, period=period,
                                       seed=1).profile()
                self.assertEqual(profile.samples, 0)
                self.assertGreaterEqual(profile.exact[1], objects)
                self.assertEqual(profile.end, "clean")

    def test_children_of_a_large_environment(self):
        """They are children, wherever LD_PRELOAD stands in it: 600 KiB in front
        of it, in variables of up to 127 KiB."""
        for sizes in ([], [4000] * 150, [127 << 10] * 5, [40000, 130000]):
            with self.subTest(sizes=sizes):
                first = [f"SP_{i}={'x' * n}" for i, n in enumerate(sizes)]
                env = self.environment(period="1T", seed=1)
                self.out = os.path.join(self.dir, f"large-{len(sizes)}")
                os.mkdir(self.out)
                last = [f"LD_PRELOAD={env['LD_PRELOAD']}",
                        "SAMPLEPROF_PERIOD=1T", "SAMPLEPROF_SEED=1",
                        f"SAMPLEPROF_OUT={self.out}"]
                process = self.start(
                    ["/usr/bin/env", "-i", *first, *last,
                     "/bin/sh", "-c", "/bin/true; /bin/true; echo done"],
                    shim=False)
                result = self.finish(process)
                self.assertEqual((result.returncode, result.stdout),
                                 (0, b"done\n"), result.stderr)
                self.assertEqual(list(result.profiles()), [result.pid])

    def test_vast_tree(self):
        """A shell script with many small commands: files only of those that
        sample."""
        script = "for i in 1 2 3 4 5 6 7 8; do /bin/true; done; echo done"
        result = self.execute("/bin/sh", "-c", script, period="1T", seed=1)
        self.assertEqual(result.stdout, b"done\n")
        self.assertEqual(list(result.profiles()), [result.pid])

    def test_chain_of_exec(self):
        """One process, four programs in turn: a file for each, the first three
        end with that."""
        result = self.scenario("chain", 3, 50, period=1)
        self.assertEqual(len(result.paths), 4)
        ends = []
        for path in result.paths:
            profile = harness.Profile(path)
            self.assertEqual(profile.json["pid"], result.pid)
            self.assertEqual(profile.allocated_under("work"), times(50))
            ends.append(profile.end)
        self.assertEqual(sorted(ends), ["clean"] + 3 * ["exec"])

    # ---- ends ----

    def test_ends(self):
        """Everything that was recorded is there, however the end came."""
        n = 5000
        for how, code, end in (("_exit", 3, "killed"),
                               ("quick_exit", 3, "killed"),
                               ("abort", -signal.SIGABRT, "killed"),
                               ("kill", -signal.SIGKILL, "killed"),
                               ("segv", -signal.SIGSEGV, "killed"),
                               ("thread", 3, "clean")):
            with self.subTest(how=how):
                result = self.scenario("end", how, n, period=1, clean=False)
                self.assertEqual(result.returncode, code, result.stderr)
                profile = result.profile()
                self.assertEqual(profile.end, end)
                self.assertEqual(profile.allocated_under("work"), times(n))
                self.assertEqual(profile.lost(), {})
                if how == "thread":
                    self.assertGreaterEqual(profile.exact[1], n)

    def test_exact_totals_of_killed_process(self):
        """Short of the truth by a check-in distance at most."""
        n = 50000
        profile = self.scenario("end", "kill", n, clean=False).profile()
        self.assertEqual(profile.end, "killed")
        self.assertGreater(profile.exact[0],
                           n * BYTES - profile.json["check_in_bytes"])
        self.assertLess(profile.exact[0], n * BYTES + (1 << 20))

    def test_running_process(self):
        """A profile can be read while it is being written."""
        process = self.start([self.program, "wait", "5000"],
                             settings={"period": "1"}, stdin=subprocess.PIPE)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready 1\n")
        path = os.path.join(self.out, f"program_processes.{process.pid}.sprof")
        profile = harness.Profile(path)
        self.assertEqual(profile.end, "running")
        self.assertEqual(profile.allocated_under("work"), times(5000))
        process.kill()
        process.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual(harness.Profile(path).end, "killed")
