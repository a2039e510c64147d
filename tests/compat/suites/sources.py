# SPDX-License-Identifier: MIT
"""Debian source packages: fetched, unpacked with their patches, built once.

The system's apt configuration stays as it is: the list of sources and its
cache are in the work directory.
"""

import glob
import os
import shutil
import subprocess

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Failed(Exception):
    """Something could not be had or built; the text says what to do."""


def call(argv, log, cwd=None, env=None):
    """Run a command with its output in the file `log`."""
    with open(log, "ab") as output:
        output.write(f"$ {' '.join(argv)}\n".encode())
        output.flush()
        done = subprocess.run(argv, cwd=cwd, env=env, stdout=output,
                              stderr=subprocess.STDOUT, check=False,
                              stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failed(f"{' '.join(argv)} ended with {done.returncode}: the "
                     f"output is in {log}")


def _release():
    with open("/etc/os-release", encoding="utf-8") as f:
        for line in f:
            if line.startswith("VERSION_CODENAME="):
                return line.partition("=")[2].strip().strip('"')
    raise Failed("/etc/os-release names no Debian release")


def missing(packages):
    return [p for p in packages if subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status}", p],
        capture_output=True, check=False).stdout != b"installed"]


def install(packages, log):
    """Those that are missing."""
    wanted = missing(packages)
    if wanted:
        prefix = [] if os.geteuid() == 0 else ["sudo"]
        call([*prefix, "apt-get", "update"], log)
        call([*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get",
              "install", "-y", "--no-install-recommends", *wanted], log)


class Sources:
    def __init__(self, work):
        self.work = work
        self.log = os.path.join(work, "build.log")
        self.lists = os.path.join(work, "apt")
        self.options = []

    def _prepare(self):
        """A list of sources of its own."""
        os.makedirs(os.path.join(self.lists, "partial"), exist_ok=True)
        stanza = os.path.join(self.work, "debian.sources")
        with open(stanza, "w", encoding="utf-8") as f:
            f.write("Types: deb-src\nURIs: http://deb.debian.org/debian\n"
                    f"Suites: {_release()}\nComponents: main\n"
                    f"Signed-By: {KEYRING}\n")
        self.options = ["-o", f"Dir::Etc::sourcelist={stanza}",
                        "-o", "Dir::Etc::sourceparts=-",
                        "-o", f"Dir::State::lists={self.lists}"]
        call(["apt-get", *self.options, "update"], self.log)

    def tree(self, package):
        """The unpacked source of a package."""
        place = os.path.join(self.work, "src", package)
        if not os.path.isdir(place):
            if not self.options:
                self._prepare()
            fresh = place + ".new"
            shutil.rmtree(fresh, ignore_errors=True)
            os.makedirs(fresh)
            call(["apt-get", *self.options, "source", "--download-only",
                  package], self.log, cwd=fresh)
            (dsc,) = glob.glob(os.path.join(fresh, "*.dsc"))
            call(["dpkg-source", "-x", os.path.basename(dsc), "tree"],
                 self.log, cwd=fresh)
            os.rename(fresh, place)
        return os.path.join(place, "tree")

    def make(self, package, *commands):
        """The tree of a package, after each of the commands ran in it once."""
        tree = self.tree(package)
        done = os.path.join(tree, ".built")
        if not os.path.exists(done):
            for argv in commands:
                call(argv, self.log, cwd=tree)
            with open(done, "w", encoding="utf-8"):
                pass
        return tree

    def compile(self, argv):
        call(argv, self.log, cwd=self.work)

    def output(self, argv):
        """What a command prints."""
        return subprocess.run(argv, cwd=self.work, check=True, text=True,
                              stdout=subprocess.PIPE).stdout
