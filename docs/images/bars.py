#!/usr/bin/env python3
"""Draws the bar charts of docs/performance.md from its tables: docs/images/bars.py

A picture is drawn from the table that follows it: names from the first column, lengths from the
second. The first row is ours.
"""
import html
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
PICTURE = re.compile(r"!\[(?P<title>[^]]*)\]\(images/(?P<file>[\w-]+\.svg)\)\n\n"
                     r"\|[^|\n]*\| (?P<unit>[^|\n]*) \|.*\n\|[-|]*\n(?P<rows>(?:\|.*\n)+)")
WIDTH, LEFT, BAR, STEP = 720, 270, 24, 38
STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #24292f }
  .ours { fill: #1f6feb } .theirs { fill: #8c959f }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .theirs { fill: #6e7681 } }"""


def chart(title, unit, rows):
    values = [float(value.replace(",", "")) for _, value in rows]
    scale = (WIDTH - LEFT - 130) / max(values)
    height = STEP * len(rows) + 10
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
             f'width="{WIDTH}" height="{height}" role="img" aria-label="{html.escape(title)}">',
             f"<title>{html.escape(title)}</title>", f"<style>{STYLE}\n</style>"]
    for i, ((name, text), value) in enumerate(zip(rows, values)):
        y = i * STEP + 8
        end = LEFT + max(2, round(value * scale))
        lines += [
            f'<text x="{LEFT - 10}" y="{y + 17}" text-anchor="end">{html.escape(name)}</text>',
            f'<rect class="{"theirs" if i else "ours"}" x="{LEFT}" y="{y}" '
            f'width="{end - LEFT}" height="{BAR}" rx="3"/>',
            f'<text x="{end + 8}" y="{y + 17}">{text} {html.escape(unit)}</text>']
    return "\n".join(lines + ["</svg>", ""])


for found in PICTURE.finditer((HERE.parent / "performance.md").read_text()):
    cells = [row.strip("|").split("|") for row in found["rows"].splitlines()]
    rows = [(c[0].strip().replace("`", ""), c[1].strip()) for c in cells]
    (HERE / found["file"]).write_text(chart(found["title"], found["unit"], rows))
