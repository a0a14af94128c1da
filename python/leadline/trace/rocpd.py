"""Databases of ROCm's profilers (rocpd, schema 3: `rocprofv3`, `rocprof-sys`) into event tables, one per process.

Every table's name ends in the identity of the run that wrote it; views without it show all runs of a file together, so
numbers count within one identity (`guid`). Begin and end stand in the tables themselves, or in later releases as
numbers of `rocpd_timestamp`, with thread, agent, queue and stream in `rocpd_track`. Device work and the call that
caused it have one `stack_id`: the SDK's internal correlation id. What roctx ranges say is the `message` of their event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from leadline.trace.event_types import call_kind
from leadline.trace.source import Source
from leadline.trace.sqlite_events import Database, EventRows, annotated_range, read_database
from leadline.trace.tables import Device, Kind, Thread, Trace

PREFIX = "rocpd_"

_PLACE = ("pid", "tid", "agent_id", "queue_id", "stream_id")
_GFX = re.compile(r"^gfx(?P<major>\d{1,2})(?P<minor>[0-9a-f])[0-9a-f]\b")
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_DIRECTION = re.compile(r"(HOST|DEVICE)_TO_(HOST|DEVICE)")
_LETTERS = {"HOST": "H", "DEVICE": "D"}


def read_rocpd(source: Source) -> list[Trace]:
    """One trace per process that did anything on a device, in a range or in a call. Raises TraceError."""
    return read_database(
        source,
        lambda database: [
            run.trace(pid, source.name) for run in _runs(database) for pid in run.processes() if run.has_events(pid)
        ],
        again="record it again with rocprofv3",
        nothing="holds no call, kernel or range; record it with rocprofv3 --runtime-trace",
    )


def _runs(database: Database) -> list[_Run]:
    """One for each identity in the file, in the order in which they stand there."""
    found = dict.fromkeys(str(guid) for (guid,) in _all(database, "info_process", ("guid",), ("",)))
    return [_Run(database, guid) for guid in found]


def _all(database: Database, table: str, columns: tuple[str, ...], nothing: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Rows of a table of all runs: of the view over them, or where there is none of each table."""
    whole = PREFIX + table
    if whole in database.tables:
        return database.rows(whole, columns, nothing)
    parts = sorted(name for name in database.tables if re.fullmatch(rf"{whole}_[0-9a-f_]+", name))
    return [row for name in parts for row in database.rows(name, columns, nothing)]


