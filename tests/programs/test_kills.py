# SPDX-License-Identifier: MIT
"""A process that ends at any instant, in any way, loses nothing that was
committed.

libprogram_kill_log.so, preloaded before the library, logs each call of the
allocator after it has returned, in a file that the process maps (kill_log.h).
So every call in the log must be in the profile.  At most one call of each
thread, the one that it was in, may be in the profile and not in the log.

SAMPLEPROF_TEST_KILLS is the number of kills of each program: 2, 5 in the nightly
list, or 1000 in the long form (docs/contributing.md).
"""

import array
import bisect
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

import harness

KILLS = int(os.environ.get("SAMPLEPROF_TEST_KILLS", harness.rounds(2, 5)))
SEED = int(os.environ.get("SAMPLEPROF_TEST_SEED", "1"))

# targets/kill_log.h
HEAD_BYTES = 4096
REGION_BYTES = 32 << 20
FREE = 2**64 - 1
MARK_BYTES = 77777

THREADS = 9  # of either program, at most
LARGEST = 70000  # object of targets/kill_storm.c
CGROUPS = "/sys/fs/cgroup/memory"
BOUND = 8 << 20  # of a file that is too small
BEFORE = 100  # allocations of the loader and of constructors


class LoggedThread:
    """What one thread did, in order."""

    def __init__(self, tid):
        self.tid = tid
        self.sizes = []  # of its allocations; a request for 0 counts as 1
        self.is_freed = []  # each of them, as far as the log knows


class Log:
    """The truth: by thread id."""

    def __init__(self, path):
        self.threads = {}
        events = []
        with open(path, "rb") as f:
            regions, _, overflows = self.words(f, 0, 3)
            if overflows:
                raise AssertionError(f"{overflows} calls were not logged")
            for i in range(regions):
                at = HEAD_BYTES + i * REGION_BYTES
                tid, count = self.words(f, at, 2)
                words = self.words(f, at + 16, 3 * count)
                thread = self.threads.setdefault(tid, LoggedThread(tid))
                events += self.read(thread, words)
        self.match(events)

    @staticmethod
    def words(f, at, n):
        f.seek(at)
        words = array.array("Q")
        words.frombytes(f.read(8 * n))
        if len(words) != n:
            raise AssertionError(f"the log ends at {at}")
        return words

    @staticmethod
    def read(thread, words):
        events = []
        for ticket, address, size in zip(words[0::3], words[1::3],
                                         words[2::3]):
            number = None
            if size != FREE:
                number = len(thread.sizes)
                thread.sizes.append(size or 1)
                thread.is_freed.append(False)
            events.append((ticket, address, thread, number))
        return events

    @staticmethod
    def match(events):
        """Which allocation did each free end?"""
        alive = {}
        events.sort(key=lambda e: e[0])
        for _, address, thread, number in events:
            if number is not None:
                alive[address] = (thread, number)
            elif address in alive:
                owner, which = alive.pop(address)
                owner.is_freed[which] = True


class Sampled:
    """A profile's samples, each one, by thread id and in order."""

    def __init__(self, path):
        text = harness.report("export", "jsonl", "-o", "-", path)
        lines = json.loads("[" + ",".join(text.splitlines()) + "]")
        self.header = lines[0]
        tids = {x["index"]: x["tid"] for x in lines if x["type"] == "thread"}
        self.threads = {tid: [] for tid in tids.values()}
        samples = [x for x in lines if x["type"] == "sample"]
        samples.sort(key=lambda s: s["id"])
        for sample in samples:
            sample["freed_by"] = tids.get(sample["freed_by"])
            self.threads[tids[sample["thread"]]].append(sample)


def alive_in(path):
    """What a profile has alive: thread id and size of each."""
    text = harness.report("export", "jsonl", "--view", "live", "-o", "-", path)
    lines = [json.loads(line) for line in text.splitlines()]
    tids = {x["index"]: x["tid"] for x in lines if x["type"] == "thread"}
    return collections.Counter((tids[x["thread"]], x["size"])
                               for x in lines if x["type"] == "sample")


