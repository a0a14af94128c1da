"""Part of `redundant_work`: operators that had their inputs before, by value, where `--tool same_inputs` has looked.

Shares are those of the operators' own times as the tool took them: reading all inputs makes the step itself longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from leadline._dataclass import dataclass, field
from leadline.analysis.columns import Mask
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.analysis.rules.words import listed
from leadline.units import percent

_TOOL, _TABLE, _ALL = "same_inputs", "called again with equal inputs", "in all"
_MOST = 0.5
"""Of the calls of an operator on a line: what is equal now and then is chance, or a loop that ends where it began."""


@dataclass
class _Line:
    file: str
    line: int
    ns: int = 0
    operators: set[str] = field(default_factory=set)


def equal_inputs(case: Case, rule: str, learn_more: str, share: float) -> list[Finding]:
    """Findings for lines whose operators take at least `share` of all with inputs that they had before."""
    lines: dict[tuple[str, int], _Line] = {}
    all_ns = 0
    for output in _outputs(case):
        rows = list(_rows(output))
        if output.get("name") == _ALL:
            all_ns += sum(_whole(row.get("time")) for row in rows)
            continue
        for row in rows:
            calls, again = _whole(row.get("calls")), _whole(row.get("again"))
            file, _, number = str(row.get("line", "")).rpartition(":")
            if _MOST * calls <= again <= calls and again and number.isascii() and number.isdigit():
                one = lines.setdefault((file, int(number)), _Line(file, int(number)))
                one.ns += _whole(row.get("time again"))
                one.operators.add(str(row.get("operator", "")))
    made: list[Finding] = []
    for one in sorted(lines.values(), key=lambda one: -one.ns):
        part = min(one.ns / all_ns, 1.0) if all_ns else 0.0
        if part < share or len(made) == 2:
            break
        rows_here = np.flatnonzero(_at_line(case, one))
        if not len(rows_here):
            continue  # not in the loop
        made.append(
            Finding(
                rule,
                Severity.WARNING,
                f"The same values are computed again, {percent(part)} of the operators' time",
                case.and_warm(
                    case.gain(part * case.loop.work_ns * case.loop.steps, (0.5, 0.9, 1), "the calls with equal inputs")
                ),
                tuple(rows_here[:20].tolist()),
                case.lines(rows_here[:1].tolist()),
                (f"{listed(sorted(one.operators))}: the inputs were those of an earlier call, byte by byte",),
                "Compute it once where its inputs are made, keep the result and pass it on.",
                learn_more,
                part,
            )
        )
    return made


def _at_line(case: Case, one: _Line) -> Mask:
    """Nodes of the loop whose user's line this is, of these operators."""
    users = case.analysis.scopes.user
    frames = case.tree.frame_of[np.maximum(users, 0)]
    here = case.operators(*one.operators) & case.lines_between(one.file, one.line, one.line) & (users >= 0)
    found: Mask = here & (case.tree.frames["line"][frames] == one.line)
    return found


def _outputs(case: Case) -> Iterator[dict[str, Any]]:
    """The tool's tables; of a damaged file less."""
    for record in case.profile.meta.get("processes") or ():
        for result in record.get("tools") or () if isinstance(record, dict) else ():
            if isinstance(result, dict) and result.get("tool") == _TOOL:
                outputs = result.get("outputs")
                yield from (one for one in outputs if isinstance(one, dict)) if isinstance(outputs, list) else ()


def _rows(output: dict[str, Any]) -> Iterator[dict[str, Any]]:
    columns, rows = output.get("columns"), output.get("rows")
    if output.get("name") not in (_TABLE, _ALL) or not isinstance(columns, list) or not isinstance(rows, list):
        return
    names = [str(column.get("name")) if isinstance(column, dict) else "" for column in columns]
    yield from (dict(zip(names, cells, strict=False)) for cells in rows if isinstance(cells, list))


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**62 else 0
