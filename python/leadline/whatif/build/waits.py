"""Who waits for device work: synchronisations, and streams that wait for each other.

CUPTI's synchronisation records (`cuda_sync`) say it exactly; most traces lack them, and then the order of calls and the
observed times decide: a wait was for work that had been issued before it and that had ended when it was over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from leadline._dataclass import dataclass
from leadline.trace.event_types import may_wait_for_device, waits_for_device, waits_for_event
from leadline.trace.tables import Kind
from leadline.whatif.build.device import TOLERANCE_NS, Stream, calls_of
from leadline.whatif.build.draft import Draft
from leadline.whatif.kinds import EdgeType, IntArray, TaskKind

_WAITED_NS = 20_000  # a synchronisation that took longer did wait
_OWN_SHARE = 0.25  # of a memory call that may pass after the device is idle
CLOSE_NS = 20_000  # work that began this soon after other work ended may have waited for it


@dataclass(frozen=True)
class _Wait:
    """One stream wait: the stream that waits, the call, and what it waits for: the place on another stream up to which
    work must have ended, and the call that recorded it (-1 where only the observed times say so)."""

    call: int
    stream: Stream
    source: Stream
    place: int
    record: int


def add_marks(draft: Draft, streams: Sequence[Stream]) -> dict[int, int]:
    """Add zero-length tasks for event records and stream waits, with the edge from one to the other.

    Returns the launch (call) of each mark. Marks take their place among what their stream was given in call order, so
    later edits move the wait with the work that is really in front of it.
    """
    waits = _stream_waits(draft, streams)
    passed_on = [wait for found in draft.passed_on.values() for wait in found]
    recorded = {(wait.record, wait.source.lane): wait.source for wait in (*waits, *passed_on) if wait.record >= 0}
    recorded |= _awaited_records(draft, streams)
    if not waits and not recorded:
        return {}
    guessed = sum(1 for wait in waits if wait.record < 0)
    if guessed:
        draft.warnings.append(
            f"{guessed} stream waits carry no record of what they wait for; it is inferred from the order of calls and "
            "the observed times (torch.profiler's enable_cuda_sync_events=True would record it)"
        )
    draft.facts["stream_waits"] = len(waits)
    first = len(draft)
    gates = {first + at: wait for at, wait in enumerate(waits)}
    record_marks = draft.record_marks = {key: first + len(waits) + at for at, key in enumerate(recorded)}
    calls = [*(wait.call for wait in waits), *(call for call, _ in recorded)]
    on = [*(wait.stream for wait in waits), *recorded.values()]
    texts = [*("stream wait" for _ in waits), *("event record" for _ in recorded)]
    draft.add(
        len(calls), kind=int(TaskKind.GPU), lane=[stream.lane for stream in on], parent=calls,
        name=[draft.name_id(text) for text in texts],
    )  # fmt: skip
    for gate, wait in gates.items():
        source = record_marks.get((wait.record, wait.source.lane), int(wait.source.ids[wait.place]))
        draft.edge(source, gate, EdgeType.STREAM_WAIT if wait.record >= 0 else EdgeType.GUESSED)
    reached = {gate: int(wait.source.drained[wait.place]) for gate, wait in gates.items() if wait.place >= 0}
    marks = {first + at: call for at, call in enumerate(calls)}
    for stream in streams:
        mine = [task for task, owner in zip(marks, on, strict=True) if owner is stream]
        if mine:
            _place(draft, stream, mine, marks, reached)
    return marks


def _awaited_records(draft: Draft, streams: Sequence[Stream]) -> dict[tuple[int, int], Stream]:
    """Recorded events that the CPU waits for, by the call that recorded each and the lane it is on."""
    events = draft.trace.events
    records = {int(events["correlation"][draft["row"][task]]): task for task in calls_of(draft, Kind.EVENT_RECORD)}
    found = {}
    for call in calls_of(draft, Kind.SYNCHRONIZE) if records else []:
        record = records.get(int(events["awaits_correlation"][draft["row"][call]]), -1)
        if record < 0 or not waits_for_event(draft.trace.name(int(draft["row"][call]))):
            continue
        number, moment = int(events["awaits"][draft["row"][call]]), int(draft["start_ns"][record])
        for stream in streams:
            if stream.number == number and stream.issued_before(moment) >= 0:
                found[(record, stream.lane)] = stream
    return found


def _place(draft: Draft, stream: Stream, mine: list[int], marks: dict[int, int], reached: dict[int, int]) -> None:
    """Put marks into a stream in the order of their calls and give them times between their neighbours'."""
    ids = np.concatenate((stream.ids, np.array(mine, dtype=np.int64)))
    calls = np.array([marks[task] for task in mine], dtype=np.int64)
    launched = np.concatenate((stream.launched, draft["start_ns"][calls]))
    own_tie = np.concatenate((np.full(stream.ids.size, np.inf), draft["tie"][calls]))
    order = np.lexsort((own_tie, launched))
    is_mark = order >= stream.ids.size
    stream.ids, stream.launch_ns = ids[order], launched[order]
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    place = np.flatnonzero(is_mark)
    work = np.append(np.flatnonzero(~is_mark), order.size)
    starts = np.append(draft["start_ns"][stream.ids], high)
    limits = starts[work[np.searchsorted(work, place)]].tolist()
    ended = np.where(is_mark, low, draft["end_ns"][stream.ids])
    behind = np.maximum.reduceat(ended, np.concatenate(([0], place)))[:-1].tolist()
    ties = np.where(is_mark, np.nan, draft["tie"][stream.ids])
    tasks = stream.ids[place]
    called = draft["start_ns"][[marks[task] for task in tasks.tolist()]].tolist()
    at, tie = draft.window_ns[0], -1.0
    moments, ranks = [], []
    for task, row, limit, end, begin in zip(tasks.tolist(), place.tolist(), limits, behind, called, strict=True):
        at = min(max(at, end, begin, reached.get(task, low)), limit)
        tie = (tie if row == 0 or is_mark[row - 1] else float(ties[row - 1])) + 1e-6
        moments.append(at)
        ranks.append(tie)
    draft["start_ns"][tasks] = draft["end_ns"][tasks] = moments
    draft["tie"][tasks] = ranks
    stream.index(draft)


