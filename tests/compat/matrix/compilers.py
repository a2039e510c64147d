# SPDX-License-Identifier: MIT
"""Every compiler of this machine, at every level, with debug information of
every kind: whether the stacks of targets/tower.* are whole and have the names
that the program prints.  The table of docs/contributing.md, "Compilers"."""

import collections
import dataclasses
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile

import verdict
from systems import ROOT, Failed

DOCUMENT = os.path.join(ROOT, "docs", "contributing.md")
TIMEOUT_S = 120

LEVELS = ("-O0", "-O1", "-O2", "-Os")
FORMS = ("no tables", "LTO", ".dwo", ".dwp", "zlib", "zstd", "stripped",
         "debug file", "minidebuginfo")
NOTES = {".dwp": "¹", "stripped": "²", "minidebuginfo": "³"}
# The inlined functions are not there, or no reader of this machine has them.
NOT_INLINED = (".dwp", "minidebuginfo")
_C_BARE = "-fno-asynchronous-unwind-tables -fno-unwind-tables"
_CXX_BARE = _C_BARE + " -fno-exceptions"


@dataclasses.dataclass
class Compiler:
    """A command with {level}, {more}, {source} and {out}; what it is told for
    a form, where that is not the same for all: None if it has no such."""
    name: str
    source: str
    command: str
    told: dict = dataclasses.field(default_factory=dict)
    levels: dict = dataclasses.field(default_factory=dict)


def _gnu(name, source, more="", bare=_C_BARE):
    return Compiler(name, source, f"{name} {{level}} -g {{more}} {more} "
                    "{source} -o {out} -pthread",
                    {"no tables": bare, "LTO": "-flto",
                     ".dwo": "-gsplit-dwarf"})


_GCC, _CLANG = range(11, 15), range(13, 20)
COMPILERS = (
    *(_gnu(f"gcc-{n}", "tower.c") for n in _GCC),
    *(_gnu(f"g++-{n}", "tower.cc", "", _CXX_BARE) for n in _GCC),
    *(_gnu(f"clang-{n}", "tower.c") for n in _CLANG),
    *(_gnu(f"clang++-{n}", "tower.cc", "", _CXX_BARE) for n in _CLANG),
    Compiler("musl-gcc", "tower.c",
             "musl-gcc {level} -g {more} {source} -o {out} -pthread "
             "-Wl,--eh-frame-hdr",
             {"no tables": _C_BARE, "LTO": "-flto", ".dwo": "-gsplit-dwarf"}),
    Compiler("rustc", "tower.rs",
             "rustc -C opt-level={level} -g {more} {source} -o {out}",
             {"no tables": "-C panic=abort -C force-unwind-tables=no",
              "LTO": "-C lto=fat", ".dwo": "-C split-debuginfo=unpacked",
              ".dwp": "-C split-debuginfo=unpacked"},
             dict(zip(LEVELS, "012s"))),
    _gnu("gdc", "tower.d", "", _C_BARE + " -fno-exceptions"),
    Compiler("ldc2", "tower.d",
             "ldc2 {level} -g {more} {source} -of={out}",
             {"no tables": None, "LTO": "-flto=full", ".dwo": None}),
    Compiler("gnatmake", "tower.adb",
             "gnatmake -q -f {level} -g {more} {source} -o {out}",
             {"no tables": _C_BARE, "LTO": "-flto", ".dwo": "-gsplit-dwarf"}),
    _gnu("gfortran", "tower.f90", "-fno-inline"),
    Compiler("ocamlopt", "tower.ml",
             "ocamlopt -w -a -g {more} {source} -o {out}",
             {"no tables": None, "LTO": None, ".dwo": None},
             {"-O1": None, "-O2": None, "-Os": None}),
)


@dataclasses.dataclass
class Cell:
    """Of one compiler and column, the least of its levels; percent."""
    whole: float = 100.0
    named: float = 100.0
    is_run: bool = False
    problems: list = dataclasses.field(default_factory=list)

    def take(self, whole, named):
        self.whole, self.named = min(self.whole, whole), min(self.named, named)
        self.is_run = True

    def text(self):
        if self.problems:
            return "bad"
        if not self.is_run:
            return "-"
        whole, named = (f"{int(p * 10) / 10:g}" for p in (self.whole,
                                                          self.named))
        return whole if whole == named else f"{whole}/{named}"


