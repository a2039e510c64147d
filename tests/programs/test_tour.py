# SPDX-License-Identifier: MIT
"""The tour in docs/guide.md: every command, in order and in one shell, works
and prints every word of five letters and more that the page shows, but not the
same figures.  Lines with "~" are left out, because another run may lack those
samples."""

import os
import re
import shutil
import subprocess

import harness

HERE = os.path.dirname(os.path.abspath(__file__))
DOCS = os.path.join(HERE, "..", "..", "docs")
MARK = "--- command "

PROGRAMS = {"sqlite3": "sqlite3", "clang++": "clang",
            "redis-server": "redis-server", "redis-cli": "redis-tools",
            "go": "golang-go"}


def steps():
    """[(command, lines that are shown of its output)]."""
    found = []
    with open(os.path.join(DOCS, "guide.md"), encoding="utf-8") as f:
        _, tour = f.read().split("\n## A tour\n")
    for line in tour.split("\n## ")[0].splitlines():
        if line.startswith("    $ "):
            found.append((line[6:], []))
        elif line.startswith("    "):
            found[-1][1].append(line[4:])
    return found


def words(lines):
    return set(re.findall(r"[A-Za-z_:]{5,}",
                          "\n".join(l for l in lines if "~" not in l)))


@harness.nightly
class Tour(harness.Case):
    def run_all(self, commands):
        """What each of them printed, on either output."""
        script = ["set -e", "trap 'kill $(jobs -p) 2>/dev/null || :' EXIT"]
        for i, command in enumerate(commands):
            script += [f"echo '{MARK}{i}'", command]
        path = ":".join((os.path.dirname(os.environ["SAMPLEPROF_REPORT"]),
                         "/usr/bin", "/bin"))
        with open(os.path.join(self.dir, "output"), "w+b") as out:
            done = subprocess.run(
                ["bash", "-c", "\n".join(script)], cwd=self.dir, stdout=out,
                stderr=out, stdin=subprocess.DEVNULL, check=False,
                env={"PATH": path, "HOME": self.dir, "LC_ALL": "C.UTF-8"},
                timeout=4 * harness.TIMEOUT_S)
            out.seek(0)
            text = out.read().decode()
        self.assertEqual(done.returncode, 0, text[-3000:])
        parts = re.split(rf"^{MARK}\d+\n", text, flags=re.M)
        self.assertEqual(len(parts), len(commands) + 1)
        return parts[1:]

    def test_commands(self):
        for program, package in PROGRAMS.items():
            harness.require(program, package)
        examples = os.path.join(DOCS, "examples", "tour")
        for name in os.listdir(examples):
            shutil.copy(os.path.join(examples, name), self.dir)
        tour = steps()
        self.assertGreater(len(tour), 20)
        printed = self.run_all([command for command, _ in tour])
        for (command, shown), text in zip(tour, printed):
            with self.subTest(command):
                self.assertEqual(
                    words(shown) - words(text.replace("~", "").splitlines()),
                    set(), text)
        profile = harness.Profile(os.path.join(self.dir, "redis.sprof"))
        profile.require_samples(200)
