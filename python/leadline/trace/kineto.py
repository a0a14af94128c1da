"""Kineto JSON (torch 1.8 to today, CUDA and ROCm) into the event tables.

Traps that this reader knows: categories were `Operator`, `Runtime`, `Kernel` up to torch 1.11, every range was an
operator then (meaning.py says what it is), and thread ids are text in places; `External id` of device work is only its
correlation id in many versions, so nothing is joined by it; times are microseconds, since torch 2.4 relative to
`baseTimeNanoseconds`; synchronisation records sit on threads that do not exist (stream + 1000000), so their `stream`
argument counts, not their `tid`; python_function events may sit on a process 0 of their own.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.trace.jsonstream import EventStream
from leadline.trace.kineto_rows import Collector, number
from leadline.trace.meaning import settle
from leadline.trace.source import Source
from leadline.trace.tables import EVENT_COLUMNS, Device, Flow, Thread, Trace, TraceError

HOUR_US = 3600e6
_MARKS = re.compile(rb'"(ProfilerStep|Optimizer\.step#)')


def read_kineto(source: Source, window_us: tuple[float, float] | None = None, *, python: bool = False) -> Trace:
    """The events of one rank.

    window_us: keep what overlaps this range of the file's own clock, so that memory is bounded by the range.
    python: with the calls of Python functions, which are most of a trace that was recorded `with_stack`.

    Raises TraceError when the file holds no events of the kinds that Leadline knows.
    """
    reader, batches = _read(source, Collector(window_us, python=python), None)
    if not reader.rows.count:
        raise TraceError(
            f"{source.name} holds no operator, API call or kernel"
            + (" in the chosen window" if window_us else "")
            + "; record it with torch.profiler and export_chrome_trace"
        )
    return _assemble(reader, batches, source)


def scan_marks(source: Source) -> tuple[Trace | None, int]:
    """Only the step marks of a trace, without keeping or mostly even decoding anything else; None where it has none.
    Also the size of the decompressed text in bytes."""
    reader, batches = _read(source, Collector(None, marks_only=True), _MARKS)
    return (_assemble(reader, batches, source) if reader.rows.count else None), batches.bytes_read


def _read(source: Source, reader: Collector, wanted: re.Pattern[bytes] | None) -> tuple[Collector, EventStream]:
    stream = source.open()
    try:
        batches = EventStream(stream, source.name, wanted)
        collecting = gc.isenabled()
        gc.disable()  # millions of live objects and no cycles: the collector would only walk them again and again
        try:
            for events in batches:
                reader.batch(events)
        finally:
            if collecting:
                gc.enable()
    finally:
        stream.close()
    return reader, batches


def _assemble(reader: Collector, batches: EventStream, source: Source) -> Trace:
    columns, header = reader.rows.columns(), batches.header
    ts, dur = columns.pop("ts"), columns.pop("dur")
    plausible, warnings = _plausible(ts, dur)
    if not batches.complete:
        warnings.append("the file ends early or is damaged; only what could be read is used")
    if reader.malformed:
        warnings.append(f"{reader.malformed} events lack a field that they need; they are left out")
    if not plausible.any():
        raise TraceError(f"{source.name} holds no event with a usable time; record it again")
    origin = float(ts[plausible].min())
    # the origin is taken off in microseconds first: a double holds today's date only to a quarter of one
    kept = np.flatnonzero(plausible)
    start = np.rint((ts[kept] - origin) * 1000).astype(np.int64)
    duration = np.rint(np.maximum(dur[kept], 0) * 1000).astype(np.int64)
    order = np.lexsort((columns.pop("position")[kept], -duration, start))
    events: dict[str, NDArray[Any]] = {
        name: values[kept[order]].astype(EVENT_COLUMNS[name], copy=False) for name, values in columns.items()
    }
    events["start_ns"], events["duration_ns"] = start[order], duration[order]
    for column in ("node", "step"):  # a trace of others has neither
        events[column] = np.full(order.size, -1, dtype=EVENT_COLUMNS[column])
    strings = [str(name) for name in reader.strings]
    events["kind"] = settle(events, strings, categories_tell=not reader.legacy).astype(EVENT_COLUMNS["kind"])
    _add_synchronisations(events, reader.syncs)
    distributed = _mapping(header.get("distributedInfo"))
    return Trace(
        events=events,
        strings=strings,
        details=reader.details,
        threads=_threads(reader),
        devices=_devices(header),
        flows=_flows(reader, origin),
        rank=_whole(distributed.get("rank"), -1),
        world_size=_whole(distributed.get("world_size"), 0),
        source=source.name,
        origin_ns=_whole(header.get("baseTimeNanoseconds"), 0) + round(origin * 1000),
        complete=batches.complete,
        warnings=tuple(warnings),
        facts={
            "has_sync_records": bool(reader.syncs),
            "memory": tuple((round((at - origin) * 1000), size, where) for at, size, where in reader.memory),
            "distributed": distributed,
            "origin_us": origin,
        },
    )


def _plausible(ts: NDArray[np.float64], dur: NDArray[np.float64]) -> tuple[NDArray[np.bool_], list[str]]:
    """Which events can be used, and what is wrong with the others. The clock is that of the bulk of the events: a time
    stamp an hour away from the median is from another one."""
    warnings = []
    negative = int((dur < 0).sum())
    if negative:
        warnings.append(f"{negative} events have a negative duration; they count as 0 ns")
    finite = np.isfinite(ts) & np.isfinite(dur)
    middle = float(np.median(ts[finite])) if finite.any() else 0.0
    near = finite & (np.abs(np.where(finite, ts, 0.0) - middle) < HOUR_US) & (np.where(finite, dur, 0.0) < HOUR_US)
    lost = int((finite & ~near).sum())
    if lost:
        warnings.append(
            f"{lost} events lie more than an hour from all others, or last longer (a clock jump); they are left out"
        )
    if not finite.all():
        warnings.append(f"{int((~finite).sum())} events have a time that is no number; they are left out")
    return near, warnings


def _add_synchronisations(events: dict[str, NDArray[Any]], syncs: Mapping[int, tuple[int, int, int]]) -> None:
    """Fill the columns that say what a call waited for."""
    count = events["start_ns"].size
    waiting, awaited = np.full(count, -1, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    record = np.zeros(count, dtype=np.int64)
    if syncs:
        for row in np.flatnonzero(np.isin(events["correlation"], list(syncs)) & (events["thread"] >= 0)):
            waiting[row], awaited[row], record[row] = syncs[int(events["correlation"][row])]
    events["awaits"], events["awaits_correlation"] = awaited, record
    events["stream"] = np.where(waiting >= 0, waiting, events["stream"]).astype("i4")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any, default: int) -> int:
    """A number of the header that fits into 64 bits, else the default."""
    return int(value) if isinstance(value, int | float) and abs(value) < 2**62 else default


def _threads(reader: Collector) -> list[Thread]:
    names = {reader.thread_row(*key): name for key, name in reader.thread_names.items()}
    return [Thread(0, pid, tid, names.get(row, "")) for (pid, tid), row in reader.threads.items()]


def _flows(reader: Collector, origin: float) -> list[Flow]:
    flows = []
    for ends in reader.flow_ends.values():
        starts = [end for end in ends if end[0] == "s"]
        finishes = [end for end in ends if end[0] == "f"]
        if len(starts) == 1 and len(finishes) == 1:
            (_, forward, forward_ts), (_, backward, backward_ts) = starts[0], finishes[0]
            times = [round((at - origin) * 1000) for at in (forward_ts, backward_ts)]
            flows.append(Flow(forward, times[0], backward, times[1]))
    return flows


def _devices(header: Mapping[str, Any]) -> list[Device]:
    found: list[Device] = []
    listed = header.get("deviceProperties", header.get("computeProperties"))  # the second up to torch 1.11
    for item in listed if isinstance(listed, list) else ():
        if not isinstance(item, dict):
            continue
        major, minor = (item.get(f"compute{part}", item.get(part.lower())) for part in ("Major", "Minor"))
        found.append(
            Device(
                index=number(item.get("id", len(found))),
                name=str(item.get("name", "")),
                memory_bytes=_whole(item.get("totalGlobalMem"), 0),
                compute_capability=f"{major}.{minor}" if major is not None else "",
                multiprocessors=_whole(item.get("numSms", item.get("multiProcessorCount")), 0),
            )
        )
    return found
