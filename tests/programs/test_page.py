# SPDX-License-Identifier: MIT
"""The page of `export html` in Chromium: its figures equal `--json`; every
control; 50,000 stacks; names with markup (docs/guide.md)."""

import csv
import io
import json
import os
import re
import subprocess
import sys

import figures
import harness
from browser import CHROMIUM, Browser, BrowserError

# The frame below main() has its name from there.
NEEDS_DEBUG_FILES = True
STACKS = 50000
FRAMES = 60
# What a test that cannot be run ends with.
SKIPPED = 77

browser = None


class PageCase(harness.Case):
    """A page, opened anew for each test."""

    made = {}

    def page(self, *argv, **settings):
        """The page and the profile of a run of page_stacks, made once."""
        key = (argv, tuple(settings.items()))
        if key not in self.made:
            run = self.execute(harness.target("program_page_stacks"), *argv,
                               **settings)
            self.assertEqual(len(run.paths), 1, run)
            path = run.paths[0] + ".html"
            harness.report("export", "html", run.paths[0], "-o", path)
            with open(path, "rb") as page, open(run.paths[0], "rb") as data:
                self.made[key] = (page.read(), data.read())
            samples = re.search(rb'"samples": ([0-9]+)', self.made[key][0])
            self.assertGreater(int(samples[1]), 100,
                               "was the library bypassed?")
        paths = [os.path.join(self.dir, name) for name in ("p.html", "p.sprof")]
        for path, data in zip(paths, self.made[key]):
            with open(path, "wb") as file:
                file.write(data)
        return paths

    def show(self, path, state=""):
        """Open the page, or go to another state of it."""
        if browser.run("location.protocol + location.pathname") == \
                "file:" + path:
            browser.run(f"location.hash = {json.dumps(state)}")
        else:
            browser.open(path + "#" + state)
        self.until(f"location.pathname == {json.dumps(path)}")

    def until(self, condition):
        """Until it is true, and the page shows all that its address says."""
        browser.wait(f"({condition}) && document.body && "
                     "document.body.dataset.state == 'ready' && "
                     "document.body.dataset.shown == location.hash.slice(1)")

    def open_cpu_s(self, path, most_s):
        """CPU seconds of the page from its opening to its tables: the least of
        up to three times, since a core that is shared makes them longer."""
        least = None
        for _ in range(3):
            browser.open("about:blank")
            self.show(path)
            took = browser.cpu_s()
            least = min(took, least or took)
            if least < most_s:
                break
        return least

    def text(self, identifier):
        return browser.run(
            f"document.getElementById('{identifier}').innerText")

    def state(self):
        """What the address says is shown."""
        return browser.run("Object.fromEntries(new URLSearchParams("
                           "location.hash.slice(1)))")

    def box(self, identifier):
        """(left, top, width, height) of an element that is made visible.  What
        the page does when it has scrolled is over then: two frames."""
        return browser.run(
            "(async () => {"
            f"const e = document.getElementById('{identifier}');"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "for (let i = 0; i < 2; i++)"
            "await new Promise((f) => requestAnimationFrame(f));"
            "const r = e.getBoundingClientRect();"
            "return [r.left, r.top, r.width, r.height]; })()")

    def rows(self):
        """The table of functions: name to (flat, cum), each (value, lo, hi,
        samples)."""
        for _ in range(20):
            if not browser.run("(() => { const m = document.getElementById("
                               "'more'); m.click(); return !m.hidden; })()"):
                break
        return {name: (tuple(flat), tuple(cum))
                for name, flat, cum in browser.run(
            "[...document.querySelectorAll('#functions tbody tr')].map("
            "(r) => [r.querySelector('button').textContent,"
            "...[...r.querySelectorAll('.estimate')].map((e) =>"
            "['value', 'lo', 'hi', 'samples'].map("
            "(k) => Number(e.dataset[k])))])")}

    def assert_quiet(self):
        """No error, nothing refused by the policy, no request but the file."""
        for event in browser.events:
            method, params = event["method"], event.get("params", {})
            self.assertNotIn(method, (
                "Runtime.exceptionThrown", "Runtime.consoleAPICalled",
                "Log.entryAdded"), params)
            if method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                self.assertTrue(url.startswith("file://") and
                                url.split("#")[0].endswith("p.html"), url)


