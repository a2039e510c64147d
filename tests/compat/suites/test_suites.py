# SPDX-License-Identifier: MIT
"""What the run of the suites concludes, with outcomes planted; and what it
reads in the output of each suite."""

import itertools
import unittest

import programs
from comparison import Comparison
from runner import Run

KEY = ("group", "test")


class Planted:
    """A runner whose runs have planned outcomes of one test."""

    name = "planted"

    def __init__(self, plain, without=None, under=("ok",), **facts):
        self.plans = {False: itertools.cycle(without or [plain]),
                      True: itertools.cycle(under)}
        self.plain = plain
        self.facts = {"samples": 1, "profiles": 1, **facts}
        self.runs = 0

    def run(self, suite, allocator, shim, groups=None):
        run = Run(shim)
        for name, value in self.facts.items():
            setattr(run, name, value)
        self.runs += 1
        outcome = (self.plain if self.runs == 1
                   else next(self.plans[shim]))
        run.outcomes = {("group", "other"): "ok"}
        if outcome:
            run.outcomes[KEY] = outcome
        return run


class Conclusions(unittest.TestCase):

    def conclude(self, allocator, *plan, **facts):
        runner = Planted(*plan, **facts)
        comparison = Comparison(runner, runner)
        comparison.without()
        comparison.under(allocator)
        return comparison, [f["kind"] for f in comparison.found]

    def test_same(self):
        for outcome in ("ok", "failed", None):
            comparison, kinds = self.conclude("glibc", outcome, None,
                                              (outcome,))
            self.assertEqual((comparison.bad, kinds), ([], []))
            self.assertEqual(comparison.runner.runs, 2)
        self.assertEqual(comparison.rows[1]["tests"], 1)
        comparison, _ = self.conclude("glibc", "failed", None, ("failed",))
        self.assertEqual(comparison.failing, [("planted", *KEY)])

    def test_different(self):
        for plain, under in (("ok", "failed"), ("ok", None), ("ok", "skipped"),
                             ("failed", "ok"), (None, "failed"),
                             ("ok 17 bytes", "ok 18 bytes")):
            with self.subTest(plain=plain, under=under):
                comparison, kinds = self.conclude("jemalloc", plain, None,
                                                  (under,))
                self.assertEqual(kinds, ["different"])
                self.assertEqual(comparison.bad,
                                 ["planted over jemalloc: group: test"])
                self.assertEqual(comparison.rows[1]["different"], 1)

    def test_only_sometimes_under_the_library(self):
        comparison, kinds = self.conclude("glibc", "ok", None,
                                          ("failed", "ok", "ok", "ok"))
        self.assertEqual(kinds, ["different"])
        self.assertTrue(comparison.bad)

    def test_flaky(self):
        comparison, kinds = self.conclude("glibc", "ok", ("ok", "failed"),
                                          ("failed", "ok"))
        self.assertEqual((comparison.bad, kinds), ([], ["flaky"]))

    def test_plain_run_was_the_odd_one(self):
        comparison, kinds = self.conclude("glibc", "failed", ("ok",))
        self.assertEqual((comparison.bad, kinds), ([], ["flaky"]))

    def test_allocator(self):
        comparison, kinds = self.conclude("mimalloc", "ok", ("failed",),
                                          ("failed",))
        self.assertEqual((comparison.bad, kinds), ([], ["allocator's"]))

    def test_nothing_sampled(self):
        comparison, _ = self.conclude("glibc", "ok", samples=0)
        self.assertIn("was the library loaded", comparison.bad[0])

    def test_unreadable_profile(self):
        comparison, _ = self.conclude("glibc", "ok", problems=["x: bad"])
        self.assertEqual(comparison.bad, ["planted over glibc: x: bad"])

    def test_suite_that_does_not_run(self):
        runner = Planted("failed")
        runner.run = lambda *_, **__: Run(False)
        comparison = Comparison(runner, runner)
        comparison.without()
        self.assertEqual(comparison.bad, ["planted: no test passes"])


