# SPDX-License-Identifier: MIT
"""Functions have names although their files are gone, or have others' names:
programs and libraries that are deleted, replaced, unmounted or in memory at the
end of `run`; libraries that were opened by a relative name; programs that a
loader was told to run."""

import json
import os
import shutil
import subprocess
import unittest

import attaching
import harness

# Waits for a line, when all is allocated, and then deletes its first argument.
BASKET = r"""#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static __attribute__((noinline)) void *fill_basket(size_t n) {
  void *p = malloc(n);
  *(volatile char *)p = 1;
  return p;
}
int main(int argc, char **argv) {
  for (int i = 0; i < 700; i++) fill_basket(72);
  puts("ready");
  fflush(stdout);
  getchar();
  return argc > 1 && unlink(argv[1]);
}
"""

# The same for each line, but for the last.
ROUNDS = r"""#include <stdio.h>
#include <stdlib.h>
static __attribute__((noinline)) void *fill_basket(size_t n) {
  void *p = malloc(n);
  *(volatile char *)p = 1;
  return p;
}
int main(void) {
  puts("ready");
  fflush(stdout);
  while (getchar() == '\n') {
    for (int i = 0; i < 700; i++) fill_basket(72);
    puts("done");
    fflush(stdout);
  }
  return 0;
}
"""

# A library with the function weigh_pear, and a program that opens it as told,
# in a directory or by a memory file.
PEAR = r"""#include <stdlib.h>
void *weigh_pear(size_t n) { void *p = malloc(n); *(volatile char *)p = 1; return p; }
"""
OPENER = r"""#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static const char *in_memory(const char *path) {
  static char name[64], part[65536];
  int fd = memfd_create("pear", MFD_CLOEXEC);
  FILE *in = fopen(path, "r");
  size_t n;
  while (in && (n = fread(part, 1, sizeof(part), in)) > 0)
    if (write(fd, part, n) != (ssize_t)n) exit(3);
  fclose(in);
  snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
  return name;
}
int main(int argc, char **argv) {
  const char *name = argv[2];
  if (strcmp(argv[1], "memory") == 0) name = in_memory(name);
  else if (chdir(argv[1])) return 2;
  void *library = dlopen(name, RTLD_NOW);
  if (!library) { puts(dlerror()); return 3; }
  void *(*weigh)(size_t) = (void *(*)(size_t))dlsym(library, "weigh_pear");
  for (int i = 0; i < 700; i++) weigh(72);
  if (chdir("/")) return 2;
  puts("ready");
  fflush(stdout);
  getchar();
  return 0;
}
"""
# Becomes a program in memory, if it shall, and ends as it is told, as soon as
# it can.
QUICK = r"""#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static __attribute__((noinline)) void *fill_basket(size_t n) {
  void *p = malloc(n);
  *(volatile char *)p = 1;
  return p;
}
static void become(char **argv) {
  static char part[65536];
  int fd = memfd_create("quick", MFD_CLOEXEC), in = open("/proc/self/exe", 0);
  ssize_t n;
  while ((n = read(in, part, sizeof(part))) > 0)
    if (write(fd, part, n) != n) exit(3);
  setenv("QUICK", "yes", 1);
  fexecve(fd, argv, environ);
  exit(4);
}
int main(int argc, char **argv) {
  if (!getenv("QUICK") && !argv[2]) become(argv);
  for (int i = 0; i < 700; i++) fill_basket(72);
  if (!strcmp(argv[1], "_exit")) _exit(0);
  if (!strcmp(argv[1], "exec")) execl("/bin/true", "true", NULL);
  return 0;
}
"""
WHOLE = 700 * 72
NOBODY = 65534
NO_ID = "-Wl,--build-id=none"


