# SPDX-License-Identifier: MIT
"""Hazards: the state that a call of malloc must not change."""

import os
import re
import subprocess
import unittest

import harness
import hazards

of_x86_64 = unittest.skipUnless(harness.MACHINE == "x86_64",
                                "written in its instructions")


class State(hazards.Case):

    def test_errno(self):
        """Zero when main begins; afterwards what the allocator makes of it."""
        self.survives("hazard_state", "errno")
        self.bites("errno", "hazard_state", "errno")

    def test_floating_point_traps_and_rounding(self):
        self.survives("hazard_state", "float")
        self.bites("float", "hazard_state", "float")

    def test_signal_masks_and_handlers(self):
        """The lines Sig* of /proc/self/status, and no thread more."""
        self.survives("hazard_state", "signals")
        for mistake in ("mask", "handler", "thread"):
            self.bites(mistake, "hazard_state", "signals")

    def test_signal_that_the_only_thread_waits_for(self):
        self.survives("hazard_state", "waited_signal")
        self.bites("thread", "hazard_state", "waited_signal")

    def test_lowest_descriptor(self):
        self.survives("hazard_state", "descriptors")

    @of_x86_64
    def test_misaligned_stack(self):
        """Whatever was compiled with vector stores faults on such a stack."""
        self.survives("hazard_state", "misaligned")
        self.bites("vector", "hazard_state", "misaligned")

    @of_x86_64
    def test_generated_code_without_frames(self):
        """The caller is in no object, its frame pointer is a number."""
        profile = self.survives("hazard_state", "generated_code")
        self.assertGreaterEqual(profile.samples, 300)
        self.bites("frames", "hazard_state", "generated_code")

    def test_stack_use(self):
        """On a stack that is not the thread's, and may be small: a signal
        handler on an alternate stack of 8 KiB has 4.5 KiB where the kernel
        puts AVX-512's registers there first."""
        program = harness.target("program_hazard_state")
        # Frames of aarch64 hold more registers.
        without = 1280 if harness.MACHINE == "aarch64" else 1024
        for period, most in (("1", 3072), ("1T", without)):
            with self.subTest(period=period):
                result = self.execute(program, "depths", period=period,
                                      seed=1)
                depths = result.values()
                self.assertLessEqual(depths["nothing"], 256)
                for name in ("malloc", "realloc", "free"):
                    self.assertLessEqual(depths[name], most, depths)

    def large_mappings(self, **options):
        """Of private memory, 128 KiB and more each, that a huge page could
        be put into; and how many there are that it could not."""
        process = self.start([harness.target("program_processes"), "wait", 5000],
                             stdin=subprocess.PIPE, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdout.readline()
        with open(f"/proc/{process.pid}/smaps", encoding="utf-8") as f:
            text = f.read()
        found = {True: 0, False: 0}
        for block in re.split(r"(?m)^(?=[0-9a-f]+-)", text)[1:]:
            head, size = block.split("\n")[0], re.search(
                r"Size: +(\d+)", block)
            flags = re.search("VmFlags: (.*)", block)[1].split()
            if " rw-p " in head and int(size[1]) >= 128 and \
                    "[" not in head:
                found["nh" in flags] += 1
        return found

    @unittest.skipUnless(os.path.exists("/sys/kernel/mm/transparent_hugepage"),
                         "this kernel has no huge pages of its own accord")
    def test_no_huge_pages(self):
        """Sparse tables would cost 2 MiB for each page that is used."""
        alone = self.large_mappings(shim=False)
        ours = self.large_mappings(settings={"period": "2"})
        self.assertEqual(alone[True], 0)
        self.assertGreaterEqual(ours[True], 2)
        self.assertEqual(ours[False], alone[False])
