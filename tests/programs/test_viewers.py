# SPDX-License-Identifier: MIT
"""Exports opened by unmodified viewers: Valgrind's dh_view and ms_print,
jeprof, google-pprof.  JSON Lines add up: exact at period 1, equal to `--json`
at 4 KiB.

At period 1 every figure is exact and must equal the program's own count.  At 4
KiB figures must equal those of --json, up to a stated rounding.  Readers of
heap_v2 make the estimates of p3.
"""

import collections
import json
import os
import re
import subprocess

import harness
from harness import report
from test_live import held_by

VIEWER = "/usr/libexec/valgrind/dh_view.js"
HERE = os.path.dirname(os.path.abspath(__file__))
# Objects of several periods are not below their size one by one, which rows
# of them and small ones together need not cut: so much of the sum at most.
CUT = 1e-4
PPROFS = (("jeprof", "libjemalloc-dev"),
          ("google-pprof", "google-perftools"))


def weighted(path, *arguments):
    """The sums of weights, which exports are made of, and the end of time."""
    found = json.loads(report("--json", "--estimator", "p3", *arguments,
                              path))
    estimate = found["estimate"]
    return {name: estimate[name]["value"] if estimate[name] else None
            for name in ("alloc_bytes", "alloc_objects", "live_bytes",
                         "live_objects")} | {
        "peak_bytes": estimate["peak_bytes"] and
        estimate["peak_bytes"]["uncorrected"]}


def shown(path, *arguments):
    """What the rows of the report add up to, of which exports are made."""
    views = ("alloc", "live", "peak")
    found = [json.loads(report("--json", "--view", view, *arguments, path))
             for view in views[:3 if weighted(path)["live_bytes"] is not None
                               else 1]]
    want = {f"{view}_{unit}": sum(f[f"flat_{unit}"]["value"]
                                  for f in one["functions"])
            for view, one in zip(views, found) for unit in ("bytes", "objects")}
    # A row that has all objects is cut at their number, its parts are not.
    lines = map(json.loads, report("export", "jsonl", "--view", "alloc",
                                   *arguments, path, "-o", "-").splitlines())
    parts = sum(line.get("value_count", 0) for line in lines)
    if parts > want["alloc_objects"]:
        exact = found[0]["exact"]["alloc_objects"]
        assert want["alloc_objects"] > 0.999 * min(exact, parts), (want, parts)
        want["alloc_objects"] = parts
    return want


