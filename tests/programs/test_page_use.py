# SPDX-License-Identifier: MIT
"""The page of `export html` for its reader, in Chromium: the view that opens,
tooltips, a phone, names that do not fit, figures and pictures to copy."""

import json
import os
import re
import subprocess
import xml.etree.ElementTree as xml

import harness
import test_page
from test_page import PageCase

# The frame below main() has its name from there.
NEEDS_DEBUG_FILES = True
SVG = "{http://www.w3.org/2000/svg}"
ROW = 19
PHONE = 390


def browser():
    """The one of test_page, which is not there when this is imported."""
    return test_page.browser


class Reader(PageCase):
    """A page of 20,000 stacks, at what was allocated."""

    first = "view=alloc"

    def setUp(self):
        super().setUp()
        self.path, self.profile = self.page("20000", period="16K")
        self.renew(self.path, self.first)

    def narrow(self, width=PHONE):
        browser().size(width, 844)
        self.addCleanup(browser().size, 1280, 900)

    def is_hidden(self, identifier):
        return browser().run(f"document.getElementById('{identifier}').hidden")

    def point(self, row, share=0.5):
        """A point of the graph."""
        left, top, width, _ = self.box("flame")
        return left + width * share, top + ROW * row + ROW / 2

    def tips(self, step, until=""):
        """Texts of the tooltips of the graph by row, from left to right; with
        `until` [[point, text]] of the first that has it from right to left,
        where the narrow ones are."""
        return browser().run(
            "(() => { const f = document.getElementById('flame');"
            "f.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const r = f.getBoundingClientRect(), rows = [];"
            "const t = document.getElementById('tip');"
            f"for (let y = r.top + 4; y < r.bottom; y += {ROW}) {{"
            "const found = [];"
            f"for (let n = 0; n < r.width; n += {step}) {{"
            f"const x = {json.dumps(until)} ? r.right - 1 - n : r.left + 1 + n;"
            "f.dispatchEvent(new PointerEvent('pointermove',"
            "{clientX: x, clientY: y}));"
            f"if (!t.hidden && {json.dumps(until)} &&"
            f"t.textContent.includes({json.dumps(until)}))"
            "return [[[x, y], t.innerText]];"
            f"if (!t.hidden && !{json.dumps(until)} &&"
            "t.innerText != found.at(-1)) found.push(t.innerText); }"
            "rows.push(found); } return rows; })()")

    def renew(self, path, state):
        """Another page at the path of the one before."""
        browser().open("about:blank")
        self.show(path, state)


