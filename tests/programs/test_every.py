# SPDX-License-Identifier: MIT
"""At period 1 every allocation is in the file with its size and its stack, and
every figure equals the truth.
"""

import json
import os
import subprocess
import unittest

import harness

# Two that differ most, or all.
ALLOCATORS = harness.rounds(("glibc", "jemalloc"), tuple(harness.ALLOCATORS))


class EveryAllocation(harness.Case):

    def check_complete(self, profile):
        """Samples, exact totals and estimates all say the same."""
        profile.require_samples()
        nbytes, objects = profile.exact
        self.assertEqual(profile.lost(), {})
        self.assertEqual(profile.samples, objects)
        self.assertEqual(profile.estimate, (nbytes, objects))
        for figure in profile.json["estimate"].values():
            self.assertEqual((figure["lo"], figure["hi"]),
                             (figure["value"], figure["value"]))
        self.assertEqual(
            (sum(s["flat_bytes"]["value"] for s in profile.stacks),
             sum(s["samples"] for s in profile.stacks)), (nbytes, objects))
        self.assertEqual(profile.end, "clean")

    def test_distinct_stacks(self):
        """2^6 chains of calls, told apart."""
        bits, times = 6, 25
        for threads in (1, 8):
            with self.subTest(threads=threads):
                profile = self.execute(harness.target("program_recursion"),
                                       threads, bits, times,
                                       period=1).profile()
                self.check_complete(profile)
                seen = {}
                for stack in profile.stacks_with("leaf"):
                    names = [f["function"] for f in stack["frames"]]
                    self.assertEqual(names[0], "leaf")
                    turns = [n for n in names if n in ("left", "right")]
                    self.assertEqual(len(turns), bits)
                    # Innermost first: the last turn is the lowest bit.
                    path = sum((n == "right") << i
                               for i, n in enumerate(turns))
                    self.assertFalse(stack["truncated"])
                    self.assertFalse(stack["caller_only"])
                    count = seen.setdefault(path, [0, 0])
                    count[0] += stack["flat_bytes"]["value"]
                    count[1] += stack["samples"]
                each = threads * times
                self.assertEqual(seen, {
                    path: [each * (100 + path), each]
                    for path in range(1 << bits)})
                leaf = profile.function("leaf")
                self.assertEqual(leaf["samples"], each << bits)
                self.assertEqual(leaf["flat_bytes"]["value"],
                                 sum(n for n, _ in seen.values()))
                self.assertEqual(leaf["flat_objects"]["value"], each << bits)
                self.assertTrue(leaf["file"].endswith("recursion.c"))
                # Recursion counts once per stack.
                descend = profile.function("descend")
                self.assertEqual(descend["cum_samples"], each << bits)
                self.assertEqual(descend["samples"], 0)

    def test_json_of_deep_stacks(self):
        """Each frame is there once: a third of the form before, or less."""
        path, = self.execute(harness.target("program_recursion"), 1, 8, 1,
                             period=1).paths
        new, old = (harness.report(option, path)
                    for option in ("--json", "--json-old"))
        self.assertGreaterEqual(len(json.loads(new)["stacks"]), 256)
        self.assertLessEqual(3 * len(new), len(old))

    def test_depth_limit(self):
        """A stack deeper than SAMPLEPROF_DEPTH says so."""
        profile = self.execute(harness.target("program_recursion"), 1, 4, 5,
                               period=1, depth=6).profile()
        self.check_complete(profile)
        stacks = profile.stacks_with("leaf")
        self.assertTrue(stacks)
        for stack in stacks:
            self.assertTrue(stack["truncated"])
            self.assertEqual(
                len([f for f in stack["frames"] if not f["inlined"]]), 6)

    def check_functions(self, result):
        """The truth that the target prints per function, by the profile."""
        profile = result.profile()
        self.check_complete(profile)
        truth = {name: value for name, value in result.values().items()
                 if name.startswith("call_") and value != (0, 0)}
        self.assertGreater(len(truth), 5)
        seen = {}
        for stack in profile.stacks:
            names = {f["function"].split("::")[-1].split("(")[0]
                     for f in stack["frames"] if f["function"]}
            for name in names & truth.keys():
                value = seen.get(name, (0, 0))
                seen[name] = (value[0] + stack["flat_bytes"]["value"],
                              value[1] + stack["samples"])
        self.assertEqual(seen, truth)

    @harness.nightly_too
    def test_functions_of_every_entry_point(self):
        for allocator in ALLOCATORS:
            without = ["nopvalloc"] if allocator == "jemalloc" else []
            for threads, rounds in ((8, 4), (1, 10))[:harness.rounds(1, 2)]:
                with self.subTest(allocator=allocator, threads=threads):
                    self.check_functions(self.execute(
                        harness.target("program_entries"), threads, rounds,
                        *without, preload=harness.allocator(allocator),
                        period=1))

    @harness.nightly_too
    def test_functions_of_every_operator(self):
        for allocator in ALLOCATORS:
            without = ["nothrow"] if allocator == "mimalloc" else []
            for threads, rounds in ((8, 4), (1, 10))[:harness.rounds(1, 2)]:
                with self.subTest(allocator=allocator, threads=threads):
                    self.check_functions(self.execute(
                        harness.target("program_operators"), threads, rounds,
                        *without, preload=harness.allocator(allocator),
                        period=1))


