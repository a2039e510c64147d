# SPDX-License-Identifier: MIT
"""Reads records, and keeps them all."""

import json

cache = {}


def render(record):
    return "".join(f"<td>{v}</td>" for v in record.values())


def handle(line):
    record = json.loads(line)
    cache[record["id"]] = record
    return render(record)


for i in range(20000):
    handle(f'{{"id": {i}, "name": "user-{i}", "tags": ["a{i}", "b{i}"]}}')
