# SPDX-License-Identifier: MIT
"""The systems: this machine, Debian's releases, and older ones of Ubuntu, in
folders of their own."""

import dataclasses
import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "compat", "suites"))
# pylint: disable-next=wrong-import-position,unused-import
from sources import Failed, call, install  # noqa: E402

# No program here takes a tenth of that on a machine that is busy.
TIMEOUT_S = 600

RELEASES = {"bullseye": "Debian 11", "bookworm": "Debian 12",
            "trixie": "Debian 13", "sid": "Debian sid"}
# With glibc 2.23 and 2.27, older than EL8's 2.28.
OLDER = {"xenial": "Ubuntu 16.04", "bionic": "Ubuntu 18.04"}
OLDER_MIRROR = "http://archive.ubuntu.com/ubuntu"

# What is done to a system before a program runs there, in a mount namespace of
# the program's own; $0 is the folder of the system.
CONDITIONS = {
    "no /proc": 'mount -t tmpfs none "$0/proc"',
    "no libunwind": 'for f in "$0"/usr/lib/*/libunwind.so.8* '
                    '"$0"/lib/*/libunwind.so.8*; do '
                    'if [ -e "$f" ]; then mount --bind /dev/null "$f"; fi; '
                    'done',
}
# A filter of system calls instead: targets/old_kernel.c.
OLD_KERNEL = "before 5.14"


@dataclasses.dataclass
class Build:
    """What was installed below `prefix`, as the system sees it."""
    name: str
    library: str
    report: str
    launcher: str


class System:
    """Where programs run.  `root`: its folder; `work`: where things are made,
    as the system sees it."""

    def __init__(self, name, root, work):
        self.name, self.root, self.work = name, root, work
        os.makedirs(self.path(work), exist_ok=True)

    def path(self, inside):
        """The same file as this machine sees it."""
        return os.path.join(self.root, inside.lstrip("/"))

    def command(self, argv, condition=None):
        """What runs that there."""
        if condition == OLD_KERNEL:
            argv, condition = [self.work + "/old_kernel", *argv], None
        if self.root == "/" and not condition:
            return argv
        steps = []
        if self.root != "/":
            steps += ['mount -t proc proc "$0/proc"',
                      'mount --rbind /dev "$0/dev"']
        if condition:
            steps.append(CONDITIONS[condition])
        return ["unshare", "-m", "sh", "-ec",
                "\n".join([*steps, 'exec chroot "$0" "$@"']), self.root, *argv]

    def run(self, argv, condition=None, stdin=b""):
        """How it ended; what is said of a time that is up is that."""
        return subprocess.run(
            self.command(argv, condition), input=stdin, capture_output=True,
            timeout=TIMEOUT_S, check=False, cwd="/")

    def make(self, commands, log):
        """Run commands that have to succeed, with their output in `log`."""
        for argv in commands:
            try:
                call(self.command(argv), log)
            except Failed as failed:
                raise Failed(f"{' '.join(argv[:3])} ... failed; the output is "
                             f"in {log}") from failed


