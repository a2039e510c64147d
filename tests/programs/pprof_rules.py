# SPDX-License-Identifier: MIT
"""The rules by which servers refuse a pprof profile: Parca's
(pkg/parcacol/validate.go) and Pyroscope's (pkg/validation/validate.go) with its
default limits.  Each check reads decoded protocol buffers, and knows nothing
about how our exports are made."""

import protobuf

PYROSCOPE_BYTES = 4 << 20  # uncompressed
PYROSCOPE_SAMPLES = 16000
PYROSCOPE_LABELS = 100     # of a sample
PYROSCOPE_DEPTH = 1000     # what is beyond is cut off
PYROSCOPE_NAME = 65535     # likewise


class Profile:
    """The fields of profile.proto that the rules are about, as numbers."""

    def __init__(self, data):
        top = protobuf.fields(data)
        self.size = len(data)
        self.strings = top[6]
        self.types = [self.numbers(t, 1, 2) for t in top[1]]
        self.mappings = [self.numbers(m, 1, 5, 6) for m in top[3]]
        self.functions = [self.numbers(f, 1, 2, 3, 4) for f in top[5]]
        self.locations = [
            (*self.numbers(l, 1, 2),
             [self.numbers(line, 1)[0] for line in protobuf.fields(l)[4]])
            for l in top[4]]
        self.samples = []
        for sample in map(protobuf.fields, top[2]):
            self.samples.append((
                protobuf.repeated(sample[1]), protobuf.repeated(sample[2]),
                [self.numbers(label, 1, 2) for label in sample[3]]))

    @staticmethod
    def numbers(message, *numbers):
        """Those fields of a message; 0 for one that is not there."""
        found = protobuf.fields(message)
        return [found[n][-1] if found[n] else 0 for n in numbers]


def parca(profile):
    """Why Parca would refuse it, one text for each reason."""
    def is_string(index):
        return 0 <= index < len(profile.strings)

    if not profile.strings or profile.strings[0] != b"":
        yield "the first string is not empty"
    for name, table, texts in (("mapping", profile.mappings, (1, 2)),
                               ("function", profile.functions, (1, 2, 3)),
                               ("location", profile.locations, ())):
        for i, row in enumerate(table, 1):
            if row[0] != i:
                yield f"{name} id is not sequential"
            if not all(is_string(row[t]) for t in texts):
                yield f"{name} has an invalid string"
    for _, mapping, functions in profile.locations:
        if mapping > len(profile.mappings):
            yield "location has an invalid mapping"
        if any(f > len(profile.functions) for f in functions):
            yield "location has an invalid function"
    if not profile.types:
        yield "no sample type"
    for locations, values, labels in profile.samples:
        if len(values) != len(profile.types):
            yield "sample has not one value for each type"
        if not all(1 <= l <= len(profile.locations) for l in locations):
            yield "sample has an invalid location"
        if not all(key and is_string(key) and is_string(text)
                   for key, text in labels):
            yield "sample has an invalid label"


def pyroscope(profile):
    """Why Pyroscope would refuse or cut it."""
    if profile.size > PYROSCOPE_BYTES:
        yield "profile is too big"
    if len(profile.samples) > PYROSCOPE_SAMPLES:
        yield "too many samples"
    for locations, _, labels in profile.samples:
        if len(locations) > PYROSCOPE_DEPTH:
            yield "stack is cut off"
        if len(labels) > PYROSCOPE_LABELS:
            yield "too many labels"
    if any(len(s) > PYROSCOPE_NAME for s in profile.strings):
        yield "name is cut off"
    if not all(row[0] for row in profile.locations):
        yield "location id is 0"
    if not all(row[0] for row in profile.functions):
        yield "function id is 0"
    if any(b"-" in profile.strings[name] for name, _ in profile.types):
        yield "sample type contains -"
