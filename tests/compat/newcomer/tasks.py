# SPDX-License-Identifier: MIT
"""What a newcomer wants to know, one function each: commands as they would be
typed, and what has to be on the screen then."""

import os
import re
import subprocess

import judge
from way import HOME, TESTS, Failed, Way, readme_commands

ROOT = os.path.dirname(TESTS)

# Where a heap that only grows has its answer: the peak is at the end.
ALIVE = ["Live", "Peak"]


def install(way):
    """README's own commands, in a clone of the repository."""
    packages, build, into = readme_commands(way.source,
                                            "By hand, on Debian or Ubuntu:")
    way.open("root")
    way.type("apt-get update >/dev/null")
    way.type(packages + " >/dev/null")
    way.type("apt-get install less python3 redis-server rustc >/dev/null")
    way.open()
    way.type("cd sampleprof")
    way.type(f"({build}) >/dev/null")
    way.type(into + " >/dev/null")
    # What README says of it.
    way.type("PATH=~/.local/bin:$PATH")
    shown = way.see("sampleprof --version")
    way.hold(shown, judge.names(shown, "sampleprof"))
    way.see("sampleprof preload-path")
    way.see("sampleprof help")


def quickstart(way):
    """The other way to begin: nothing is missing after that by hand."""
    shown = way.type("./tools/quickstart")
    way.hold(shown, judge.widths(shown))
    found = judge.functions(shown.lines)
    if found[:4] != ["sort_rows", "parse_order", "main", "remember_order"]:
        way.wrong([f"quickstart shows {found}"])
    way.follow(shown)
    for view, name in (("peak", "sort_rows"), ("temporary", "parse_order"),
                       ("live", "remember_order")):
        shown = way.see(f"build/tools/sampleprof report --view {view} "
                        "build/quickstart/orders.sprof")
        way.hold(shown, judge.answer(shown, name))
    way.type("cd")


def leak(way):
    """A C++ program with threads holds more and more."""
    way.put("chat.cc")
    way.type("g++ -g -O2 -pthread -o chat chat.cc")
    shown = way.see("sampleprof run ./chat")
    way.hold(shown, judge.names(shown, "alive"))
    report = way.first(shown)
    way.hold(report, judge.colours(report, True) +
             judge.proposes(report, "--view live"))
    seen = way.follow(report)
    [live] = [s for command, s in seen.items() if "--view live" in command]
    way.hold(live, judge.answer(live, "chat::room::note_typing"))
    for more in way.follow(live).values():
        if " export " not in more.command:
            way.hold(more, judge.names(more, "note_typing"))
    profile = way.profile("chat")
    way.page(profile.replace(".sprof", ".html"), ALIVE,
             "chat::room::note_typing")
    screen(way, profile)
    way.type(f"mv {profile} leak.sprof")


def screen(way, profile):
    """Colours and the pager are those of the terminal, as it is set."""
    whole = way.see(f"sampleprof traces {profile}")
    if not whole.paged:
        way.wrong(["what is longer than the screen has no pager"])
    plain = way.see(f"NO_COLOR=1 sampleprof report {profile}")
    way.hold(plain, judge.colours(plain, False))
    piped = way.see(f"sampleprof report {profile} | cat")
    way.hold(piped, judge.colours(piped, False))
    if piped.paged:
        way.wrong(["a pager in a pipe"])


def peak(way):
    """A Python program needs much for a moment."""
    way.put("prices.py")
    shown = way.see("sampleprof run --python python3 prices.py")
    report = way.first(shown)
    way.hold(report, judge.proposes(report, "--view peak"))
    way.follow(report)
    profile = way.profile("python3*")
    shown = way.see(f"sampleprof report --view peak {profile}")
    # Before 3.12 its comprehension is a function of its own.
    if not judge.functions(shown.first)[0].startswith("py::sort_by_price"):
        way.hold(shown, judge.answer(shown, "py::sort_by_price"))


def churn(way):
    """A C++ program allocates and frees the same again and again."""
    way.put("words.cc")
    way.type("g++ -g -O2 -o words words.cc")
    shown = way.see("sampleprof run ./words")
    report = way.first(shown)
    way.hold(report, judge.answer(report, "split_line") +
             judge.proposes(report, "--view temporary"))
    seen = way.follow(report)
    [temporary] = [s for command, s in seen.items() if "temporary" in command]
    way.hold(temporary, judge.answer(temporary, "split_line"))
    way.page(way.profile("words").replace(".sprof", ".html"),
             ["Temporary", "Allocated"], "split_line")


def rust(way):
    """A program in Rust holds lines that nobody reads again."""
    way.put("index.rs")
    way.type("rustc -g -O index.rs")
    shown = way.see("sampleprof run --period 16K ./index")
    report = way.first(shown)
    way.hold(report, judge.answer(report, "index::…::Index::add_words"))
    shown = way.see("sampleprof report --view peak " + way.profile("index"))
    way.hold(shown, judge.answer(shown, "index::…::remember_line"))


def diff(way):
    """Was it the right fix?  The old program is gone by then."""
    way.type("g++ -g -O2 -pthread -DFIXED -o chat chat.cc")
    way.see("sampleprof run --out fixed.sprof ./chat")
    shown = way.see("sampleprof diff --view live leak.sprof fixed.sprof")
    way.hold(shown, judge.names(shown, "note_typing  (gone)"))
    old = way.see("sampleprof report --view live leak.sprof")
    way.hold(old, judge.answer(old, "chat::room::note_typing"))