class Gone(harness.Case):
    def compile(self, name, text, *options):
        source = os.path.join(self.dir, name.replace("/", "_") + ".c")
        program = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(program), exist_ok=True)
        with open(source, "w", encoding="utf-8") as out:
            out.write(text)
        subprocess.run([harness.require("gcc", "gcc"), "-g", "-O1", source,
                        "-o", program, *options], check=True,
                       timeout=harness.TIMEOUT_S)
        return program

    def begin(self, *argv, options=(), out="a.sprof", before=()):
        """The process of `sampleprof run`, when its program has allocated."""
        process = self.start(
            [*before, harness.tool(), "run", "--quiet", "--period", "1",
             "--out", out, *options, "--", *argv], stdin=subprocess.PIPE,
            shim=False)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        line = process.stdout.readline()
        if line != b"ready\n":
            self.fail(line + process.communicate()[1])
        return process

    def end(self, process):
        result = self.finish(process, b"\n")
        self.assertEqual(result.returncode, 0, result.stderr)

    def allocated(self, function, file="a.sprof", least=700):
        """Flat bytes of the function, and the modules of the call stacks."""
        said = json.loads(harness.report(
            "report", "--json", os.path.join(self.dir, file)))
        self.assertGreaterEqual(said["samples"], least)
        return sum(f["flat_bytes"]["value"] for f in said["functions"]
                   if f["name"] == function)

    def wait_for_descriptor(self, process, target):
        """Until the command has a file open whose name begins so."""
        def has():
            fds = f"/proc/{process.pid}/fd"
            for fd in os.listdir(fds):
                try:
                    if os.readlink(os.path.join(fds, fd)).startswith(target):
                        return True
                except OSError:
                    continue
            return False
        harness.wait_until(lambda: process.poll() is not None or has())
        self.assertIsNone(process.poll())