def _stream_waits(draft: Draft, streams: Sequence[Stream]) -> list[_Wait]:
    """All stream waits of the window with what they wait for; those that await nothing known are left out."""
    events = draft.trace.events
    by_number = {(stream.device, stream.number): stream for stream in streams}
    records = {int(events["correlation"][draft["row"][task]]): task for task in calls_of(draft, Kind.EVENT_RECORD)}
    calls = calls_of(draft, Kind.STREAM_WAIT)
    found: list[_Wait] = []
    told: set[int] = set()  # lanes that wait for another one
    given = [records.get(number, -1) for number in events["awaits_correlation"][draft["row"][calls]].tolist()]
    unknown = [call for call, record in zip(calls, given, strict=True) if record < 0]
    guesses = _guesses(draft, streams, np.array(unknown, dtype=np.int64)) if unknown and streams else {}
    for call, record in zip(calls, given, strict=True):
        row = int(draft["row"][call])
        if record < 0:
            if call in guesses:
                found.append(guesses[call])
            continue
        device = streams[0].device if streams else 0
        number, waiting = int(events["awaits"][row]), int(events["stream"][row])
        source, target = by_number.get((device, number)), by_number.get((device, waiting))
        moment = int(draft["start_ns"][record])
        if source is not None:
            place = source.issued_before(moment)
            # a stream without work yet may have been told to wait itself, which its mark stands behind
            awaited = [(source, place, record)] if place >= 0 or source.lane in told else []
        else:
            awaited = [(wait.source, wait.place, wait.record) for wait in _passed_on(draft, number, moment)]
        for of, place, at in awaited:
            if target is None:
                draft.passed_on.setdefault(waiting, []).append(_Wait(call, of, of, place, at))
            elif of is not target:
                told.add(target.lane)
                found.append(_Wait(call, target, of, place, at))
    return found


def _passed_on(draft: Draft, number: int, before_ns: int) -> list[_Wait]:
    """What a stream without any work had been told to wait for before a moment: whoever waits for it waits for that."""
    return [wait for wait in draft.passed_on.get(number, ()) if int(draft["start_ns"][wait.call]) < before_ns]


