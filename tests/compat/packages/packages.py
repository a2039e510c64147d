# SPDX-License-Identifier: MIT
"""Packages of a release: made where the oldest C library is, read by lintian,
installed and removed."""

import filecmp
import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "matrix"))
# pylint: disable=wrong-import-position
from systems import ROOT, Failed, call  # noqa: E402

import container  # noqa: E402

# Of this machine, and of the system that builds.
PACKAGES = ["debootstrap", "git", "lintian", "rpm", "musl-tools", "gcc",
            "busybox-static", "python3-yaml"]
BUILDING = ["ninja-build", "ccache", "rpm", "file", "dpkg-dev"]
# To build there for aarch64, and to run what was built.
BUILDING_ARM64 = ["crossbuild-essential-arm64", "qemu-user-static"]
QEMU = "qemu-aarch64-static"
OLDEST = "bullseye"
INSTALLED_ON = ["bullseye", "bookworm", "trixie"]
# What the library and the programs may need of glibc.
LIBRARY_GLIBC, PROGRAMS_GLIBC = "2.17", "2.31"
OLD = "0.1.0"
NAMES = ("sampleprof-agent", "sampleprof")

LIBRARY = "lib/sampleprof/libsampleprof.so"


def expect(condition, text):
    if not condition:
        raise Failed(text)


def output_of(system, argv):
    """Standard output of what has to succeed."""
    done = system.run(argv)
    expect(done.returncode == 0, f"{' '.join(argv)} ended with "
           f"{done.returncode}: {done.stderr.decode().strip()[-400:]}")
    return done.stdout.decode()


def wanted(source):
    """What tools/packages.sh of the tree that is built needs of a release."""
    script = ('. "$0/tools/packages.sh"; printf "%s\\n" '
              '"${BUILD_PACKAGES[@]}" "${RELEASE_PACKAGES[@]}"')
    return subprocess.run(["bash", "-euc", script, source], check=True,
                          stdout=subprocess.PIPE).stdout.decode().split()


# ---- what is made ----

def build_arm64(release, wanted_packages):
    """Of the sources that the release has, with its cross compilers."""
    release.make([["dpkg", "--add-architecture", "arm64"]], release.log)
    shutil.copy("/etc/resolv.conf", release.path("/etc/resolv.conf"))
    apt(release, "update")
    apt(release, "install", *BUILDING_ARM64,
        *(p + ":arm64" for p in wanted_packages if p.endswith("-dev")))
    build = release.work + "/build-arm64"
    shutil.rmtree(release.path(build), ignore_errors=True)
    release.make([
        ["env", "PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig"
         ":/usr/share/pkgconfig",
         "cmake", "-S", release.work + "/source", "-B", build, "-G", "Ninja",
         "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF",
         "-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
         "-DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc",
         "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++",
         "-DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu",
         f"-DCMAKE_CROSSCOMPILING_EMULATOR={QEMU}",
         "-DCMAKE_C_COMPILER_LAUNCHER=ccache",
         "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"],
        ["cmake", "--build", build]], release.log)
    # One of them takes the place of that of this architecture.
    apt(release, "install", *wanted_packages)


def make(release, out, build="build", env=()):
    """All packages of what the release has built in `out`, older ones in
    out/old."""
    build, made = f"{release.work}/{build}", release.work + "/packages"
    shutil.rmtree(release.path(made), ignore_errors=True)
    config, older = build + "/CPackConfig.cmake", build + "/Older.cmake"
    with open(release.path(config), encoding="utf-8") as file:
        text = file.read()
    version = re.search(r'CPACK_PACKAGE_VERSION "(.*?)"', text).group(1)
    with open(release.path(older), "w", encoding="utf-8") as file:
        file.write(text.replace(version, OLD))
    release.make([["env", *env, "cpack", "--config", config, "-B", made],
                  ["env", *env, "cpack", "--config", older, "-B",
                   made + "/old"]],
                 release.log)
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(release.path(made), out,
                    ignore=shutil.ignore_patterns("_CPack_Packages"))


def packages(out, ending, version=""):
    """Paths by name, of that ending."""
    found = {}
    for path in glob.glob(f"{out}/*{ending}"):
        name = re.match(r"(.*?)[-_][0-9]", os.path.basename(path)).group(1)
        found[name] = path
    expect(sorted(found) == sorted(NAMES),
           f"{ending}{version}: {sorted(found)} were made")
    return [found[name] for name in NAMES]


def archive(out):
    path, = glob.glob(out + "/*.tar.gz")
    return path


def version_of(out):
    return re.search(r"-(\d+\.\d+\.\d+)-", archive(out)).group(1)


def check_lintian(out):
    done = subprocess.run(
        ["lintian", "--fail-on", "error", "--allow-root",
         *packages(out, ".deb")], capture_output=True, check=False)
    text = done.stdout.decode()
    expect(done.returncode == 0, "lintian: " + text + done.stderr.decode())
    return f"{len(text.splitlines())} warnings"


