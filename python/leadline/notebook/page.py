"""What a profile shows of itself in a notebook: verdict and one step as a picture without scripts (all that a reader of
a stored notebook sees), then the whole page in a sandboxed frame, and the report as text."""

from __future__ import annotations

import html

from leadline.analysis.findings import Findings
from leadline.profiles import Profile
from leadline.report import Report, ReportOptions, build_report
from leadline.report.html import findings_of, render_html
from leadline.report.step_svg import step_svg
from leadline.report.text import render_text

_STYLE = "font:12px/1.4 ui-monospace,monospace;overflow-x:auto;margin:0;white-space:pre"
_FRAME = "width:100%;height:720px;border:1px solid #ccc;border-radius:6px"
MOST_PAGE = 4 << 20
"""Bytes of the page that a notebook is made to hold; of a larger profile it has the picture and the text."""


def profile_html(profile: Profile) -> str:
    """`profile` as one element; never raises, since a notebook would then show nothing at all."""
    try:
        found = findings_of(profile)
        report = build_report(profile, ReportOptions(top=5, verdict=True, whole_tables=True), found=found)
        text = html.escape(render_text(report))
    except ValueError as error:
        return f'<div class="leadline"><pre style="{_STYLE}">{html.escape(str(error))}</pre></div>'
    return (
        f'<div class="leadline">{_verdict(report)}{_frame(profile, report, found)}'
        f'<details><summary>as text</summary><pre style="{_STYLE}">{text}</pre></details></div>'
    )


def _verdict(report: Report) -> str:
    if report.verdict is None:
        return ""
    sentence = html.escape(report.verdict.sentence)
    picture = step_svg(report.start) if report.start is not None else ""
    return f"<p><b>{sentence}</b></p>{picture}"


def _frame(profile: Profile, report: Report, found: Findings | None) -> str:
    """The page where scripts may run, without access to the notebook around it."""
    page = render_html(profile, report, found)
    if len(page) > MOST_PAGE:
        return ""
    return f'<iframe sandbox="allow-scripts" style="{_FRAME}" title="Leadline" srcdoc="{html.escape(page)}"></iframe>'
