"""Findings of `leadline analyze` as text, markdown, JSON, SARIF and HTML: one file each, found in `FORMATS`."""

from __future__ import annotations

import json
from collections.abc import Callable

from leadline.analysis.findings import Findings, as_object
from leadline.report.findings.html import as_html
from leadline.report.findings.markdown import as_markdown
from leadline.report.findings.sarif import as_sarif
from leadline.report.findings.text import as_text

__all__ = ["FORMATS", "as_html", "as_json", "as_markdown", "as_sarif", "as_text"]


def as_json(found: Findings) -> str:
    """Pure ASCII with stable keys; ends with a newline."""
    return json.dumps(as_object(found), indent=2, allow_nan=False) + "\n"


FORMATS: dict[str, Callable[[Findings], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "json": as_json,
    "sarif": as_sarif,
    "html": as_html,
}
