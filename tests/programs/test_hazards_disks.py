# SPDX-License-Identifier: MIT
"""Hazards: file systems that fill up, that copy on write, or that run in user
space.

SAMPLEPROF_TEST_DISKS is the number of disks that become full at a random place:
0 in the test, 200 in the long form (docs/contributing.md).
"""

import os
import random
import unittest

import harness
import hazards

DISKS = int(os.environ.get("SAMPLEPROF_TEST_DISKS", "0"))
OBJECTS = 8000
SLOW_OBJECTS = 300
CANNOT_MOUNT = 99  # exit status of a script
STORE_S = 120      # longer than anything but a store that has no end
KILLED = 128 + 9   # then

# Loop images: a size that mkfs takes, and how to make it.
IMAGES = {"ext4": (16 << 20, ("mkfs.ext4", "-q"), "e2fsprogs"),
          "xfs": (320 << 20, ("mkfs.xfs", "-q"), "xfsprogs"),
          "btrfs": (160 << 20, ("mkfs.btrfs", "-q"),
                    "btrfs-progs")}


def slowed(microseconds, when="1+"):
    """Runs a command under which a page takes that long to be made ready for a
    store; `when`: of each thread's questions."""
    strace = harness.require("strace", "strace")
    return (f"{strace} -f -o /dev/null -e trace=madvise,futex "
            f"-e inject=madvise,futex:delay_exit={microseconds}:when={when}")