class Executable(Gone):
    def test_deletes_itself(self):
        """Also one without a build id, and where nobody could have looked at
        the process: the file is open before the program starts."""
        for options in ((), (NO_ID,)):
            with self.subTest(options=options):
                program = self.compile("basket", BASKET, *options)
                self.end(self.begin(program, program))
                self.assertFalse(os.path.exists(program))
                self.assertEqual(self.allocated("fill_basket"), WHOLE)
                os.unlink(os.path.join(self.dir, "a.sprof"))

    def test_no_room(self):
        """Without descriptors to keep a file, the names are lost, and that is
        said; the numbers are not."""
        program = self.compile("basket", BASKET)
        done = subprocess.run(
            ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", harness.tool(), "run",
             "--period", "1", "--out", "a.sprof", "--", program, program],
            input=b"\n", capture_output=True, cwd=self.dir, check=True,
            env=self.environment(shim=False), timeout=harness.TIMEOUT_S)
        self.assertIn(b"1 mapped file is gone without names: too few "
                      b"descriptors", done.stderr)
        self.assertEqual(self.allocated("fill_basket"), 0)

    def test_ends_soon(self):
        """Before `run` looks by itself, at however busy a moment: it waits for
        a look."""
        program = self.compile("quick", QUICK)
        for how in ("return", "_exit", "exec"):
            for i in range(4):
                out = f"{how}.{i}.%p.sprof"
                subprocess.run(
                    [harness.tool(), "run", "--quiet", "--period", "1", "--out",
                     out, "--", "sh", "-c", f"{program} {how}; true"],
                    check=True, cwd=self.dir, timeout=harness.TIMEOUT_S,
                    env=self.environment(shim=False))
                named = [self.allocated("fill_basket", name, 0)
                         for name in os.listdir(self.dir)
                         if name.startswith(f"{how}.{i}.")]
                self.assertEqual(sum(named), WHOLE, (how, i, named))

    def test_removed_after(self):
        """Each of more programs than `run` names profiles, at once after its
        end, as tests of documentation are; all have one path."""
        program = self.compile("quick", QUICK)
        subprocess.run(
            [harness.tool(), "run", "--quiet", "--period", "1", "--out",
             "%p.sprof", "--", "sh", "-c", 'i=0; while [ $i -lt 20 ]; do '
             f"cp {program} it && ./it $0 here; rm it; i=$((i + 1)); done",
             "return"], check=True, cwd=self.dir, timeout=harness.TIMEOUT_S,
            env=self.environment(shim=False))
        named = [self.allocated("fill_basket", name, 0)
                 for name in os.listdir(self.dir) if name.endswith(".sprof")]
        self.assertEqual(sum(n == WHOLE for n in named), 20, named)

    def test_nobody_looks(self):
        """Without `run` a process does not ask for a look."""
        log = os.path.join(self.dir, "calls")
        for run, want in ((None, False), ("1-2", True)):
            env = self.environment(shim=True)
            env.pop("SAMPLEPROF_RUN", None)
            if run:
                env["SAMPLEPROF_RUN"] = run
            library = env.pop("LD_PRELOAD")
            subprocess.run(
                [harness.require("strace", "strace"), "-qq", "-o", log, "-e",
                 "trace=connect", "-E", f"LD_PRELOAD={library}",
                 harness.target("program_plain"), "300"], check=True, env=env,
                cwd=self.dir, timeout=harness.TIMEOUT_S, capture_output=True)
            with open(log, encoding="utf-8") as calls:
                self.assertEqual("sampleprof-look-" in calls.read(), want)

    def test_is_replaced(self):
        for options in ((), (NO_ID,)):
            with self.subTest(options=options):
                program = self.compile("basket", BASKET, *options)
                other = self.compile(
                    "other", BASKET.replace("fill_basket", "wrong") +
                    "int more[100000];", *options)
                process = self.begin(program)
                os.replace(other, program)
                self.end(process)
                self.assertEqual(self.allocated("fill_basket"), WHOLE)
                os.unlink(os.path.join(self.dir, "a.sprof"))

    def test_of_a_child(self):
        """That a script starts, waits for and removes, as a test runner does
        with what it has built."""
        program = self.compile("built/basket", BASKET)
        process = self.begin("sh", "-c", f"{program}; rm -r {program}",
                             out="%e.sprof")
        self.wait_for_descriptor(process, program)
        self.end(process)
        self.assertFalse(os.path.exists(program))
        self.assertEqual(self.allocated("fill_basket", "basket.sprof"), WHOLE)

    def test_is_unmounted(self):
        """And can be, since only a copy is kept."""
        program = self.compile("basket", BASKET)
        disk = os.path.join(self.dir, "disk")
        os.mkdir(disk)
        script = (f"mount -t tmpfs none {disk} && cp {program} {disk}/it && "
                  f"{disk}/it; umount {disk}; echo umount $?")
        process = self.start(
            ["unshare", "-m", harness.tool(), "run", "--quiet", "--period", "1",
             "--out", os.path.join(self.dir, "%e.sprof"), "--", "sh", "-c",
             script], stdin=subprocess.PIPE, shim=False)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        if process.stdout.readline() != b"ready\n":
            self.skipTest(f"cannot mount here: {process.communicate()[1]}")
        self.wait_for_descriptor(process, "/memfd:sampleprof")
        result = self.finish(process, b"\n")
        self.assertEqual(result.stdout, b"umount 0\n", result.stderr)
        self.assertEqual(self.allocated("fill_basket", "it.sprof"), WHOLE)


    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_exec_only(self):
        """The copy tells its user no more than the file does."""
        program = self.compile("basket", BASKET)
        disk = os.path.join(self.dir, "disk")
        os.mkdir(disk)
        os.chmod(self.dir, 0o777)
        script = (f"mount -t tmpfs -o mode=755 none {disk} && cp {program} "
                  f"{disk}/it && chmod $0 {disk}/it && setpriv --reuid {NOBODY}"
                  f" --regid {NOBODY} --clear-groups {disk}/it; umount {disk}")
        for mode, want in (("755", WHOLE), ("711", 0)):
            process = self.start(
                ["unshare", "-m", harness.tool(), "run", "--quiet", "--period",
                 "1", "--out", os.path.join(self.dir, "%e.sprof"), "--", "sh",
                 "-c", script, mode], stdin=subprocess.PIPE, shim=False)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            if process.stdout.readline() != b"ready\n":
                self.skipTest(f"cannot mount: {process.communicate()[1]}")
            self.wait_for_descriptor(process, "/memfd:sampleprof")
            self.finish(process, b"\n")
            self.assertEqual(self.allocated("fill_basket", "it.sprof"), want)
            os.unlink(os.path.join(self.dir, "it.sprof"))


