"""The DuckDB views of `leadline query --sql`, documented in docs/query.md.

SQL reads the profile and nothing else: files, extensions and settings are closed to it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.profiles import Profile
from leadline.query import columns_of
from leadline.query.columns import TreeColumns
from leadline.query.errors import SqlError
from leadline.query.syntax import TEXT_FIELDS
from leadline.schema import EventKind, FrameKind, LossKind, MetricKind

if TYPE_CHECKING:
    from leadline.query.result import Column

_MOST_MEMORY = "2GB"
_MOST_SECONDS = 60

VIEWS: Mapping[str, str] = {
    "nodes": "a row per node: node, parent, before, last, depth, kind, name, file, line, function, module, class, "
    "phase, thread, process, rank, pid, device, calls; d is below a where d.before between a.before + 1 and a.last",
    "metrics": "exclusive measurements: node, metric, device, stream, count, sum, min, max, mean",
    "inclusive": "total values (with all nodes below) of additive metrics: node, metric, sum",
    "events": "the trace window: node, event, start_ns, duration_ns, thread, device, stream, bytes, step, correlation",
    "processes": "as in the schema",
    "threads": "as in the schema",
    "devices": "as in the schema",
    "losses": "what was not measured: process, kind, count, detail",
}


def run_sql(profile: Profile, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows of a statement over the views. Raises SqlError, with a sentence."""
    try:
        import duckdb
        import pyarrow
    except ImportError:
        raise SqlError("leadline query --sql needs DuckDB; install it with `pip install 'leadline[sql]'`.") from None
    if not statement.strip(" \t\r\n;"):
        raise SqlError("The statement is empty; write one such as `select name, calls from nodes limit 5`.")
    connection = duckdb.connect()
    try:
        columns = columns_of(profile)
        for view in VIEWS:
            data = {name: _plain(column) for name, column in _table(columns, view).items()}
            connection.register(view, pyarrow.table(data))
        connection.execute("set enable_external_access=false")
        connection.execute(f"set memory_limit='{_MOST_MEMORY}'")
        connection.execute("set lock_configuration=true")
        late = threading.Timer(_MOST_SECONDS, connection.interrupt)
        late.daemon = True
        late.start()
        try:
            answer = connection.execute(statement)
            names = [column[0] for column in answer.description or ()]
            return names, answer.fetchall() if names else []
        except duckdb.InterruptException:
            raise SqlError(f"The statement took longer than {_MOST_SECONDS} s; ask for less.") from None
        finally:
            late.cancel()
    except duckdb.Error as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise SqlError(f"DuckDB did not accept the statement: {' '.join(lines)[:400]}") from None
    finally:
        connection.close()


def _table(columns: TreeColumns, view: str) -> dict[str, Column]:
    tables = columns.profile.tables
    if view == "nodes":
        numbers = ("node", "parent", "depth", "line", "rank", "pid", "device")
        found: dict[str, Column] = {name: columns.number(name) for name in numbers}
        found |= {"before": columns.before, "last": columns.last, "calls": columns.calls}
        return found | {name: columns.text(name).array() for name in TEXT_FIELDS}
    if view == "metrics":
        table = dict(tables["metrics"])
        count = np.maximum(table["count"], 1)
        return {**table, "metric": _named(MetricKind, table["metric"]), "mean": table["sum"] / count}
    if view == "inclusive":
        additive = [info.kind for info in columns.metrics if info.additive]
        rows = {kind: np.flatnonzero(columns.tree.inclusive(kind).count) for kind in additive}
        numbers_of = [np.zeros(0, np.int64), *rows.values()]
        sums = [np.zeros(0, np.int64), *(columns.tree.inclusive(kind).sum[rows[kind]] for kind in additive)]
        names = [np.zeros(0, object), *(np.full(len(rows[kind]), str(kind), object) for kind in additive)]
        return {"node": np.concatenate(numbers_of), "metric": np.concatenate(names), "sum": np.concatenate(sums)}
    table = dict(tables[view])
    texts = {"processes": ("name",), "threads": ("name",), "devices": ("name", "uuid", "detail"), "losses": ("detail",)}
    for name in texts.get(view, ()):
        table[name] = np.array([tables.strings[row] for row in table[name].tolist()], dtype=object)
    if view == "losses":
        table["kind"] = _named(LossKind, table["kind"])
    if view == "events":
        table["event"] = _named(EventKind, table.pop("kind"))
    return table


def _named(kinds: type[MetricKind] | type[LossKind] | type[EventKind] | type[FrameKind], numbers: Column) -> Column:
    names = np.array([str(kinds(number)) for number in range(256)], dtype=object)
    named: Column = names[numbers]
    return named


def _plain(column: Column) -> Any:
    if column.dtype != object:
        return column
    return [text.encode("utf-8", "replace").decode("utf-8") for text in column.tolist()]
