# SPDX-License-Identifier: MIT
"""Memory that a program maps itself: every mapping of at least 64 KiB with its
call stack, as the program counts them: holes, moves, mappings over others,
failures, four threads at once, a signal handler that interrupts the library, a
file of 1 MiB that rotates, a child, an allocator in a library of its own, an
attached program.  `report --view mapped` and `reserved`."""

import json
import os

import attaching
import harness

KIB, MIB = 1 << 10, 1 << 20


def view(path, name="mapped", *more):
    return json.loads(harness.report("--json", "--view", name, *more,
                                 path))


def flat(page):
    """Bytes by function; each is exact."""
    rows = {}
    for f in page["functions"]:
        cell = f["flat_bytes"]
        assert cell["lo"] == cell["value"] == cell["hi"], f
        if cell["value"]:
            rows[f["name"]] = cell["value"]
    return rows


class Mapped(harness.Case):

    def run_target(self, *argv, preload=(), env=None, **settings):
        return self.execute(harness.target("program_mapped"), *argv,
                            preload=preload, env=env, **settings)

    def check_shapes(self, **how):
        result = self.run_target("shapes", **how)
        profile = result.profile()
        self.assertEqual(profile.lost(), {})
        truth = result.values()
        reserved = truth.pop("reserved")
        page = view(profile.path)
        self.assertEqual(flat(page), truth)
        self.assertEqual(page["view"], "mapped")
        self.assertEqual(flat(view(profile.path, "reserved")),
                         {"map_reserve": reserved})
        mapped = profile.json["mapped"]
        self.assertEqual(mapped["bytes"], sum(truth.values()))
        self.assertEqual(mapped["reserved_bytes"], reserved)
        self.assertEqual(mapped["mappings"], 7)
        self.assertEqual(mapped["peak_bytes"],
                         mapped["bytes"] + 100 * 64 * KIB)
        return profile

    def test_shapes(self):
        for period in "1", "1M":
            with self.subTest(period=period):
                profile = self.check_shapes(period=period)
                text = harness.report(profile.path)
                self.assertIn("by the program itself at the end: --view "
                              "mapped", " ".join(text.split()))
                text = harness.report("--view", "mapped", profile.path)
                self.assertIn("view      mapped: what is mapped at the end",
                              text)
                self.assertIn("every mapping of 64 KiB and more, exact", text)
                text = harness.report("tree", "--view", "mapped",
                                  profile.path)
                self.assertRegex(text, r"make_shapes .*\n.* map_pool ")
                for file in os.listdir(self.out):
                    os.remove(os.path.join(self.out, file))

    def test_packed(self):
        """A packed copy has the same mappings."""
        profile = self.check_shapes(period="1M")
        packed = os.path.join(self.dir, "packed.zst")
        harness.report("symbolize", profile.path, "-o", packed)
        self.assertEqual(flat(view(packed)), flat(view(profile.path)))

    def test_without_frees(self):
        """Without frees of samples, the ends of mappings are there."""
        self.check_shapes(frees="off")

    def check_storm(self, **settings):
        result = self.run_target("storm", 7, 1500, **settings)
        profile = result.profile()
        # A small file may lose samples where others want the processor.
        self.assertLessEqual(set(profile.lost()), {"samples_file_full"})
        page = view(profile.path)
        self.assertEqual(sum(flat(page).values()), result.values()["all"])
        self.assertEqual(set(flat(page)), {"map_pool", "remap"})
        self.assertEqual(len([t for t in page["thread_infos"]]), 5)
        return profile

    def test_storm(self):
        self.check_storm(period="1M")

    @harness.nightly
    def test_storm_in_small_file(self):
        """The ring turns several times."""
        # With more samples a segment may be full before the next one is there,
        # on a busy machine, and a mapping is lost then too.
        profile = self.check_storm(period="1K", max_file="2M")
        self.assertGreater(profile.json["window_from_ns"], 0)

    def test_churn(self):
        """What was mapped first is there after many turns, with its stack, and
        of times later than the window exactly."""
        result = self.run_target("churn", 20000, period="2K", max_file="1M")
        profile = result.profile()
        self.assertGreater(profile.json["window_from_ns"], 0)
        self.assertNotIn("mappings_not_recorded", profile.lost())
        truth = result.values()
        self.assertEqual(flat(view(profile.path)), truth)

    def test_signals(self):
        """The handler interrupts the library: no stack then, but the bytes are
        there, unless it interrupts the keeping of that table itself."""
        result = self.run_target("signals", 300, period="1")
        profile = result.profile()
        self.assertNotIn("mappings_not_recorded", profile.lost())
        page = view(profile.path)
        self.assertEqual(sum(flat(page).values()),
                         result.values()["handler_maps"])
        self.assertEqual(profile.json["mapped"]["made_mappings"],
                         result.values()["made"])

    def test_fork(self):
        """A child begins with none: what it inherited is its parent's."""
        result = self.run_target("fork", period="64K")
        pages = {pid: flat(view(p.path))
                 for pid, p in result.profiles().items()}
        self.assertEqual(pages.pop(result.pid), {"map_pool": 256 * KIB})
        self.assertEqual(list(pages.values()), [{"map_shared": 128 * KIB}])

    def test_allocators(self):
        """What an allocator maps is its own affair."""
        for name in "jemalloc", "mimalloc":
            with self.subTest(allocator=name):
                profile = self.check_shapes(preload=harness.allocator(name))
                os.remove(profile.path)

    def test_attach(self):
        """From then on, and until detach; what was mapped before is not
        known, also where it is unmapped."""
        talk = attaching.Talk(self, [harness.target("program_mapped"),
                                     "talk"])
        path, _ = attaching.attach(talk.pid, self.out)
        talk.say("unmap")
        self.assertEqual(flat(view(path)), {})
        talk.say("map")
        self.assertEqual(flat(view(path)), {"map_pool": 512 * KIB})
        talk.say("unmap")
        attaching.detach(talk.pid)
        self.assertEqual(flat(view(path)), {"map_pool": 384 * KIB})
        talk.say("map")
        talk.say("unmap")
        talk.end()
        self.assertEqual(flat(view(path)), {"map_pool": 384 * KIB})

    def test_at(self):
        """At a moment, and what is new."""
        profile = self.check_shapes(period="1M")
        peak = profile.json["mapped"]["peak_ns"]
        page = view(profile.path, "mapped", "--at", f"{peak}ns")
        self.assertEqual(sum(flat(page).values()),
                         profile.json["mapped"]["peak_bytes"])


if __name__ == "__main__":
    harness.unittest.main()
