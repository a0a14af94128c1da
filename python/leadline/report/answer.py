"""The answer to a query as text for a terminal, CSV and JSON. CSV and JSON hold base units (ns, bytes, 0 to 1) and
every row; text holds the first of them with their units."""

from __future__ import annotations

import json
from collections.abc import Sequence

from leadline.query import QueryResult
from leadline.report.csv_text import csv_text
from leadline.report.source import short_names, visible
from leadline.units import duration, number, percent, size

MOST_TEXT_ROWS = 30
_MOST_WIDTH = 60


def text_answer(result: QueryResult, most: int = MOST_TEXT_ROWS) -> str:
    """A table with a line per row, at most `most`; what is left out is said."""
    if not len(result):
        return f"Nothing found{': ' + result.note if result.note else ''}.\n"
    names = list(result.columns)
    cells = [_cells(result, name, most) for name in names]
    right = [result.units[name] != "text" for name in names]
    lines = rows_text(names, list(zip(*cells, strict=True)), right)
    rest = len(result) - most
    if rest > 0:
        lines.append(f"... and {rest:,} more rows; add `top N`, or take all with --format csv or json.")
    return "\n".join(lines) + "\n"


def csv_answer(result: QueryResult) -> str:
    """A header and a line per row; texts are quoted where they need it."""
    rows = zip(*(column.tolist() for column in result.columns.values()), strict=True)
    return csv_text([tuple(result.columns), *rows])


def json_answer(result: QueryResult, most: int | None = None) -> str:
    """`{"columns": {name: unit}, "rows": [...], "row_count": all, "note": ...}`; at most `most` rows."""
    rows = list(result)[: len(result) if most is None else most]
    answer = {"columns": dict(result.units), "rows": rows, "row_count": len(result), "note": result.note}
    return json.dumps(answer, indent=1, allow_nan=False) + "\n"


def _cells(result: QueryResult, name: str, most: int) -> list[str]:
    values = result.columns[name][:most].tolist()
    unit = result.units[name]
    if unit == "text":
        shown = short_names(values) if name == "file" else None
        return [_cut(visible(shown[value] if shown else value)) for value in values]
    return [_number(value, unit, name) for value in values]


def _number(value: float, unit: str, name: str) -> str:
    if unit == "ns":
        return duration(value)
    if unit == "bytes":
        return size(value)
    if unit == "%":
        return percent(value)
    if name in ("line", "rank", "device", "pid", "node", "parent"):
        return str(int(value)) if value > 0 or (value == 0 and name != "line") else "-"
    return number(value)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_WIDTH else text[: _MOST_WIDTH // 2] + "…" + text[-_MOST_WIDTH // 2 + 1 :]


def rows_text(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Lines of a table of ready texts."""
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(len(header))]
    return [
        "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in (header, *rows)
    ]
