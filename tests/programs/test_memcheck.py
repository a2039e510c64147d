# SPDX-License-Identifier: MIT
"""The report under valgrind: no error, no leak, no open descriptor, command by
command, over kept profiles and a fresh one.

The ordinary list has every sixth command, the nightly list each, on one of the
profiles in turn; the long form runs each command on all of them:

    SAMPLEPROF_TEST_MEMCHECK=all /usr/bin/python3 tests/programs/harness.py \\
        memcheck --build-dir build
"""

import concurrent.futures
import glob
import os
import subprocess

import harness

NEEDS_DEBUG_FILES = True  # valgrind does

EVERYTHING = os.environ.get("SAMPLEPROF_TEST_MEMCHECK") == "all"
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                      "format", "golden", "v1*" if EVERYTHING else "v1-live", "*.sprof")
# Found by valgrind; no command of the report has this status.
FOUND = 99

# FILE stands for the profile, OUT for a file to write.
COMMANDS = [
    "report FILE --stacks=5",
    "report FILE --sort=cum",
    "report FILE --view=temporary --within=64K --csv",
    "report FILE --json",
    "report FILE --by=thread --focus=a",
    "report FILE FILE2 --view=peak",
    "report FILE --at=frob",
    "tree FILE",
    "peek . FILE",
    "list . FILE",
    "traces FILE",
    "stats FILE",
    "symbolize FILE -o OUT",
    "diff FILE FILE2",
    "check FILE --baseline FILE2 --limit sites=+1% --format json",
]
MORE = [
    "report FILE --view=live --at=50%",
    "report FILE --view=peak --top=0",
    "report FILE --view=leaks --tail=10%",
    "report FILE --timeline",
    "report FILE --sizes",
    "report FILE --by=size",
    "report FILE --granularity=line --hide=x",
    "report FILE --estimator=p3 --simultaneous",
    "report /nonexistent",
    "top FILE",
    "--help",
]


def formats():
    """The formats that the export command lists."""
    text = harness.report("export", "--help-all")
    lines = text.split("Formats:\n")[1].split("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines]


def checked(*argv):
    """Under valgrind: (exit status, what it says)."""
    done = subprocess.run(
        [harness.require("valgrind", "valgrind"), "-q", "--leak-check=full",
         "--errors-for-leak-kinds=definite,indirect,possible",
         "--track-fds=yes", f"--error-exitcode={FOUND}", *argv],
        capture_output=True, timeout=harness.TIMEOUT_S, check=False)
    return done.returncode, done.stderr.decode(errors="replace")


class Memcheck(harness.Case):
    def record(self):
        """A profile of a program with lines and inlines."""
        result = self.execute(harness.target("program_known"), "main", 1,
                              period="32K")
        return result.profile().require_samples(20).path

    def words(self, command, files, i):
        out = os.path.join(self.dir, f"out-{i}")
        names = {"FILE": files[i % len(files)],
                 "FILE2": files[(i + 1) % len(files)], "OUT": out}
        return [os.environ["SAMPLEPROF_REPORT"]] + [
            names.get(word, word) for word in command.split()]

    @harness.nightly_too
    def test_every_command(self):
        files = [self.record()] + sorted(glob.glob(GOLDEN))
        self.assertGreaterEqual(len(files), 3)
        commands = COMMANDS + [f"export {f} FILE -o OUT" for f in formats()]
        if EVERYTHING:
            commands += MORE
        runs = [self.words(command, files, i)
                for i, command in enumerate(commands)]
        runs = runs[::harness.rounds(6, 1)]
        if EVERYTHING:
            runs = [self.words(command, files[at:] + files[:at], len(files) * i)
                    for i, command in enumerate(commands)
                    for at in range(len(files))]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda argv: checked(*argv), runs))
        for argv, (status, said) in zip(runs, results):
            self.assertIn(status, range(5), f"{argv}: {said}")
        fine = sum(status == 0 for status, _ in results)
        self.assertGreater(fine, len(runs) * 2 / 3, results)

    def test_faults_are_found(self):
        program = harness.target("program_memory_faults")
        self.assertEqual(checked(program)[0], 0)
        for fault in ("leak", "uninitialised"):
            with self.subTest(fault):
                self.assertEqual(checked(program, fault)[0], FOUND)
