"""SQLite exports of Nsight Systems (`nsys export --type sqlite`, 2020 to today) into event tables, one per process.

Numbers of threads and processes are packed: `globalTid` holds the process in bits 24 to 47 and the thread below;
`globalPid` is the same with a thread of 0. What ranges say (NVTX) is what a program and its framework wrote
(`torch.autograd.profiler.emit_nvtx`, `nsys --pytorch`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from leadline._dataclass import dataclass
from leadline.trace.event_types import call_kind
from leadline.trace.kernel.columns import Columns
from leadline.trace.nsys_threads import Sample, samples, scheduling
from leadline.trace.source import Source
from leadline.trace.sqlite_events import Database, EventRows, annotated_range, read_database
from leadline.trace.tables import Device, Kind, Thread, Trace

_VERSION = re.compile(r"_v\d+$|_ptsz$|_ptds$")
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


@dataclass(frozen=True)
class NsysFile:
    """What one export holds: a trace per process that did anything on a device, in a range, in a CUDA call or was
    sampled; samples stand in the facts of its trace. `scheduling`: events of threads on the file's clock, which shows
    `epoch_ns` less than CLOCK_REALTIME; `sentence`: what they do not say."""

    traces: list[Trace]
    scheduling: Columns
    sentence: str
    epoch_ns: int
    host: str


def read_nsys(source: Source) -> NsysFile:
    """Everything that is read of an export. Raises TraceError."""
    found: list[NsysFile] = []

    def read(database: Database) -> list[Trace]:
        export = _Export(database)
        traces = [export.trace(pid, source.name) for pid in export.processes()]
        found.append(NsysFile(traces, *export.scheduling(), export.epoch_ns(), ""))
        return traces

    read_database(
        source,
        read,
        again="export it again with nsys",
        nothing="holds no CUDA call, kernel, NVTX range or CPU sample; record it with nsys profile -t cuda,nvtx",
    )
    return found[0]


class _Export:
    """The tables of one file."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = database.rows
        self._texts: dict[int, str] = dict(self._rows("StringIds", ("id", "value"), (0, "")))
        memories = dict(self._rows("ENUM_CUDA_MEM_KIND", ("id", "label"), (0, "")))
        self._memories = {key: str(label) for key, label in memories.items()} or _MEMORIES
        self._sampled: list[Sample] | None = None
        self._has_sync_records = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION" in database.tables

    def processes(self) -> list[int]:
        """Numbers of the processes that have events."""
        found: set[int] = set()
        sampled = ("COMPOSITE_EVENTS",) if "SAMPLING_CALLCHAINS" in self._database.tables else ()
        for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", *sampled):
            found |= {_pid(number) for (number,) in self._rows(table, ("globalTid",), (0,))}
        for table in ("KERNEL", "MEMCPY", "MEMSET"):
            found |= {_pid(number) for (number,) in self._rows(f"CUPTI_ACTIVITY_KIND_{table}", ("globalPid",), (0,))}
        return sorted(found)

    def trace(self, pid: int, name: str) -> Trace:
        """The events of one process."""
        rows = EventRows()
        self._calls(pid, rows)
        self._ranges(pid, rows)
        self._kernels(pid, rows)
        self._copies(pid, rows)
        names = self._thread_names()
        sampled = [one for one in self._samples() if _pid(one.thread) == pid]
        places = rows.thread_rows(one.thread for one in sampled)
        return rows.trace(
            name,
            [Thread(0, pid, number & 0xFFFFFF, names.get(number, "")) for number in rows.threads],
            self._devices(),
            rank=self._rank(pid),
            epoch_ns=self.epoch_ns(),
            facts={
                "has_sync_records": self._has_sync_records,
                "samples": [(row, one.frames, one.ns) for row, one in zip(places, sampled, strict=True)],
            },
        )

    def scheduling(self) -> tuple[Columns, str]:
        """What threads of the machine did, and what of it is not told."""
        return scheduling(self._database, self._texts, self._thread_names())

    def _samples(self) -> list[Sample]:
        if self._sampled is None:
            self._sampled = list(samples(self._database, self._texts))
        return self._sampled

    def _thread_names(self) -> dict[int, str]:
        """By packed number."""
        listed = self._rows("ThreadNames", ("nameId", "globalTid"), (0, 0))
        return {number: self._texts.get(text, "") for text, number in listed}

    # ------------------------------------------------------------------ one table at a time

    def _calls(self, pid: int, rows: EventRows) -> None:
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
        rows.add(
            _times(found), texts, thread=rows.thread_rows(row[2] for row in found),
            kind=[kinds[text] for text in texts], correlation=[row[3] for row in found],
            awaits=[awaited.get(row[3], -1) for row in found], stream=[awaited.get(row[3], -1) for row in found],
        )  # fmt: skip

    def _ranges(self, pid: int, rows: EventRows) -> None:
        asked = ("start", "end", "globalTid", "endGlobalTid", "text", "textId")
        listed = self._rows("NVTX_EVENTS", asked, (0, -1, 0, 0, "", -1))
        # a range that ends on another thread nests in none
        found = [row for row in listed if _pid(row[2]) == pid and row[1] >= row[0] and row[3] in (0, row[2])]
        ranges = [annotated_range(row[4] or self._texts.get(row[5], "")) for row in found]
        rows.add(
            _times(found), [text for text, _, _ in ranges], thread=rows.thread_rows(row[2] for row in found),
            kind=[int(kind) for _, kind, _ in ranges], sequence=[number for _, _, number in ranges],
        )  # fmt: skip

    def _kernels(self, pid: int, rows: EventRows) -> None:
        asked = (
            *("start", "end", "globalPid", "deviceId", "streamId", "correlationId", "demangledName", "shortName"),
            *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "dynamicSharedMemory"),
        )
        found = self._of("CUPTI_ACTIVITY_KIND_KERNEL", asked, pid, 2)
        detail = [
            rows.detail(
                {
                    "grid": list(row[8:11]),
                    "block": list(row[11:14]),
                    "registers per thread": row[14],
                    "shared memory": row[15],
                }
            )
            for row in found
        ]
        texts = [self._texts.get(row[6]) or self._texts.get(row[7], "kernel") for row in found]
        rows.add(_times(found), texts, kind=int(Kind.KERNEL), detail=detail, **_place(found))

    def _copies(self, pid: int, rows: EventRows) -> None:
        common = ("start", "end", "globalPid", "deviceId", "streamId", "correlationId", "bytes")
        copies = self._of("CUPTI_ACTIVITY_KIND_MEMCPY", (*common, "copyKind", "srcKind", "dstKind"), pid, 2)
        ends = [(self._memories.get(row[8], "Unknown"), self._memories.get(row[9], "Unknown")) for row in copies]
        texts = [
            f"Memcpy {_DIRECTIONS.get(row[7], 'Unknown')} ({begin} -> {end})"
            for row, (begin, end) in zip(copies, ends, strict=True)
        ]
        moved = [row[6] for row in copies]
        rows.add(_times(copies), texts, kind=int(Kind.COPY), bytes=moved, **_place(copies))
        sets = self._of("CUPTI_ACTIVITY_KIND_MEMSET", (*common, "memKind"), pid, 2)
        texts = [f"Memset ({self._memories.get(row[7], 'Unknown')})" for row in sets]
        rows.add(_times(sets), texts, kind=int(Kind.SET), bytes=[row[6] for row in sets], **_place(sets))

    def _of(self, table: str, columns: tuple[str, ...], pid: int, owner: int) -> list[tuple[Any, ...]]:
        """Rows of a process that have a begin and an end; `owner`: which column holds its packed number."""
        nothing = (-1, -1, *[0] * (len(columns) - 2))
        listed = self._rows(table, columns, nothing)
        return [row for row in listed if _pid(row[owner]) == pid and row[1] >= row[0] >= 0]

    # ------------------------------------------------------------------ what the file says of machine and run

    def _devices(self) -> list[Device]:
        asked = ("id", "name", "totalMemory", "computeMajor", "computeMinor", "smCount")
        return [
            Device(int(row[0]), str(row[1]), int(row[2]), f"{row[3]}.{row[4]}" if row[3] else "", int(row[5]))
            for row in self._rows("TARGET_INFO_GPU", asked, (0, "", 0, 0, 0, 0))
        ]

    def epoch_ns(self) -> int:
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


def _times(found: Iterable[tuple[Any, ...]]) -> list[tuple[int, int]]:
    return [(row[0], row[1]) for row in found]


def _place(found: list[tuple[Any, ...]]) -> dict[str, list[int]]:
    """Device, stream and correlation of device work, which stand at the same places of all its tables."""
    return {name: [row[at] for row in found] for name, at in (("device", 3), ("stream", 4), ("correlation", 5))}
