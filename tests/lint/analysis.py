#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Two tools that follow the paths through the functions of src and tools find
no fault on any: clang's analyzer, with the checks of .clang-tidy, and cppcheck.

    analysis.py ROOT BUILD [FILE...]    1, and reports on standard output

BUILD has a compile_commands.json.  A FILE is one of src or tools; without any,
all are looked at, as many at once as there are processors.  The status is 77
(skipped) where the two tools are missing.

Both see the sources with their assertions.  A report of something that cannot
happen is answered in the source, where a reader asks the same question: by an
assertion, by an initial value, or by a comment NOLINT or cppcheck-suppress
that says why.
"""
import concurrent.futures
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys

TIDY, CPPCHECK = "clang-tidy-14", "cppcheck"
# Of a command of the compiler: where to look for headers, what is defined, and
# the language.  NDEBUG would take the assertions out.
KEPT = re.compile(r"-(D(?!NDEBUG\b)|U|I|std=)")
# cppcheck neither reads the C library's headers nor knows the compiler.
KNOWN = [f"-D__{platform.machine()}__=1", "-D__linux__=1", "-D__GNUC__=12",
         "-DElfW(type)=Elf64_##type",
         "-Djson_array_foreach(array, index, value)="
         "while ((value = json_array_get(array, index = strlen(\"\"))))"]
OPTIONS = ["--quiet", "--enable=warning,performance", "--inline-suppr",
           "--library=posix", "--library=gnu", "--error-exitcode=1",
           "--template={file}:{line}: {message} [{id}]",
           # What assembly writes, which cppcheck does not read.
           "--suppress=uninitvar:*/src/agent/sys/arch_*.h",
           # A macro that asks whether it was given a text.
           "--suppress=incorrectStringBooleanError:*/interpose_cxx.c"]


def commands(root, build):
    """Path: what its compiler is told, for the sources of src and tools."""
    with open(f"{build}/compile_commands.json", encoding="utf-8") as file:
        listed = json.load(file)
    found = {}
    for entry in listed:
        path = os.path.relpath(entry["file"], root)
        if path.startswith(("src/", "tools/")):
            found[path] = told(shlex.split(entry["command"]))
    return found


def told(words):
    """What both tools need of a command of the compiler."""
    folders = [word for option, word in zip(words, words[1:])
               if option == "-isystem"]
    return [word for word in words if KEPT.match(word)] + [
        f"-I{folder}" for folder in folders]


def reports(root, path, arguments):
    """What the two say about one source, "" if nothing."""
    text = ""
    for command in (
            [TIDY, "--quiet", "--warnings-as-errors=*", path, "--", *arguments],
            [CPPCHECK, *OPTIONS, *KNOWN, path,
             *(a for a in arguments if a != "-std=gnu11"), "--std=c11"]):
        ended = subprocess.run(command, cwd=root, capture_output=True,
                               text=True, check=False)
        if ended.returncode:
            text += ended.stdout + ended.stderr
    return text


def main():
    root, build = map(os.path.realpath, sys.argv[1:3])
    if not shutil.which(TIDY) or not shutil.which(CPPCHECK):
        print(f"{TIDY} or {CPPCHECK} is not installed")
        return 77
    known = commands(root, build)
    paths = sys.argv[3:] or sorted(known)
    strange = [path for path in paths if path not in known]
    if strange or not paths:
        print(f"{build} compiles no", " ".join(strange) or "src or tools")
        return 1
    bad = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for said in pool.map(lambda path: reports(root, path, known[path]),
                             paths):
            print(said, end="", flush=True)
            bad = bad or bool(said)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
