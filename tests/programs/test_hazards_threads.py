# SPDX-License-Identifier: MIT
"""Hazards: threads, small stacks, jumps and exceptions."""

import glob
import itertools
import os
import shutil

import harness
import hazards

UNWINDERS = harness.rounds(("tables",), ("tables", "fp"))

class Threads(hazards.Case):

    def setUp(self):
        super().setUp()
        # An allocator that may be interrupted, and left, anywhere.
        self.bump = (harness.target("libprogram_bump.so"),)

    def over_bump(self, program):
        """With it below the library, or linked in: the program, and what is to
        be preloaded."""
        yield program, self.bump
        if harness.MACHINE == "x86_64":
            yield f"{program}_linked", ()

    def test_cancellation_while_allocating(self):
        self.survives("hazard_threads", "cancel")
        self.bites("cancel", "hazard_threads", "cancel")

    def test_handler_on_small_alternate_stack(self):
        profile = self.survives("hazard_threads", "alternate_stack")
        self.assertEqual(
            profile.allocated_under("allocate_in_handler"), (50000, 500))
        whole = [s for s in profile.stacks_with("allocate_in_handler")
                 if s in profile.stacks_with("raise_often")]
        self.assertEqual(sum(s["samples"] for s in whole), 500)
        self.bites("deep", "hazard_threads", "alternate_stack")

    def test_handler_on_alternate_stack_that_interrupts_the_slow_path(self):
        for program, preload in self.over_bump("hazard_threads"):
            profile = self.survives(program, "interrupted",
                                    lost=("allocations_in_signal_handlers",),
                                    preload=preload, max_file="1G")
            self.assertGreater(
                profile.allocated_under("allocate_in_handler")[1], 0)
        self.bites("lock", "hazard_threads", "interrupted",
                   preload=self.bump)

    def test_handler_of_stack_overflow(self):
        self.survives("hazard_threads", "stack_overflow")
        self.bites("deep", "hazard_threads", "stack_overflow")

    def test_coroutines(self):
        """Stacks of 16 KiB; the profile has their frames."""
        profile = self.survives("hazard_threads", "coroutines")
        self.assertEqual(profile.allocated_under("in_coroutine"),
                         (4800, 160))

    def test_jump_out_of_a_callback(self):
        profile = self.survives("hazard_threads", "jump_out_of_callback")
        self.assertEqual(profile.lost(), {})

    def test_jump_out_of_malloc(self):
        """By siglongjmp from a signal handler: undefined with most
        allocators, and then not more undefined than without us.  The
        record that it was writing stays unfinished."""
        for period, (program, preload) in itertools.product(
                hazards.PERIODS, self.over_bump("hazard_threads")):
            result = self.execute(
                harness.target(f"program_{program}"), "jump_out_of_malloc",
                period=period, preload=preload, max_file="1G")
            self.assertEqual(result.stdout, b"jumped\n")
            profile = self.profile_of(result, damaged=True)
            profile.require_samples(period == "1")
            self.assertEqual(profile.end, "clean")
            # Each jump may have left one object uncounted.
            objects, jumps = map(int, result.stderr.split())
            self.assertGreaterEqual(objects, 5000)
            self.assertGreaterEqual(profile.exact[1], objects - jumps)
        self.bites("lock", "hazard_threads", "jump_out_of_malloc",
                   preload=self.bump)

    def left(self, mode, times, period, program, preload):
        result = self.execute(harness.target(f"program_{program}"), mode,
                              times, period=period, preload=preload,
                              max_file="1G")
        profile = self.profile_of(result, damaged=True)
        jumps, size, objects = map(int, result.stdout.split())
        return jumps, (size, objects), profile

    @harness.nightly_too
    def test_library_left_by_siglongjmp(self):
        """The thread goes on being sampled, from the stack of the handler's
        thread and from an alternate one further out, to the same frame and
        to one far out; and is counted to within one object a jump."""
        modes = harness.rounds(("nested",), ("alarm", "fault", "nested"))
        for mode, over in itertools.product(modes, self.over_bump("left")):
            jumps, own, profile = self.left(mode, 0, "1", *over)
            self.assertEqual(jumps, 0)
            others = profile.exact[1] - own[1]
            for period in hazards.PERIODS:
                jumps, own, profile = self.left(mode, 300, period, *over)
                self.assertGreaterEqual(jumps,
                                        300 if mode == "fault" else 600)
                self.assertLessEqual(abs(profile.exact[1] - own[1] - others),
                                     jumps, f"{mode} {over}")
                self.assertLessEqual(
                    abs(profile.exact[0] - own[0] - others * 64),
                    jumps * 64 + 65536, f"{mode} {over}")
                if period != "1":
                    continue
                lost = profile.lost()
                # 4 KiB and the object itself each time, in pieces of 64;
                # 124 KiB after the last jump of each of two threads.
                missing = (lost.get("calls_left", 0) + 2 * 31) * 66
                self.assertGreaterEqual(profile.samples,
                                        profile.exact[1] - missing,
                                        f"{mode} {over} {lost}")
                self.assertGreater(profile.samples, 3000, f"{mode} {over}")

    def left_busy(self, over, *arguments, unwind="tables", max_file="2M"):
        """The profile; how often the library was left, and the objects that
        the program has counted."""
        program, preload = over
        result = self.execute(harness.target(f"program_{program}"), *arguments,
                              period=1, max_file=max_file, unwind=unwind,
                              preload=preload)
        jumps, objects, mark = map(int, result.stdout.split())
        # The library's interface answers, and its mark is there.
        self.assertEqual(mark, 0)
        profile = self.profile_of(result, damaged=True).require_samples(1000)
        self.assertIn("left", [p["name"] for p in profile.json["phases"]])
        self.assertGreater(jumps, 0)
        return profile, jumps, objects

    @harness.nightly_too
    def test_left_by_threads_while_the_ring_turns(self):
        """Three threads at a time: afterwards each is sampled, with whole
        stacks, and all is counted to within one object a jump."""
        for unwind, over in itertools.product(UNWINDERS,
                                              self.over_bump("left_busy")):
            # The window holds the last objects of each.
            profile, jumps, objects = self.left_busy(
                over, "threads", unwind=unwind, max_file="4M")
            self.assertLessEqual(abs(profile.exact[1] - objects),
                                 jumps + 100, unwind)
            for thread in profile.json["thread_infos"]:
                if thread["exited"]:
                    self.assertGreater(thread["samples"], 5000, thread)
            late = profile.stacks_with("afterwards")
            # Passes that are held up do not make the file seem full.
            self.assertGreater(sum(s["samples"] for s in late), 20000)
            self.assertTrue(all(s in profile.stacks_with("work")
                                for s in late))
            # Turns and passes went on meanwhile: several times what the file
            # holds came into it, though a thread that holds one up while it
            # has no processor costs samples.
            full = profile.lost().get("samples_file_full", 0)
            self.assertGreater(objects - full, 3 * profile.samples)

    @harness.nightly_too
    def test_left_for_a_frame_that_nobody_writes_to(self):
        """The mark of what was left is still there; the thread is sampled
        all the same, but for the objects until its next event."""
        for unwind, over in itertools.product(UNWINDERS,
                                              self.over_bump("left_busy")):
            profile, jumps, objects = self.left_busy(
                over, "hole", unwind=unwind, max_file="1G")
            self.assertEqual(jumps, 1000)
            self.assertLessEqual(abs(profile.exact[1] - objects), 1100)
            left = profile.lost()["calls_left"]
            self.assertGreater(left, 100)
            # 4 KiB each.
            self.assertGreater(profile.allocated_under("in_hole")[1],
                               400 * jumps - 70 * left)

    @harness.nightly_too
    def test_left_while_plug_ins_come_and_go(self):
        """What is loaded afterwards has its name."""
        late = os.path.join(self.dir, "late.so")
        plugin = harness.target("libprogram_plugin_a.so")
        shutil.copy(plugin, late)
        # Plug-ins call the malloc of the C library.
        for unwind in UNWINDERS:
            profile, _, _ = self.left_busy(
                ("left_busy", self.bump), "plugins", plugin,
                harness.target("libprogram_plugin_b.so"), late, unwind=unwind)
            self.assertIn("late.so", profile.modules())
            self.assertGreater(
                profile.allocated_under("plugin_a_allocate")[1], 1000)
            self.assertNotIn("modules_not_recorded", profile.lost())

    def test_child_killed_while_it_makes_the_file(self):
        """One that shares the memory, by vfork: the file is made again."""
        program = harness.target("program_left_busy")
        result = self.execute("/bin/sh", "-c", f"{program} vfork; exit $?",
                              period=1)
        self.assertEqual(result.stdout, b"1 0 0\n")
        begun = []
        for path in result.paths:
            with open(path, "rb") as f:
                if "left_busy" in path and any(f.read(8)):
                    begun.append(path)
        self.assertEqual(len(begun), 1, result.paths)
        profile = harness.Profile(begun[0])
        self.assertGreater(profile.allocated_under("allocate_much")[1], 5900)
        self.assertEqual(profile.lost(), {"calls_left": 1})

    @harness.nightly_too
    def test_exit_while_threads_allocate(self):
        profile = self.survives("hazard_threads", "exit_while_busy",
                                periods=("4K",))
        self.assertEqual(profile.end, "clean")
        children = glob.glob(os.path.join(self.out, "*.sprof"))
        self.assertGreater(len(children), 10)
        for path in children[:harness.rounds(5, None)]:
            with open(path, "rb") as f:
                begun = any(f.read(8))
            # The end may have come while the file was being made, or a
            # record being written.
            if begun:
                harness.Profile(path, damaged=True)

    def test_ten_thousand_threads(self):
        self.survives("hazard_threads", "churn", periods=("64K",), seed=1)


class Exceptions(hazards.Case):

    def test_exceptions_while_sampling(self):
        profile = self.survives("hazard_throw", "exceptions")
        self.assertGreater(profile.samples, 1000)

    def test_operators_that_fail(self):
        """bad_alloc passes, and the program's new_handler is asked."""
        for name in ("glibc", "jemalloc", "tcmalloc"):
            with self.subTest(allocator=name):
                self.survives("hazard_throw", "bad_alloc",
                              preload=harness.allocator(name))
        broken = self.execute(
            harness.target("program_hazard_throw"), "bad_alloc", shim=False,
            preload=(harness.target("libprogram_hazard_naive_new.so"),),
            clean=False)
        self.assertNotEqual(broken.returncode, 0)

    def test_destructors_of_thread_local_objects(self):
        self.survives("hazard_throw", "thread_local")