def blocks(kind):
    """Of docs/ci.md, as they stand there."""
    with open(os.path.join(ROOT, "docs", "ci.md"), encoding="utf-8") as file:
        found = re.findall(rf"<!-- try: {kind} -->\n\n((?:    .*\n|\n)+)",
                           file.read())
    return [re.sub("^    ", "", text, flags=re.M).strip() + "\n"
            for text in found]


def gate(way):
    """A build fails when it allocates more: pasted from docs/ci.md."""
    baseline, check = blocks("shell")[:2]
    way.put("base.sh", "set -e\n" + baseline)
    way.put("check.sh", "set -e\n" + check)
    way.type("mkdir -p ci; cd ci")
    way.type("g++ -g -O2 -o app ../words.cc")
    way.see("bash ../base.sh")
    shown = way.see("bash ../check.sh")
    way.hold(shown, judge.names(shown, "pass"))
    way.type("g++ -g -O2 -DLONGER -o app ../words.cc")
    shown = way.see("bash ../check.sh", status=3)
    way.hold(shown, judge.names(shown, "REGRESSION") +
             judge.names(shown, "split_line"))
    way.type("g++ -g -O2 -o app ../words.cc")
    shown = way.see("bash ../check.sh")
    way.hold(shown, judge.names(shown, "pass"))


def server(way):
    """redis runs unsampled, is switched on while it is loaded, and off."""
    way.type("cd")
    way.type("sampleprof run --off redis-server --port 7391 --save '' "
             ">redis.log 2>&1 &")
    way.type("until redis-cli -p 7391 ping; do sleep 0.2; done")
    try:
        switch(way)
    finally:
        way.type("redis-cli -p 7391 shutdown nosave; wait")
    shown = way.see("grep ^sampleprof: redis.log")
    way.hold(shown, judge.names(shown, "sampling was off"))
    shown = way.see("sampleprof report " + way.profile("redis*"))
    way.hold(shown, judge.names(shown, "lpInsert") +
             judge.names(shown, "sampling was off"))


def switch(way):
    """On and off, while lists grow."""
    shown = way.see("sampleprof ps")
    way.hold(shown, judge.names(shown, "redis-server"))
    row = re.search(r"^ *(\d+)  redis-server", shown.text, re.M)
    if not row:
        raise Failed(f"no process of redis in:\n{shown.text}")
    pid = row[1]
    # An idle process carries an order out when it allocates again.
    way.type("redis-benchmark -p 7391 -l -r 10000 -d 400 -t lpush "
             ">load.log 2>&1 &")
    way.see(f"sampleprof ctl {pid} period 16K")
    way.see(f"sampleprof ctl {pid} start")
    way.type("sleep 2")
    way.see(f"sampleprof ctl {pid} stop")
    shown = way.see("sampleprof report --view live " + way.profile("redis*"))
    way.hold(shown, judge.names(shown, "lpInsert"))
    way.type("kill %2; sleep 1")


def memory(way):
    """What is a process made of that nobody has prepared?"""
    way.type("cd; redis-server --port 7392 --save '' >plain.log 2>&1 &")
    way.type("until redis-cli -p 7392 ping; do sleep 0.2; done")
    try:
        shown = way.see("sampleprof rss $!")
        way.hold(shown, judge.names(shown, "resident"))
        way.see("sampleprof rss --html rss.html $!")
        way.ledger("rss.html")
    finally:
        way.type("redis-cli -p 7392 shutdown nosave; wait")


def elsewhere(way):
    """Another machine, which has the report and neither program nor source."""
    other = Way(way.elsewhere)
    try:
        move(way, other)
    finally:
        other.end()
    way.problems += [(way.task, text) for _, text in other.problems]


def move(way, other):
    other.task = way.task
    libraries = way.system.run(["ldd", f"{HOME}/.local/bin/sampleprof-report"])
    paths = re.findall(r"=> (/\S+)", libraries.stdout.decode())
    owners = way.system.run(["dpkg", "-S", *(
        p for path in paths for p in (path, path.replace("/lib/", "/usr/lib/",
                                                         1)))])
    other.system.install(sorted({
        line.partition(":")[0] for line in owners.stdout.decode().splitlines()
        if "diversion" not in line}))
    for name in ("sampleprof", "sampleprof-report"):
        subprocess.run(["cp", way.path(".local/bin/" + name),
                        other.system.path("/usr/local/bin/" + name)],
                       check=True)
    subprocess.run(["cp", way.path("leak.sprof"), other.path("leak.sprof")],
                   check=True)
    other.system.make([["chown", "newcomer:", f"{HOME}/leak.sprof"]],
                      other.system.log)
    other.open()
    shown = other.see("sampleprof report --view live leak.sprof")
    other.hold(shown, judge.answer(shown, "chat::room::note_typing"))
    other.follow(shown)
    other.page("leak.html", ALIVE, "chat::room::note_typing")


ALL = [install, quickstart, leak, peak, churn, rust, diff, gate, server, memory,
       elsewhere]
