"""Findings of `leadline analyze` as text, markdown, JSON, SARIF and HTML: one file each, loaded when used."""

from __future__ import annotations

import json
from collections.abc import Callable

from leadline.analysis.findings import Findings, as_object
from leadline.report.findings.text import as_text

__all__ = ["FORMATS", "as_html", "as_json", "as_markdown", "as_sarif", "as_text"]


def as_json(found: Findings) -> str:
    """Pure ASCII with stable keys; ends with a newline."""
    return json.dumps(as_object(found), indent=2, allow_nan=False) + "\n"


def as_markdown(found: Findings) -> str:
    """For a pull request or a wiki."""
    from leadline.report.findings.markdown import as_markdown

    return as_markdown(found)


def as_sarif(found: Findings) -> str:
    """For code scanning of a forge, or an editor."""
    from leadline.report.findings.sarif import as_sarif

    return as_sarif(found)


def as_html(found: Findings) -> str:
    """A page of its own."""
    from leadline.report.findings.html import as_html

    return as_html(found)


FORMATS: dict[str, Callable[[Findings], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "json": as_json,
    "sarif": as_sarif,
    "html": as_html,
}
