"""Device work: which call launched it, what it waited for, and how long streams take between two tasks.

A task on a stream starts at the latest of: end of the task before + dispatch gap, start of its launch + latency, and
the stream waits before it. Exactly one of those was the reason in the trace. Where the stream was busy, the gap is
measured and the latency is the usual one of that kind of call; where the stream was idle, the latency is measured.
Time that none of them explains is frozen into the latency and counted, so that a result can say how far it trusts it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, field
from leadline.trace.event_types import is_collective
from leadline.trace.tables import DEVICE_KINDS, Kind
from leadline.units import duration, percent
from leadline.whatif.build.draft import Draft
from leadline.whatif.build.launches import LONG_AGO, given_ns, in_front, launch_rows
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
    ids: IntArray
    launch_ns: IntArray  # start of the launch, or of the window for what was launched before
    launched: list[int] = field(default_factory=list)  # latest launch up to each place; lists, for looks at single ones
    drained: list[int] = field(default_factory=list)  # latest end up to each place

    def index(self, draft: Draft) -> None:
        """Prepare `issued_before` and `ended_by`."""
        self.launched = np.maximum.accumulate(self.launch_ns).tolist()
        self.drained = np.maximum.accumulate(draft["end_ns"][self.ids]).tolist()

    def issued_before(self, time_ns: int) -> int:
        """Place of the last task whose launch began before `time_ns`; -1 for none."""
        return bisect_left(self.launched, time_ns) - 1

    def ended_by(self, time_ns: int, place: int) -> int:
        """Place of the last task up to `place` that had ended, with all before it, by `time_ns`; -1 for none."""
        return bisect_right(self.drained, time_ns, 0, place + 1) - 1


def lay_out(draft: Draft) -> list[Stream]:
    """Add streams and their tasks, joined to their launches by correlation id."""
    trace = draft.trace
    events = trace.events
    begin, end = draft.window_ns
    rows = trace.of_kind(*DEVICE_KINDS)
    rows = rows[events["thread"][rows] < 0]
    start, finish = events["start_ns"][rows], trace.end_ns[rows]
    launch_row = launch_rows(draft, rows)
    known = launch_row >= 0
    launch_ns = np.where(known, events["start_ns"][np.maximum(launch_row, 0)], begin - 1)
    in_window = known & (launch_ns >= begin) & (launch_ns < end)
    # what was launched before keeps the device busy, however long after the window's last launch
    last = max(end, int(finish[in_window].max(initial=end)))
    carried = (launch_ns < begin) & (finish > begin) & (start < last)
    chosen = np.flatnonzero(in_window | carried)
    order = chosen[np.lexsort((launch_ns[chosen], start[chosen]))]
    rows, launch_row, launch_ns, known = rows[order], launch_row[order], launch_ns[order], known[order]
    in_window = in_window[order]
    unlaunched = int((~known & (start[order] > begin)).sum())
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
    draft.carried = ids[(launch_ns < begin) & (known | in_front(start, device, number, in_window))]
    if unlaunched:
        share = percent(duration[launcher < 0].sum() / max(int(duration.sum()), 1))
        draft.warnings.append(
            f"{unlaunched} of {rows.size} device events ({share} of device time) were launched before the window "
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
        stream = Stream(lane, key[0], key[1], ids[mine], given_ns(draft, ids[mine], launch_ns[mine], known[mine]))
        stream.index(draft)
        streams.append(stream)
    return streams


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
            f"{early} kernels start up to {duration(worst)} before their launch: the clocks of CPU and device "
            "disagree, and waits between them are uncertain by as much"
        )
        return 0
    if usual > TOLERANCE_NS or worst > 10 * TOLERANCE_NS:
        draft.warnings.append(
            f"{early} kernels start before their launch: the device's clock is taken to be {usual / 1e3:.1f} µs "
            f"late, so intervals below {worst / 1e3:.1f} µs between the two are uncertain"
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
class _Work:
    """The work of one stream in order, a row per task."""

    ids: IntArray
    start: IntArray
    end: IntArray
    launch: IntArray  # the call, -1 for work without one
    begin: IntArray  # of the call
    finish: IntArray
    call: IntArray  # name of the call
    mark: NDArray[np.bool_]  # an event record or a wait, which take no time and have no latency

    @staticmethod
    def of(draft: Draft, stream: Stream, marks: NDArray[np.bool_]) -> _Work:
        ids = stream.ids
        launch = draft["parent"][ids].astype(np.int64)
        start, end = draft["start_ns"], draft["end_ns"]
        call = np.maximum(launch, 0)
        return _Work(
            ids, start[ids], end[ids], launch, start[call], end[call], draft["name"][call].astype(np.int64), marks[ids]
        )

    @property
    def before(self) -> IntArray:
        """End of the task before each; long ago for the first."""
        return np.concatenate(([LONG_AGO], self.end[:-1]))


def time_streams(draft: Draft, streams: list[Stream], marks: dict[int, int]) -> Timing:
    """Set gaps and find launch latencies. `marks`: zero-length event tasks and their launch."""
    is_mark = np.zeros(len(draft), dtype=np.bool_)
    is_mark[list(marks)] = True
    works = [_Work.of(draft, stream, is_mark) for stream in streams]
    usual = _usual_latencies(works)
    normal = np.zeros(len(draft.names), dtype=np.int64)
    normal[list(usual)] = list(usual.values())
    gaps = np.concatenate([np.zeros(0, dtype=np.int64), *(_busy_gaps(work, normal) for work in works)])
    timing = Timing({}, int(np.median(gaps)) if gaps.size else 0, [])
    is_graph = np.zeros(len(draft), dtype=np.bool_)
    is_graph[calls_of(draft, Kind.GRAPH_LAUNCH)] = True
    hidden: list[tuple[int, int]] = []
    pinned: list[int] = []
    for work in works:
        _time(draft, work, normal, is_graph, timing, hidden, pinned)
    draft.facts["launch_latency_ns"] = {name: usual[row] for name, row in draft.names.items() if row in usual}
    _pin(draft, streams, pinned)
    if hidden:
        _add_hidden(draft, streams, timing, hidden)
    return timing


def _time(
    draft: Draft,
    work: _Work,
    normal: IntArray,
    is_graph: NDArray[np.bool_],
    timing: Timing,
    hidden: list[tuple[int, int]],
    pinned: list[int],
) -> None:
    """Gaps and latencies of one stream; what starts without a reason goes to `timing.suspicious`, to `hidden` (task
    before and task) inside CUDA graphs, and to `pinned` where nothing launched it."""
    ids, before = work.ids, work.before
    first = np.arange(ids.size) == 0
    limit = max(GAP_LIMIT_NS, 5 * timing.usual_gap_ns)
    launched = (work.launch >= 0) & ~work.mark
    usual = normal[work.call]
    gap = np.where(first, 0, work.start - before)
    queued = launched & ~first & (before >= work.begin + usual)
    idle = launched & ~queued
    alone = ~launched & ~work.mark & (first | (gap > BACKLOG_GAP_NS))
    held = queued & (gap > limit)
    hides = held & is_graph[np.maximum(work.launch, 0)]
    # a call that took long itself (loading a module, staging a copy) is a reason of its own
    late = work.start - np.maximum(work.begin + usual, np.minimum(work.start, work.finish))
    slow = idle & (late > np.maximum(GAP_LIMIT_NS, (LATENCY_LIMIT - 1) * usual))
    latency = np.where(work.mark, 0, np.where(queued, usual, np.maximum(work.start - work.begin, 0)))
    told = launched | work.mark
    timing.latency_ns.update(zip(ids[told].tolist(), latency[told].tolist(), strict=True))
    for at in np.flatnonzero((held & ~hides) | slow).tolist():
        if held[at]:
            timing.suspicious.append((int(ids[at]), int(ids[at - 1]), int(gap[at]) - timing.usual_gap_ns))
        else:
            timing.suspicious.append((int(ids[at]), -1, int(late[at])))
    hidden += [(int(ids[at - 1]), int(ids[at])) for at in np.flatnonzero(hides).tolist()]
    pinned += ids[alone].tolist()
    gap[work.mark | alone] = 0
    gap[hides] = timing.usual_gap_ns
    gap[idle] = np.minimum(gap[idle], timing.usual_gap_ns)
    draft["gap_ns"][ids[:-1]] = np.maximum(gap[1:], (work.start - work.end)[:-1])


def _pin(draft: Draft, streams: Sequence[Stream], tasks: Sequence[int]) -> None:
    """Work that nothing in the trace launched keeps its distance to the device work that ended last before it, so that
    it moves when that does; at the window's start, where there is none, its place on the clock."""
    if not tasks:
        return
    ids = np.concatenate([stream.ids for stream in streams])
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
    draft["not_before_ns"][pinned[free]] = start[free]
    pinned, at, start = pinned[~free], at[~free], start[~free]
    draft.edges(ids[at], pinned, EdgeType.PINNED, start - end[at])


