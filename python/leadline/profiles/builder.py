"""Makes a profile row by row in memory: for tests, for synthetic benchmarks and for the few rows `recover` has to add.

Keeps the promises of the schema: distinct strings, frames and (parent, frame) nodes, one metrics row per (node, metric,
device, stream), parents before children, events ordered by start.
"""

from __future__ import annotations

from typing import Any

from leadline.profiles.profile import Profile
from leadline.profiles.step_rows import StepRows, columns_of
from leadline.profiles.tables import StringBuilder, Tables, columns_from_rows, empty_columns
from leadline.profiles.tree import frame_kind, metric_kind, process_detail
from leadline.schema import FORMAT_VERSION, TABLES, EventKind, FrameKind, KernelEventKind, LossKind, MetricKind

_EVENT_DEFAULTS = {
    "thread": -1,
    "device": -1,
    "stream": -1,
    "sequence": -1,
    "forward_thread": -1,
    "awaits": -1,
    "step": -1,
}


def synthetic_meta() -> dict[str, Any]:
    """A meta.json with every key a reader may look for and nothing measured."""
    return {
        "format": {"name": "leadline", "version": FORMAT_VERSION},
        "leadline": "0.0.0",
        "program": {"argv": ["train.py"], "python": "3.11.0"},
        "started_at_ns": 0,
        "wall_ns": 0,
        "asked": {},
        "available": {},
        "cost": {"callbacks_ns": 0, "events": 0, "held_bytes": 0, "percent": 0.0},
        "clock": {"monotonic_ns": 0, "realtime_ns": 0, "uncertainty_ns": 0},
        "host": {},
        "processes": [],
        "complete": True,
    }


