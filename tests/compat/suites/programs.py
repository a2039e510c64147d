# SPDX-License-Identifier: MIT
"""The suites: how each is built, divided into groups, run and read.

The outcome of a test is a text that begins with "ok", "skipped" or "failed".
What a suite prints about a test beyond that, such as compressed sizes, is part
of the outcome: it must not change either.
"""

import os
import re
import shutil

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Suite:
    """`packages`: what it is built and run with; `jobs`: how many of its
    groups may run side by side."""

    name = ""
    packages = ()
    timeout_s = 3600
    jobs = 64

    def build(self, sources):
        """Once; needs the network the first time."""

    def stage(self, scratch):
        """Make the directory in which one worker runs groups."""

    def groups(self):
        """Names of what can be run by itself."""
        raise NotImplementedError

    def command(self, group, scratch, worker):
        """argv and working directory; workers have different numbers."""
        raise NotImplementedError

    def outcomes(self, group, text):
        """(name, outcome) of each test, from what the group printed."""
        raise NotImplementedError


class Zlib(Suite):
    """`make test`, and infcover, which tests each way through inflate."""

    name = "zlib"
    packages = ("build-essential",)
    PROGRAMS = ("example", "examplesh", "example64", "infcover",
                "minigzip", "minigzipsh", "minigzip64")

    def build(self, sources):
        self.tree = sources.make(
            "zlib", ["./configure"], ["make", "all", "all64", "infcover"])

    def groups(self):
        return self.PROGRAMS

    def command(self, group, scratch, worker):
        program = os.path.join(self.tree, group)
        if group.startswith("minigzip"):
            return ["sh", "-c", 'for f in "$@"; do "$0" <"$f" | "$0" -d | '
                    'cmp - "$f" && echo "${f##*/}: same"; done',
                    program, os.path.join(self.tree, "deflate.c"),
                    os.path.join(self.tree, "ChangeLog")], scratch
        return [program], scratch

    def outcomes(self, group, text):
        for line in text.splitlines():
            name, _, rest = line.partition(": ")
            good = not name.endswith((" error", "cmp", "minigzip"))
            yield name, f"{'ok' if good else 'failed'} {rest}".strip()


class InstalledZlib(Zlib):
    """The same programs, from Debian's package of examples."""

    name = "zlib-installed"
    packages = ("build-essential", "zlib1g-dev")
    EXAMPLES = "/usr/share/doc/zlib1g-dev/examples"
    PROGRAMS = ("example", "minigzip")

    def build(self, sources):
        self.tree = os.path.join(sources.work, self.name)
        os.makedirs(self.tree, exist_ok=True)
        for name in self.PROGRAMS:
            source = shutil.copy(f"{self.EXAMPLES}/{name}.c", self.tree)
            sources.compile(["cc", "-O1", "-w", "-o",
                             os.path.join(self.tree, name), source, "-lz"])
        for name in ("deflate.c", "ChangeLog"):
            shutil.copy("/usr/include/zlib.h", os.path.join(self.tree, name))


class Lua(Suite):
    """Debian's source of Lua has no tests.  The suite of LPeg, which Lua's
    authors maintain, has; Lua's own is run too if it is there."""

    name = "lua"
    packages = ("build-essential",)

    def __init__(self, own_tests):
        """`own_tests`: directory of Lua's tests, or None."""
        self.own_tests = own_tests and os.path.abspath(own_tests)

    def build(self, sources):
        tree = sources.make("lua5.4", [
            "sh", "-c", """printf '#define DEB_HOST_MULTIARCH "%s"\n' \
                "$(dpkg-architecture -qDEB_HOST_MULTIARCH)" \
                > src/lua5.4-deb-multiarch.h && rm -f src/luac.c &&
                cc -O2 -DLUA_USE_LINUX -DLUA_COMPAT_5_3 -Wl,-E -o lua \
                src/*.c -lm -ldl"""])
        include = os.path.join(tree, "src")
        self.lpeg = sources.make("lua-lpeg", [
            "sh", "-c", f"cc -O2 -std=c99 -shared -fPIC -I{include} "
            "-o lpeg.so lp*.c"])
        self.lua = os.path.join(tree, "lua")

    def stage(self, scratch):
        if self.own_tests:
            shutil.copytree(self.own_tests, os.path.join(scratch, "own"))
        shutil.copytree(self.lpeg, os.path.join(scratch, "lpeg"))

    def groups(self):
        groups = ["lpeg/test.lua"]
        if self.own_tests:
            groups += sorted("own/" + f for f in os.listdir(self.own_tests)
                             if f.endswith(".lua") and f not in NOT_ALONE)
        return groups

    def command(self, group, scratch, worker):
        directory, _, name = group.partition("/")
        # _U: the portable tests; _soft: within the memory of small machines.
        return ([self.lua, "-W", "-e", "_U = true; _port = true", name],
                os.path.join(scratch, directory))

    def outcomes(self, group, text):
        """Beside the status: a test that prints OK reached its end."""
        if "lpeg" in group:
            yield "prints OK", "ok" if "OK" in text else "failed"


