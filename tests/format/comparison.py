# SPDX-License-Identifier: MIT
"""What the reader and sampleprof-report say about the same file."""

import json
import os
import subprocess
import sys
from collections import Counter

import reader

WRONG = []


def same(what, first, second):
    if first != second:
        WRONG.append(what)
        print(f"{what}: the reader says\n  {str(first)[:1000]}\n"
              f"the report says\n  {str(second)[:1000]}")


def text(raw):
    return raw.decode("utf-8", "replace")


def record(args, end, path, **settings):
    env = {**os.environ, "LD_PRELOAD": args.library, "SAMPLEPROF_OUT": path,
           "SAMPLEPROF_PERIOD": "100", "SAMPLEPROF_SEED": "1",
           "SAMPLEPROF_MAX_FILE": "8M", **settings}
    subprocess.run([args.program, end], env=env, check=False)


def report(args, path):
    """What sampleprof-report says, None if it refuses the file."""
    run = subprocess.run([args.report, "--json", "--view", "alloc",
                          "--debug-path", "/", path],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         check=False)
    if run.returncode not in (0, 1):
        sys.exit(f"sampleprof-report ended with {run.returncode}")
    if run.returncode != 0:
        return None
    said = json.loads(run.stdout)
    for stack in said["stacks"]:
        stack["frames"] = [said["frames"][i] for i in stack["frames"]]
    return said


def read(path):
    """What the reader says, None if it refuses the file."""
    try:
        return reader.summary(reader.read(path))
    except reader.Damage:
        return None


def stacks_of_reader(found):
    def frame(module, offset):
        entry = found["modules"].get(module)
        return (text(entry["path"]) if entry else None, offset)
    return Counter((s["samples"], bool(s["flags"] & 5) + (s["flags"] & 2),
                    tuple(frame(*f) for f in s["frames"]))
                   for s in found["stacks"])


def without_parameters(function):
    """As the report shows a name of the file, which has them, and a home."""
    if function.endswith("]"):
        function = function.partition(" [in ")[0]
    depth = 0
    for at in range(len(function) - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(function[at], 0)
        if not depth:
            return function[:at] if function.endswith(")") else function
    return function


def names_of_reader(found):
    """Names as the report has them."""
    symbols = {(module, offset): lines
               for module, offset, lines in found["symbols"]}

    def lines(frame):
        path = found["modules"].get(frame[0], {}).get("path", b"")
        return [(without_parameters(text(function)), file and text(file), line,
                 text(path) or None, bool(flags & 1))
                for flags, function, file, line in
                symbols.get(tuple(frame), [])]

    return Counter((s["samples"], tuple(x for f in s["frames"]
                                        for x in lines(f)))
                   for s in found["stacks"])


def names_of_report(found):
    return Counter((s["samples"], tuple(
        (f["function"], f["file"], f["line"], f["module"], f["inlined"])
        for f in s["frames"])) for s in found["stacks"])


def stacks_of_report(found):
    return Counter((s["samples"], s["truncated"] + 2 * s["caller_only"],
                    tuple((f["module"], f["offset"])
                          for f in s["frames"] if not f["inlined"]))
                   for s in found["stacks"])


def classes_of_reader(found):
    return found["classes"] and ([c for c in found["classes"] if c[1]],
                                 found["slack"])


def classes_of_report(found):
    return found["size_classes"] and (
        [[c["alloc_bytes"], c["alloc_objects"]]
         for c in found["size_classes"]],
        found["size_percentiles"]["unclassified_bytes_max"])


def compare(name, mine, theirs):
    same(f"{name}: accepted", mine is not None, theirs is not None)
    if mine is None or theirs is None:
        return
    for key in ("pid", "period_bytes", "seed", "samples", "unmatched_frees"):
        same(f"{name}: {key}", mine[key], theirs[key])
    # What is missing of one that is cut may be its end as well.
    if theirs["end"] == "cut":
        same(f"{name}: cut", bool(theirs["damage"]["text"]), True)
    else:
        same(f"{name}: clean", mine["clean"],
             theirs["end"] in ("clean", "detached"))
    same(f"{name}: exact", mine["exact"], list(theirs["exact"].values()))
    same(f"{name}: law", (bool(mine["flags"] & 2), bool(mine["flags"] & 4)),
         (theirs["law"] == "dotnet", theirs["has_frees"]))
    same(f"{name}: size classes", classes_of_reader(mine),
         classes_of_report(theirs))
    same(f"{name}: resident memory", mine["rss"],
         [list(r.values()) for r in theirs["rss"]])
    same(f"{name}: mapped", mine["mapped"], theirs["mapped"] and [
        theirs["mapped"]["bytes"], theirs["mapped"]["reserved_bytes"]])
    same(f"{name}: stretches", mine["stretches"], [
        [s["phase"], s["from_ns"], s["period_bytes"], s["alloc_bytes"],
         s["unsampled_bytes"], s["asked_ns"]] for s in theirs["stretches"]])
    # A reader finds it, and this one does not look for it.
    losses = [0 if name == "samples_not_in_file" else lost
              for name, lost in theirs["losses"].items()]
    same(f"{name}: losses", mine["losses"][:len(losses)], losses)
    same(f"{name}: stacks", stacks_of_reader(mine), stacks_of_report(theirs))
    same(f"{name}: threads", sorted(
        (t["index"], t["tid"], text(t["name"] or b""), t["samples"],
         t["exact"]) for t in mine["threads"]), sorted(
        (t["index"], t["tid"], t["name"], t["samples"],
         t["exact"] and list(t["exact"].values()))
        for t in theirs["thread_infos"]))
    same(f"{name}: facts", {k: text(v) for k, v in mine["infos"].items()
                            if k != "command" and
                            not k.startswith("ledger.")},
         theirs["settings"])
