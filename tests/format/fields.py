# SPDX-License-Identifier: MIT
"""What all of a profile is made of: checks, and integers of any length."""

MASK, ID_MAX = (1 << 64) - 1, (1 << 32) - 1
# The kinds of checks.
(HEADER, STATUS, SLOT, CHUNK_HEADER, CLASSES, WINDOW, EVENT_COLUMNS,
 STACK_COLUMNS, NAME_COLUMNS) = range(1, 10)


class Damage(Exception):
    """The rest of this chunk, or the file, is not to be used."""


def step(h, word):
    h = (h ^ word) * 0x9E3779B97F4A7C15 & MASK
    return h ^ h >> 29


def hash_bytes(h, data):
    for i in range(0, len(data), 8):
        h = step(h, int.from_bytes(data[i:i + 8], "little"))
    return h


def check_of(file_id, kind, data):
    return hash_bytes(step(step(0, file_id), kind), data)


class Payload:
    """Fields one after another; too few bytes are damage."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if n > len(self.data) - self.at:
            raise Damage("too short")
        self.at += n
        return self.data[self.at - n:self.at]

    def rest(self):
        return self.take(len(self.data) - self.at)

    def is_used_up(self):
        return self.at == len(self.data)

    def varint(self, low=0, high=MASK):
        value = shift = 0
        # Byte by byte, not by take(): most of a reading is spent here.
        for byte in self.data[self.at:self.at + 10]:
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        else:
            raise Damage("varint that is cut, or of more than ten bytes")
        self.at += shift // 7
        if value > MASK or not low <= value <= high:
            raise Damage("out of range")
        return value

    def zigzag(self):
        n = self.varint()
        return (n >> 1) ^ -(n & 1)
