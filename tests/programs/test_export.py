# SPDX-License-Identifier: MIT
"""The export command; pprof read by google/pprof, function by function;
speedscope and collapsed stacks; an export that fails leaves nothing."""

import collections
import gzip
import json
import math
import os
import pty
import re
import subprocess

import gopprof
import harness
import pprof_rules
from protobuf import fields, packed


def run(*arguments, code=0, **options):
    """The report tool: (standard output, what it says on standard error)."""
    done = harness.run_report(*arguments, **options)
    if done.returncode != code:
        raise AssertionError(f"{arguments}: exit {done.returncode}, expected "
                             f"{code}: {done.stderr.decode()}")
    return done.stdout, done.stderr.decode()


class Pprof:
    """profile.proto, with what every reader relies on."""

    def __init__(self, data):
        assert data[:3] == b"\x1f\x8b\x08", data[:3]
        top = fields(gzip.decompress(data))
        self.strings = [s.decode("utf-8") for s in top[6]]
        assert self.strings[0] == ""
        assert len(set(self.strings)) == len(self.strings)
        self.types = [self.value_type(t) for t in top[1]]
        (period_type,) = top[11]
        self.period_type = self.value_type(period_type)
        (self.period,), (self.time_nanos,) = top[12], top[9]
        (self.duration_nanos,) = top[10]
        self.default_type = self.strings[top[14][0]]
        self.drop_frames = self.strings[top[7][0]]
        self.comments = [self.strings[i] for i in packed(top[13][0])]
        self.mappings = self.table(top[3])
        self.functions = self.table(top[5])
        self.locations = self.table(top[4])
        self.samples = [self.sample(s) for s in top[2]]

    def value_type(self, data):
        f = fields(data)
        return self.strings[f[1][0]], self.strings[f[2][0]]

    @staticmethod
    def table(messages):
        """Messages by their ids, which are 1..N in the order of the file."""
        parsed = [fields(m) for m in messages]
        assert [m[1] for m in parsed] == [[i + 1] for i in range(len(parsed))]
        return dict(enumerate(parsed, 1))

    def sample(self, data):
        f = fields(data)
        values = packed(f[2][0])
        assert len(values) == len(self.types)
        assert all(0 <= v < 1 << 63 for v in values), values
        labels = {}
        for label in map(fields, f[3]):
            name = self.strings[label[1][0]]
            assert name not in labels
            assert self.strings[label[4][0]] == "bytes"
            labels[name] = label[3][0]
        return packed(f[1][0]), values, labels

    def lines(self, location):
        """(function, file, line), innermost first."""
        found = []
        for line in map(fields, self.locations[location][4]):
            f = self.functions[line[1][0]]
            found.append((self.strings[f[2][0]],
                          self.strings[f[4][0]] if f[4] else None,
                          line[2][0] if line[2] else 0))
        return found

    def total(self, name):
        at = [t for t, _ in self.types].index(name)
        return sum(values[at] for _, values, _ in self.samples)


class Exported(harness.Case):
    """Profiles of a C++ program that frees everything, whose standard library
    is inlined, and of a C program that leaks."""

    kept = {}

    def setUp(self):
        super().setUp()
        for name, argv in (("vector", ["program_live_vector"]),
                           ("leak", ["program_live_shapes", "leak"])):
            if name not in Exported.kept:
                result = self.execute(harness.target(argv[0]), *argv[1:],
                                      period="512", seed=3)
                result.profile().require_samples(500)
                with open(result.paths[0], "rb") as f:
                    Exported.kept[name] = f.read()
        self.paths = {}
        for name, data in Exported.kept.items():
            self.paths[name] = os.path.join(self.dir, name + ".sprof")
            with open(self.paths[name], "wb") as f:
                f.write(data)
        self.file = os.path.join(self.dir, "out")

    def export(self, form, name, *options):
        stdout, stderr = run("export", form, *options, self.paths[name], "-o",
                             self.file)
        self.assertEqual((stdout, stderr), (b"", ""))
        with open(self.file, "rb") as f:
            data = f.read()
        if form == "pprof":
            self.assert_servers_take(pprof_rules.Profile(gzip.decompress(data)))
        return data

    def assert_servers_take(self, profile):
        """Every profile that these tests export, with whatever options."""
        self.assertEqual(list(pprof_rules.parca(profile)), [])
        self.assertEqual(list(pprof_rules.pyroscope(profile)), [])

    def json(self, name, *options):
        """The report, with what its rows of allocations add up to."""
        found = harness.with_frames(json.loads(
            run("--json", *options, self.paths[name])[0]))
        whole = found if found["view"] == "alloc" else json.loads(
            run("--json", self.paths[name])[0])
        for unit in ("bytes", "objects"):
            found["estimate"]["alloc_" + unit]["value"] = sum(
                f["flat_" + unit]["value"] for f in whole["functions"])
        return found

    def assert_near(self, got, want, roundings):
        """A value is rounded once in each sample, by less than one; and parts
        of a row are cut at what was seen of them (docs/exports.md)."""
        self.assertGreater(want, 0)
        self.assertLess(abs(got - want), roundings + 1e-4 * want)


