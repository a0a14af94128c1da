"""Device work of a trace below the calls that launched it, with its metrics, and the time when a device had none."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.demangle import demangler
from leadline.schema import FrameKind, MetricKind
from leadline.trace.event_types import is_collective
from leadline.trace.importers.spans import Rows
from leadline.trace.intervals import common, length, union
from leadline.trace.tables import CALL_KINDS, DEVICE_KINDS, Kind, Trace

_DIRECTION = re.compile(r"\b([HDP]to[HDP])\b")


def device_rows(trace: Trace) -> Rows:
    """Rows of the trace's events that are work on a device."""
    found: Rows = np.flatnonzero(np.isin(trace.events["kind"], DEVICE_KINDS) & (trace.events["thread"] < 0))
    return found


def book_device_work(
    builder: ProfileBuilder, trace: Trace, node: Rows, process_node: int, devices: Mapping[int, int]
) -> int:
    """Sets `node` of device work, and adds its metrics. Work whose launch the trace does not hold hangs below its
    process; the answer is how much of it there is."""
    events = trace.events
    rows = device_rows(trace)
    calls = np.flatnonzero(np.isin(events["kind"], CALL_KINDS) & (events["thread"] >= 0) & (events["correlation"] != 0))
    launch_of = dict(zip(events["correlation"][calls].tolist(), calls.tolist(), strict=True))
    frames: dict[tuple[int, int, str], int] = {}
    demangle = demangler()
    unattributed = 0
    for row in rows.tolist():
        kind, name, stream = Kind(int(events["kind"][row])), int(events["name"][row]), int(events["stream"][row])
        device = devices[int(events["device"][row])]
        launch = launch_of.get(int(events["correlation"][row]), -1) if events["correlation"][row] else -1
        unattributed += launch < 0
        more = int(events["detail"][row])
        facts = _collective_facts(trace.details[more]) if more >= 0 else ""
        key = (int(kind), name, facts)
        if key not in frames:
            frames[key] = _frame(builder, kind, demangle(trace.strings[name]), facts)
        frame = frames[key]
        at = node[row] = builder.child(int(node[launch]) if launch >= 0 else process_node, frame)
        builder.add(at, MetricKind.GPU_TIME, int(events["duration_ns"][row]), device, stream)
        if launch >= 0 and events["kind"][launch] != Kind.GRAPH_LAUNCH:
            waited = int(events["start_ns"][row] - events["start_ns"][launch])
            if waited >= 0:
                builder.add(at, MetricKind.LAUNCH_LATENCY, waited, device, stream)
        if kind in (Kind.COPY, Kind.SET):
            metric = MetricKind.COPY_BYTES if kind == Kind.COPY else MetricKind.SET_BYTES
            builder.add(at, metric, int(events["bytes"][row]), device, stream)
        else:
            told = trace.details[more] if more >= 0 else {}
            if launch >= 0 and events["kind"][launch] != Kind.GRAPH_LAUNCH and "block" not in told:
                told = {**_said_at_launch(trace, launch), **told}
            for metric, value in launch_shape(told):
                builder.add(at, metric, value, device, stream)
    return unattributed


def _said_at_launch(trace: Trace, launch: int) -> Mapping[str, Any]:
    """Traces of ROCm say the shape of a launch at the call, not at the kernel."""
    more = int(trace.events["detail"][launch])
    detail = trace.details[more] if more >= 0 else {}
    in_threads = trace.strings[int(trace.events["name"][launch])].startswith(
        "hipExtModule"
    )  # whose grid is not of blocks
    return {key: detail[key] for key in ("block", "shared memory", *(() if in_threads else ("grid",))) if key in detail}


_COLLECTIVE_FACTS = (
    *("Collective name", "In msg nelems", "Out msg nelems", "dtype", "Group size", "Process Group Name"),
    *("Process Group Description", "Process Group Ranks"),
)


def _collective_facts(detail: Mapping[str, Any]) -> str:
    """What newer traces say of a collective, but for its number, which would make a frame of each; empty for others."""
    facts = {name: detail[name] for name in _COLLECTIVE_FACTS if name in detail}
    return json.dumps(facts) if facts else ""


def _frame(builder: ProfileBuilder, kind: Kind, name: str, facts: str) -> int:
    if kind in (Kind.COPY, Kind.SET):
        found = _DIRECTION.search(name) if kind == Kind.COPY else None
        return builder.frame(FrameKind.COPY, name, detail=f'{{"direction": "{found[1]}"}}' if found else "")
    return builder.frame(FrameKind.COLLECTIVE if is_collective(name) else FrameKind.KERNEL, name, detail=facts)


def launch_shape(detail: Mapping[str, Any]) -> list[tuple[MetricKind, int]]:
    """Blocks, threads, registers, shared memory and occupancy of a launch, as far as the trace says."""
    found = []
    for metric, key in ((MetricKind.GRID_BLOCKS, "grid"), (MetricKind.BLOCK_THREADS, "block")):
        sizes = detail.get(key)
        if isinstance(sizes, list) and sizes and all(isinstance(size, int) and size > 0 for size in sizes):
            found.append((metric, math.prod(sizes)))
    for metric, key, unit in (
        (MetricKind.REGISTERS, "registers per thread", 1),
        (MetricKind.DYNAMIC_SHARED_BYTES, "shared memory", 1),
        (MetricKind.OCCUPANCY, "est. achieved occupancy %", 10_000),
    ):
        value = detail.get(key)
        if isinstance(value, int | float) and 0 <= value < 2**40:
            found.append((metric, round(value * unit)))
    return found


def busy_facts(trace: Trace, index: int) -> dict[str, int]:
    """What a device did from its first work to its last, as our own providers say it in a device's `detail`: unions in
    nanoseconds, and of copies and communication what ran beside computation."""
    events = trace.events
    rows = device_rows(trace)
    rows = rows[events["device"][rows] == index]
    talks = np.array([is_collective(name) for name in trace.strings], dtype=np.bool_)[events["name"][rows]]
    copies = np.isin(events["kind"][rows], (Kind.COPY, Kind.SET))
    start, end = events["start_ns"][rows], trace.end_ns[rows]
    whole, compute, copy, talk = (
        union(start[mask], end[mask]) for mask in (np.ones(rows.size, np.bool_), ~copies & ~talks, copies, talks)
    )
    lasted = int(end.max(initial=0) - start.min(initial=int(end.max(initial=0))))
    return {
        "busy_ns": length(whole),
        "idle_ns": lasted - length(whole),
        "compute_ns": length(compute),
        "copy_ns": length(copy),
        "communication_ns": length(talk),
        "copy_under_compute_ns": common(copy, compute),
        "communication_under_compute_ns": common(talk, compute),
    }


def book_idle(builder: ProfileBuilder, trace: Trace, node: Rows, devices: Mapping[int, int]) -> None:
    """Charges the time in which a device had nothing to do to the path of the work that ended it."""
    events = trace.events
    rows = device_rows(trace)
    for index, device in devices.items():
        mine = rows[events["device"][rows] == index]
        busy_until = np.maximum.accumulate(trace.end_ns[mine])[:-1]
        gap = events["start_ns"][mine][1:] - busy_until
        for place in np.flatnonzero(gap > 0).tolist():
            builder.add(int(node[mine[place + 1]]), MetricKind.GPU_IDLE_TIME, int(gap[place]), device)
