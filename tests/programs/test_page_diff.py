# SPDX-License-Identifier: MIT
"""The page of `export html --base` in Chromium: its changes and totals equal
those of `diff`, each side those of `--json`; 50,000 stacks on both sides."""

import csv
import io
import json
import os
import re
import shutil
import sys

import harness
import test_page
from harness import report
from test_page import PageCase

# The frame below main() has its name from there.
NEEDS_DEBUG_FILES = True
STACKS = 50000
# A site that doubles while another halves, two that go, one that comes (more
# than one for it to be taken for renamed), and one that grows less than noise.
OLD = ("a:48:20000", "b:80:9000", "c:120:6000", "d:32:4000", "f:64:5000",
       "keep:96:9000")
NEW = ("a:48:40000", "b:80:4500", "e:40:6000", "f:64:6000", "keep:96:12000")
VIEWS = ("alloc", "live", "peak", "leaks", "temporary")

main = test_page.main


class PairCase(PageCase):
    """A page of two profiles."""

    pairs = {}

    def run_of(self, program, *argv, **settings):
        """The profile of one run."""
        run = self.execute(harness.target(program), *argv, **settings)
        self.assertEqual(len(run.paths), 1, run)
        return run.paths[0]

    def pair(self, old, new):
        """The page of two runs, each (program, arguments, settings), and both
        profiles; made once."""
        key = repr((old, new))
        if key not in self.pairs:
            files = [self.run_of(program, *argv, **settings)
                     for program, argv, settings in (old, new)]
            page = os.path.join(self.dir, "made.html")
            report("export", "html", files[1], "--base", files[0], "-o", page)
            contents = []
            for path in (page, *files):
                with open(path, "rb") as file:
                    contents.append(file.read())
            samples = re.findall(rb'"samples": ([0-9]+)', contents[0])
            self.assertEqual(len(samples), 2)
            self.assertGreater(min(int(n) for n in samples), 20,
                               "was the library bypassed?")
            self.pairs[key] = contents
        paths = [os.path.join(self.dir, name)
                 for name in ("p.html", "old.sprof", "new.sprof")]
        for path, data in zip(paths, self.pairs[key]):
            with open(path, "wb") as file:
                file.write(data)
        return paths

    def gated(self):
        """The usual pair."""
        return self.pair(("program_gated", OLD, {"period": "4K", "seed": "1"}),
                         ("program_gated", NEW, {"period": "4K", "seed": "2"}))

    def changes(self, column):
        """Rows of the table: name to its figures, flat (0) or cum (1)."""
        for _ in range(20):
            if not browser().run(
                    "(() => { const m = document.getElementById("
                    "'more-changes'); m.click(); return !m.hidden; })()"):
                break
        rows = browser().run(
            "[...document.querySelectorAll('#changes tbody tr')].map((r) =>"
            "[r.querySelector('button').textContent,"
            f"{{...r.querySelectorAll('.estimate')[{column}].dataset}}])")
        return {name: data for name, data in rows if data}


def browser():
    """The one of test_page, which is not there when this is imported."""
    return test_page.browser


