"""The page: markup, style and script of the bundle that ui/ builds, around a profile that stands in it or that a local
server hands out.

Safety: names from the profile reach the page only inside its bytes (base64) and as JSON in which `<`, `>` and `&` are
escapes, and the script writes them only as text. The page's own content security policy allows exactly the one script
and the one style it was made with, and no connection but to the server it came from.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leadline import __version__
from leadline._dataclass import replace
from leadline.analysis import analysis_of
from leadline.analysis.analyze import quiet
from leadline.analysis.findings import Findings, as_object, from_object
from leadline.compare import Diff
from leadline.compare.align import align
from leadline.profiles import Profile, open_profile
from leadline.report.build import build_report
from leadline.report.changes import Changes, changes_object
from leadline.report.compared_tree import compared_tree
from leadline.report.comparison import comparison_object
from leadline.report.embedded import Embedded, embedded
from leadline.report.json_report import report_object
from leadline.report.model import Report, ReportOptions
from leadline.report.page_sources import PageSources
from leadline.report.source import visible
from leadline.report.whole_tables import as_json, whole_tables

_STORED_PATHS = 20
_STORED_ROWS = 200
_ASSETS = Path(__file__).parent / "assets"


def render_html(
    profile: Profile,
    report: Report,
    findings: Findings | None = None,
    sources: Mapping[str, str] | None = None,
    predicted: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The whole page as one ASCII-safe text that needs nothing else; its size is bounded by `embedded.MOST_BYTES`, the
    rows of `report`, the `sources` (text by file name) and the `predicted` timelines (of `report.predicted`) given."""
    held = embedded(profile)
    data = {
        "version": __version__,
        "names": [report.meta.file],
        "reports": [page_report(report, held)],
        "findings": [None if findings is None else page_findings(findings, held)],
        "sources": dict(sources or {}),
        **({"predicted": list(predicted)} if predicted else {}),
    }
    return _page(visible(report.meta.program), data, _profile_script(0, held.data), "", tuple(sources or ()))


def render_server_page(names: list[str], live: bool = False) -> str:
    """The page that asks the server it came from for its profiles; see `leadline.report.view`. `live`: it asks now
    and then whether there is more."""
    title = " and ".join(visible(name) for name in names)
    return _page(
        title, {"server": True, "version": __version__, "names": names, "live": live}, "", "; connect-src 'self'"
    )


def render_comparison(before: tuple[str, Profile], after: tuple[str, Profile], diff: Diff) -> str:
    """Two profiles, by name, as one page that opens on what changed: `diff`, which may be of more runs of each."""
    options = ReportOptions(top=_STORED_PATHS, frames=False, verdict=True, whole_tables=True)
    reports, findings, profiles, drawn = [], [], [], []
    for place, (name, profile) in enumerate((before, after)):
        held, found = embedded(profile), findings_of(profile)
        reports.append(page_report(build_report(profile, options, name, found), held))
        findings.append(None if found is None else page_findings(found, held))
        profiles.append(_profile_script(place, held.data))
        drawn.append(profile if held.row_of is None else _of_bytes(held.data))
    aligned = align(drawn, [False, True])
    data = {
        "version": __version__,
        "names": [before[0], after[0]],
        "reports": reports,
        "findings": findings,
        "sources": {},
        "compared": {"found": comparison_object(diff), "tree": compared_tree(aligned, *drawn)},
    }
    return _page(f"{visible(before[0])} and {visible(after[0])}", data, "".join(profiles), "")


