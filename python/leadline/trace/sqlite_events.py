"""What readers of traces in SQLite share: tables that may be missing, and rows of events from many of them.

Profilers that write databases leave out tables and columns that a run or a release has no use for, so both are asked
for by name.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, field
from leadline.steps.names import is_step
from leadline.trace.event_types import settle
from leadline.trace.source import Source
from leadline.trace.tables import EVENT_COLUMNS, Device, Kind, Thread, Trace, TraceError

_OPERATOR = re.compile(
    r"^(?P<name>.+?)(?:, op_id = \d+)?(?:, seq = (?P<sequence>\d+))?(?:, op_id = \d+)?(?:, sizes = .*)?$"
)


class Database:
    """An open database. Views count as tables."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        listed = connection.execute("select name from sqlite_master where type in ('table', 'view')").fetchall()
        self._columns: dict[str, frozenset[str]] = {}
        self.tables = frozenset(str(name) for (name,) in listed)

    def rows(self, table: str, columns: Sequence[str], nothing: Sequence[Any]) -> list[tuple[Any, ...]]:
        """These columns of a table, `nothing` where a column or a value is missing; no rows without the table."""
        if table not in self.tables:
            return []
        known = self.columns(table)
        asked = ", ".join(f'"{name}"' if name in known else "null" for name in columns)
        rows = self._connection.execute(f'select {asked} from "{table}"').fetchall()
        return [tuple(other if one is None else one for one, other in zip(row, nothing, strict=True)) for row in rows]

    def columns(self, table: str) -> frozenset[str]:
        """Names of a table's columns."""
        if table not in self._columns:
            self._columns[table] = frozenset(
                row[1] for row in self._connection.execute(f'pragma table_info("{table}")')
            )
        return self._columns[table]


def read_database(source: Source, read: Callable[[Database], list[Trace]], again: str, nothing: str) -> list[Trace]:
    """The traces that `read` finds in a file. Raises TraceError: `again` is what to do with a file that cannot be read,
    `nothing` what to do when there is no trace in it."""
    if source.path is None:
        raise TraceError(f"{source.name} is compressed; give the database file itself")
    try:
        with _opened(source.path) as database:
            traces = read(database)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise TraceError(f"{source.name} cannot be read as SQLite ({error}); {again}") from error
    if not traces:
        raise TraceError(f"{source.name} {nothing}")
    return traces


def tables_in(source: Source) -> frozenset[str]:
    """Names of the tables of a database; none where it is no database that can be read."""
    if source.path is not None:
        with suppress(sqlite3.Error, UnicodeDecodeError), _opened(source.path) as database:
            return database.tables
    return frozenset()


@contextmanager
def _opened(path: Path) -> Iterator[Database]:
    """Nothing is written, no lock is left beside the file. Raises sqlite3.Error and UnicodeDecodeError."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        yield Database(connection)


def annotated_range(text: str) -> tuple[str, Kind, int]:
    """Name, kind and autograd's number (-1 for none) of a range that a program or its framework wrote: torch's
    `emit_nvtx` puts an operator's name, number and shapes into one text."""
    operator = _OPERATOR.match(text) if ", op_id = " in text or ", seq = " in text else None
    if operator:
        return operator["name"], Kind.OPERATOR, int(operator["sequence"] or -1)
    return text, Kind.STEP if is_step(text) else Kind.REGION, -1


@dataclass
class EventRows:
    """Events of one process while they are read. `threads`: row of each thread, by whatever number the file has."""

    columns: dict[str, list[NDArray[Any]]] = field(default_factory=lambda: {name: [] for name in EVENT_COLUMNS})
    details: list[Mapping[str, Any]] = field(default_factory=list)
    strings: dict[str, int] = field(default_factory=dict)
    threads: dict[int, int] = field(default_factory=dict)

    def add(self, times: Sequence[tuple[int, int]], texts: Iterable[str], **values: Any) -> None:
        """Events with these begins and ends, names and other columns; -1 or 0 for the columns that are not named, as
        `EVENT_COLUMNS` has it."""
        strings = self.strings
        span = np.array(times, dtype=np.int64).reshape(-1, 2)
        values["start_ns"] = span[:, 0]
        values["duration_ns"] = span[:, 1] - span[:, 0]
        values["name"] = [strings.setdefault(text, len(strings)) for text in texts]
        for name, kind in EVENT_COLUMNS.items():
            nothing = 0 if name in ("correlation", "bytes", "awaits_correlation") else -1
            self.columns[name].append(np.broadcast_to(np.asarray(values.get(name, nothing)), len(span)).astype(kind))

    def thread_rows(self, numbers: Iterable[int]) -> list[int]:
        """Rows of these threads."""
        return [self.threads.setdefault(number, len(self.threads)) for number in numbers]

    def detail(self, facts: Mapping[str, Any]) -> int:
        """Row of the details."""
        self.details.append(facts)
        return len(self.details) - 1

    def trace(
        self,
        source: str,
        threads: Sequence[Thread],
        devices: Sequence[Device],
        *,
        rank: int,
        epoch_ns: int,
        facts: Mapping[str, Any],
    ) -> Trace:
        """All of them in order of time. `epoch_ns`: CLOCK_REALTIME at time 0 of the file, 0 where it is not known."""
        columns = {key: np.concatenate(parts) if parts else np.zeros(0) for key, parts in self.columns.items()}
        origin = int(columns["start_ns"].min()) if columns["start_ns"].size else 0
        columns["start_ns"] = columns["start_ns"] - origin
        order = np.lexsort((-columns["duration_ns"], columns["start_ns"]))
        events = {key: values[order].astype(EVENT_COLUMNS[key]) for key, values in columns.items()}
        texts = list(self.strings)
        events["kind"] = settle(events, texts).astype(EVENT_COLUMNS["kind"])
        return Trace(
            events=events,
            strings=texts,
            details=self.details,
            threads=threads,
            devices=devices,
            rank=rank,
            world_size=0,
            source=source,
            origin_ns=epoch_ns + origin,
            facts=facts,
        )
