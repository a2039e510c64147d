# SPDX-License-Identifier: MIT
"""Real programs with work that allocates: some tenths of a second each, and
little memory at a time, since what caches do would drown the differences."""

import os
import shutil

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

PERL = """
for my $turn (1 .. 30) {
    my (%h, @a);
    for my $i (1 .. 12000) {
        push @{ $h{ "k" . ($i * 7919 % 3011) } }, "value $i";
        push @a, [ $i, "x" x ($i % 50) ];
    }
    print scalar(keys %h), " ",
        scalar(@{ [ sort { $a->[1] cmp $b->[1] } @a ] }), "\\n";
}
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


def _c_source(path):
    functions = "".join(C_FUNCTION.format(i, i - 1) for i in range(1, 200))
    return _write(path, "int f0(int *a, int n);\n" + functions)


def _xml(path):
    rows = "".join(f'<row id="{i}" kind="k{i % 7}"><name>n{i}</name>'
                   f"<text>some text {i * 31}</text></row>\n"
                   for i in range(50000))
    return _write(path, f"<table>\n{rows}</table>\n")


def _json(path):
    rows = ",".join(f'{{"id":{i},"tags":["a{i % 9}","b"],"v":{{"x":{i}.5}}}}'
                    for i in range(30000))
    return _write(path, f"[{rows}]\n")


def prepare(directory):
    """[(name, command, extra environment)] of the programs that are here;
    their inputs are made in `directory`."""
    def at(name):
        return os.path.join(directory, name)

    programs = [
        ("sqlite3", ["sqlite3", ":memory:", ".read " + _write(at("s.sql"),
                                                              SQL)], {}),
        ("python3", ["/usr/bin/python3", "-S", _write(at("p.py"), PYTHON)],
         {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}),
        ("perl", ["perl", _write(at("p.pl"), PERL)], {"PERL_HASH_SEED": "0"}),
        ("gcc -O2 -c", ["gcc", "-O2", "-c", _c_source(at("c.c")), "-o",
                        at("c.o")], {}),
        ("xmllint", ["xmllint", "--noout"] + 4 * [_xml(at("x.xml"))], {}),
        ("jq", ["jq", "-c", "group_by(.tags[0]) | map([length, "
                "(map(.v.x) | add)])", _json(at("j.json"))], {}),
    ]
    return [p for p in programs if shutil.which(p[1][0])]
