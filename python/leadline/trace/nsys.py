"""SQLite exports of Nsight Systems (`nsys export --type sqlite`, 2020 to today) into event tables, one per process.

Tables exist only when something was recorded and columns differ by release, so both are asked for by name. Numbers of
threads and processes are packed: `globalTid` holds the process in bits 24 to 47 and the thread below; `globalPid` is
the same with a thread of 0. What ranges say (NVTX) is what a program and its framework wrote: torch's `emit_nvtx` and
`nsys --pytorch` put an operator's name, sequence number and shapes into one text.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.trace.meaning import call_kind, is_step, settle
from leadline.trace.source import Source
from leadline.trace.tables import EVENT_COLUMNS, Device, Kind, Thread, Trace, TraceError

_VERSION = re.compile(r"_v\d+$|_ptsz$|_ptds$")
_OPERATOR = re.compile(
    r"^(?P<name>.+?)(?:, op_id = \d+)?(?:, seq = (?P<sequence>\d+))?(?:, op_id = \d+)?(?:, sizes = .*)?$"
)
_DIRECTIONS = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
}
"""CUpti_ActivityMemcpyKind."""
_MEMORIES = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device", 6: "Managed"}
"""ENUM_CUDA_MEM_KIND of the exporter, where the file does not hold it."""
_STREAM_WAIT = 2  # of CUpti_ActivitySynchronizationType
_ALL_ONES = 2**32 - 1


def read_nsys(source: Source) -> list[Trace]:
    """One trace per process that did anything on a device, in a range or in a CUDA call. Raises TraceError."""
    if source.path is None:
        raise TraceError(f"{source.name} is compressed; give the .sqlite file itself")
    try:
        with closing(sqlite3.connect(f"{source.path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            export = _Export(database)
            traces = [export.trace(pid, source.name) for pid in export.processes()]
    except sqlite3.Error as error:
        raise TraceError(f"{source.name} cannot be read as SQLite ({error}); export it again with nsys") from error
    if not traces:
        raise TraceError(
            f"{source.name} holds no CUDA call, kernel or NVTX range; record it with nsys profile -t cuda,nvtx"
        )
    return traces


@dataclass
class _Rows:
    """Events of one process while they are read."""

    columns: dict[str, list[NDArray[Any]]] = field(default_factory=lambda: {name: [] for name in EVENT_COLUMNS})
    details: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, count: int, **values: Any) -> None:
        """Rows with these values; -1 or 0 for the columns that are not named, as `EVENT_COLUMNS` has it."""
        for name, kind in EVENT_COLUMNS.items():
            nothing = 0 if name in ("correlation", "bytes", "awaits_correlation") else -1
            self.columns[name].append(np.broadcast_to(np.asarray(values.get(name, nothing)), count).astype(kind))


class _Export:
    """The tables of one file."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        listed = database.execute("select name from sqlite_master where type in ('table', 'view')").fetchall()
        self._tables = {name: self._columns(name) for (name,) in listed}
        self._texts: dict[int, str] = dict(self._rows("StringIds", ("id", "value"), (0, "")))
        self.strings: dict[str, int] = {}
        memories = dict(self._rows("ENUM_CUDA_MEM_KIND", ("id", "label"), (0, "")))
        self._memories = {key: str(label) for key, label in memories.items()} or _MEMORIES

    def _columns(self, table: str) -> frozenset[str]:
        return frozenset(row[1] for row in self._database.execute(f'pragma table_info("{table}")'))

    def _rows(self, table: str, columns: tuple[str, ...], nothing: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """These columns of a table, `nothing` where a column or a value is missing; no rows without the table."""
        known = self._tables.get(table)
        if known is None:
            return []
        asked = ", ".join(f'"{name}"' if name in known else "null" for name in columns)
        rows = self._database.execute(f'select {asked} from "{table}"').fetchall()
        return [tuple(other if one is None else one for one, other in zip(row, nothing, strict=True)) for row in rows]

    def processes(self) -> list[int]:
        """Numbers of the processes that have events."""
        found: set[int] = set()
        for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
            found |= {_pid(number) for (number,) in self._rows(table, ("globalTid",), (0,))}
        for table in ("KERNEL", "MEMCPY", "MEMSET"):
            found |= {_pid(number) for (number,) in self._rows(f"CUPTI_ACTIVITY_KIND_{table}", ("globalPid",), (0,))}
        return sorted(found)

    def trace(self, pid: int, name: str) -> Trace:
        """The events of one process."""
        rows = _Rows()
        threads: dict[int, int] = {}  # globalTid: row
        self.strings = {}
        self._calls(pid, rows, threads)
        self._ranges(pid, rows, threads)
        self._kernels(pid, rows)
        self._copies(pid, rows)
        start = np.concatenate([np.zeros(0, np.int64), *rows.columns["start_ns"]])
        origin = int(start.min(initial=2**62)) if start.size else 0
        columns = {key: np.concatenate(parts) if parts else np.zeros(0) for key, parts in rows.columns.items()}
        columns["start_ns"] = columns["start_ns"] - origin
        order = np.lexsort((-columns["duration_ns"], columns["start_ns"]))
        events = {key: values[order].astype(EVENT_COLUMNS[key]) for key, values in columns.items()}
        texts = list(self.strings)
        events["kind"] = settle(events, texts).astype(EVENT_COLUMNS["kind"])
        names = {
            number: self._texts.get(text, "")
            for text, number in self._rows("ThreadNames", ("nameId", "globalTid"), (0, 0))
        }
        return Trace(
            events=events,
            strings=texts,
            details=rows.details,
            threads=[Thread(0, pid, number & 0xFFFFFF, names.get(number, "")) for number in threads],
            devices=self._devices(),
            rank=self._rank(pid),
            world_size=0,
            source=name,
            origin_ns=self._epoch_ns() + origin,
            facts={"has_sync_records": bool(self._tables.get("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"))},
        )

    # ------------------------------------------------------------------ one table at a time

    def _calls(self, pid: int, rows: _Rows, threads: dict[int, int]) -> None:
        found = self._of(
            "CUPTI_ACTIVITY_KIND_RUNTIME", ("start", "end", "globalTid", "correlationId", "nameId"), pid, 2
        )
        texts = [_VERSION.sub("", self._texts.get(row[4], "")) for row in found]
        kinds = {text: int(call_kind(text)) for text in set(texts)}
        awaited = {
            int(row[0]): (-1 if row[1] in (0, _ALL_ONES) and row[2] not in (_STREAM_WAIT, 3) else int(row[1]))
            for row in self._rows(
                "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", ("correlationId", "streamId", "syncType"), (0, 0, 0)
            )
        }
        self._add(
            rows, found, texts, thread=_threads(found, 2, threads), kind=[kinds[text] for text in texts],
            correlation=[row[3] for row in found], awaits=[awaited.get(row[3], -1) for row in found],
            stream=[awaited.get(row[3], -1) for row in found],
        )  # fmt: skip

    def _ranges(self, pid: int, rows: _Rows, threads: dict[int, int]) -> None:
        asked = ("start", "end", "globalTid", "endGlobalTid", "text", "textId")
        listed = self._rows("NVTX_EVENTS", asked, (0, -1, 0, 0, "", -1))
        # a range that ends on another thread nests in none
        found = [row for row in listed if _pid(row[2]) == pid and row[1] >= row[0] and row[3] in (0, row[2])]
        texts, kinds, sequences = [], [], []
        for row in found:
            text = row[4] or self._texts.get(row[5], "")
            operator = _OPERATOR.match(text) if ", op_id = " in text or ", seq = " in text else None
            texts.append(operator["name"] if operator else text)
            kinds.append(int(Kind.OPERATOR if operator else Kind.STEP if is_step(text) else Kind.REGION))
            sequences.append(int(operator["sequence"]) if operator and operator["sequence"] else -1)
        self._add(rows, found, texts, thread=_threads(found, 2, threads), kind=kinds, sequence=sequences)

    def _kernels(self, pid: int, rows: _Rows) -> None:
        asked = (
            *("start", "end", "globalPid", "deviceId", "streamId", "correlationId", "demangledName", "shortName"),
            *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "dynamicSharedMemory"),
        )
        found = self._of("CUPTI_ACTIVITY_KIND_KERNEL", asked, pid, 2)
        detail = []
        for row in found:
            detail.append(len(rows.details))
            shape = {"grid": list(row[8:11]), "block": list(row[11:14])}
            rows.details.append({**shape, "registers per thread": row[14], "shared memory": row[15]})
        texts = [self._texts.get(row[6]) or self._texts.get(row[7], "kernel") for row in found]
        self._add(rows, found, texts, kind=int(Kind.KERNEL), detail=detail, **_place(found))

    def _copies(self, pid: int, rows: _Rows) -> None:
        common = ("start", "end", "globalPid", "deviceId", "streamId", "correlationId", "bytes")
        copies = self._of("CUPTI_ACTIVITY_KIND_MEMCPY", (*common, "copyKind", "srcKind", "dstKind"), pid, 2)
        ends = [(self._memories.get(row[8], "Unknown"), self._memories.get(row[9], "Unknown")) for row in copies]
        texts = [
            f"Memcpy {_DIRECTIONS.get(row[7], 'Unknown')} ({begin} -> {end})"
            for row, (begin, end) in zip(copies, ends, strict=True)
        ]
        moved = [row[6] for row in copies]
        self._add(rows, copies, texts, kind=int(Kind.COPY), bytes=moved, **_place(copies))
        sets = self._of("CUPTI_ACTIVITY_KIND_MEMSET", (*common, "memKind"), pid, 2)
        texts = [f"Memset ({self._memories.get(row[7], 'Unknown')})" for row in sets]
        self._add(rows, sets, texts, kind=int(Kind.SET), bytes=[row[6] for row in sets], **_place(sets))

    def _of(self, table: str, columns: tuple[str, ...], pid: int, owner: int) -> list[tuple[Any, ...]]:
        """Rows of a process that have a begin and an end; `owner`: which column holds its packed number."""
        nothing = (-1, -1, *[0] * (len(columns) - 2))
        listed = self._rows(table, columns, nothing)
        return [row for row in listed if _pid(row[owner]) == pid and row[1] >= row[0] >= 0]

    def _add(self, rows: _Rows, found: list[tuple[Any, ...]], texts: Iterable[str], **values: Any) -> None:
        start = np.array([row[0] for row in found], dtype=np.int64)
        end = np.array([row[1] for row in found], dtype=np.int64)
        strings = self.strings
        names = [strings.setdefault(text, len(strings)) for text in texts]
        rows.add(len(found), start_ns=start, duration_ns=end - start, name=names, **values)

    # ------------------------------------------------------------------ what the file says of machine and run

    def _devices(self) -> list[Device]:
        asked = ("id", "name", "totalMemory", "computeMajor", "computeMinor", "smCount")
        return [
            Device(int(row[0]), str(row[1]), int(row[2]), f"{row[3]}.{row[4]}" if row[3] else "", int(row[5]))
            for row in self._rows("TARGET_INFO_GPU", asked, (0, "", 0, 0, 0, 0))
        ]

    def _epoch_ns(self) -> int:
        """CLOCK_REALTIME at time 0 of the file; 0 where it does not say."""
        found = self._rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",), (0,))
        return int(found[0][0]) if found and isinstance(found[0][0], int) else 0

    def _rank(self, pid: int) -> int:
        """What MPI, or the launcher through the environment, called the process; 0 where nobody says."""
        for number, rank in self._rows("MPI_RANKS", ("globalTid", "rank"), (0, 0)):
            if _pid(number) == pid:
                return int(rank)
        return 0


def _pid(packed: int) -> int:
    return (int(packed) >> 24) & 0xFFFFFF


def _threads(found: list[tuple[Any, ...]], column: int, threads: dict[int, int]) -> list[int]:
    return [threads.setdefault(row[column], len(threads)) for row in found]


def _place(found: list[tuple[Any, ...]]) -> dict[str, list[int]]:
    """Device, stream and correlation of device work, which stand at the same places of all its tables."""
    return {name: [row[at] for row in found] for name, at in (("device", 3), ("stream", 4), ("correlation", 5))}