class ProfileBuilder:
    """Start with the root (node 0); add processes, threads, children and measurements; `profile()` gives the result."""

    def __init__(self) -> None:
        self._strings = StringBuilder()
        self._frames: dict[tuple[int, ...], int] = {}
        self._nodes: dict[tuple[int, int], int] = {}
        self._metrics: dict[tuple[int, int, int, int], list[float]] = {}
        self._rows: dict[str, list[dict[str, int]]] = {
            name: []
            for name in ("processes", "threads", "devices", "losses", "events", "kernel_events", "main_threads")
        }
        self._steps: dict[int, StepRows] = {}
        self.child(-1, self.frame(FrameKind.ROOT, "root"))

    def frame(
        self,
        kind: str | FrameKind,
        name: str,
        *,
        file: str = "",
        line: int = 0,
        first_line: int = 0,
        module: str = "",
        address: int = 0,
        detail: str = "",
    ) -> int:
        """Row of that frame, new or known; `detail` is a JSON object or empty."""
        add = self._strings.add
        key = (int(frame_kind(kind)), add(name), add(file), line, first_line, add(module), address, add(detail))
        return self._frames.setdefault(key, len(self._frames))

    def child(self, parent: int, frame: int) -> int:
        """Row of the node for `frame` below `parent`, new or known."""
        return self._nodes.setdefault((parent, frame), len(self._nodes))

    def add(self, node: int, metric: str | MetricKind, value: int, device: int = -1, stream: int = -1) -> None:
        """One measurement at a node."""
        key = (node, int(metric_kind(metric)), device, stream)
        held = self._metrics.setdefault(key, [0, 0, value, value, 0.0])
        held[0] += 1
        held[1] += value
        held[2] = min(held[2], value)
        held[3] = max(held[3], value)
        held[4] += float(value) ** 2

    def add_total(
        self,
        node: int,
        metric: str | MetricKind,
        total: tuple[int, int, int, int, float],
        device: int = -1,
        stream: int = -1,
    ) -> None:
        """Several measurements at a node: count, sum, smallest, largest, sum of squares."""
        key = (node, int(metric_kind(metric)), device, stream)
        held = self._metrics.setdefault(key, [0, 0, total[2], total[3], 0.0])
        held[0] += total[0]
        held[1] += total[1]
        held[2] = min(held[2], total[2])
        held[3] = max(held[3], total[3])
        held[4] += total[4]

    def process(self, name: str, **facts: int) -> int:
        """A process row with its node below the root; returns its row. `facts` are further columns of the table."""
        row = {"pid": 100 + len(self._rows["processes"]), "rank": -1, "local_rank": -1, "complete": 1, **facts}
        detail = process_detail(row["pid"], row.get("start_ns", 0))
        node = self.child(0, self.frame(FrameKind.PROCESS, name, detail=detail))
        return self._append("processes", {"node": node, "name": self._strings.add(name), **row})

    def thread(self, process: int, name: str, **facts: int) -> int:
        """A thread row with its node below its process; returns its row."""
        node = self.child(self.node_of_process(process), self.frame(FrameKind.THREAD, name))
        row = {
            "process": process,
            "node": node,
            "name": self._strings.add(name),
            "tid": 1000 + len(self._rows["threads"]),
        }
        return self._append("threads", {**row, **facts})

    def main_thread(self, thread: int) -> None:
        """The thread in that row is the one that its process began with."""
        self._append("main_threads", {"thread": thread, "count": 1})

    def steps(self, thread: int, rows: StepRows) -> None:
        """Steps whose borders the thread in that row crossed."""
        self._steps[thread] = rows

    def node_of_process(self, process: int) -> int:
        return self._rows["processes"][process]["node"]

    def node_of_thread(self, thread: int) -> int:
        return self._rows["threads"][thread]["node"]

    def device(
        self, process: int, index: int, name: str = "GPU", uuid: str = "", memory_bytes: int = 0, detail: str = ""
    ) -> int:
        add = self._strings.add
        row = {"process": process, "index": index, "name": add(name), "uuid": add(uuid)}
        return self._append("devices", {**row, "memory_bytes": memory_bytes, "detail": add(detail)})

    def devices(self) -> int:
        """How many devices there are."""
        return len(self._rows["devices"])

    def loss(self, process: int, kind: str | LossKind, count: int, detail: str = "") -> None:
        number = kind if isinstance(kind, LossKind) else LossKind[kind.upper()]
        self._append(
            "losses", {"process": process, "kind": int(number), "count": count, "detail": self._strings.add(detail)}
        )

    def event(self, kind: str | EventKind, node: int, start_ns: int, duration_ns: int, **facts: int) -> None:
        """One event of the trace window; columns that are not named hold "none"."""
        number = kind if isinstance(kind, EventKind) else EventKind[kind.upper()]
        row = {"kind": int(number), "node": node, "start_ns": start_ns, "duration_ns": duration_ns}
        self._append("events", {**_EVENT_DEFAULTS, **row, **facts})

    def kernel_event(self, kind: str | KernelEventKind, time_ns: int, name: str = "", **facts: int) -> None:
        """Something that the kernel did; `tid`, `target`, `cpu` and `value` as the schema has them for its kind."""
        number = kind if isinstance(kind, KernelEventKind) else KernelEventKind[kind.upper()]
        row = {"kind": int(number), "time_ns": time_ns, "name": self._strings.add(name)}
        self._append("kernel_events", {"tid": -1, "target": -1, **row, **facts})

    def tables(self) -> Tables:
        frame_names = [column.name for column in TABLES["frames"].columns]
        metric_names = [column.name for column in TABLES["metrics"].columns]
        rows: dict[str, list[dict[str, Any]]] = {
            **self._rows,
            "frames": [dict(zip(frame_names, key, strict=True)) for key in self._frames],
            "nodes": [{"parent": parent, "frame": frame} for parent, frame in self._nodes],
            "metrics": [dict(zip(metric_names, (*key, *held), strict=True)) for key, held in self._metrics.items()],
            "events": sorted(self._rows["events"], key=lambda row: row["start_ns"]),
            "kernel_events": sorted(self._rows["kernel_events"], key=lambda row: row["time_ns"]),
        }
        columns = {name: columns_from_rows(name, listed) for name, listed in rows.items()}
        columns |= columns_of(self._steps)
        columns["strings"] = self._strings.columns()
        return Tables({name: columns[name] if name in columns else empty_columns(name) for name in TABLES})

    def profile(self, meta: dict[str, Any] | None = None) -> Profile:
        return Profile(self.tables(), synthetic_meta() if meta is None else meta)

    def _append(self, table: str, row: dict[str, int]) -> int:
        known = {column.name for column in TABLES[table].columns}
        if unknown := set(row) - known:
            raise ValueError(
                f"The table {table} has no column {', '.join(sorted(unknown))}; it has {', '.join(sorted(known))}."
            )
        self._rows[table].append({name: row.get(name, 0) for name in known})
        return len(self._rows[table]) - 1