class Library(Gone):
    def setUp(self):
        super().setUp()
        self.opener = self.compile("opener", OPENER, "-ldl")

    def pear(self, name, *options):
        return self.compile(name, PEAR, "-shared", "-fPIC", *options)

    def test_deleted(self):
        for options in ((), (NO_ID,)):
            with self.subTest(options=options):
                library = self.pear("plug/pear.so", *options)
                process = self.begin(self.opener, self.dir, library)
                self.wait_for_descriptor(process, library)
                os.unlink(library)
                self.end(process)
                self.assertEqual(self.allocated("weigh_pear"), WHOLE)
                os.unlink(os.path.join(self.dir, "a.sprof"))

    def test_in_memory(self):
        """Also where the kernel does not let `run` open what is mapped, as it
        lets root alone: the program has the file open."""
        ways = [()]
        if os.geteuid() == 0:
            ways.append(("setpriv", "--bounding-set",
                         "-sys_admin,-checkpoint_restore"))
        for before in ways:
            library = self.pear("plug/pear.so")
            process = self.begin(self.opener, "memory", library, before=before)
            self.wait_for_descriptor(process, "/memfd:")
            os.unlink(library)
            self.end(process)
            self.assertEqual(self.allocated("weigh_pear"), WHOLE, before)
            os.unlink(os.path.join(self.dir, "a.sprof"))

    def test_relative(self):
        """By dlopen after a change of the directory, and by the search path;
        no `run` looks on, and the profile says where the file is."""
        library = self.pear("plug/pear.so")
        result = self.execute(self.opener, "plug", "./pear.so", period=1)
        profile = result.profile().require_samples(700)
        self.assertEqual(profile.allocated_under("weigh_pear"), (WHOLE, 700))
        self.assertIn("pear.so", profile.modules())
        directory = os.path.dirname(library)
        program = self.compile(
            "needs", "#include <stddef.h>\nvoid *weigh_pear(size_t n);\n"
            "int main(void) { for (int i = 0; i < 700; i++) weigh_pear(72);\n"
            "return 0; }\n", "-L" + directory, "-l:pear.so")
        result = self.execute(program, period=1, env={"LD_LIBRARY_PATH": "."},
                              popen={"cwd": directory})
        profile = result.profile().require_samples(700)
        self.assertEqual(profile.allocated_under("weigh_pear"), (WHOLE, 700))


