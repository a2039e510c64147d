# SPDX-License-Identifier: MIT
"""redis, sqlite3, Python, Perl, git, gcc, g++, xmllint, jq: the same output as
without the library, and a plausible profile.
"""

import json
import os
import shutil
import subprocess

import harness

PERIODS = harness.rounds(("4K",), ("512K", "4K"))
OTHER_ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))

SQL = """
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO t SELECT i, printf('%032d-%s', i * 7919 % 20011, hex(i)), i / 7.0
FROM n;
CREATE INDEX t_b ON t(b);
SELECT count(*), sum(length(b)), total(c) FROM t;
SELECT substr(b, 1, 31) AS k, count(*), group_concat(a) FROM t
GROUP BY k ORDER BY 2 DESC, 1 LIMIT 20;
SELECT x.b FROM t x JOIN t y ON x.b = y.b WHERE x.a % 1000 = 1 ORDER BY x.b;
"""

PYTHON = """
import collections, json, re
words = [str(i * 7919 % 10007) for i in range(60000)]
counts = collections.Counter(words)
tree = {w: [w] * (len(w) + 1) for w in counts}
text = json.dumps(tree, sort_keys=True)
print(len(text), hash(tuple(sorted(counts.values()))))
print(len(re.findall(r'"1[0-9]*"', text)), sorted(counts)[:5])
"""

PERL = r"""
my (%count, @list);
for my $i (1 .. 60000) {
    my $w = "w" . ($i * 7919 % 10007);
    $count{$w} .= "$i,";
    push @list, [$w, $i];
}
my $text = join " ", map { $_->[0] } @list;
(my $other = $text) =~ s/w(\d+)/<$1>/g;
print scalar(keys %count), " ", length($other), " ", length($count{w1}), "\n";
print join(",", (sort keys %count)[0 .. 4]), "\n";
"""

CXX = """
#include <cstdio>
#include <string>
#include <vector>

int main()
{
	std::vector<std::string> m;

	for (int i = 0; i < 1000; i++)
		m.push_back(std::to_string(i % 37));
	for (const auto &s : m)
		puts(s.c_str());
	return 0;
}
"""


class Program(harness.Case):
    """One program, run as described below, without the library, under it at a
    period, and mostly under it over another allocator; in the nightly list at
    two periods and over three."""

    def compare(self, *argv, module, function=None, least=3, stdin=None,
                env=None, prepare=lambda: None, result_of=lambda: b"",
                expect_stdout=True, over="jemalloc"):
        """`prepare` runs before each run; what must not differ is standard
        output, standard error, the exit code and result_of().  Samples are
        expected in `module`; at 4 KiB at least `least` of them, and below
        `function`.  The program allocates 20 periods of 512 KiB or more.  Returns
        the profiles at 4 KiB."""
        def run(**options):
            prepare()
            done = self.execute(*argv, stdin=stdin, env=env, **options)
            return done, (done.returncode, done.stdout, done.stderr,
                          result_of())

        plain, expected = run(shim=False)
        self.assertEqual(plain.paths, [])
        if expect_stdout:
            self.assertTrue(expected[1])
        at_4k = []
        variants = [(p, "glibc") for p in PERIODS]
        variants += [("64K", name) for name in harness.rounds(
            [over] * bool(over), OTHER_ALLOCATORS)]
        for period, name in variants:
            with self.subTest(period=period, allocator=name):
                done, seen = run(period=period, seed=1,
                                 preload=harness.allocator(name))
                self.assertEqual(seen, expected)
                if period == "4K":
                    at_4k += self.check_profiles(done, module, function, least)
                else:
                    self.check_profiles(done, module, None, 1)
        return at_4k

    def check_profiles(self, done, module, function, least):
        """The processes all ended well, and the one of `module` is there;
        their profiles."""
        ours, profiles = [], list(done.profiles().values())
        for profile in profiles:
            self.assertEqual(profile.end, "clean", profile.path)
            self.assertEqual(profile.lost(), {}, profile.path)
            self.assertNotIn("diagnosis", profile.settings)
            if module in profile.modules():
                ours.append(profile)
        self.assertTrue(ours, f"no profile has a stack through {module}: "
                        f"{done.paths}")
        best = max(ours, key=lambda p: p.samples)
        best.require_samples(least)
        low, high = (best.json["estimate"]["alloc_bytes"][k]
                     for k in ("lo", "hi"))
        # Not the 95 % that test_estimates checks: right to a factor of two.
        self.assertLess(low / 2, best.exact[0])
        self.assertGreater(high * 2, best.exact[0])
        if function:
            self.assertTrue(best.stacks_with(function),
                            f"{function} in no stack of {best.path}")
        return profiles


