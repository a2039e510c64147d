# SPDX-License-Identifier: MIT
"""Hazards of threads, jumps, signals and the state of a thread, with stacks by
the copy of libunwind; the stack that a sample then needs; a limit of the
address space, in which there is no room for the copies."""

import os
import resource

import harness
import hazards
import test_hazards_resources
import test_hazards_state
import test_hazards_threads

COPY = os.path.join(os.path.dirname(os.environ["SAMPLEPROF_SO"]),
                    "libsampleprof-unwind.so")


class ByLibunwind:
    """Of a case with these: unless it says how stacks are found."""

    def setUp(self):
        super().setUp()
        if not os.path.exists(COPY):
            self.skipTest("built without libunwind: install libunwind-dev "
                          "and patchelf")

    def environment(self, *arguments, **settings):
        return super().environment(*arguments,
                                   **{"unwind": "libunwind", **settings})


@harness.nightly
class Threads(ByLibunwind, test_hazards_threads.Threads):
    """In the ordinary list one that leaves the library."""

    def test_left_by_threads_while_the_ring_turns(self):
        super().test_left_by_threads_while_the_ring_turns()

    def test_left_while_plug_ins_come_and_go(self):
        super().test_left_while_plug_ins_come_and_go()

    def test_library_left_by_siglongjmp(self):
        super().test_library_left_by_siglongjmp()


class Exceptions(ByLibunwind, test_hazards_threads.Exceptions):
    pass


class State(ByLibunwind, test_hazards_state.State):
    pass


class AddressSpace(ByLibunwind, hazards.Case):
    def test_gives_way(self):
        """What tables would profile is profiled, by tables."""
        program = harness.target("program_plain")
        least = test_hazards_resources.least_space(self, program, 3000)
        for more, unwinder in ((test_hazards_resources.TAKEN, "tables"),
                               (1 << 30, "libunwind")):
            with self.subTest(more=more):
                result = self.execute(
                    program, 3000, period=1, clean=False,
                    popen=test_hazards_resources.limited(resource.RLIMIT_AS,
                                                         least + more))
                self.assertEqual(result.returncode, 0)
                self.assertEqual(
                    b"takes too much of the address space" in result.stderr,
                    unwinder == "tables", result.stderr)
                profile = result.profile()
                self.assertEqual(profile.settings["unwinder"], unwinder)
                self.assertEqual(profile.lost(), {})
                profile.require_samples(profile.exact[1])
