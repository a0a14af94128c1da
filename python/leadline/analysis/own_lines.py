"""Findings stand at lines that a user can edit: the program's own, and a library's only where none is known."""

from __future__ import annotations

from leadline._dataclass import replace
from leadline.analysis.calls_in_source import unique_lines
from leadline.analysis.case import Case
from leadline.analysis.findings import Finding


def own_line_first(case: Case, one: Finding) -> Finding:
    """The finding with a line of the program's first: one that it names beside the library's, else one that calls what
    it is about."""
    if not one.lines or case.is_own(one.lines[0].file):
        return one
    calling = (case.line(row) for row in one.paths[:20])
    own = [line for line in one.lines if case.is_own(line.file)]
    own = own or [line for line in calling if line is not None and case.is_own(line.file)][:1]
    if not own:
        return one
    at = one.change_at if one.change_at is not None and case.is_own(one.change_at.file) else None
    return replace(one, lines=tuple(unique_lines((*own, *one.lines))), change_at=at)
