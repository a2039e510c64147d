# SPDX-License-Identifier: MIT
"""What programs are run under: nothing, the library in its ways to work, and
its peers; and which of these are compared."""

import dataclasses
import os
import shlex
import shutil
import subprocess

LIBDIR = "/usr/lib/x86_64-linux-gnu/"
JEMALLOC = LIBDIR + "libjemalloc.so.2"
TCMALLOC = LIBDIR + "libtcmalloc.so.4"  # the minimal one has no sampler

# Those of the user would be a setup of their own.
PREFIXES = ("SAMPLEPROF_", "LD_PRELOAD", "MALLOC_", "GLIBC_TUNABLES",
            "TCMALLOC_", "HEAPPROFILE", "HEAP_PROFILE", "PERFTOOLS_")


def environment():
    """That of this process, without what would change an allocator."""
    return {k: v for k, v in os.environ.items() if not k.startswith(PREFIXES)}


@dataclasses.dataclass(frozen=True)
class Setup:
    """Libraries, settings and a command in front; {out} in them is a prefix
    for files."""
    name: str
    preload: tuple = ()
    settings: tuple = ()  # NAME=VALUE
    wrapper: tuple = ()
    leaves: str = ""  # end of the name of a file that is there afterwards

    def missing(self):
        """A file or program that is not here, or None."""
        for path in self.preload:
            if not os.path.exists(path):
                return path
        if self.wrapper and not shutil.which(self.wrapper[0]):
            return self.wrapper[0]
        return None

    def assignments(self, out):
        preload = (("LD_PRELOAD=" + ":".join(self.preload),)
                   if self.preload else ())
        return [s.replace("{out}", out) for s in self.settings + preload]

    def command(self, out):
        return [s.replace("{out}", out) for s in self.wrapper]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """`row` beside `base`, in so many pairs."""
    base: Setup
    row: Setup
    rounds: int
    quick_rounds: int = 0
    main: bool = False
    small: bool = False  # too slow for most works
    every: bool = False  # allocation is recorded: for long works, too

    @property
    def name(self):
        return f"{self.row.name} / {self.base.name}"


def knows(library, setting):
    """Has the library this setting?  It prints all that it has."""
    told = subprocess.run(
        ["/bin/true"], stderr=subprocess.PIPE, text=True, check=True,
        env={**environment(), "LD_PRELOAD": library, "SAMPLEPROF_HELP": "1",
             "SAMPLEPROF_OUT": "/dev/null"})
    return f"SAMPLEPROF_{setting}=" in told.stderr


def peer(text):
    """NAME=LIBRARY [VARIABLE=VALUE]..., as the user wrote it."""
    name, separator, rest = text.partition("=")
    words = shlex.split(rest)
    if not separator or not words:
        raise ValueError(f"{text}: not NAME=LIBRARY [VARIABLE=VALUE]...")
    return Setup(name.strip(), (os.path.abspath(words[0]),), tuple(words[1:]))


