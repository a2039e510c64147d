# SPDX-License-Identifier: MIT
"""The works: loops of micro.c, and real programs with something to do that
allocates, some tenths of a second each, and little memory at a time, since what
caches do would drown the differences.  Two that hold much are for the tools that
record every allocation."""

import os
import shutil
import subprocess

from measure import Program, Redis
from setups import environment

SQL = """
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, size INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
  WHERE i < 150000)
INSERT INTO t SELECT i, 'name-' || (i * 7919 % 100003), i * 31 % 4096 FROM n;
CREATE INDEX by_name ON t(name);
SELECT count(DISTINCT name), sum(size) FROM t;
SELECT group_concat(name, size) FROM (SELECT * FROM t ORDER BY size, name
  LIMIT 60000);
"""

PYTHON = """
for turn in range(50):
    words = {}
    for i in range(12000):
        words.setdefault(str(i * 7919 % 5021), []).append((i, [i] * 3))
    print(sum(len(v) for v in words.values()), len(sorted(words)))
"""

# Prints how many rows there are, all of them alive.
PYTHON_JSON = """
import json, sys
with open(sys.argv[1]) as file:
    print(len(json.load(file)))
"""

PERL = """
for my $turn (1 .. 12) {
    my (%h, @a);
    for my $i (1 .. 12000) {
        push @{ $h{ "k" . ($i * 7919 % 3011) } }, "value $i";
        push @a, [ $i, "x" x ($i % 50) ];
    }
    print scalar(keys %h), " ",
        scalar(@{ [ sort { $a->[1] cmp $b->[1] } @a ] }), "\\n";
}
"""

LUA = """
for turn = 1, 12 do
  local words, list = {}, {}
  for i = 1, 12000 do
    local key = "k" .. (i * 7919 % 5021)
    words[key] = (words[key] or "") .. "x"
    list[#list + 1] = { i, key, tostring(i * 31) }
  end
  table.sort(list, function(a, b) return a[3] < b[3] end)
  print(#list, words.k17)
end
"""

# The factors of a prime number, bit by bit.
SMT = """
(set-logic QF_BV)
(declare-const a (_ BitVec 28))
(declare-const b (_ BitVec 28))
(assert (= (bvmul a b) (_ bv134230081 28)))
(assert (bvult a (_ bv16384 28)))
(assert (bvugt a (_ bv1 28)))
(assert (bvult b (_ bv16384 28)))
(assert (bvugt b (_ bv1 28)))
(check-sat)
"""

CXX = """
#include <map>
#include <string>
#include <vector>
template <int n> struct table {
	std::map<std::string, std::vector<long>> rows;
	long add(const std::string &key) {
		auto &row = rows[key + std::to_string(n)];
		row.push_back(n);
		return row.size() + table<n - 1>().add(key);
	}
};
template <> struct table<0> { long add(const std::string &) { return 0; } };
long use(const std::string &key) { return table<12>().add(key); }
"""

C_FUNCTION = """
int f{0}(int *a, int n)
{{
	int s = {0};

	for (int i = 0; i < n; i++)
		s += i % 3 ? a[i] * s : a[(i + s) & 15] - {0};
	return s ? s : f{1}(a, n - 1);
}}
"""


def _write(path, text):
    with open(path, "w", encoding="ascii") as out:
        out.write(text)
    return path


def _c_source(path, count):
    functions = "".join(C_FUNCTION.format(i, i - 1) for i in range(1, count))
    return _write(path, "int f0(int *a, int n);\n" + functions)


def _xml(path, repeats=1):
    rows = "".join(f'<row id="{i}" kind="k{i % 7}"><name>n{i}</name>'
                   f"<text>some text {i * 31}</text></row>\n"
                   for i in range(50000))
    return _write(path, f"<table>\n{rows * repeats}</table>\n")


def _json(path, repeats=1):
    rows = ",".join(f'{{"id":{i},"tags":["a{i % 9}","b"],"v":{{"x":{i}.5}}}}'
                    for i in range(30000))
    return _write(path, f"[{','.join([rows] * repeats)}]\n")


