"""From a parsed query to its result."""

from __future__ import annotations

from difflib import get_close_matches

import numpy as np

from leadline._dataclass import replace
from leadline.query import paths
from leadline.query.columns import NUMBER_FIELDS, Rows, Texts, TreeColumns
from leadline.query.errors import QueryError
from leadline.query.expressions import Evaluator, Quantity
from leadline.query.grouping import Groups, grouped
from leadline.query.result import Column, QueryResult
from leadline.query.syntax import Field, Path, Query, meant_clause
from leadline.schema import FrameKind

_MEASURES = ("time", "gpu_time", "alloc_bytes")
_NODE_FIELDS = ("kind", "name", "file", "line", "module", "phase")
_EVENT_FIELDS = ("event", "name", "step", "start", "duration", "thread", "module", "phase")
_WHOLE = (*NUMBER_FIELDS, "calls", "count", "nodes", "step", "bytes", "stream", "start", "duration")


def answer(columns: TreeColumns, query: Query) -> QueryResult:
    """What `query` asks; raises QueryError."""
    whole = Evaluator(columns, query.text, np.arange(len(columns.tree), dtype=np.int64))
    mask = whole.matching(query.path)
    if query.events:
        events = np.flatnonzero(mask[columns.profile.events["node"]])
        if not len(columns.profile.events["node"]):
            raise QueryError(
                "this profile has no trace window; record one with `leadline run --trace steps=3`", query.text, 0
            )
        rows = Evaluator(columns, query.text, columns.profile.events["node"][events].astype(np.int64), events)
    else:
        rows = Evaluator(columns, query.text, np.flatnonzero(mask))
    meant = None if len(rows.nodes) else meant_clause(query.path.steps)
    if meant is not None:
        raise QueryError(f"there is no such word; did you mean {meant[1]!r}?", query.text, meant[0].position)
    note = "" if len(rows.nodes) else _nearest_name(columns, query.path)
    if query.where is not None:
        kept = rows.holds(query.where)
        rows = Evaluator(columns, query.text, rows.nodes[kept], None if rows.events is None else rows.events[kept])
        if not len(rows.nodes) and not note:
            note = "the path matches, but no matching node meets the condition after 'where'"
    return _grouped(query, rows, note) if query.by else _listed(query, rows, note)


def _listed(query: Query, rows: Evaluator, note: str) -> QueryResult:
    events = rows.events is not None
    default = _EVENT_FIELDS if events else (*_NODE_FIELDS, "calls", *_measured(rows))
    fields = query.show or tuple(_field(name) for name in default)
    order = _order(query, rows, None if events else _first_measure(rows))
    picked = Evaluator(rows.columns, rows.text, rows.nodes[order], None if rows.events is None else rows.events[order])
    found = {str(field): picked.column(field) for field in fields}
    if not events and not query.show:
        found = {"node": picked.column(_field("node")), **found}
    return _result(rows, found, picked.nodes if picked.events is None else picked.events, events, note)


def _grouped(query: Query, rows: Evaluator, note: str) -> QueryResult:
    groups = grouped(rows, query.by)
    by = [part for field in query.by for part in ((_field("file"), field) if field.name == "line" else (field,))]
    if rows.events is not None:
        default: tuple[str, ...] = ("calls", "duration")
    else:
        default = ("nodes", "calls", *_measured(rows, grouped=True))
    fields = {str(field): field for field in (*by, *(query.show or map(_field, default)))}
    default_order = _field("duration") if rows.events is not None else _first_measure(rows, grouped=True)
    if query.sort is None and default_order is not None and default_order.name == "self":
        own = groups.column(default_order)
        if not isinstance(own, Texts) and not own.values.any():  # modules and lines have no time of their own
            default_order = _field("time")
    order = _order(query, groups, default_order)
    found = {name: _picked(groups.column(field), order) for name, field in fields.items()}
    return _result(rows, found, None, False, note)


def _order(query: Query, rows: Evaluator | Groups, default: Field | None) -> Rows:
    """Which rows to show, in which order: the costliest first unless the query says otherwise."""
    number = rows.number if isinstance(rows, Groups) else len(rows.nodes)
    order = np.arange(number)
    field, descending = (query.sort, query.descending) if query.sort is not None else (default, True)
    if field is not None:
        column = rows.column(field)
        if isinstance(column, Texts):
            rank = np.empty(len(column.values), np.int64)
            rank[sorted(range(len(column.values)), key=column.values.__getitem__)] = np.arange(len(column.values))
            keys = rank[column.codes].astype(np.float64)
        else:
            keys = column.values
        order = np.argsort(-keys if descending else keys, kind="stable")
    return order if query.top is None else order[: query.top]


def _picked(column: Texts | Quantity, order: Rows) -> Texts | Quantity:
    return column.at(order) if isinstance(column, Texts) else Quantity(column.values[order], column.dimension)


def _measured(rows: Evaluator, grouped: bool = False) -> list[str]:
    """Columns that say what a row cost, of those that this profile measured. Of groups, what is their own comes first:
    it adds up, while what lies below a group may belong to others too."""
    measured = {str(info.kind) for info in rows.columns.metrics}
    found = [name for name in _MEASURES if name in measured]
    both = ("self", "self.share", "time") if grouped else ("time", "self")
    return [part for name in found for part in (both if name == "time" else (name,))]


def _first_measure(rows: Evaluator, grouped: bool = False) -> Field | None:
    found = _measured(rows, grouped)
    return _field(found[0]) if found else None


def _field(name: str) -> Field:
    name, _, stat = name.partition(".")
    return Field(name, stat, 0)


def _result(
    rows: Evaluator, found: dict[str, Texts | Quantity], numbers: Rows | None, events: bool, note: str
) -> QueryResult:
    columns: dict[str, Column] = {}
    units: dict[str, str] = {}
    for name, column in found.items():
        if isinstance(column, Texts):
            columns[name], units[name] = column.array(), "text"
            continue
        exact = name.partition(".")[0] in _WHOLE or name == "self" or not len(column.values)
        whole = exact or bool(np.all(column.values == np.trunc(column.values)) and column.dimension in ("ns", "bytes"))
        columns[name] = column.values.astype(np.int64) if whole and ".mean" not in name else column.values
        units[name] = column.dimension
    return QueryResult(rows.columns.tree, columns, units, numbers, events, note)


def _nearest_name(columns: TreeColumns, path: Path) -> str:
    """Why nothing was found, as far as the steps of the path tell."""
    for step in path.steps:
        alone = Path((replace(step, child=False),), step.position)
        if paths.matching(columns, alone, lambda _, rows: np.ones(len(rows), np.bool_)).any():
            continue
        frames = columns.tree.frames
        kinds = np.unique(frames["kind"])
        if step.kind is not None and int(step.kind) not in kinds:
            return f"this profile has no frames of kind {step.kind}"
        if step.name is None:
            return "no frame has that file and line"
        among = np.ones(len(frames["kind"]), np.bool_) if step.kind is None else frames["kind"] == int(step.kind)
        among &= frames["kind"] != int(FrameKind.ROOT)
        names = [columns.tree.tables.strings[row] for row in np.unique(frames["name"][among])[:20_000].tolist()]
        wanted = step.name.text
        near = [name for name in names if wanted.strip("*").lower() in name.lower() and wanted.strip("*")][:3]
        near = near or get_close_matches(wanted, names, 3)
        hint = f"; names like it are {', '.join(near)}" if near else ""
        return f"no {step.kind or 'frame'} is called {wanted!r}{hint}"
    return "each step of the path matches something, but no call path has them in this order"