class Export(Exported):

    # ---- pprof ----

    def test_pprof_head(self):
        p = Pprof(self.export("pprof", "leak"))
        d = self.json("leak")
        self.assertEqual(p.types, [
            ("alloc_objects", "count"), ("alloc_space", "bytes"),
            ("inuse_objects", "count"), ("inuse_space", "bytes")])
        self.assertEqual(p.default_type, "alloc_space")
        self.assertEqual((p.period_type, p.period), (("space", "bytes"), 512))
        self.assertEqual(p.time_nanos, d["start_unix_ns"])
        self.assertEqual(p.duration_nanos, d["duration_ns"])
        self.assertTrue(p.comments[0].endswith("program_live_shapes leak"))
        self.assertIn(str(d["exact"]["alloc_bytes"]), p.comments[1])

    def test_pprof_mappings(self):
        for name, program in (("leak", "program_live_shapes"),
                              ("vector", "program_live_vector")):
            p = Pprof(self.export("pprof", name))
            first = p.mappings[1]
            self.assertEqual(p.strings[first[5][0]], harness.target(program))
            with open(harness.target(program), "rb") as f:
                self.assertIn(bytes.fromhex(p.strings[first[6][0]]), f.read())
            self.assertEqual([first[i] for i in (7, 8, 9)], [[1]] * 3)
            for location in p.locations.values():
                mapping = p.mappings[location[2][0]]
                self.assertLessEqual(mapping[2][0], location[3][0])
                self.assertLess(location[3][0], mapping[3][0])
                self.assertTrue(location[4] or not mapping[7])

    def test_pprof_stacks(self):
        """The call sites of the report's stacks: functions, files and lines,
        innermost first, one byte before the return address; but for those
        without a name."""
        p = Pprof(self.export("pprof", "vector"))
        self.assertTrue(p.mappings[1][10], "nothing was inlined")
        want = collections.Counter()
        for stack in self.json("vector")["stacks"]:
            want[tuple((f["function"], f["file"], f["line"] or 0)
                       for f in stack["frames"] if "+0x" not in f["function"]
                       )] += stack["samples"]
        got = {tuple(line for location in locations
                     for line in p.lines(location) if "+0x" not in line[0])
               for locations, _, _ in p.samples}
        self.assertGreater(len(want), 3)
        self.assertLessEqual(set(want), got)

    def test_pprof_totals(self):
        for name in ("leak", "vector"):
            p = Pprof(self.export("pprof", name))
            e = self.json(name)["estimate"]
            n = len(p.samples)
            self.assert_near(p.total("alloc_space"), e["alloc_bytes"]["value"],
                             n)
            self.assert_near(p.total("alloc_objects"),
                             e["alloc_objects"]["value"], n)
        e = self.json("leak")["estimate"]
        p = Pprof(self.export("pprof", "leak"))
        self.assert_near(p.total("inuse_space"), e["live_bytes"]["value"], n)
        self.assert_near(p.total("inuse_objects"), e["live_objects"]["value"],
                         n)

    def test_pprof_sizes(self):
        p = Pprof(self.export("pprof", "leak", "--size", "100-200"))
        self.assertGreater(len(p.samples), 10)
        for _, values, labels in p.samples:
            self.assertEqual(list(labels), ["bytes"])
            self.assertTrue(100 <= labels["bytes"] <= 200)
            # each of them has that size and was rounded by itself; bytes and
            # objects are each held against totals of their own
            self.assertLess(abs(values[1] - values[0] * labels["bytes"]),
                            labels["bytes"] + 1 + 0.1 * values[1])
        whole = Pprof(self.export("pprof", "leak"))
        keys = [(tuple(s), tuple(l.items())) for s, _, l in whole.samples]
        self.assertEqual(len(keys), len(set(keys)))

    def test_pprof_views(self):
        for view in ("live", "peak", "leaks"):
            p = Pprof(self.export("pprof", "leak", "--view", view))
            e = self.json("leak", "--view", view)["estimate"]
            self.assertEqual(p.default_type, "inuse_space")
            self.assert_near(p.total("inuse_space"), e["view_bytes"]["value"],
                             len(p.samples))
            self.assert_near(p.total("alloc_space"),
                             e["alloc_bytes"]["value"], len(p.samples))
        p = Pprof(self.export("pprof", "leak", "--within", "1K"))
        e = self.json("leak", "--within", "1K")["estimate"]
        self.assertEqual(p.default_type, "alloc_space")
        self.assert_near(p.total("alloc_space"), e["view_bytes"]["value"],
                         len(p.samples))
        self.assertEqual(p.total("inuse_space"), 0)

    def test_pprof_error(self):
        for view in ("alloc", "live"):
            p = Pprof(self.export("pprof", "leak", "--pprof-error", "--view",
                                  view))
            kind = "inuse" if view == "live" else "alloc"
            self.assertEqual(p.types[4:], [
                (kind + "_space_variance", "KiB^2"),
                (kind + "_samples", "count")])
            samples = [s for s in map(json.loads, self.export(
                "jsonl", "leak").splitlines()) if s["type"] == "sample" and
                (view == "alloc" or s["freed_ns"] is None)]
            want = collections.Counter()
            for s in samples:
                want[s["stack"], s["size"]] += (
                    s["weight_bytes"] ** 2 * (1 - s["p"]) / 2**20)
            # Each is rounded up or down, by less than 1 KiB^2, and so differ
            # the first, the second, ... of both in order.
            got = sorted(values[4] for _, values, _ in p.samples if values[5])
            self.assertEqual(len(got), len(want))
            self.assertGreater(sum(got), 0)
            for a, b in zip(got, sorted(want.values())):
                self.assertLess(abs(a - b), 1 + 1e-9 * b)
            self.assertEqual(p.total(kind + "_samples"), len(samples))

    def test_pprof_folding(self):
        whole = Pprof(self.export("pprof", "vector"))
        n_stacks = len({tuple(s) for s, _, _ in whole.samples})
        for most in (n_stacks, 3, 1):
            p = Pprof(self.export("pprof", "vector", "--max-samples", most))
            self.assertLessEqual(len(p.samples), most)
            stacks = {tuple(s) for s, _, _ in p.samples}
            self.assertEqual(len(stacks), len(p.samples))
            self.assert_near(p.total("alloc_space"),
                             whole.total("alloc_space"),
                             len(p.samples) + len(whole.samples))
            others = [s for s, _, _ in p.samples
                      if p.lines(s[0])[0][0] == "[other]"]
            self.assertEqual(len(others), most < n_stacks)
            self.assertEqual(f"[other] stands for {n_stacks - most + 1} call "
                             "stacks" in p.comments, most < n_stacks)

    def test_pprof_without_frees(self):
        result = self.execute(harness.target("program_live_shapes"), "leak",
                              period="512", frees="off")
        result.profile().require_samples(500)
        run("export", "pprof", result.paths[0], "-o", self.file)
        with open(self.file, "rb") as f:
            p = Pprof(f.read())
        self.assertEqual([t for t, _ in p.types],
                         ["alloc_objects", "alloc_space"])
        self.assertIn("frees were not recorded", " ".join(p.comments))
        self.assertIn("SAMPLEPROF_FREES=on", run("export", "pprof", "--view", "live",
                                   result.paths[0], "-o", self.file,
                                   code=1)[1])

    def test_pprof_rules_of_servers(self):
        """Each rule refuses the fault that is planted for it."""
        data = gzip.decompress(self.export("pprof", "leak"))

        def planted(change):
            profile = pprof_rules.Profile(data)
            change(profile)
            return {*pprof_rules.parca(profile),
                    *pprof_rules.pyroscope(profile)}

        def sample(part, item):
            return lambda p: p.samples[0][part].append(item)

        for change, said in (
                (lambda p: p.strings.reverse(), "the first string"),
                (lambda p: p.mappings[0].__setitem__(0, 2), "mapping id is"),
                (lambda p: p.functions.reverse(), "function id is not"),
                (lambda p: p.locations.pop(0), "location id is not"),
                (lambda p: p.functions[0].__setitem__(0, 0),
                 "function id is 0"),
                (lambda p: p.locations.append((0, 0, [])), "location id is 0"),
                (lambda p: p.mappings[0].__setitem__(1, 1 << 40),
                 "mapping has an invalid string"),
                (lambda p: p.functions[0].__setitem__(3, 1 << 40),
                 "function has an invalid string"),
                (lambda p: p.mappings.pop(), "invalid mapping"),
                (lambda p: p.functions.pop(), "invalid function"),
                (lambda p: p.types.clear(), "no sample type"),
                (lambda p: p.types.pop(), "one value for each type"),
                (sample(0, 0), "invalid location"),
                (sample(0, 1 << 40), "invalid location"),
                (sample(1, 1), "one value for each type"),
                (sample(2, [0, 0]), "invalid label"),
                (sample(2, [1, 1 << 40]), "invalid label"),
                (lambda p: p.samples[0][2].extend([[1, 0]] * 100),
                 "too many labels"),
                (lambda p: p.samples[0][0].extend([1] * 1000),
                 "stack is cut off"),
                (lambda p: p.samples.extend(p.samples[:1] * 16000),
                 "too many samples"),
                (lambda p: p.strings.append(b"x" * 65536), "name is cut off"),
                (lambda p: p.strings.__setitem__(p.types[0][0], b"in-use"),
                 "contains -"),
                (lambda p: setattr(p, "size", (4 << 20) + 1), "too big")):
            reasons = planted(change)
            self.assertTrue(any(said in r for r in reasons), (said, reasons))

    def test_pprof_for_a_limited_server(self):
        """A profile of 20,000 call stacks fits with --max-samples 16000."""
        result = self.execute(harness.target("program_page_stacks"), 20000,
                              period="1")
        self.paths["many"] = result.paths[0]
        run("export", "pprof", result.paths[0], "-o", self.file)
        with open(self.file, "rb") as f:
            whole = pprof_rules.Profile(gzip.decompress(f.read()))
        self.assertEqual(list(pprof_rules.parca(whole)), [])
        self.assertIn("too many samples", list(pprof_rules.pyroscope(whole)))
        self.export("pprof", "many", "--max-samples", 16000)

    def test_pprof_again(self):
        """The same file gives the same bytes, another process others."""
        first = self.export("pprof", "leak")
        self.assertEqual(first, self.export("pprof", "leak"))

    # ---- google/pprof ----

    def go_pprof(self, *arguments):
        return gopprof.run(self.dir, *arguments, self.file)

    def assert_same_functions(self, name, sample_type, *options):
        """google/pprof, which drops operator new and std::allocator, sees the
        same functions with the same bytes as the report."""
        p = Pprof(self.export("pprof", name, *options))
        rows, shown, total = gopprof.top(self.dir, self.file, sample_type)
        self.assertEqual(shown, total)
        self.assertEqual(total, p.total(sample_type))
        n = 0
        for f in self.json(name, *options)["functions"]:
            flat, cum = rows.get(f["name"], (0, 0))
            value = f["flat_bytes"]["value"]
            self.assertLess(abs(flat - value), len(p.samples), f["name"])
            if flat:
                self.assertLess(abs(cum - f["cum_bytes"]["value"]),
                                len(p.samples), f["name"])
            n += flat > 0
        self.assertGreater(n, 0)

    def test_go_functions(self):
        self.assert_same_functions("vector", "alloc_space")
        self.assert_same_functions("vector", "inuse_space", "--view", "peak")
        self.assert_same_functions("leak", "inuse_space", "--view", "live")

    def test_go_merges(self):
        """Profiles of several processes become one."""
        first = Pprof(self.export("pprof", "leak"))
        copy = self.file + "-1"
        os.rename(self.file, copy)
        second = Pprof(self.export("pprof", "vector"))
        text = self.go_pprof("-raw", copy)
        totals = [0, 0, 0, 0]
        for line in text.split("[dflt]")[1].split("Locations")[0].splitlines():
            row = re.match(r" *(\d+) +(\d+) +(\d+) +(\d+): ", line)
            if row:
                totals = [a + int(b) for a, b in zip(totals, row.groups())]
        self.assertEqual(totals, [first.total(t) + second.total(t)
                                  for t, _ in first.types])

    def test_go_tags_and_header(self):
        self.export("pprof", "leak", "--pprof-error")
        text = self.go_pprof("-tags")
        self.assertRegex(text, r"(?m)^ *bytes: Total ")
        text = self.go_pprof("-top")
        self.assertIn("File: program_live_shapes\n", text)
        self.assertRegex(text, r"\nBuild ID: [0-9a-f]{16,}\n")
        self.assertIn("Type: alloc_space\n", text)
        for index in range(6):
            self.assertIn("Showing nodes", self.go_pprof(
                "-top", f"-sample_index={index}"))

    # ---- speedscope ----

    def test_speedscope(self):
        d = json.loads(self.export("speedscope", "leak"))
        self.assertEqual(d["$schema"], "https://www.speedscope.app/"
                         "file-format-schema.json")
        self.assertEqual([p["name"] for p in d["profiles"]],
                         ["alloc", "live"])
        self.assertEqual(d["activeProfileIndex"], 0)
        frames = d["shared"]["frames"]
        e = self.json("leak")["estimate"]
        for p, key in zip(d["profiles"], ("alloc_bytes", "live_bytes")):
            self.assertEqual((p["type"], p["unit"], p["startValue"]),
                             ("sampled", "bytes", 0))
            self.assertEqual(len(p["samples"]), len(p["weights"]))
            self.assertEqual(sum(p["weights"]), p["endValue"])
            self.assertTrue(all(w > 0 for w in p["weights"]))
            self.assert_near(p["endValue"], e[key]["value"],
                             len(p["samples"]))
            for stack in p["samples"]:
                self.assertTrue(all(0 <= i < len(frames) for i in stack))
        self.assertIn("_start", {frames[s[0]]["name"]
                                 for s in d["profiles"][0]["samples"]})
        self.assertIn("hold", {frames[s[-1]]["name"]
                               for s in d["profiles"][1]["samples"]})

    def test_speedscope_keeps_inlines(self):
        d = json.loads(self.export("speedscope", "vector", "--view", "peak"))
        self.assertEqual(([p["name"] for p in d["profiles"]],
                          d["activeProfileIndex"]), (["alloc", "peak"], 1))
        names = [f["name"] for f in d["shared"]["frames"]]
        got = {tuple(names[i] for i in reversed(stack))
               for stack in d["profiles"][1]["samples"]}
        want = {tuple(f["function"] for f in s["frames"])
                for s in self.json("vector", "--view", "peak")["stacks"]}
        self.assertEqual(got, want)

    # ---- collapsed ----

    def test_collapsed(self):
        for name, options, key in (
                ("leak", (), "alloc_bytes"),
                ("leak", ("--metric", "objects"), "alloc_objects"),
                ("leak", ("--view", "live"), "live_bytes"),
                ("vector", ("--view", "peak"), "view_bytes")):
            lines = self.export("collapsed", name,
                                *options).decode().splitlines()
            d = self.json(name, *[o for o in options
                                  if o not in ("--metric", "objects")])
            got = {}
            for line in lines:
                stack, weight = re.fullmatch(r"(.+) ([1-9][0-9]*)",
                                             line).groups()
                self.assertNotIn(stack, got)
                got[tuple(stack.split(";"))] = int(weight)
            self.assertEqual(set(got), {
                tuple(f["function"] for f in reversed(s["frames"]))
                for s in d["stacks"]})
            want = d["estimate"][key]["value"]
            if key == "alloc_objects":
                # a row that is everything is cut at what is exact
                want = sum(json.loads(line).get("value_count", 0) for line in
                           self.export("jsonl", name).splitlines())
                self.assertGreater(want, 0.9 * d["estimate"][key]["value"])
            self.assert_near(sum(got.values()), want, len(got))

    # ---- the command ----

    def test_the_same_as_the_report(self):
        def cells(form, data):
            return [c for line in data.decode().splitlines()
                    for c in (line.split(",") if form == "csv" else [line])]

        for form in ("json", "csv"):
            ours = cells(form, self.export(form, "leak", "--view", "live"))
            theirs = cells(form, run("--" + form, "--view", "live",
                                     self.paths["leak"])[0])
            self.assertEqual(len(ours), len(theirs))
            for a, b in zip(ours, theirs):
                # Both read the file, perhaps in another order.
                self.assertTrue(a == b or math.isclose(
                    float(a), float(b), rel_tol=1e-12), (a, b))

    def test_standard_output(self):
        data, _ = run("export", "pprof", self.paths["leak"], "-o", "-")
        self.assertEqual(data, self.export("pprof", "leak"))
        master, slave = pty.openpty()
        done = subprocess.run(
            [os.environ["SAMPLEPROF_REPORT"], "export", "pprof",
             self.paths["leak"], "-o-"], stdout=slave, check=False,
            stderr=subprocess.PIPE, timeout=harness.TIMEOUT_S)
        os.close(slave)
        os.close(master)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"give -o FILE, or a pipe", done.stderr)

    def left(self):
        return sorted(set(os.listdir(self.dir)) -
                      {os.path.basename(p) for p in self.paths.values()} -
                      {n for n in os.listdir(self.dir)
                       if n.startswith("profiles")})

    def test_nothing_half(self):
        """What fails leaves the file that was there, and no other."""
        with open(self.file, "w", encoding="ascii") as f:
            f.write("before")
        for arguments, words in (
                ((self.dir + "/none", "-o", self.file), "No such file"),
                ((self.paths["leak"], "--at", "9h", "-o", self.file), "--at"),
                ((self.paths["leak"], "-o", self.dir + "/no/where"),
                 f"cannot create it: there is no directory {self.dir}/no\n"),
                ((self.paths["leak"], "-o", self.dir), "cannot create it")):
            self.assertIn(words, run("export", "pprof", *arguments,
                                     code=1)[1])
        with open(self.file, encoding="ascii") as f:
            self.assertEqual(f.read(), "before")
        self.assertEqual(self.left(), ["out"])
        self.assertIn("No space left", run(
            "export", "json", self.paths["leak"], "-o", "/dev/full",
            code=1)[1])

    def test_replaces(self):
        link = os.path.join(self.dir, "link")
        with open(self.file, "w", encoding="ascii") as f:
            f.write("before")
        os.symlink("out", link)
        run("export", "csv", self.paths["leak"], "-o", link)
        self.assertTrue(os.path.islink(link))
        with open(self.file, "rb") as f:
            self.assertIn(b"function,", f.read())
        os.unlink(link)
        self.assertEqual(self.left(), ["out"])
        for umask, mode in ((0o027, 0o600), (0o277, 0o400)):
            old = os.umask(umask)
            os.unlink(self.file)
            self.export("csv", "leak")
            os.umask(old)
            self.assertEqual(os.stat(self.file).st_mode & 0o777, mode)

    def test_usage(self):
        path = self.paths["leak"]
        for arguments, words in (
                (("export",), "which format? one of pprof, "),
                (("export", "pprof"), "no -o OUT was given"),
                (("export", "ppro", path, "-o", "x"), "there is no format ppro: did you mean pprof?"),
                (("export", "pprof", "-o", "x"), "no FILE was given"),
                (("export", "pprof", path, "-o"), "--output takes a path"),
                (("export", "pprof", path, "-ox", "--top", "3"),
                 "cannot be used with --top"),
                (("export", "pprof", path, "-ox", "--metric",
                  "objects"),
                 "pprof cannot be used with --metric objects"),
                (("export", "html", path, "-ox", "--metric", "resident"),
                 "can be used with --metric resident"),
                (("export", "csv", path, "-ox", "--max-samples", "3"),
                 "csv cannot be used with --pprof-error or --max-samples"),
                (("export", "pprof", path, "-ox", "--max-samples", "0"),
                 "takes a number above 0"),
                (("export", "collapsed", path, "-ox", "--metric", "kg"),
                 "takes bytes, objects or resident")):
            said = run(*arguments, code=2, cwd=self.dir)[1]
            self.assertIn(words, said)
            self.assertIn("try 'sampleprof-report export --help'\n", said)
        self.assertIn("export FORMAT", run(path, "-o", "x", code=2)[1])
        self.assertEqual(self.left(), [])
        text = run("export", "--help")[0].decode()
        self.assertRegex(text, r"\Ausage: sampleprof-report export ")
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