class Head(Reader):
    """What is said before anything is clicked."""

    first = ""

    def test_opens_at_the_view_that_matters(self):
        """A sixth stays, half is freed at the end: the peak."""
        self.assertEqual(self.pressed(), ["Peak", "Bytes"])
        # in the report's words
        view = harness.run_report("--view", "peak", self.profile).stdout
        for text in (self.text("chosen"), view.decode()):
            self.assertIn("alive at the peak of live bytes, at ", text)
        browser().run("document.querySelector('[data-view=live]').click()")
        self.until("location.hash == '#view=live'")
        browser().run("history.back()")
        self.until("location.hash == ''")
        self.assertEqual(self.pressed(), ["Peak", "Bytes"])

    def pressed(self):
        return browser().run(
            "[...document.querySelectorAll('#controls "
            ".segments [aria-pressed=true]')].map((e) => e.textContent)")

    def test_each_quantity_once(self):
        titles = browser().run("[...document.querySelectorAll('#cards h2')]"
                               ".map((e) => e.textContent)")
        self.assertEqual(titles, ["Allocated", "Alive at the end", "Peak"])
        self.assertRegex(self.text("cards"), r"exact, in [0-9,]+ allocations")
        page = browser().run("document.body.innerText")
        for once in ("95 %", "p3t", "one sample in 16.0 KiB"):
            self.assertEqual(page.count(once), 1, once)
            self.assertIn(once, self.text("method"))
        self.assertTrue(self.is_hidden("losses"), self.text("notes"))

    @harness.nightly
    def test_badge_of_a_file_that_lacks_something(self):
        path, _ = self.page("60000", period="256", max_file="1M")
        self.renew(path, "")
        self.assertFalse(self.is_hidden("losses"))
        self.assertRegex(self.text("losses"), r"^[0-9]+ notes?$")

    @harness.nightly
    def test_resident_memory(self):
        """Of a run with no settings."""
        self.assertIn("alive, with its interval", self.text("timeline-legend"))
        points = browser().run("JSON.parse(document.getElementById('data')"
                               ".textContent).timeline")
        known = [p[8] for p in points if p[8] is not None]
        self.assertGreater(len(known), 0)
        self.assertGreater(min(known), 1 << 20)
        self.assertIn("RSS", self.text("timeline-legend"))
        path, _ = self.page("20000", period="16K", rss="off")
        self.renew(path, "")
        self.assertNotIn("RSS", self.text("timeline-legend"))

    def test_toolbar(self):
        """In sight wherever the page is, and each group in one line."""
        for width, height in ((1280, 900), (800, 900), (PHONE, 844),
                              (320, 700)):
            browser().size(width, height)
            self.addCleanup(browser().size, 1280, 900)
            for top in (0, 700, 1e6):
                browser().run(f"scrollTo({{top: {top}, behavior: 'instant'}})")
                boxes = browser().run(
                    "[...document.querySelectorAll('#views button')].map((e) =>"
                    "{ const r = e.getBoundingClientRect();"
                    "return [r.top, r.bottom, r.left, r.right]; })")
                self.assertEqual(len(boxes), 5)
                self.assertEqual(len({box[0] for box in boxes}), 1, boxes)
                self.assertGreaterEqual(boxes[0][2], 0)
                self.assertLessEqual(boxes[-1][3], width)
                if top:
                    self.assertGreaterEqual(boxes[0][0], -1)
                    self.assertLess(boxes[0][1], 120)


