# SPDX-License-Identifier: MIT
"""Hazards of threads, jumps, signals and the state of a thread, with stacks by
the copy of libunwind; the stack that a sample then needs."""

import os

import harness
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
    pass


class Exceptions(ByLibunwind, test_hazards_threads.Exceptions):
    pass


class State(ByLibunwind, test_hazards_state.State):
    pass