# all.lua runs the others; these need its preparations, or hours.
NOT_ALONE = ("all.lua", "big.lua", "heavy.lua")


class Zstd(Suite):
    """What `make check` and `make test` run; the fuzzers with a seed and a
    number of rounds instead of a time."""

    name = "zstd"
    packages = ("build-essential", "file", "less", "zlib1g-dev", "liblzma-dev",
                "liblz4-dev")
    PROGRAMS = {
        "fuzzer": ["./fuzzer", "-v", "-i100", "-s1"],
        "zstreamtest": ["./zstreamtest", "-v", "-i100", "-s1"],
        "zstreamtest --newapi": ["./zstreamtest", "--newapi", "-t1", "-i100",
                                 "-s1"],
        "decodecorpus": ["./decodecorpus", "-t", "-n200", "-s1"],
        "invalidDictionaries": ["./invalidDictionaries"],
        "legacy": ["./legacy"],
        "poolTests": ["./poolTests"],
        "cli-tests": ["./cli-tests/run.py", "--zstd", "../programs/zstd",
                      "--datagen", "./datagen"],
        "playTests.sh": ["env", "ZSTD_BIN=../programs/zstd",
                         "DATAGEN_BIN=./datagen", "./playTests.sh"],
    }

    def build(self, sources):
        self.tree = sources.make("libzstd", [
            "make", "-C", "tests", "zstd", "datagen", "fuzzer", "zstreamtest",
            "invalidDictionaries", "legacy", "decodecorpus", "poolTests"])

    def stage(self, scratch):
        for name in ("programs", "tests"):
            shutil.copytree(os.path.join(self.tree, name),
                            os.path.join(scratch, name), symlinks=True)

    def groups(self):
        return list(self.PROGRAMS)

    def command(self, group, scratch, worker):
        return self.PROGRAMS[group], os.path.join(scratch, "tests")

    def outcomes(self, group, text):
        # All but cli-tests stop at the first failure, with a status: what was
        # reached after a test tells that it passed.
        text = re.sub("0x[0-9a-f]+", "an address", text)
        for line in text.replace("\r", "\n").splitlines():
            heading = re.match(r"===> +(.*)", line)
            numbered = re.match(r"(test *\d+) *: *(.*?)[ :]*(OK.*)?$", line)
            listed = re.match(r"(PASS|FAIL): (\S+)$", line)
            if heading:
                yield heading[1].strip(), "ok reached"
            elif numbered:
                yield (f"{numbered[1]} {numbered[2]}",
                       "ok " + (numbered[3] or "reached").strip())
            elif listed:
                yield listed[2], "ok" if listed[1] == "PASS" else "failed"


class Sqlite(Suite):
    """The Tcl tests, permutation veryquick, each file by itself."""

    name = "sqlite"
    packages = ("build-essential", "tcl-dev", "tcl", "zlib1g-dev")
    LIST = """
set argv0 [lindex $argv 0]
set argv {}
source [file join [file dirname $argv0] permutations.test]
array set o $::testspec(veryquick)
foreach f $o(-files) { puts "FILE [file tail $f]" }
"""

    def build(self, sources):
        self.tree = sources.make("sqlite3", ["./configure"],
                                 ["make", "testfixture"])
        self.program = os.path.join(self.tree, "testfixture")
        script = os.path.join(sources.work, "list.tcl")
        with open(script, "w", encoding="utf-8") as f:
            f.write(self.LIST)
        text = sources.output([self.program, script,
                               os.path.join(self.tree, "test", "list.test")])
        self.files = sorted({line.split()[1] for line in text.splitlines()
                             if line.startswith("FILE ")})

    def groups(self):
        return self.files

    def command(self, group, scratch, worker):
        return [self.program,
                os.path.join(self.tree, "test", "permutations.test"),
                "veryquick", group], scratch

    def outcomes(self, group, text):
        """A line "name... Ok"; something may come in between."""
        name = None
        for line in text.splitlines():
            begun = re.match(r"(\S+)\.\.\.(.*)", line)
            if begun:
                if name:
                    yield name, "failed"
                name, line = begun[1], begun[2]
            if name and line.endswith((" Ok", " Omitted")):
                yield name, "ok" if line.endswith("Ok") else "skipped"
                name = None
        if name:
            yield name, "failed"


