"""Device work: which call launched it, what it waited for, and how long streams take between two tasks.

A task on a stream starts at the latest of: end of the task before + dispatch gap, start of its launch + latency, and
the stream waits before it. Exactly one of those was the reason in the trace. Where the stream was busy, the gap is
measured and the latency is the usual one of that kind of call; where the stream was idle, the latency is measured.
Time that none of them explains is frozen into the latency and counted, so that a result can say how far it trusts it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

import numpy as np

from leadline.trace.meaning import is_collective
from leadline.trace.tables import DEVICE_KINDS, Kind
from leadline.whatif.build.draft import Draft
from leadline.whatif.kinds import Discipline, EdgeType, IntArray, Lane, LaneKind, TaskKind
from leadline.whatif.tables import HIDDEN

DEFAULT_LATENCY_NS = 5_000  # where a trace never shows an idle stream; CUDA launches take 3-8 us
GAP_LIMIT_NS = 20_000  # a busy stream starts the next kernel within about 1 us; beyond this something else held it
LATENCY_LIMIT = 10  # a launch that took this many times its usual latency waited for something
BACKLOG_GAP_NS = 20_000
_CLOCK_SHARE = 0.99  # of the kernels that start before their launch
_EARLY_SHARE = 0.001  # of all kernels; fewer are damaged records, not a clock
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
    rows = rows[events["thread"][rows] < 0]
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
    comm = collective[events["name"][rows]] | (events["kind"][rows] == Kind.COLLECTIVE)
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
    draft.carried = ids[known[order] & (launch_ns < begin)]
    if unlaunched:
        share = float(duration[launcher < 0].sum() / max(int(duration.sum()), 1))
        draft.warnings.append(
            f"{unlaunched} of {rows.size} device events ({share:.0%} of device time) were launched before the window "
            "or without a record; they keep their measured start"
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
    worst, early = int(lead.max()), int((lead > 0).sum())
    # one record that is off says nothing about a clock: what nearly all of the early ones agree on does
    usual = int(np.quantile(lead[lead > 0], _CLOCK_SHARE))
    if early < _EARLY_SHARE * lead.size:
        usual = min(usual, TOLERANCE_NS)
    draft.facts["device_clock_ns"] = (usual, worst)
    if usual > 1_000_000:
        draft.warnings.append(
            f"{early} kernels start up to {worst / 1e6:.1f} ms before their launch: the clocks of CPU and device "
            "disagree, and waits between them are uncertain by as much"
        )
        return 0
    if usual > TOLERANCE_NS or worst > 10 * TOLERANCE_NS:
        draft.warnings.append(
            f"{early} kernels start before their launch: the device's clock is taken to be {usual / 1e3:.1f} µs "
            f"behind, and what is shorter than {worst / 1e3:.1f} µs between the two is uncertain"
        )
    return usual


@dataclass(frozen=True)
class Timing:
    """Launch latency of every launched task, and (task, task before it on the stream, ns) of work that started later
    than everything known about it allows; that time stands in the gap before it."""

    latency_ns: dict[int, int]
    usual_gap_ns: int
    suspicious: list[tuple[int, int, int]]


@dataclass(frozen=True)
class _Times:
    """Task columns as lists, for loops over single tasks."""

    start: list[int]
    end: list[int]
    launch: list[int]
    name: list[int]

    @staticmethod
    def of(draft: Draft) -> _Times:
        return _Times(*(draft[name].tolist() for name in ("start_ns", "end_ns", "parent", "name")))


def time_streams(draft: Draft, streams: list[Stream], marks: dict[int, int]) -> Timing:
    """Set gaps and find launch latencies. `marks`: zero-length event tasks and their launch."""
    times = _Times.of(draft)
    usual = _usual_latencies(times, streams, marks)
    gaps = _busy_gaps(times, streams, marks, usual)
    usual_gap = int(np.median(gaps)) if gaps else 0
    limit = max(GAP_LIMIT_NS, 5 * usual_gap)
    graphs = set(calls_of(draft, Kind.GRAPH_LAUNCH))
    timing = Timing({}, usual_gap, [])
    gap_after: dict[int, int] = {}
    hidden: list[tuple[int, int]] = []
    pinned: list[int] = []
    for stream in streams:
        previous, previous_end = -1, np.iinfo(np.int64).min
        for task in stream.ids:
            start, launch = times.start[task], times.launch[task]
            gap = start - previous_end if previous >= 0 else 0
            if task in marks:
                timing.latency_ns[task] = gap = 0
            elif launch < 0:
                if previous < 0 or gap > BACKLOG_GAP_NS:
                    pinned.append(task)
                    gap = 0
            else:
                begin, normal = times.start[launch], usual[times.name[launch]]
                if previous >= 0 and previous_end >= begin + normal:
                    timing.latency_ns[task] = normal
                    if gap > limit and launch in graphs:
                        hidden.append((previous, task))
                        gap = usual_gap
                    elif gap > limit:
                        timing.suspicious.append((task, previous, gap - usual_gap))
                else:
                    timing.latency_ns[task] = max(start - begin, 0)
                    gap = min(usual_gap, gap)
                    # a call that took long itself (loading a module, staging a copy) is a reason of its own
                    late = start - max(begin + normal, min(start, times.end[launch]))
                    if late > max(GAP_LIMIT_NS, (LATENCY_LIMIT - 1) * normal):
                        timing.suspicious.append((task, -1, late))
            if previous >= 0:
                gap_after[previous] = max(gap, times.start[previous] - times.end[previous])
            previous, previous_end = task, times.end[task]
    draft["gap_ns"][list(gap_after)] = list(gap_after.values())
    draft.facts["launch_latency_ns"] = {name: usual[row] for name, row in draft.names.items() if row in usual}
    _pin(draft, streams, pinned)
    if hidden:
        _add_hidden(draft, streams, times, timing, hidden)
    return timing


def _pin(draft: Draft, streams: Sequence[Stream], tasks: Sequence[int]) -> None:
    """Work that nothing in the trace launched keeps its distance to the device work that ended last before it, so that
    it moves when that does; at the window's start, where there is none, its place on the clock."""
    if not tasks:
        return
    ids = np.array([task for stream in streams for task in stream.ids], dtype=np.int64)
    end = draft["end_ns"][ids]
    order = np.argsort(end, kind="stable")
    ids, end = ids[order], end[order]
    pinned = np.array(tasks, dtype=np.int64)
    start = draft["start_ns"][pinned]
    at = np.searchsorted(end, start, side="right") - 1
    # a task of no length at that very moment may be the pinned one itself, or wait for it
    while bool((stuck := (at >= 0) & (draft["start_ns"][ids[np.maximum(at, 0)]] >= start)).any()):
        at[stuck] -= 1
    free = at < 0
    draft["earliest_ns"][pinned[free]] = np.maximum(start[free] - draft.origin_ns, 0)
    pinned, at, start = pinned[~free], at[~free], start[~free]
    draft.edges(ids[at], pinned, EdgeType.PINNED, start - end[at])