class Attached(Gone):
    """`attach` finds the files where the process has them, and `detach` puts
    the names into the profile, which is there, too."""

    def test_in_another_root(self):
        program = self.compile("basket", ROUNDS)
        disk = os.path.join(self.dir, "disk")
        os.mkdir(disk)
        process = self.start(
            ["unshare", "-m", "sh", "-c",
             f"mount -t tmpfs none {disk} && cp {program} {disk}/it && "
             f"exec {disk}/it"], stdin=subprocess.PIPE, shim=False, bufsize=0)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        if process.stdout.readline() != b"ready\n":
            self.skipTest(f"cannot mount here: {process.communicate()[1]}")
        os.unlink(program)
        for options, want in (("--no-symbols",), 0), ((), WHOLE):
            attaching.run("attach", process.pid, "--period", "1", "--out",
                          f"{disk}/it.sprof")
            process.stdin.write(b"\n")
            self.assertEqual(process.stdout.readline(), b"done\n")
            attaching.run("detach", *options, process.pid)
            shutil.move(f"/proc/{process.pid}/root{disk}/it.sprof",
                        os.path.join(self.dir, "a.sprof"))
            self.assertEqual(self.allocated("fill_basket"), want)
        process.communicate(b"end", timeout=harness.TIMEOUT_S)

    def test_ends_before(self):
        """A deleted program that ends while `attach --for` waits."""
        program = self.compile("basket", ROUNDS)
        process = self.start([program], stdin=subprocess.PIPE, shim=False)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        os.unlink(program)
        with subprocess.Popen(
                [harness.tool(), "attach", str(process.pid), "--for", "1h",
                 "--period", "1", "--out", os.path.join(self.dir, "a.sprof")],
                stdout=subprocess.PIPE) as command:
            self.addCleanup(command.kill)
            said = command.stdout.readline()
            self.assertIn(b"is recorded", said)
            process.communicate(b"\n", timeout=harness.TIMEOUT_S)
            said = command.communicate(timeout=harness.TIMEOUT_S)[0]
        self.assertIn(b"the process has ended\n", said)
        self.assertEqual(self.allocated("fill_basket"), WHOLE)


class Copy(Gone):
    def test_module(self):
        """`symbolize --module`: the file of that build, or of that path."""
        program = self.compile("basket", BASKET)
        moved = os.path.join(self.dir, "moved")
        self.end(self.begin(program, options=("--no-symbols",)))
        os.rename(program, moved)
        self.assertEqual(self.allocated("fill_basket"), 0)
        path = os.path.join(self.dir, "a.sprof")
        copy = os.path.join(self.dir, "b.sprof")
        harness.report("symbolize", path, "-o", copy, "--module",
                       f"{program}={moved}")
        self.assertEqual(self.allocated("fill_basket", "b.sprof"), WHOLE)
        other = self.compile("other", BASKET.replace("fill_basket", "wrong"))
        harness.report("symbolize", path, "-o", copy, "--module",
                       f"{program}={other}")
        self.assertEqual(self.allocated("wrong", "b.sprof"), 0)
        for wrong in ("", "=", "a", "a=", "=b"):
            self.assertIn("--module takes a path", harness.run_report(
                "symbolize", path, "-o", copy, "--module", wrong).stderr.decode())


class Loaders(Gone):
    def test_as_commands(self):
        """`run` records what a loader is told to run, and refuses what is
        linked statically, or that too."""
        plain = harness.target("program_plain")
        static = self.compile("static", BASKET, "-static")
        pie = self.compile("static-pie", BASKET, "-static-pie")
        for i, argv in enumerate((
                (harness.LOADER, plain), (harness.LOADER, "--argv0", "x", plain),
                (harness.LOADER, "--library-path", "/nowhere", plain))):
            self.sampleprof("run", "--quiet", "--period", "1", "--out",
                            f"{i}.sprof", "--", *argv, 300)
            said = json.loads(harness.report(
                "report", "--json", os.path.join(self.dir, f"{i}.sprof")))
            self.assertEqual([f["cum_samples"] for f in said["functions"]
                              if f["name"] == "allocate"], [300], argv)
        for argv in ((static,), (pie,), (harness.LOADER, static)):
            done = self.sampleprof("run", "--", *argv, code=126)
            self.assertIn("is linked statically", done.stderr)
        done = self.sampleprof("run", "--quiet", "--", harness.LOADER, "--list",
                               plain, code=0)
        self.assertIn("libc.so", done.stdout)

    def test_musl(self):
        program = os.path.join(self.dir, "basket")
        source = program + ".c"
        with open(source, "w", encoding="utf-8") as out:
            out.write(BASKET)
        subprocess.run([*harness.musl_gcc(), "-g", "-O1", source, "-o",
                        program], check=True, timeout=harness.TIMEOUT_S)
        self.end(self.begin(harness.MUSL_LOADER, program))
        self.assertEqual(self.allocated("fill_basket"), WHOLE)


if __name__ == "__main__":
    harness.main()
