"""Kineto JSON (torch 1.8 to today, CUDA and ROCm) into the event tables.

Traps that this reader knows: categories were `Operator`, `Runtime`, `Kernel` up to torch 1.12 and process ids could be
text; `External id` of device work is only its correlation id in many versions, so nothing is joined by it; times are
microseconds, since torch 2.4 relative to `baseTimeNanoseconds`; synchronisation records sit on threads that do not
exist (stream + 1000000), so their `stream` argument counts, not their `tid`; python_function events may sit on a
process 0 of their own.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leadline.trace.calls import call_kind
from leadline.trace.jsonstream import EventStream
from leadline.trace.source import Source
from leadline.trace.tables import EVENT_COLUMNS, Device, Flow, Kind, Thread, Trace, TraceError

_CATEGORIES: Mapping[str, Kind | None] = {
    "cpu_op": Kind.OPERATOR,
    "operator": Kind.OPERATOR,
    "user_annotation": Kind.REGION,
    "cuda_runtime": Kind.API,
    "cuda_driver": Kind.API,
    "runtime": Kind.API,
    "hip_runtime": Kind.API,
    "xpu_runtime": Kind.API,
    "privateuse1_runtime": Kind.API,
    "privateuse1_driver": Kind.API,
    "kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.COPY,
    "memcpy": Kind.COPY,
    "gpu_memset": Kind.SET,
    "memset": Kind.SET,
    "python_function": Kind.MODULE,
    "cuda_sync": None,
}
STEP_MARKS = ("ProfilerStep", "Optimizer.step#")
_MARKS = re.compile(rb'"(ProfilerStep|Optimizer\.step#)')
_MODULE = "nn.Module: "
_KEEP_DETAIL = frozenset(("Input Dims", "Input dims", "grid", "Collective name", "bytes"))


@dataclass
class _Rows:
    """Columns while reading; ts and dur in microseconds of the file."""

    ts: list[float] = field(default_factory=list)
    dur: list[float] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    thread: list[int] = field(default_factory=list)
    device: list[int] = field(default_factory=list)
    stream: list[int] = field(default_factory=list)
    correlation: list[int] = field(default_factory=list)
    sequence: list[int] = field(default_factory=list)
    forward_thread: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    detail: list[int] = field(default_factory=list)


class _Reader:
    def __init__(self, window_us: tuple[float, float] | None, *, marks_only: bool = False) -> None:
        self.window = window_us
        self.marks_only = marks_only
        self.rows = _Rows()
        self.strings: dict[str, int] = {}
        self.details: list[Mapping[str, Any]] = []
        self.threads: dict[tuple[Any, Any], int] = {}
        self.thread_names: dict[tuple[Any, Any], str] = {}
        self.flow_ends: dict[Any, list[tuple[str, int, float]]] = {}
        self.syncs: dict[int, tuple[int, int, int]] = {}
        self.malformed = 0
        self.gpu_annotations = 0
        self.memory: list[tuple[float, int, int]] = []
        self.call_kinds: dict[str, int] = {}

    def batch(self, events: list[Any]) -> None:
        low, high = self.window or (-np.inf, np.inf)
        for event in events:
            try:
                phase = event["ph"]
                if phase == "X":
                    begin = event["ts"]
                    if begin <= high and begin + event.get("dur", 0) >= low:
                        self.span(event, begin)
                elif phase == "s" or phase == "f":
                    if event.get("cat") == "fwdbwd":
                        self.flow(event, phase)
                elif phase == "M":
                    if event.get("name") == "thread_name":
                        key = (event["pid"], event["tid"])
                        self.thread_names[key] = str(event.get("args", {}).get("name", ""))
                elif phase == "i" and event.get("name") == "[memory]":
                    args = event["args"]
                    self.memory.append((event["ts"], args["Bytes"], args.get("Device Type", 0)))
            except (KeyError, TypeError, AttributeError):
                self.malformed += 1

    def thread(self, pid: Any, tid: Any) -> int:
        return self.threads.setdefault((pid, tid), len(self.threads))

    def span(self, event: Mapping[str, Any], begin: float) -> None:
        category = event.get("cat", "")
        kind = _CATEGORIES.get(category, -1)
        if kind == -1:
            kind = _CATEGORIES.get(category.lower(), -1)
            if kind == -1:
                return
        args = event.get("args") or {}
        if self.marks_only and kind != Kind.REGION:
            return
        if kind is None:
            self.sync(args)
            return
        name = event["name"]
        value = int(kind)
        rows = self.rows
        thread = device = stream = -1
        correlation, sequence, forward, size = 0, -1, -1, 0
        if value == Kind.OPERATOR:
            thread = self.thread(event["pid"], event["tid"])
            if "Sequence number" in args:
                sequence = args["Sequence number"]
                forward = args.get("Fwd thread id", -1)
                if sequence > 2**62:  # an unsigned -1
                    sequence = -1
        elif value == Kind.API:
            thread = self.thread(event["pid"], event["tid"])
            correlation = args.get("correlation", 0)
            value = self.call_kinds.get(name, -1)
            if value < 0:
                value = self.call_kinds[name] = int(call_kind(name))
        elif value == Kind.REGION:
            if self.marks_only and not name.startswith(STEP_MARKS):
                return
            thread = self.thread(event["pid"], event["tid"])
            if name.startswith("ProfilerStep"):
                value = int(Kind.STEP)
        elif value == Kind.MODULE:
            if not name.startswith(_MODULE):
                return
            name = name[len(_MODULE) :]
            thread = self.thread(event["pid"], event["tid"])
        else:
            device = _number(args.get("device", event.get("pid", 0)))
            stream = _number(args.get("stream", event.get("tid", 0)))
            correlation = args.get("correlation", 0)
            size = args.get("bytes", 0)
        detail = -1
        if args and not _KEEP_DETAIL.isdisjoint(args):
            detail = len(self.details)
            self.details.append(args)
        rows.ts.append(begin)
        rows.dur.append(event.get("dur", 0))
        rows.kind.append(value)
        rows.name.append(self.strings.setdefault(name, len(self.strings)))
        rows.thread.append(thread)
        rows.device.append(device)
        rows.stream.append(stream)
        rows.correlation.append(correlation)
        rows.sequence.append(sequence)
        rows.forward_thread.append(forward)
        rows.size.append(size)
        rows.detail.append(detail)

    def sync(self, args: Mapping[str, Any]) -> None:
        """A cuda_sync record: which stream or event an API call waited for, by the call's correlation id."""
        waiting = _unknown(args.get("stream", -1))
        awaited = _unknown(args.get("wait_on_stream", waiting))
        if args.get("cuda_sync_kind") == "Stream Sync" and "wait_on_stream" not in args:
            awaited = waiting
        record = _unknown(args.get("wait_on_cuda_event_record_corr_id", -1))
        self.syncs[args["correlation"]] = (waiting, awaited, max(record, 0))

    def flow(self, event: Mapping[str, Any], phase: str) -> None:
        thread = self.thread(event["pid"], event["tid"])
        self.flow_ends.setdefault(event["id"], []).append((phase, thread, event["ts"]))