class Graph(Reader):
    """The flame graph under a pointer."""

    def test_no_stale_tooltip(self):
        for change in ("2", "m", "i"):
            browser().mouse("mouseMoved", 5, 5)
            browser().mouse("mouseMoved", *self.point(4))
            browser().wait("!document.getElementById('tip').hidden")
            before = browser().run("location.hash")
            browser().key(change, change)
            self.until(f"location.hash != {json.dumps(before)}")
            self.assertTrue(self.is_hidden("tip"), change)
        browser().mouse("mouseMoved", *self.point(3))
        browser().wait("!document.getElementById('tip').hidden")
        browser().run("document.getElementById('flame').scrollTop = 0;"
                      "document.getElementById('flame').dispatchEvent("
                      "new Event('scroll'))")
        self.assertTrue(self.is_hidden("tip"))

    @harness.nightly
    def test_no_tooltip_stays_behind(self):
        """When the page scrolls, what it is about is elsewhere."""
        browser().mouse("mouseMoved", *self.point(3))
        browser().wait("!document.getElementById('tip').hidden")
        self.addCleanup(browser().run, "scrollTo(0, 0)")
        browser().run("scrollBy(0, 100)")
        browser().wait("document.getElementById('tip').hidden")

    def test_narrow_frames_are_gathered(self):
        (point, tip), = self.tips(5, "too narrow")
        self.assertRegex(tip, r"^[0-9,]+ more callees, each too narrow to be "
                         r"shown\s")
        self.assertRegex(tip, r"iB\s[\s\S]*of the view\s+[0-9,]+ samples?")
        # The names of some, of functions that there are.
        self.assertRegex(tip.split("\n")[1], "north|east|south|west|descend")
        browser().click(*point)
        self.until("location.hash.includes('node')")
        self.assertGreater(int(self.state()["node"]), 0)
        self.assert_quiet()

    def test_function_once_between_callers_and_callees(self):
        self.show(self.path, "all=true")
        browser().run("[...document.querySelectorAll('#functions button')]"
                      ".find((b) => b.textContent == 'main').click()")
        self.until("location.hash.includes('focus')")
        rows = self.tips(400)
        names = [row[0].split("\n")[0] for row in rows if row]
        self.assertEqual(names.count("main"), 1, names)
        at = names.index("main")
        self.assertEqual(names[at - 1], "__libc_start_call_main", names)
        self.assertIn(names[at + 1], ("descend", "north", "east", "south",
                                      "west"))
        # By keys from the function to its caller, and back.
        browser().run("document.getElementById('flame').focus()")
        self.assertRegex(self.text("selection"), "^main\\s")
        for key, name in (("ArrowUp", "__libc_start_call_main"),
                          ("ArrowDown", "main"), ("ArrowDown", names[at + 1]),
                          ("ArrowUp", "main")):
            browser().key(key)
            self.assertRegex(self.text("selection"), f"^{name}\\s", key)
        self.assert_quiet()

    def test_copy(self):
        browser().call("Browser.grantPermissions", permissions=[
            "clipboardReadWrite", "clipboardSanitizedWrite"])
        browser().call("Emulation.setFocusEmulationEnabled", enabled=True)
        browser().run("document.getElementById('flame').focus()")
        for _ in range(7):
            browser().key("ArrowDown")
        name = browser().run(
            "document.querySelector('#selection strong').textContent")
        # "Copied" stands there for a moment, which a busy machine may miss.
        browser().run(
            "window.copied = 0; new MutationObserver(() => window.copied += "
            "[...document.querySelectorAll('[data-do]')].some("
            "(b) => b.textContent == 'Copied')).observe(document.body, "
            "{subtree: true, childList: true, characterData: true}); 0")
        for key, wanted in (("c", [name]), ("C", None)):
            browser().run("window.copied = 0")
            browser().key(key, key)
            browser().wait("window.copied > 0")
            lines = browser().run("navigator.clipboard.readText()").split("\n")
            if wanted:
                self.assertEqual(lines, wanted)
        self.assertEqual(lines[0].split("  ")[0], name)
        self.assertTrue(any(re.match(r"main .*page_stacks\.c:[0-9]+  "
                                     r"\(program_page_stacks\)", line)
                            for line in lines), lines)
        self.assertEqual(lines[-1].split()[0], "main")
        browser().wait("[...document.querySelectorAll('[data-do]')].every("
                       "(b) => b.textContent != 'Copied')")
        self.assert_quiet()

    def save_svg(self):
        """The picture, as its tree."""
        browser().call("Browser.setDownloadBehavior", behavior="allow",
                       downloadPath=self.dir)
        browser().run("document.getElementById('svg').click()")

        def found():
            # It has no bytes at first.
            return [n for n in os.listdir(self.dir) if n.endswith(".svg") and
                    os.path.getsize(os.path.join(self.dir, n))]

        harness.wait_until(found, lambda: os.listdir(self.dir))
        name, = found()
        return name, xml.parse(os.path.join(self.dir, name)).getroot()

    def test_svg(self):
        shown = self.text("chosen")
        name, root = self.save_svg()
        self.assertEqual(name, "program_page_stacks-alloc.svg")
        texts = [e.text or "" for e in root.iter(SVG + "text")]
        self.assertEqual(texts[0], "program_page_stacks: Allocated")
        self.assertEqual(texts[1], " ".join(shown.split("\n")))
        self.assertLessEqual({"all", "main", "descend"}, set(texts))
        titles = [e.text for e in root.iter(SVG + "title")]
        self.assertRegex(titles[0], r"^all: [0-9.]+ .iB \(100\.0 %\)$")
        self.assertTrue(any("too narrow" in t for t in titles))
        # Frames are in the picture, and have the width of their bytes.
        width = float(root.get("width"))
        for rect in list(root.iter(SVG + "rect"))[1:]:
            self.assertLessEqual(float(rect.get("x")) +
                                 float(rect.get("width")), width)
        self.assert_quiet()

    def test_svg_of_markup(self):
        """Names are text there, too."""
        path, _ = self.page("200", "</script><script>document.title=2</script>",
                            period="1")
        number = next(i for i, name in enumerate(self.functions(path))
                      if "img src" in name)
        self.renew(path, f"view=alloc&focus={number}")
        _, root = self.save_svg()
        titles = [e.text for e in root.iter(SVG + "title")]
        self.assertTrue(any("<img src=x onerror" in t for t in titles))
        self.assertEqual({e.tag.replace(SVG, "") for e in root.iter()},
                         {"svg", "g", "rect", "text", "title"})

    @staticmethod
    def functions(path):
        with open(path, encoding="utf-8") as file:
            data = json.loads(re.search(r'id="data">(.*?)</script>',
                                        file.read(), re.S)[1])
        return [data["strings"][n] for n in data["functions"][::2]]