def call(command, where):
    done = subprocess.run(command, cwd=where, capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise subprocess.SubprocessError(
            f"{shlex.join(command)}: {done.stderr.strip()[-300:]}")
    return done.stdout


def _mini(where):
    """As Fedora's packages: stripped, and a compressed small symbol table."""
    names = {}
    for options in (("--defined-only",), ("-D", "--defined-only")):
        listed = call(["nm", "--format=posix", *options, "app"], where)
        names[options] = {line.split()[0] for line in listed.splitlines()
                          if line.split()[1] in "tTD"}
    keep = set.difference(*names.values())
    with open(os.path.join(where, "keep"), "w", encoding="utf-8") as file:
        file.writelines(name + "\n" for name in sorted(keep))
    call(["objcopy", "--only-keep-debug", "app", "app.full"], where)
    call(["objcopy", "-S", "--remove-section", ".comment",
          "--keep-symbols=keep", "app.full", "mini"], where)
    call(["xz", "-f", "mini"], where)
    call(["strip", "--strip-all", "app"], where)
    call(["objcopy", "--add-section", ".gnu_debugdata=mini.xz", "app"], where)


def _package(where):
    """All *.dwo files as one, and they are gone."""
    units = [n for n in os.listdir(where) if n.endswith(".dwo")]
    call(["dwp", *units, "-o", "app.dwp"], where)
    for name in units:
        os.unlink(os.path.join(where, name))


def _apart(where):
    call(["objcopy", "--only-keep-debug", "app", "app.debug"], where)
    call(["strip", "--strip-all", "app"], where)
    call(["objcopy", "--add-gnu-debuglink=app.debug", "app"], where)


AFTERWARDS = {
    ".dwp": _package,
    "zlib": lambda where: call(
        ["objcopy", "--compress-debug-sections=zlib", "app"], where),
    "zstd": lambda where: call(
        ["objcopy", "--compress-debug-sections=zstd", "app"], where),
    "stripped": lambda where: call(["strip", "--strip-all", "app"], where),
    "debug file": _apart,
    "minidebuginfo": _mini,
}


def compile_to(where, compiler, level, form):
    """Makes `app`; False if there is no such."""
    told = compiler.told.get(form, "")
    if form == ".dwp" and not told:
        told = compiler.told[".dwo"]
        told = told and told + " -gdwarf-4"  # gold's dwp reads no other
    level = compiler.levels.get(level, level)
    if told is None or level is None:
        return False
    source = os.path.join(ROOT, "tests/compat/matrix/targets", compiler.source)
    shutil.copy(source, where)
    call(shlex.split(compiler.command.format(
        level=level, more=told, source=compiler.source, out="app")), where)
    if form in AFTERWARDS:
        AFTERWARDS[form](where)
    return True


def find_path(stack, path, wanted):
    """Which of the paths it has, as what the program's own frames are called
    one after the other; blanks in names are "_"."""
    names = [f["function"].replace(" ", "_") for f in stack["frames"]
             if f["module"] == path]
    for one in sorted(wanted, key=len, reverse=True):
        for at in range(len(names) - len(one) + 1):
            if tuple(names[at:at + len(one)]) == one:
                return one
    return None


def is_whole(stack, path, entries):
    """It reaches main, the entry of the program, or what the C library begins
    a thread with."""
    return not stack["truncated"] and (
        verdict.is_whole(stack, ("main",), "/", entries) or
        os.path.basename(stack["frames"][-1]["module"] or "").startswith(
            ("libc.", "ld-musl-", "libpthread")))


def judge(profile, printed, path, form):
    """(percent whole, percent named) of the paths that were printed."""
    wanted = collections.Counter()
    for line in printed.splitlines():
        times, *names = line.split()
        names = tuple(n.lstrip("~") for n in names
                      if form not in NOT_INLINED or n[0] != "~")
        wanted[names] += int(times)
    entries, whole, found = {}, 0, collections.Counter()
    own = [s for s in profile["stacks"]
           if any(f["module"] == path for f in s["frames"])]
    for stack in own:
        whole += stack["samples"] * is_whole(stack, path, entries)
        found[find_path(stack, path, wanted)] += stack["samples"]
    total, samples = sum(wanted.values()), sum(s["samples"] for s in own)
    named = sum(min(n, found[names]) for names, n in wanted.items())
    if not total or samples < total:
        raise subprocess.SubprocessError(f"{samples} samples, not {total}")
    return 100 * whole / samples, 100 * named / total


def run_cell(cell, compiler, level, form, build):
    with tempfile.TemporaryDirectory(prefix="sampleprof-") as where:
        where = os.path.realpath(where)
        try:
            if not compile_to(where, compiler, level, form):
                return
            profile, path = where + "/app.sprof", where + "/app"
            done = subprocess.run(
                [path], cwd=where, capture_output=True, text=True, check=True,
                timeout=TIMEOUT_S,
                env={**os.environ, "LD_PRELOAD": build.library,
                     "SAMPLEPROF_PERIOD": "1", "SAMPLEPROF_OUT": profile,
                     "SAMPLEPROF_LOG": "quiet"})
            said = json.loads(call([build.report, "--json", profile], where))
            for stack in said["stacks"]:
                stack["frames"] = [said["frames"][i] for i in stack["frames"]]
            whole, named = judge(said, done.stdout, path, form)
            if (form == ".dwp" and compiler.source == "tower.c" and
                    "app.dwp" not in call([build.report, profile], where)):
                raise subprocess.SubprocessError("no note of app.dwp")
            cell.take(whole, named)
        except subprocess.SubprocessError as error:
            cell.problems.append(f"{compiler.name} {level} {form}: {error}")


def columns():
    return (*LEVELS, *FORMS)


def run_elsewhere(release, source, wanted, there):
    """Of those that are not among `there`, but packages of this release: in
    its folder, by a build of its own."""
    names = [c.name for c in COMPILERS if c.name not in there and
             re.search(wanted, c.name) and re.match(r"(gcc|g|clang).*-\d", c.name)]
    if not names:
        return {}
    release.install([n.replace("clang++", "clang") for n in names])
    release.build(source)
    only = "|".join(f"^{re.escape(n)}$" for n in names)
    out = release.work + "/compilers.json"
    release.make([["rm", "-f", out], [
        "sh", "-c", '"$@"; [ $? -le 1 ]', "sh", "python3", "-B",
        release.work + "/source/tests/compat/matrix/run", "--compilers",
        release.work + "/build", "--only", only, "--json", out]], release.log)
    if not os.path.exists(release.path(out)):
        raise Failed(f"no table; the output is in {release.log}")
    with open(release.path(out), encoding="utf-8") as file:
        return {name: {column: Cell(**cell) for column, cell in row.items()}
                for name, row in json.load(file).items()}


def write_json(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({name: {column: dataclasses.asdict(cell)
                          for column, cell in row.items()}
                   for name, row in rows.items()}, file)


def run(build, wanted, say):
    """{compiler's name: {column: Cell}} of those that are there."""
    rows = {}
    for compiler in COMPILERS:
        tool = compiler.command.split()[0]
        if not re.search(wanted, compiler.name) or not shutil.which(tool):
            continue
        row = rows[compiler.name] = {c: Cell() for c in columns()}
        for level in LEVELS:
            run_cell(row[level], compiler, level, "", build)
            for form in FORMS:
                run_cell(row[form], compiler, level, form, build)
        say(f"{compiler.name}: " + ", ".join(
            f"{c} {cell.text()}" for c, cell in row.items()))
    return rows


def is_good(name, form, cell):
    """Below 100 % only what nobody can know: the small symbol table has no weak
    functions, such as those of templates."""
    return not cell.problems and cell.whole == 100 and (
        cell.named == 100 or form == "stripped" or
        (form == "minidebuginfo" and "++" in name))


def heading():
    """Of the table, with the notes that the document has below it."""
    return "| compiler | " + " | ".join(
        c + NOTES.get(c, "") for c in columns()) + " |"


def table(rows):
    """Lines; compilers of which all is the same are one row."""
    alike = {}
    order = {c.name: i for i, c in enumerate(COMPILERS)}
    for name, row in sorted(rows.items(), key=lambda r: order.get(r[0], 0)):
        alike.setdefault(tuple(c.text() for c in row.values()), []).append(name)
    yield heading()
    yield "|---" * (1 + len(columns())) + "|"
    for texts, names in alike.items():
        yield f"| {', '.join(names)} | " + " | ".join(texts) + " |"


def faults_of(document):
    """What the table of the document lacks; the first is a heading or a
    compiler that it should have."""
    found = re.search(r"^\| compiler \|.*\n(?:\|.*\n)*", document, re.M)
    lines = found[0].splitlines() if found else [""]
    told = {name for line in lines[2:]
            for name in line.split("|")[1].strip().split(", ")}
    return (([heading()] if lines[0] != heading() else []) +
            sorted(told ^ {c.name for c in COMPILERS}))


def write(lines):
    """Put the table in the place of the one that the document has."""
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    old = re.search(r"^\| compiler \|.*\n(?:\|.*\n)*", text, re.M)
    with open(DOCUMENT, "w", encoding="utf-8") as file:
        file.write(text[:old.start()] + "".join(s + "\n" for s in lines)
                   + text[old.end():])