def _unknown(value: Any) -> int:
    """CUPTI's all-ones for "none" as -1."""
    number = _number(value)
    return -1 if number >= 2**32 - 1 else number


def _number(value: Any) -> int:
    if isinstance(value, int):
        return value
    found = re.search(r"-?\d+", str(value))
    return int(found.group()) if found else 0


def read_kineto(source: Source, window_us: tuple[float, float] | None = None) -> Trace:
    """The events of one rank.

    window_us: keep what overlaps this range of the file's own clock, so that memory is bounded by the range.

    Raises TraceError when the file holds no events of the kinds that Leadline knows.
    """
    reader, batches = _read(source, _Reader(window_us), None)
    if not reader.rows.ts:
        raise TraceError(
            f"{source.name} holds no operator, API call or kernel"
            + (" in the chosen window" if window_us else "")
            + "; record it with torch.profiler and export_chrome_trace"
        )
    return _assemble(reader, batches, source)


def scan_marks(source: Source) -> tuple[Trace | None, int]:
    """Only the step marks of a trace, without keeping or mostly even decoding anything else; None where it has none.
    Also the size of the decompressed text in bytes."""
    reader, batches = _read(source, _Reader(None, marks_only=True), _MARKS)
    return (_assemble(reader, batches, source) if reader.rows.ts else None), batches.bytes_read


