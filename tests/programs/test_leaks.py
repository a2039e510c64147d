# SPDX-License-Identifier: MIT
"""The command leaks on a server that loses one object in a hundred: that site
is a leak, a cache of fixed size and the loaded data are not.  This holds while
it runs, after it freed everything at its end, and for a limit of `check`.  A
full redis has no leak.  False alarm: 1e-9.

The leak has 750 expected samples, so the standard error is 5 %; the bounds are
six times that.
"""

import json
import os
import subprocess

import harness


def leaks(path, *arguments):
    done = harness.run_report("leaks", *arguments, path)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def judged(path, *arguments):
    """(all of it, sites by name)"""
    code, out, err = leaks(path, "--json", *arguments)
    if code:
        raise AssertionError(err)
    answer = json.loads(out)
    return answer, {site["function"]: site for site in answer["sites"]}


class Leaks(harness.Case):

    def check_verdicts(self, path, truth):
        _, lost, everything = truth
        answer, sites = judged(path)
        self.assertEqual(sites["handle"]["verdict"], "leak", answer)
        # where others want the processor it may be undecided
        self.assertIn(sites["remember"]["verdict"], ("steady", "undecided"))
        self.assertEqual(sites["load"]["verdict"], "steady")
        self.assertEqual(answer["leaks"], 1)
        self.assertEqual(answer["sites"][0]["function"], "handle")
        self.assertEqual(sites["handle"]["path"][:3],
                         ["handle", "serve", "main"])
        self.assertEqual(sites["handle"]["path_share"], 1)
        rate = sites["handle"]["bytes_per_mib"]
        expected = lost / everything * 2**20
        self.assertLess(abs(rate["value"] / expected - 1), 0.3)
        self.assertLess(rate["lo"], rate["value"])
        self.assertLess(rate["value"], rate["hi"])
        return answer

    def check_limit(self, path, per_s):
        """It leaks at most so much in a second, as it takes no less time."""
        for limit, code, words in (
                (f"{per_s / 1000:.0f}", 3, "handle"),
                (f"{per_s * 1000:.0f}", 0, "pass")):
            done = harness.run_report("check", path, "--limit",
                                      f"leak_rate={limit}")
            self.assertEqual(done.returncode, code, done.stdout)
            self.assertIn(words, done.stdout.decode())

    def serve(self, *arguments):
        """The profile, what the server says, and what is judged while it
        waits."""
        process = self.start(
            [harness.target("program_leaky"), *arguments],
            stdin=subprocess.PIPE,
            settings={"period": 400, "seed": 7, "log": "quiet"})
        line = process.stdout.readline().decode().split()
        self.assertEqual(line[0], "served")
        truth = tuple(map(int, line[1:]))
        out = os.path.join(self.out, os.listdir(self.out)[0])
        running = self.check_verdicts(out, truth)
        result = self.finish(process)
        self.assertEqual(result.returncode, 0)
        return out, truth, running

    def test_server(self):
        out, truth, running = self.serve()
        self.assertTrue(running["running"])
        answer = self.check_verdicts(out, truth)
        self.assertFalse(answer["running"])
        self.assertIsNone(answer["teardown_ns"])
        code, text, _ = leaks(out)
        self.assertEqual(code, 0)
        self.assertIn("Leaks: they grow, and do not slow down", text)
        self.assertIn("< serve < main", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
        _, sites = judged(out, "--granularity", "module")
        self.assertIn("program_leaky", " ".join(sites))
        self.check_chosen(out)

    def check_chosen(self, out):
        """Known leaks are left out, by leaks and by a limit."""
        for option, verdict in (("--focus", "leak"), ("--ignore", None)):
            answer, sites = judged(out, option, "^handle$")
            self.assertEqual(answer["filter"][option[2:]], "^handle$")
            self.assertEqual("handle" in sites, verdict == "leak")
            self.assertEqual(answer["leaks"], int(verdict == "leak"))
        text = leaks(out, "--ignore", "^handle$")[1]
        self.assertRegex(text, r"filter +--ignore '\^handle\$': \d+ of \d+ ")
        self.assertRegex(text, r"\nNo leak (was found in these call stacks\.|"
                         r"is certain: \d+ functions? ha)")
        code, _, err = leaks(out, "--focus", "^hendle$")
        self.assertEqual(code, 1)
        self.assertIn("did you mean handle?", err)
        for limit, code, words in (
                ("leak_rate(^(?!handle$))=1M", 0, "pass"),
                ("leak_rate(^handle$)=1", 3, "handle"),
                ("leak_rate(^nothing$)=0", 0,
                 "no function that allocates matches")):
            done = harness.run_report("check", out, "--limit", limit)
            self.assertEqual(done.returncode, code, done.stdout)
            self.assertIn(words, done.stdout.decode())

    def test_limit_without_names(self):
        """What has no name may be what is meant."""
        program = os.path.join(self.dir, "stripped")
        subprocess.run(["strip", "-o", program,
                        harness.target("program_leaky")], check=True)
        path = self.execute(program, period=1).profile().path
        for limit, code, words in (("leak_rate=1", 3, "stripped+0x"),
                                   ("leak_rate(^handle$)=1", 4,
                                    "functions without names may leak more")):
            done = harness.run_report("check", path, "--limit", limit)
            self.assertEqual(done.returncode, code, done.stdout)
            self.assertIn(words, done.stdout.decode())

    def test_tidy(self):
        """What is freed at the end was lost until then."""
        out, truth, _ = self.serve("tidy")
        answer = self.check_verdicts(out, truth)
        self.assertIsNotNone(answer["teardown_ns"])
        self.check_limit(out, truth[1] / 1.5)
        # as it is asked for: all went
        answer, _ = judged(out, "--to", "end")
        self.assertEqual(answer["leaks"], 0)

    def test_few(self):
        """With 5 samples of the leak, of which 20 are wanted."""
        result = self.execute(harness.target("program_leaky"), period=100000,
                              seed=7)
        path = result.profile().require_samples().path
        answer, sites = judged(path)
        self.assertEqual(answer["leaks"], 0)
        if "handle" in sites:
            self.assertNotEqual(sites["handle"]["verdict"], "leak")
        self.assertIn("\nNo leak ", leaks(path)[1])

    def test_refused(self):
        """What cannot be judged says why."""
        result = self.execute(harness.target("program_sites"),
                              frees="off")
        code, _, err = leaks(result.profile().path)
        self.assertEqual(code, 1)
        self.assertIn("SAMPLEPROF_FREES", err)


@harness.nightly
class Redis(harness.Case):
    """A cache that is full is no leak: redis with maxmemory."""

    def test_maxmemory(self):
        """Written to four times as much as it may keep; what it says that it
        has stays where it is.  Nothing is called a leak, in any length."""
        bench = harness.require("redis-benchmark", "redis-tools")
        process, ask, socket = self.start_redis(
            settings={"period": "4K", "seed": 3})
        ask("config", "set", "maxmemory", "8mb")
        ask("config", "set", "maxmemory-policy", "allkeys-lru")
        for _ in range(4):
            subprocess.run([bench, "-s", socket, "-q", "-t", "set", "-r",
                            "1000000", "-n", "30000", "-d", "300", "-P",
                            "16"], check=True, capture_output=True,
                           timeout=harness.TIMEOUT_S)
        path = os.path.join(self.out, os.listdir(self.out)[0])
        answer, _ = judged(path)
        self.assertTrue(answer["running"])
        self.assertEqual(answer["leaks"], 0, answer["sites"][:3])
        evicted = [line for line in ask("info", "stats").splitlines()
                   if line.startswith(b"evicted_keys:")]
        self.assertGreater(int(evicted[0].split(b":")[1]), 20000)
        ask("shutdown", "nosave")
        self.finish(process)
        answer, _ = judged(path)
        self.assertEqual(answer["leaks"], 0, answer["sites"][:3])
        self.assertIn("\nNo leak ", leaks(path)[1])