class _Run:
    """What one identity wrote."""

    def __init__(self, database: Database, guid: str) -> None:
        self._database, self._guid = database, guid
        self._texts: dict[int, str] = dict(self._rows("string", ("id", "string"), (0, "")))
        self._events = {
            row[0]: (self._texts.get(row[1], ""), int(row[2]), str(row[3]))
            for row in self._rows("event", ("id", "category_id", "stack_id", "extdata"), (0, 0, 0, ""))
        }
        self._instants: dict[int, int] = dict(self._rows("timestamp", ("id", "value"), (0, -1)))
        self._tracks = {row[0]: row[1:] for row in self._rows("track", ("id", *_PLACE), (0, *[-1] * len(_PLACE)))}
        agents = self._rows("info_agent", ("id", "type", "type_index", "name", "product_name"), (0, "", -1, "", ""))
        gpus = sorted(row for row in agents if row[1] == "GPU")
        self._device_of = {row[0]: row[2] if row[2] >= 0 else at for at, row in enumerate(gpus)}
        self._devices = [
            Device(self._device_of[row[0]], str(row[4] or row[3]), compute_capability=_capability(str(row[3])))
            for row in gpus
        ]
        self._calls = self._timed("region", ("name_id",), (0,))
        self._kernels = self._timed(
            "kernel_dispatch",
            (
                *("kernel_id", "group_segment_size"),
                *("grid_size_x", "grid_size_y", "grid_size_z"),
                *("workgroup_size_x", "workgroup_size_y", "workgroup_size_z"),
            ),
            (0, 0, 0, 0, 0, 0, 0, 0),
        )
        self._copies = self._timed("memory_copy", ("name_id", "size", "src_agent_id", "dst_agent_id"), (0, 0, -1, -1))

    def processes(self) -> list[int]:
        """The tables' numbers of processes."""
        return [row[0] for row in self._rows("info_process", ("id",), (0,))]

    def has_events(self, process: int) -> bool:
        """Whether anything was recorded of a process."""
        return any(row["pid"] == process for rows in (self._calls, self._kernels, self._copies) for row in rows)

    def trace(self, process: int, name: str) -> Trace:
        """The events of one process."""
        rows = EventRows()
        self._add_calls(process, rows)
        self._add_kernels(process, rows)
        self._add_copies(process, rows)
        listed = self._rows("info_process", ("id", "pid", "environment"), (0, 0, ""))
        pid, environment = next((int(row[1]), str(row[2])) for row in listed if row[0] == process)
        threads = {row[0]: row for row in self._rows("info_thread", ("id", "tid", "name"), (0, 0, ""))}
        return rows.trace(
            name,
            [
                Thread(0, pid, int(threads.get(number, (0, number))[1]), str(threads.get(number, (0, 0, ""))[2]))
                for number in rows.threads
            ],
            self._devices,
            rank=_rank(environment),
            epoch_ns=0,  # the clock counts from the machine's start, and no table says when that was
            facts={"has_sync_records": False},
        )

    # ------------------------------------------------------------------ one table at a time

    def _rows(self, table: str, columns: tuple[str, ...], nothing: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        found = _all(self._database, table, ("guid", *columns), (self._guid, *nothing))
        return [row[1:] for row in found if row[0] == self._guid]

    def _timed(self, table: str, columns: tuple[str, ...], nothing: tuple[Any, ...]) -> list[dict[str, Any]]:
        """Rows of a table of events that have a begin and an end, whichever way the release says when and where."""
        asked = ("start", "end", "start_id", "end_id", "track_id", "event_id", *_PLACE, *columns)
        found = []
        for values in self._rows(table, asked, (-1, -1, -1, -1, -1, -1, *[-1] * len(_PLACE), *nothing)):
            row = dict(zip(asked, values, strict=True))
            if row["track_id"] in self._tracks:
                row.update(zip(_PLACE, self._tracks[row["track_id"]], strict=True))
            for time in ("start", "end"):
                row[time] = self._instants.get(row[f"{time}_id"], row[time])
            row["category"], row["stack_id"], row["said"] = self._events.get(row["event_id"], ("", 0, ""))
            if row["end"] >= row["start"] >= 0:
                found.append(row)
        return found

    def _add_calls(self, process: int, rows: EventRows) -> None:
        found = [row for row in self._calls if row["pid"] == process]
        ranges = []
        for row in found:
            text = self._texts.get(row["name_id"], "")
            is_range = "MARKER" in row["category"].upper()
            ranges.append(annotated_range(_message(row["said"]) or text) if is_range else (text, call_kind(text), -1))
        rows.add(
            _times(found), [text for text, _, _ in ranges], thread=rows.thread_rows(row["tid"] for row in found),
            kind=[int(kind) for _, kind, _ in ranges], sequence=[number for _, _, number in ranges],
            correlation=[0 if kind in (Kind.REGION, Kind.STEP, Kind.OPERATOR) else row["stack_id"]
                         for row, (_, kind, _) in zip(found, ranges, strict=True)],
        )  # fmt: skip

    def _add_kernels(self, process: int, rows: EventRows) -> None:
        found = [row for row in self._kernels if row["pid"] == process]
        symbols = {
            row[0]: row[1:]
            for row in self._rows(
                "info_kernel_symbol", ("id", "display_name", "kernel_name", "arch_vgpr_count"), (0, "", "", 0)
            )
        }
        names, detail = [], []
        for row in found:
            shown, mangled, registers = symbols.get(row["kernel_id"], ("", "", 0))
            names.append(str(shown or mangled or "kernel"))
            block = [int(row[f"workgroup_size_{axis}"]) for axis in "xyz"]
            work_items = [int(row[f"grid_size_{axis}"]) for axis in "xyz"]
            grid = [-(-all_of // each) if each > 0 else 0 for all_of, each in zip(work_items, block, strict=True)]
            facts = {"grid": grid, "block": block, "registers per thread": registers}
            detail.append(rows.detail({**facts, "shared memory": int(row["group_segment_size"])}))
        rows.add(
            _times(found), names, kind=int(Kind.KERNEL), detail=detail,
            **self._place(found, [row["agent_id"] for row in found]),
        )  # fmt: skip

    def _add_copies(self, process: int, rows: EventRows) -> None:
        found = [row for row in self._copies if row["pid"] == process]
        names = []
        for row in found:
            direction = _DIRECTION.search(self._texts.get(row["name_id"], "").upper())
            ends = direction.groups() if direction else tuple(
                "DEVICE" if row[end] in self._device_of else "HOST" for end in ("src_agent_id", "dst_agent_id")
            )  # fmt: skip
            letters = "to".join(_LETTERS[end] for end in ends)
            names.append(f"Memcpy {letters} ({' -> '.join(end.capitalize() for end in ends)})")
        agents = [
            row["dst_agent_id"] if row["dst_agent_id"] in self._device_of else row["src_agent_id"] for row in found
        ]
        rows.add(
            _times(found), names, kind=int(Kind.COPY), bytes=[row["size"] for row in found],
            **self._place(found, agents),
        )  # fmt: skip

    def _place(self, found: list[dict[str, Any]], agents: list[int]) -> dict[str, list[int]]:
        """Device, stream (the queue where no stream is known) and correlation of device work."""
        return {
            "device": [self._device_of.get(agent, 0) for agent in agents],
            "stream": [row["stream_id"] if row["stream_id"] >= 0 else max(row["queue_id"], 0) for row in found],
            "correlation": [row["stack_id"] for row in found],
        }


def _times(found: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row["start"], row["end"]) for row in found]


def _object(text: str) -> Mapping[str, Any]:
    """A JSON object; empty where the text is none."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _message(said: str) -> str:
    text = _object(said).get("message", "")
    return text if isinstance(text, str) else ""


def _rank(environment: str) -> int:
    """What the launcher called the process in its environment; 0 where nobody says."""
    variables = _object(environment)
    for name in _RANKS:
        value = str(variables.get(name, ""))
        if value.isdecimal():
            return int(value)
    return 0


def _capability(architecture: str) -> str:
    """Generation and version of a chip, as in "9.4" for gfx942; empty for other names."""
    found = _GFX.match(architecture)
    return f"{found['major']}.{int(found['minor'], 16)}" if found else ""