class Differences(PairCase):
    """The page and `diff --json` say the same."""

    def assert_changes(self, files, state, *args, renamed=()):
        wanted = json.loads(report("diff", "--json", *args, *files))
        self.assertEqual(wanted["renamed"],
                         [" -> ".join(pair) for pair in renamed])
        want = {f["name"].split("!")[-1]: f for f in wanted["functions"]}
        got = self.changes(0)
        self.assertEqual(len(want), len(wanted["functions"]), state)
        self.assertEqual(set(got), set(want), state)
        for name, row in want.items():
            seen = got[name]
            for key, value in (("old", row["old"]["value"]),
                               ("new", row["new"]["value"]),
                               ("value", row["change"]["value"]),
                               ("lo", row["change"]["lo"]),
                               ("hi", row["change"]["hi"]),
                               ("oldSamples", row["old_samples"]),
                               ("newSamples", row["new_samples"])):
                self.assertLessEqual(
                    abs(float(seen[key]) - value),
                    1e-7 * max(row["old"]["hi"], row["new"]["hi"], 1),
                    (state, name, key, seen, row))
            self.assertEqual((seen["told"], seen["comparable"]),
                             (str(row["is_told"]).lower(),
                              str(row["is_comparable"]).lower()),
                             (state, name, seen, row))
        return want

    def assert_totals(self, files, level):
        """What the cards say of the live bytes and the peak, in the words of
        the diff: at whatever level, both are taken at just that."""
        text = report("diff", "--confidence", level, *files)
        cards = self.text("cards").replace("\N{MINUS SIGN}", "-")
        for name in ("live_bytes", "peak_bytes"):
            figures = re.search(rf"\[.*\](?: .iB)?(?= +{name}\n)", text)
            self.assertIn(figures[0], cards, (name, level))

    def shown_changes(self):
        """The rows of the table as it shows them, in the words of the diff."""
        found = set()
        self.changes(0)
        for name, flat, *cells in browser().run(
                "[...document.querySelectorAll('#changes tbody tr')].map((r) =>"
                "[r.querySelector('button').textContent,"
                "!r.querySelector('.estimate .none'),"
                "...[r.cells[2], ...r.querySelector('.estimate')"
                ".querySelectorAll('b, .interval')]"
                ".map((e) => e.textContent)])"):
            if flat:
                found.add(" ".join([*cells, name]).replace(
                    "\N{MINUS SIGN}", "-"))
        return found

    def assert_same_text(self, files, *args):
        """Every figure of a row is the same on the page and in the text, to the
        last digit that is shown."""
        text = report("diff", "--top=0", *args, *files)
        rows = {re.sub(r" \((gone|new)\)$", "", " ".join(line.split()))
                for line in text.splitlines()}
        known = json.loads(report("diff", "--json", *args, *files))
        for row, f in zip(csv.DictReader(io.StringIO(report(
                "diff", "--csv", *args, *files))), known["functions"]):
            self.assertEqual(
                [row["name"], *(float(row[k]) for k in (
                    "old", "new", "change", "change_lo", "change_hi"))],
                [f["name"], f["old"]["value"], f["new"]["value"],
                 *(f["change"][k] for k in ("value", "lo", "hi"))])
        shown = self.shown_changes()
        self.assertGreater(len(shown), 1)
        self.assertEqual(shown - rows, set(), text)

    @harness.nightly_too
    def test_same_text(self):
        path, *files = self.gated()
        for view in ("alloc", "live", "peak", "temporary")[
                :harness.rounds(2, 4)]:
            self.show(path, "" if view == "alloc" else f"view={view}")
            self.assert_same_text(files, "--view", view)
        for level in ("99.9", "90")[:harness.rounds(1, 2)]:
            report("export", "html", files[1], "--base", files[0],
                   "--confidence", level, "-o", path)
            browser().open("about:blank")
            self.show(path)
            self.assert_same_text(files, "--confidence", level)
            self.assert_totals(files, level)
        self.assert_quiet()

    @harness.nightly_too
    def test_every_view(self):
        path, *files = self.gated()
        self.show(path)
        for view in VIEWS[:harness.rounds(3, 5)]:
            self.show(path, "" if view == "alloc" else f"view={view}")
            want = self.assert_changes(files, view, "--view", view)
            # What is a leak goes by age: none on a machine that was stalled.
            if view != "leaks":
                self.assertGreater(len(want), 0, view)
            if view == "alloc":
                told = {n for n, row in want.items() if row["is_told"]}
                self.assertLessEqual({"site_a", "site_b", "site_d", "site_e"},
                                     told)
        self.assert_quiet()

    @harness.nightly_too
    def test_levels_and_periods(self):
        path, old, new = self.pair(
            ("program_gated", OLD, {"period": "4K"}),
            ("program_gated", NEW, {"period": "16K"}))
        for level in ("90", "99", "99.9")[:harness.rounds(1, 3)]:
            report("export", "html", new, "--base", old, "--confidence", level,
                   "-o", path)
            browser().open("about:blank")
            self.show(path)
            self.assert_changes((old, new), level, "--confidence", level)
            self.assert_totals((old, new), level)
        self.assertIn("different sampling periods: 4.00 KiB, 16.0 KiB",
                      self.text("notes"))

    @harness.nightly
    def test_renamed(self):
        path, *files = self.pair(
            ("program_gated", OLD, {"period": "4K", "seed": "3"}),
            ("program_gated_renamed", OLD, {"period": "4K", "seed": "4"}))
        browser().open("about:blank")
        self.show(path)
        self.assert_changes(files, "renamed",
                            renamed=[("site_c", "site_renamed")])
        self.assertIn("taken for renamed: site_c → site_renamed",
                      self.text("notes"))
        self.assert_quiet()

    @harness.nightly
    def test_overloads(self):
        """Also where one side has but one of them."""
        program = "program_gated_lambdas-g"
        path, *files = self.pair(
            (program, ("9000", "1000", "5000", "0"), {"period": "1K"}),
            (program, ("9000", "2000", "5000", "3000"), {"period": "1K"}))
        browser().open("about:blank")
        self.show(path)
        want = self.assert_changes(files, "overloads")
        self.assertLessEqual(
            {"shop::Cart::add(long)", "shop::Cart::add(double)",
             "main::{lambda(long)#2}::operator()"}, set(want))
        self.assertEqual(float(
            self.changes(0)["shop::Cart::add(double)"]["old"]), 0)
        self.assert_quiet()

    def shown_marks(self):
        """Names of the table to the first character of their change, and to
        the percent."""
        return dict(browser().run(
            "[...document.querySelectorAll('#changes tbody tr')].map((r) =>"
            "[r.querySelector('button').textContent,"
            "[...r.cells].slice(3, 5).map((c) => c.textContent)])"))

    def test_names_on_one_side(self):
        """Marked with the diff's mark, in its words."""
        files = []
        for seed, sites in (("1", OLD), ("2", NEW)):
            program = os.path.join(self.dir, seed, "app")
            os.mkdir(os.path.dirname(program))
            shutil.copy(harness.target("program_gated"), program)
            run = self.execute(program, *sites, period="4K", seed=seed)
            run.profile().require_samples(100)
            files.append(run.paths[0])
        os.remove(os.path.join(self.dir, "1", "app"))
        path = os.path.join(self.dir, "p.html")
        report("export", "html", files[1], "--base", files[0], "-o", path)
        browser().open("about:blank")
        self.show(path)
        want = self.assert_changes(files, "names")
        lost = {n for n, row in want.items() if not row["is_comparable"]}
        self.assertLessEqual({"site_a", "site_b", "[unknown]"}, lost)
        words = ("functions with names in only some runs cannot be "
                 "compared: ? marks them")
        self.assertIn(words, self.text("notes"))
        self.assertIn(words, " ".join(
            report("diff", *files).split()))
        marks = self.shown_marks()
        for name in lost:
            self.assertEqual([text[0] for text in marks[name]], ["?", "?"], name)
        self.show(path, "view=live")
        self.assert_changes(files, "names, live", "--view", "live")
        self.assert_quiet()

    @harness.nightly
    def test_other_inlining(self):
        """What moved from a function that was inlined to its caller."""
        objects = ("20000", "20000", "20000", "10000")
        path, *files = self.pair(
            ("program_gated_lambdas-g", objects, {"period": "1K"}),
            ("program_gated_lambdas-g0", objects, {"period": "1K"}))
        # programs of two names: main is the same function all the same
        browser().open("about:blank")
        self.show(path)
        want = self.assert_changes(files, "inlining")
        moved = [n for n, row in want.items() if not row["is_comparable"]]
        self.assertIn("main", moved)
        marks = self.shown_marks()
        for name in want:
            self.assertEqual(marks[name][0][0] == "?", name in moved, name)
        self.assertIn("other inlining, build flags or code that moved: "
                      f"{len(moved)} rows marked ? have bytes that "
                      "callers or callees had before", self.text("changed"))
        self.assert_quiet()

    @harness.nightly
    def test_nothing_changed(self):
        path, old, _ = self.gated()
        copy = os.path.join(self.dir, "copy.sprof")
        with open(old, "rb") as source, open(copy, "wb") as to:
            to.write(source.read())
        report("export", "html", copy, "--base", old, "-o", path)
        browser().open("about:blank")
        self.show(path)
        rows = self.changes(0)
        self.assertGreater(len(rows), 3)
        for name, row in rows.items():
            self.assertEqual((float(row["value"]), row["told"]), (0, "false"),
                             name)
        self.assertIn("0 of ", self.text("changed"))
        self.assert_quiet()

    def test_exact(self):
        """Period 1: every difference is exact, and none of them noise."""
        path, *files = self.pair(("program_gated", OLD, {"period": "1"}),
                                 ("program_gated", NEW, {"period": "1"}))
        browser().open("about:blank")
        self.show(path)
        self.assert_changes(files, "exact")
        got = self.changes(0)
        self.assertEqual(float(got["site_a"]["value"]), 20000 * 48)
        self.assertEqual(got["site_a"]["lo"], got["site_a"]["hi"])
        self.assertEqual(float(got["site_d"]["value"]), -4000 * 32)
        self.show(path, "metric=objects")
        got = self.changes(0)
        self.assertEqual(float(got["site_b"]["value"]), -4500)
        self.assertEqual(float(got["site_f"]["value"]), 1000)
        self.assert_quiet()