@harness.nightly_too
class Interpreters(Program):

    def test_sqlite3(self):
        sqlite3 = harness.require("sqlite3", "sqlite3")
        self.compare(sqlite3, ":memory:", stdin=SQL.encode(),
                     module="libsqlite3.so.0", function="sqlite3_step",
                     least=500)

    def test_python(self):
        """With malloc for everything, not its own arenas."""
        self.compare("/usr/bin/python3", "-c", PYTHON, least=500,
                     env={"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"},
                     module=os.path.basename(
                         os.path.realpath("/usr/bin/python3")),
                     function="_PyEval_EvalFrameDefault", over="tcmalloc")

    def test_perl(self):
        perl = harness.require("/usr/bin/perl", "perl")
        self.compare(perl, "-e", PERL, module="perl", least=500,
                     env={"PERL_HASH_SEED": "0"},
                     function="Perl_runops_standard")

    def test_xmllint(self):
        xmllint = harness.require("xmllint", "libxml2-utils")
        path = os.path.join(self.dir, "big.xml")
        with open(path, "w", encoding="ascii") as f:
            f.write("<all>" + "".join(
                f'<item id="{i}" name="n{i % 97}"><b>{i * 7919}</b>text</item>'
                for i in range(8000)) + "</all>")
        self.compare(xmllint, "--format", "--xpath",
                     "sum(//item[@name='n5']/b)", path,
                     module="libxml2.so.2", function="xmlParseDocument",
                     least=200)

    def test_jq(self):
        jq = harness.require("jq", "jq")
        path = os.path.join(self.dir, "big.json")
        with open(path, "w", encoding="ascii") as f:
            json.dump([{"id": i, "tags": [f"t{i % 7}", f"u{i % 11}"]}
                       for i in range(12000)], f)
        self.compare(jq, "-c", "group_by(.tags[0]) | map([length, "
                     "(map(.id) | add), .[0].tags])", path,
                     module="libjq.so.1", function="jq_next", least=500,
                     over="mimalloc")


@harness.nightly_too
class Compilers(Program):
    """The compiler's own processes have profiles, and what they write is the
    same to the bit."""

    def compile(self, compiler, package, source, name, *options):
        path = harness.require(compiler, package)
        out = os.path.join(self.dir, "out.o")

        def discard():
            if os.path.exists(out):
                os.unlink(out)

        def read():
            with open(out, "rb") as f:
                return f.read()

        self.compare(path, "-O2", "-c", *options, source, "-o", out,
                     module=name, prepare=discard, result_of=read,
                     expect_stdout=False, least=500, over=None)

    def test_gcc(self):
        self.compile("gcc", "gcc", ROOT + "/src/view/view_json.c", "cc1",
                     "-I" + ROOT + "/src", "-D_GNU_SOURCE",
                     '-DSP_VERSION="0"')

    def test_gxx(self):
        source = os.path.join(self.dir, "source.cc")
        with open(source, "w", encoding="ascii") as f:
            f.write(CXX)
        self.compile("g++", "g++", source, "cc1plus", "-std=c++17")


