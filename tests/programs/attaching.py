# SPDX-License-Identifier: MIT
"""Shared by the tests of `sampleprof attach`: rounds of it against a process.
"""

import os
import re
import shutil
import subprocess

import harness

COMMAND = harness.tool()
UNITS_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}


TRIES = 20


def run(*words, check=True, tries=TRIES, says=(), command=(COMMAND,), **how):
    """The command's output, or its refusal.  Against a process that is too busy,
    or gets no processor, it gives up after 2 s, and says so: then it has that
    many tries, unless it says all that is expected."""
    for _ in range(tries):
        done = harness.beside_others(lambda: subprocess.run(
            [*map(str, command), *map(str, words)], capture_output=True,
            check=False, text=True, timeout=harness.TIMEOUT_S, **how), *words)
        said = " ".join(done.stderr.split())
        if not done.returncode or " again" not in said or \
                says and all(word in said for word in says):
            break
    if check and done.returncode:
        raise AssertionError(f"{words}: {done.returncode}: {done.stderr}")
    return done


def attach(pid, out, *options, tries=TRIES):
    """The profile, and for how many milliseconds a thread was stopped."""
    text = run("attach", pid, "--out", out, *options,
               tries=tries).stdout
    path = re.search(r"is recorded into (.*)\n", text).group(1)
    value, unit = re.search(r"was stopped for (\S+) (\w+)\n", text).groups()
    return path, float(value) * UNITS_MS[unit]


def detach(pid, tries=TRIES):
    run("detach", pid, tries=tries)


def make_jail(folder, program, at=None):
    """A root directory with the program, at that path or its own, and its
    libraries; no /proc."""
    lines = subprocess.run(["ldd", program], capture_output=True, check=True,
                           text=True).stdout.split()
    for path in [at or program] + [w for w in lines if w.startswith("/")]:
        os.makedirs(folder + os.path.dirname(path), exist_ok=True)
        shutil.copy(program if path == at else path, folder + path)


def members(session):
    """The processes that began in that session, but for zombies, each with its
    process group: the command, its worker, and of both the child that asks for
    files (base/deputy.h)."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="latin-1") as f:
                state, _, group, of = f.read().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(of) == session and state != "Z":
            found[int(pid)] = int(group)
    return found


def worker_of(command):
    """The one that leads a process group of its own; None: not yet."""
    return next((pid for pid, group in members(command).items()
                 if pid == group != command), None)


def traced_threads(pid):
    """Of the process; none if it has ended."""
    found = []
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/status",
                      encoding="ascii", errors="replace") as f:
                if "TracerPid:\t0\n" not in f.read():
                    found.append(int(tid))
    except OSError:
        pass
    return found


class Talk:
    """A process that is told lines, and answers with lines."""

    def __init__(self, case, argv, **how):
        how.setdefault("shim", False)
        how.setdefault("bufsize", 0)
        self.process = case.start(argv, stdin=subprocess.PIPE, **how)
        case.addCleanup(self.process.kill)
        self.pid = self.process.pid
        self.answer = self.listen()

    def listen(self):
        """A line as (name, number...)."""
        line = self.process.stdout.readline().decode()
        if not line:
            raise AssertionError(f"{self.process.args} ended: "
                                 f"{self.process.stderr.read().decode()}")
        name, *numbers = line.split()
        return (name, *map(int, numbers))

    def say(self, word):
        self.process.stdin.write(word.encode() + b"\n")
        return self.listen()

    def end(self):
        """It ends by itself, and found nothing wrong."""
        stdout, stderr = self.process.communicate(b"end\n",
                                                  timeout=harness.TIMEOUT_S)
        if (self.process.returncode, stdout) != (0, b"ok\n"):
            raise AssertionError(f"{self.process.args}: "
                                 f"{self.process.returncode} {stdout} "
                                 f"{stderr.decode()}")