class Use(PairCase):
    """What a user sees and does."""

    def setUp(self):
        super().setUp()
        self.path, self.old, self.new = self.gated()
        browser().open("about:blank")
        self.show(self.path)

    def tips(self):
        """Frame names to (text of the tooltip, colour of the frame), from
        going through the graph."""
        return browser().run(
            "(() => { const f = document.getElementById('flame');"
            "f.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const r = f.getBoundingClientRect(), found = {};"
            "const g = f.querySelector('canvas').getContext('2d');"
            "const t = document.getElementById('tip');"
            "for (let y = r.top + 4; y < r.bottom; y += 19)"
            "for (let x = r.left + 4; x < r.right; x += 6) {"
            "f.dispatchEvent(new PointerEvent('pointermove',"
            "{clientX: x, clientY: y}));"
            "if (t.hidden) continue;"
            "const name = t.querySelector('strong').textContent;"
            "found[name] ||= [t.textContent, [...g.getImageData("
            "x - r.left, y - r.top, 1, 1).data]]; } return found; })()")

    def test_head(self):
        data = [json.loads(report("--json", path))
                for path in (self.old, self.new)]
        cards = self.text("cards")
        self.assertIn("→", cards)
        self.assertIn("Allocated, exact", cards)
        shown = browser().run(
            "[...document.querySelectorAll('#cards .figure')].map("
            "(e) => e.textContent)")
        self.assertEqual(
            shown[1], " → ".join(f"{d['exact']['alloc_objects']:,}"
                                 for d in data))
        facts = self.text("facts")
        self.assertRegex(facts, r"(?s)old: pid.*\nnew: pid")
        self.assertEqual(self.text("method").count("one sample in 4.00 KiB"), 2)
        self.assertRegex(self.text("chosen"),
                         r" → .*\+.* %.*everything that was allocated")

    def test_tooltips(self):
        tips = self.tips()
        grew = tips["site_a"][0]
        self.assertRegex(grew, r"iB → [0-9.]+ .iB\+[0-9.]+ .iB")
        self.assertRegex(grew,
                         r"\[\+[0-9.,]+( .iB)?, \+[0-9.,]+( .iB)?\]( .iB)?")
        self.assertNotIn("noise", grew)
        self.assertIn("gone", tips["site_d"][0])
        self.assertIn("new", tips["site_e"][0])
        self.assertIn("~", tips["site_f"][0])
        self.assertIn("cannot be told from noise", tips["site_f"][0])
        # Red grew, blue shrank, and neither is what is noise.
        red, _, blue, _ = tips["site_a"][1]
        self.assertGreater(red, blue + 40, tips)
        red, _, blue, _ = tips["site_b"][1]
        self.assertGreater(blue, red + 40, tips)
        red, _, blue, _ = tips["site_f"][1]
        self.assertLess(abs(red - blue), 12, tips)

    def test_inputs(self):
        """Each side is the page of its own, with the other's names."""
        for side, path in (("old", self.old), ("new", self.new)):
            browser().run(
                f"document.querySelector('[data-side={side}]').click()")
            self.until(f"location.hash.includes('side={side}')")
            browser().run("location.hash += '&sort=cum&all=true'")
            self.until("document.body.dataset.shown.includes('all=true')")
            want = {f["name"]: f["flat_bytes"]["value"] for f in json.loads(
                report("--json", path))["functions"]}
            got = {name: row[0][0] for name, row in self.rows().items()}
            self.assertEqual(set(got), set(want), side)
            for name, value in want.items():
                self.assertLessEqual(abs(got[name] - value),
                                     1e-7 * max(value, 1), (side, name))
            self.assertGreater(self.box("timeline")[3], 50)
            self.assertIn("gated", self.text("program"))
            self.assertNotIn("→", self.text("program"))
        browser().run("document.querySelector('[data-side=diff]').click()")
        self.until("!location.hash.includes('side')")
        self.assertEqual(self.box("timeline")[3], 0)
        self.assertGreater(len(self.changes(1)), 5)
        browser().run("history.back()")
        self.until("location.hash.includes('side=new')")
        self.assertGreater(self.box("timeline")[3], 50)
        self.assert_quiet()

    def test_search_sort_and_focus(self):
        self.show(self.path, "search=site_%5Bab%5D")
        self.assertEqual(set(self.changes(1)), {"site_a", "site_b"})
        self.assertIn("→", self.text("matched"))
        self.show(self.path, "sort=name&descending=false")
        names = list(self.changes(1))
        self.assertEqual(names, sorted(names))
        self.show(self.path)
        told = [row["told"] for row in self.changes(0).values()]
        self.assertEqual(told, sorted(told, reverse=True))
        browser().run("[...document.querySelectorAll('#changes tbody button')]"
                      ".find((b) => b.textContent == 'site_b').click()")
        self.until("location.hash.includes('focus')")
        self.assertIn("callees of site_b", self.text("around"))
        browser().key("i", "i")
        self.until("location.hash.includes('inverted')")
        browser().key("m", "m")
        self.until("location.hash.includes('objects')")
        self.assertIn("objects", self.text("chosen"))
        self.assert_quiet()

    def test_refusals(self):
        out = os.path.join(self.dir, "no.html")
        for args, code, why in (
                (("pprof", self.new, "--base", self.old), 2, "--base"),
                (("html", self.new, "--base", self.new + "x"), 1, "x"),
                (("html", self.new, "--base", ""), 2, "a path")):
            self.assertIn(why, report("export", *args, "-o", out, code=code))
            self.assertFalse(os.path.exists(out))


