"""Rows as CSV, for terminals and spreadsheets. Names come from the profiled program, so they are data: control
characters and marks of direction become escapes, and a cell that a spreadsheet would take for a formula begins with an
apostrophe."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from leadline.report.source import visible

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the wide ones count as well


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """A line per row; numbers as they are."""
    import csv

    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_cell(one) for one in row] for row in rows)
    return out.getvalue()


def _cell(value: object) -> object:
    if value is None or isinstance(value, int | float):
        return value
    text = visible(str(value))
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