def _read(source: Source, reader: _Reader, wanted: re.Pattern[bytes] | None) -> tuple[_Reader, EventStream]:
    stream = source.open()
    try:
        batches = EventStream(stream, wanted)
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


def _assemble(reader: _Reader, batches: EventStream, source: Source) -> Trace:
    rows, header = reader.rows, batches.header
    warnings: list[str] = []
    ts = np.array(rows.ts, dtype=np.float64)
    dur = np.array(rows.dur, dtype=np.float64)
    negative = int((dur < 0).sum())
    if negative:
        warnings.append(f"{negative} events have a negative duration; they count as 0 ns")
    if not batches.complete:
        warnings.append("the file ends early or is damaged; only what could be read is used")
    if reader.malformed:
        warnings.append(f"{reader.malformed} events lack a field that they need; they are left out")
    kinds = np.array(rows.kind, dtype=np.uint8)
    plausible, note = _one_clock(ts)
    if note:
        warnings.append(note)
    origin = float(ts[plausible].min())
    # the origin is taken off in microseconds first: a double holds today's date only to a quarter of one
    start = np.rint((ts - origin) * 1000).astype(np.int64)
    duration = np.rint(np.maximum(dur, 0) * 1000).astype(np.int64)
    order = np.lexsort((-duration, start))
    order = order[plausible[order]]
    columns: dict[str, Any] = {
        "start_ns": start,
        "duration_ns": duration,
        "kind": kinds,
        "name": rows.name,
        "thread": rows.thread,
        "device": rows.device,
        "stream": rows.stream,
        "correlation": rows.correlation,
        "sequence": rows.sequence,
        "forward_thread": rows.forward_thread,
        "bytes": rows.size,
        "detail": rows.detail,
    }
    events = {name: np.asarray(values).astype(EVENT_COLUMNS[name])[order] for name, values in columns.items()}
    waiting = np.full(order.size, -1, dtype=np.int64)
    awaited = np.full(order.size, -1, dtype=np.int64)
    record = np.zeros(order.size, dtype=np.int64)
    if reader.syncs:
        for row in np.flatnonzero(np.isin(events["correlation"], list(reader.syncs)) & (events["thread"] >= 0)):
            waiting[row], awaited[row], record[row] = reader.syncs[int(events["correlation"][row])]
    events["awaits"], events["awaits_correlation"] = awaited, record
    events["stream"] = np.where(waiting >= 0, waiting, events["stream"]).astype("i4")
    distributed = header.get("distributedInfo") or {}
    base = header.get("baseTimeNanoseconds") or 0
    return Trace(
        events=events,
        strings=list(reader.strings),
        details=reader.details,
        threads=_threads(reader),
        devices=_devices(header),
        flows=_flows(reader, origin),
        rank=int(distributed.get("rank", -1)),
        world_size=int(distributed.get("world_size", 0)),
        source=source.name,
        origin_ns=int(base) + round(origin * 1000),
        complete=batches.complete,
        warnings=tuple(warnings),
        facts={
            "has_sync_records": bool(reader.syncs),
            "memory": tuple((round((at - origin) * 1000), size, where) for at, size, where in reader.memory),
            "distributed": distributed,
            "origin_us": origin,
        },
    )


def _one_clock(ts: np.ndarray) -> tuple[np.ndarray, str]:
    """Which events lie on the clock of the bulk: a time stamp an hour away from the median is from another clock."""
    middle = float(np.median(ts))
    near = np.abs(ts - middle) < 3600e6
    lost = int((~near).sum())
    note = f"{lost} events lie more than an hour from all others (a clock jump); they are left out" if lost else ""
    return near, note


def _threads(reader: _Reader) -> list[Thread]:
    return [Thread(0, pid, _number(tid), reader.thread_names.get((pid, tid), "")) for pid, tid in reader.threads]


def _flows(reader: _Reader, origin: float) -> list[Flow]:
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
    for item in header.get("deviceProperties") or ():
        major, minor = item.get("computeMajor"), item.get("computeMinor")
        found.append(
            Device(
                index=_number(item.get("id", len(found))),
                name=str(item.get("name", "")),
                memory_bytes=int(item.get("totalGlobalMem", 0)),
                compute_capability=f"{major}.{minor}" if major is not None else "",
                multiprocessors=int(item.get("numSms", 0)),
            )
        )
    return found
