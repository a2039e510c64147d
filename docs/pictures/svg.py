# SPDX-License-Identifier: MIT
"""As much of SVG as the pictures need.  Colours follow the reader's light or
dark scheme; the background is part of the picture, so that it can be read
where a page does not follow."""

import math
from xml.sax.saxutils import escape

LIGHT = {"paper": "#ffffff", "ink": "#1f2328", "soft": "#59636e",
         "grid": "#d8dee4", "one": "#0b62c4", "two": "#c2410c",
         "band": "#dbe9fb"}
DARK = {"paper": "#0d1117", "ink": "#e6edf3", "soft": "#9aa4af",
        "grid": "#30363d", "one": "#6cb2ff", "two": "#ff9b57",
        "band": "#17304f"}

SHAPES = """\
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans",
       sans-serif }
text.title { font-weight: 600; font-size: 15px }
path { fill: none; stroke-width: 2 }
"""

# Plain rules: not every viewer knows variables.
COLOURS = """\
text {{ fill: {ink} }} text.soft {{ fill: {soft} }}
.paper {{ fill: {paper} }} .band {{ fill: {band} }}
circle.one {{ fill: {one} }} circle.two {{ fill: {two} }}
circle.hollow {{ fill: {paper}; stroke: {one}; stroke-width: 2 }}
line.grid {{ stroke: {grid} }} line.axis {{ stroke: {soft} }}
line.ink {{ stroke: {ink} }}
line.one, path.one {{ stroke: {one} }} line.two {{ stroke: {two} }}
"""

STYLE = (SHAPES + COLOURS.format(**LIGHT) +
         "@media (prefers-color-scheme: dark) {\n" +
         COLOURS.format(**DARK) + "}\n")


def number(value):
    return f"{value:.1f}".rstrip("0").rstrip(".")


class Picture:
    """A sheet; x to the right and y downward, in pixels."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.parts = []

    def add(self, name, css, text=None, **attributes):
        shown = "".join(
            f' {k.replace("_", "-")}="'
            f'{number(v) if isinstance(v, (int, float)) else escape(v)}"'
            for k, v in attributes.items())
        end = "/>" if text is None else f">{escape(text)}</{name}>"
        self.parts.append(f'<{name} class="{css}"{shown}{end}')

    def line(self, x1, y1, x2, y2, css="grid", width=1, **more):
        self.add("line", css, x1=x1, y1=y1, x2=x2, y2=y2,
                 stroke_width=width, **more)

    def text(self, x, y, text, css="", anchor="start"):
        self.add("text", css, text, x=x, y=y, text_anchor=anchor)

    def dot(self, x, y, css="one", radius=3.0):
        self.add("circle", css, cx=x, cy=y, r=radius)

    def curve(self, points, css):
        steps = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self.add("path", css, d=f"M{steps}")

    def area(self, upper, lower, css="band"):
        points = list(upper) + list(reversed(list(lower)))
        self.add("polygon", css, points=" ".join(
            f"{number(x)},{number(y)}" for x, y in points))

    def render(self):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
                f'viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}">\n'
                f"<title>{escape(self.title)}</title>\n"
                f"<style>{STYLE}</style>\n"
                f'<rect class="paper" width="{self.width}" '
                f'height="{self.height}" rx="6"/>\n')
        return head + "\n".join(self.parts) + "\n</svg>\n"


class Scale:
    """From values to pixels, linear or logarithmic."""

    def __init__(self, low, high, start, end, log=False):
        self.map = math.log if log else float
        self.low, self.high = self.map(low), self.map(high)
        self.start, self.end = start, end

    def __call__(self, value):
        part = (self.map(value) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)


class Chart:
    """Axes with labelled ticks around a part of a picture."""

    def __init__(self, picture, x, y):
        self.picture, self.x, self.y = picture, x, y

    def x_axis(self, ticks, label=None, grid=True):
        """`ticks`: {value: text}"""
        p, bottom, top = self.picture, self.y.start, self.y.end
        for value, text in ticks.items():
            at = self.x(value)
            if grid:
                p.line(at, bottom, at, top)
            p.text(at, bottom + 18, text, "soft", "middle")
        p.line(self.x.start, bottom, self.x.end, bottom, "axis")
        if label:
            p.text((self.x.start + self.x.end) / 2, bottom + 40, label,
                   "soft", "middle")

    def y_axis(self, ticks, grid=True):
        p, left, right = self.picture, self.x.start, self.x.end
        for value, text in ticks.items():
            at = self.y(value)
            if grid:
                p.line(left, at, right, at)
            p.text(left - 8, at + 4, text, "soft", "end")