class Phone(Reader):
    """A window of 390 pixels, and a finger."""

    def setUp(self):
        super().setUp()
        self.narrow()
        browser().call("Emulation.setTouchEmulationEnabled", enabled=True)
        self.addCleanup(browser().call, "Emulation.setTouchEmulationEnabled",
                        enabled=False)

    @staticmethod
    def tap(x, y):
        browser().call("Input.dispatchTouchEvent", type="touchStart",
                       touchPoints=[{"x": x, "y": y}])
        browser().call("Input.dispatchTouchEvent", type="touchEnd",
                       touchPoints=[])

    def test_first_tap_says_figures(self):
        point = self.point(5, 0.2)
        self.tap(*point)
        browser().wait("!document.getElementById('selection').hidden")
        self.assertRegex(self.text("selection"),
                         r"^[a-z_]+[\s\S]*iB[\s\S]*samples")
        self.assertEqual(browser().run("location.hash"), "#view=alloc")
        self.assertTrue(self.is_hidden("tip"))
        left, top, width, height = browser().run(
            "(() => { const r = document.getElementById('selection')"
            ".getBoundingClientRect();"
            "return [r.left, r.top, r.width, r.height]; })()")
        self.assertLessEqual(top + height, 844.5, "it is in sight")
        self.assertLessEqual(left + width, PHONE)
        self.tap(*point)
        self.until("location.hash.includes('node')")
        self.assert_quiet()

    @harness.nightly
    def test_another_frame_is_a_first_tap(self):
        for row in (5, 6, 5):
            self.tap(*self.point(row, 0.2))
            browser().wait("!document.getElementById('selection').hidden")
        self.assertEqual(browser().run("location.hash"), "#view=alloc")
        browser().run("document.querySelector('[data-do=focus]').click()")
        self.until("location.hash.includes('focus')")

    @harness.nightly
    def test_timeline(self):
        left, top, width, height = self.box("timeline")
        x, y = left + width * 0.6, top + height / 2
        self.tap(x, y)
        browser().wait("!document.getElementById('tip').hidden")
        self.assertRegex(self.text("tip"), "iB alive")
        self.assertEqual(browser().run("location.hash"), "#view=alloc")
        self.tap(x, y)
        self.until("location.hash.includes('to=')")
        self.assert_quiet()

    @harness.nightly
    def test_timeline_without_room(self):
        """Hidden, or narrower than its axis, nothing is painted: it had a tick
        for every nanosecond."""
        for style in ("display: none", "width: 30px", ""):
            browser().run(
                "(async () => {"
                f"document.getElementById('timeline').style = '{style}';"
                "for (let i = 0; i < 3; i++)"
                "await new Promise((f) => requestAnimationFrame(f)); })()")
        self.assertGreater(self.box("timeline")[3], 50)
        self.assert_quiet()

    def test_figures_have_labels(self):
        """No number stands alone."""
        texts = browser().run(
            "[...document.querySelector('#functions tbody tr').cells].map("
            "(e) => [getComputedStyle(e, '::before').content, e.textContent,"
            "getComputedStyle(e, '::after').content].join(' '))")
        self.assertRegex(texts[1], "^\"Flat \"")
        self.assertRegex(texts[2], "^\"Cum \"")
        for text in texts[3:5]:
            self.assertRegex(text, r"[0-9,]+ .*samples?")

    def test_nothing_is_wider(self):
        for state in ("view=alloc", "view=alloc&focus=1", "view=live"):
            self.show(self.path, state)
            self.assertLessEqual(browser().run(
                "document.documentElement.scrollWidth"), PHONE)