class Release(System):
    """A release of Debian or Ubuntu, below `directory`."""

    def __init__(self, codename, directory, mirror):
        self.codename = codename
        self.mirror = OLDER_MIRROR if codename in OLDER else mirror
        self.log = os.path.join(directory, codename + ".log")
        root = os.path.join(directory, codename)
        if not os.path.exists(root + "/etc/apt/apt.conf.d/90matrix"):
            self._debootstrap(root)
        super().__init__({**RELEASES, **OLDER}[codename], root, "/matrix")

    def _debootstrap(self, root):
        shutil.rmtree(root, ignore_errors=True)
        # Debian has no key of Ubuntu's.
        unchecked = ["--no-check-gpg"] * (self.codename in OLDER)
        call(["debootstrap", "--variant=minbase", *unchecked, self.codename,
              root, self.mirror], self.log)
        suites = [f"{self.mirror} {self.codename}"]
        # Of Debian 11 the mirrors have the release, and of its security
        # updates only the list.
        if self.codename in RELEASES and \
                self.codename not in ("bullseye", "sid"):
            suites += [f"{self.mirror} {self.codename}-updates",
                       f"{self.mirror}-security {self.codename}-security"]
        with open(root + "/etc/apt/sources.list", "w",
                  encoding="ascii") as file:
            file.writelines(f"deb {suite} main\n" for suite in suites)
        with open(root + "/etc/apt/apt.conf.d/90matrix", "w",
                  encoding="ascii") as file:
            file.write('Acquire::Languages "none";\n'
                       'APT::Install-Recommends "false";\n')

    def install(self, packages):
        """With apt-get; those that are there already cost no network."""
        done = self.run(["dpkg-query", "-W", "-f",
                         "${Package} ${db:Status-Status}\n", *packages])
        present = {line.split()[0] for line in done.stdout.decode().split("\n")
                   if line.endswith(" installed")}
        wanted = [p for p in packages if p not in present]
        if wanted:
            shutil.copy("/etc/resolv.conf", self.root + "/etc/resolv.conf")
            self.make([["apt-get", "update"],
                       ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get",
                        "install", "-y", *wanted]], self.log)

    def clone(self, source):
        """What is committed in `source`, clean."""
        clone = self.path(self.work + "/source")
        shutil.rmtree(clone, ignore_errors=True)
        call(["git", "clone", "-q", "--no-hardlinks", source, clone],
             self.log)

    def build(self, source, name="own", compilers=("cc", "c++")):
        """Of a clean clone, with these compilers for C and for C++."""
        folder = "build" if name == "own" else "build-" + name.replace(" ", "")
        build = f"{self.work}/{folder}"
        prefix = f"{self.work}/{name.replace(' ', '')}"
        if name == "own":
            self.clone(source)
        for part in (build, prefix):
            shutil.rmtree(self.path(part), ignore_errors=True)
        self.make([
            ["cmake", "-S", self.work + "/source", "-B", build, "-G", "Ninja",
             "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF",
             "-DSAMPLEPROF_WERROR=ON", "-DCMAKE_C_COMPILER_LAUNCHER=ccache",
             "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",
             f"-DCMAKE_C_COMPILER={compilers[0]}",
             f"-DCMAKE_CXX_COMPILER={compilers[1]}",
             f"-DCMAKE_INSTALL_PREFIX={prefix}"],
            ["cmake", "--build", build],
            ["cmake", "--install", build]], self.log)
        return installed(self, name, prefix)

    def test(self):
        """Build the tests of modules, too, and run them: "passed/all"."""
        build = self.work + "/build-tests"
        self.make([
            ["cmake", "-S", self.work + "/source", "-B", build, "-G", "Ninja",
             "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=ON",
             "-DCMAKE_C_COMPILER_LAUNCHER=ccache",
             "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"],
            ["cmake", "--build", build]], self.log)
        done = subprocess.run(
            self.command(["ctest", "--test-dir", build, "-L", "unit", "-j",
                          str(os.cpu_count())]),
            capture_output=True, check=False, cwd="/")
        text = done.stdout.decode(errors="replace")
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(text)
        found = re.search(r"(\d+) tests failed out of (\d+)", text)
        if not found:
            raise Failed(f"ctest ran nothing; the output is in {self.log}")
        failed, number = map(int, found.groups())
        return f"{number - failed}/{number}"

    def compiler(self, command):
        """Its kind and first number, such as "gcc 12"."""
        done = self.run([command, "--version"])
        first = done.stdout.decode().partition("\n")[0]
        return "{} {}".format(
            "clang" if "clang" in first else "gcc",
            re.search(r"(\d+)\.\d+\.\d+", first).group(1))


def installed(system, name, prefix):
    """What `cmake --install` has put there, if it starts."""
    found = glob.glob(system.path(prefix) + "/lib/**/libsampleprof.so",
                      recursive=True)
    if len(found) != 1:
        raise Failed(f"{len(found)} libraries below {prefix}")
    library = os.path.join(
        prefix, os.path.relpath(found[0], system.path(prefix)))
    build = Build(name, library, prefix + "/bin/sampleprof-report",
                  prefix + "/bin/sampleprof")
    for program in (build.report, build.launcher):
        done = system.run([program, "--help"])
        if done.returncode != 0:
            raise Failed(f"{os.path.basename(program)} does not start: "
                         + done.stderr.decode().strip())
    return build


def copied(build_of, system):
    """The build of another system, on this one."""
    prefix = f"{system.work}/from-{build_of.codename}"
    shutil.rmtree(system.path(prefix), ignore_errors=True)
    shutil.copytree(build_of.path(build_of.work + "/own"), system.path(prefix),
                    symlinks=True)
    return installed(system, "of " + re.sub(r"\D*", "", build_of.name), prefix)


def with_own_libc(build_of, system):
    """Likewise on a system with an older C library than report and launcher
    need: they run with that of the system that built them."""
    prefix = f"{system.work}/from-{build_of.codename}"
    here, own = system.path(prefix), build_of.work + "/own"
    shutil.rmtree(here, ignore_errors=True)
    shutil.copytree(build_of.path(own), here, symlinks=True)
    libc = build_of.work + "/libc"
    for name in ("sampleprof-report", "sampleprof"):
        done = build_of.run(["ldd", f"{own}/bin/{name}"])
        build_of.make([
            ["mkdir", "-p", libc],
            ["cp", "-L", *re.findall(r"(/\S+) \(0x", done.stdout.decode()),
             libc]], build_of.log)
        os.rename(f"{here}/bin/{name}", f"{here}/bin/{name}.elf")
        with open(f"{here}/bin/{name}", "w", encoding="ascii") as script:
            script.write(f"#!/bin/sh\nexec {prefix}/libc/ld-linux-x86-64.so.2 "
                         f"--library-path {prefix}/libc "
                         f'{prefix}/bin/{name}.elf "$@"\n')
        os.chmod(f"{here}/bin/{name}", 0o755)
    shutil.copytree(build_of.path(libc), here + "/libc")
    return installed(system, "of " + re.sub(r"\D*", "", build_of.name), prefix)


def can_mount():
    """May this process mount, in a namespace of its own?"""
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"],
        stderr=subprocess.DEVNULL, check=False).returncode == 0
