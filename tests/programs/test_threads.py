# SPDX-License-Identifier: MIT
"""Threads: many, short-lived, detached, with small stacks, outliving main,
ending."""

import os

import harness

BYTES = 100  # of each allocation in targets/threads.c


class Threads(harness.Case):

    def scenario(self, name, threads, objects, **options):
        return self.execute(harness.target("program_threads"), name, threads,
                            objects, **options)

    def check_exact(self, name, threads, objects, works, **options):
        """The totals of `works` calls of work(), by the difference to a run in
        which it allocates nothing."""
        idle = self.scenario(name, threads, 0, **options).profile()
        profile = self.scenario(name, threads, objects, **options).profile()
        self.assertEqual((profile.exact[0] - idle.exact[0],
                          profile.exact[1] - idle.exact[1]),
                         (works * objects * BYTES, works * objects))
        self.assertEqual(profile.end, "clean")
        self.assertEqual(profile.lost(), {})
        return profile

    def test_many_short_threads(self):
        """Exact to the byte, and the file does not grow with threads that take
        no sample."""
        few = self.check_exact("short", 20, 10, 20, seed=1)
        many = self.check_exact("short", 2000, 10, 2000, seed=1)
        self.assertEqual(few.json["threads"], 21)
        self.assertEqual(many.json["threads"], 2001)

        def used(profile):
            return os.stat(profile.path).st_blocks * 512
        self.assertGreater(used(few), 0)
        # 1980 threads more, at most 32 bytes each if they took any.
        self.assertLessEqual(used(many) - used(few), 64 << 10)

    def test_many_short_threads_that_sample(self):
        profile = self.check_exact("short", 300, 5, 300, period=1)
        self.assertEqual(profile.allocated_under("work"),
                         (1500 * BYTES, 1500))
        self.assertEqual(profile.samples, profile.exact[1])

    def test_detached_threads(self):
        """How many stacks the C library allocates depends on how many of them
        live at a time, so compare with what was sampled: everything."""
        profile = self.scenario("detached", 20, 3000, period=1).profile()
        self.assertEqual(profile.samples, profile.exact[1])
        self.assertEqual(profile.estimate, profile.exact)
        self.assertEqual(profile.allocated_under("work"),
                         (60000 * BYTES, 60000))
        self.assertEqual(profile.end, "clean")
        self.assertEqual(profile.lost(), {})

    def test_smallest_stack(self):
        """A thread of PTHREAD_STACK_MIN has room for a sample."""
        profile = self.scenario("minimal", 4, 300, period=1).profile()
        self.assertEqual(profile.samples, profile.exact[1])
        self.assertEqual(profile.allocated_under("work"), (1200 * BYTES, 1200))
        self.assertEqual(profile.lost(), {})

    def test_threads_that_outlive_main(self):
        profile = self.check_exact("outlive", 1, 3000, 2, period=1)
        self.assertEqual(profile.allocated_under("work")[1], 6000)

    def test_destructors_of_thread_data(self):
        """They run before and after the library hears of the thread's end."""
        profile = self.check_exact("tsd", 5, 70, 15, period=1)
        self.assertEqual(profile.allocated_under("in_tsd_destructor"),
                         (2 * 5 * 70 * BYTES, 2 * 5 * 70))
        self.assertEqual(profile.samples, profile.exact[1])

    def test_names(self):
        profile = self.scenario("named", 4, 50, period=1).profile()
        named = {t["name"]: t for t in profile.json["thread_infos"]
                 if t["name"]}
        self.assertLessEqual({f"worker-{i}" for i in range(4)}, set(named))
        for i in range(4):
            thread = named[f"worker-{i}"]
            self.assertTrue(thread["exited"])
            self.assertEqual(thread["samples"], 50)
            self.assertEqual(thread["exact"]["alloc_bytes"], 50 * BYTES)

    def names(self, profile):
        return [t["name"] for t in sorted(profile.json["thread_infos"],
                                          key=lambda t: t["index"])]

    def test_name_that_another_gave(self):
        """Before the thread's first allocation."""
        profile = self.scenario("named_by_creator", 3, 50, period=1).profile()
        self.assertEqual(self.names(profile),
                         ["program_threads"] + [f"created-{i}" for i in range(3)])

    def test_name_by_prctl(self):
        result = self.scenario("named_by_prctl", 1, 50, period=1)
        profiles = result.profiles()
        self.assertEqual(len(profiles), 2)
        for profile in profiles.values():
            profile.require_samples()
            self.assertEqual(self.names(profile), ["by-prctl"])

    def test_name_that_nobody_gave(self):
        profile = self.scenario("short", 2, 50, period=1).profile()
        self.assertEqual(self.names(profile), 3 * ["program_threads"])

    def test_names_beyond_the_slots(self):
        """More threads at a time than the file has slots: all have names."""
        profile = self.scenario("crowd", 600, 1, period=1).profile()
        names = self.names(profile)
        self.assertEqual(len(names), 601)
        self.assertEqual(sorted(names[1:]),
                         sorted(f"crowd-{i}" for i in range(600)))
        self.assertGreater(profile.json["losses"]["threads_without_slot"], 100)
        self.assertEqual(profile.samples, profile.exact[1])

    def test_name_after_the_first_sample(self):
        profile = self.scenario("renamed", 1, 50, period=1).profile()
        names = [t["name"] for t in profile.json["thread_infos"]]
        self.assertEqual(names, ["late-name"])

    def test_name_after_the_last_sample(self):
        profile = self.scenario("renamed_last", 1, 50, period=1).profile()
        named = [t for t in profile.json["thread_infos"]
                 if t["name"] == "last-name"]
        self.assertEqual(len(named), 1)
        self.assertTrue(named[0]["exited"])
        self.assertEqual(named[0]["samples"], 50)
        self.assertEqual(named[0]["exact"]["alloc_bytes"], 50 * BYTES)

    def test_allocation_under_the_loader_lock(self):
        """A thread that samples must not wait for a thread in the loader."""
        profile = self.scenario("loader", 1, 500, period=1).profile()
        self.assertEqual(profile.allocated_under("work")[1], 500)
        self.assertEqual(profile.end, "clean")