class Resident(PageCase):
    """The panel of resident memory is what `rss FILE` says."""

    def rows(self):
        return {name: float(value) for name, value in browser().run(
            "[...document.querySelectorAll('#resident-rows tr')].map("
            "(r) => [r.dataset.name, r.dataset.value])")}

    def stored(self, path, when):
        ledger = json.loads(harness.report("rss", "--json", "--when", when,
                                             path))
        return ({r["name"]: r["bytes"] for r in ledger["rows"]},
                ledger["rss_bytes"])

    def record(self, mark):
        """A run with a ledger at a snapshot of that name, and at the end."""
        command = harness.tool()
        path = os.path.join(self.dir, "p.sprof")
        mapped = os.path.join(self.dir, "mapped")
        with open(mapped, "wb") as file:
            file.write(b"x" * (8 << 20))
        process = self.start(
            [command, "run", "--rss", "--no-symbols", "--out", path,
             harness.target("program_ledger"), mapped], shim=False,
            stdin=subprocess.PIPE)
        pid = str(self.ready_child(process))
        subprocess.run([command, "ctl", "--timeout", "1m", "--rss", pid,
                        "snapshot", mark], check=True, capture_output=True)
        process.communicate(b"x")
        self.assertEqual(process.returncode, 0)
        page = os.path.join(self.dir, "p.html")
        harness.report("export", "html", path, "-o", page)
        return path, page

    def test_rows(self):
        mark = "<i>a</i>"
        path, page = self.record(mark)
        browser().open("about:blank")
        self.show(page)
        self.assertFalse(browser().run(
            "document.getElementById('resident').hidden"))
        end, rss = self.stored(path, "end")
        self.assertEqual(self.rows(), end)
        self.assertEqual(sum(end.values()) // 4096, rss // 4096)
        text = self.text("resident")
        self.assertIn("heap: free, kept by glibc", text)
        self.assertIn("Snapshot " + mark, text)
        browser().run("document.querySelector('#resident-which button')"
                      ".click()")
        self.assertEqual(self.rows(), self.stored(path, mark)[0])
        self.assert_quiet()
        self.alone(path, mark)

    def bars(self):
        """Of each moment: its length, and what its parts add up to, as shares
        of the longest bar."""
        return browser().run(
            "[...document.querySelectorAll('#resident-which .stacked')].map("
            "(bar) => [bar, ...bar.children].map((e) => "
            "e.getBoundingClientRect().width / "
            "(bar.parentNode.clientWidth - 22)))")

    def alone(self, path, mark):
        """The page of rss: the same panel, and bars that add up."""
        page = os.path.join(self.dir, "rss-p.html")
        harness.report("rss", "--html", page, path)
        self.assertEqual(os.stat(page).st_mode & 0o777, 0o600)
        browser().open("about:blank")
        browser().open(page)
        browser().wait("document.body && document.body.dataset.state == "
                       "'ready'", page)
        moments = [self.stored(path, when) for when in (mark, "end")]
        self.assertEqual(self.rows(), moments[1][0])
        most = max(rss for _, rss in moments)
        bars = self.bars()
        self.assertEqual(len(bars), 2)
        for (whole, *parts), (rows, rss) in zip(bars, moments):
            self.assertAlmostEqual(whole, rss / most, delta=0.01)
            self.assertAlmostEqual(sum(parts), whole, delta=0.001)
            self.assertAlmostEqual(max(parts), max(rows.values()) / most,
                                   delta=0.01)
        self.assert_quiet()
        harness.report("rss", "--html", page, os.getpid())
        browser().open("about:blank")
        browser().open(page)
        browser().wait("document.body && document.body.dataset.state == "
                       "'ready'", page)
        self.assertEqual(len(self.bars()), 1)
        self.assertIn("Now", self.text("resident"))
        self.assertLessEqual(browser().run(
            "document.documentElement.scrollWidth"), browser().run("innerWidth"))
        self.assert_quiet()

    @harness.nightly
    def test_on_a_phone(self):
        _, page = self.record("loaded")
        browser().size(PHONE, 844)
        self.addCleanup(browser().size, 1280, 900)
        browser().open("about:blank")
        self.show(page)
        self.assertLessEqual(browser().run(
            "document.documentElement.scrollWidth"), PHONE)

    @harness.nightly
    def test_none(self):
        page, _ = self.page("2000", period="16K")
        browser().open("about:blank")
        self.show(page)
        self.assertTrue(browser().run(
            "document.getElementById('resident').hidden"))


def main(run):
    test_page.main(run)
