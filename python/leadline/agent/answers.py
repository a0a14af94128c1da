"""What the tools of `leadline mcp` say: text of bounded size, and a sentence instead of any error.

Files are read only where they are profiles or belong to the user's code in one; nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from leadline.analysis.sourcecode import hashes
from leadline.compare import CompareError, compare
from leadline.opening import open_any
from leadline.profiles import Profile, ProfileFileError
from leadline.query import QueryError, query
from leadline.report import ReportOptions, build_report
from leadline.report.answer import json_answer
from leadline.report.comparison import text_comparison
from leadline.report.findings import as_json
from leadline.report.text import render_text
from leadline.sources import readable_source
from leadline.trace.tables import TraceError
from leadline.verdict import as_object
from leadline.whatif import GraphError, ScenarioError, load, predict, rank
from leadline.whatif.render import as_text

MOST_CHARACTERS = 20_000
MOST_ROWS = 100
_AROUND = 20


class AnswerError(ValueError):
    """A sentence for the agent."""


_FORESEEN = (AnswerError, ProfileFileError, QueryError, CompareError, TraceError, GraphError, ScenarioError, ValueError)


def bounded(answer: Callable[[], str]) -> str:
    """The answer, cut where it is too long with a word about it; a foreseeable failure as its sentence."""
    try:
        text = answer()
    except _FORESEEN as error:
        raise AnswerError(str(error)) from error
    except OSError as error:
        raise AnswerError(f"Cannot read {error.filename}: {error.strerror}.") from error
    if len(text) <= MOST_CHARACTERS:
        return text
    return text[:MOST_CHARACTERS] + f"\n[truncated: {len(text) - MOST_CHARACTERS:,} more characters; ask for less]\n"


@lru_cache(maxsize=4)
def _kept(path: str, changed_ns: int) -> Profile:
    return open_any(path)


def opened(path: str) -> Profile:
    """A profile, kept while its file stays the same."""
    try:
        changed = Path(path).stat().st_mtime_ns
    except OSError:
        changed = 0
    return _kept(path, changed)


def summary(path: str, top: int = 10) -> str:
    return render_text(build_report(opened(path), ReportOptions(top=_rows(top), verdict=True), path))


def why(path: str) -> str:
    return json.dumps(as_object(opened(path).verdict), indent=1, allow_nan=False)


def findings(path: str) -> str:
    return as_json(opened(path).findings())


def ask(path: str, text: str, top: int = 30) -> str:
    return json_answer(query(opened(path), text), _rows(top))


def difference(before: list[str], after: list[str], top: int = 10) -> str:
    return text_comparison(compare([opened(one) for one in before], [opened(one) for one in after]), _rows(top))


def source(path: str, file: str, line: int) -> str:
    """Lines around `line` of a file that the profile names."""
    tree = opened(path).tree
    known = {tree.tables.strings[row] for row in set(tree.frames["file"].tolist())} - {""}
    found = sorted(one for one in known if one == file or one.endswith("/" + file))
    if not found:
        raise AnswerError(f"The profile has no frames in {file}; only files that were measured can be shown.")
    profile = opened(path)
    program = profile.meta.get("program")
    cwd = str(program.get("cwd") or "") if isinstance(program, dict) else ""
    text = readable_source(found[0], cwd, hashes(profile.meta))
    if text is None or text.changed:
        raise AnswerError(
            f"{found[0]} is neither the file that ran nor a source file below {Path.cwd()}, where this server started."
        )
    lines = text.data.decode("utf-8", "replace").splitlines()
    first = max(1, line - _AROUND)
    shown = [f"{number:>5}{'>' if number == line else ' '} {text[:300]}"
             for number, text in enumerate(lines[first - 1 : line + _AROUND], first)]  # fmt: skip
    return "\n".join([found[0], *shown]) + "\n"


def whatif(path: str, scenarios: list[str]) -> str:
    graph = load(path)
    return as_text(predict(graph, scenarios) if scenarios else rank(graph), ranked=not scenarios)


def _rows(top: int) -> int:
    return max(1, min(top, MOST_ROWS))