class Kills(harness.Case):

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        # In memory: a thread must not wait for a disk to note a call.
        memory = tempfile.mkdtemp(prefix="sampleprof-test-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, memory)
        self.log = os.path.join(memory, "log")

    def logged(self, argv, preload=(), **options):
        """Start a program under the log and the library."""
        if os.path.exists(self.log):
            os.unlink(self.log)
        for name in os.listdir(self.out):
            os.unlink(os.path.join(self.out, name))
        libraries = [harness.target("libprogram_kill_log.so"),
                     os.environ["SAMPLEPROF_SO"], *preload]
        settings = {"period": "1", "max_file": "1G"}
        settings.update(options.pop("settings", {}))
        return self.start(argv, settings=settings, env={
            "KILL_LOG": self.log, "LD_PRELOAD": " ".join(libraries)},
            **options)

    # ---- what must be there ----

    def check(self, result, end="killed", every=True):
        """The profile against the log; the number of samples.  `every`: each
        allocation is a sample."""
        # redis asks a child of its own about a fault of aarch64's kernels.
        path, = (p for p in result.paths if f".{result.pid}." in p)
        log = Log(self.log)
        # After a clean end the threads that still ran may have been in the
        # middle of one copy of their totals.
        profile = harness.Profile(path, damaged=end == "clean")
        self.assertEqual((profile.end, profile.lost()), (end, {}))
        self.check_damage(profile)
        sampled = Sampled(path)
        infos = {t["tid"]: t for t in profile.json["thread_infos"]}
        main = result.pid
        self.assertEqual(log.threads[main].sizes[0], MARK_BYTES)
        missing, extra_ends = 0, []
        for tid, thread in log.threads.items():
            samples = sampled.threads.get(tid, [])
            if every:
                extra_ends += self.check_samples(thread, samples,
                                                 tid == main)
            missing += self.check_totals(thread, infos.get(tid), samples,
                                         profile.json["check_in_bytes"],
                                         every)
        # Ends whose call had not returned: one for each thread.  A thread
        # that never allocated is not known by number.
        known = [tid for tid in extra_ends if tid]
        self.assertEqual(len(known), len(set(known)), known)
        self.assertLessEqual(len(extra_ends), THREADS)
        self.check_all(profile, sampled, log, missing, every)
        return profile.samples

    def check_damage(self, profile):
        """None: records and totals that were being written are no damage."""
        damage = profile.json["damage"]
        self.assertEqual((damage["records"], damage["text"]), (0, ""))
        self.assertLessEqual(profile.json["unfinished_records"],
                             3 * THREADS + 1)

    def check_samples(self, thread, samples, is_main):
        """Each logged allocation is a sample, with its end if that was
        logged; returns by whom there are ends that were not."""
        sizes = [s["size"] for s in samples]
        first = sizes.index(MARK_BYTES) if is_main else 0
        n = len(thread.sizes)
        self.assertEqual(sizes[first:first + n], thread.sizes)
        self.assertLessEqual(len(sizes) - first - n, 1)
        ends = []
        for sample, is_freed in zip(samples[first:], thread.is_freed):
            if is_freed:
                self.assertIsNotNone(sample["freed_ns"])
                self.assertFalse(sample["free_missed"])
            elif sample["freed_ns"] is not None:
                ends.append(sample["freed_by"])
        return ends

    def check_totals(self, thread, info, samples, check_in, every):
        """The thread's exact total lacks less than what it may hold back
        before it publishes: 4 KiB at first, then as much as it has published,
        a check-in at most.  Returns these bytes."""
        published = 0
        if info and info["exact"]:
            published = info["exact"]["alloc_bytes"]
        may_lack = min(check_in, max(4096, published))
        done = sum(thread.sizes)
        self.assertLess(done - published, may_lack)
        if every:
            self.assertLessEqual(published, sum(s["size"] for s in samples))
        return may_lack

    def check_all(self, profile, sampled, log, may_lack, every):
        """Totals of the process and of each size."""
        exact = profile.exact[0]
        done = sum(sum(t.sizes) for t in log.threads.values())
        self.assertLess(done - exact, may_lack)
        # What the report says of it, whatever the threads did meanwhile.
        self.assertLessEqual(done - exact,
                             profile.json["exact"]["missing_bytes_max"])
        if not every:
            return
        sizes = [s["size"] for of in sampled.threads.values() for s in of]
        self.assertLessEqual(exact, sum(sizes))
        classes = profile.json["size_classes"]
        if classes is not None:
            self.check_classes(
                classes, sizes,
                profile.json["size_percentiles"]["unclassified_bytes_max"])

    def check_classes(self, classes, sizes, slack):
        """No class has more than there was, and what a class lacks is not
        more than the report says that it may."""
        limits = [c["max_bytes"] for c in classes]
        true = [0] * len(limits)
        lacking = 0
        for size in sizes:
            at = bisect.bisect_left(limits, size)
            if at < len(limits):
                true[at] += size
            else:
                lacking += size
        # A class that is missing here counts in the next one that is not.
        for c, most in zip(classes, true):
            self.assertLessEqual(c["alloc_bytes"], most)
            lacking = max(lacking, most - c["alloc_bytes"])
        # The call of each thread that had not returned is no part of it.
        self.assertLessEqual(lacking, slack + THREADS * LARGEST)

    # ---- at any instant ----

    def kill_storm(self, most_s, **settings):
        process = self.logged([harness.target("program_kill_storm"), 8],
                              settings=settings)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        harness.wait_for_cpu(process.pid, self.random.uniform(0, most_s))
        process.kill()
        return self.finish(process)

    @harness.nightly_too
    def test_storm_of_eight_threads(self):
        samples = 0
        for n in range(KILLS):
            with self.subTest(n=n):
                result = self.kill_storm(0.02)
                self.assertEqual(result.returncode, -signal.SIGKILL)
                samples += self.check(result)
        self.assertGreater(samples, 100 * KILLS)
        print(f"{KILLS} kills, {samples} samples", flush=True)

    def check_bounded(self, result):
        """A file that has discarded most of what it was told: what is alive
        is there, and nothing else is, but for one call of each thread that
        had not returned, and what was lost and counted: threads that get no
        processor for long may find no room in so small a file."""
        path, = result.paths
        profile = harness.Profile(path)
        lost = collections.Counter(profile.lost())
        self.assertEqual(profile.end, "killed")
        self.assertLessEqual(set(lost),
                             {"samples_file_full", "frees_not_recorded"})
        self.assertLess(sum(lost.values()), profile.exact[1] / 100)
        self.check_damage(profile)
        self.assertEqual(os.stat(path).st_size, BOUND)
        truth = collections.Counter()
        for thread in Log(self.log).threads.values():
            truth.update((thread.tid, size) for size, is_freed
                         in zip(thread.sizes, thread.is_freed)
                         if not is_freed)
        # What was allocated before the log began is not in it.
        found = alive_in(path)
        missing, extra = truth - found, found - truth
        self.assertLessEqual(sum(missing.values()),
                             THREADS + lost["samples_file_full"], missing)
        self.assertLessEqual(sum(extra.values()), THREADS + BEFORE +
                             lost["frees_not_recorded"], extra)
        self.assertGreater(sum((truth & found).values()), 100)
        return profile.json["discarded_objects"]

    @harness.nightly
    def test_storm_in_a_bounded_file(self):
        """Through many turns of its ring (docs/format.md, "Segments")."""
        discarded = []
        for n in range(KILLS):
            with self.subTest(n=n):
                result = self.kill_storm(0.8, max_file=BOUND)
                self.assertEqual(result.returncode, -signal.SIGKILL)
                discarded.append(self.check_bounded(result))
        self.assertGreater(max(discarded), 10000)
        print(f"{KILLS} kills, objects discarded: {discarded}", flush=True)

    @harness.nightly_too
    def test_totals_at_the_default_period(self):
        """And that the report says how far they may be off."""
        for n in range(max(KILLS // 10, 1)):
            with self.subTest(n=n):
                result = self.kill_storm(0.1, period="512K")
                self.check(result, every=False)
                self.assertRegex(harness.report(*result.paths),
                                 r"allocated at least .* \(up to [^ ]+ .iB more\)")

    def serve(self):
        """A server with four threads for its sockets, and its load."""
        socket = os.path.join(self.dir, "redis.sock")
        server = self.logged(
            [harness.require("redis-server", "redis-server"), "--port", "0",
             "--unixsocket", socket, "--save", "", "--appendonly", "no",
             "--io-threads", "4", "--io-threads-do-reads", "yes",
             "--dir", self.dir, "--loglevel", "warning"])
        self.addCleanup(server.kill)
        harness.wait_until(lambda: os.path.exists(socket))
        # pylint: disable-next=consider-using-with
        load = subprocess.Popen(
            [harness.require("redis-benchmark", "redis-tools"), "-s", socket,
             "-n", "10000000", "-c", "20", "-P", "4", "-r", "1000", "-q",
             "-d", "100", "-t", "set,lpush,zadd"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)
        harness.wait_for_cpu(server.pid, self.random.uniform(0.01, 0.15))
        server.kill()
        result = self.finish(server)
        load.kill()
        load.wait()
        os.unlink(socket)
        return result

    @harness.nightly
    def test_redis_under_load(self):
        samples = 0
        for n in range(KILLS):
            with self.subTest(n=n):
                result = self.serve()
                self.assertEqual(result.returncode, -signal.SIGKILL,
                                 result.stderr)
                samples += self.check(result)
        self.assertGreater(samples, 1000 * KILLS)
        print(f"{KILLS} kills, {samples} samples", flush=True)

    @harness.nightly_too
    def test_while_the_process_starts(self):
        """No file, or one that is read, or one of which the report says that
        its process was stopped while it started."""
        unreadable = 0
        for n in range(3 * KILLS):
            process = self.start([harness.target("program_plain"), 100000],
                                 settings={"period": "1"})
            time.sleep(self.random.uniform(0, 0.008))
            process.kill()
            result = self.finish(process)
            for path in result.paths:
                with self.subTest(n=n):
                    done = harness.run_report(path)
                    if done.returncode:
                        unreadable += 1
                        self.assertIn(b"was stopped while it started",
                                      done.stderr)
                        with open(path, "rb") as f:
                            self.assertFalse(any(f.read(8)))
                    else:
                        self.assertIn(b"\n  view ", done.stdout)
                os.unlink(path)
        print(f"{3 * KILLS} kills, {unreadable} files without a header",
              flush=True)

    # ---- every other end ----

    @harness.nightly_too
    def test_every_end(self):
        """While seven other threads go on; in the short list each third end."""
        for how, code, end in (("return", 3, "clean"), ("exit", 3, "clean"),
                               ("_exit", 3, "killed"),
                               ("quick_exit", 3, "killed"),
                               ("abort", -signal.SIGABRT, "killed"),
                               ("segv", -signal.SIGSEGV, "killed"),
                               ("term", -signal.SIGTERM, "killed"),
                               ("kill", -signal.SIGKILL, "killed"),
                               ("exec", 0, "exec"))[
                                   harness.rounds(2, 0)::harness.rounds(3, 1)]:
            with self.subTest(how=how):
                result = self.finish(self.logged(
                    [harness.target("program_kill_storm"), 8, how, 300]))
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertGreater(self.check(result, end), 300)

    def test_killed_for_want_of_memory(self):
        group = os.path.join(CGROUPS, f"sampleprof-test-{os.getpid()}")
        try:
            os.mkdir(group)
            self.addCleanup(harness.remove_group, group)
            with open(group + "/memory.limit_in_bytes", "w",
                      encoding="ascii") as f:
                f.write(str(24 << 20))
        except OSError as error:
            self.skipTest(f"no memory cgroup to be had: {error}")

        def enter():
            with open(group + "/cgroup.procs", "w", encoding="ascii") as f:
                f.write("0")

        result = self.finish(self.logged(
            [harness.target("program_kill_storm"), 2, "oom", 300],
            preexec_fn=enter))
        self.assertEqual(result.returncode, -signal.SIGKILL, result.stderr)
        self.assertGreater(self.check(result), 300)