def _add_hidden(
    draft: Draft, streams: list[Stream], times: _Times, timing: Timing, hidden: list[tuple[int, int]]
) -> None:
    """CUDA graphs hold nodes that are not recorded: pauses before recorded ones become device work of the graph."""
    before, after = (np.array(side, dtype=np.int64) for side in zip(*hidden, strict=True))
    begin = draft["end_ns"][before] + timing.usual_gap_ns
    end = np.maximum(draft["start_ns"][after] - timing.usual_gap_ns, begin)
    added = draft.add(
        after.size, kind=int(TaskKind.GPU), lane=draft["lane"][after], duration_ns=end - begin, start_ns=begin,
        end_ns=end, measured_ns=end - begin, gap_ns=draft["start_ns"][after] - end, name=draft.name_id(HIDDEN),
        parent=draft["parent"][after], tie=draft["tie"][after] - 0.5,
    )  # fmt: skip
    in_front = dict(zip(after.tolist(), added.tolist(), strict=True))
    put_in_front(draft, streams, in_front)
    for task, new in in_front.items():
        timing.latency_ns[new] = timing.latency_ns[task]
    draft.warnings.append(
        f"{int((end - begin).sum()) / 1e6:.2f} ms pass inside CUDA graphs without a recorded kernel; they count as "
        f"device work named {HIDDEN!r}"
    )


def put_in_front(draft: Draft, streams: Sequence[Stream], in_front: Mapping[int, int]) -> None:
    """Enter new tasks into their streams, each in front of another task and with its launch."""
    for stream in streams:
        placed = [(task, at) for task, at in zip(stream.ids, stream.launch_ns, strict=True)]
        merged = [pair for task, at in placed for pair in ((in_front.get(task, -1), at), (task, at)) if pair[0] >= 0]
        stream.ids, stream.launch_ns = [task for task, _ in merged], [at for _, at in merged]
        stream.index(draft)


def calls_of(draft: Draft, kind: Kind) -> list[int]:
    """Tasks of API calls of one kind, in time order."""
    rows = draft["row"]
    known = np.flatnonzero((rows >= 0) & (draft["kind"] == TaskKind.CPU))
    chosen = known[draft.trace.events["kind"][rows[known]] == kind]
    ordered = chosen[np.argsort(draft["start_ns"][chosen], kind="stable")]
    return [int(task) for task in ordered]


def launch_edges(draft: Draft, timing: Timing) -> None:
    """Add the edge from every launch to its work."""
    tasks = np.array(list(timing.latency_ns), dtype=np.int64)
    delays = np.array(list(timing.latency_ns.values()), dtype=np.int64)
    draft.edges(draft["parent"][tasks].astype(np.int64), tasks, EdgeType.LAUNCH, delays)


def _usual_latencies(times: _Times, streams: list[Stream], marks: dict[int, int]) -> dict[int, int]:
    """Median of start - launch by call name, over work that found its stream idle."""
    samples: dict[int, list[int]] = {}
    least: dict[int, int] = {}
    for stream in streams:
        previous_end = np.iinfo(np.int64).min
        for task in stream.ids:
            launch = -1 if task in marks else times.launch[task]
            if launch >= 0:
                name, begin = times.name[launch], times.start[launch]
                latency = max(times.start[task] - begin, 0)
                least[name] = min(least.get(name, latency), latency)
                if previous_end <= begin:
                    samples.setdefault(name, []).append(latency)
            previous_end = max(previous_end, times.end[task])
    everything = [latency for found in samples.values() for latency in found]
    fallback = median_low(everything) if everything else DEFAULT_LATENCY_NS
    return {
        name: median_low(samples[name]) if name in samples else min(fallback, shortest)
        for name, shortest in least.items()
    }


def _busy_gaps(times: _Times, streams: list[Stream], marks: dict[int, int], usual: dict[int, int]) -> list[int]:
    """Gaps between work that was surely queued behind one another."""
    gaps = []
    for stream in streams:
        for previous, task in zip(stream.ids[:-1], stream.ids[1:], strict=True):
            launch = times.launch[task]
            if launch < 0 or task in marks or previous in marks:
                continue
            gap = times.start[task] - times.end[previous]
            allowed = times.start[launch] + usual[times.name[launch]]
            if times.end[previous] >= allowed and 0 <= gap <= GAP_LIMIT_NS:
                gaps.append(gap)
    return gaps