class Setups:
    """All of them, of one build."""

    def __init__(self, library, jump, peers):
        self.library = library
        self.frames = knows(library, "UNWIND")
        self.none = Setup("no library")
        self.jump = Setup("jump", (jump,))
        self.dormant = self.profiler("off", "1T", START="off")
        self.counting = self.profiler("never sampling", "1T")
        self.usual = self.profiler("512 KiB", "512K")
        self.jemalloc = Setup("jemalloc", (JEMALLOC,),
                              ("MALLOC_CONF=prof:false",))
        self.jemalloc_prof = Setup(
            "jemalloc prof", (JEMALLOC,),
            ("MALLOC_CONF=prof:true,lg_prof_sample:19,prof_prefix:{out}je",))
        self.tcmalloc = self.over_tcmalloc("tcmalloc", "0")
        self.tcmalloc_sample = self.over_tcmalloc("tcmalloc sampling",
                                                  "524288")
        self.heaptrack = Setup(
            "heaptrack", wrapper=("heaptrack", "-o", "{out}ht.%p"),
            leaves=".zst")
        self.peers = [peer(text) for text in peers]

    def recorder(self):
        """Every allocation, but of the first process alone."""
        return self.profiler("every byte, one process", "1", FOLLOW="none")

    def profiler(self, name, period, below=(), **settings):
        settings = {"PERIOD": period, "OUT": "{out}%p.sprof", "LOG": "quiet",
                    "SEED": "1", **settings}
        if period == "4K":
            settings["MAX_FILE"] = "4G"
        return Setup(name, (self.library,) + below,
                     tuple(f"SAMPLEPROF_{k}={v}" for k, v in settings.items()),
                     leaves=".sprof")

    @staticmethod
    def over_tcmalloc(name, parameter, *settings):
        return Setup(name, (TCMALLOC,),
                     (f"TCMALLOC_SAMPLE_PARAMETER={parameter}",) + settings)

    def over(self, below, name):
        """The jump and the library on top of another allocator."""
        jump = dataclasses.replace(below, name=f"jump on {name}",
                                   preload=self.jump.preload + below.preload)
        usual = self.profiler(f"512 KiB on {name}", "512K", below.preload)
        return jump, dataclasses.replace(
            usual, settings=usual.settings + below.settings)

    def comparisons(self):
        none, jump = self.none, self.jump
        jumps = {name: self.over(below, name)
                 for name, below in (("jemalloc", self.jemalloc),
                                     ("tcmalloc", self.tcmalloc))}
        first = [
            Comparison(none, jump, 11, 1, main=True),
            Comparison(jump, self.dormant, 11, 2, main=True),
            Comparison(jump, self.usual, 11, 2, main=True),
            Comparison(self.jemalloc, self.jemalloc_prof, 11, 2, main=True),
            Comparison(*jumps["jemalloc"], 11, 1, main=True),
            Comparison(self.tcmalloc, self.tcmalloc_sample, 11, 2, main=True),
            Comparison(*jumps["tcmalloc"], 11, 1, main=True),
        ]
        second = [Comparison(none, self.profiler(name, period), 5, 1)
                  for name, period in (("64 KiB", "64K"), ("4 KiB", "4K"))]
        variants = [("frees off", {"FREES": "off"})]
        if self.frames:
            variants.append(("frame pointers", {"UNWIND": "fp"}))
        for name, setting in variants:
            second.append(Comparison(jump, self.profiler(
                f"512 KiB, {name}", "512K", **setting), 5, 1))
            second += [Comparison(none, self.profiler(
                f"{period} KiB, {name}", f"{period}K", **setting), 3)
                for period in (64, 4)]
        every = [Comparison(none, self.profiler("every byte", "1"), 2, 1,
                            every=True)]
        every += [Comparison(none, self.profiler(
            f"every byte, {name}", "1", **setting), 1)
            for name, setting in variants]
        return first + second + every + self.others()

    def others(self):
        none = self.none
        heap_profile = self.over_tcmalloc("tcmalloc HEAPPROFILE", "0",
                                          "HEAPPROFILE={out}tc")
        valgrind = ("valgrind", "-q")
        return [
            Comparison(none, self.heaptrack, 2, 1, every=True),
            Comparison(self.tcmalloc, heap_profile, 1, small=True),
            Comparison(none, self.jemalloc, 2),
            Comparison(none, self.tcmalloc, 2),
        ] + [Comparison(none, p, 3, 1) for p in self.peers] + [
            Comparison(none, Setup("DHAT", wrapper=valgrind + (
                "--tool=dhat", "--dhat-out-file={out}dhat.%p")), 1,
                small=True),
            Comparison(none, Setup("massif", wrapper=valgrind + (
                "--tool=massif", "--massif-out-file={out}massif.%p")), 1,
                small=True),
        ]