class EveryFree(harness.Case):
    """Frees are recorded by address, and find their objects later."""

    def run_frees(self, *arguments, **settings):
        return self.execute(harness.target("program_all_frees"), *arguments,
                            period=1, **settings)

    def check_live(self, result, names):
        """What is alive at the end under these functions is the truth."""
        path = next(p for p in result.paths if f".{result.pid}." in p)
        profile = harness.Profile(path).require_samples()
        self.assertEqual(profile.lost(), {})
        said = harness.with_frames(json.loads(harness.report(
            "--json", "--view", "live", path)))
        live = [s for s in said["stacks"]
                if names & {f["function"] for f in s["frames"]}]
        self.assertEqual(
            (sum(s["flat_bytes"]["value"] for s in live),
             sum(s["flat_objects"]["value"] for s in live)),
            result.values()["live"])

    @harness.nightly_too
    def test_other_threads(self):
        for allocator in ALLOCATORS:
            with self.subTest(allocator=allocator):
                self.check_live(self.run_frees(
                    "threads", preload=harness.allocator(allocator)),
                    {"pass_on"})

    def test_children(self):
        """A child that frees what it inherited does not store into the file
        of its parent, and one of vfork does."""
        self.check_live(self.run_frees("children"), {"fill"})

    def test_resize(self):
        self.check_live(self.run_frees("resize"), {"run_resize"})

    def test_unloaded_code(self):
        """The same addresses mean another function after an unload."""
        result = self.run_frees(
            "plugins", harness.target("libprogram_plugin_a.so"),
            harness.target("libprogram_plugin_b.so"))
        profile = result.profile()
        self.assertEqual(profile.lost(), {})
        for name in ("plugin_a_allocate", "plugin_b_allocate"):
            self.assertEqual(profile.allocated_under(name)[1], 100)

    def test_killed(self):
        """What its threads were at is in no record: nothing is exact, while it
        runs and after it was killed."""
        process = self.start([harness.target("program_grow"), 1000, 1, "wait"],
                             stdin=subprocess.PIPE, settings={"period": 1})
        self.addCleanup(process.stdin.close)
        process.stdout.readline()
        path, = (os.path.join(self.out, n) for n in os.listdir(self.out))
        for is_killed in (False, True):
            if is_killed:
                process.kill()
                process.wait()
            profile = harness.Profile(path).require_samples()
            missing = profile.json["exact"]["missing_bytes_max"]
            self.assertEqual(missing, 2 * 4096)
            self.assertEqual(profile.samples, profile.exact[1])
            for row in [profile.json["estimate"],
                        *profile.json["functions"]]:
                for key, figure in row.items():
                    if key.endswith(("_bytes", "_objects")):
                        self.assertGreaterEqual(
                            figure["hi"], figure["value"] + missing, key)
            self.assertNotIn("exact", harness.report(path))
            self.assertNotIn("exact", harness.report(path, "--view", "live"))

    @harness.nightly_too
    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount")
    def test_full(self):
        """A file that has met its limit, which a small disk makes small, says
        so, and when."""
        objects, size = harness.rounds((800000, "13m"), (4000000, "100m"))
        disk, copy = (os.path.join(self.dir, n) for n in ("disk", "a.sprof"))
        os.mkdir(disk)
        self.fill_disk(size, disk, copy, objects)
        profile = harness.Profile(copy).require_samples(objects // 2)
        lost = profile.lost()["samples_file_full"]
        self.assertEqual(profile.samples + lost, profile.exact[1])
        self.assertLess(profile.json["estimate"]["live_objects"]["value"], 10)
        self.assertRegex(harness.report(copy),
                         "the file or its disk was full at .*limit 64 MiB")
        # The total was counted to the end; of all else that is not known.
        estimate, exact = (profile.json[k] for k in ("estimate", "exact"))
        self.assertTrue(exact["is_complete"])
        self.assertLess(estimate["alloc_bytes"]["lo"],
                        estimate["alloc_bytes"]["hi"])
        self.assertLessEqual(estimate["alloc_bytes"]["hi"],
                             exact["alloc_bytes"])
        self.assertEqual(estimate["live_bytes"]["lo"], 0)
        self.assertTrue(estimate["peak_bytes"]["at_least"])
        self.assertIsNone(estimate["peak_bytes"]["hi"])
        self.assertTrue(profile.json["whole"]["full"])
        for row in profile.json["functions"]:
            self.assertLess(row["flat_bytes"]["lo"], row["flat_bytes"]["hi"])
