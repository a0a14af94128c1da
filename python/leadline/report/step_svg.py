"""One step as a picture without scripts or outside files: a row for the phases, the critical thread, the device, whose
parts add up to the step. Waiting and idle parts are hatched, backward is striped, so no hue tells alone."""

from __future__ import annotations

import html

from leadline.names import cut
from leadline.report.start_model import Bar, BarPart, Start
from leadline.units import duration, percent

_COLOURS = {
    "forward": "#7fcfa9", "backward": "#b9c46b", "optimizer": "#f0a878", "data loading": "#7fd0dc", "data": "#7fd0dc",
    "products": "#84b6f7", "transforms": "#84b6f7", "decompositions": "#84b6f7", "matrix product": "#84b6f7",
    "convolution": "#84b6f7",
    "moves": "#e3a3c8", "copy": "#e3a3c8",
    "random": "#ef8a80", "python": "#f5c65b", "calling": "#f5c65b", "autograd": "#b9a5f2", "core": "#f2c14e",
    "device": "#ef8a80", "ranks": "#d39bea", "communication": "#d39bea", "compile": "#d39bea", "other": "#84b6f7",
}  # fmt: skip
_WIDTH, _NAME, _ROW, _GAP = 900, 150, 24, 6
_LETTER = 6.6
"""Width of a letter of 12 px, on average."""


def step_svg(start: Start) -> str:
    """A picture of `start.bars` of 900 px."""
    height = len(start.bars) * (_ROW + _GAP) + 22
    rows = [_row(bar, number * (_ROW + _GAP) + 20) for number, bar in enumerate(start.bars)]
    title = html.escape(f"one {start.of}, {duration(start.wall_ns)}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="{title}" font-family="system-ui, sans-serif" font-size="12">'
        '<defs><pattern id="leadline-wait" width="8" height="8" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="3" height="8" fill="#fff" fill-opacity=".45"/></pattern>'
        '<pattern id="leadline-back" width="6" height="8" patternUnits="userSpaceOnUse">'
        '<rect width="2" height="8" fill="#fff" fill-opacity=".3"/></pattern></defs>'
        f'<text x="0" y="12" fill="#667085">{title}</text>' + "".join(rows) + "</svg>"
    )


def _row(bar: Bar, y: int) -> str:
    name = html.escape(cut(bar.name, 20))
    drawn = [f'<text x="0" y="{y + 16}" fill="#667085">{name}</text>']
    x = float(_NAME)
    for part in bar.parts:
        width = part.share * (_WIDTH - _NAME)
        drawn.append(_part(part, x, y, width))
        x += width
    return "".join(drawn)


def _part(part: BarPart, x: float, y: int, width: float) -> str:
    words = f"{part.label} {percent(part.share)}"
    colour = "#d5dae3" if part.group in ("idle", "unexplained") else _COLOURS.get(part.key, "#b8bfca")
    box = f'x="{x:.2f}" y="{y}" width="{max(width, 0):.2f}" height="{_ROW}"'
    pattern = "wait" if part.group in ("wait", "idle") else "back" if part.key == "backward" else ""
    over = f'<rect {box} fill="url(#leadline-{pattern})"/>' if pattern else ""
    shown = words if len(words) * _LETTER + 10 < width else ""
    text = f'<text x="{x + 6:.2f}" y="{y + 16}" fill="#101828">{html.escape(shown)}</text>' if shown else ""
    tip = html.escape(f"{words}: {duration(part.ns)}")
    return f'<g><title>{tip}</title><rect {box} fill="{colour}"/>{over}{text}</g>'
