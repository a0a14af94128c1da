"""The report as one HTML file: markup, style, scripts and data in it, nothing fetched, so it opens anywhere and can
be sent on.

Safety: names from the profile reach the page only as JSON in which `<`, `>` and `&` are escapes, and the scripts
write them only as text. The page's own content security policy allows exactly the one script and the one style it was
made with, and no connection.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from pathlib import Path
from typing import Any

from leadline import __version__
from leadline.profiles import Profile
from leadline.report.flame import flame
from leadline.report.json_report import report_object
from leadline.report.model import Report
from leadline.report.phrases import METRIC_NAMES
from leadline.report.provenance import working_directory
from leadline.report.source import short_names, visible

_ASSETS = Path(__file__).parent / "assets"
SCRIPTS = (
    "format.js", "dom.js", "views.js", "flame.js", "origin.js", "details.js", "flame_page.js", "tables.js",
    "cards.js", "overview.js", "pages.js", "main.js",
)  # fmt: skip


def page_data(profile: Profile, report: Report) -> dict[str, Any]:
    """Everything the page shows. Paths point into the pruned tree, so they carry no frames of their own."""
    drawn = flame(profile.tree)
    shown = report_object(report)
    paths = shown["paths"] + [path for peak in (shown["memory"] or {"peaks": []})["peaks"] for path in peak["paths"]]
    for path in paths:
        path["node"] = int(drawn.kept_row[path["node"]])
        del path["frames"]
    files = short_names(drawn.data["frames"]["file"], working_directory(profile))
    return {
        "report": shown,
        "flame": drawn.data,
        "short_files": {file: name for file, name in files.items() if name != file},
        "metric_names": METRIC_NAMES,
        "version": __version__,
    }


def embedded_json(data: object) -> str:
    """JSON that cannot end the script element it stands in, nor start a comment or a string literal's line break."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # ASCII only: U+2028 is an escape already
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def render_html(profile: Profile, report: Report) -> str:
    """The whole page as ASCII-safe text; its size is bounded by `flame.MOST_NODES` and the rows of `report`."""
    style = (_ASSETS / "style.css").read_text(encoding="utf-8")
    script = "\n".join((_ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}\n}})();\n'
    template = (_ASSETS / "page.html").read_text(encoding="utf-8")
    parts = {
        "TITLE": html.escape(visible(report.meta.program)),
        "POLICY": f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:",
        "STYLE": style,
        "SCRIPT": script,
        "DATA": embedded_json(page_data(profile, report)),
    }
    pieces = template.split(
        "@@"
    )  # text, name, text, name, ..., text: each part is put in once and never searched again
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def _hash(text: str) -> str:
    """The source expression of a content security policy that allows exactly this inline text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