class Unlike(PairCase):
    """Pairs that are hard to compare say so."""

    @harness.nightly
    def test_notes(self):
        path, *_ = self.pair(
            ("program_gated", OLD, {"period": "4K"}),
            ("program_page_stacks", ("9000",), {"period": "4K", "frees": "off"}))
        self.show(path)
        notes = self.text("notes")
        self.assertIn("different programs: program_gated, program_page_stacks", notes)
        self.assertIn("new has no frees", notes)
        self.assertEqual(browser().run(
            "[...document.querySelectorAll('#views button')].filter("
            "(b) => !b.hidden).length"), 1)
        self.assertIn("→ program_page_stacks", self.text("program"))
        self.assert_quiet()

    def test_markup(self):
        name = "</script><script>document.title=2</script>"
        path, *_ = self.pair(
            ("program_page_stacks", ("200", name), {"period": "1"}),
            ("program_page_stacks", ("300", name), {"period": "1"}))
        with open(path, encoding="utf-8") as file:
            page = file.read()
        self.assertNotIn("<img", page)
        self.assertEqual(page.count("</script>"), 2)
        self.show(path, "search=img%20src")
        self.assertEqual({n.strip('"') for n in self.changes(1)},
                         {"</script><img src=x onerror=document.title=1>"})
        self.assertTrue(browser().run("document.title").endswith("sampleprof"))
        self.assertEqual(browser().run("document.images.length"), 0)
        self.assert_quiet()


@harness.nightly
class Many(PairCase):
    """About as fast as src/README.md says, in CPU time of the page: a core that
    is shared makes that half as long again."""

    def test_many_stacks(self):
        path, *_ = self.pair(
            ("program_page_stacks", (str(STACKS),), {"period": "1"}),
            ("program_page_stacks", (str(STACKS + 500),), {"period": "1"}))
        self.assertLess(os.path.getsize(path), 8 << 20)
        opened = self.open_cpu_s(path, 3)
        print(f"open: {opened * 1000:.0f} ms of CPU; "
              f"{os.path.getsize(path)} bytes", file=sys.stderr)
        self.assertLess(opened, 3)
        self.assert_quiet()
