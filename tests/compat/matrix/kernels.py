# SPDX-License-Identifier: MIT
"""Other kernels, in qemu: with an initial file system of busybox, the library,
the programs and what they are linked with.  The virtual machine runs each
program without the library and under it, and sends what they leave over its
second serial port; the profiles are read on the system whose files it had."""

import dataclasses
import glob
import os
import shutil
import subprocess
import tarfile

import cells
import verdict
from systems import Failed, call

# To start and to run four programs takes a minute where nothing else runs.
TIMEOUT_S = 3600

MEMORY_MB = 1024
# What a profile of every allocation of sqlite3 does not fit into, even without
# the frees.
FULL_DISK = "512k"

DEBIAN_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
REMOVED_KEYS = "/usr/share/keyrings/debian-archive-removed-keys.gpg"
UBUNTU_KEYS = "/usr/share/keyrings/ubuntu-archive-keyring.gpg"
KEY_PACKAGES = ["debian-archive-keyring", "ubuntu-keyring",
                "ca-certificates"]


@dataclasses.dataclass
class Kernel:
    """Where its package is; `lacks`: what the library says it lacks."""
    version: str
    mirror: str
    suites: tuple
    keys: str
    package: str
    lacks: str = ""


DEBIAN = "http://deb.debian.org/debian"
ARCHIVE = "http://archive.debian.org/debian"
UBUNTU = "http://archive.ubuntu.com/ubuntu"
KERNELS = (
    Kernel("5.10", DEBIAN, ("bullseye",), DEBIAN_KEYS,
           r"^linux-image-5\.10\.0-[0-9]+-amd64$"),
    Kernel("5.4", UBUNTU, ("focal", "focal-updates"), UBUNTU_KEYS,
           r"^linux-image-(unsigned-)?5\.4\.0-[0-9]+-generic$"),
    Kernel("4.19", ARCHIVE, ("buster",), REMOVED_KEYS,
           r"^linux-image-4\.19\.0-[0-9]+-amd64$"),
    Kernel("4.18", UBUNTU, ("bionic", "bionic-updates"), UBUNTU_KEYS,
           r"^linux-image-(unsigned-)?4\.18\.0-[0-9]+-generic$"),
    Kernel("4.15", UBUNTU, ("bionic",), UBUNTU_KEYS,
           r"^linux-image-(unsigned-)?4\.15\.0-[0-9]+-generic$"),
    Kernel("4.4", UBUNTU, ("xenial",), UBUNTU_KEYS,
           r"^linux-image-(unsigned-)?4\.4\.0-[0-9]+-generic$",
           "sampleprof: it is not known what is freed: the kernel cannot wipe "
           "memory in a forked child (MADV_WIPEONFORK, Linux 4.14)\n"),
)


def fetch(kernel, system, directory):
    """The kernel's file, kept in `directory`.  apt is that of `system`, with
    a list of sources of its own."""
    kept = os.path.join(directory, "linux-" + kernel.version)
    if os.path.exists(kept):
        return kept
    place = f"{system.work}/linux-{kernel.version}"
    shutil.rmtree(system.path(place), ignore_errors=True)
    os.makedirs(system.path(place + "/lists/partial"))
    with open(system.path(place + "/sources.list"), "w",
              encoding="ascii") as file:
        file.writelines(f"deb [signed-by={kernel.keys}] {kernel.mirror} "
                        f"{suite} main\n" for suite in kernel.suites)
    # Old releases are signed with keys that are signed with SHA-1.
    with open(system.path(place + "/policy"), "w", encoding="ascii") as file:
        file.write('[hash_algorithms]\nsha1 = "always"\n')
    apt = ["env", f"SEQUOIA_CRYPTO_POLICY={place}/policy", "apt-get"]
    options = ["-o", f"Dir::Etc::sourcelist={place}/sources.list",
               "-o", "Dir::Etc::sourceparts=-",
               "-o", f"Dir::State::lists={place}/lists",
               "-o", "Dir::State::status=/dev/null",
               "-o", "APT::Sandbox::User=root",
               "-o", "Acquire::Check-Valid-Until=false",
               "-o", "Acquire::http::Timeout=30", "-o", "Acquire::Retries=0"]
    try:
        system.make([[*apt, *options, "-o", "APT::Update::Error-Mode=any",
                      "update"]], system.log)
    except Failed as failed:
        raise Failed(f"{kernel.mirror} does not offer {kernel.suites[0]} here; "
                     f"the output is in {system.log}") from failed
    found = system.run(["apt-cache", *options, "search", "--names-only",
                        kernel.package]).stdout.decode().split("\n")
    names = [line.split()[0] for line in found if line]
    if not names:
        raise Failed(f"no package {kernel.package} at {kernel.mirror}")
    system.make([["sh", "-ec", 'cd "$0"; apt-get "$@"; '
                  "dpkg-deb -x *.deb unpacked", place, *options, "download",
                  newest(names)]], system.log)
    image, = glob.glob(system.path(place) + "/unpacked/boot/vmlinuz-*")
    shutil.copy(image, kept)
    return kept


def newest(names):
    """By the last number: linux-image-5.10.0-9-amd64 is before -10-."""
    return max(names, key=lambda n: int(n.split("-")[-2]))


