# SPDX-License-Identifier: MIT
"""The subcommands of `sampleprof`: the help of each, bash completion from the
same tables, names of programs, and a missing sampleprof-report."""

import functools
import os
import re
import shutil
import subprocess

import harness


def commands():
    """Every command that sampleprof --help-all lists."""
    listed = re.findall(r"^  ([a-z][a-z-]*)(?= |$)",
                        tool("sampleprof", "--help-all"), re.M)
    assert {"run", "ctl", "report", "export", "lab"} <= set(listed), listed
    return listed


@functools.cache
def tool(name, *argv):
    """What it says, which is the same each time."""
    done = subprocess.run([harness.tool(name), *argv], text=True,
                          capture_output=True, timeout=harness.TIMEOUT_S,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def options_of(text):
    """The options that a --help describes, without the short forms."""
    return set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.M))


class Help(harness.Case):
    def test_every_command(self):
        for name in commands():
            text = tool("sampleprof", name, "--help")
            self.assertEqual(tool("sampleprof", "help", name), text)
            self.assertRegex(text, rf"\Ausage: sampleprof \S*\b"
                             rf"({name}|report)\b")
            self.assertIn("--help", tool("sampleprof", name, "--help-all"))

    def test_man_page(self):
        page = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                            "../../docs/man/sampleprof.1")
        with open(page, encoding="utf-8") as file:
            text = file.read().split(".SH DESCRIPTION", 1)[1].split(
                ".SH RUN", 1)[0].replace("\\-", "-")
        named = set(re.findall(r"^\.BR? ([\w-]+)(?: ,)?$", text, re.M))
        self.assertLessEqual(set(commands()), named)

    def test_fits_the_screen(self):
        """24 lines, of which the shell has the last one; with all options only
        the width."""
        for command in ([["sampleprof"], ["sampleprof-report"],
                         ["sampleprof-lab"]] +
                        [["sampleprof", name] for name in commands()]):
            text, whole = (tool(*command, "--help"),
                           tool(*command, "--help-all"))
            self.assertLessEqual(len(text.splitlines()), 23, command)
            for line in (text + whole).splitlines():
                self.assertLessEqual(len(line), 80, line)
            named = set(re.findall(r"(?<=[ ,])--[a-z][\w-]*", text))
            self.assertLessEqual(
                named - {"--help-all"},
                set(re.findall(r"(?<=[ ,(])--[a-z][\w-]*", whole)), command)
            # No reader is sent to what is not there.
            self.assertEqual("--help-all" in named,
                             len(whole.splitlines()) > 24, command)

    def test_old_names(self):
        """They are the commands, but for the name in the usage."""
        for old, command in (("sampleprof-report", "report"),
                             ("sampleprof-lab", "lab")):
            text = tool("sampleprof", command, "--help")
            self.assertEqual(
                text.replace("sampleprof " + command, old, 1).replace(
                    "       sampleprof ", f"       {old} "),
                tool(old, "--help"))


class Launcher(harness.Case):
    """The launcher by itself, as it may be copied into a container."""

    def alone(self, *argv):
        path = os.path.join(self.dir, "sampleprof")
        shutil.copy(harness.tool("sampleprof"), path)
        return subprocess.run([path, *argv], text=True, capture_output=True,
                              timeout=harness.TIMEOUT_S, check=False)

    def test_own_commands(self):
        for argv in (("help",), ("run", "--help"), ("ps",)):
            done = harness.beside_others(
                functools.partial(self.alone, *argv), *argv)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_says_what_is_missing(self):
        done = self.alone("report", "app.sprof")
        self.assertEqual((done.returncode, done.stderr), (
            1, f"sampleprof: {os.path.realpath(self.dir)}/sampleprof-report: "
            "cannot be run for the command report: "
            "No such file or directory\n"))

    def test_by_another_name(self):
        """The other program knows nevertheless that it is sampleprof."""
        path = os.path.join(self.dir, "sp")
        os.symlink(harness.tool("sampleprof"), path)
        done = subprocess.run([path, "diff", "--help"], text=True,
                              capture_output=True, check=True,
                              timeout=harness.TIMEOUT_S)
        self.assertRegex(done.stdout, r"\Ausage: sampleprof diff ")

    def test_guess(self):
        """A file without a command: a program is run, a profile is read."""
        for mode, command in ((0o755, "run"), (0o644, "report")):
            path = os.path.join(self.dir, command + "-me")
            with open(path, "w", encoding="ascii"):
                pass
            os.chmod(path, mode)
            done = self.alone(path)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"did you mean sampleprof {command} ", done.stderr)