@harness.nightly_too
class Git(Program):

    ENV = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
           "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
           "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
           "GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_PAGER": "cat",
           "GIT_COMMITTER_DATE": "1700000000 +0000", "HOME": "/nonexistent"}

    def setUp(self):
        super().setUp()
        self.git = harness.require("git", "git")
        self.repository = os.path.join(self.dir, "repository")
        os.mkdir(self.repository)
        self.plain("init", "-q")
        stream = []
        for i in range(25):
            stream += ["commit HEAD", "committer A <a@example.org> "
                       "1700000000 +0000", "data <<END", f"commit {i}", "END"]
            for j in range(8):
                stream += [f"M 100644 inline file{j}.txt", "data <<END"]
                stream += [f"line {k} {(k * i * (j + 1)) % 101}"
                           for k in range(300)] + ["END"]
        # Each object is a file of its own, as after commits.
        self.plain("-c", "fastimport.unpackLimit=10000", "fast-import",
                   "--quiet", stdin="\n".join(stream).encode() + b"\n")
        self.plain("reset", "-q", "--hard")

    def plain(self, *arguments, repository=None, stdin=b""):
        return subprocess.run(
            [self.git, "-C", repository or self.repository, *arguments],
            env={**os.environ, **self.ENV}, check=True, capture_output=True,
            timeout=harness.TIMEOUT_S, input=stdin).stdout

    def test_log(self):
        self.compare(self.git, "-C", self.repository, "log", "-p", "--stat",
                     module="git", least=500, env=self.ENV,
                     over="mimalloc")

    def test_gc(self):
        """Children with profiles of their own, and a repository that is whole
        afterwards."""
        copy = os.path.join(self.dir, "copy")

        def make_copy():
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.repository, copy)

        def read():
            self.plain("fsck", "--strict", repository=copy)
            return self.plain("log", "-p", repository=copy)

        profiles = self.compare(
            self.git, "-C", copy, "gc", "-q", module="git", least=100,
            env=self.ENV, prepare=make_copy, result_of=read,
            expect_stdout=False, over=None)
        commands = {p.json["command"].split()[1] for p in profiles}
        self.assertIn("pack-objects", commands)


@harness.nightly_too
class Redis(harness.Case):
    """A server with threads, linked with jemalloc, under load."""

    def serve(self, shim, **settings):
        """Start, load, stop: (replies, result)."""
        benchmark = harness.require("redis-benchmark", "redis-tools")
        shutil.rmtree(self.out)
        os.mkdir(self.out)
        process, ask, socket = self.start_redis(shim=shim, settings=settings)
        subprocess.run([benchmark, "-s", socket, "-n",
                        harness.rounds("1000", "3000"), "-q", "-d",
                        "200", "-t", "set,get,lpush,sadd,hset,zadd,mset"],
                       capture_output=True, check=True,
                       timeout=harness.TIMEOUT_S)
        ask("flushall")
        replies = [ask("eval", "for i=1,5000 do redis.call('rpush','l',"
                       "string.rep(i,10)) end return redis.call('llen','l')",
                       "0"), ask("lrange", "l", "100", "120"), ask("dbsize")]
        ask("shutdown", "nosave")
        return replies, self.finish(process)

    def test_redis(self):
        expected, plain = self.serve(shim=False)
        self.assertIn(b"5000", expected[0])
        self.assertEqual(plain.returncode, 0)
        for period in PERIODS:
            with self.subTest(period=period):
                replies, done = self.serve(shim=True, period=period,
                                           seed=1)
                self.assertEqual(replies, expected)
                self.assertEqual(done.returncode, 0)
                self.assertNotIn(b"sampleprof", done.stderr)
                profile = done.profile().require_samples(10)
                self.assertEqual(profile.end, "clean")
                self.assertEqual(profile.lost(), {})
                self.assertIn("jemalloc", profile.settings["allocator"])
                # redis-server is a link to it.
                self.assertIn("redis-check-rdb", profile.modules())