def needed(system, files):
    """Those files, and the libraries that they need."""
    found = set(files)
    for file in files:
        for word in system.run(["ldd", file]).stdout.decode().split():
            if word.startswith("/"):
                found.add(word)
    return found


def script(system, build, programs):
    """What the virtual machine does."""
    yield from ("#!/bin/sh",
                "export PATH=/bin",
                "mount -t proc none /proc",
                "mount -t devtmpfs none /dev",
                "mount -t tmpfs -o size=768m none /results",
                f"mount -t tmpfs -o size={FULL_DISK} none /full",
                "stty -F /dev/ttyS1 raw",
                "uname -r > /results/release")
    for number, program in enumerate(programs):
        place = f"/results/{number}"
        out = "/full" if program.is_full else place
        under = cells.environment(system, build, program,
                                  out + "/cell.sprof",
                                  place + "/cell.counts")
        yield f"mkdir {place}"
        for name, more in (("bare", ()), ("under", under)):
            argv = " ".join(quoted(a) for a in
                            cells.command(system, program, more))
            yield (f"{argv} < /stdin.{number} > {place}/{name}.out "
                   f"2> {place}/{name}.err")
            yield f"echo $? > {place}/{name}.status"
        if program.is_full:
            yield f"cp {out}/cell.sprof {place}/"
    yield from ("tar -c -z -f - -C /results . > /dev/ttyS1",
                "sleep 1", "poweroff -f")


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def initial_files(system, build, programs, path):
    """A cpio archive for all kernels."""
    top = path + ".d"
    shutil.rmtree(top, ignore_errors=True)
    for name in ("bin", "dev", "proc", "results", "full", "tmp", "usr/bin"):
        os.makedirs(os.path.join(top, name))
    files = {build.library, *(f"{system.work}/{p.counter}" for p in programs)}
    for program in programs:
        files.update(a.replace("{}", system.work) for a in program.argv
                     if a.startswith(("/", "{}")))
    for file in needed(system, files):
        copy = os.path.join(top, file.lstrip("/"))
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy(system.path(file), copy)
    shutil.copy("/bin/busybox", top + "/bin/busybox")
    for name in ("sh", "mount", "stty", "uname", "mkdir", "env", "tar", "gzip",
                 "cp", "sleep", "poweroff"):
        os.symlink("busybox", f"{top}/bin/{name}")
    for number, program in enumerate(programs):
        with open(f"{top}/stdin.{number}", "wb") as file:
            file.write(program.stdin)
    with open(top + "/init", "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in
                        script(system, build, programs))
    os.chmod(top + "/init", 0o755)
    call(["sh", "-ec", 'cd "$0"; find . | cpio --quiet -o -H newc | gzip -1 '
          '> "$1"', top, path], system.log)


def start(image, files, results):
    """One run of the virtual machine, to its end."""
    console = results + ".console"
    try:
        subprocess.run(
            ["qemu-system-x86_64", "-accel", "tcg", "-m",
             str(MEMORY_MB), "-display", "none", "-no-reboot",
             "-serial", "file:" + console, "-serial", "file:" + results,
             "-kernel", image, "-initrd", files,
             # Timers are late where others want the processor, which old
             # kernels take for broken ones.
             "-append", "console=ttyS0 panic=-1 no_timer_check"],
            timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL,
            capture_output=True)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"the kernel hung: see {console}") from late
    if not os.path.getsize(results):
        raise Failed(f"the kernel sent nothing: see {console}")


def read(kernel, system, build, programs, results):
    """The cells of a run whose results are unpacked there."""
    for number, program in enumerate(programs):
        cell = verdict.Cell("Linux " + kernel.version, build.name,
                            program.name)
        ends = []
        for name in ("bare", "under"):
            texts = []
            for part in ("status", "out", "err"):
                with open(f"{results}/{number}/{name}.{part}", "rb") as file:
                    texts.append(file.read())
            ends.append((int(texts[0]), *texts[1:]))
        # All that the library may say, and has to.
        ends[0] = (*ends[0][:2], ends[0][2] + kernel.lacks.encode())
        for name in ("cell.sprof", "cell.counts"):
            copy = system.path(f"{system.work}/{name}")
            if os.path.exists(copy):
                os.unlink(copy)
            if os.path.exists(f"{results}/{number}/{name}"):
                shutil.copy(f"{results}/{number}/{name}", copy)
        cells.read(cell, system, build, program, ends)
        yield cell


def run(matrix, system, build, programs, directory):
    """All kernels with files of `system`; their images, and what was said on
    their consoles, are kept in `directory`."""
    system.install(KEY_PACKAGES)
    files = os.path.join(directory, "initramfs.gz")
    initial_files(system, build, programs, files)
    for kernel in KERNELS:
        name = "Linux " + kernel.version
        try:
            image = fetch(kernel, system, directory)
        except Failed as failed:
            matrix.leave_out(name, build.name, programs,
                             str(failed))
            continue
        results = os.path.join(directory, f"results-{kernel.version}")
        try:
            start(image, files, results)
            shutil.rmtree(results + ".d", ignore_errors=True)
            with tarfile.open(results) as archive:
                archive.extractall(results + ".d")
            for cell in read(kernel, system, build, programs, results + ".d"):
                matrix.add(cell)
        except (Failed, tarfile.TarError) as failed:
            matrix.leave_out(name, build.name, programs, str(failed), True)
