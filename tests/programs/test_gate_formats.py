# SPDX-License-Identifier: MIT
"""Each format of check, and each that docs/ci.md makes of its JSON, read by an
independent reader, with hostile names."""

import json
import os
import re
import shutil
import subprocess
import xml.dom.minidom

import harness
from gate import Gate

HERE = os.path.dirname(os.path.abspath(__file__))
CI = os.path.join(HERE, "..", "..", "docs", "ci.md")

HOSTILE = "x<b>&\"'%0A|`$(id)`]]>::error::\u202e\ufffe,"


class Formats(Gate):
    """Each format through a reader of its own, with hostile names in all."""

    def setUp(self):
        super().setUp()
        program = os.path.join(self.dir, HOSTILE.replace("/", ""))
        shutil.copy(self.programs["gated"], program)
        self.new = self.record(program)
        base = os.path.join(self.dir, "base.json")
        self.report("check", self.new, "--baseline", base,
                    "--update-baseline")
        with open(base, encoding="utf-8") as f:
            baseline = json.load(f)
        # a function of hostile name that is gone
        gone = dict([p for p in baseline["views"]["alloc"]
                     if p["path"][0].startswith("site_a")][0],
                    path=[HOSTILE, "main"])
        baseline["views"]["alloc"].append(gone)
        with open(base, "w", encoding="utf-8") as f:
            json.dump(baseline, f)
        self.limits = os.path.join(self.dir, "limits,%:x")
        with open(self.limits, "w", encoding="utf-8") as f:
            f.write("alloc_bytes = +1%\n"
                    "site(<&\"'>%|^keeper$)=+1%\n"
                    "sites = +-50%\n"
                    "peak_bytes = 1K\n"
                    "alloc_bytes@<b> = +1%\n")
        self.new = self.record(program, seed=2)
        self.words = ("check", self.new, "--baseline", base, "--limits",
                      self.limits)

    def test_all(self):
        for name in ("text", "junit", "github", "summary", "metrics", "json",
                     "series"):
            with self.subTest(name):
                getattr(self, "read_" + name)()

    def write(self, form):
        text = self.report(*self.words, "--format", form, code=3)
        self.is_clean(text)
        return text

    def is_clean(self, text):
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")

    def cook(self, form):
        """What the recipe in docs/ci.md prints, of heap/check.json; the option
        of the same name says that there is one."""
        harness.require("jq", "jq")
        self.assertIn(f"the jq recipe for {form} in docs/ci.md",
                      harness.report(*self.words, "--format", form + "=x",
                                     code=2))
        heap = os.path.join(self.dir, "heap")
        os.makedirs(heap, exist_ok=True)
        self.report(*self.words, "--format", f"json={heap}/check.json", code=3)
        with open(CI, encoding="utf-8") as f:
            block = re.search(rf"<!-- try: {form} -->\n\n```\w+\n(.*?)```",
                              f.read(), re.S).group(1)
        if form == "gitlab":
            import yaml  # pylint: disable=import-outside-toplevel
            block = "\n".join(yaml.safe_load(block)["heap"]["after_script"] +
                              ["cat heap/metrics.txt"])
        text = subprocess.run(["bash", "-ec", block], cwd=self.dir,
                              capture_output=True, check=True).stdout.decode()
        self.is_clean(text)
        return text

    def read_text(self):
        text = self.write("text")
        self.assertRegex(text, "REGRESSION +peak_bytes")
        self.assertRegex(text, "IMPROVED +sites")
        self.assertRegex(text, r"gone\s+x(<b>|\.\.\.)")
        self.assertRegex(text, "CANNOT TELL +alloc_bytes@<b>")

    def read_junit(self):
        path = os.path.join(self.dir, "junit.xml")
        self.report(*self.words, "--format", "junit=" + path, code=3)
        done = subprocess.run(
            [harness.require("xmllint", "libxml2-utils"), "--noout",
             "--schema", os.path.join(HERE, "junit.xsd"), path],
            capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        suites = xml.dom.minidom.parse(path)
        suite = suites.getElementsByTagName("testsuite")[0]
        self.assertEqual([suite.getAttribute(a) for a in
                          ("tests", "failures", "errors")], ["5", "2", "2"])
        cases = suites.getElementsByTagName("testcase")
        self.assertEqual(cases[1].getAttribute("name"),
                         "site(<&\"'>%|^keeper$)=+1%")
        self.assertIn("x<b>&\"'%0A", cases[2].toxml()
                      .replace("&lt;", "<").replace("&gt;", ">")
                      .replace("&quot;", '"').replace("&amp;", "&"))
        # the schema does refuse something
        with open(path, encoding="utf-8") as f:
            bad = f.read().replace(" classname=", " class=")
        with open(path, "w", encoding="utf-8") as f:
            f.write(bad)
        self.assertNotEqual(subprocess.run(
            ["xmllint", "--noout", "--schema",
             os.path.join(HERE, "junit.xsd"), path], capture_output=True,
            check=False).returncode, 0)

    def test_undecided(self):
        """What cannot be told, as an error, a warning, or nothing."""
        path = os.path.join(self.dir, "junit.xml")
        for kind, counts, lines, status in (
                ("fail", ["0", "1", "0"], 1, 4),
                ("warn", ["0", "0", "1"], 1, 0),
                ("pass", ["0", "0", "0"], 0, 0)):
            text = self.report(
                "check", self.new, "--limit", "alloc_bytes=1G", "--limit",
                "alloc_bytes@x=1K", "--undecided", kind, "--format", "github",
                "--format", "junit=" + path, "--format",
                "text=" + path + ".txt", code=status)
            self.assertEqual(text.count("::warning "), lines)
            suite = xml.dom.minidom.parse(path).getElementsByTagName(
                "testsuite")[0]
            self.assertEqual([suite.getAttribute(a) for a in
                              ("failures", "errors", "skipped")], counts)
            self.assertEqual(subprocess.run(
                ["xmllint", "--noout", "--schema",
                 os.path.join(HERE, "junit.xsd"), path], capture_output=True,
                check=False).returncode, 0)
            with open(path + ".txt", encoding="utf-8") as f:
                last = f.read().splitlines()[-1]
            self.assertEqual(last, "CANNOT TELL: 0 of 2 limits exceeded, 1 "
                             "undecided" + (f": fine with --undecided {kind}"
                                            if status == 0 else ""))

    def read_github(self):
        lines = self.write("github").splitlines()
        self.assertEqual(len(lines), 4)
        for line in lines:
            command, properties, message = re.fullmatch(
                r"::(error|warning) ([^:\n]*)::(.*)", line).groups()
            names = [p.split("=")[0] for p in properties.split(",")]
            self.assertEqual(names, ["file", "line", "title"])
            self.assertNotRegex(properties + message, "%(?!25|0A|0D|3A|2C)")
            self.assertEqual(command == "warning", "cannot tell" in message)
        self.assertIn("line=3,", lines[1])
        self.assertIn("limits%2C%25%3Ax", lines[0])

    def read_summary(self):
        path = os.path.join(self.dir, "summary.md")
        for _ in range(2):
            self.report(*self.words, "--format", "summary=" + path, code=3)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        self.assertEqual(text.count("### Heap of"), 2)
        for line in text.splitlines():
            if line.startswith("| "):
                self.assertEqual(line.count("|"), 4, line)
        self.assertNotRegex(text, "[<`]")

    def read_metrics(self):
        text = self.cook("gitlab")
        self.assertTrue(text.endswith("# EOF\n"))
        families, sample = [], re.compile(
            r"(sampleprof_[a-z_]+)\{((?:[a-z]+=\"(?:[^\"\\]|\\.)*\",?)+)\} "
            r"[0-9]+")
        for line in text.splitlines()[:-1]:
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                self.assertEqual(kind, "gauge")
                self.assertNotIn(name, families)
                families.append(name)
            else:
                self.assertEqual(sample.fullmatch(line).group(1),
                                 families[-1])
        self.assertIn("sampleprof_peak_bytes_upper", families)

    def read_json(self):
        import jsonschema  # pylint: disable=import-outside-toplevel
        with open(os.path.join(HERE, "check.schema.json"),
                  encoding="utf-8") as f:
            schema = json.load(f)
        data = json.loads(self.write("json"))
        jsonschema.validate(data, schema)
        self.assertEqual(data["verdict"], "regression")
        self.assertEqual([x["verdict"] for x in data["limits"]],
                         ["pass", "cannot tell", "improved", "regression",
                          "cannot tell"])
        del data["limits"][0]["verdict"]
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate(data, schema)

    def read_series(self):
        measures = list(json.loads(self.cook("bencher")).values())[0]
        self.assertIn("alloc_objects", measures)
        for value in measures.values():
            self.assertEqual(sorted(value),
                             ["lower_value", "upper_value", "value"])
            self.assertTrue(value["lower_value"] <= value["value"] <=
                            value["upper_value"])
        rows = json.loads(self.write("benchmark-action"))
        for row in rows:
            self.assertEqual(sorted(row), ["name", "range", "unit", "value"])
        # benchstat: lines begin with Benchmark and no small letter, then
        # the number of iterations, then pairs of a value and a unit
        lines = self.cook("gobench").splitlines()
        self.assertEqual(lines[:2], ["Unit B/op assume=exact",
                                     "Unit allocs/op assume=exact"])
        name, n, *pairs = lines[2].split()
        self.assertRegex(name, r"^Benchmark[A-Z][\w./]*$")
        self.assertEqual(n, "1")
        self.assertEqual(len(pairs) % 2, 0)
        self.assertEqual(pairs[1], "B/op")
        self.assertGreater(int(pairs[0]), 20000000)
