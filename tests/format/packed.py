# SPDX-License-Identifier: MIT
"""The columns of packed files: stacks, names and events."""

import struct
from collections import defaultdict

from fields import (EVENT_COLUMNS, ID_MAX, MASK, NAME_COLUMNS, STACK_COLUMNS,
                    Damage, Payload, check_of, hash_bytes)

STACK_FRAMES, CHUNK_FRAMES = 1024, 262144
SYMBOL_LINES, TEXT_BYTES = 64, 32768


class Exceptions:
    """A column that says only what is not as expected."""

    def __init__(self, column):
        self.column, self.left = column, -1
        self._count()

    def _count(self):
        self.left = -1 if self.column.is_used_up() else self.column.varint()

    def next(self, read, expected=None):
        """What read() finds if the next thing is an exception."""
        if self.left:
            self.left -= self.left > 0
            return expected
        found = read(self.column)
        self._count()
        return found

    def is_used_up(self):
        return self.left < 0


class Columns:
    """A kind of chunks, each of which continues what those before began."""

    check_kind, before, after, n_columns = 0, "", "", 0  # the header's fields

    def __init__(self, file_id):
        self.file_id, self.count = file_id, 0

    def chunk(self, data):
        """Take a chunk, from behind its header, as far as it is good."""
        p = Payload(data)
        before, lengths, after = (
            struct.unpack("<" + fields, p.take(struct.calcsize("<" + fields)))
            for fields in (self.before, f"{self.n_columns}I", self.after))
        h = check_of(self.file_id, self.check_kind, p.data[:p.at])
        check = int.from_bytes(p.take(8), "little")
        header = p.at
        columns = [Payload(p.take(n)) for n in lengths]
        if check != hash_bytes(h, p.data[header:p.at]):
            raise Damage("check")
        if before[0] != self.count:
            raise Damage("a chunk is missing")
        columns = self.read([*before[1:], *after], columns)
        if not all(c.is_used_up() for c in columns):
            raise Damage("a column is longer")
        self.done(before[1:], after)

    def read(self, values, columns):
        """Read all, and return what has to be used up now."""
        raise NotImplementedError

    def done(self, before, after):
        """The chunk is good."""


class Stacks(Columns):
    """Frames as a tree: of each node its place, its caller and its depth."""

    check_kind, before, after, n_columns = STACK_COLUMNS, "QI", "", 3

    def __init__(self, file_id):
        super().__init__(file_id)
        self.stacks, self.places = {}, [None]
        self.nodes = [(0, 0, 0)]
        self.id = self.end = self.offset = 0

    def read(self, values, columns):
        stacks, frames, places = columns
        total = 0
        for _ in range(values[0]):
            self.id = self.id + 1 + stacks.zigzag() & MASK
            flags = stacks.varint()
            node = self.end - stacks.zigzag()
            if not 1 <= self.id <= ID_MAX or not 0 <= node < len(self.nodes):
                raise Damage("stack")
            for _ in range(stacks.varint(0, STACK_FRAMES)):
                place = self._place(frames.varint(), places)
                self.nodes.append((place, node, self.nodes[node][2] + 1))
                node = len(self.nodes) - 1
            self.end = node
            total += self.nodes[node][2]
            if self.nodes[node][2] > STACK_FRAMES or total > CHUNK_FRAMES:
                raise Damage("too many frames")
            self.stacks.setdefault(self.id, {"flags": flags,
                                             "frames": self._frames(node)})
            self.count += 1
        return columns

    def _place(self, place, places):
        if place == 0:
            module = places.varint(0, ID_MAX)
            self.offset = self.offset + places.zigzag() & MASK
            self.places.append((module, self.offset))
            return len(self.places) - 1
        if place >= len(self.places):
            raise Damage("place")
        return place

    def _frames(self, node):
        frames = []
        while node:
            place, node, _ = self.nodes[node]
            frames.append(list(self.places[place]))
        return frames


class Names(Columns):
    """What the places of stacks stand for."""

    check_kind, before, after, n_columns = NAME_COLUMNS, "QII", "I", 7

    def __init__(self, file_id, stacks):
        super().__init__(file_id)
        self.stacks, self.texts, self.symbols = stacks, [None], {}
        self.following = 1

    def read(self, values, columns):
        n_places, n_texts, zero = values
        length, text, n_lines, *line = columns
        if zero:
            raise Damage("not 0")
        for _ in range(n_texts):
            self.texts.append(text.take(length.varint(0, TEXT_BYTES)))
        for _ in range(n_places):
            self.count += 1
            if self.count >= len(self.stacks.places):
                raise Damage("place")
            n = n_lines.varint(1, SYMBOL_LINES)
            self.symbols.setdefault(
                self.stacks.places[self.count],
                [self._line(line, i == n - 1) for i in range(n)])
        return columns

    def _line(self, columns, is_last):
        flags, function, file, line = columns
        bits = flags.varint() ^ (not is_last)
        function_text = self._text(function.varint())
        file_number = file.varint()
        file_text = self._text(file_number - 1) if file_number else None
        return (bits, function_text, file_text, line.varint(0, ID_MAX))

    def _text(self, number):
        if number == 0:
            number = self.following
            self.following += 1
        if number >= len(self.texts):
            raise Damage("text")
        return self.texts[number]