def _of_bytes(data: bytes) -> Profile:
    """What the page holds of a profile too large for one, as its reader sees it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "held.leadline"
        file.write_bytes(data)
        return open_profile(file)


def _profile_script(place: int, data: bytes) -> str:
    return f'<script type="text/plain" id="profile-{place}">{base64.b64encode(data).decode()}</script>'


def render_changes(found: Changes) -> str:
    """An answer about changes as the same page, without a profile."""
    data = {"version": __version__, "changes": changes_object(found)}
    return _page(f"{found.title}: {visible(found.program)}", data, "", "")


def page_report(report: Report, held: Embedded | None = None) -> dict[str, Any]:
    """The report without what the page makes of the profile itself; paths point into the tree that the page holds."""
    shown = report_object(report)
    for path in shown["paths"] + [
        path for peak in (shown["memory"] or {"peaks": []})["peaks"] for path in peak["paths"]
    ]:
        del path["frames"]
        if held is not None:
            path["node"] = held.row(path["node"])
    if held is not None and shown["start"] is not None:
        _moved(shown["start"], held)
    shown["operators"] = shown["modules"] = []  # the page shows `tables`
    shown["tables"] = as_json(report.tables) if report.tables is not None else None
    return shown


def stored_report(profile: Profile, found: Findings, file: str) -> dict[str, Any]:
    """What a profile keeps of its report for viewers without Python: of bounded size."""
    options = ReportOptions(top=_STORED_PATHS, frames=False, verdict=True)
    report = build_report(profile, options, file, found)
    tables = whole_tables(analysis_of(profile), np.ones(len(profile.tree), np.bool_), _STORED_ROWS)
    shown = page_report(replace(report, tables=tables))
    shown["findings"] = None  # which the file has beside it
    return shown


def _moved(start: dict[str, Any], held: Embedded) -> None:
    """Nodes of the start page as rows of the tree that the page holds."""
    parts = [part for bar in start["bars"] for part in bar["parts"]]
    for one in (start, *parts, *start["ranks"], *start["where"], *start["kernels"]):
        one["node"] = held.row(one["node"]) if one["node"] >= 0 else -1
    for one in start["help"]:
        one["nodes"] = [held.row(node) for node in one["nodes"]]


def page_findings(findings: Findings, held: Embedded | None = None) -> dict[str, Any]:
    """Findings whose paths point into the tree that the page holds."""
    shown = as_object(findings)
    if held is not None:
        for one in shown["findings"]:
            one["paths"] = [held.row(row) for row in one["paths"]]
    return shown


def findings_of(profile: Profile) -> Findings | None:
    """Those saved in the file, or what the analyzer says now; None where it fails: a page without findings is better
    than none, and `leadline analyze` says what is wrong."""
    saved = profile.meta.get("findings")
    try:
        return from_object(saved) if isinstance(saved, Mapping) else quiet(profile)
    except Exception:
        return None


def sources_of(profile: Profile) -> dict[str, str]:
    """The user's own files, as far as they are still what ran."""
    return PageSources(profile).users()


def embedded_json(data: object) -> str:
    """JSON that cannot end the script element it stands in, nor start a comment or a string literal's line break."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # ASCII only: U+2028 is an escape already
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _page(title: str, data: object, profiles: str, more_policy: str, sources: Sequence[str] = ()) -> str:
    style = (_ASSETS / "page.css").read_text(encoding="utf-8")
    script = (_ASSETS / "page.js").read_text(encoding="utf-8")
    template = (_ASSETS / "page.html").read_text(encoding="utf-8")
    parts = {
        "TITLE": html.escape(title),
        "POLICY": f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        f"img-src data:; base-uri 'none'; form-action 'none'{more_policy}",
        "STYLE": style,
        "SCRIPT": script,
        "DATA": embedded_json(data),
        "PROFILES": profiles,
        "EMBEDDED": _embedded(sources),
    }
    pieces = template.split("@@")  # text, name, text, name, ..., text: each part is put in once, never searched again
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def _embedded(sources: Sequence[str]) -> str:
    """What of the reader's files stands in the page, for whoever sends it on."""
    if not sources:
        return ""
    items = "".join(f"<li>{html.escape(visible(file))}</li>" for file in sources)
    count = "1 source file is" if len(sources) == 1 else f"{len(sources)} source files are"
    return f'<details id="embedded"><summary>{count} in this page</summary><ul>{items}</ul></details>'


def _hash(text: str) -> str:
    """The source expression of a content security policy that allows exactly this inline text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
