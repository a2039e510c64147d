# SPDX-License-Identifier: MIT
"""All blocks of docs/ci.md and all steps of action.yml, run unchanged with the
installed programs."""

import hashlib
import os
import re
import subprocess
import tempfile
from xml.etree import ElementTree

import harness

CI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                  "docs", "ci.md")

APP = """
#include <stdlib.h>
static void *volatile sink;
__attribute__((noinline)) static void parse_all(void)
{
	for (int i = 0; i < 400000; i++) {
		sink = malloc(200);
		free(sink);
	}
}
int main(void)
{
	parse_all();
	sink = malloc(1000);
	return 0;
}
"""

# A program that knows nothing of these pages: forty functions, from some
# kilobytes to some megabytes, and leaks.
MANY = """
#include <stdlib.h>
static void *volatile sink;
#define SITE(n) \\
	__attribute__((noinline)) static void work_##n(int more) \\
	{ \\
		for (int i = 0; i < 30000 / (n) + more; i++) { \\
			sink = malloc(40 + 3 * (n)); \\
			if (i % 50) \\
				free(sink); \\
		} \\
	}
#define SITES(n) SITE(n##1) SITE(n##3) SITE(n##5) SITE(n##7) SITE(n##9)
SITES() SITES(1) SITES(2) SITES(3)
int main(void)
{
#define CALL(n) work_##n(MORE);
#define CALLS(n) CALL(n##1) CALL(n##3) CALL(n##5) CALL(n##7) CALL(n##9)
	CALLS() CALLS(1) CALLS(2) CALLS(3)
	return 0;
}
"""

# Each run another amount of work, as far as the one before it has come.
FLAKY = """
#include <stdio.h>
#include <stdlib.h>
static void *volatile sink;
__attribute__((noinline)) static void parse_all(int n)
{
	for (int i = 0; i < n; i++) {
		sink = malloc(200);
		free(sink);
	}
}
int main(void)
{
	static const int percent[] = {100, 103, 98, 101, 97, 102, 99};
	FILE *f = fopen("runs", "a+");

	fseek(f, 0, SEEK_END);
	parse_all(4000 * percent[ftell(f) % 7]);
	putc('x', f);
	return fclose(f);
}
"""

MAKE_APP = "app: app.c\n\tcc -g -O1 -fno-builtin app.c -o app\n"


class Ci(harness.Case):
    """With the installed programs, and a program of somebody else."""

    @classmethod
    def setUpClass(cls):
        with open(CI, encoding="utf-8") as f:
            cls.text = f.read()
        installed = tempfile.TemporaryDirectory(prefix="sampleprof-ci-")
        cls.addClassCleanup(installed.cleanup)
        cls.installed = os.path.join(installed.name, "prefix")
        build = os.path.dirname(os.path.dirname(
            os.environ["SAMPLEPROF_TARGETS"].rstrip("/")))
        subprocess.run(["cmake", "--install", build, "--prefix",
                        cls.installed], check=True, capture_output=True)

    def setUp(self):
        super().setUp()
        self.prefix = os.path.join(self.dir, "prefix")
        self.run_in(None, "cp", "-al", self.installed, self.prefix)
        self.number_seeds()
        self.work = os.path.join(self.dir, "work")
        os.mkdir(self.work)
        self.put("app.c", APP)
        self.put("Makefile", MAKE_APP)
        self.put("heap.limits", self.blocks("limits")[0])
        self.shell("make app")

    def number_seeds(self):
        """Each run has the next seed: nothing is left to chance."""
        path = os.path.join(self.prefix, "bin", "sampleprof")
        os.rename(path, path + "-itself")
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/bash\n"
                    f"printf x >> {self.prefix}/seeds\n"
                    f"SAMPLEPROF_SEED=$(wc -c < {self.prefix}/seeds) "
                    f"exec -a sampleprof {path}-itself \"$@\"\n")
        os.chmod(path, 0o755)

    def put(self, name, text):
        with open(os.path.join(self.work, name), "w", encoding="utf-8") as f:
            f.write(text)

    def blocks(self, kind):
        found = re.findall(rf"<!-- try: {kind} -->\n\n(?:```\w+\n(.*?)```|"
                           r"((?:    [^\n]*\n|\n)+))", self.text, re.S)
        self.assertTrue(found, kind)
        return [fenced or re.sub("^    ", "", indented, flags=re.M)
                for fenced, indented in found]

    def environment_of(self):
        env = self.environment(shim=False)
        env.update(PATH=f"{self.prefix}/bin:{env['PATH']}",
                   CMAKE_PREFIX_PATH=self.prefix,
                   GITHUB_STEP_SUMMARY=os.path.join(self.dir, "summary.md"))
        return env

    def run_in(self, env, *argv, code=0):
        done = subprocess.run(argv, cwd=getattr(self, "work", None), env=env,
                              capture_output=True,
                              timeout=harness.TIMEOUT_S, check=False)
        text = done.stdout.decode() + done.stderr.decode()
        self.assertEqual(done.returncode, code, f"{argv}: {text}")
        return text

    def shell(self, script, code=0):
        return self.run_in(self.environment_of(), "bash", "-ec", script,
                           code=code)

    def grow(self):
        self.put("app.c", APP.replace("malloc(200)", "malloc(260)"))

    def shrink(self):
        """As it was."""
        self.put("app.c", APP)