class Times:
    """The times of events, of which one chunk after another has some."""

    def __init__(self):
        self.begin = self.span = self.n = self.k = 0

    def next(self, column, left):
        """The time of the next event, of which the chunk has `left`."""
        while self.k == self.n:
            self.begin = self.begin + self.span & MASK
            self.n, self.span, self.k = column.varint(0, left), \
                column.varint(), 0
        self.k += 1
        return self.begin + -(-self.k * self.span // self.n) & MASK


class Site:
    """A stack and an entry point, and its samples that are not freed."""

    def __init__(self, stack, entry):
        self.stack, self.entry = stack, entry
        self.alive, self.n_samples, self.expected = {}, 0, 0

    def add(self, sample):
        self.alive[self.n_samples] = sample
        self.n_samples += 1

    def free(self, column):
        number = column.next(lambda c: self.expected + c.zigzag(),
                             self.expected)
        if number not in self.alive:
            raise Damage("no such sample")
        self.expected = number + 1
        return self.alive.pop(number)


class Events(Columns):
    """Samples and frees."""

    check_kind, before, after, n_columns = EVENT_COLUMNS, "QII", "QQ", 10

    def __init__(self, file_id):
        super().__init__(file_id)
        self.samples, self.frees = [], []
        self.unmatched = self.unfinished = 0
        self.sites, self.allocated = [], defaultdict(int)
        self.has_last, self.times = False, Times()
        self.thread = self.id = self.period = 0

    def read(self, values, columns):
        n_events, is_last, *left_out = values
        if self.has_last or is_last > 1 or (any(left_out) and not is_last):
            raise Damage("last chunk")
        what, self.of_site, self.size, time = columns[:4]
        (thread, self.of_id, self.of_period, self.offset, self.order,
         self.age) = exceptions = [Exceptions(c) for c in columns[4:]]
        for left in range(n_events, 0, -1):
            site, is_free = divmod(what.varint(), 2)
            self.thread = thread.next(lambda c: c.varint(0, ID_MAX),
                                      self.thread)
            event = {"time_ns": self.times.next(time, left),
                     "thread": self.thread}
            if is_free:
                self.frees.append(self._free(event, site))
            else:
                self.samples.append(self._sample(event, site))
            self.count += 1
        return [what, self.of_site, self.size, time, *exceptions]

    def done(self, before, after):
        self.has_last = before[1] == 1
        self.unmatched, self.unfinished = after

    def _sample(self, event, number):
        if number == len(self.sites):
            self.sites.append(Site(self.of_site.varint(0, ID_MAX),
                                   self.of_site.varint(0, 31)))
        if number >= len(self.sites):
            raise Damage("site")
        site = self.sites[number]
        size = self.size.varint(1)
        expected = self.id + 1
        self.id = self.of_id.next(lambda c: expected + c.zigzag(),
                                  expected) & MASK
        self.period = self.of_period.next(lambda c: c.varint(1, 1 << 40),
                                          self.period)
        if self.period == 0:
            raise Damage("period")
        self.allocated[self.thread] += size
        sample = {**event, "id": self.id, "period_bytes": self.period,
                  "entry": site.entry, "stack": site.stack, "size": size,
                  "offset": self.offset.next(
                      lambda c: c.varint(0, size - 1), 0)}
        site.add((sample, self.allocated[self.thread]))
        return sample

    def _free(self, event, number):
        if number >= len(self.sites):
            raise Damage("site")
        sample, before = self.sites[number].free(self.order)
        grown = self.allocated[sample["thread"]] - before

        def exception(column):
            flags = column.varint(0, 3)
            return (grown + column.zigzag() & MASK if flags & 1 else None,
                    bool(flags & 2))

        own = self.thread == sample["thread"]
        age, missed = self.age.next(
            exception, (grown & MASK if own else None, False))
        return {**event, "id": sample["id"], "age": age, "missed": missed}


class Packed:
    """The three kinds of chunks with columns.  Nothing behind the first
    damage is used."""

    def __init__(self, file_id):
        self.stacks, self.events = Stacks(file_id), Events(file_id)
        self.names = Names(file_id, self.stacks)
        self.damaged = set()  # kinds

    def chunk(self, kind, data):
        if kind in self.damaged:
            raise Damage("behind a damaged chunk")
        self.damaged.add(kind)
        {4: self.events, 5: self.stacks, 6: self.names}[kind].chunk(data)
        self.damaged.remove(kind)