def _guesses(draft: Draft, streams: Sequence[Stream], calls: IntArray) -> dict[int, _Wait]:
    """Stream waits without a record of them, by call; those that await nothing known are left out.

    The waiting stream is that of the thread's next launch. It waits for the work that ended just before that launch's
    work began, if any did; else, when the thread launched to another stream before, for that stream (the framework
    makes a side stream follow the current one); else for the stream whose work ended last (the current stream rejoins
    a side stream). Only work issued before the call, and ended before the waiting work began, can be meant.
    """
    ids = np.concatenate([stream.ids for stream in streams])
    owner = np.repeat(np.arange(len(streams)), [stream.ids.size for stream in streams])
    launch = draft["parent"][ids].astype(np.int64)
    launched = launch >= 0
    ids, owner, launch = ids[launched], owner[launched], launch[launched]
    lane, start = draft["lane"][launch], draft["start_ns"][launch]
    found: dict[int, _Wait] = {}
    for thread in np.unique(draft["lane"][calls]).tolist():
        mine = np.flatnonzero(lane == thread)
        mine = mine[np.lexsort((ids[mine], start[mine]))]
        asked = calls[draft["lane"][calls] == thread]
        now = draft["start_ns"][asked]
        at = np.searchsorted(start[mine], now, side="left")
        asked, now, at = asked[at < mine.size], now[at < mine.size], at[at < mine.size]
        if not asked.size:
            continue
        target, begin = owner[mine[at]], draft["start_ns"][ids[mine[at]]]
        previous = np.where(at > 0, owner[mine[np.maximum(at - 1, 0)]], -1)
        ended, place = _ended_before(streams, target, now, begin)
        close = (place[0] >= 0) & (begin - ended <= CLOSE_NS)
        complete = (place[0] >= 0) & (place[0] == place[1]) & ~close
        of_previous = complete & (np.arange(len(streams))[:, None] == previous)
        # the first of these that there are, and the latest end among several
        sure = np.where(close.any(0), close, np.where(of_previous.any(0), of_previous, complete))
        source = np.where(sure, ended, np.iinfo(np.int64).min).argmax(0)
        for row in np.flatnonzero(sure.any(0)).tolist():
            of, call = int(source[row]), int(asked[row])
            found[call] = _Wait(call, streams[int(target[row])], streams[of], int(place[0][of, row]), -1)
    return found


def _ended_before(
    streams: Sequence[Stream], target: IntArray, now: IntArray, begin: IntArray
) -> tuple[IntArray, tuple[IntArray, IntArray]]:
    """For every stream and call: the end of the last work that was issued before the call and had ended, with all
    before it, when the waiting work began; its place, and that of the last work issued. -1 for none and on the waiting
    stream."""
    ended, last, issued = (np.full((len(streams), now.size), -1, dtype=np.int64) for _ in range(3))
    for number, stream in enumerate(streams):
        given = np.searchsorted(np.array(stream.launched), now, side="left") - 1
        drained = np.array(stream.drained)
        place = np.minimum(np.searchsorted(drained, begin + TOLERANCE_NS, side="right") - 1, given)
        place[(target == number) | (given < 0)] = -1
        last[number], issued[number] = place, given
        ended[number] = drained[np.maximum(place, 0)] if drained.size else 0
    return ended, (last, issued)


def synchronise(draft: Draft, streams: Sequence[Stream]) -> None:
    """Reduce every synchronisation to its own time and say what it waits for."""
    events = draft.trace.events
    records = {int(events["correlation"][draft["row"][task]]): task for task in calls_of(draft, Kind.EVENT_RECORD)}
    disagreeing = 0
    for call in calls_of(draft, Kind.SYNCHRONIZE):
        begin, end = int(draft["start_ns"][call]), int(draft["end_ns"][call])
        name = draft.trace.name(int(draft["row"][call]))
        is_event = waits_for_event(name)
        found = _recorded(draft, streams, records, call) if is_event else None
        awaited = _awaited_streams(draft, streams, call, name) if found is None else found
        if not awaited:
            _wait_through(draft, call, records if is_event else {})
            continue
        until = max(int(stream.drained[place]) for stream, place in awaited)
        disagreeing += until > end + 50_000
        draft["duration_ns"][call] = max(end - max(begin, until), 0)
        for stream, place in awaited:
            if is_event:
                # what comes to stand before the record is awaited too, so the wait is for its mark where there is one
                record = records.get(int(events["awaits_correlation"][draft["row"][call]]), -1)
                mark = draft.record_marks.get((record, stream.lane), int(stream.ids[place]))
                draft.edge(mark, call, EdgeType.SYNC)
            else:
                draft.waits.append((call, stream.lane))
    _wait_in_memory_calls(draft, streams)
    if disagreeing:
        draft.warnings.append(
            f"{disagreeing} synchronisations returned before the work they should have waited for had ended; "
            "their waits are uncertain"
        )


