#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The recipe of docs/containers.md: folders stand for its images and volumes.
With --enter, what starts a container's program in its folder."""

import ctypes
import glob
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COMPAT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(COMPAT, "matrix"))
# pylint: disable=wrong-import-position
from systems import ROOT, Failed  # noqa: E402

PR_SET_NO_NEW_PRIVS = 38
TIMEOUT_S = 600
# Compiled with names, unoptimised enough that every caller is in the stack.
FLAGS = ["-g", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls",
         os.path.join(COMPAT, "matrix", "targets", "calls.c"), "-pthread"]
COMPILERS = {"glibc": ["gcc"], "musl": ["musl-gcc", "-Wl,--eh-frame-hdr", "-Wl,--build-id"]}


def judge(text):
    """Is that the --json of a profile with every allocation in it?"""
    profile = json.loads(text)
    for stack in profile["stacks"]:
        stack["frames"] = [profile["frames"][i] for i in stack["frames"]]
    exact = profile["exact"]["alloc_bytes"]
    if not profile["samples"] or not exact:
        raise Failed("the profile has no samples")
    if profile["estimate"]["alloc_bytes"]["value"] != exact:
        raise Failed(f"exact are {exact} bytes, the samples stand for "
                     f"{profile['estimate']['alloc_bytes']['value']}")
    return profile


def judge_calls(text, printed):
    """Of calls.c, which prints what leaf() was given."""
    stacks = [(s, {f["function"] for f in s["frames"]})
              for s in judge(text)["stacks"]]
    leaves = [(s, names) for s, names in stacks if "leaf" in names]
    found = (round(sum(s["flat_bytes"]["value"] for s, _ in leaves)),
             sum(s["samples"] for s, _ in leaves))
    if tuple(map(int, printed.split()[1:])) != found:
        raise Failed(f"leaf() has {found}, the program says {printed}")
    cut = sum(1 for _, names in leaves if not names & {"main", "run_thread"})
    if cut:
        raise Failed(f"{cut} of {len(leaves)} stacks are cut")
    return f"{len(leaves)} stacks"


def make_image(libc, image):
    """A program, its C library and the loader."""
    os.makedirs(image)
    program = image + "/shop"
    subprocess.run([*COMPILERS[libc], *FLAGS, "-o", program], check=True)
    if libc == "musl":
        text = subprocess.run(["readelf", "-l", program], check=True,
                              stdout=subprocess.PIPE).stdout.decode()
        needed = re.findall(r"interpreter: (\S+)\]", text)
    else:
        text = subprocess.run(["ldd", program], check=True,
                              stdout=subprocess.PIPE).stdout.decode()
        needed = re.findall(r"(?:=> )?(/\S+)", text)
    for path in needed:
        os.makedirs(os.path.dirname(image + path), exist_ok=True)
        shutil.copy(os.path.realpath(path), image + path)
    return [program, *(image + path for path in needed)]


def run_container(pod, container, image, volumes, argv, more=None):
    """As the pod says it; what the container printed."""
    limits = pod["spec"]["securityContext"]
    steps = []
    for mount in container["volumeMounts"]:
        inside = image + mount["mountPath"]
        os.makedirs(inside, exist_ok=True)
        steps.append(f"mount --bind '{volumes[mount['name']]}' '{inside}'")
        if mount.get("readOnly"):
            steps.append(f"mount -o remount,bind,ro '{inside}'")
    if "securityContext" in container:
        os.makedirs(image + "/proc", exist_ok=True)
        steps = [f"mount --bind '{image}' '{image}'",
                 f"mount -o remount,bind,ro '{image}'",
                 *steps, f"mount -t proc proc '{image}/proc'"]
    environment = {e["name"]: e["value"] for e in container.get("env", [])}
    environment.update(more or {})
    steps.append('exec "$@"')
    done = subprocess.run(
        ["unshare", "-m", "sh", "-ec", "\n".join(steps), "sh",
         sys.executable, "-B", os.path.abspath(__file__), "--enter", image,
         str(limits["runAsUser"]), str(limits["runAsGroup"]),
         json.dumps(environment), *argv],
        capture_output=True, timeout=TIMEOUT_S, check=False)
    if done.returncode or done.stderr:
        raise Failed(f"{container['name']} ended with {done.returncode}: "
                     + done.stderr.decode()[-400:])
    return done.stdout.decode()


def enter(root, user, group, environment, *argv):
    """Be that program in that folder, as that user, without privileges."""
    no_new_privs = ctypes.CDLL(None).prctl
    os.chroot(root)
    os.chdir("/")
    os.setgroups([])
    os.setgid(int(group))
    os.setuid(int(user))
    if no_new_privs(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        sys.exit("no_new_privs")
    path = argv[0] if "/" in argv[0] else "/bin/" + argv[0]
    os.execve(path, argv, json.loads(environment))


def read_pod():
    import yaml  # pylint: disable=import-outside-toplevel
    with open(os.path.join(ROOT, "docs", "containers.md"),
              encoding="utf-8") as file:
        return yaml.safe_load(re.search(
            r"<!-- try: pod -->\n\n```yaml\n(.*?)```", file.read(),
            re.S).group(1))


def attempt(out, libc, directory):
    """With the packages in `out`, below `directory`."""
    shutil.rmtree(directory, ignore_errors=True)
    pod = read_pod()
    volumes = {}
    for volume in pod["spec"]["volumes"]:
        volumes[volume["name"]] = f"{directory}/volumes/{volume['name']}"
        os.makedirs(volumes[volume["name"]])
        os.chmod(volumes[volume["name"]], 0o777)
    agent, image = directory + "/agent", directory + "/image"
    package, = glob.glob(out + "/sampleprof-agent_*.deb")
    subprocess.run(["dpkg-deb", "-x", package, agent], check=True)
    os.makedirs(agent + "/bin")
    shutil.copy("/bin/busybox", agent + "/bin/cp")
    init, = pod["spec"]["initContainers"]
    run_container(pod, init, agent, volumes, init["command"])

    files = make_image(libc, image)
    container, = pod["spec"]["containers"]
    printed = run_container(pod, container, image, volumes, ["/shop"],
                            {"SAMPLEPROF_PERIOD": "1"})
    subprocess.run(["tar", "-C", directory, "-xzf",
                    *glob.glob(out + "/*.tar.gz")], check=True)
    report, = glob.glob(directory + "/*/bin/sampleprof-report")
    profile, = glob.glob(directory + "/volumes/profiles/*.sprof")
    done = subprocess.run([report, "--json", "--debug-path", image, profile],
                          capture_output=True, check=False)
    if done.returncode:
        raise Failed("the report: " + done.stderr.decode())
    there = [os.path.join(d, f) for d, _, names in os.walk(image)
             for f in names]
    if sorted(there) != sorted(files):
        raise Failed(f"the image has {there}")
    return judge_calls(done.stdout.decode(), printed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--enter"]:
        enter(*sys.argv[2:])
    sys.exit(__doc__)
