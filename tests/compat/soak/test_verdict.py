# SPDX-License-Identifier: MIT
"""The verdict of the soak: a good run passes, and each planted fault fails its
limit and no other."""

import unittest

import verdict

MINUTES = 60
SAMPLES = 2000      # in a minute
BYTES = 30          # of file to a sample


def server(total, latency_us):
    return {"total": total, "profile": 0, "cpu_s": 1.0,
            "latency_ns": {name: int(latency_us * 1000 * i) for i, (name, _)
                           in enumerate(verdict.PERCENTILES, 1)}}


def good_rows():
    rows = []
    for minute in range(1, MINUTES + 1):
        wobble = minute % 3
        disk = (200000 + minute * SAMPLES * BYTES) // 4096 * 4096
        row = {"minute": minute, "commands": minute * 1000,
               "disk_bytes": disk, "samples": minute * SAMPLES,
               "expected_samples": minute * SAMPLES,
               "tables_bytes": 900000 + 4096 * wobble,
               "difference_bytes": 1500000 + 65536 * wobble,
               "profiled": server(30 << 20, 51 + wobble),
               "twin": server(28 << 20, 50), "second": server(28 << 20, 49)}
        row["profiled"]["profile"] = disk
        rows.append(row)
    return rows


def good_profile():
    size, objects = 100, 1000000000
    samples = verdict.expected_samples(
        {"size_classes": [{"alloc_bytes": size * objects,
                           "alloc_objects": objects}]})
    exact = size * objects
    return {"file": "x", "end": "clean", "samples": int(samples),
            "losses": {"samples_no_lane": 0},
            "damage": {"text": ""},
            "exact": {"alloc_bytes": exact, "alloc_objects": objects},
            "estimate": {"alloc_bytes": {"lo": exact * 0.99,
                                         "hi": exact * 1.01},
                         "live_bytes": {"value": 9e6}},
            "size_classes": [{"alloc_bytes": exact,
                              "alloc_objects": objects}]}


def failed(rows, profile, children=None):
    found = verdict.Verdict(rows)
    found.memory()
    found.file()
    found.latency()
    found.profile(profile, 1e7)
    found.samples(profile)
    found.children(children or [good_profile()] * 2, 2, is_switched=False)
    verdict.markdown(rows, found)
    return [c["name"] for c in found.checks if c["good"] is False]


class Checks(unittest.TestCase):

    def refused(self, start, rows=None, profile=None, children=None):
        names = failed(rows or good_rows(), profile or good_profile(),
                       children)
        self.assertEqual([n.startswith(start) for n in names], [True], names)

    def rows(self, change):
        rows = good_rows()
        for row in rows:
            change(row, row["minute"] / MINUTES)
        return rows

    def test_good(self):
        self.assertEqual(failed(good_rows(), good_profile()), [])

    def test_two_minutes(self):
        self.assertEqual(failed(good_rows()[:2], good_profile()), [])

    def test_tables_grow(self):
        def change(row, part):
            row["tables_bytes"] += int(part * 300000)
        self.refused("growth of the library's tables", self.rows(change))

    def test_large_tables(self):
        def change(row, _):
            row["tables_bytes"] = 5 << 20
        self.refused("greatest size", self.rows(change))

    def test_memory_grows_beside_the_tables(self):
        def change(row, part):
            row["difference_bytes"] += int(part * (4 << 20))
        self.refused("growth of what the profiled server", self.rows(change))

    def test_more_mapped_than_written(self):
        def change(row, _):
            row["profiled"]["profile"] += 4096
        self.refused("mapped profile", self.rows(change))

    def test_file_grows_faster(self):
        def change(row, part):
            extra = int(max(0, part - 0.5) * 4e6)
            row["disk_bytes"] += extra
            row["profiled"]["profile"] += extra
        self.refused("growth of the file", self.rows(change))

    def test_latency(self):
        for name, _ in verdict.PERCENTILES:
            with self.subTest(name=name):
                def change(row, _, name=name):
                    row["profiled"]["latency_ns"][name] *= 2
                self.refused(f"latency {name} ", self.rows(change))

    def test_latency_on_a_busy_machine(self):
        """The second twin is as slow as the profiled server."""
        def change(row, _):
            row["profiled"]["latency_ns"]["p50"] *= 4
            row["second"]["latency_ns"]["p50"] *= 4
        found = verdict.Verdict(self.rows(change))
        found.latency()
        self.assertEqual([c["good"] for c in found.checks],
                         [True, None, True, True])

    def test_profile(self):
        estimate = good_profile()["estimate"]
        for start, change in (
                ("losses", {"losses": {"samples_no_lane": 1}}),
                ("damage", {"damage": {"text": "something"}}),
                ("end", {"end": "killed"}),
                ("samples against", {"samples": 1000000}),
                ("bytes allocated", {"estimate": dict(
                    estimate, alloc_bytes={"lo": 1, "hi": 2})}),
                ("live bytes", {"estimate": dict(
                    estimate, live_bytes={"value": 2e7})})):
            with self.subTest(start=start):
                self.refused(start, profile={**good_profile(), **change})

    def test_switched(self):
        def names(switches=200, rate=380, disk=4 << 20, discarded=0.9):
            rows = self.rows(lambda row, _: row.update(
                samples_per_s=rate, disk_bytes=disk))
            profile = good_profile()
            profile["discarded_bytes"] = (discarded *
                                          profile["exact"]["alloc_bytes"])
            found = verdict.Verdict(rows)
            found.switched(switches, profile)
            return [c["name"].split(",")[0] for c in found.checks
                    if not c["good"]]
        self.assertEqual(names(), [])
        self.assertEqual(names(switches=199),
                         ["sampling stopped and started"])
        self.assertEqual(names(rate=441), ["samples per second"])
        self.assertEqual(names(rate=0), ["samples per second"])
        self.assertEqual(names(disk=(4 << 20) + 4096),
                         ["greatest size of the file on disk"])
        self.assertEqual(names(discarded=0.1),
                         ["allocations whose samples were discarded"])

    def test_period(self):
        profile = {"duration_ns": 5e9, "window_from_ns": 1e9,
                   "phases": [{"samples": 300}, {"samples": 100}]}
        self.assertEqual(verdict.samples_per_s(profile), 100)
        del profile["window_from_ns"]
        self.assertEqual(verdict.samples_per_s(profile), 80)

    def test_children(self):
        good = good_profile()
        for change in ({"damage": {"text": "something"}}, {"samples": 0},
                       {"losses": {"samples_file_full": 1}}):
            with self.subTest(change=change):
                self.refused("profiles of children",
                             children=[good, {**good, **change}])
        self.refused("profiles of children", children=[good])
        for samples, losses, is_good in ((0, {}, True), (1, {"lost": 1}, False)):
            found = verdict.Verdict(good_rows())
            found.children([{**good, "samples": samples, "losses": losses}], 1,
                           is_switched=True)
            self.assertEqual(found.checks[0]["good"], is_good)


if __name__ == "__main__":
    unittest.main()
