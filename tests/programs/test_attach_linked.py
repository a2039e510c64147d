# SPDX-License-Identifier: MIT
"""`sampleprof attach` to programs whose allocator is in the executable: totals
to the byte, and each byte of code as it was after a detach."""

import os
import unittest

import attaching
import harness

ROUNDS = int(os.environ.get("SAMPLEPROF_TEST_ATTACH", harness.rounds(3, 250)))
READ_EACH = 10  # a profile, of those whose totals are known

# How the allocator is called, and how many rounds its memory is enough for.
PROGRAMS = (("static_jemalloc", "malloc (jemalloc)", ROUNDS),
            ("static_tcmalloc_minimal", "malloc", ROUNDS),
            ("prefix", "je_malloc (jemalloc)", min(ROUNDS, 20)),
            ("bump", "malloc", min(ROUNDS, 5)))


def code(pid):
    """What the process may execute, of files, but our library, which stays."""
    found = {}
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, \
            open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            span, rights, _, _, inode, *name = line.split(None, 5)
            if "x" not in rights or inode == "0" or "sampleprof" in name[0]:
                continue
            start, end = (int(x, 16) for x in span.split("-"))
            memory.seek(start)
            found[start] = memory.read(end - start)
    return found


@unittest.skipUnless(harness.MACHINE == "x86_64", "other machines")
class Linked(harness.Case):

    def attach(self, talk, *options):
        return attaching.attach(talk.pid, self.out + "/", *options)[0]

    @harness.nightly_too
    def test_rounds(self):
        """Its own functions, and what the loader tells debuggers."""
        for name, allocator, rounds in PROGRAMS:
            with self.subTest(name):
                self.rounds(name, allocator, rounds)

    def rounds(self, name, allocator, rounds):
        talk = attaching.Talk(self, [
            harness.target("program_attached_" + name), 2])
        before = code(talk.pid)
        for i in range(rounds):
            path = self.attach(talk, "--period", "64K")
            self.assertNotEqual(code(talk.pid), before)
            talk.say("go")
            truth = talk.say("stop")
            attaching.detach(talk.pid)
            after = code(talk.pid)
            self.assertEqual([a for a in before if after[a] != before[a]], [])
            if i % READ_EACH == 0:
                profile = harness.Profile(path).require_samples()
                self.assertEqual((profile.end, profile.exact, profile.lost()),
                                 ("detached", truth[1:], {}))
                self.assertEqual(profile.settings["allocator.linked"],
                                 allocator)
            os.unlink(path)
        talk.end()

    def test_live(self):
        """What is freed of it, and what stays."""
        talk = attaching.Talk(self, [
            harness.target("program_attached_static_jemalloc"), 1])
        talk.say("old")
        path = self.attach(talk, "--period", "1")
        talk.say("free")
        talk.say("keep")
        attaching.detach(talk.pid)
        profile = harness.Profile(path)
        self.assertEqual(profile.exact, (10_000_000, 1))
        self.assertEqual(profile.json["estimate"]["live_bytes"]["value"],
                         10_000_000)
        talk.end()

    def test_inside(self):
        """A thread comes back into the bytes that would be displaced, from a
        signal handler: nothing is written before it is out of them."""
        talk = attaching.Talk(self, [harness.target("program_attached_inside")])
        before = code(talk.pid)
        done = attaching.run("attach", talk.pid, "--out", self.out + "/",
                             check=False, tries=1)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not all of its threads could be stopped outside the "
                      "first bytes of its allocator",
                      " ".join(done.stderr.split()))
        self.assertEqual(code(talk.pid), before)
        self.assertNotIn(str(talk.pid), attaching.run("ps").stdout)
        talk.say("on")
        path = self.attach(talk)
        truth = talk.say("go")
        attaching.detach(talk.pid)
        self.assertEqual(code(talk.pid), before)
        self.assertEqual(harness.Profile(path).exact, truth[1:])
        talk.end()

    @harness.nightly_too
    def test_busy(self):
        """While more threads than processors do nothing but allocate."""
        talk = attaching.Talk(self, [
            harness.target("program_attached_static_jemalloc"), 8])
        before = code(talk.pid)
        talk.say("go")
        for _ in range(ROUNDS):
            path = self.attach(talk, "--period", "32K")
            attaching.detach(talk.pid)
            self.assertEqual(code(talk.pid), before)
            os.unlink(path)
        talk.say("stop")
        talk.end()


if __name__ == "__main__":
    unittest.main()