class Completion(harness.Case):
    def complete(self, *words):
        """What bash offers for the last of the words."""
        script = """
            source "$1"
            shift
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            how=$(complete -p "$1") && how=${how#*-F }
            "${how%% *}"
            printf '%s\\n' "${COMPREPLY[@]}"
        """
        done = subprocess.run(
            [harness.require("bash", "bash"), "--norc", "-c", script, "bash",
             harness.tool("completion/" + words[0]), *words],
            text=True, capture_output=True, timeout=harness.TIMEOUT_S,
            check=False, cwd=self.dir)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return done.stdout.split()

    def test_commands(self):
        self.assertEqual(self.complete("sampleprof", ""),
                         commands() + ["help"])
        self.assertEqual(self.complete("sampleprof", "re"), ["report"])
        self.assertEqual(self.complete("sampleprof", "help", "sy"),
                         ["symbolize"])

    def test_options(self):
        """Each command has those of its --help, and no others."""
        for name in commands():
            offered = self.complete("sampleprof", name, "-")
            self.assertEqual(len(offered), len(set(offered)))
            self.assertEqual(
                set(offered),
                options_of(tool("sampleprof", name, "--help-all")), name)
        for name in ("sampleprof-report", "sampleprof-lab"):
            self.assertEqual(set(self.complete(name, "--")),
                             options_of(tool(name, "--help-all")))

    def test_values(self):
        for words, want in (
                (("report", "--view", ""),
                 "alloc live peak leaks temporary mapped reserved "
                 "resident"),
                (("top", "--view", "=", "le"), "leaks"),
                (("tree", "-view", "p"), "peak"),
                (("report", "--estimator", ""), "p3t p3"),
                (("report", "--sort", "c"), "cum count"),
                (("export", "h"), "heap_v2 html"),
                (("export", "--view", "live", "p"), "pprof"),
                (("export", "collapsed", "--metric", ""),
                 "bytes objects resident"),
                (("check", "--undecided", ""), "fail warn pass"),
                (("check", "--format", "ju"), "junit"),
                (("lab", "--workload", "sm"), "small"),
                (("ctl", "1", "st"), "start stop status"),
                (("ctl", "--timeout", "0s", "1", "sn"), "snapshot"),
                (("run", "--follow", ""), "all none")):
            self.assertEqual(self.complete("sampleprof", *words),
                             want.split(), words)

    def test_values_are_accepted(self):
        """A word that is offered is none that the command refuses: what is
        missing is the file."""
        for option in ("view", "estimator", "confidence", "sort", "by",
                       "granularity", "unit"):
            for value in self.complete("sampleprof", "report",
                                       "--" + option, ""):
                done = subprocess.run(
                    [harness.tool("sampleprof"), "report",
                     "--" + option, value], text=True, capture_output=True,
                    timeout=harness.TIMEOUT_S, check=False)
                self.assertIn("no FILE was given", done.stderr)

    def test_files(self):
        """bash itself completes them where nothing is offered."""
        for words in (("report", ""), ("report", "--base", ""),
                      ("export", "pprof", ""), ("run", "--out", ""),
                      ("run", "ls", ""), ("run", "ls", "--"),
                      ("report", "--", "--"), ("ctl", "1", "mark", "")):
            self.assertEqual(self.complete("sampleprof", *words), [], words)
        with open(os.path.join(self.dir, "tree.sprof"), "w",
                  encoding="ascii"):
            pass
        self.assertEqual(self.complete("sampleprof-report", "tr"),
                         ["tree", "traces", "tree.sprof"])

    def test_programs(self):
        self.assertIn("printf", self.complete("sampleprof", "run", "print"))
        self.assertIn("printf", self.complete(
            "sampleprof", "run", "--period", "1", "--", "print"))

    def test_old_names(self):
        self.assertEqual(self.complete("sampleprof-report", "diff", "--cs"),
                         ["--csv"])
        self.assertNotIn("run", self.complete("sampleprof-report", ""))
        self.assertEqual(self.complete("sampleprof-lab", "--seed", "1",
                                       "--strategy", "jf"), ["jfr"])
