"""The trace window of a Leadline profile as event tables: one trace per process that has events.

Names come from each event's node of the calling context tree, and every event keeps that node and its step. Where the
file has no module or phase spans, `spans.py` makes them of runs of events.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.profiles.lineage import event_clocks, moved_ns, parent_rows, record_of_rows
from leadline.profiles.profile import Profile
from leadline.schema import EventKind, FrameKind
from leadline.trace.lanes import in_order
from leadline.trace.links import links_of
from leadline.trace.spans import Scopes, nearest, with_spans
from leadline.trace.tables import EVENT_COLUMNS, Device, Kind, Thread, Trace, TraceError

_PHASES = frozenset(("forward", "backward", "optimizer", "closure", "zero_grad", "data loading"))
_SHAPE_KEYS: Mapping[str, str] = {"shapes": "Input Dims", "types": "Input type"}


def read_profile(profile: Profile, source: str = "") -> list[Trace]:
    """The traces of all processes of a profile, by rank and then by process.

    Raises TraceError when the profile has no trace window.
    """
    events = profile.events
    if not len(events["start_ns"]):
        raise TraceError(
            f"{source or 'the profile'} holds no trace window; record one with `leadline run --trace steps=3`"
        )
    process_of_thread = np.array([thread.process for thread in profile.threads], dtype=np.int64)
    process_of_device = np.array([device.process for device in profile.devices], dtype=np.int64)
    owner = np.zeros(len(events["start_ns"]), dtype=np.int64)
    on_thread, on_device = events["thread"] >= 0, (events["thread"] < 0) & (events["device"] >= 0)
    owner[on_thread] = process_of_thread[events["thread"][on_thread]]
    owner[on_device] = process_of_device[events["device"][on_device]]
    family = _families(profile, owner)
    owner = family[owner]
    facts = _Facts(profile)
    return [
        _process(profile, facts, int(process), np.flatnonzero(owner == process), family == process, source)
        for process in np.unique(owner).tolist()
    ]


def _families(profile: Profile, owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """For every process the one whose trace it joins: a child without steps of its own, such as a data-loading worker,
    joins its parent, with which it shares the clock."""
    stepping = set(owner[profile.events["kind"] == EventKind.STEP].tolist())
    family = np.arange(len(profile.processes), dtype=np.int64)
    for row, parent in enumerate(parent_rows(profile)):
        if row not in stepping and parent in stepping:
            family[row] = parent
    return family


class _Facts:
    """What each node of the tree says about its events: name, module, phase and operator detail."""

    def __init__(self, profile: Profile) -> None:
        tree = profile.tree
        kinds = np.asarray(tree.frames["kind"])[tree.frame_of]
        self.strings: dict[str, int] = {}
        self.details: list[Mapping[str, Any]] = []
        frames = len(tree.frames["kind"])
        self.name_of_frame = np.array([self.intern(tree.text("name", row)) for row in range(frames)], dtype=np.int64)
        detail_of_frame = np.array([self._detail(tree.text("detail", row)) for row in range(frames)], dtype=np.int64)
        self.name = self.name_of_frame[tree.frame_of]
        self.detail = detail_of_frame[tree.frame_of]
        texts = list(self.strings)
        is_phase = np.array([text in _PHASES for text in texts], dtype=np.bool_)[self.name] & (kinds == FrameKind.PHASE)
        phase = nearest(tree.parent, is_phase)
        backward = (phase >= 0) & (self.name[phase] == self.strings.get("backward", -1))
        self.scopes = Scopes(nearest(tree.parent, kinds == FrameKind.MODULE), phase, self.name, backward)

    def intern(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def _detail(self, text: str) -> int:
        if not text:
            return -1
        try:
            found = json.loads(text)
        except ValueError:
            return -1
        if not isinstance(found, dict):
            return -1
        self.details.append({_SHAPE_KEYS.get(str(key), str(key)): value for key, value in found.items()})
        return len(self.details) - 1


def _process(
    profile: Profile,
    facts: _Facts,
    process: int,
    rows: NDArray[np.int64],
    members: NDArray[np.bool_],
    source: str,
) -> Trace:
    events = profile.events
    threads = [thread for thread in profile.threads if members[thread.process]]
    devices = [device for device in profile.devices if device.process == process]
    record = profile.processes[process]
    node = events["node"][rows].astype(np.int64)
    columns: dict[str, NDArray[Any]] = {
        name: _taken(np.asarray(events[name]), rows, dtype) for name, dtype in EVENT_COLUMNS.items() if name in events
    }
    columns["name"] = facts.name[node]
    columns["detail"] = facts.detail[node]
    columns["thread"] = _renumber(columns["thread"], {thread.row: at for at, thread in enumerate(threads)})
    columns["device"] = _renumber(columns["device"], {device.row: device.index for device in devices})
    columns["forward_thread"] = np.asarray(events["forward_thread"])[rows].astype("i8")
    steps = columns["kind"] == EventKind.STEP
    numbers = np.asarray(events["step"])[rows][steps].tolist()
    columns["name"][steps] = [facts.intern(f"step {number}") for number in numbers]
    # what had not ended when the window closed lasts to its end
    end = int((columns["start_ns"] + np.maximum(columns["duration_ns"], 0)).max())
    running = columns["duration_ns"] < 0
    columns["duration_ns"][running] = end - columns["start_ns"][running]
    columns = with_spans(columns, facts.scopes)
    origin = int(columns["start_ns"].min())
    columns["start_ns"] = columns["start_ns"] - origin
    if not in_order(columns["start_ns"], columns["start_ns"] + columns["duration_ns"]):
        order = np.lexsort((-columns["duration_ns"], columns["start_ns"]))
        columns = {name: values[order] for name, values in columns.items()}
    ordered = {name: columns[name].astype(dtype, copy=False) for name, dtype in EVENT_COLUMNS.items()}
    clock = event_clocks(profile)[process]
    synchronising = np.isin(ordered["kind"], [Kind.SYNCHRONIZE, Kind.STREAM_WAIT])
    known = bool((synchronising & ((ordered["awaits"] >= 0) | (ordered["awaits_correlation"] > 0))).any())
    return Trace(
        events=ordered,
        strings=list(facts.strings),
        details=facts.details,
        threads=[Thread(max(record.rank, 0), thread.process, thread.tid, thread.name) for thread in threads],
        devices=[_device(device) for device in devices],
        rank=record.rank,
        world_size=max(
            _said_world_size(record_of_rows(profile)[process]), *(item.rank + 1 for item in profile.processes)
        ),
        source=source,
        origin_ns=origin + (clock or 0),
        complete=record.complete,
        warnings=tuple(_warnings(profile)),
        facts={
            "has_sync_records": known,
            "memory": _memory(ordered),
            "process": process,
            "recorder": record_of_rows(profile)[process].get("recorder", {}),
            "begin_ns": origin,  # time 0 on the clock of the profile's events
            # what the machine's CLOCK_REALTIME is ahead of its own CLOCK_MONOTONIC
            "clock_ns": (clock or 0) + moved_ns(record_of_rows(profile)[process]),
        },
    )


def _taken(values: NDArray[Any], rows: NDArray[np.int64], dtype: Any) -> NDArray[Any]:
    """These rows of a column, in memory of their own; `rows` are in order."""
    return values.astype(dtype) if rows.size == values.size else values[rows].astype(dtype, copy=False)


def _said_world_size(record: Mapping[str, Any]) -> int:
    """Of how many ranks its launcher said that there are; 0 where it did not."""
    launch = record.get("launch")
    said = launch.get("world_size") if isinstance(launch, dict) else None
    return said if isinstance(said, int) and not isinstance(said, bool) and 0 < said < 2**31 else 0


def _renumber(values: NDArray[Any], places: Mapping[int, int]) -> NDArray[np.int64]:
    last = max([*places, int(values.max(initial=-1)), -1]) + 1
    table = np.full(last + 1, -1, dtype=np.int64)  # its last place is that of -1
    for value, place in places.items():
        table[value] = place
    found: NDArray[np.int64] = table[values]
    return found


def _device(device: Any) -> Device:
    detail = device.detail
    return Device(
        index=device.index,
        name=device.name,
        memory_bytes=device.memory_bytes,
        compute_capability=str(detail.get("compute_capability", "")),
        multiprocessors=int(detail.get("multiprocessors", 0)),
        links=links_of(detail),
    )


def _memory(columns: Mapping[str, NDArray[Any]]) -> tuple[tuple[int, int, int], ...]:
    """(time, bytes, 1 on a device) of every allocation and release."""
    rows = np.flatnonzero((columns["kind"] == Kind.ALLOCATE) & (columns["bytes"] != 0))
    on_device = (columns["device"][rows] >= 0).astype(np.int64)
    return tuple(
        zip(columns["start_ns"][rows].tolist(), columns["bytes"][rows].tolist(), on_device.tolist(), strict=True)
    )


def _warnings(profile: Profile) -> list[str]:
    """Losses that touch the trace window."""
    wanted = (
        "events_dropped",
        "trace_events_unread",
        "trace_remark",
        "gpu_records_dropped",
        "gpu_record_unattributed",
        "gpu_buffer_exhausted",
    )
    return [
        f"the profile counts {loss.count} {str(loss.kind).replace('_', ' ')}: {loss.detail or 'see its losses'}"
        if loss.count
        else loss.detail
        for loss in profile.losses
        if str(loss.kind) in wanted
    ]
