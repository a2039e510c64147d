# SPDX-License-Identifier: MIT
"""Hazards: kernels without the system calls that the library uses."""

import os

import attaching
import harness
import hazards

# Advices of madvise(2): to back pages by storage, Linux 5.14; to empty memory
# in a child, Linux 4.14.
POPULATE, WIPE = "23", "18"


class Kernels(hazards.Case):

    def on(self, missing, *command, **options):
        """Run it where that is missing: the result, and its profiles."""
        result = self.execute(
            harness.target("program_hazard_old_kernel"), missing, *command,
            shim=False,
            env={"PRELOAD": os.environ["SAMPLEPROF_SO"],
                 "SAMPLEPROF_PERIOD": "1",
                 "SAMPLEPROF_OUT": self.dir + "/%p." + missing + ".sprof"},
            **options)
        paths = [os.path.join(self.dir, name) for name in
                 sorted(os.listdir(self.dir)) if name.endswith(".sprof")]
        return result, [harness.Profile(path) for path in paths]

    def test_no_way_to_populate(self):
        """Before Linux 5.14: nothing is missing."""
        result, (profile,) = self.on(
            POPULATE, harness.target("program_plain"), "8000", "0")
        self.assertEqual((result.stdout, result.stderr), (b"hello\n", b""))
        profile.require_samples(8000)
        self.assertEqual(profile.samples, profile.exact[1])
        self.assertEqual((profile.end, profile.lost()), ("clean", {}))

    def test_no_way_to_wipe(self):
        """Before Linux 4.14: the profile is there, and says why it does not
        know what is alive."""
        why = (b"sampleprof: it is not known what is freed: the kernel cannot "
               b"wipe memory in a forked child (MADV_WIPEONFORK, Linux 4.14)\n")
        result, (profile,) = self.on(
            POPULATE + "," + WIPE, harness.target("program_plain"), "8000", "0")
        self.assertEqual((result.stdout, result.stderr), (b"hello\n", why))
        self.assertEqual(profile.samples, profile.exact[1])
        self.assertGreaterEqual(profile.samples, 8000)
        shown = harness.report(profile.path)
        self.assertIn("\n  - it is not known what is freed: ", shown)
        self.assertIn("MADV_WIPEONFORK", shown)
        refused = harness.run_report("--view", "live",
                                     profile.path).stderr.decode()
        self.assertIn("although SAMPLEPROF_FREES was on", refused)
        self.assertNotIn("record again", refused)

    def test_children_without_wiping(self):
        """A child is told from its parent all the same, also one that no
        handler is told of."""
        for kind, counts in (("fork", (300, 40, 5)),
                             ("unannounced", (300, 40))):
            with self.subTest(kind=kind):
                result, profiles = self.on(
                    POPULATE + "," + WIPE, harness.target("program_processes"),
                    kind, *map(str, counts))
                self.assertEqual(result.returncode, 0)
                self.assertEqual(len(profiles), len(counts))
                for profile in profiles:
                    self.assertEqual(profile.json["damage"]["text"], "")
                    self.assertEqual(profile.samples, profile.exact[1])
                    os.unlink(profile.path)

    def test_no_way_at_all(self):
        """No safe way to store into the file: the program runs unprofiled,
        and the reason has its name."""
        result, profiles = self.on(
            POPULATE + ",futex", harness.target("program_plain"), "100", "0")
        self.assertEqual((result.stdout, profiles), (b"hello\n", []))
        self.assertRegex(
            result.stderr.decode(),
            r"\Asampleprof: cannot create the profile, running unprofiled: "
            r"the kernel cannot tell whether the disk is full "
            r"\(EOPNOTSUPP\): .*\n\Z")


@harness.nightly_too
class Commands(harness.Case):
    """What looks at another process is done in a safe way, or is refused with
    the reason; and the process goes on."""

    # What is missing; why attach refuses, "": it does not.  In the short list
    # several are missing at once.
    WITHOUT = harness.rounds({
        "close_range,getrandom,renameat2": "",
        "openat2,memfd_create,statx": "",
        "process_vm_writev": "the memory of process {} cannot be written",
    }, {
        "close_range": "", "getrandom": "", "memfd_create": "",
        "openat2": "", "openat2,statx": "", "renameat2": "", "statx": "",
        "openat2,memfd_create,statx": "",
        "process_vm_readv": "no memory of another process can be read here",
        "process_vm_writev": "the memory of process {} cannot be written",
    })
    OBJECTS = ("totals", 1_000_000, 1000)

    def command(self, missing, *words, code=0):
        """What it says, in one line."""
        done = attaching.run(
            *words, check=False,
            command=(harness.target("program_hazard_old_kernel"), missing,
                     attaching.COMMAND))
        self.assertEqual(done.returncode, code, (missing, words, done.stderr))
        return " ".join((done.stdout + done.stderr).split())

    def test_run(self):
        program = harness.target("program_plain")
        for missing in self.WITHOUT:
            with self.subTest(missing):
                path = os.path.join(self.dir, missing + ".sprof")
                self.command(missing, "run", "--period", "1", "--out", path,
                             program, "100", "0")
                profile = harness.Profile(path).require_samples(100)
                self.assertEqual((profile.end, profile.lost()), ("clean", {}))
                with open(path, "rb") as f:
                    self.assertIn(b"allocate", f.read(1 << 20))

    def test_attach(self):
        for missing, why in self.WITHOUT.items():
            with self.subTest(missing):
                talk = attaching.Talk(
                    self, [harness.target("program_attached_places")])
                path = os.path.join(self.dir, missing + ".sprof")
                said = self.command(missing, "attach", talk.pid, "--out", path,
                                    code=1 if why else 0)
                self.assertIn(why.format(talk.pid), said)
                self.assertEqual(os.path.exists(path), not why)
                self.assertEqual(f" {talk.pid} " in
                                 self.command(missing, "ps") + " ", not why)
                said = self.command(missing, "ctl", "--timeout", "0s",
                                    talk.pid, "mark", "x",
                                    code=1 if why else 3)
                self.assertIn("has no profile open" if why else
                              "it stays queued", said)
                self.assertIn("RSS ", self.command(
                    missing, "rss", "--timeout", "0s", talk.pid))
                self.assertEqual(talk.say("go"), self.OBJECTS)
                self.command(missing, "detach", talk.pid, code=1 if why else 0)
                self.assertEqual(talk.say("go"), self.OBJECTS)
                talk.end()
                if not why:
                    self.assertEqual(harness.Profile(path).exact,
                                     self.OBJECTS[1:])
                self.assertEqual([name for name in os.listdir("/tmp")
                                  if name.endswith(f".so.{talk.pid}")], [])
