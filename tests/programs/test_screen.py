# SPDX-License-Identifier: MIT
"""The report on a terminal: no line is wider than it, colours can be switched
off, a pager as in git.  Elsewhere plain text with whole names."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import harness

HERE = os.path.dirname(os.path.abspath(__file__))
SHOP = os.path.join(HERE, "cli", "shop.sprof.zst")
NEW = os.path.join(HERE, "cli", "shop-new.sprof.zst")
SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")
PAGES = ((), ("--view", "live"), ("--cum",), ("--view", "temporary"),
         ("--stacks", "0"), ("tree",), ("peek", "a"), ("stats",),
         ("list", "a", "--source-path", os.path.join(HERE, "cli")),
         ("--timeline",), ("--sizes",), ("--sizes", "--view", "live"),
         ("--by", "thread"), ("--by", "phase"), ("--granularity", "line"),
         ("diff", NEW), ("diff", "--stacks", "0", NEW), ("tree", "--base", NEW),
         ("peek", "a", "--base", NEW), ("--sizes", "--base", NEW))


def command(*arguments):
    return [os.environ["SAMPLEPROF_REPORT"], *arguments]


class Screen(harness.Case):
    def setUp(self):
        super().setUp()
        profile = harness.Profile(SHOP)
        profile.require_samples(500)

    def terminal(self, *arguments, columns=80, rows=200, path=SHOP, name=None,
                 **env):
        """What reaches the terminal, and the exit status.  Of the variables
        only those that are given are set.  `name`: the command is called so,
        in the directory of the test, however long its path is."""
        words = command(*arguments, path)
        if name:
            link = os.path.join(self.dir, name)
            if not os.path.lexists(link):
                os.symlink(words[0], link)
            words[0] = name
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))
        path_of_tools = f"{self.dir}:/usr/bin:/bin"
        with subprocess.Popen(
                words, stdin=subprocess.DEVNULL, cwd=self.dir,
                stdout=slave, stderr=slave,
                env={"PATH": path_of_tools, "LC_ALL": "C.UTF-8",
                     "TERM": "xterm", "PAGER": "cat", **env}) as process:
            os.close(slave)
            text = b""
            deadline = time.monotonic() + harness.TIMEOUT_S
            while select.select([master], [], [],
                                max(0, deadline - time.monotonic()))[0]:
                try:
                    part = os.read(master, 65536)
                except OSError:  # the last one has closed the other end
                    break
                text += part
            code = process.wait(harness.TIMEOUT_S)
        # Progress, of a machine that is busy, is written over.
        return re.sub(r"[^\n]*\r", "", text.decode().replace("\r\n", "\n")), code

    def page(self, *arguments, **how):
        text, code = self.terminal(*arguments, **how)
        self.assertEqual(code, 0, text)
        return text

    def pager(self, script):
        """A program that PAGER can name."""
        path = os.path.join(self.dir, "my-pager")
        with open(path, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)
        return "my-pager"

    def fits(self, columns, *arguments, **how):
        text = SEQUENCE.sub("", self.page(*arguments, columns=columns, **how))
        # A word that is wider by itself cannot be helped: the path of the
        # profile and, where the tree lies deep, that of the tool.
        words = [how.get("path", SHOP)]
        words += [word for word in command()[:1] if len(word) > columns - 8]
        for line in text.splitlines():
            if len(line) > columns:
                self.assertTrue(any(word in line for word in words), line)
        return text

    @harness.nightly_too
    def test_no_line_is_wider(self):
        for columns in (60, 100, 80, 132)[:harness.rounds(2, 4)]:
            for arguments in PAGES:
                # A drawing is not broken: it has a width of its own.
                if columns < 80 and "--timeline" in arguments:
                    continue
                with self.subTest(columns=columns, arguments=arguments):
                    self.fits(columns, *arguments)

    def test_elsewhere(self):
        """80 columns, but for whole names: they are at the end."""
        for arguments in PAGES:
            text = subprocess.run(command(*arguments, SHOP), check=True,
                                  capture_output=True,
                                  timeout=harness.TIMEOUT_S).stdout.decode()
            for line in text.splitlines():
                with self.subTest(arguments=arguments, line=line):
                    # The path of a source file; a name and its file; a path.
                    line = re.sub(r"^  in \S+", "", line)
                    line = re.sub(r"(?:\S+ < )*\S+(?:  \(\S+\))?$", "", line)
                    self.assertLessEqual(len(line), 80)

    def test_long_names_lose_their_middle(self):
        result = self.execute(harness.target("program_cxx_names"), period=1)
        [path] = result.paths
        harness.Profile(path).require_samples(100)
        whole = subprocess.run(command(path), capture_output=True, check=True,
                               timeout=harness.TIMEOUT_S).stdout.decode()
        name = re.search(r"(?m)^.*%  (shop::.*::keep_it)  \(", whole)[1]
        self.assertGreater(len(name), 60)
        for columns in (70, 80, 100):
            text = self.fits(columns, path=path)
            self.assertNotIn(name, text)
            self.assertRegex(text, r"(?m)  sh.*\u2026.*::keep_it  \(")

    def low(self, *arguments, rows=24, **how):
        """The lines of a report of a screen with so many, without colours."""
        short = os.path.join(self.dir, "shop.sprof.zst")
        if not os.path.lexists(short):
            os.symlink(SHOP, short)
        return self.fits(80, *arguments, rows=rows, name="sampleprof-report",
                         path="shop.sprof.zst", **how).splitlines()

    def test_a_screen_of_24_lines(self):
        """All that matters, and the prompt below it."""
        lines = self.low()
        self.assertLessEqual(len(lines), 22)
        text = "\n".join(lines)
        for said in ("allocated 4.73 MiB", "peak ", "load\n", "serve\n",
                     "copy  (shop)", "parse_item", "cache_get", "--cum",
                     "intervals 95 %", "next: ", "--view live"):
            self.assertIn(said, text)
        # In a pipe nothing is left out.
        piped = harness.report(SHOP)
        self.assertGreater(len(piped.splitlines()), 23)
        self.assertIn(" export html ", piped)

    def test_rows_by_the_height(self):
        """First functions go, to five, then commands, then functions to two;
        what is left out is said.  What does not fit is whole, for the pager."""
        result = self.execute(harness.target("program_views"), period=1)
        [other] = result.paths
        harness.Profile(other).require_samples(50)
        os.rename(other, os.path.join(self.dir, "o.sprof"))
        whole = self.low("o.sprof", rows=200)
        self.assertEqual(whole, self.low("o.sprof", rows=len(whole) + 2))
        self.assertNotIn(" flat in ", "\n".join(whole))
        names = [line.split("  (")[0].split()[-1] for line in whole
                 if re.search(r"%.*  \((shop|program_views)\)$", line)]
        self.assertGreater(len(names), 6)
        for less in 1, 2:
            lines = self.low("o.sprof", rows=len(whole) + 2 - less)
            self.assertLessEqual(len(lines), len(whole) - less)
            self.assertRegex("\n".join(lines), r"\n  and .* flat in .*: see "
                                              r"(--\S+ 0 )?--top 0\n")
            self.assertEqual(lines[-3:], whole[-3:])
        low = "\n".join(self.low("o.sprof",
                                 rows=len(whole) - len(names) + 6))
        for name in names[:5]:
            self.assertRegex(low, rf"{re.escape(name)}  \(")
        self.assertIn("next: ", low)
        self.assertNotIn(" export html ", low)
        rows, shown = low.count("\n") + 3, 5
        while (least := self.low("o.sprof", rows=rows)) != whole:
            self.assertLessEqual(len(least), rows - 2)
            self.assertIn("next: ", "\n".join(least))
            shown = sum(any(f"{name}  (" in line for line in least)
                        for name in names[:5])
            rows = len(least) + 1
        self.assertEqual(shown, 2)
        # As many as are asked for.
        asked = self.low("--top", "15", "o.sprof", rows=len(whole) - 1)
        self.assertNotIn(" flat in ", "\n".join(asked))

    def test_many_notes(self):
        """Of a program without names, one that did not end as it should, and
        one whose disk was full: notes are cut, and said to be."""
        stripped = os.path.join(self.dir, "stripped")
        subprocess.run(["strip", "-o", stripped,
                        harness.target("program_views")], check=True)
        script = "a = [str(i) * 99 for i in range(99999)]; import os; "
        python = "/usr/bin/python3", "-c"
        for i, (argv, settings, cut) in enumerate((
                ((stripped,), {"period": 1}, False),
                ((*python, script), {"period": "512K"}, False),
                ((*python, script + "os._exit(0)"), {"period": "512K"}, True),
                ((*python, script + "os.kill(os.getpid(), 9)"),
                 {"clean": False, "period": "16K"}, True),
                ((*python, script), {"period": 64, "max_file": "1M"}, True))):
            [made] = self.execute(*argv, **settings).paths
            os.rename(made, os.path.join(self.dir, "o.sprof"))
            how = {"rows": 24, "path": "o.sprof", "name": "sampleprof-report"}
            text = self.fits(80, **how)
            with self.subTest(i=i, text=text):
                self.assertLessEqual(text.count("\n"), 22)
                self.assertTrue(i == 4 or "\nnext: " in text)
                self.assertEqual(cut, ", cut: see --top 0\n" in text)
                self.assertIn("\nnotes:\n", self.fits(80, "--top", "0", **how))

    def test_colours(self):
        self.assertIn("\x1b[1m", self.page())
        self.assertNotIn("\x1b", self.page(NO_COLOR="1"))
        self.assertIn("\x1b[1m", self.page(NO_COLOR=""))
        self.assertNotIn("\x1b", self.page(TERM="dumb"))
        self.assertNotIn("\x1b", self.page(TERM=""))
        # With and without, the same text; elsewhere none, nor bars.
        self.assertEqual(SEQUENCE.sub("", self.page()),
                         self.page(NO_COLOR="1"))
        self.assertIn("\u2588", self.page(columns=100))
        done = subprocess.run(
            command(SHOP), capture_output=True, check=True,
            timeout=harness.TIMEOUT_S,
            env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8",
                 "PAGER": self.pager("echo paged\n")}).stdout.decode()
        self.assertNotIn("\x1b", done)
        self.assertNotIn("\u2588", done)
        self.assertNotIn("paged", done)

    def test_pager(self):
        mine = self.pager("echo paged\ncat\n")
        self.assertTrue(self.page(PAGER=mine).startswith("paged\n"))
        self.assertIn("next: ", self.page(PAGER=mine))
        # As the shell takes it.
        self.assertTrue(self.page(PAGER=mine + " | tr a-z A-Z")
                        .startswith("PAGED\n"))
        for arguments, env in ((["--no-pager"], {"PAGER": mine}),
                               ([], {"PAGER": ""}), ([], {"PAGER": "cat"}),
                               ([], {"PAGER": mine, "TERM": "dumb"}),
                               (["--json"], {"PAGER": mine}),
                               (["--csv"], {"PAGER": mine})):
            with self.subTest(arguments=arguments, env=env):
                text = self.page(*arguments, **env)
                self.assertNotIn("paged", text)
        # What cannot be run is gone without.
        self.assertIn("next: ", self.page(PAGER="no-such-pager"))
        # An error is one with a pager, too.
        text, code = self.terminal("--focus", "nobody", PAGER=mine)
        self.assertEqual(code, 1)
        self.assertIn("no function of this view matches --focus nobody", text)

    def test_who_leaves_the_pager_has_seen_enough(self):
        text, code = self.terminal("--stacks", "0", "--granularity", "line",
                                   PAGER=self.pager("exec <&-\nsleep 0.2\n"))
        self.assertEqual((text, code), ("", 0))

    def test_less(self):
        """What fits is printed, and less ends; else it waits."""
        less = harness.require("/usr/bin/less", "less")
        self.assertIn("next: ", self.page(PAGER=less))
        self.assertIn("next: ", "\n".join(self.low(PAGER=less)))
        self.assertIn("\x1b[1m", self.page(PAGER=less))
        # Its own settings are respected; without R it would show codes.
        self.assertNotIn("\x1b[1mallocated", self.page(PAGER=less, LESS="FX"))
        self.assertNotIn("ESC", self.page(PAGER=less, LESS="FX"))