class Documented(Ci):
    """docs/ci.md, block by block."""

    def make_baseline(self):
        self.shell(self.blocks("shell")[0])
        self.assertTrue(os.path.exists(os.path.join(self.work, "heap.json")))

    def make(self, change):
        change()
        self.shell("make -s app")

    def test_shell(self):
        """Green, red, mended; what is intended is the next baseline."""
        blocks = self.blocks("shell")
        self.assertEqual(len(blocks), 4)
        for baseline, check in (blocks[:2], blocks[2:]):
            self.make(self.shrink)
            self.shell(baseline)
            self.assertIn("pass: 0 of 2 limits", self.shell(check))
            self.make(self.grow)
            self.assertIn("REGRESSION", self.shell(check, code=3))
            self.make(self.shrink)
            self.assertIn("pass: 0 of 2 limits", self.shell(check))
            self.make(self.grow)
            self.shell(baseline)
            self.assertIn("pass: 0 of 2 limits", self.shell(check))

    def test_started_by_another(self):
        """What is checked is the program, not who starts it."""
        baseline, check = self.blocks("shell")[:2]
        for command in ("env A=1 ./app", "bash -c './app; true'",
                        "env --unset=X -S 'A=1 ./app'"):
            started = [block.replace("./app", command)
                       for block in (baseline, check)]
            self.assertNotEqual(started, [baseline, check])
            self.make(self.shrink)
            self.shell(started[0])
            self.make(self.grow)
            self.assertIn("REGRESSION", self.shell(started[1], code=3))
        text = self.shell("mkdir other; sampleprof run --quiet --out other env A=1 ./app;"
                          "sampleprof-report check other/env.*.sprof "
                          "--baseline other.json --update-baseline", code=4)
        self.assertIn("executed another program: give the profile of that one",
                      " ".join(text.split()))

    def test_period_that_can_tell(self):
        """A check that cannot tell says with which period it could; what is
        recorded so is decided, and so is all with that baseline."""
        check = ("sampleprof-report check new/app.*.sprof --baseline heap.json "
                 "--limit 'sites=+25%&1M' --format text --format json=check.json")

        def record(period, name="new"):
            self.shell(f"rm -rf {name} && mkdir {name} && sampleprof run "
                       f"--quiet {period} --out {name} ./app")

        def update():
            self.shell("sampleprof-report check base/app.*.sprof "
                       "--baseline heap.json --update-baseline")
        self.put("app.c", MANY.replace("MORE", "0"))
        self.shell("make -s app")
        record("", "base")
        record("")
        update()
        self.assertIn("to tell, sample with run --period", self.shell(
            check, code=4))
        record("--for-check check.json", "base")
        record("--for-check check.json")
        update()
        self.assertIn("pass", self.shell(check))
        self.put("app.c", MANY.replace("MORE", "60000"))
        self.shell("make -s app")
        record("--for-check heap.json")
        self.assertIn("REGRESSION", self.shell(check, code=3))
        for file in "app.c", "none.json":
            self.shell(f"sampleprof run --for-check {file} ./app", code=2)
        self.shell("sampleprof run --for-check heap.json --period 1 ./app",
                   code=2)

    def test_flaky(self):
        """A program whose runs differ is red when it grows, and not before:
        with as many new runs as the baseline has, a third is enough."""
        self.put("app.c", FLAKY)
        self.shell("make -s app")
        baseline, check = self.blocks("shell")[2:]
        self.shell(baseline)
        self.assertNotIn("REGRESSION", self.shell(check))
        check = re.sub("(?m)^(sampleprof run .*)$",
                       r"for i in 1 2 3 4 5; do \1; done", check)
        self.assertNotIn("REGRESSION", self.shell(check))
        self.put("app.c", FLAKY.replace("malloc(200)", "malloc(260)"))
        self.shell("make -s app")
        self.assertIn("REGRESSION", self.shell(check, code=3))
        self.put("app.c", FLAKY)
        self.shell("make -s app")
        self.assertNotIn("REGRESSION", self.shell(check))

    def fits(self, text):
        """On one screen."""
        lines = text.splitlines()
        self.assertLessEqual(len(lines), 24, text)
        self.assertLessEqual(max(map(len, lines)), 80, text)

    def test_pasted(self):
        """Into another program: green while it does not change, red when all
        of it does, each time on one screen."""
        line = next(x for x in self.blocks("make")[0].splitlines()
                    if "sampleprof-report check" in x).strip()
        run = ("rm -rf heap base && mkdir -p heap base && make -s app &&"
               "sampleprof run --quiet --period 16K ")
        self.put("app.c", MANY.replace("MORE", "0"))
        self.shell(run + "--out base ./app; sampleprof-report check "
                   "base/app.*.sprof --baseline heap.json --update-baseline")
        text = self.shell(run + "--out heap ./app; " + line)
        self.fits(text)
        self.assertNotIn("REGRESSION", text)
        self.put("app.c", MANY.replace("MORE", "60000"))
        text = self.shell(run + "--out heap ./app; " + line, code=3)
        self.fits(text)
        self.assertEqual(text.count("REGRESSION  "), 4, text)

    def test_yaml(self):
        import yaml  # pylint: disable=import-outside-toplevel
        self.make_baseline()
        github = yaml.safe_load(self.blocks("github")[0])
        steps = [s["run"] for s in github["jobs"]["heap"]["steps"]
                 if "run" in s]
        gitlab = yaml.safe_load(self.blocks("gitlab")[0])
        junit = os.path.join(self.work, "heap/junit.xml")
        for script, mark in ((steps, "::error file=heap.limits,line="),
                             (gitlab["heap"]["script"], "REGRESSION")):
            for change, code in ((self.shrink, 0), (self.grow, 3),
                                 (self.shrink, 0), (self.grow, 3)):
                change()
                for line in script[:-1]:
                    self.shell(line)
                self.assertEqual(mark in self.shell(script[-1], code=code),
                                 code == 3)
                if os.path.exists(junit):
                    self.assertEqual(self.failures(junit) > 0, code == 3)
            self.assertTrue(os.path.exists(os.path.join(
                self.work, "heap/evidence/check.txt")))
        for line in gitlab["heap"]["after_script"]:
            self.shell(line)
        for name in gitlab["heap"]["artifacts"]["reports"].values():
            self.assertTrue(os.path.exists(os.path.join(self.work, name)))
        self.assertTrue(os.path.exists(os.path.join(self.dir, "summary.md")))

    def failures(self, path):
        """Of JUnit's file."""
        return len(list(ElementTree.parse(path).iter("failure")))

    @harness.nightly
    def test_make(self):
        self.make_baseline()
        self.put("Makefile", MAKE_APP + self.blocks("make")[0])
        self.shell("make check-heap")
        self.grow()
        self.assertIn("REGRESSION", self.shell("make check-heap", code=2))
        self.shrink()
        self.shell("make check-heap")

    def test_cmake(self):
        self.put("CMakeLists.txt", self.blocks("cmake")[0])
        self.shell("cmake -S . -B b && cmake --build b")
        self.shell("cd b && SAMPLEPROF_UPDATE_BASELINE=1 ctest -R heap")
        self.shell("cd b && ctest -R heap")
        self.grow()
        self.shell("cmake --build b")
        self.assertIn("REGRESSION", self.shell(
            "cd b && ctest -R heap --output-on-failure", code=8))
        self.assertTrue(os.path.exists(os.path.join(
            self.work, "b/gate-heap/junit.xml")))
        self.shrink()
        self.shell("cmake --build b && cd b && ctest -R heap")

    @harness.nightly
    def test_cmake_started_by_another(self):
        block, = self.blocks("cmake")
        for command, more in (("env -u NONE A=1 $<TARGET_FILE:app>", ""),
                              ("env --unset NONE --unset=X "
                               "\"-S A=1 $<TARGET_FILE:app>\" 2", ""),
                              ("bash -c \"$<TARGET_FILE:app>; true\"",
                               " PROGRAM app")):
            self.shrink()
            self.put("CMakeLists.txt", block.replace(
                "COMMAND app", f"COMMAND {command}{more}"))
            self.shell("rm -rf b && cmake -S . -B b && cmake --build b")
            self.shell("cd b && SAMPLEPROF_UPDATE_BASELINE=1 ctest -R heap")
            self.grow()
            self.shell("cmake --build b")
            self.assertIn("REGRESSION", self.shell(
                "cd b && ctest -R heap --output-on-failure", code=8))


