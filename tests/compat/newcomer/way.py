# SPDX-License-Identifier: MIT
"""A fresh system, a newcomer in it with a terminal and a browser, and what was
found wrong on the way."""

import glob
import os
import re
import shutil
import subprocess
import sys
import time

import judge
from terminal import Terminal, TerminalError

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(os.path.dirname(HERE))
sys.path += [os.path.join(TESTS, "compat", "matrix"),
             os.path.join(TESTS, "programs")]
# pylint: disable=wrong-import-position
import systems  # noqa: E402
from browser import Browser, BrowserError  # noqa: E402

RELEASE = "trixie"
USER = "newcomer"
HOME = "/home/" + USER


class Failed(Exception):
    """The rest of the task makes no sense."""


def fresh(directory, codename, mirror, name):
    """A copy of the release as debootstrap left it, with a user."""
    systems.Release(codename, directory, mirror)
    place = os.path.join(directory, name)
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    subprocess.run(["cp", "-a", os.path.join(directory, codename), place],
                   check=True)
    release = systems.Release(codename, place, mirror)
    shutil.copy("/etc/resolv.conf", release.path("/etc/resolv.conf"))
    # Nobody is there to say yes.
    with open(release.path("/etc/apt/apt.conf.d/91yes"), "w",
              encoding="ascii") as file:
        file.write('APT::Get::Assume-Yes "true";\n')
    release.make([["useradd", "-m", "-s", "/bin/bash", USER]], release.log)
    return release


class Way:
    """What the newcomer does in `system`."""

    def __init__(self, system):
        self.system = system
        self.problems = []  # (task, text)
        self.seconds = {}   # of each task
        self.task = None
        self.terminal = self.browser = None

    def open(self, user=USER):
        """A terminal, as that user."""
        self.close()
        home = HOME if user == USER else "/root"
        # As the system's own shell would have it.
        self.terminal = Terminal(self.system.command([
            "/usr/sbin/runuser", "-u", user, "--", "env", "-i", "-C", home,
            "HOME=" + home, "TERM=screen-256color", "LC_ALL=C.UTF-8",
            "DEBIAN_FRONTEND=noninteractive",
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "bash", "--norc"]))

    def close(self):
        if self.terminal:
            self.terminal.close()
            self.terminal = None

    def end(self):
        self.close()
        if self.browser:
            self.browser.close()
            self.browser = None

    def do(self, tasks):
        """Each of the functions, whose names are the tasks'; none after one
        that hangs."""
        for task in tasks:
            self.task = task.__name__
            print(f"newcomer: {self.task}: {task.__doc__}", file=sys.stderr,
                  flush=True)
            began = time.monotonic()
            try:
                task(self)
            except (Failed, BrowserError) as failed:
                self.wrong([str(failed)])
            except TerminalError as hang:
                self.wrong([str(hang)])
                return
            self.seconds[self.task] = time.monotonic() - began

    def wrong(self, problems):
        for text in problems:
            print(f"newcomer: {self.task}: {text}", file=sys.stderr,
                  flush=True)
            self.problems.append((self.task, text))

    def put(self, name, text=None):
        """A file in the newcomer's home: of programs/, or with that text."""
        path = self.path(name)
        if text is None:
            shutil.copy(os.path.join(HERE, "programs", name), path)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        self.system.make([["chown", USER + ":", f"{HOME}/{name}"]],
                         self.system.log)

    def path(self, name):
        """A file of the newcomer's home, as this machine sees it."""
        return self.system.path(f"{HOME}/{name}")

    def type(self, command, status=0):
        """Anything that has to succeed; what it printed."""
        shown = self.terminal.run(command)
        if problems := judge.status(shown, status):
            raise Failed(f"$ {command}\n" + "\n".join(problems))
        return shown

    def see(self, command, status=0):
        """A command of ours, which fits the terminal besides."""
        shown = self.type(command, status)
        self.wrong(f"$ {command}: {text}" for text in judge.widths(shown))
        return shown

    def first(self, shown):
        """The first report: what the summary of `run` proposes.  It fits."""
        [report] = self.follow(shown).values()
        if report.paged:
            self.wrong([f"$ {report.command}: a pager for "
                        f"{len(report.lines)} lines"])
        return report

    def hold(self, shown, problems):
        self.wrong(f"$ {shown.command}: {text}" for text in problems)

    def follow(self, shown):
        """All commands that it proposes; what each printed."""
        if not shown.next():
            raise Failed(f"$ {shown.command}: proposes nothing")
        return {command: self.see(command) for command in shown.next()}

    def profile(self, program):
        """The name of its newest profile."""
        found = glob.glob(self.path(program) + ".*.sprof")
        if not found:
            raise Failed(f"{program} has left no profile")
        return os.path.basename(max(found, key=os.path.getmtime))

    def show(self, name):
        """The page, in the browser."""
        if not self.browser:
            self.browser = Browser()
        self.browser.open(self.path(name))
        self.browser.wait("document.body && document.body.dataset.state == "
                          "'ready'", name)
        return self.browser

    def hold_page(self, name):
        """The browser has nothing to complain of."""
        wrong = [e["params"] for e in self.browser.events
                 if e.get("method") in ("Runtime.exceptionThrown",
                                        "Log.entryAdded")]
        self.wrong(f"{name}: {text}" for text in wrong)

    def page(self, name, views, function):
        """The page opens at one of the views, and that function is the first
        there."""
        page = self.show(name)
        pressed = page.run("document.querySelector("
                           "'#views [aria-pressed=true]').textContent")
        first = page.run("document.querySelector("
                         "'#functions tbody tr button').textContent")
        if pressed not in views or first != function:
            self.wrong([f"{name} opens at {pressed} with {first}, not at "
                        f"{views} with {function}"])
        self.hold_page(name)

    def ledger(self, name):
        """The page of rss has a bar."""
        if not self.show(name).run(
                "document.querySelectorAll('.stacked i').length"):
            self.wrong([f"{name} has no bar"])
        self.hold_page(name)


def readme_commands(source, heading):
    """The commands of the indented block behind the line that ends so."""
    with open(os.path.join(source, "README.md"), encoding="utf-8") as file:
        _, found, rest = file.read().partition(heading + "\n\n")
    if not found:
        raise Failed(f"README.md has no line {heading!r}")
    block = re.match(r"(?:    .*\n)+", rest)[0]
    return [re.sub(r"\s+# .*", "", line.strip())
            for line in re.sub(r"\\\n", "", block).splitlines()]