def _add_hidden(draft: Draft, streams: list[Stream], timing: Timing, hidden: list[tuple[int, int]]) -> None:
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
        f"{duration(int((end - begin).sum()))} pass inside CUDA graphs without a recorded kernel; they count as "
        f"device work named {HIDDEN!r}"
    )


def put_in_front(draft: Draft, streams: Sequence[Stream], in_front: Mapping[int, int]) -> None:
    """Enter new tasks into their streams, each in front of another task and with its launch."""
    for stream in streams:
        places = [(place, in_front[task]) for place, task in enumerate(stream.ids.tolist()) if task in in_front]
        if places:
            at, new = (np.array(column, dtype=np.int64) for column in zip(*places, strict=True))
            stream.ids = np.insert(stream.ids, at, new)
            stream.launch_ns = np.insert(stream.launch_ns, at, stream.launch_ns[at])
            stream.index(draft)


def calls_of(draft: Draft, kind: Kind) -> list[int]:
    """Tasks of API calls of one kind, in time order."""
    rows = draft["row"]
    known = np.flatnonzero((rows >= 0) & (draft["kind"] == TaskKind.CPU))
    chosen = known[draft.trace.events["kind"][rows[known]] == kind]
    ordered: list[int] = chosen[np.argsort(draft["start_ns"][chosen], kind="stable")].tolist()
    return ordered


