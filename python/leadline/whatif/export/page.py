"""A report as one self-contained page: where the step goes, what would change it and by how much, with ranges drawn.

No script and nothing fetched: the page opens anywhere and prints. Colours are told apart by text beside them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from leadline.units import change, duration, percent
from leadline.whatif.advice import advice
from leadline.whatif.ledger import Row
from leadline.whatif.predict import Prediction, Report

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #2f8f4e; }
:root { --work: #3b7dd8; --wait: #d08a1d; --residual: #b3423a; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } th, td { padding: .25rem .6rem; text-align: right; }
th { border-bottom: 1px solid var(--line); font-weight: 600; } td { border-bottom: 1px solid var(--line); }
.text { text-align: left; } .bar { display: flex; height: 1.6rem; border: 1px solid var(--line); overflow: hidden; }
.bar i { display: block; height: 100%; border-right: 1px solid #fff8; box-sizing: border-box; }
.work { background: var(--work); } .wait { background: var(--wait); } .residual { background: var(--residual); }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .4em; }
svg { width: 100%; min-width: 14rem; height: 1.2rem; display: block; } .muted { opacity: .7; }
.numbered { list-style: none; padding: 0; } .numbered li { margin: .4rem 0; }
.strips { width: 80%; } .strips svg { height: .7rem; background: #8881; margin: 1px 0; }
"""
_LEAST, _MOST = 0.1, 10.0
"""Gains that the drawn ranges reach from and to at most; beyond they are cut."""


def html_page(report: Report, critical: Sequence[tuple[str, float]] = (), timelines: str = "") -> str:
    """The page. `critical`: kinds of tasks on the critical path with their shares; `timelines`: what `strips` draws."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>What if</title><style>{_STYLE}</style><h1>What if</h1>",
        f"<p>A step takes <b>{duration(report.measured_ns)}</b> (measured over {len(report.steps)} "
        f"step{'s' if len(report.steps) != 1 else ''}); replayed {duration(report.replayed_ns)}, model "
        f"error (without recorded gaps) "
        f"{change(report.causal_error)}.</p>",
        *(_ledger(report.ledger) if report.ledger else ()),
        *(_critical(critical) if critical else ()),
        *(_table(report.scenarios, report.coverage) if report.scenarios else ()),
        timelines,
        _list("Advice", advice(report) if report.scenarios else (), "numbered"),
        _list("Warnings", report.warnings),
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _ledger(rows: Sequence[Row]) -> list[str]:
    total = sum(row.spent_ns for row in rows) or 1.0
    bar = "".join(
        f"<i class={escape(row.sort)} "
        f"style='width:{row.spent_ns / total:.3%};opacity:{0.4 + 0.6 * row.confidence:.2f}' "
        f"title='{escape(_said(row, total), quote=True)}'></i>"
        for row in rows
    )
    lines = [
        f"<tr><td class=text><span class='key {escape(row.sort)}'></span>{escape(row.sort)}<td class=text>"
        f"{escape(row.name)}<td>{duration(row.spent_ns)}<td>{percent(row.spent_ns / total)}"
        f"<td>{percent(row.confidence)}"
        for row in rows
        if row.spent_ns >= 0.0005 * total
    ]
    return [
        "<h2>Where the step goes</h2>", f"<div class=bar role=img aria-label='the step by ledger row'>{bar}</div>",
        "<table><tr><th class=text>sort<th class=text>what<th>time<th>share<th>as long as usual", *lines, "</table>",
    ]  # fmt: skip


def _said(row: Row, total: float) -> str:
    return f"{row.sort}: {row.name}, {duration(row.spent_ns)} ({percent(row.spent_ns / total)})"


def _critical(shares: Sequence[tuple[str, float]]) -> list[str]:
    shown = [(name, share) for name, share in shares if share >= 0.005]
    text = ", ".join(f"{escape(name)} {percent(share)}" for name, share in shown)
    bar = "".join(
        f"<i class=work style='width:{share:.2%};opacity:{1 - 0.25 * min(place, 3):.2f}' "
        f"title='{escape(name, quote=True)} {percent(share)}'></i>"
        for place, (name, share) in enumerate(shown)
    )
    return [
        f"<h2>Critical path</h2><div class=bar role=img aria-label='the critical path by kind'>{bar}</div><p>{text}</p>"
    ]


def _table(predictions: Sequence[Prediction], coverage: str) -> list[str]:
    gains = [gain for found in predictions for gain in (found.low_gain, found.high_gain) if gain > 0]
    scale = (max(min([*gains, 0.8]) / 1.05, _LEAST), min(max([*gains, 1.25]) * 1.05, _MOST))
    lines = [
        f"<tr><td class=text>{escape(found.title)}<td>{duration(found.predicted_ns)}<td>{duration(found.low_ns)} to "
        f"{duration(found.high_ns)}<td>{found.speedup:.2f}x<td class=text>{_drawn(found, scale)}<td class=text>"
        f"{escape(found.verdict)}"
        for found in predictions
    ]
    return [
        "<h2>What would change it</h2>",
        "<table><tr><th class=text>what if<th>step<th>range<th>gain<th class=text>range of the gain "
        f"({scale[0]:.2g}x to {scale[1]:.2g}x; line: no change)"
        "<th class=text>verdict", *lines, "</table><p class=muted>{escape(coverage)}</p>",
    ]  # fmt: skip


def _drawn(found: Prediction, scale: tuple[float, float]) -> str:
    """The range of a gain as a line with a mark, on a logarithmic scale."""
    low, gain, high = (_place(value, scale) for value in (found.low_gain, found.speedup, found.high_gain))
    none = _place(1.0, scale)
    colour = "var(--good)" if found.verdict == "likely" else "currentColor"
    label = f"{found.low_gain:.2f}x to {found.high_gain:.2f}x"
    return (
        f"<svg viewBox='0 0 200 16' preserveAspectRatio=none role=img aria-label='{label}'><title>{label}</title>"
        f"<line x1={none:.1f} x2={none:.1f} y1=0 y2=16 stroke='var(--line)'/>"
        f"<line x1={low:.1f} x2={max(high, low + 1):.1f} y1=8 y2=8 stroke='{colour}' stroke-width=3 />"
        f"<rect x={gain - 0.6:.1f} y=2 width=1.2 height=12 fill='{colour}'/></svg>"
    )


def _place(gain: float, scale: tuple[float, float]) -> float:
    least, most = math.log(scale[0]), math.log(scale[1])
    value = math.log(gain) if gain > 0 and math.isfinite(gain) else most
    return 200 * (min(max(value, least), most) - least) / (most - least)


def _list(title: str, texts: Sequence[str], style: str = "") -> str:
    items = "".join(f"<li>{escape(text)}" for text in texts)
    return f"<h2>{title}</h2><ul class='{style}'>{items}</ul>" if texts else ""
