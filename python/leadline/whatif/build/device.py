"""Device work: which call launched it, what it waited for, and how long streams take between two tasks.

A task on a stream starts at the latest of: end of the task before + dispatch gap, start of its launch + latency, and
the stream waits before it. Exactly one of those was the reason in the trace. Where the stream was busy, the gap is
measured and the latency is the usual one of that kind of call; where the stream was idle, the latency is measured.
Time that none of them explains is frozen into the latency and counted, so that a result can say how far it trusts it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from leadline.trace.calls import is_collective
from leadline.trace.tables import DEVICE_KINDS, Kind
from leadline.whatif.build.draft import Draft
from leadline.whatif.kinds import Discipline, EdgeType, IntArray, Lane, LaneKind, TaskKind

DEFAULT_LATENCY_NS = 5_000  # where a trace never shows an idle stream; CUDA launches take 3-8 us
GAP_LIMIT_NS = 20_000  # a busy stream starts the next kernel within about 1 us; beyond this something else held it
LATENCY_LIMIT = 10  # a launch that took this many times its usual latency waited for something
BACKLOG_GAP_NS = 20_000
TOLERANCE_NS = 2_000  # device and CPU clocks of one trace agree about this well


@dataclass
class Stream:
    """Tasks of one stream in order; `marks` are zero-length event records and waits among them."""

    lane: int
    device: int
    number: int
    ids: list[int]
    launch_ns: list[int]  # start of the launch, or of the window for what was launched before
    launched: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    drained: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def index(self, draft: Draft) -> None:
        """Prepare `issued_before`."""
        self.launched = np.maximum.accumulate(np.array(self.launch_ns, dtype=np.int64))
        self.drained = np.maximum.accumulate(draft["end_ns"][np.array(self.ids, dtype=np.int64)])

    def issued_before(self, time_ns: int) -> int:
        """Place of the last task whose launch began before `time_ns`; -1 for none."""
        return int(np.searchsorted(self.launched, time_ns, side="left")) - 1


def lay_out(draft: Draft) -> list[Stream]:
    """Add streams and their tasks, joined to their launches by correlation id."""
    trace = draft.trace
    events = trace.events
    begin, end = draft.window_ns
    rows = trace.of_kind(*DEVICE_KINDS)
    start, finish = events["start_ns"][rows], trace.end_ns[rows]
    launch_row = _launch_rows(draft, rows)
    known = launch_row >= 0
    launch_ns = np.where(known, events["start_ns"][np.maximum(launch_row, 0)], begin - 1)
    in_window = known & (launch_ns >= begin) & (launch_ns < end)
    carried = (launch_ns < begin) & (finish > begin) & (start < end)
    chosen = np.flatnonzero(in_window | carried)
    order = chosen[np.lexsort((launch_ns[chosen], start[chosen]))]
    rows, launch_row, launch_ns = rows[order], launch_row[order], launch_ns[order]
    in_window = in_window[order]
    unlaunched = int((~known[order] & (start[order] > begin)).sum())
    task_of_row = _task_of_row(draft)
    launcher = np.where(in_window, task_of_row[np.maximum(launch_row, 0)], -1)
    shift = _clock_shift(draft, events["start_ns"][rows], launch_ns, launcher >= 0)
    start = events["start_ns"][rows] + shift
    duration = events["duration_ns"][rows]
    # what ran across the window's start only counts from there
    cut = np.clip(begin - start, 0, duration)
    start, duration = start + cut, duration - cut
    collective = np.array([is_collective(name) for name in trace.strings], dtype=np.bool_)
    comm = collective[events["name"][rows]] if rows.size else np.zeros(0, dtype=np.bool_)
    device, number = events["device"][rows], events["stream"][rows]
    ids = draft.add(
        rows.size,
        kind=np.where(comm, int(TaskKind.COMM), int(TaskKind.GPU)),
        lane=-1,
        duration_ns=duration,
        start_ns=start,
        end_ns=start + duration,
        measured_ns=duration,
        name=draft.trace_names(events["name"][rows]),
        parent=launcher,
        bytes=events["bytes"][rows],
        detail=events["detail"][rows],
        row=rows,
        tie=np.arange(rows.size, dtype=np.float64),
    )
    if unlaunched:
        share = float(duration[launcher < 0].sum() / max(int(duration.sum()), 1))
        draft.warnings.append(
            f"{unlaunched} of {rows.size} device events ({share:.0%} of device time) were launched before the window or "
            "without a record; they keep their measured start"
        )
    streams = []
    for key in sorted(set(zip(device.tolist(), number.tolist(), strict=True))):
        mine = np.flatnonzero((device == key[0]) & (number == key[1]))
        lane = len(draft.lanes)
        name = f"stream {key[1]}" if not key[0] else f"device {key[0]} stream {key[1]}"
        draft.lanes.append(Lane(name, LaneKind.STREAM, Discipline.ISSUE, trace.rank, key[0], key[1]))
        draft.lane_of_stream[key] = lane
        draft["lane"][ids[mine]] = lane
        stream = Stream(lane, key[0], key[1], ids[mine].tolist(), launch_ns[mine].tolist())
        stream.index(draft)
        streams.append(stream)
    return streams


def _launch_rows(draft: Draft, device_rows: IntArray) -> IntArray:
    """Event row of the call that launched each device event, -1 where the trace has none."""
    trace = draft.trace
    events = trace.events
    calls = trace.of_kind(Kind.API, Kind.GRAPH_LAUNCH, Kind.SYNCHRONIZE)
    calls = calls[events["correlation"][calls] > 0]
    ids = events["correlation"][calls]
    first = np.argsort(ids, kind="stable")
    ids, calls = ids[first], calls[first]
    wanted = events["correlation"][device_rows]
    if not calls.size:
        return np.full(device_rows.size, -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(ids, wanted), ids.size - 1)
    found: IntArray = np.where((ids[at] == wanted) & (wanted > 0), calls[at], -1)
    return found


def _task_of_row(draft: Draft) -> IntArray:
    table = np.full(len(draft.trace), -1, dtype=np.int64)
    rows = draft["row"]
    known = np.flatnonzero(rows >= 0)
    table[rows[known]] = known
    return table


def _clock_shift(draft: Draft, start: IntArray, launch_ns: IntArray, launched: np.ndarray) -> int:
    """How far the device's clock runs behind the CPU's: no kernel can start before its launch does."""
    lead = launch_ns[launched] - start[launched]
    if not lead.size or int(lead.max()) <= 0:
        return 0
    worst = int(lead.max())
    if worst > 1_000_000:
        early = int((lead > 0).sum())
        draft.warnings.append(
            f"{early} kernels start up to {worst / 1e6:.1f} ms before their launch: the clocks of CPU and device "
            "disagree, and waits between them are uncertain by as much"
        )
        return 0
    return worst


@dataclass(frozen=True)
class Timing:
    """Launch latency of every launched task, the usual one of its call, and (task, ns) of work that started later than
    everything known about it allows."""

    latency_ns: dict[int, int]
    usual_ns: dict[int, int]
    suspicious: list[tuple[int, int]]


def time_streams(draft: Draft, streams: list[Stream], marks: dict[int, int]) -> Timing:
    """Set gaps and find launch latencies. `marks`: zero-length event tasks and their launch."""
    usual = _usual_latencies(draft, streams, marks)
    suspicious: list[tuple[int, int]] = []
    gaps = _busy_gaps(draft, streams, marks, usual)
    usual_gap = int(np.median(gaps)) if gaps else 0
    limit = max(GAP_LIMIT_NS, 5 * usual_gap)
    begin = draft.window_ns[0]
    latencies: dict[int, int] = {}
    normals: dict[int, int] = {}
    for stream in streams:
        previous, previous_end = -1, np.iinfo(np.int64).min
        for task in stream.ids:
            start, end = int(draft["start_ns"][task]), int(draft["end_ns"][task])
            launch = marks[task] if task in marks else int(draft["parent"][task])
            latency = 0
            if task in marks:
                gap = 0
            elif launch < 0:
                gap = start - previous_end if previous >= 0 else 0
                if previous < 0 or gap > BACKLOG_GAP_NS:
                    draft["earliest_ns"][task] = max(start - begin, 0)
                    gap = 0
            else:
                normal = usual[int(draft["name"][launch])]
                allowed = int(draft["start_ns"][launch]) + normal
                gap = start - previous_end if previous >= 0 else 0
                if previous >= 0 and previous_end >= allowed and gap <= limit:
                    latency = normal
                else:
                    latency = max(start - int(draft["start_ns"][launch]), 0)
                    late = start - max(allowed, previous_end + usual_gap if previous >= 0 else allowed)
                    if late > max(GAP_LIMIT_NS, (LATENCY_LIMIT - 1) * normal):
                        suspicious.append((task, late))
                    gap = min(usual_gap, gap)
            if previous >= 0:
                room = int(draft["duration_ns"][previous])
                draft["gap_ns"][previous] = max(gap, -room)
            if launch >= 0:
                latencies[task] = latency
                normals[task] = 0 if task in marks else usual[int(draft["name"][launch])]
            previous, previous_end = task, end
    draft.facts["launch_latency_ns"] = {name: usual[row] for name, row in draft.names.items() if row in usual}
    return Timing(latencies, normals, suspicious)


def launch_edges(draft: Draft, timing: Timing) -> None:
    """Add the edge from every launch to its work."""
    tasks = np.array(list(timing.latency_ns), dtype=np.int64)
    delays = np.array(list(timing.latency_ns.values()), dtype=np.int64)
    draft.edges(draft["parent"][tasks].astype(np.int64), tasks, EdgeType.LAUNCH, delays)


def _usual_latencies(draft: Draft, streams: list[Stream], marks: dict[int, int]) -> dict[int, int]:
    """Median of start - launch by call name, over work that found its stream idle."""
    samples: dict[int, list[int]] = {}
    least: dict[int, int] = {}
    for stream in streams:
        previous_end = np.iinfo(np.int64).min
        for task in stream.ids:
            launch = -1 if task in marks else int(draft["parent"][task])
            if launch >= 0:
                name, begin = int(draft["name"][launch]), int(draft["start_ns"][launch])
                latency = max(int(draft["start_ns"][task]) - begin, 0)
                least[name] = min(least.get(name, latency), latency)
                if previous_end <= begin:
                    samples.setdefault(name, []).append(latency)
            previous_end = max(previous_end, int(draft["end_ns"][task]))
    everything = [latency for found in samples.values() for latency in found]
    fallback = int(np.median(everything)) if everything else DEFAULT_LATENCY_NS
    return {
        name: int(np.median(samples[name])) if name in samples else min(fallback, shortest)
        for name, shortest in least.items()
    }


def _busy_gaps(draft: Draft, streams: list[Stream], marks: dict[int, int], usual: dict[int, int]) -> list[int]:
    """Gaps between work that was surely queued behind one another."""
    gaps = []
    for stream in streams:
        for previous, task in zip(stream.ids[:-1], stream.ids[1:], strict=True):
            launch = int(draft["parent"][task])
            if launch < 0 or task in marks or previous in marks:
                continue
            gap = int(draft["start_ns"][task] - draft["end_ns"][previous])
            allowed = int(draft["start_ns"][launch]) + usual[int(draft["name"][launch])]
            if draft["end_ns"][previous] >= allowed and 0 <= gap <= GAP_LIMIT_NS:
                gaps.append(gap)
    return gaps