class Action(Ci):
    """action.yml, step by step as GitHub's runner does it."""

    def setUp(self):
        super().setUp()
        import yaml  # pylint: disable=import-outside-toplevel
        self.root = os.path.dirname(os.path.dirname(os.path.abspath(CI)))
        with open(os.path.join(self.root, "action.yml"),
                  encoding="utf-8") as f:
            self.action = yaml.safe_load(f)
        self.temp = os.path.join(self.dir, "temp")
        os.mkdir(self.temp)

    def act(self, code=0, path=True, last="Check", **inputs):
        """All steps up to that one, which ends with that status; what it says.
        `path`: is sampleprof installed already?"""
        values = {}
        for name, about in self.action["inputs"].items():
            value = inputs.pop(name.replace("-", "_"), about.get("default"))
            self.assertIsNotNone(value, name)
            values[f"inputs.{name}"] = value
        self.assertFalse(inputs)
        values["github.action_path"] = self.root
        files = {name: os.path.join(self.temp, name.lower())
                 for name in ("GITHUB_PATH", "GITHUB_OUTPUT")}
        env = {**self.environment_of(), **files, "RUNNER_TEMP": self.temp}
        if not path:
            env["PATH"] = env["PATH"].partition(":")[2]
        steps = self.action["runs"]["steps"]
        last = [step["name"] for step in steps].index(last)
        for i, step in enumerate(steps[:last + 1]):
            self.assertEqual(step["shell"], "bash")
            self.assertNotIn("${{", step["run"])
            own = {name: re.sub(r"\$\{\{ *(.*?) *\}\}",
                                lambda m: values[m[1]], value)
                   for name, value in step["env"].items()}
            text = self.run_in({**env, **own}, "bash", "--noprofile",
                               "--norc", "-eo", "pipefail", "-c", step["run"],
                               code=code if i == last else 0)
            if os.path.exists(files["GITHUB_PATH"]):
                with open(files["GITHUB_PATH"], encoding="utf-8") as f:
                    env["PATH"] = ":".join([*f.read().split(), env["PATH"]])
                os.unlink(files["GITHUB_PATH"])
        return text

    def test_action(self):
        inputs = {"command": "./app 'one argument'", "period": "16K",
                  "limits": "heap.limits", "runs": "2"}
        self.act(update_baseline="true", **inputs)
        text = self.act(**inputs)
        self.assertNotIn("::error", text)
        for run in "12":
            self.assertEqual(len(os.listdir(os.path.join(
                self.temp, "sampleprof-heap", run))), 1)
        self.grow()
        self.shell("make app")
        text = self.act(code=3, **inputs)
        self.assertIn("::error file=heap.limits,line=", text)
        with open(os.path.join(self.temp, "github_output"),
                  encoding="utf-8") as f:
            evidence = f.read().split()[-1].partition("evidence=")[2]
        self.assertTrue(os.path.exists(evidence + "/check.txt"))
        self.assertTrue(os.path.exists(os.path.join(self.dir, "summary.md")))

    def test_action_archive(self):
        """With nothing installed, from an archive."""
        archive = os.path.join(self.dir, "release.tar.gz")
        self.run_in(None, "tar", "-C", self.dir, "-czf", archive, "prefix")
        inputs = {"command": "./app", "limits": "heap.limits",
                  "archive": archive, "path": False}
        self.act(update_baseline="true", **inputs)
        self.act(**inputs)
        self.assertTrue(os.path.exists(os.path.join(
            self.temp, "sampleprof/bin/sampleprof")))

    def test_action_url(self):
        """Nothing of an archive is unpacked that is not the one."""
        archive = os.path.join(self.dir, "release.tar.gz")
        self.run_in(None, "tar", "-C", self.dir, "-czf", archive, "prefix")
        with open(archive, "rb") as f:
            right = hashlib.sha256(f.read()).hexdigest()
        inputs = {"command": "./app", "limits": "heap.limits", "path": False}
        there = os.path.join(self.temp, "sampleprof")
        for from_where, sha256, says in (
                ("file://" + archive, "", "a URL needs sha256:"),
                ("file://" + archive, "0" * 64, f"its SHA-256 is {right}, not 0"),
                (archive, "0" * 64, f"its SHA-256 is {right}, not 0")):
            self.assertIn(says, self.act(
                code=1, last="Install sampleprof", archive=from_where,
                sha256=sha256, **inputs))
            self.assertFalse(os.path.exists(there))
        self.act(update_baseline="true", archive="file://" + archive,
                 sha256=right.upper(), **inputs)
        self.assertTrue(os.path.exists(there + "/bin/sampleprof"))

    def test_action_started_by_another(self):
        inputs = {"limits": "heap.limits", "period": "16K"}
        for more in ({"command": "env -u NONE A=1 ./app"},
                     {"command": "env --unset=X ./app"},
                     {"command": "env --unset X -S 'A=\"1 2\" ./app' 3"},
                     {"command": "bash -c './app; true'", "program": "app"}):
            self.shrink()
            self.shell("make app")
            self.act(update_baseline="true", **inputs, **more)
            self.grow()
            self.shell("make app")
            self.act(code=3, **inputs, **more)
        text = self.act(code=1, command="bash -c './app; true'",
                        program="other", **inputs)
        self.assertIn("no profile of other; there are those of: app bash", text)
