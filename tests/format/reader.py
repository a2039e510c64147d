#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""A second reader of profiles, written from docs/format.md: prints as JSON
what a file says, without estimates."""

import errno
import json
import os
import struct
import sys
from collections import Counter

import packed
from fields import (CHUNK_HEADER, CLASSES, HEADER, ID_MAX, MASK, SLOT, STATUS,
                    WINDOW, Damage, Payload, check_of, hash_bytes, step)

CHUNK = 65536
PACKED, STACK_STEPS, ADDRESSES = 16, 32, 64  # flags of the header


def newest(file_id, kind, copies):
    """The newer valid one of two copies, or None."""
    best, best_seq = None, 0
    for number, copy in enumerate(copies):
        seq, check = (int.from_bytes(copy[i:][:8], "little")
                      for i in (0, len(copy) - 8))
        if seq & 1 == number and seq > best_seq and \
                check == check_of(file_id, kind, copy[:-8]):
            best, best_seq = copy, seq
    return best


def are_named(lines):
    """Has every function a text?"""
    return all(function and function[0] for _, function, _, _ in lines)


class Profile:
    """What one file says."""

    def __init__(self, data):
        self.infos, self.modules, self.stacks, self.threads = {}, {}, {}, {}
        self.samples, self.frees, self.rss = [], [], []
        self.calls = {}
        self.addresses = []
        self.marks, self.asked = [], {}
        self.classes, self.damaged_chunks = {}, 0
        self.texts, self.symbols = {}, {}
        self._header(data)
        self.columns = packed.Packed(self.file_id)
        first = data[:CHUNK].ljust(CHUNK, b"\0")
        self._status(first[4096:8192])
        self._window(first[7168:8192])
        self._slots(first[8192:])

    def _header(self, data):
        if not any(data[:96]):
            raise Damage("stopped while it was created")
        if data[:8] != b"\x89sprof\r\n" or len(data) < 8192:
            raise Damage("not a profile")
        (version, size, chunk, self.flags, self.file_id, self.pid, _ticks,
         _start, self.period_bytes, self.seed, self.max_file, self.check_in,
         check) = struct.unpack("<4I9Q", data[8:96])
        if version != 1:
            raise Damage(f"version {version} is not known")
        if (size, chunk) != (96, CHUNK) or self.flags > 127 or \
                not 1 <= self.period_bytes <= 1 << 40 or \
                check != check_of(self.file_id, HEADER, data[:88]):
            raise Damage("header")

    def _status(self, page):
        copy = newest(self.file_id, STATUS, (page[:304], page[1024:1328]))
        values = struct.unpack("<38Q", copy or bytes(304))
        self.end_kind, self.time_ns, self.chunks = values[1:4]
        self.losses = list(values[5:37])

    def _window(self, page):
        copy = newest(self.file_id, WINDOW, (page[:80], page[80:160]))
        self.window = struct.unpack("<10Q", copy or bytes(80))[1:9]
        self.oldest, self.since = self.window[:2]

    def _slots(self, data):
        self.slots, self.has_unreadable_slot = [], False
        for at in range(0, 448 * 128, 128):
            copy = newest(self.file_id, SLOT,
                          (data[at:at + 64], data[at + 64:at + 128]))
            (_, total, objects, base, base_objects, thread, tid,
             _) = struct.unpack("<8Q", copy or bytes(64))
            if copy is None and (any(data[at:at + 64]) or (
                    self.end_kind == 1 and any(data[at + 64:at + 128]))):
                self.has_unreadable_slot = True
            self.slots.append(([total, objects],
                               [total - base & MASK,
                                objects - base_objects & MASK], thread))
            if thread:
                self.threads[thread] = {"tid": tid, "exact": None}

    def chunk(self, number, data):
        """Take chunk `number`, which may be cut short."""
        if not any(data):
            return
        magic, kind, index, check = struct.unpack(
            "<4sIQQ", data[:24].ljust(24, b"\0"))
        try:
            segment = index >> 32
            if (magic, index & ID_MAX) != (b"chnk", number) or \
                    segment and not self.flags & 8 or \
                    check != check_of(self.file_id, CHUNK_HEADER, data[:16]):
                raise Damage("chunk header")
            if self.flags & PACKED and segment:
                raise Damage("a segment of a packed file")
            if 0 < segment < self.oldest:
                return
            if kind in (1, 3):
                self._records(kind, index, data)
            if kind == 2:
                self._class_pages(data.ljust(CHUNK, b"\0"))
            if kind in (4, 5, 6) and self.flags & PACKED:
                self.columns.chunk(kind, data[24:])
        except Damage:
            self.damaged_chunks += 1

    def _class_pages(self, data):
        for pair in range(7):
            best, best_seq = None, 0
            for number in (0, 1):
                page = data[4096 * (1 + 2 * pair + number):][:4072]
                seq, slot, *sums, check = struct.unpack("<5Q", page[:40])
                numbers = struct.unpack("<504Q", page[40:])
                if seq & 1 == number and slot < 448 and slot % 7 == pair and \
                        check == check_of(self.file_id, CLASSES, page[:32]) \
                        and sums == [sum(numbers[::2]), sum(numbers[1::2])] \
                        and seq > best_seq:
                    best, best_seq = (slot, numbers), seq
            if best:
                self.classes.setdefault(*best)

    def _records(self, kind, index, data):
        at = 24
        h = step(step(0, self.file_id), index)
        self.state = {"id": 0, "time_ns": 0, "address": 0, "period_bytes": 0,
                      "thread": 0, "stack": 0}
        self.freed_id = 0
        take = {1: self._info, 2: self._module, 3: self._stack,
                4: self._thread, 5: self._thread_end, 6: self._sample,
                7: self._free, 8: self._rss, 12: self._mark,
                13: self._asked, 14: self._free_address, 15: self._map,
                16: self._unmap, 17: self._code}
        if kind == 3:
            take = {10: self._name, 11: self._symbol}
        while at < len(data) and data[at]:
            record = Payload(data[at + 1:at + 11])
            length = record.varint()
            # The record alone, and its check: chunks are large.
            record.data = data[at + 1:at + 1 + record.at + length + 2]
            payload = record.take(length)
            h = hash_bytes(step(h, data[at]), record.data[:record.at])
            if int.from_bytes(record.take(2), "little") != h >> 48:
                raise Damage("check")
            if data[at] in take:
                take[data[at]](Payload(payload))
            at += 1 + record.at

    def _info(self, p):
        key = os.fsdecode(p.take(p.varint()))
        self.infos.setdefault(key, p.rest())

    def _module(self, p):
        number, start = p.varint(1, ID_MAX), p.varint()
        module = {"start": start, "span": p.varint(0, MASK - start),
                  "bias": p.zigzag() & MASK, "flags": p.varint(),
                  "build_id": p.take(p.varint(0, 32)).hex(), "path": p.rest()}
        self.modules.setdefault(number, module)

    def _stack(self, p):
        number, flags = p.varint(1, ID_MAX), p.varint()
        frames = [[p.varint(0, ID_MAX), p.varint()]
                  for _ in range(p.varint(0, 1024))]
        self.stacks.setdefault(number, {"flags": flags, "frames": frames})

    def _thread(self, p):
        index, tid, _, name = (p.varint(1, ID_MAX), p.varint(), p.varint(),
                               p.rest())
        self.threads.setdefault(index, {}).update(tid=tid, name=name)

    def _thread_end(self, p):
        index, _ = p.varint(1, ID_MAX), p.varint()
        exact, name = [p.varint(), p.varint()], p.rest()
        self.threads.setdefault(index, {}).update(exact=exact, name=name)

    def _sample(self, p):
        head, new = p.take(1)[0], dict(self.state)
        if head & 0x20:
            new["thread"] = p.varint(0, ID_MAX)
        if head & 0x40:
            new["period_bytes"] = p.varint(0, 1 << 40)
        if new["period_bytes"] == 0:
            raise Damage("period")
        for key in ("id", "time_ns", "address"):
            new[key] = new[key] + p.zigzag() & MASK
        size = p.varint(1)
        sample = {**new, "entry": head & 0x1F, "size": size,
                  "offset": p.varint(0, size - 1)}
        stack = new["stack"] + p.zigzag() if self.flags & STACK_STEPS \
            else p.varint()
        if not 0 <= stack <= ID_MAX:
            raise Damage("stack")
        sample["stack"] = new["stack"] = stack
        if not head & 0x80 or self.oldest:
            self.samples.append(sample)
        self.state = new

    def _free(self, p):
        head, thread = p.take(1)[0], self.state["thread"]
        if head & 1:
            thread = p.varint(0, ID_MAX)
        number = self.freed_id + p.zigzag() & MASK
        time = self.state["time_ns"] + p.zigzag() & MASK
        age = p.varint() if head & 2 else None
        if head & 0xF8:
            raise Damage("head")
        self.frees.append({"id": number, "time_ns": time, "thread": thread,
                           "age": age, "missed": bool(head & 4)})
        self.freed_id = number
        self.state.update(time_ns=time, thread=thread)

    def _free_address(self, p):
        head, thread = p.take(1)[0], self.state["thread"]
        if head & 1:
            thread = p.varint(0, ID_MAX)
        time = self.state["time_ns"] + p.zigzag() & MASK
        address = self.state["address"] + p.zigzag() & MASK
        if head & 0xFE:
            raise Damage("head")
        if self.flags & ADDRESSES:
            self.addresses.append((time, address, thread))
        self.state.update(time_ns=time, thread=thread, address=address)

    def pair_addresses(self):
        """Frees of addresses become frees of samples."""
        events = [(time, 0, address, thread, None)
                  for time, address, thread in self.addresses]
        events += [(s["time_ns"], 1, s["address"], s["thread"], s)
                   for s in self.samples]
        still, sums, every = {}, Counter(), True
        for time, _, address, thread, sample in sorted(
                events, key=lambda e: e[:2]):
            before = still.pop(address, None)
            if sample:
                every &= sample["period_bytes"] == 1
                sums[thread] += sample["size"]
                still[address] = (sample, sums[thread])
            if before:
                own = not sample and every and \
                    0 != thread == before[0]["thread"]
                self.frees.append({
                    "id": before[0]["id"], "time_ns": time,
                    "thread": 0 if sample else thread,
                    "age": sums[thread] - before[1] if own else None,
                    "missed": bool(sample)})

    def _rss(self, p):
        self.rss.append([p.varint(), p.varint()])

    def _map(self, p):
        number, flags, _ = p.varint(1), p.varint(), p.varint()
        start = p.varint()
        end = start + p.varint(1, MASK - start)
        p.varint(0, ID_MAX)
        p.varint(0, ID_MAX)
        self.calls.setdefault(number, []).append((start, end, flags))

    def _unmap(self, p):
        number, _ = p.varint(1), p.varint()
        start = p.varint()
        end = start + p.varint(1, MASK - start)
        p.varint(0, ID_MAX)
        self.calls.setdefault(number, []).append((start, end, None))

    def mapped(self):
        """[bytes, bytes without access] that are mapped at the end; None
        without a record of it.  Every call, piece by piece."""
        there = []
        for _, records in sorted(self.calls.items()):
            for start, end, flags in records:
                pieces = []
                for low, high, before in there:
                    pieces += [(low, min(high, start), before),
                               (max(low, end), high, before)]
                there = [p for p in pieces if p[0] < p[1]]
                if flags is not None:
                    there.append((start, end, flags))
        sums = [0, 0]
        for low, high, flags in there:
            sums[flags & 1] += high - low
        return sums if self.calls else None

    def _mark(self, p):
        number, kind, time, *totals = [p.varint(1)] + \
            [p.varint() for _ in range(7)]
        period, name = p.varint(0, 1 << 40), p.rest()
        if len(name) > 64 or totals[2] > totals[0] or totals[3] > totals[1]:
            raise Damage("mark")
        self.marks.append([number, kind, time, *totals, period, name])

    def _asked(self, p):
        number = p.varint(1)
        self.asked[number] = p.varint()

    def _name(self, p):
        number, text = p.varint(1, ID_MAX), p.rest()
        if len(text) > 32768:
            raise Damage("name")
        self.texts.setdefault(number, text)

    def _code(self, p):
        frame, line = (p.varint(0, ID_MAX), p.varint()), p.varint(0, ID_MAX)
        function = p.take(p.varint(1, 1024))
        file = p.rest()
        if len(file) > 1024:
            raise Damage("file")
        if function[0]:
            self.symbols.setdefault(frame, [(0, function, file or None, line)])

    def _symbol(self, p):
        frame = (p.varint(0, ID_MAX), p.varint())
        lines = [(p.varint(), *(p.varint(0, ID_MAX) for _ in range(3)))
                 for _ in range(p.varint(1, 64))]
        lines = [(flags, self.texts.get(function), self.texts.get(file), line)
                 for flags, function, file, line in lines]
        if are_named(lines):
            self.symbols.setdefault(frame, lines)

    def take_columns(self):
        """What was in columns is as if it had been in records."""
        self.samples += self.columns.events.samples
        self.frees += self.columns.events.frees
        for key, stack in self.columns.stacks.stacks.items():
            self.stacks.setdefault(key, stack)
        for frame, lines in self.columns.names.symbols.items():
            if are_named(lines):
                self.symbols.setdefault(frame, lines)

    def join_stacks(self):
        """Samples name the smallest id of those that have the same frames."""
        first, joined = {}, {}
        for number, stack in sorted(self.stacks.items()):
            if stack["frames"]:
                key = json.dumps(stack)
                joined[number] = first.setdefault(key, number)
        for sample in self.samples:
            sample["stack"] = joined.get(sample["stack"], sample["stack"])

    def class_totals(self):
        """Bytes and objects of each class; None without class pages."""
        if not self.classes:
            return None
        sums = [sum(column) for column in zip(*self.classes.values())]
        return [list(pair) for pair in zip(sums[::2], sums[1::2])]

    def add_up(self):
        """The totals of all slots, what may be missing of them, and what of
        them may be in no class.  Of an owner counts what proves most: what it
        has published, the classes of the slot, or its samples."""
        self.total, self.missing, self.slack = [0, 0], 0, 0
        sampled = {}
        for s in self.samples:
            sums = sampled.setdefault(s["thread"], [0, 0])
            sums[0] += s["size"]
            sums[1] += 1
        for number, (slot, own, thread) in enumerate(self.slots):
            numbers = self.classes.get(number, [0, 0])
            known = [sum(numbers[::2]), sum(numbers[1::2])]
            most = min(self.check_in, own[0])
            most = own[0] + max(4096, most)
            ahead = [max(0, c - s) for c, s in zip(known, slot)]
            own = [n + a for n, a in zip(own, ahead)]
            if thread:
                more = [max(0, s - n) for s, n in zip(
                    sampled.get(thread, [0, 0]), own)]
                ahead = [a + m for a, m in zip(ahead, more)]
                own = [n + m for n, m in zip(own, more)]
                if self.end_kind != 1:
                    self.missing += max(0, most - own[0])
                self.threads[thread]["exact"] = \
                    self.threads[thread]["exact"] or own
            self.total = [t + s + a
                          for t, s, a in zip(self.total, slot, ahead)]
            self.slack += slot[0] + ahead[0] - known[0]
        self.missing += self.losses[18] if self.end_kind == 1 \
            else self.losses[7] * self.check_in
        self.slack += self.missing
        # A mark, or the window, may be ahead of what is known of threads.
        marked = [max([m[i] for m in self.marks] + [self.window[i]])
                  for i in (3, 4)]
        more = max(0, marked[0] - self.total[0])
        self.slack += max(0, more - self.missing)
        self.missing = max(0, self.missing - more)
        self.total = [max(t, m) for t, m in zip(self.total, marked)]
        if self.period() == 1 and self.end_kind != 1:
            self.bound_missing()

    def period(self):
        """The largest that was in force."""
        return max((s[2] for s in self.stretches() if s[2]),
                   default=self.period_bytes)

    def bound_missing(self):
        """At period 1 each thread that is not known to have ended lacks 4 KiB
        at most, and so does one that is not known, where all that was counted
        has its sample."""
        most = 4096 * (1 + sum(t["exact"] is None or number in self.owners()
                               for number, t in self.threads.items()))
        if self.missing_samples():
            most = max(most, self.missing)
        self.slack += most - self.missing
        self.missing = most

    def owners(self):
        return {thread for _, _, thread in self.slots if thread}

    def missing_samples(self):
        """Is something that was counted, or lost, in no sample?"""
        return any(self.losses) or len(self.samples) < self.total[1] or \
            sum(s["size"] for s in self.samples) < self.total[0]

    def stretches(self):
        """Phase, beginning, period and exact totals of each stretch, and when
        its beginning was asked for."""
        period = int(self.infos.get("sampling", self.period_bytes))
        if not self.marks and period == self.period_bytes and \
                not self.oldest:
            return []
        found, began = [], [0, 0, 0, "", period, 0]

        def close(alloc_bytes, unsampled_bytes):
            found.append([began[3], began[0], began[4],
                          alloc_bytes - began[1], unsampled_bytes - began[2],
                          began[5]])

        last = [0, 0, period]
        marks = sorted(self.marks)
        if self.oldest:
            at = sum(m[0] <= self.window[2] for m in marks)
            now = marks[at - 1][8] if at else period
            marks.insert(at, [0, WINDOW, self.since, *self.window[3:8], now,
                              b""])
        for number, kind, time, size, _, unsampled, _, _, now, name in marks:
            asked = min(time, self.asked.get(number, time))
            last = [size, unsampled, now]
            if kind == WINDOW:
                close(size, unsampled)
                began = [time, size, unsampled, *began[3:5], time]
            if kind == 1 or (kind == 2 and now != began[4]):
                close(size, unsampled)
                began = [time, size, unsampled,
                         os.fsdecode(name) if kind == 1 else began[3], now,
                         asked]
        size = self.total[0]
        close(size, last[1] + (0 if last[2] else size - last[0]))
        # What was before the window is as if nothing had been sampled.
        return [[*s[:4], s[3] if s[1] < self.since else s[4], s[5]]
                for s in found]

    def is_open(self):
        """Does nobody know how much is missing?"""
        return self.is_cut or self.lacks_slots()

    def lacks_slots(self):
        return self.losses[25] > 0 or self.has_unreadable_slot

    def look_at_length(self, length):
        """Is it cut, and even before the end of the thread slots?"""
        whole = max(self.chunks, 1) * CHUNK
        if self.end_kind != 1:
            whole = max(whole, self.max_file)
        self.is_headless = length < CHUNK
        self.is_cut = self.is_headless or (
            not self.columns.events.has_last if self.flags & PACKED
            else length < whole)

    def settle(self):
        """Each sample once, and none that ended before the window."""
        once = {s["id"]: s for s in reversed(self.samples)}
        ends, _ = self.ends()
        if self.oldest:
            once = {n: s for n, s in once.items()
                    if n not in ends or ends[n] > self.since}
        self.samples = [once[n] for n in sorted(once)]

    def ends(self):
        """When each sample ended, by its id, and how many frees are left."""
        born = {s["id"]: s["time_ns"] for s in self.samples}
        found = {}
        for event in self.frees:
            if event["id"] in born:
                end = max(event["time_ns"], born[event["id"]])
                found[event["id"]] = min(end, found.get(event["id"], end))
        unmatched = len(self.frees) - len(found) + \
            self.columns.events.unmatched
        return found, 0 if self.oldest else unmatched


def read(path):
    """The profile at `path`; holes are skipped where the system knows them."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        profile = Profile(file.read(CHUNK))
        number = 1
        try:
            while True:
                data = os.lseek(fd, number * CHUNK, os.SEEK_DATA)
                number = max(number, data // CHUNK)
                profile.chunk(number, os.pread(fd, CHUNK, number * CHUNK))
                number += 1
        except OSError as error:
            if error.errno != errno.ENXIO:  # no data behind this
                raise
        profile.look_at_length(os.fstat(fd).st_size)
    profile.take_columns()
    if profile.flags & ADDRESSES:
        profile.pair_addresses()
    return profile


def summary(profile):
    """Totals, and samples per stack and per thread."""
    for number in filter(None, {s["thread"] for s in profile.samples}):
        profile.threads.setdefault(number, {})
    profile.settle()
    profile.add_up()
    profile.join_stacks()
    counted = [s for s in profile.samples if s["time_ns"] >= profile.since]
    of_stack = Counter(s["stack"] for s in counted)
    of_thread = Counter(s["thread"] for s in counted)
    for number in filter(None, {f["thread"] for f in profile.frees}):
        profile.threads.setdefault(number, {})
    ends, unmatched = profile.ends()
    # The slots of a file that is cut may be missing.
    totals = [None, None] if profile.is_open() and not profile.total[0] \
        else profile.total
    return {
        "flags": profile.flags, "ended": len(ends),
        "unmatched_frees": unmatched, "rss": sorted(profile.rss),
        "stretches": profile.stretches(),
        "classes": profile.class_totals(),
        "slack": MASK if profile.lacks_slots() else profile.slack,
        "pid": profile.pid, "period_bytes": profile.period(),
        "seed": str(profile.seed), "clean": profile.end_kind == 1,
        "exact": [*totals, profile.end_kind == 1 and
                  not profile.missing and not profile.is_open(),
                  None if profile.is_open() else profile.missing],
        "samples": len(profile.samples), "losses": profile.losses,
        "stacks": [{"samples": samples, "flags": 0, "frames": [],
                    **profile.stacks.get(number, {})}
                   for number, samples in sorted(of_stack.items())],
        "modules": dict(sorted(profile.modules.items())),
        "symbols": [[*frame, lines]
                    for frame, lines in sorted(profile.symbols.items())],
        "threads": [{"index": number, "tid": 0, "exact": None, "name": "",
                     "samples": of_thread[number], **thread}
                    for number, thread in sorted(profile.threads.items())],
        "mapped": profile.mapped(), "infos": profile.infos, "damaged_chunks": profile.damaged_chunks,
    }


if __name__ == "__main__":
    try:
        json.dump(summary(read(sys.argv[1])), sys.stdout, indent=1,
                  default=os.fsdecode)
    except Damage as error:
        sys.exit(f"{sys.argv[1]}: {error}")