def launch_edges(draft: Draft, timing: Timing) -> None:
    """Add the edge from every launch to its work."""
    tasks = np.array(list(timing.latency_ns), dtype=np.int64)
    delays = np.array(list(timing.latency_ns.values()), dtype=np.int64)
    draft.edges(draft["parent"][tasks].astype(np.int64), tasks, EdgeType.LAUNCH, delays)


def _usual_latencies(works: Sequence[_Work]) -> dict[int, int]:
    """Median of start - launch by call name, over work that found its stream idle."""
    names, latencies, idles = [], [], []
    for work in works:
        launched = (work.launch >= 0) & ~work.mark
        emptied = np.maximum.accumulate(work.before)
        names.append(work.call[launched])
        latencies.append(np.maximum(work.start - work.begin, 0)[launched])
        idles.append((emptied <= work.begin)[launched])
    if not names:
        return {}
    name, latency, idle = np.concatenate(names), np.concatenate(latencies), np.concatenate(idles)
    fallback = _median_low(latency[idle]) if idle.any() else DEFAULT_LATENCY_NS
    found = {}
    for call in np.unique(name).tolist():
        mine = latency[name == call]
        samples = latency[(name == call) & idle]
        found[call] = _median_low(samples) if samples.size else min(fallback, int(mine.min()))
    return found


def _median_low(values: IntArray) -> int:
    """The middle value, the lower of two."""
    middle = (values.size - 1) // 2
    return int(np.partition(values, middle)[middle])


def _busy_gaps(work: _Work, normal: IntArray) -> IntArray:
    """Gaps between work that was surely queued behind one another."""
    gap = work.start[1:] - work.end[:-1]
    counted = (work.launch[1:] >= 0) & ~work.mark[1:] & ~work.mark[:-1]
    queued = work.end[:-1] >= (work.begin + normal[work.call])[1:]
    found: IntArray = gap[counted & queued & (gap >= 0) & (gap <= GAP_LIMIT_NS)]
    return found
