# SPDX-License-Identifier: MIT
"""What the runtimes' test runs under Python: objects of the interpreter, and
blocks of the extension beside this file, which calls back, too."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable-next=wrong-import-position,import-error
import extension  # noqa: E402


class Order:  # pylint: disable=too-few-public-methods
    """Made by the interpreter."""

    def __init__(self, number):
        self.lines = [str(number + k) for k in range(20)]


def make(n):
    """A list that the interpreter allocates."""
    return [Order(i) for i in range(n)]


def read(text):
    """Objects of a module that is written in C."""
    return json.loads(text)


def native(n):
    """Blocks of the extension."""
    extension.fill(n)


def called(n):
    """Through the extension: fill(), then these."""
    return extension.call(lambda: [bytes(3000) for _ in range(n)])


def work():
    """All of it."""
    kept = make(3000)
    text = json.dumps([o.lines for o in kept])
    for _ in range(20):
        kept.append((read(text[:200000].rsplit(", [", 1)[0] + "]"),
                     called(50)))
        native(50)
    return kept


work()
