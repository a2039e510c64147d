# SPDX-License-Identifier: MIT
"""A shell in tmux, in a terminal of 80x24: commands are typed, and what is on
the screen then is what a reader sees."""

import dataclasses
import os
import re
import shutil
import subprocess
import tempfile
import time

COLUMNS, ROWS = 80, 24
# Stands between what is typed and what is printed.
MARK = "-- output --"
# Number of the command, how the one before it ended.
# It may stand behind a line that has no end.
PROMPT = re.compile(r"<(\d+):(\d+)> ?$")
PAGER = re.compile(r"^(:|\(END\)|.*lines \d+-\d+.*|--More--.*)$")


class TerminalError(Exception):
    """It is not as it must be; the text has the screen."""


@dataclasses.dataclass
class Shown:
    """What a command has printed: `lines`, of which those of the first screen
    are `first`; `paged`: it waited in a pager; `coded`: the screen with the
    codes of its colours."""
    command: str
    status: int
    lines: list
    first: list
    paged: bool
    coded: str

    @property
    def text(self):
        return "\n".join(self.lines)

    def next(self):
        """The commands of "next:", as they can be pasted."""
        found, is_open = [], False
        for line in self.lines:
            begin = re.match(r"(?:sampleprof: )?next: +(.*)", line)
            if not begin and not (found and re.match(r" {6}\S| {8}\S", line)):
                if found:
                    break
                continue
            text = begin[1] if begin else line.strip()
            if is_open:
                found[-1] += " " + text
            else:
                found.append(text)
            is_open = text.endswith("\\")
            found[-1] = found[-1].rstrip("\\").strip()
        return [re.sub(r"  # .*", "", command) for command in found]

    def wide(self):
        """Lines that the terminal had to break."""
        return [line for line in self.lines if len(line) > COLUMNS]


class Terminal:
    """`argv` starts bash there."""

    def __init__(self, argv):
        self.dir = tempfile.mkdtemp(prefix="sampleprof-terminal-")
        self.socket = os.path.join(self.dir, "tmux")
        self.count = 0
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS),
                   "-y", str(ROWS), *argv)
        self._tmux("set", "-g", "history-limit", "5000")
        self._tmux("set", "-g", "status", "off")
        self._tmux("resize-window", "-x", str(COLUMNS), "-y", str(ROWS))
        # bash counts commands; ours is known by a count that has grown.
        self.type(r"PS0='" + MARK + r"\n' PS1='<\#:$?> '")
        self._prompt(60, lambda count: True, False)

    def close(self):
        self._tmux("kill-server", check=False)
        shutil.rmtree(self.dir, ignore_errors=True)

    def _tmux(self, *argv, check=True):
        done = subprocess.run(["tmux", "-S", self.socket, *argv], check=check,
                              env={**os.environ, "LC_ALL": "C.UTF-8"},
                              capture_output=True)
        return done.stdout.decode()

    def screen(self, *options):
        """Its lines, those that were broken put together."""
        return self._tmux("capture-pane", "-p", "-J", *options)

    def type(self, text):
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", "Enter")

    def keys(self, *names):
        self._tmux("send-keys", *names)

    def _last(self):
        lines = [line.rstrip() for line in self.screen().split("\n")]
        while lines and not lines[-1]:
            lines.pop()
        return lines[-1] if lines else ""

    def _prompt(self, limit_s, is_new, pages=True):
        """Waits for a prompt or, if it `pages`, a pager; the match of the
        prompt, or None."""
        deadline = time.monotonic() + limit_s
        while True:
            last = self._last()
            prompt = PROMPT.search(last)
            if prompt and is_new(int(prompt[1])):
                self.count = int(prompt[1])
                return prompt
            if pages and PAGER.match(last):
                return None
            if time.monotonic() > deadline:
                raise TerminalError(f"nothing more happens:\n{self.screen()}")
            time.sleep(0.1)

    def _clear(self):
        """So that the prompt is all that the terminal has."""
        self.keys("C-l")
        deadline = time.monotonic() + 60
        while not PROMPT.fullmatch(self.screen().strip()):
            if time.monotonic() > deadline:
                raise TerminalError(f"no prompt:\n{self.screen()}")
            time.sleep(0.02)
        self._tmux("clear-history")

    def run(self, command, limit_s=600):
        """Type a command, and wait until it has ended.  What goes through a
        pager is looked at there, and then printed without."""
        before = self.count
        self._clear()
        self.type(command)
        prompt = self._prompt(limit_s, lambda count: count > before)
        if prompt:
            lines = self._printed(self.screen("-S", "-"))
            return Shown(command, int(prompt[2]), lines, lines[:ROWS - 1],
                         False, self.screen("-e", "-S", "-"))
        first, coded = self._printed(self.screen()), self.screen("-e")
        self.keys("q")
        self._prompt(60, lambda count: count > before, False)
        whole = self.run("PAGER=cat " + command, limit_s)
        return Shown(command, whole.status, whole.lines, first, True, coded)

    @staticmethod
    def _printed(screen):
        """What is below the mark, without the prompt or the pager's line."""
        lines = [line.rstrip() for line in screen.split("\n")]
        while lines and not lines[-1]:
            lines.pop()
        for n, line in enumerate(lines):
            # The echo of a line of just the width may stand before it.
            if line.endswith(MARK):
                lines = lines[n + 1:]
                break
        if lines and PAGER.match(lines[-1]):
            lines.pop()
        elif lines and PROMPT.search(lines[-1]):
            lines[-1:] = [rest for rest in [PROMPT.sub("", lines[-1])] if rest]
        return lines