@unittest.skipUnless(hazards.can_mount(), "cannot mount here")
class Disks(hazards.Case):
    # How the shell runs a program under what PRELOAD names.
    under = 'env LD_PRELOAD="$PRELOAD"'

    def setUp(self):
        super().setUp()
        self.plain = harness.target("program_plain")
        self.disk = os.path.join(self.dir, "disk")
        os.mkdir(self.disk)

    def scripted(self, script, period=1, clean=True, more="", **env):
        """In a namespace of mounts of its own."""
        preload = f"{os.environ['SAMPLEPROF_SO']} {more}"
        return self.execute("unshare", "-m", "sh", "-c", script, shim=False,
                            clean=clean,
                            env={"PRELOAD": preload,
                                 "SAMPLEPROF_OUT": self.disk + "/a.sprof",
                                 "SAMPLEPROF_PERIOD": str(period), **env})

    # ---- full ----

    def sized(self, sizes_kib):
        """The target with its profile on disks of these sizes: it does what
        it does, each file is read, and each sample is there or counted.
        How many were full."""
        script = "".join(
            f"mount -t tmpfs -o size={size}k none {self.disk} && "
            f"{self.under} {self.plain} {OBJECTS} 7; echo $?; "
            f"ls -A {self.disk} | wc -l; "
            f"rm -f {self.dir}/{i}.sprof; "
            f"cp --sparse=always {self.disk}/a.sprof {self.dir}/{i}.sprof "
            f"2>/dev/null; umount {self.disk};"
            for i, size in enumerate(sizes_kib))
        lines = self.scripted(script + "true").stdout.decode().split()
        self.assertEqual(lines[0::3], ["hello"] * len(sizes_kib))
        self.assertEqual(lines[1::3], ["7"] * len(sizes_kib))
        # What could not be used is not left there either.
        full = 0
        for i, (size, n) in enumerate(zip(sizes_kib, lines[2::3])):
            path = os.path.join(self.dir, f"{i}.sprof")
            with self.subTest(size=size):
                self.assertEqual(os.path.exists(path), n == "1")
                self.assertTrue(n == "1" or size < 32, n)
                if n == "1":
                    full += self.check_file(path)
        return full

    def check_file(self, path):
        """Was its disk full?"""
        profile = harness.Profile(path)
        lost = profile.json["losses"]["samples_file_full"]
        self.assertEqual(profile.samples + lost, profile.exact[1])
        self.assertGreaterEqual(profile.exact[1], OBJECTS)
        self.assertEqual(profile.end, "clean")
        return lost > 0

    def test_disks_of_all_sizes(self):
        """Full at 12 places: while the file is made, in the middle, never."""
        sizes = [4 * n for n in (1, 2, 3, 4, 5, 6, 8, 11, 17, 40, 90, 1000)]
        self.assertGreater(self.sized(sizes), 3)
        naive = harness.target("libprogram_hazard_naive.so")
        self.scripted(
            f"mount -t tmpfs -o size=40k none {self.disk} && "
            f"NAIVE=sparse NAIVE_OUT={self.disk}/naive LD_PRELOAD={naive} "
            f"{self.plain} {OBJECTS} 7; test $? -gt 128")

    @unittest.skipUnless(DISKS, "the long form: SAMPLEPROF_TEST_DISKS=200")
    def test_disks_of_random_sizes(self):
        """The whole profile has some 180 KiB."""
        draw = random.Random(1)
        full = 0
        for _ in range(0, DISKS, 20):
            full += self.sized([4 * draw.randint(1, 50) for _ in range(20)])
        print(f"{DISKS} disks, {full} full while it ran", flush=True)
        self.assertGreater(full, DISKS // 2)

    # ---- slow ----

    def on_slow_disk(self, size_mib, when="1+"):
        """The profile of the target on a disk of that size that may copy, by
        its kind, and that takes 2 ms to make a page ready for a store."""
        layers = os.path.join(self.dir, "layers")
        copy = os.path.join(self.dir, f"{size_mib}.sprof")
        lines = self.scripted(
            f"mkdir -p {layers} && "
            f"mount -t tmpfs -o size={size_mib}m none {layers} && "
            f"cd {layers} && mkdir low up work && "
            f"mount -t overlay -o lowerdir=low,upperdir=up,workdir=work none "
            f"{self.disk} || exit {CANNOT_MOUNT}; cd {self.dir}; "
            f"{slowed(2000, when)} {self.under} {self.plain} {SLOW_OBJECTS} 7; "
            f"echo $?; "
            f"cp --sparse=always {self.disk}/a.sprof {copy}",
            clean=False)
        if lines.returncode == CANNOT_MOUNT:
            self.skipTest(f"no overlay here: {lines.stderr.decode()}")
        self.assertEqual(lines.stdout.decode().split(), ["hello", "7"])
        return harness.Profile(copy)

    def test_slow_disks(self):
        """With room enough a slow answer is only slow, and all is recorded.
        With little room it says nothing: what was asked for may have been
        written out meanwhile.  Then nothing is stored, not even the end."""
        profile = self.on_slow_disk(64)
        self.assertEqual(profile.end, "clean")
        self.assertEqual(profile.lost(), {})
        self.assertGreaterEqual(profile.exact[1], SLOW_OBJECTS)
        self.assertEqual(profile.samples, profile.exact[1])
        profile = self.on_slow_disk(8)
        self.assertNotEqual(profile.end, "clean")
        self.check_open(profile)

    def check_open(self, profile):
        """It says that nobody knows how much is missing."""
        self.assertIsNone(profile.json["exact"]["missing_bytes_max"])
        self.assertFalse(profile.json["exact"]["is_complete"])
        self.assertTrue(profile.json["whole"]["full"])
        self.assertEqual(profile.json["whole"]["why_not"],
                         "its disk was nearly full")
        for figure in ("alloc_bytes", "live_bytes", "view_bytes"):
            self.assertIsNone(profile.json["estimate"][figure]["hi"], figure)

    def test_disks_that_are_slow_for_a_while(self):
        """What had no room meanwhile is counted, and the end tells all."""
        profile = self.on_slow_disk(8, when="300..311")
        self.assertEqual(profile.end, "clean")
        lost = profile.lost()
        self.assertGreater(lost["samples_file_full"], 0)
        self.assertNotIn("pages_without_room", lost)
        self.assertTrue(profile.json["exact"]["is_complete"])
        self.assertGreaterEqual(profile.exact[1], SLOW_OBJECTS)
        self.assertEqual(profile.samples + lost["samples_file_full"],
                         profile.exact[1])

    @harness.nightly
    def test_slow_and_full_xfs(self):
        """What this file system has found room for stays where it is."""
        profile = self.on_image("xfs", slow=slowed(1000), period=100000)
        profile.require_samples(100)
        self.assertEqual(profile.end, "clean")
        self.assertGreaterEqual(profile.exact[1], 32000)

    # ---- written again ----

    def on_image(self, name, more="", slow="", period=1):
        """The profile of the target that fills its disk, on a file system of
        that kind, with `more` libraries preloaded; None: it stayed in one
        store."""
        size, (mkfs, *options), package = IMAGES[name]
        image = os.path.join(self.dir, name)
        with open(image, "wb") as f:
            f.truncate(size)
        program = harness.target("program_hazard_resources")
        copy = os.path.join(self.dir, name + ".sprof")
        mkfs = " ".join((harness.require(mkfs, package), *options))
        result = self.scripted(
            f"{mkfs} {image} >&2 || exit 98; "
            f"mount -o loop {image} {self.disk} || exit {CANNOT_MOUNT}; "
            f"timeout -s KILL {STORE_S} {slow} {self.under} {program} full_disk "
            f"{self.disk}/fill; e=$?; "
            f"cp --sparse=always {self.disk}/a.sprof {copy}; "
            f"umount {self.disk}; exit $e",
            clean=False, more=more, period=period, REFUSE="16:1")
        if result.returncode == CANNOT_MOUNT:
            self.skipTest(f"cannot mount {name} here: "
                          f"{result.stderr.decode()}")
        if result.returncode == KILLED and name == "btrfs":
            return None
        self.assertEqual((result.returncode, result.stdout), (0, b"full\n"),
                         result.stderr)
        return harness.Profile(copy)

    def check_recorded(self, profile):
        """What was recorded before the disk was full; and what came then is
        missing, and not more."""
        self.assertEqual(profile.allocated_under("before")[1], 8000)
        self.assertEqual(profile.end, "clean")
        lost = profile.json["losses"]["samples_file_full"]
        self.assertGreaterEqual(profile.exact[1], 32000)
        self.assertEqual(profile.samples + lost, profile.exact[1])

    @harness.nightly
    def test_full_file_systems(self):
        """A page that was written out and is stored to again: on these it
        stays where it is, and everything is known."""
        for name in ("ext4", "xfs"):
            with self.subTest(file_system=name):
                self.check_recorded(self.on_image(name))

    def is_known(self, profile):
        return profile.allocated_under("before")[1] == 8000 and \
            profile.exact[1] >= 7900

    @harness.nightly
    def test_full_file_system_that_copies_on_write(self):
        """The page gets another place, for which there is no room: SIGBUS, if
        nobody asks first.  What was recorded is read; totals are known as far
        as they could be written.

        The kernel may write the page out between the question and the store,
        and on a busy machine it does: the store asks by itself then, which
        btrfs may begin anew for minutes.  So one run of five has to pass; none
        may end by a signal of its own."""
        for more in ("", harness.target("libprogram_hazard_refuse.so")):
            with self.subTest(may_ask_for_no_copies=not more):
                for _ in range(5):
                    profile = self.on_image("btrfs", more)
                    if profile and self.is_known(profile):
                        break
                else:
                    self.fail("nothing is known of five runs")

    @harness.nightly
    def test_nearly_full_file_system_that_copies_on_write(self):
        """With room for a few pages: what the totals say is so."""
        mkfs = harness.require("mkfs.btrfs", "btrfs-progs")
        image = os.path.join(self.dir, "btrfs")
        copy = os.path.join(self.dir, "btrfs.sprof")
        for left_kib in (300, 700, 2000):
            with open(image, "wb") as f:
                f.truncate(320 << 20)
            result = self.scripted(
                f"{mkfs} -q {image} >&2 || exit 98; "
                f"mount -o loop {image} {self.disk} || exit {CANNOT_MOUNT}; "
                f"cd {self.disk}; dd if=/dev/zero of=fill bs=64K; "
                f"truncate -s -{left_kib}K fill; sync -f .; cd /; "
                f"timeout -s KILL {STORE_S} {self.under} {self.plain} 60000 7; "
                f"e=$?; cp --sparse=always {self.disk}/a.sprof {copy}; "
                f"umount {self.disk}; exit $e", clean=False)
            if result.returncode == CANNOT_MOUNT:
                self.skipTest(f"cannot mount: {result.stderr.decode()}")
            if result.returncode == KILLED:
                continue
            self.assertEqual(result.returncode, 7, result.stderr)
            profile = harness.Profile(copy)
            exact = profile.json["exact"]
            with self.subTest(left_kib=left_kib, exact=exact):
                if exact["missing_bytes_max"] is not None:
                    self.assertGreaterEqual(exact["alloc_bytes"] +
                                            exact["missing_bytes_max"],
                                            60000 * 1000)
                high = profile.json["estimate"]["alloc_bytes"]["hi"]
                self.assertTrue(high is None or high >= 60000 * 1000, high)


class DisksBeforeLinux514(Disks):
    """All of that once more where the kernel has no MADV_POPULATE_WRITE."""

    def setUp(self):
        super().setUp()
        self.under = harness.target("program_hazard_old_kernel") + " 23"
