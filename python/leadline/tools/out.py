"""What a tool has found, as plain values for the profile: tables, distributions, curves and heat maps.

An output is a JSON object with `kind` and `name`. Cells are numbers, text, or {"path": [...]} for a call path.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.tools.errors import ToolError
from leadline.tools.sums import Counter, Sums

if TYPE_CHECKING:
    from leadline.tools.tool import Context

MAX_ROWS = 10_000
"""Rows kept of a table; `rows_in_all` says how many there were."""
MAX_CELLS = 250_000
"""Cells kept of a heat map, points of a curve."""

_STATISTICS = ("min", "mean", "median", "p90", "p99", "max", "sum", "count")


class Out:
    """Collects the outputs of one tool."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.outputs: list[dict[str, Any]] = []

    def table(
        self,
        name: str,
        rows: Counter | Sums | Sequence[Mapping[str, Any]],
        *,
        sort: str = "",
        show: str = "",
        units: Mapping[str, str] | None = None,
    ) -> None:
        """A table. `rows`: a counter, sums, or one mapping a row with the same keys in the same order. `sort`: a
        column, `-` before it for the largest first. `show="stack of first"`: of a counter, the call path of each key's
        first row. `units`: column to unit (bytes, ns, %)."""
        records = self._records(rows, show)
        known = {**({"share": "%"} if isinstance(rows, Counter) else {}), **(units or {})}
        columns = list(records[0]) if records else []
        if sort and records:
            key = sort.lstrip("-")
            if key not in columns:
                raise ToolError(f"the table {name!r} has no column {key!r} to sort by; it has {', '.join(columns)}")
            records.sort(key=lambda record: record[key], reverse=sort.startswith("-"))
        self._add(
            {
                "kind": "table",
                "name": name,
                "columns": [{"name": column, "unit": known.get(column, "")} for column in columns],
                "rows": [[_cell(record.get(column)) for column in columns] for record in records[:MAX_ROWS]],
                "rows_in_all": len(records),
            }
        )

    def distribution(
        self,
        name: str,
        sums: Sums,
        statistics: Sequence[str],
        *,
        unit: str = "bytes",
        note: str = "",
        fields: Sequence[str] = (),
    ) -> None:
        """For each field of the sums (or those of `fields`), what its values look like over all keys. `statistics`: of
        min, mean, median, p90 (any percentile), max, sum, count."""
        totals = sums.totals()
        rows: list[list[Any]] = []
        for field in fields or sums.fields:
            rows.append([field, *(_cell(_statistic(totals[field], one)) for one in statistics)])
        self._add(
            {
                "kind": "table",
                "name": name,
                "columns": [
                    {"name": "", "unit": ""},
                    *({"name": s, "unit": "" if s == "count" else unit} for s in statistics),
                ],
                "rows": rows,
                "rows_in_all": len(rows),
                "note": note or f"over {len(sums.keys()):,} {_plural(sums.ref or 'key')}",
            }
        )

    def curve(
        self,
        name: str,
        x: Sequence[float],
        series: Mapping[str, Sequence[float]],
        *,
        x_unit: str = "ns",
        unit: str = "bytes",
    ) -> None:
        """Lines over a common x. More points than can be kept are thinned, each series keeping its largest."""
        every = max(1, math.ceil(len(x) * max(1, len(series)) / MAX_CELLS))
        thin = {key: _thinned(np.asarray(values, np.float64), every) for key, values in series.items()}
        self._add(
            {
                "kind": "curve",
                "name": name,
                "x": [_cell(value) for value in np.asarray(x, np.float64)[::every].tolist()],
                "series": {key: [_cell(value) for value in values.tolist()] for key, values in thin.items()},
                "x_unit": x_unit,
                "unit": unit,
            }
        )

    def heat(
        self,
        name: str,
        cells: Any,
        *,
        rows: Sequence[str],
        columns: Sequence[str],
        unit: str = "",
        row_name: str = "",
        column_name: str = "",
    ) -> None:
        """A matrix of numbers. Raises ToolError for one with more cells than can be kept."""
        matrix = np.asarray(cells, np.float64)
        if matrix.size > MAX_CELLS:
            raise ToolError(f"the heat map {name!r} has {matrix.size:,} cells; at most {MAX_CELLS:,} can be kept")
        self._add(
            {
                "kind": "heat",
                "name": name,
                "cells": [[_cell(value) for value in row] for row in matrix.tolist()],
                "rows": list(rows),
                "columns": list(columns),
                "row_name": row_name,
                "column_name": column_name,
                "unit": unit,
            }
        )

    def text(self, name: str, sentence: str) -> None:
        """A sentence."""
        self._add({"kind": "text", "name": name, "text": sentence})

    def path(self, place: int) -> dict[str, Any]:
        """A cell that shows a call path."""
        return {
            "path": [str(frame) for frame in self._context.places.path(place)],
            "short": self._context.places.short(place),
        }

    def _add(self, output: dict[str, Any]) -> None:
        json.dumps(output)  # what cannot be written is found here, where the tool can be named
        self.outputs.append(output)

    def _records(self, rows: Counter | Sums | Sequence[Mapping[str, Any]], show: str) -> list[Mapping[str, Any]]:
        if isinstance(rows, Counter):
            total = sum(rows.counts.values()) or 1
            records = []
            for key, count in rows.counts.items():
                record = {rows.ref or "key": self._key(rows.ref, key), "count": count, "share": 100 * count / total}
                if show == "stack of first":
                    record["stack of first"] = self.path(rows.first_place.get(key, 0))
                records.append(record)
            return list(records)
        if isinstance(rows, Sums):
            totals = rows.totals()
            return [
                {rows.ref or "key": self._key(rows.ref, key), **{field: totals[field][at] for field in rows.fields}}
                for at, key in enumerate(rows.keys().tolist())
            ]
        return list(rows)

    def _key(self, ref: str, key: int) -> Any:
        match ref:
            case "name":
                return self._context.names[key]
            case "object":
                return f"{self._context.objects.label(key)} #{key}"
            case "launch":
                return f"{self._context.names[self._context.launches.kernel[key]]} #{key}"
            case "place":
                return self.path(key)
        return key


def _statistic(values: Any, name: str) -> float:
    if name == "count":
        return float(len(values))
    if not len(values):
        return 0.0
    if name.startswith("p") and name[1:].isdecimal():
        return float(np.percentile(values, float(name[1:])))
    if name not in _STATISTICS:
        raise ToolError(f"there is no statistic {name!r}; there are {', '.join(_STATISTICS)}")
    return float(getattr(np, name)(values))


def _thinned(values: Any, every: int) -> Any:
    if every == 1 or not len(values):
        return values
    padded = np.concatenate([values, np.full(-len(values) % every, values[-1])])
    return padded.reshape(-1, every).max(axis=1)


def _cell(value: Any) -> Any:
    """As JSON knows it: whole numbers without a fraction, no NaN."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    return value


def _plural(ref: str) -> str:
    return {"launch": "launches", "object": "objects", "name": "names", "place": "places"}.get(ref, ref + "s")