def check_symbols(out, scratch):
    """Of all programs and libraries in the archive and the packages."""
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    subprocess.run(["tar", "-C", scratch, "-xzf", archive(out)], check=True)
    for package in packages(out, ".deb"):
        subprocess.run(["dpkg-deb", "-x", package, scratch], check=True)
    lint = os.path.join(ROOT, "tests", "lint", "library.sh")
    checked = 0
    for folder, _, files in os.walk(scratch):
        for name in files:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                if os.path.islink(path) or file.read(4) != b"\x7fELF":
                    continue
            limit = (LIBRARY_GLIBC if name == os.path.basename(LIBRARY)
                     else PROGRAMS_GLIBC)
            done = subprocess.run([lint, "glibc", path, limit],
                                  capture_output=True, check=False)
            text = done.stdout.decode()
            expect(done.returncode == 0 or "no GLIBC version" in text, text)
            checked += 1
    expect(checked >= 10, f"only {checked} programs and libraries found")
    return f"{checked} files"


BUILT = ("src/agent/libsampleprof.so", "tools/sampleprof",
         "tools/sampleprof-report", "tools/sampleprof-serve")


def check_same(release):
    """Built once more, of the same sources in another folder and without
    ccache, every file is the same to the bit."""
    other = "/elsewhere/with/a/longer/name"
    shutil.rmtree(release.path("/elsewhere"), ignore_errors=True)
    shutil.copytree(release.path(release.work + "/source"),
                    release.path(other + "/source"), symlinks=True)
    release.make([
        ["cmake", "-S", other + "/source", "-B", other + "/build", "-G",
         "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF",
         f"-DCMAKE_INSTALL_PREFIX={release.work}/own"],
        ["cmake", "--build", other + "/build"]], release.log)
    for name in BUILT:
        expect(filecmp.cmp(release.path(f"{release.work}/build/{name}"),
                           release.path(f"{other}/build/{name}"),
                           shallow=False), f"{name} is not the same")
    return f"{len(BUILT)} files"


# ---- where it is used ----

def profile(system, command, program):
    """Every allocation of a program, whose output stays."""
    path = "/tmp/packages.sprof"
    clean = ["env", "-i", "PATH=/usr/bin:/bin"]
    bare = output_of(system, [*clean, *program])
    system.run(["rm", "-f", path])
    under = output_of(system, [*clean, command, "run", "--quiet", "--period",
                               "1", "--out", path, "--", *program])
    expect(bare == under, f"{program[0]} prints something else when profiled")
    container.judge(output_of(
        system, [*clean, command, "report", "--json", path]))


PROGRAM = ["/bin/ls", "-l", "/usr/lib"]


def ours(system):
    """Files that are there of sampleprof."""
    found = output_of(system, [
        "find", "/usr", "/etc", "/opt", "-path", "*sampleprof*"])
    return set(found.split())


def try_archive(system, out):
    system.run(["rm", "-rf", "/opt/elsewhere"])
    output_of(system, ["mkdir", "-p", "/opt/elsewhere"])
    shutil.copy(archive(out), system.path("/opt/elsewhere/a.tar.gz"))
    output_of(system, ["tar", "-C", "/opt/elsewhere", "-xzf",
                       "/opt/elsewhere/a.tar.gz"])
    inside = os.path.basename(archive(out)).replace(".tar.gz", "")
    profile(system, f"/opt/elsewhere/{inside}/bin/sampleprof", PROGRAM)
    system.run(["rm", "-rf", "/opt/elsewhere"])


def try_arm64(system, out):
    """The programs of the archive, profiled and read on aarch64, and what the
    packages say of themselves."""
    shutil.rmtree(system.path("/opt/arm64"), ignore_errors=True)
    output_of(system, ["mkdir", "-p", "/opt/arm64"])
    shutil.copy(archive(out), system.path("/opt/arm64/a.tar.gz"))
    output_of(system, ["tar", "-C", "/opt/arm64", "--strip-components=1",
                       "-xzf", "/opt/arm64/a.tar.gz"])
    clean = ["env", "-i", "PATH=/usr/bin:/bin", QEMU]
    program, path = "/opt/arm64/bin/sampleprof", "/tmp/arm64.sprof"
    system.run(["rm", "-f", path])
    bare = output_of(system, [*clean, program, "help"])
    under = output_of(system, [
        *clean, "-E", "LD_PRELOAD=/opt/arm64/" + LIBRARY, "-E",
        "SAMPLEPROF_PERIOD=1", "-E", "SAMPLEPROF_OUT=" + path, program,
        "help"])
    expect(bare == under, "it prints something else when profiled")
    # qemu-user does not start another program of aarch64.
    container.judge(output_of(
        system, [*clean, program + "-report", "--json", path]))
    for package in packages(out, ".deb"):
        field = subprocess.run(
            ["dpkg-deb", "-f", package, "Architecture"], check=True,
            stdout=subprocess.PIPE).stdout.decode().strip()
        expect(field == "arm64", f"{package} is for {field}")
    for package in packages(out, ".rpm"):
        expect(package.endswith(".aarch64.rpm"), f"{package} has this name")
    system.run(["rm", "-rf", "/opt/arm64"])


