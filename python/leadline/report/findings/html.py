"""Findings as one HTML page without script, font or link to elsewhere; everything from the profile is escaped."""

from __future__ import annotations

from html import escape

from leadline.analysis.findings import Finding, Findings
from leadline.report.findings.words import gain_text, headline, label, line_text, silent_texts
from leadline.report.source import visible

_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
article { border: 1px solid #8886; border-left: .4rem solid #68a; border-radius: .4rem }
article { padding: .2rem 1rem; margin: 1rem 0 }
article.warning { border-left-color: #d80 }
h2 { font-size: 1.1rem; margin: .6rem 0 }
pre { background: #8882; padding: .4rem .6rem; overflow-x: auto; margin: .2rem 0 }
.rule { opacity: .7; font-weight: normal }
"""


def as_html(found: Findings) -> str:
    """A whole page."""
    silent = "".join(f"<li>{escape(text)}</li>" for text in silent_texts(found))
    notes = "".join(f"<p>{escape(visible(note))}</p>" for note in found.notes)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Findings</title>'
        f"<style>{_STYLE}</style></head><body><h1>Findings</h1><p>{escape(headline(found))}</p>"
        + "".join(_article(one) for one in found)
        + (f"<h2>Skipped rules</h2><ul>{silent}</ul>" if silent else "")
        + notes
        + "</body></html>\n"
    )


def _article(one: Finding) -> str:
    lines = "".join(
        f"<div>{escape(line_text(line))}</div>" + (f"<pre>{escape(visible(line.text))}</pre>" if line.text else "")
        for line in one.lines
    )
    evidence = "".join(f"<li>{escape(visible(text))}</li>" for text in one.evidence)
    return (
        f'<article class="{label(one)}"><h2>{escape(visible(one.title))} '
        f'<span class="rule">{label(one)}, {escape(one.rule)}</span></h2>{lines}<ul>{evidence}</ul>'
        f"<p><b>Do:</b> {escape(visible(one.remedy))}</p>"
        f"<p><b>Gain:</b> {escape(visible(gain_text(one)))}.</p></article>"
    )