def _wait_through(draft: Draft, call: int, records: Mapping[int, int]) -> None:
    """A synchronisation with a stream that has no work: it waits for what that stream was told to wait for."""
    row = int(draft["row"][call])
    begin, end = int(draft["start_ns"][call]), int(draft["end_ns"][call])
    record = records.get(int(draft.trace.events["awaits_correlation"][row]), -1)
    moment = int(draft["start_ns"][record]) if record >= 0 else begin
    until = begin
    for wait in _passed_on(draft, int(draft.trace.events["awaits"][row]), moment):
        draft.edge(draft.record_marks[(wait.record, wait.source.lane)], call, EdgeType.SYNC)
        if wait.place >= 0:
            until = max(until, int(wait.source.drained[wait.place]))
    draft["duration_ns"][call] = max(end - until, 0)


def _wait_in_memory_calls(draft: Draft, streams: Sequence[Stream]) -> None:
    """Taking memory from the driver, or pinning pages, may wait until the device is idle: a call that took long and
    returned just after all work had ended did."""
    waited = 0
    calls = np.array(calls_of(draft, Kind.API), dtype=np.int64)
    calls = calls[draft["duration_ns"][calls] >= _WAITED_NS]
    may_wait = np.array([may_wait_for_device(name) for name in draft.trace.strings], dtype=np.bool_)
    for call in calls[may_wait[draft.trace.events["name"][draft["row"][calls]]]].tolist():
        begin, length = int(draft["start_ns"][call]), int(draft["duration_ns"][call])
        issued = [(stream, stream.issued_before(begin)) for stream in streams]
        issued = [(stream, place) for stream, place in issued if place >= 0]
        until = max((int(stream.drained[place]) for stream, place in issued), default=begin)
        own = begin + length - until
        if begin < until and 0 <= own <= max(CLOSE_NS, _OWN_SHARE * length):
            draft["duration_ns"][call] = own
            draft.waits += [(call, stream.lane) for stream, _ in issued]
            waited += 1
    if waited:
        draft.warnings.append(
            f"{waited} calls that take or pin memory waited for the device; they do in every prediction"
        )


def _awaited_streams(draft: Draft, streams: Sequence[Stream], call: int, name: str) -> list[tuple[Stream, int]]:
    """(stream, place of the last task issued to it) that a stream or device synchronisation waits for."""
    begin, end = int(draft["start_ns"][call]), int(draft["end_ns"][call])
    issued = [(stream, stream.issued_before(begin)) for stream in streams]
    issued = [(stream, place) for stream, place in issued if place >= 0]
    if waits_for_device(name):
        late = any(int(stream.drained[place]) > end + TOLERANCE_NS for stream, place in issued)
        return [] if late and name.endswith("Free") else issued  # freed to a pool: it did not wait
    row = int(draft["row"][call])
    recorded = int(draft.trace.events["awaits"][row]) if draft.trace.facts.get("has_sync_records") else -1
    if recorded >= 0:
        return [(stream, place) for stream, place in issued if stream.number == recorded]
    return _most_likely(draft, issued, call) if issued else []


def _recorded(
    draft: Draft, streams: Sequence[Stream], records: Mapping[int, int], call: int
) -> list[tuple[Stream, int]]:
    """(stream, place of the last task before the record) that an event synchronisation waits for."""
    row = int(draft["row"][call])
    record = records.get(int(draft.trace.events["awaits_correlation"][row]), -1)
    number = int(draft.trace.events["awaits"][row])
    moment = int(draft["start_ns"][record if record >= 0 else call])
    issued = [(stream, stream.issued_before(moment)) for stream in streams]
    issued = [(stream, place) for stream, place in issued if place >= 0]
    if record >= 0:
        return [(stream, place) for stream, place in issued if stream.number == number]
    return _most_likely(draft, issued, call) if issued else []


def _most_likely(draft: Draft, issued: Sequence[tuple[Stream, int]], call: int) -> list[tuple[Stream, int]]:
    """The stream that a call without a record waited for: of those whose work had ended when it returned, the one that
    ended last if the call took long, else the one that its thread launched to last."""
    begin, end = int(draft["start_ns"][call]), int(draft["end_ns"][call])
    possible = [(s, p) for s, p in issued if int(s.drained[p]) <= end + TOLERANCE_NS]
    if not possible:
        return []
    if end - begin > _WAITED_NS:
        return [max(possible, key=lambda item: int(item[0].drained[item[1]]))]
    return [max(possible, key=lambda item: int(item[0].launched[item[1]]))]