def copy_in(system, paths):
    """As the system sees them."""
    folder = system.path("/packages")
    os.makedirs(folder, exist_ok=True)
    return ["/packages/" + os.path.basename(shutil.copy(p, folder))
            for p in paths]


def installed_packages(system):
    return set(output_of(system, ["dpkg-query", "-W", "-f", "${Package}\\n"])
               .split())


def apt(system, *arguments):
    output_of(system, ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get",
                       "-q", "-y", *arguments])


def check_installed(system, known, version):
    """`known`: its version by the system's books."""
    expect(known.split("-")[0] == version, f"{known} is installed")
    for path in ("/usr/share/man/man1/sampleprof.1.gz",
                 "/usr/share/doc/sampleprof-agent/copyright",
                 "/usr/share/pkgconfig/sampleprof.pc"):
        expect(os.path.exists(system.path(path)), f"{path} is missing")
    output_of(system, ["bash", "-n",
                       "/usr/share/bash-completion/completions/sampleprof"])
    expect(output_of(system, ["sampleprof", "preload-path"]) ==
           f"/usr/{LIBRARY}\n", "preload-path names another library")
    profile(system, "/usr/bin/sampleprof", PROGRAM)


def deb_version(system):
    return output_of(system, ["dpkg-query", "-W", "-f", "${Version}", NAMES[1]])


def try_apt(system, out, version):
    shutil.copy("/etc/resolv.conf", system.path("/etc/resolv.conf"))
    new = copy_in(system, packages(out, ".deb"))
    old = copy_in(system, packages(out + "/old", ".deb", OLD))
    # What an earlier run may have left.
    output_of(system, ["dpkg", "--purge", *reversed(NAMES)])
    expect(not ours(system), f"it had {ours(system)}")
    before = installed_packages(system)
    apt(system, "update")
    apt(system, "install", old[0])
    added = installed_packages(system) - before
    expect(added == {NAMES[0]}, f"the library alone installs {added}")
    apt(system, "install", *old)
    check_installed(system, deb_version(system), OLD)
    apt(system, "install", *new)
    check_installed(system, deb_version(system), version)
    for name in NAMES:
        expect(not output_of(system, ["dpkg", "-V", name]),
               f"dpkg -V {name} finds something")
    apt(system, "purge", *NAMES)
    apt(system, "autoremove", "--purge")
    expect(not ours(system), f"after purge there are {ours(system)}")


SPEC = """Name: system
Version: 1
Release: 1
Summary: what the folder has
License: none
AutoReqProv: no
{provides}
%description
What the folder has.
%files
"""


def rpm_database(system, scratch):
    """An rpm database of a Debian: one package that provides what rpm itself
    finds in the libraries there."""
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    libraries = glob.glob(system.path("/usr/lib/**/*.so*"), recursive=True)
    provides = subprocess.run(
        ["/usr/lib/rpm/rpmdeps", "--provides"], capture_output=True,
        input="\n".join(libraries).encode(), check=True).stdout.decode()
    # The last two are no library's.
    lines = sorted(set(provides.splitlines())) + ["/bin/sh",
                                                  "rtld(GNU_HASH)"]
    spec = scratch + "/system.spec"
    with open(spec, "w", encoding="utf-8") as file:
        file.write(SPEC.format(provides="\n".join(
            "Provides: " + line for line in lines)))
    call(["rpmbuild", "--quiet", "-bb", "--define", f"_topdir {scratch}",
          spec], scratch + "/log")
    stub, = glob.glob(scratch + "/RPMS/*/*.rpm")
    shutil.rmtree(system.path(subprocess.run(
        ["rpm", "--eval", "%_dbpath"], check=True,
        stdout=subprocess.PIPE).stdout.decode().strip()), ignore_errors=True)
    rpm(system, "--initdb")
    rpm(system, "-i", "--ignorearch", stub)


def rpm(system, *arguments):
    done = subprocess.run(["rpm", "--root", system.root, *arguments],
                          capture_output=True, check=False)
    expect(done.returncode == 0, f"rpm {' '.join(arguments)}: "
           + (done.stdout + done.stderr).decode()[-600:])
    return done.stdout.decode()


def libraries_of(package):
    """Packages that a .deb depends on, but ours."""
    field = subprocess.run(["dpkg-deb", "-f", package, "Depends"], check=True,
                           stdout=subprocess.PIPE).stdout.decode()
    return [name for name in re.findall(r"(?:^|, )([\w.+-]+)", field)
            if name not in NAMES]


def try_rpm(system, out, version, scratch):
    system.install(libraries_of(packages(out, ".deb")[1]))
    rpm_database(system, scratch)
    expect(not ours(system), f"it had {ours(system)}")
    rpm(system, "-i", *packages(out + "/old", ".rpm", OLD))
    query = ("-q", "--queryformat", "%{VERSION}", NAMES[1])
    check_installed(system, rpm(system, *query), OLD)
    rpm(system, "-U", *packages(out, ".rpm"))
    check_installed(system, rpm(system, *query), version)
    rpm(system, "-V", *NAMES)
    rpm(system, "-e", *NAMES)
    expect(not ours(system), f"after -e there are {ours(system)}")
