# SPDX-License-Identifier: MIT
"""The programs of the study, with work that allocates some hundred MiB."""

import dataclasses
import os
import shutil

SQL = """
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, size INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
  WHERE i < 30000)
INSERT INTO t SELECT i, 'name-' || (i * 7919 % 100003), i * 31 % 4096 FROM n;
CREATE INDEX by_name ON t(name);
SELECT count(DISTINCT name), sum(size) FROM t;
SELECT group_concat(name, size) FROM (SELECT * FROM t ORDER BY size, name
  LIMIT 5000);
SELECT a.name, replace(b.name, 'name', 'other'), printf('%08d', b.size)
  FROM t a JOIN t b ON a.id = b.size WHERE a.id % 3 = 0 ORDER BY 2, 3;
UPDATE t SET name = upper(name) || '-' || size WHERE id % 2;
SELECT size, json_group_array(name) FROM t GROUP BY size;
DELETE FROM t WHERE size % 5 = 0;
"""

DTD = """
<!ENTITY who "somebody">
<!ELEMENT table (row*)>
<!ELEMENT row ANY> <!ATTLIST row id CDATA #REQUIRED kind CDATA "none">
<!ELEMENT name (#PCDATA)> <!ELEMENT text (#PCDATA)> <!ELEMENT data (#PCDATA)>
"""

CXX = """
#include <iostream>
#include <map>
#include <string>
#include <vector>

int main()
{
	std::map<std::string, std::vector<int>> m;

	for (int i = 0; i < 1000; i++)
		m[std::to_string(i % 37)].push_back(i);
	for (const auto &[k, v] : m)
		std::cout << k << ' ' << v.size() << '\\n';
	return 0;
}
"""


class Missing(Exception):
    """A program that the study needs is not there."""


@dataclasses.dataclass
class Workload:
    """`process` is the name of the process whose profile counts."""
    name: str
    command: list
    process: str


def _write(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w", encoding="ascii") as out:
        out.write(text)
    return path


def _find(program, package):
    path = shutil.which(program)
    if not path:
        raise Missing(f"{program} is missing: install the Debian package "
                      f"{package}")
    return path


def _xml(directory):
    rows = "".join(
        f'<row id="{i}" kind="k{i % 7}"><name>n{i}</name>'
        f'<text>some text {i * 31}{"." * (i % 89)}</text>'
        f'<!-- {i * 7919} --><t:tag xmlns:t="urn:{i % 3}" t:a="{i}"/>'
        f'<data><![CDATA[{"<>" * (i % 23)}]]></data>&who;<?do {i}?></row>\n'
        for i in range(5000))
    return _write(directory, "rows.xml",
                  f"<!DOCTYPE table [{DTD}]>\n<table>\n{rows}</table>\n")


def sqlite3(directory, _threads):
    script = _write(directory, "script.sql", SQL)
    return Workload("sqlite3", [_find("sqlite3", "sqlite3"), ":memory:",
                                ".read " + script], "sqlite3")


def xmllint(directory, _threads):
    return Workload("xmllint", [_find("xmllint", "libxml2-utils"), "--noout",
                                "--copy", "--noent"] +
                    4 * [_xml(directory)], "xmllint")


def gxx(directory, _threads):
    source = _write(directory, "source.cc", CXX)
    return Workload("g++", [_find("g++", "g++"), "-S", source, "-o",
                            "/dev/null"], "cc1plus")


def threads(_directory, program):
    return Workload("threads", [program], os.path.basename(program))


ALL = {"sqlite3": sqlite3, "xmllint": xmllint, "g++": gxx, "threads": threads}