class Outputs(unittest.TestCase):

    def read(self, suite, text, expected, group="group"):
        self.assertEqual(list(suite.outcomes(group, text)), expected)

    def test_sqlite(self):
        self.read(programs.Sqlite(), """\
attach-1.1... Ok
attach-1.2...
! attach-1.2 expected: [1]
! attach-1.2 got:      [2]
attach-1.3...a warning
 Ok
attach-1.4... Omitted
attach-1.5... Ok
attach-1.6...
Error: no such thing
""", [("attach-1.1", "ok"), ("attach-1.2", "failed"), ("attach-1.3", "ok"),
      ("attach-1.4", "skipped"), ("attach-1.5", "ok"),
      ("attach-1.6", "failed")])

    def test_redis(self):
        self.read(programs.Redis(), """\
[ok]: SET and GET (12 ms)
\x1b[0;31m[err]\x1b[0m: Expire (0 ms) in tests/unit/expire.tcl
[ignore]: not in this one
[exception]: Executing test client: closed.
[1/1 done]: unit/expire (3 seconds)
""", [("SET and GET", "ok"), ("Expire (0 ms) in tests/unit/expire.tcl",
                              "failed"),
      ("not in this one", "skipped"),
      ("Executing test client: closed.", "failed")])

    def test_redis_random_names(self):
        self.read(programs.Redis(), """\
[ok]: PSYNC2: Set #4 to replicate from #0 #3
[err]: PSYNC2: cluster is consistent after load (x = 106938)
[ok]: PSYNC2: Set #1 to replicate from #2
[ok]: PSYNC2: cluster is consistent after load (x = 72359)
""", [("PSYNC2: Set #N to replicate from #N", "ok"),
      ("PSYNC2: cluster is consistent after load (x = N)", "failed")])

    def test_zstd(self):
        self.read(programs.Zstd(), """\
===>  simple tests 
test  1 : compress 100 zeroes : OK (17 bytes : 17.00%)
test  2 : thread pool :
  5% \rtest  3 : third 0x55b71ee39c30 : OK 
PASS: basic/help.sh
FAIL: basic/version.sh
""", [("simple tests", "ok reached"),
      ("test  1 compress 100 zeroes", "ok OK (17 bytes : 17.00%)"),
      ("test  2 thread pool", "ok reached"),
      ("test  3 third an address", "ok OK"), ("basic/help.sh", "ok"),
      ("basic/version.sh", "failed")])

    def test_python(self):
        self.read(programs.Python(), """\
test_a (test.test_json.A) ... ok
test_b (test.test_json.A)
With a docstring ... FAIL
test_c (test.test_json.A) ... skipped 'why'
test_d (test.test_json.A) ... ERROR
""", [("test_a (test.test_json.A)", "ok"),
      ("test_b (test.test_json.A)", "failed FAIL"),
      ("test_c (test.test_json.A)", "skipped 'why'"),
      ("test_d (test.test_json.A)", "failed ERROR")])

    def test_zlib(self):
        self.read(programs.Zlib(), """\
prime: 7160 high water mark
uncompress(): hello, hello!
bad inflate
inflate error: -3
cmp: EOF on - which is empty
/tmp/minigzip: out of memory
""", [("prime", "ok 7160 high water mark"),
      ("uncompress()", "ok hello, hello!"), ("bad inflate", "ok"),
      ("inflate error", "failed -3"),
      ("cmp", "failed EOF on - which is empty"),
      ("/tmp/minigzip", "failed out of memory")])

    def test_lua(self):
        for text, outcome in (("...\nOK\n", "ok"), ("error\n", "failed")):
            self.read(programs.Lua(None), text, [("prints OK", outcome)],
                      "lpeg/test.lua")


if __name__ == "__main__":
    unittest.main()
