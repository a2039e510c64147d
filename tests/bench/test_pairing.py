#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The statistics of the benchmark and its tables: order, pairs, means, rows
that are there and rows that are not."""

import math
import random
import unittest

from pairing import (differences, geometric_mean, interval,
                     interval_of_quotient, mean_ratio, of_row, ratios, rotated,
                     run_pair, spread)
from setups import peer
from tables import document


def pair(base, row):
    return [{"wall": base, "cpu": base, "rss": 1024, "file": 0},
            {"wall": row, "cpu": row, "rss": 3072, "file": 2048}]


class Order(unittest.TestCase):
    def test_every_item_begins_once(self):
        items = ["a", "b", "c"]
        turns = [rotated(items, turn) for turn in range(6)]
        self.assertEqual([t[0] for t in turns], ["a", "b", "c"] * 2)
        for turn in turns:
            self.assertEqual(sorted(turn), items)
        self.assertEqual(rotated([], 5), [])

    def test_base_and_row_take_turns_in_going_first(self):
        for turn, order in ((0, ["base", "row"]), (1, ["row", "base"]),
                            (2, ["base", "row"])):
            ran = []

            def run(setup, ran=ran):
                ran.append(setup)
                return setup.upper()

            self.assertEqual(run_pair(run, "base", "row", turn),
                             ["BASE", "ROW"])
            self.assertEqual(ran, order)


class Figures(unittest.TestCase):
    def test_spread(self):
        self.assertEqual(spread([3, 1, 2]),
                         {"median": 2, "min": 1, "max": 3, "runs": 3})
        self.assertEqual(spread([4, 1])["median"], 2.5)

    def test_ratio_is_of_neighbours(self):
        # A machine that is three times as slow half of the time: neighbours
        # suffer alike, and the medians of all runs may not.
        rng = random.Random(7)
        pairs = []
        for _ in range(15):
            load = rng.choice([1, 3])
            pairs.append(pair(load * 2.0, load * 2.2))
        found = ratios(pairs, "wall")
        self.assertAlmostEqual(found["min"], 1.1)
        self.assertAlmostEqual(found["max"], 1.1)
        mixed = ratios([pair(1, 9), pair(4, 4), pair(10, 20)], "wall")
        self.assertEqual(mixed["median"], 2)  # of the medians: 9 / 4

    def test_row_less_base(self):
        self.assertEqual(differences([pair(1, 3), pair(2, 1)], "cpu"),
                         {"median": 0.5, "min": -1, "max": 2, "runs": 2})
        self.assertEqual(of_row([pair(1, 3)], "file")["median"], 2048)

    def test_geometric_mean(self):
        values = [0.5, 1.25, 3.0, 1.0]
        self.assertAlmostEqual(geometric_mean(values),
                               math.prod(values) ** (1 / 4))
        with self.assertRaises(ValueError):
            geometric_mean([1.0, 0.0])

    def noisy(self, rng, truth, works=8, runs=11):
        return [[pair(1.0, truth * math.exp(rng.gauss(0, 0.1)))
                 for _ in range(runs)] for _ in range(works)]

    def test_intervals_hold(self):
        # 95 % of 100: less than 85 would be by chance once in 10^4 runs.
        # Medians of 11 have a standard error of 0.037, their mean over 8
        # works of 0.013: the widths are known, too.
        rng = random.Random(9)
        held = held_quotient = 0
        for _ in range(100):
            works, others = self.noisy(rng, 1.2), self.noisy(rng, 1.1)
            low, high = interval(works, "wall")
            held += low <= 1.2 <= high
            self.assertTrue(0.02 < high - low < 0.12)
            self.assertTrue(low <= mean_ratio(works, "wall") <= high)
            low, high = interval_of_quotient(works, others, "wall")
            held_quotient += low <= 1.2 / 1.1 <= high
        self.assertGreater(held, 84)
        self.assertGreater(held_quotient, 84)

    def test_no_interval_of_one_pair(self):
        rng = random.Random(9)
        works = self.noisy(rng, 1.2) + self.noisy(rng, 1.2, 1, 1)
        self.assertIsNone(interval(works, "wall"))
        self.assertIsNone(interval_of_quotient(works[:8], works, "wall"))
        self.assertAlmostEqual(
            mean_ratio([[pair(1, 2)], [pair(2, 1)]], "wall"), 1)


class Tables(unittest.TestCase):
    def record(self, **pairs):
        return {"machine": {"cpu": "C", "cores": 2, "kernel": "K", "libc": "L",
                            "compiler": "G"},
                "versions": {}, "date": "2000-01-01", "failed": {},
                "comparisons": ["512 KiB / jump", "x / no library"],
                "works": {"one": {"group": "program", "calls": 0},
                          "two": {"group": "program", "calls": 0},
                          "pair": {"group": "loop", "calls": 9}},
                "pairs": {key.replace("__", " | 512 KiB / jump"): value
                          for key, value in pairs.items()}}

    def test_limits_are_held(self):
        text = document(self.record(one__=[pair(1, 1.005)],
                                    two__=[pair(1, 1.02)],
                                    pair__=[pair(1, 1.09)]))
        self.assertIn("wall | <= 1.08 | 1.090 | **no** |", text)
        self.assertIn("geometric mean | <= 1.01 | 1.012 | **no** |", text)
        self.assertIn("worst: two | <= 1.03 | 1.020 | yes |", text)
        self.assertIn("most, MiB | <= 2 | 2.0 | yes |", text)
        self.assertNotIn("x / no library", text)

    def test_noise_leaves_limits_open(self):
        for values, told in (([1.0, 1.005, 1.009], "yes"),
                             ([1.0, 1.005, 1.02], "open"),
                             ([1.02, 1.03, 1.04], "**no**")):
            text = document(self.record(one__=[pair(1, v) for v in values]))
            self.assertIn(f"geometric mean | <= 1.01 | {values[1]:.3f} "
                          f"({values[0]:.3f} to {values[2]:.3f}) | {told} |",
                          text)

    def test_every_allocation_beside_heaptrack(self):
        record = self.record()
        names = "every byte / no library", "heaptrack / no library"
        record["comparisons"] = names
        for work, ours, theirs in (("one", 3, 6), ("two", 8, 4)):
            for name, row in zip(names, (ours, theirs)):
                record["pairs"][f"{work} | {name}"] = [pair(2, row)] * 3
        text = document(record)
        self.assertIn("| one | 2.00 | 3.00 | 6.00 | 0.50 | 2.00 | 3.00 | 6.00 "
                      "| 0.50 | 1 | 3 | 3 |", text)
        self.assertIn("| two | 2.00 | 8.00 | 4.00 | 2.00 |", text)
        self.assertIn("| geometric mean |  |  |  | 1.00 |", text)
        del record["pairs"]["two | heaptrack / no library"]
        text = document(record)
        self.assertNotIn("| two | 2.00 | 8.00", text)
        self.assertIn("| geometric mean |  |  |  | 0.50 |", text)

    def test_instructions_of_programs(self):
        record = self.record()
        record["whole"] = {"one": {"jump": 100, "512 KiB": 102, "off": 101},
                           "two": {"jump": 100, "512 KiB": 104}}
        text = document(record)
        self.assertIn("| 512 KiB / jump | 1.0300 | 1.0200 | 1.0400 |", text)
        self.assertIn("| off / jump | 1.0100 | 1.0100 |  |", text)

    def test_nothing_measured(self):
        self.assertNotIn("|", document(self.record()))

    def test_reasons_are_told(self):
        record = self.record()
        record["failed"] = {"two": "two is not installed"}
        self.assertIn("Not measured: two: two is not", document(record))


class Peers(unittest.TestCase):
    def test_of_the_user(self):
        setup = peer("new one=/a/lib.so A=1 'B=x y'")
        self.assertEqual((setup.name, setup.preload, setup.settings),
                         ("new one", ("/a/lib.so",), ("A=1", "B=x y")))
        self.assertEqual(setup.missing(), "/a/lib.so")
        self.assertEqual(setup.assignments("/o/"),
                         ["A=1", "B=x y", "LD_PRELOAD=/a/lib.so"])
        for text in ("", "name", "name="):
            with self.assertRaises(ValueError):
                peer(text)


if __name__ == "__main__":
    unittest.main()
