"""What a profile shows of itself in a notebook: the summary of its report, without scripts or outside files."""

from __future__ import annotations

import html

from leadline.profiles import Profile
from leadline.report import ReportOptions, build_report
from leadline.report.text import render_text

_STYLE = "font:12px/1.4 ui-monospace,monospace;overflow-x:auto;margin:0;white-space:pre"


def profile_html(profile: Profile) -> str:
    """The text report of `profile` in one element; never raises, since a notebook would then show nothing at all."""
    try:
        text = render_text(build_report(profile, ReportOptions(top=5, verdict=True)))
    except ValueError as error:
        text = str(error)
    return f'<div class="leadline"><pre style="{_STYLE}">{html.escape(text)}</pre></div>'
