# SPDX-License-Identifier: MIT
"""The programs that each system runs, and how they are made there."""

import dataclasses
import os
import platform

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets")

SQL = b"""create table t(a, b);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into t select i, hex(i) || 'x' from n;
create index k on t(b);
select count(distinct substr(b, 3)), sum(length(upper(b))) from t;
"""

PYTHON = """import json
print(len(json.dumps([{str(i): [i, 'x' * (i % 50)]} for i in range(20000)])))
"""


@dataclasses.dataclass
class Program:
    """A command, with {} for the folder of what was made; `stacks`: how many
    distinct ones it has at least; `ends`: functions that a whole stack has one
    of; `own`: files of ours, with symbols, whose function leaf() is known;
    `counter`: what counts below the library; `is_full`: the profile is on a
    disk that is too small for it."""
    name: str
    argv: list
    period: str = "1"
    stacks: int = 30
    stdin: bytes = b""
    env: dict = dataclasses.field(default_factory=dict)
    ends: tuple = ("main", "run_thread", "run_thread()")
    own: tuple = ()
    counter: str = "count.so"
    is_full: bool = False


SQLITE = Program("sqlite3", ["/usr/bin/sqlite3", ":memory:"], "4K", 20, SQL)
FULL_DISK = dataclasses.replace(SQLITE, name="full disk", period="1",
                                is_full=True)
PYTHON3 = Program("python3", ["/usr/bin/python3", "-S", "-c", PYTHON],
                  "4K", 300, env={"PYTHONMALLOC": "malloc"})
PLUGINS = Program("plug-ins", ["{}/plugins", "{}/plugin.so"], stacks=15,
                  own=("plugins", "plugin.so"))


def calls(name, file):
    """64 paths to leaf() in main, and 64 in the thread."""
    return Program(name, ["{}/" + file], stacks=128, own=(file,))


# Programs of calls.c with holes between their segments: name, what the linker
# is told.  Only 2 MiB apart are they loaded with holes.
_HOLES = "-Wl,-z,max-page-size=0x200000"
_APART = "-Wl,-z,separate-loadable-segments"
NO_PIE = ("-fno-pie", "-no-pie")
LINKS = {
    "no-pie": NO_PIE,
    "holes": (_HOLES,),
    "holes no-pie": (_HOLES, *NO_PIE),
}
OTHER_LINKERS = {
    "gold holes": ("-fuse-ld=gold", _HOLES),
    "gold no-pie": ("-fuse-ld=gold", _HOLES, *NO_PIE),
    "lld holes": ("-fuse-ld=lld", _HOLES, _APART),
    "lld no-pie": ("-fuse-ld=lld", _HOLES, _APART, *NO_PIE),
}

# Attached to; without libdl, which the library needs before glibc 2.34.
ATTACHED = dataclasses.replace(calls("attach", "calls-attached"),
                               argv=["{}/calls-attached", "wait"])

# The default of gcc 5 is C++98.
_CXX = ("-std=gnu++14",)
_FLAGS = ("-g", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls")


def linked(links):
    return [calls(name, "calls-" + name.replace(" ", "-")) for name in links]


MUSL = dataclasses.replace(calls("calls", "calls-musl"),
                           counter="count-musl.so")


def commands(out, sources, links):
    """What compiles all of them into `out`, with musl-gcc apart."""
    def compile_to(file, compiler, source, *options):
        return [compiler, *_FLAGS, *options, f"{sources}/{source}", "-o",
                f"{out}/{file}", "-pthread", "-ldl"]

    shared = ("-shared", "-fPIC")
    return [
        compile_to("count.so", "gcc", "count.c", *shared),
        compile_to("plugin.so", "g++", "plugin.cc", *_CXX, *shared),
        compile_to("plugins", "g++", "plugins.cc", *_CXX),
        compile_to("old_kernel", "gcc", "old_kernel.c"),
        compile_to("calls-attached", "gcc", "calls.c", "-Wl,--as-needed"),
        *(compile_to("calls-" + name.replace(" ", "-"), "gcc", "calls.c",
                     *options) for name, options in links.items()),
    ]


def musl_agent_commands(out, source):
    """What builds the library alone with musl-gcc, which does not look for the
    kernel's headers."""
    headers = " ".join("-idirafter " + d for d in (
        "/usr/include", "/usr/include/x86_64-linux-gnu"))
    return [
        ["cmake", "-S", source, "-B", out, "-G", "Ninja",
         "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF",
         "-DSAMPLEPROF_WERROR=ON", "-DCMAKE_C_COMPILER=musl-gcc",
         "-DCMAKE_C_COMPILER_LAUNCHER=ccache", f"-DCMAKE_C_FLAGS={headers}"],
        ["cmake", "--build", out, "--target", "sampleprof"],
    ]


def musl_commands(out, sources):
    """musl's linker leaves out the index of unwind tables unless told; on
    aarch64 gcc's own functions for atomics need glibc."""
    compiler = ["musl-gcc", *_FLAGS,
                *["-mno-outline-atomics"] * (platform.machine() == "aarch64")]
    return [
        [*compiler, f"{sources}/calls.c", "-Wl,--eh-frame-hdr", "-o",
         f"{out}/calls-musl", "-pthread"],
        [*compiler, "-shared", "-fPIC", f"{sources}/count.c", "-o",
         f"{out}/count-musl.so"],
    ]
