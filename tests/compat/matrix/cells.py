# SPDX-License-Identifier: MIT
"""One cell of the matrix: a program runs without the library and under it, or is
attached to, and its profile is read."""

import json
import os
import subprocess

import systems
import verdict


def environment(system, build, program, profile, counts):
    """Of the program under the library; python3's stacks are deep."""
    return [f"LD_PRELOAD={build.library} {system.work}/{program.counter}",
            f"SAMPLEPROF_OUT={profile}", f"SAMPLEPROF_PERIOD={program.period}",
            "SAMPLEPROF_DEPTH=1000", f"COUNT_FILE={counts}"]


def command(system, program, more=()):
    return ["env", "-i", "PATH=/usr/bin:/bin", "LC_ALL=C", "HOME=/",
            *(f"{k}={v}" for k, v in program.env.items()), *more,
            *(a.replace("{}", system.work) for a in program.argv)]


def read(cell, system, build, program, ends):
    """Judge what a program left.  `ends`: (exit status, standard output,
    standard error) without the library, and under it; the profile is
    cell.sprof, the counts are in cell.counts."""
    bare, under = ends
    if bare[0] != 0:
        cell.problems.append("without the library it ends with status "
                             f"{bare[0]}: {bare[2].decode().strip()}")
        return
    if under[:2] != bare[:2]:
        cell.problems.append(
            f"under the library it ends with status {under[0]} and prints "
            f"{under[1][-200:]!r}, without it {bare[1][-200:]!r}")
    if under[2] != bare[2]:
        cell.problems.append("it says: " + under[2].decode(
            errors="replace").strip()[-300:])
    judge(cell, system, build, program, under[1],
          verdict.read_counts(system.path(system.work + "/cell.counts")))


def judge(cell, system, build, program, printed, counts):
    """`counts`: None if it was not counted below the library."""
    profile = system.work + "/cell.sprof"
    if not os.path.exists(system.path(profile)):
        cell.problems.append("no profile")
        return
    done = system.run([build.report, "--json", profile])
    if done.returncode != 0:
        cell.problems.append("the report fails: "
                             + done.stderr.decode().strip()[-300:])
        return
    said = json.loads(done.stdout)
    for stack in said["stacks"]:
        stack["frames"] = [said["frames"][i] for i in stack["frames"]]
    verdict.judge(cell, program, said, counts,
                  printed.decode(errors="replace"), system.root)


def remove(system, *paths):
    for path in paths:
        if os.path.exists(system.path(path)):
            os.unlink(system.path(path))


def attach(system, build, program):
    """The cell of a program that waits, is attached to, and goes on."""
    cell = verdict.Cell(system.name, build.name, program.name)
    profile = system.work + "/cell.sprof"
    remove(system, profile)
    with subprocess.Popen(system.command(command(system, program)), cwd="/",
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          bufsize=0) as process:
        try:
            if process.stdout.readline() != b"ready\n":
                cell.problems.append("it does not start")
                return cell
            with open(f"/proc/{process.pid}/maps", encoding="utf-8") as file:
                if "/libdl" in file.read():
                    cell.problems.append("it has libdl")
            done = system.run([build.launcher, "attach", str(process.pid),
                               "--period", "1", "--out", profile])
            if done.returncode:
                cell.problems.append(done.stderr.decode().strip()[-300:])
                return cell
            printed, _ = process.communicate(b"x", systems.TIMEOUT_S)
        finally:
            process.kill()
    judge(cell, system, build, program, printed, None)
    return cell


def run(system, build, program, condition=None):
    """The cell of a program that runs here."""
    name = system.name + (f" {condition}" if condition else "")
    cell = verdict.Cell(name, build.name, program.name)
    profile, counts = (f"{system.work}/cell.{e}" for e in ("sprof", "counts"))
    remove(system, profile, counts)
    ends = []
    for more in ((), environment(system, build, program, profile, counts)):
        try:
            done = system.run(command(system, program, more), condition,
                              program.stdin)
        except subprocess.TimeoutExpired as late:
            cell.problems.append(f"{late}")
            return cell
        ends.append((done.returncode, done.stdout, done.stderr))
    read(cell, system, build, program, ends)
    return cell