class Viewers(harness.Case):

    def profile_of(self, *arguments, program="program_live_shapes", **settings):
        result = self.execute(harness.target(program), *arguments,
                              **settings)
        profile = result.profile()
        profile.require_samples(40)
        return held_by(result).get(result.pid), profile

    def export(self, fmt, profile, *arguments):
        """Path of the export."""
        out = os.path.join(self.dir, f"out.{fmt}")
        report("export", fmt, *arguments, profile.path, "-o", out)
        return out

    def run_reader(self, *argv):
        done = subprocess.run(argv, capture_output=True, cwd=self.dir,
                              timeout=harness.TIMEOUT_S, check=False,
                              env=dict(os.environ, LC_ALL="C"))
        self.assertEqual(done.returncode, 0, f"{argv}: {done.stderr}")
        return done.stdout.decode(), done.stderr.decode()

    # ---- dhat ----

    def dh_view(self, path):
        text, _ = self.run_reader(
            harness.require("node", "nodejs"), os.path.join(HERE, "dh_view.js"),
            harness.require(VIEWER, "valgrind"), path)
        seen = json.loads(text)
        self.assertIsNone(seen["error"])
        return seen

    def check_dhat(self, want, profile, slack):
        path = self.export("dhat", profile)
        sums = self.dh_view(path)["sums"]
        for name, field in (("alloc_bytes", "_totalBytes"),
                            ("alloc_objects", "_totalBlocks"),
                            ("peak_bytes", "_atTGmaxBytes"),
                            ("live_bytes", "_atTEndBytes"),
                            ("live_objects", "_atTEndBlocks")):
            self.assertAlmostEqual(sums[field], want[name],
                                   delta=slack and slack + CUT * want[name],
                                   msg=field)
        with open(path, encoding="utf-8") as file:
            dhat = json.load(file)
        for point in dhat["pps"]:
            self.assertGreaterEqual(point["mb"], point["gb"])
            self.assertGreaterEqual(point["mb"], point["eb"])
            self.assertGreaterEqual(point["tb"], point["mb"])
        return dhat

    def test_dhat_exact(self):
        held, profile = self.profile_of("sawtooth", period=1)
        alloc_bytes, alloc_objects = profile.exact
        # What is alive at the end is what the C library keeps.
        want = shown(profile.path)
        self.assertEqual(want["peak_bytes"], held.most)
        want |= {"alloc_bytes": alloc_bytes, "alloc_objects": alloc_objects}
        dhat = self.check_dhat(want, profile, 0)
        held_paths = [p for p in dhat["pps"]
                      if any(": hold (" in dhat["ftbl"][f] for f in p["fs"])]
        self.assertEqual(max(p["mb"] for p in held_paths), held.most)
        self.assertEqual(max(p["mbk"] for p in held_paths), 400)

    def test_dhat_estimates(self):
        _, profile = self.profile_of("cache", period=4096)
        want = shown(profile.path)
        dhat = self.check_dhat(want, profile, len(profile.stacks) + 1)
        self.assertTrue(dhat["bklt"])
        # Lifetimes once more, from the samples.
        samples = self.jsonl(profile)["sample"]
        end = profile.json["duration_ns"]
        lived = sum(s["value_count"] * ((end if s["freed_ns"] is None else
                                          s["freed_ns"]) - s["born_ns"])
                    for s in samples)
        self.assertAlmostEqual(sum(p["tl"] for p in dhat["pps"]),
                               lived / 1000, delta=len(dhat["pps"]) + 1)

    def test_dhat_without_frees(self):
        _, profile = self.profile_of("cache", period=4096, frees="off")
        seen = self.dh_view(self.export("dhat", profile))
        want = shown(profile.path)
        self.assertAlmostEqual(seen["sums"]["_totalBytes"],
                               want["alloc_bytes"],
                               delta=len(profile.stacks) + 1 +
                               CUT * want["alloc_bytes"])
        self.assertNotIn("t-gmax", seen["page"])

    # ---- massif ----

    def check_tree(self, lines):
        """A tree: children add up to their parent.  Bytes of the root."""
        match = re.fullmatch(r"( *)n(\d+): (\d+) (.+)", lines.popleft())
        self.assertIsNotNone(match)
        depth, n, size = len(match[1]), int(match[2]), int(match[3])
        below = 0
        for _ in range(n):
            self.assertTrue(lines[0].startswith(" " * (depth + 1) + "n"))
            below += self.check_tree(lines)
        if n:
            self.assertEqual(below, size)
        return size

    def massif(self, path):
        """Snapshots (time in ms, bytes, kind, tree's lines)."""
        with open(path, encoding="utf-8") as file:
            text = re.sub("#.*\n", "", file.read())
        snapshots = []
        for part in re.split("^snapshot=", text, flags=re.M)[1:]:
            lines = collections.deque(part.splitlines()[1:])
            values = dict(lines.popleft().split("=") for _ in range(5))
            self.assertEqual(values["mem_stacks_B"], "0")
            size, kind = int(values["mem_heap_B"]), values["heap_tree"]
            tree = list(lines)
            if kind != "empty":
                self.assertEqual(self.check_tree(lines), size)
            self.assertFalse(lines)
            snapshots.append((float(values["time"]), size, kind, tree))
        self.assertEqual(snapshots, sorted(snapshots, key=lambda s: s[0]))
        return snapshots

    def ms_print(self, path):
        text, errors = self.run_reader(
            harness.require("ms_print", "valgrind"), path)
        self.assertEqual(errors, "")
        return text

    def test_massif_exact(self):
        held, profile = self.profile_of("sawtooth", period=1)
        path = self.export("massif", profile)
        snapshots = self.massif(path)
        peak, = [s for s in snapshots if s[2] == "peak"]
        self.assertEqual(peak[1], held.most)
        self.assertEqual(peak[1], max(s[1] for s in snapshots))
        self.assertEqual(snapshots[-1][2], "detailed")
        self.assertEqual(snapshots[-1][1],
                         shown(profile.path)["live_bytes"])
        text = self.ms_print(path)
        self.assertIn(f"{held.most:,}", text)
        self.assertRegex(text, r"Detailed snapshots: \[\d+ \(peak\), \d+\]")
        self.assertRegex(text, r"->100\.00% .*: hold \(live_shapes\.c:\d+\)")
        self.assertRegex(text, r"->100\.00% .*: sawtooth \(live_shapes\.c:")

    def test_massif_estimates(self):
        _, profile = self.profile_of("leak", period=4096)
        want = shown(profile.path)
        path = self.export("massif", profile)
        snapshots = self.massif(path)
        peak, = [s for s in snapshots if s[2] == "peak"]
        self.assertAlmostEqual(peak[1], want["peak_bytes"], delta=1)
        self.assertAlmostEqual(snapshots[-1][1], want["live_bytes"], delta=1)
        self.assertIn("Number of snapshots: 74", self.ms_print(path))

    def test_massif_folds_what_is_small(self):
        """The parts of a big program, most of them below the threshold."""
        result = self.execute("/usr/bin/perl", "-e",
                              "use POSIX; my @a = map { { $_ => [1..9] } } "
                              "1..3000;", period=256)
        profile = result.profile().require_samples(500)
        path = self.export("massif", profile)
        self.massif(path)
        with open(path, encoding="utf-8") as file:
            self.assertRegex(file.read(), r"n0: \d+ in \d+ places, all below "
                             r"massif's threshold \(1\.00%\)")
        self.assertIn("all below massif's threshold", self.ms_print(path))

    def test_massif_needs_frees(self):
        _, profile = self.profile_of("cache", period=4096, frees="off")
        out = os.path.join(self.dir, "out.massif")
        with self.assertRaisesRegex(AssertionError, "SAMPLEPROF_FREES=on"):
            report("export", "massif", profile.path, "-o", out)
        self.assertFalse(os.path.exists(out))

    # ---- heap_v2 ----

    def totals_by(self, reader, path, *options):
        """{option: (total, {function: cum})} as the reader prints them."""
        found = {}
        for option in options:
            text, _ = self.run_reader(
                reader, "--text", "--show_bytes", "--" + option,
                harness.target("program_live_shapes"), path)
            total = re.match(r"Total: (\d+) (B|objects)\n", text)
            rows = [line.split() for line in text.splitlines()[1:]]
            found[option] = (int(total[1]),
                             {row[5]: int(row[3]) for row in rows})
        return found

    @harness.nightly_too
    def test_heap_v2_exact(self):
        _, profile = self.profile_of("leak", period=1)
        alloc_bytes, alloc_objects = profile.exact
        path = self.export("heap_v2", profile)
        want = {"alloc_space": alloc_bytes, "alloc_objects": alloc_objects,
                "inuse_space": weighted(profile.path)["live_bytes"]}
        if harness.rounds(True, False):
            del want["alloc_objects"], want["inuse_space"]
        for reader in PPROFS[:harness.rounds(1, 2)]:
            found = self.totals_by(harness.require(*reader), path, *want)
            for option, value in want.items():
                total, cum = found[option]
                self.assertEqual(total, value, (reader, option))
                held = profile.allocated_under("leak")
                if option == "alloc_space":
                    self.assertEqual(cum["leak"], held[0])

    @harness.nightly_too
    def test_heap_v2_estimates(self):
        """Sizes from 16 bytes to 15 periods at one call site."""
        _, profile = self.profile_of("leak", period=4096)
        path = self.export("heap_v2", profile)
        want = weighted(profile.path)
        names = {"alloc_space": "alloc_bytes", "inuse_space": "live_bytes",
                 "alloc_objects": "alloc_objects",
                 "inuse_objects": "live_objects"}
        if harness.rounds(True, False):
            del names["alloc_space"], names["inuse_objects"]
        for reader in PPROFS[:harness.rounds(1, 2)]:
            found = self.totals_by(harness.require(*reader), path, *names)
            for option, name in names.items():
                total, cum = found[option]
                # Readers divide what was certain to be sampled by 0.99 to 1.
                self.assertGreater(total, want[name] - 1)
                self.assertLess(total, want[name] * 1.0102)
                self.assertEqual(total, cum["hold"])
                self.assertEqual(total, cum["main"])

    @harness.nightly
    def test_heap_v2_without_frees(self):
        _, profile = self.profile_of("cache", period=4096, frees="off")
        path = self.export("heap_v2", profile)
        for reader in PPROFS[:harness.rounds(1, 2)]:
            found = self.totals_by(harness.require(*reader), path,
                                   "alloc_space", "inuse_space")
            self.assertEqual(*[total for total, _ in found.values()])
            self.assertGreater(found["alloc_space"][0], 0)

    # ---- jsonl ----

    def jsonl(self, profile, *arguments):
        """The lines by type."""
        lines = collections.defaultdict(list)
        with open(self.export("jsonl", profile, *arguments),
                  encoding="utf-8") as file:
            for line in file:
                value = json.loads(line)
                lines[value["type"]].append(value)
        self.assertEqual(list(lines)[0], "header")
        self.assertEqual(lines["header"][0]["version"], 1)
        self.assertEqual(lines["header"][0]["samples"], len(lines["sample"]))
        return lines

    def test_jsonl(self):
        _, profile = self.profile_of("cache", period=4096)
        want, values = weighted(profile.path), shown(profile.path)
        lines = self.jsonl(profile)
        samples = lines["sample"]
        self.assertEqual(len({s["id"] for s in samples}), profile.samples)
        stacks = {s["id"]: s["frames"] for s in lines["stack"]}
        for s in samples:
            self.assertTrue(0 < s["p"] <= 1)
            self.assertAlmostEqual(s["p"] * s["weight_count"], 1)
            self.assertAlmostEqual(s["p"] * s["weight_bytes"] / s["size"], 1)
            self.assertLess(s["offset"], s["size"])
            self.assertIn("hold", [f["function"] for f in stacks[s["stack"]]])
            self.assertEqual(s["entry"], "malloc")
            self.assertEqual(s["thread"], 1)
        alive = [s for s in samples if s["freed_ns"] is None]
        self.assertTrue(alive)
        for name, chosen in (("alloc", samples), ("live", alive)):
            self.assertAlmostEqual(sum(s["weight_bytes"] for s in chosen),
                                   want[name + "_bytes"], places=3)
            self.assertAlmostEqual(sum(s["weight_count"] for s in chosen),
                                   want[name + "_objects"], places=6)
            for key, of in (("value_bytes", "_bytes"),
                            ("value_count", "_objects")):
                self.assertAlmostEqual(sum(s[key] for s in chosen) /
                                       values[name + of], 1, delta=CUT)
        view = self.jsonl(profile, "--view", "live")
        self.assertEqual({s["id"] for s in view["sample"]},
                         {s["id"] for s in alive})

    # ---- what goes for several ----

    def test_a_view_is_not_lost(self):
        _, profile = self.profile_of("cache", period=4096)
        for fmt in ("dhat", "massif"):
            with self.assertRaisesRegex(AssertionError, "leave out --view"):
                self.export(fmt, profile, "--view", "live")

    def test_hostile_arguments(self):
        """They get into every file, and out of none of its lines."""
        hostile = ('"}]\nsnapshot=7\n0: 0 [0: 0] @ 0x1\n#\x1b[2J\udcff'
                   "</script>")
        result = self.execute("/usr/bin/perl", "-e",
                              "my @a = map { [1..99] } 1..999;", hostile,
                              period=256)
        profile = result.profile().require_samples(100)
        self.assertIn("snapshot=7", profile.json["command"])
        page = self.dh_view(self.export("dhat", profile))["page"]
        self.assertIn('"}]', page)
        path = self.export("massif", profile)
        self.assertEqual(len(self.massif(path)), 74)
        self.assertIn("Number of snapshots: 74", self.ms_print(path))
        with open(self.export("heap_v2", profile), "rb") as file:
            self.assertNotIn(b"\x1b", file.read())
        header, = self.jsonl(profile)["header"]
        self.assertEqual(header["command"], profile.json["command"])

    def test_selections(self):
        _, profile = self.profile_of("cache", period=4096)
        chosen = ("--size", "4K-")
        want = shown(profile.path, *chosen)
        self.assertLess(want["alloc_bytes"],
                        shown(profile.path)["alloc_bytes"])
        sums = self.dh_view(self.export("dhat", profile, *chosen))["sums"]
        self.assertAlmostEqual(sums["_totalBytes"], want["alloc_bytes"],
                               delta=len(profile.stacks) + 1 +
                               CUT * want["alloc_bytes"])
        end = self.massif(self.export("massif", profile, *chosen))[-1]
        self.assertAlmostEqual(end[1], want["live_bytes"],
                               delta=1 + CUT * want["live_bytes"])