class Figures(PageCase):
    """The page and --json say the same."""

    def assert_same_sum(self, a, b):
        """Up to rounding: --json adds samples that are alike in one go."""
        self.assertLessEqual(abs(a - b), 1e-9 * abs(b), (a, b))

    def assert_rows(self, profile, state, args, kinds=("flat", "cum"),
                    unit="bytes"):
        wanted = json.loads(harness.report("--json", *args, profile))
        want = {f["name"]: f for f in wanted["functions"]}
        got = self.rows()
        # What is a leak goes by age: none on a machine that was stalled.
        if "leaks" not in state:
            self.assertGreater(sum(f["samples"] for f in want.values()), 20,
                               state)
        self.assertEqual(set(got), set(want), state)
        for name, function in want.items():
            for at, kind in enumerate(kinds):
                e = function[f"{kind}_{unit}"]
                samples = function["samples" if kind == "flat"
                                   else "cum_samples"]
                seen = got[name][at]
                self.assertEqual(seen[3], samples, (state, name, kind))
                for a, b in zip(seen, (e["value"], e["lo"], e["hi"])):
                    self.assertLessEqual(abs(a - b), 1e-7 * max(b, 1),
                                         (state, name, kind, seen, e))

    @harness.nightly_too
    def test_every_view_and_window(self):
        path, profile = self.page("20000", period="16K")
        self.show(path)
        edges = browser.run("JSON.parse(document.getElementById('data')"
                            ".textContent).timeline.map((t) => t[0])")
        # Where the objects that are kept are being allocated.
        alive = browser.run("JSON.parse(document.getElementById('data')"
                            ".textContent).timeline.map((t) => t[1])")
        j = next(i for i, n in enumerate(alive) if n > 0.7 * max(alive))
        # However the run was held up, between these it grew by 40 %.
        i = max(i for i, n in enumerate(alive[:j]) if n < 0.3 * max(alive))
        at = {edge: f"{edges[edge]}ns" for edge in (i, j)}
        window = ("--from", at[i], "--to", at[j])
        for state, args in (
                (f"view=alloc&from={i}&to={j}", window),
                ("view=peak", ("--view", "peak")),
                ("view=leaks", ("--view", "leaks")),
                ("view=temporary", ("--view", "temporary")),
                (f"view=live&from={i}&to={j}",
                 ("--view", "live", "--at", at[j], *window)),
                (f"view=alloc&from={i}", ("--from", at[i])),
                ("view=alloc", ()), ("view=live", ("--view", "live")),
                (f"view=live&to={j}",
                 ("--view", "live", "--at", at[j], "--to", at[j])),
                (f"view=temporary&from={i}&to={j}",
                 ("--view", "temporary", *window)))[:harness.rounds(5, 10)]:
            self.show(path, state + "&sort=cum&all=true")
            self.assert_rows(profile, state, args)
        self.show(path, "metric=objects&view=live&sort=cum&all=true")
        self.assert_rows(profile, "objects", ("--view", "live"), ("flat",),
                         "objects")
        self.assert_quiet()

    def shown_rows(self, kind):
        """The cells of the table, flat (0) or cum (1), and their functions, as
        they are shown."""
        self.rows()
        return {" ".join(text.replace(" %", "%").split()) for text in browser.run(
            "[...document.querySelectorAll('#functions tbody tr')].map((r) =>"
            f"[r, r.querySelectorAll('.estimate')[{kind}]]).filter("
            "([, e]) => !e.querySelector('.none')).map(([r, e]) =>"
            "[...e.querySelectorAll('b, .interval, .share')].map("
            "(part) => part.textContent).join(' ') +"
            "' ' + r.querySelector('button').textContent)")}

    def assert_same_text(self, path, profile, view):
        """The page, the text, --json and --csv have the same figures: of text
        every digit, of numbers every bit."""
        args = "--view", view
        for kind, order in enumerate(([], ["--cum"])):
            # the text of what is freed soon counts objects, but not --cum
            self.show(path, f"view={view}" + ("&sort=cum" if kind else
                "&metric=objects" * (view == "temporary")))
            text = harness.report("--top=0", "--nodefraction=0", *order, *args,
                                  profile)
            lines = text.splitlines()
            at = next(i for i, line in enumerate(lines)
                      if line.endswith("  function"))
            rows = {" ".join(re.sub(r"^(?:[0-9.<]+% +)?((?:\S+ +)*?\S+%)(?: +\S+%)* +"
                                    r"(\S.*?)(?:  \(.*\))?$",
                                    r"\1 \2", line.strip()).split())
                    for line in lines[at + 1:lines.index("", at)]
                    if re.search(r"[0-9]%  ", line)}
            shown = self.shown_rows(kind)
            self.assertGreater(len(shown), kind)
            self.assertEqual(shown, rows, text)
        known = json.loads(harness.report("--json", *args, profile))
        table = {row["function"]: row for row in csv.DictReader(
            io.StringIO(harness.report("--csv", "--top=0", *args, profile)))}
        for f in known["functions"]:
            for kind in ("flat_bytes", "cum_bytes", "flat_objects"):
                self.assertEqual(
                    [f[kind][k] for k in ("value", "lo", "hi")],
                    [float(table[f["name"]][kind + end])
                     for end in ("", "_lo", "_hi")], (f["name"], kind))
        return text, known

    @harness.nightly_too
    def test_same_text(self):
        # at a period of 1 figures are exact, and lie between two
        runs = ("20000", "16K"), ("8000", "1")
        for stacks, period in runs[:harness.rounds(1, 2)][::-1]:
            path, profile = self.page(stacks, period=period, seed="3")
            browser.open("about:blank")
            for view in ("alloc", "peak", "temporary", "live")[
                    harness.rounds(1, 0):]:
                text, known = self.assert_same_text(path, profile, view)
                if view == "peak":
                    rows = re.search(r"\n  rows +(\S.*?) in ", text)[1]
                    self.assertEqual(self.text("chosen").split(" · ")[0], rows)
                    head = re.search(r"\n  peak +(\S.*?) at ", text)[1]
                    for part in re.split(r" (?=\[|exact)", head):
                        self.assertIn(part, self.text("cards"))
        # what is alive, on its card, in the sentence on the graph, in the head
        # of the text and at the end of the curve
        live = re.search(r"\n  live +(\S.*?) in ", text)[1]
        first = live.split(" [")[0]
        self.assertIn(first, self.text("cards"))
        self.assertIn(live[len(first) + 1:], self.text("cards"))
        self.assertTrue(self.text("chosen").startswith(live + " · "),
                        (live, self.text("chosen")))
        for limit, value in known["estimate"]["live_bytes"].items():
            self.assertEqual(known["estimate"]["view_bytes"][limit], value)
            self.assert_same_sum(known["timeline"][-1]["live_bytes"][limit],
                                 value)
        self.assert_quiet()

    @harness.nightly_too
    def test_every_figure(self):
        """Whatever the page shows with limits is a figure of --json, as it is
        or of --view VIEW: on cards, in sentences and in tables."""
        path, profile = self.page("20000", period="16K", seed="3")
        for level in ("95", "99.9")[:harness.rounds(1, 2)]:
            harness.report("export", "html", profile, "--confidence", level,
                           "-o", path)
            browser.open("about:blank")
            for view in ("alloc", "live", "peak", "temporary"):
                known = json.loads(harness.report(
                    "--json", "--view", view, "--confidence", level, profile))
                for state in ("", "&sort=cum&all=true", "&metric=objects"):
                    self.show(path, f"view={view}{state}")
                    self.rows()
                    # of each table the figures of a row, and all else
                    parts = browser.run(
                        "[...document.querySelectorAll('.card, #chosen, "
                        "#functions .estimate, #tip')].map("
                        "(e) => [...e.childNodes].map((c) => c.textContent)"
                        ".join(' '))")
                    text = "\n".join(
                        re.sub(r"\s+", " ", part).replace(" · ", " ")
                        for part in parts)
                    unknown, n = figures.unknown_figures(text, known)
                    self.assertEqual(unknown, [], (view, state, text))
                    self.assertGreater(n, 4, (view, state, text))
        self.assert_quiet()

    def lacking(self):
        """Profiles that lack something, or have what nobody has."""
        run = self.execute(harness.target("program_page_stacks"), "20000",
                           period="16K", frees="off")
        yield run.paths[0]
        path, _ = self.page("8000", period="1")
        path = path.replace(".html", ".sprof")
        os.truncate(path, os.path.getsize(path) * 2 // 3)
        yield path
        for seed in range(harness.rounds(2, 20)):
            yield from subprocess.run(
                [harness.target("program_extreme"), self.out, str(seed), "8",
                 str(os.getpid())], check=True, capture_output=True,
                text=True).stdout.split()

    @harness.nightly_too
    def test_figures_of_what_lacks_something(self):
        """Cards, sentences and rows of each view are those of --json."""
        page, compared = os.path.join(self.dir, "p.html"), 0
        for profile in self.lacking():
            done = harness.run_report("export", "html", profile, "-o", page)
            if done.returncode:
                continue
            browser.open("about:blank")
            self.show(page)
            live, cards = re.search(r"\n  live +((?:.|\n    )*)|\Z",
                                    harness.report(profile)), self.text("cards")
            for words in () if live[1] is None else (
                    "after which it is not known",
                          "as far as the file tells", "not known"):
                self.assertEqual(words in " ".join(live[1].split()),
                                 words in cards, (profile, live[1], cards))
            self.assertNotRegex(cards, r"no sample · [1-9]")
            has_frees = browser.run("JSON.parse(document.getElementById('data')"
                                    ".textContent).has_frees")
            for view in ("alloc", "live", "peak", "leaks", "temporary")[
                    :5 if has_frees else 1]:
                known = json.loads(harness.report(
                    "--json", "--view", view, profile))
                self.show(page, f"view={view}")
                parts = browser.run(
                    "[...document.querySelectorAll('.card, #chosen, "
                    "#functions .estimate')].map((e) => [...e.childNodes].map("
                    "(c) => c.textContent).join(' '))")
                text = "\n".join(re.sub(r"\s+", " ", part).replace(" · ", " ")
                                 for part in parts)
                unknown, n = figures.unknown_figures(text, known)
                self.assertEqual(unknown, [], (profile, view, text))
                compared += n
        self.assertGreater(compared, 30)

    def unknown_peak(self):
        """A profile of whose peak nothing is certain."""
        for seed in range(100):
            for path in subprocess.run(
                    [harness.target("program_extreme"), self.out, str(seed),
                     "8", str(os.getpid())], check=True, capture_output=True,
                    text=True).stdout.split():
                done = harness.run_report("--json", path)
                peak = (json.loads(done.stdout)["estimate"]["peak_bytes"]
                        if not done.returncode else None)
                if peak and peak["samples"] and not peak["lo"] and \
                        peak["hi"] is None:
                    return path
        raise AssertionError("all peaks are known")

    def test_unknown_peak(self):
        profile, path = self.unknown_peak(), os.path.join(self.dir, "p.html")
        self.assertIn("\n  peak      unknown\n", harness.report(profile))
        harness.report("export", "html", profile, "-o", path)
        self.show(path)
        self.assertRegex(self.text("cards"), r"Peak\s+unknown\s")

    def test_head_and_choice(self):
        path, profile = self.page("20000", period="16K")
        self.show(path, "view=alloc")
        known = json.loads(harness.report("--json", profile))
        cards = self.text("cards")
        data = browser.run(
            "JSON.parse(document.getElementById('data').textContent)")
        self.assertEqual(data["exact_bytes"], known["exact"]["alloc_bytes"])
        for name in ("alloc_bytes", "live_bytes"):
            for limit, value in known["estimate"][name].items():
                self.assert_same_sum(data[name][limit], value)
        self.assertIn(f"in {known['exact']['alloc_objects']:,} allocations",
                      cards)
        self.assertEqual([t[0] for t in data["timeline"]],
                         [t["time_ns"] for t in known["timeline"]])
        for point, other in zip(data["timeline"], known["timeline"]):
            self.assert_same_sum(point[2], other["live_bytes"]["value"])
        sizes = browser.run(
            "[...document.querySelectorAll('#sizes tr')].map((r) =>"
            "Number(r.querySelector('.estimate').dataset.value))")
        self.assertEqual(sum(sizes), sum(
            c["alloc_bytes"] for c in known["size_classes"]))
        self.assertIn("everything that was allocated", self.text("chosen"))
        self.assertEqual(self.notes(), (known["notes"], known["remedies"]))
        self.assert_quiet()

    def notes(self):
        """What is said below the tables, and the commands."""
        return (browser.run("[...document.querySelectorAll('#notes li')].map("
                            "(e) => e.textContent)"),
                browser.run("document.getElementById('remedies').textContent"
                            ".split('\\n').filter(Boolean)"))

    def test_remedies(self):
        """Of a stripped program of a package: in the text, on the page and in
        --json."""
        path = os.path.join(self.dir, "p.html")
        files = [os.path.join(self.dir, name) for name in ("a", "b")]
        for step, name in enumerate(files, 1):
            with open(name, "w", encoding="ascii") as file:
                file.writelines(f"{i}\n" for i in range(0, 60000, step))
        profile, = self.execute(
            "/usr/bin/git", "--no-pager", "diff", "--no-index", "--stat",
            *files, period="16K", clean=False).paths
        harness.report("export", "html", profile, "-o", path)
        self.show(path)
        known = json.loads(harness.report("--json", profile))
        text = harness.report(profile)
        self.assertIn("-dbgsym", " ".join(known["notes"]))
        self.assertGreater(len(known["remedies"]), 0)
        for line in known["remedies"]:
            self.assertIn("    " + line, text.splitlines())
        notes, remedies = self.notes()
        self.assertEqual(notes, known["notes"])
        self.assertEqual(remedies, known["remedies"])
        self.assert_quiet()

    def test_folded(self):
        """The whole of a file is read as counts of samples that are alike, a
        part of it sample by sample: the page is the same."""
        _, profile = self.page("20000", period="4K")
        whole, part = [json.loads(re.search(
            r'id="data">(.*?)</script>',
            harness.report("export", "html", *args, profile, "-o", "-"),
            re.S)[1]) for args in ((), ("--from", "0s"))]
        self.assertGreater(whole["n_cells"], 1000)
        for key in ("bins", "samples", "n_paths", "n_kinds", "n_cells",
                    "periods", "strings", "functions", "paths", "kinds",
                    "cells"):
            self.assertEqual(whole[key], part[key], key)
        for point, other in zip(whole["timeline"], part["timeline"]):
            self.assertEqual(point[:2], other[:2])
            self.assert_same_sum(point[2], other[2])

    def test_refusals(self):
        _, profile = self.page("20000", period="16K")
        self.assertIn("leave out --view live", harness.report(
            "export", "html", "--view", "live", profile, "-o",
            os.path.join(self.dir, "no.html"), code=1))
        self.assertFalse(os.path.exists(os.path.join(self.dir, "no.html")))

    @harness.nightly
    def test_without_frees(self):
        path, profile = self.page("20000", period="16K", frees="off")
        self.show(path, "sort=cum&all=true")
        self.assert_rows(profile, "no frees", ())
        self.assertEqual(browser.run(
            "document.getElementById('views').children.length"), 1)
        self.assert_quiet()


class Use(PageCase):
    """What a user does with pointer and keys."""

    def setUp(self):
        super().setUp()
        self.path, _ = self.page("20000", period="16K")
        browser.open("about:blank")
        self.show(self.path, "view=alloc")

    def test_zoom_and_back(self):
        left, top, width, _ = self.box("flame")
        browser.click(left + width / 3, top + 19 * 6 + 5)
        self.until("location.hash.includes('node')")
        zoomed = int(self.state()["node"])
        self.assertGreater(zoomed, 0)
        browser.click(left + width / 3, top + 5)
        self.until("!location.hash.includes('node')")
        browser.run("history.back()")
        self.until("location.hash.includes('node')")
        self.assertEqual(int(self.state()["node"]), zoomed)
        browser.run("history.back()")
        self.until("!location.hash.includes('node')")
        self.assert_quiet()

    @harness.nightly
    def test_tooltip(self):
        left, top, width, _ = self.box("flame")
        browser.mouse("mouseMoved", left + width / 2, top + 19 + 5)
        browser.wait("!document.getElementById('tip').hidden")
        tip = self.text("tip")
        self.assertRegex(tip, r"main[\s\S]*iB")
        self.assertRegex(tip, r"\[[0-9.]+, [0-9.]+\] .iB")
        self.assertRegex(tip, r"[0-9,]+ samples")

    def test_search(self):
        browser.key("/", "/")
        browser.wait("document.activeElement.id == 'search'")
        browser.type("^mark.*|EAST$")
        self.until("location.hash.includes('search')")
        self.assertEqual(self.rows(), {}, "upper case makes case count")
        self.show(self.path, "view=alloc&search=" + "%5Eeast%24")
        self.assertEqual(set(self.rows()), {"east"})
        whole = self.text("matched")
        self.assertRegex(whole, r"9[0-9]\.[0-9] % matched: .*\[")
        self.show(self.path, "search=(")
        self.assertEqual(self.text("matched"), "not a regular expression")
        self.assert_quiet()

    def test_views_and_metric(self):
        def until_pressed(choice):
            # Not by the address, which leaves out what the page opens with.
            self.until(f"document.querySelector('[{choice}]')"
                       ".getAttribute('aria-pressed') == 'true'")

        until_pressed("data-view=alloc")
        alloc = self.text("chosen")
        browser.run("document.querySelector('[data-view=live]').click()")
        until_pressed("data-view=live")
        live = self.text("chosen")
        self.assertIn("alive at the end", live)
        self.assertNotEqual(alloc, live)
        browser.run("document.querySelector('[data-metric=objects]').click()")
        until_pressed("data-metric=objects")
        self.assertIn("metric", self.state())
        self.assertRegex(self.text("chosen"), r"^[0-9,.]+ ?[KM]? objects \[")
        browser.run("document.activeElement.blur()")
        browser.key("1", "1")
        until_pressed("data-view=alloc")
        browser.key("m", "m")
        until_pressed("data-metric=bytes")
        self.assertNotIn("metric", self.state())
        self.assert_quiet()

    @harness.nightly
    def test_invert(self):
        browser.run("document.getElementById('invert').click()")
        self.until("location.hash.includes('inverted')")
        left, top, width, _ = self.box("flame")
        browser.mouse("mouseMoved", left + width / 3, top + 19 + 5)
        browser.wait("document.querySelector('#tip strong') && "
                     "!document.getElementById('tip').hidden")
        self.assertEqual(browser.run(
            "document.querySelector('#tip strong').textContent"), "descend")
        self.assert_quiet()

    def test_callers_and_callees(self):
        self.show(self.path, "sort=cum")
        browser.run("[...document.querySelectorAll('#functions tbody button')]"
                    ".find((b) => b.textContent == 'south').click()")
        self.until("location.hash.includes('focus')")
        self.assertIn("callees of south", self.text("around"))
        row, cum = browser.run(
            "(() => { const f = document.getElementById('flame');"
            "const r = f.getBoundingClientRect();"
            "for (let y = r.top + 4; y < r.bottom; y += 19) {"
            "f.dispatchEvent(new PointerEvent('pointermove',"
            "{clientX: r.left + 5, clientY: y}));"
            "const t = document.getElementById('tip');"
            "if (!t.hidden && t.querySelector('strong').textContent == 'south')"
            "return [y, t.querySelector('.figure').textContent.trim()]; }"
            "return [0, '']; })()")
        self.assertGreater(row, 0)
        self.assertEqual(self.text("selection").split()[0], "south")
        shown = browser.run(
            "[...document.querySelectorAll('#functions tbody tr')].find((r) =>"
            "r.querySelector('button').textContent == 'south')"
            ".querySelectorAll('.estimate')[1].querySelector('b').textContent")
        self.assertEqual(cum, shown, "all that passes through it")
        browser.run("document.getElementById('flame').focus()")
        browser.key("Escape")
        self.until("!location.hash.includes('focus')")
        self.assert_quiet()

    def test_brush(self):
        left, top, width, height = self.box("timeline")
        browser.drag(left + width * 0.4, left + width * 0.7, top + height / 2)
        self.until("location.hash.includes('from')")
        state = self.state()
        self.assertTrue(0 < int(state["from"]) < int(state["to"]) < 200, state)
        self.assertRegex(self.text("chosen"), "allocated from .* to ")
        browser.run("document.getElementById('whole').click()")
        self.until("!location.hash.includes('from')")
        browser.click(left + width * 0.5, top + height / 2)
        self.until("location.hash.includes('to=')")
        self.assertNotIn("from", self.state())
        browser.run("document.getElementById('timeline').focus()")
        before = int(self.state()["to"])
        browser.key("ArrowRight")
        self.until(f"location.hash.includes('to={before + 1}')")
        self.assert_quiet()

    @harness.nightly
    def test_sort(self):
        for key, column in (("cum", 1), ("flat", 0)):
            self.show(self.path, "view=alloc")
            if key != "flat":
                browser.run(f"document.querySelector('[data-key={key}]')"
                            ".click()")
                self.until(f"location.hash.includes('{key}')")
            values = [row[column][0] for row in self.rows().values()]
            self.assertEqual(values, sorted(values, reverse=True), key)
        browser.run("document.querySelector('[data-key=name]').click()")
        self.until("location.hash.includes('name')")
        names = list(self.rows())
        self.assertEqual(names, sorted(names))
        self.assert_quiet()

    def test_own_functions(self):
        """The library's recede, in the graph and in the table, until they are
        asked for; and functions without flat bytes, as in the report."""
        def found():
            rows = set(self.rows())
            browser.run("document.getElementById('flame').focus()")
            for _ in range(2):  # "all", and what it has called
                browser.key("ArrowDown")
            return rows, self.text("selection").split()[0]

        self.show(self.path, "view=alloc&sort=cum")
        own, first = found()
        self.assertIn("north", own)
        self.assertNotIn("__libc_start_call_main", own)
        self.assertEqual(first, "main")
        browser.run("document.getElementById('own').click()")
        self.until("location.hash.includes('all=true')")
        every, first = found()
        self.assertEqual(own & every, own)
        self.assertIn("__libc_start_call_main", every)
        self.assertNotEqual(first, "main")
        self.show(self.path, "view=alloc")
        self.assertEqual(set(self.rows()), {"main", "descend"})
        self.assert_quiet()

    def test_keys(self):
        browser.run("document.getElementById('flame').focus()")
        for _ in range(2):
            browser.key("ArrowDown")
        self.assertRegex(self.text("selection"), "^main")
        browser.key("Enter")
        self.until("location.hash.includes('node')")
        browser.key("s", "s")
        self.until("location.hash.includes('focus')")
        browser.key("i", "i")
        self.until("location.hash.includes('inverted')")
        browser.key("?", "?")
        browser.wait("document.getElementById('keys').open")
        browser.run("document.querySelector('#keys button').click()")
        browser.wait("!document.getElementById('keys').open")
        self.assert_quiet()

    @harness.nightly
    def test_theme(self):
        page = "getComputedStyle(document.body).backgroundColor"
        browser.scheme("light")
        light = browser.run(page)
        browser.scheme("dark")
        dark = browser.run(page)
        self.assertNotEqual(light, dark)
        browser.key("d", "d")
        self.assertEqual(browser.run(page), light)
        browser.scheme("light")
        self.assertEqual(browser.run(page), light)
        browser.key("d", "d")
        self.assertEqual(browser.run(page), dark)
        self.assert_quiet()

    @harness.nightly
    def test_narrow(self):
        browser.size(420, 800)
        self.addCleanup(browser.size, 1280, 900)
        self.assertLessEqual(browser.run(
            "document.documentElement.scrollWidth"), 420)
        # Nothing of a row has to be scrolled to.
        self.show(self.path, "sort=cum")
        self.assertGreater(len(self.rows()), 5)
        self.assertLessEqual(browser.run(
            "Math.max(...[...document.querySelectorAll('#functions td')].map("
            "(e) => e.getBoundingClientRect().right))"), 420)


class Hostile(PageCase):
    """Names are text."""

    def test_markup(self):
        path, _ = self.page("200", "</script><script>document.title=2</script>",
                            period="1")
        with open(path, encoding="utf-8") as file:
            page = file.read()
        self.assertNotIn("<img", page)
        self.assertEqual(page.count("</script>"), 2)
        self.show(path, "view=alloc&search=img%20src")
        self.assertEqual(
            {n.strip('"') for n in self.rows()},
            {"</script><img src=x onerror=document.title=1>"})
        self.assertIn("<script>document.title=2", self.text("command"))
        self.assertTrue(browser.run("document.title").endswith("sampleprof"))
        self.assertEqual(browser.run("document.images.length"), 0)
        browser.run("document.body.append(Object.assign(document.createElement"
                    "('script'), {textContent: 'window.was_run = 1'}))")
        self.assertIsNone(browser.run("window.was_run"),
                          "the policy lets other scripts run")


@harness.nightly
class Many(PageCase):
    """As fast as src/README.md says.  What is bounded is the CPU time of the
    page: the machine may be busy with other things."""

    def test_many_stacks(self):
        path, _ = self.page(str(STACKS), period="1")
        self.assertLess(os.path.getsize(path), 4 << 20)
        opened = self.open_cpu_s(path, 2)
        self.assertLess(opened, 2)
        before = browser.cpu_s()
        browser.run(
            "new Promise((done) => { let n = 0;"
            "const flame = document.getElementById('flame');"
            "const f = () => { flame.scrollTop = 7 * n % 200;"
            "scrollBy({top: n % 2 ? 9 : -9, behavior: 'instant'});"
            f"if (++n < {FRAMES}) requestAnimationFrame(f); else done(); }};"
            "requestAnimationFrame(f); })")
        frame = (browser.cpu_s() - before) / FRAMES
        self.assertLess(frame, 1 / 60)
        self.assertEqual(browser.run(
            "document.getElementById('method').textContent.includes("
            f"'{STACKS + 3:,} samples')"), True, self.text("method"))
        marks = browser.run("Object.fromEntries(performance.getEntriesByType("
                            "'mark').map((e) => [e.name, e.startTime]))")
        print(f"open: {opened * 1000:.0f} ms of CPU, first frame after "
              f"{marks['first-frame']:.0f} ms, tables after "
              f"{marks['ready']:.0f} ms; a frame: {frame * 1000:.1f} ms of "
              f"CPU; {os.path.getsize(path)} bytes", file=sys.stderr)
        self.assert_quiet()


def main(run):
    """The tests with one browser."""
    global browser  # pylint: disable=global-statement
    harness.require(CHROMIUM, os.path.basename(CHROMIUM))
    try:
        browser = Browser()
    except (BrowserError, OSError) as error:
        print(f"skipped: {CHROMIUM} does not run here: {error}")
        sys.exit(SKIPPED)
    try:
        run()
    finally:
        browser.close()