def _repository(path):
    """A git repository of 40 commits to 60 files, if git is here."""
    if not shutil.which("git"):
        return path
    stream = ["feature done\n"]
    for turn in range(40):
        stream.append("commit refs/heads/main\n"
                      f"committer A <a@b> {1600000000 + turn} +0000\n"
                      "data 2\nc\n")
        for k in range(60):
            text = "".join(f"line {i} of {k}: {(i * 31 + k) % 97}"
                           f"{turn if i % 40 == turn else 0}\n"
                           for i in range(120))
            stream.append(f"M 644 inline f{k}\ndata {len(text)}\n{text}\n")
    stream.append("done\n")
    for command in (["git", "init", "-q", "-b", "main", path],
                    ["git", "-C", path, "fast-import", "--quiet"]):
        subprocess.run(command, input="".join(stream).encode(), check=True,
                       stderr=subprocess.DEVNULL, env=environment())
    return path


# Name, times a tenth of a second or more of it, threads, traits.
MICRO = [
    ("pair", 20_000_000, 1, {}),
    ("pair", 20_000_000, 2, {"main_only": True}),
    ("pair", 20_000_000, 8, {"main_only": True}),
    ("batch", 4_000_000, 1, {}),
    ("batch", 4_000_000, 4, {"main_only": True}),
    ("cross", 4_000_000, 2, {}),
    ("cross", 4_000_000, 8, {"main_only": True}),
    ("larson", 6_000_000, 1, {}),
    ("larson", 6_000_000, 4, {"main_only": True}),
    ("larson", 6_000_000, 8, {"main_only": True}),
    ("ladder", 20_000_000, 1, {}),
    ("large-ladder", 10_000, 1, {}),
    ("calloc", 10_000_000, 1, {}),
    ("large-calloc", 150, 1, {}),
    ("new", 6_000_000, 1, {}),
    ("live", 20_000_000, 1, {"main_only": True, "most_rounds": 3}),
    ("hold", 1_000_000, 100, {"most_rounds": 3}),
]


def loops(micro, part):
    """Works of micro.c; `part`: divides how much they do."""
    works = []
    for name, times, threads, traits in MICRO:
        works.append(Program(
            name if threads == 1 else f"{name}, {threads} threads",
            [micro, name, str(max(times // part, 20)), str(threads)],
            group="loop", calls=max(times // part, 20), **traits))
    return works


def programs(directory):
    """The real ones; their inputs are made in `directory`."""
    def at(name, text=None):
        path = os.path.join(directory, name)
        return _write(path, text) if text else path

    source = _c_source(at("c.c"), 120)
    # Not gcc, which starts it: heaptrack follows no child.
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], check=True,
                         capture_output=True, text=True).stdout.strip()
    return [
        Program("sqlite3", ["sqlite3", ":memory:", ".read " + at("s.sql", SQL)],
                small=True),
        Program("python3", ["/usr/bin/python3", "-S", at("p.py", PYTHON)],
                ["PYTHONMALLOC=malloc", "PYTHONHASHSEED=0"]),
        Program("perl", ["perl", at("p.pl", PERL)], ["PERL_HASH_SEED=0"]),
        Program("lua", ["lua5.4", at("l.lua", LUA)], small=True),
        Program("xmllint", ["xmllint", "--noout"] + 4 * [_xml(at("x.xml"))]),
        Program("jq", ["jq", "-c", "group_by(.tags[0]) | map([length, "
                       "(map(.v.x) | add)])", _json(at("j.json"))],
                small=True),
        Program("z3", ["z3", at("z.smt2", SMT)]),
        Program("git log", ["git", "-C", _repository(at("repository")), "log",
                            "-p", "--stat"]),
        Program("gcc -O0", [cc1, "-quiet", "-O0", source, "-o", at("0.s")]),
        Program("gcc -O2", [cc1, "-quiet", "-O2", source, "-o", at("2.s")]),
        Program("clang -O2", ["clang++", "-O2", "-c", at("x.cc", CXX), "-o",
                              at("x.o")]),
        Program("python3, 40 MB of JSON",
                ["/usr/bin/python3", "-S", at("j.py", PYTHON_JSON),
                 _json(at("long.json"), 28)],
                ["PYTHONMALLOC=malloc", "PYTHONHASHSEED=0"], long=True),
        Program("xmllint, 24 MB", ["xmllint", "--noout",
                                   _xml(at("long.xml"), 6)], long=True),
        Redis(400_000),
    ]


def starts(count):
    """Processes that do nothing: what the start and the end of one take."""
    return Program("starts", ["/bin/sh", "-c", f"i=0; while [ $i -lt {count} ]"
                              "; do /bin/true; i=$((i + 1)); done"],
                   group="start", calls=count + 1, main_only=True)
