# SPDX-License-Identifier: MIT
"""A program that brings its own allocator, and is stripped: `run`, `report`,
`attach` and `rss` say that it is not seen, no total is called exact, and no
smaller period is advised.  With its symbols it is seen, and nobody says so.

False alarm: 10^-7, if one of 100,000 bytes is sampled at a period of 1T."""

import os
import subprocess
import unittest

import attaching
import harness

BRINGS = "this program brings its own allocator (jemalloc in "


def words(text):
    return " ".join(text.replace("sampleprof:", "").split())


@unittest.skipUnless(harness.MACHINE == "x86_64", "other machines")
class Brought(harness.Case):

    def waiting(self, name):
        process = self.start([harness.target(name), 1], shim=False,
                             stdin=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def test_run_and_report(self):
        for name, is_seen in (("program_brought", False),
                              ("program_brought_symbols", True)):
            path = os.path.join(self.dir, name + ".sprof")
            # A sample would say that the period is small enough.
            said = attaching.run("run", "--period", "1T", "--out", path,
                                 harness.target(name)).stderr
            report = attaching.run("report", path).stdout
            with self.subTest(name):
                self.assertEqual(BRINGS + name + ")" in words(said),
                                 not is_seen, said)
                self.assertEqual(BRINGS + name + ")" in words(report),
                                 not is_seen, report)
                self.assertEqual("SAMPLEPROF_PERIOD=" in report, is_seen)
                self.assertEqual(", exact" in report, is_seen, report)
                exact = harness.Profile(path).exact
                self.assertEqual(exact[0] >= 100 * 1000, is_seen, exact)

    def test_attach_and_rss(self):
        for name, is_seen in (("program_brought", False),
                              ("program_brought_symbols", True)):
            process = self.waiting(name)
            said = attaching.run("attach", process.pid, "--out",
                                 self.out + "/").stdout
            ledger = attaching.run("rss", process.pid).stdout
            attaching.detach(process.pid)
            path, = (os.path.join(self.out, p) for p in os.listdir(self.out))
            report = attaching.run("report", path).stdout
            os.unlink(path)
            with self.subTest(name):
                for text in said, ledger, report:
                    self.assertEqual(BRINGS in words(text), not is_seen, text)
                if not is_seen:
                    self.assertNotIn(", exact", report)


if __name__ == "__main__":
    unittest.main()