class Redis(Suite):
    """Each unit of runtest by itself.  The program is linked with no allocator
    (MALLOC=libc), so that it uses what is preloaded."""

    name = "redis"
    packages = ("build-essential", "pkg-config", "tcl", "procps")
    jobs = 16       # each has ports of its own
    BUILT = ("src/redis-server", "src/redis-cli", "src/redis-benchmark",
             "src/redis-check-aof", "src/redis-check-rdb")
    RESULT = re.compile(r"\[(ok|err|exception|timeout|skip|ignore)\]:? "
                        r"(.*?)(?: \(\d+ ms\))?$")
    TEXT = {"ok": "ok", "skip": "skipped", "ignore": "skipped"}

    def build(self, sources):
        # Without debug information: the profiles are read fast.
        self.tree = sources.make("redis", ["make", "MALLOC=libc", "DEBUG="])

    def stage(self, scratch):
        for name in ("runtest", "redis.conf"):
            shutil.copy(os.path.join(self.tree, name), scratch)
        shutil.copytree(os.path.join(self.tree, "tests"),
                        os.path.join(scratch, "tests"))
        os.mkdir(os.path.join(scratch, "src"))
        for name in self.BUILT:
            shutil.copy(os.path.join(self.tree, name),
                        os.path.join(scratch, name))

    def groups(self):
        with open(os.path.join(self.tree, "tests", "test_helper.tcl"),
                  encoding="utf-8") as f:
            listed = re.search(r"set ::all_tests \{(.*?)\}", f.read(), re.S)
        return listed[1].split()

    def command(self, group, scratch, worker):
        port = 24000 + 500 * worker
        return ["./runtest", "--single", group, "--clients", "1",
                "--baseport", str(port), "--portcount", "400"], scratch

    def outcomes(self, group, text):
        """psync2 draws its servers and numbers at random, and names its tests
        after them: there those that differ in numbers are one test."""
        found = {}
        for line in ANSI.sub("", text).splitlines():
            match = self.RESULT.match(line)
            if not match:
                continue
            name = match[2]
            outcome = self.TEXT.get(match[1], "failed")
            if name.startswith("PSYNC2"):
                name = "PSYNC2" + re.sub(r"\d+( #\d+)*", "N", name[6:])
                if found.get(name) == "failed":
                    continue
                found[name] = outcome
            else:
                yield name, outcome
        yield from found.items()


class Python(Suite):
    """Modules of Python's own suite, as Debian packages them, with malloc for
    everything instead of Python's arenas."""

    name = "python"
    packages = ("python3", "libpython3.11-testsuite")
    MODULES = ("test_re", "test_zlib", "test_configparser", "test_struct",
               "test_memoryview")
    interpreter = os.path.realpath("/usr/bin/python3")

    def groups(self):
        return self.MODULES

    def command(self, group, scratch, worker):
        return ["env", "PYTHONMALLOC=malloc", "PYTHONHASHSEED=0",
                self.interpreter, "-B", "-m", "unittest", "-v",
                f"test.{group}"], scratch

    def outcomes(self, group, text):
        """A test with a description takes two lines."""
        name = None
        for line in text.splitlines():
            begun = re.match(r"test\S* \(\S+\)", line)
            ended = re.search(r" \.\.\. (.*)$", line)
            name = begun[0] if begun else name
            if name and ended:
                good = ended[1] == "ok" or ended[1].startswith(
                    ("skipped", "expected"))
                yield name, ended[1] if good else "failed " + ended[1]
                name = None
