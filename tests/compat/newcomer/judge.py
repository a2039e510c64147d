# SPDX-License-Identifier: MIT
"""What a newcomer may expect of what is on the screen.  Each function gives
what is wrong, [] if nothing is."""

import re

# A line of the table: figures, and a function behind them.
ROW = re.compile(r"^ *[\[<~]? ?[0-9].*(?:%|█|\d/\d+)  +(\S.*)$")


def status(shown, wanted=0):
    if shown.status == wanted:
        return []
    return [f"exit status {shown.status}, not {wanted}:\n{shown.text[-2000:]}"]


def widths(shown):
    """No line is wider than the terminal."""
    return [f"wider than the terminal: {line}" for line in shown.wide()]


def functions(lines):
    """The functions of the rows, in their order, without their modules."""
    rows = (ROW.match(line) for line in lines)
    return [re.sub(r"  \(\S+\)$", "", row[1]) for row in rows if row]


def answer(shown, name):
    """The first row of the first screen is that function."""
    found = functions(shown.first)
    if found and found[0] == name:
        return []
    return [f"{name} is not the first of {found}:\n" + "\n".join(shown.first)]


def names(shown, name):
    """The first screen has these words."""
    if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", "\n".join(shown.first)):
        return []
    return [f"{name} is not on the first screen:\n" + "\n".join(shown.first)]


def colours(shown, wanted):
    """Are there codes of colours?"""
    if ("\x1b[" in shown.coded) == wanted:
        return []
    return [f"colours: {not wanted}, not {wanted}"]


def proposes(shown, part):
    """One of the commands to try next has that in it."""
    if any(part in command for command in shown.next()):
        return []
    return [f"{part} is not among {shown.next()}"]
