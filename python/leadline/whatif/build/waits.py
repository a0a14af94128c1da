"""Who waits for device work: synchronisations, blocking copies, and streams that wait for each other.

CUPTI's synchronisation records (`cuda_sync`) say it exactly; most traces lack them, and then the order of calls and the
observed times decide: a wait was for work that had been issued before it and that had ended when it was over.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline.trace.calls import is_blocking_copy, waits_for_device, waits_for_event
from leadline.trace.tables import Kind
from leadline.whatif.build.device import TOLERANCE_NS, Stream, Timing
from leadline.whatif.build.draft import Draft
from leadline.whatif.kinds import EdgeType, TaskKind

_WAITED_NS = 20_000  # a synchronisation that took longer did wait
_CLOSE_NS = 15_000  # work that began this soon after other work ended may have waited for it


def calls_of(draft: Draft, kind: Kind) -> list[int]:
    """Tasks of API calls of one kind, in time order."""
    rows = draft["row"]
    known = np.flatnonzero((rows >= 0) & (draft["kind"] == TaskKind.CPU))
    chosen = known[draft.trace.events["kind"][rows[known]] == kind]
    ordered = chosen[np.argsort(draft["start_ns"][chosen], kind="stable")]
    return [int(task) for task in ordered]


def add_marks(draft: Draft, streams: Sequence[Stream]) -> dict[int, int]:
    """Add zero-length tasks for event records and stream waits, with the edge from one to the other.

    Returns the launch (call) of each mark. Marks take their place among what their stream was given in call order, so
    later edits move the wait with the work that is really in front of it.
    """
    marks: dict[int, int] = {}
    guessed = 0
    for record, source, wait, target in _pairs(draft, streams):
        if wait < 0:
            continue
        place = source.issued_before(int(draft["start_ns"][record]))
        if place < 0:
            continue
        guessed += not _has_record(draft, wait)
        reached = int(source.drained[place])
        marks_of_record = [m for m, call in marks.items() if call == record and m in source.ids]
        mark = marks_of_record[0] if marks_of_record else _mark(draft, "event record", source, record, reached, marks)
        at = target.issued_before(int(draft["start_ns"][wait]))
        before = int(target.drained[at]) if at >= 0 else draft.window_ns[0]
        passed = max(before, reached, int(draft["start_ns"][wait]))
        gate = _mark(draft, "stream wait", target, wait, passed, marks)
        draft.edge(mark, gate, EdgeType.STREAM_WAIT)
    draft.facts["stream_waits"] = sum(1 for task in marks if draft["name"][task] == draft.name_id("stream wait"))
    if guessed:
        draft.warnings.append(
            f"{guessed} stream waits carry no record of what they wait for; it is inferred from the order of calls and "
            "the observed times (torch.profiler's enable_cuda_sync_events=True would record it)"
        )
    return marks


def _mark(draft: Draft, name: str, stream: Stream, call: int, time_ns: int, marks: dict[int, int]) -> int:
    begin = int(draft["start_ns"][call])
    place = stream.issued_before(begin)
    # queued marks of the same moment keep their order of calls
    anchor = stream.ids[place] if place >= 0 else -1
    tie = (float(draft["tie"][anchor]) if anchor >= 0 else -1.0) + 1e-6
    time_ns = max(time_ns, int(draft["start_ns"][anchor]) if anchor >= 0 else time_ns)
    task = int(
        draft.add(
            1, kind=int(TaskKind.GPU), lane=stream.lane, start_ns=time_ns, end_ns=time_ns, name=draft.name_id(name),
            parent=call, tie=tie,
        )[0]
    )  # fmt: skip
    marks[task] = call
    stream.ids.insert(place + 1, task)
    stream.launch_ns.insert(place + 1, begin)
    stream.index(draft)
    return task


def _has_record(draft: Draft, wait: int) -> bool:
    return int(draft.trace.events["awaits_correlation"][draft["row"][wait]]) > 0


def _pairs(draft: Draft, streams: Sequence[Stream]) -> list[tuple[int, Stream, int, Stream]]:
    """(record call, its stream, wait call, its stream) of stream waits, in the order of the waits."""
    events = draft.trace.events
    by_number = {(stream.device, stream.number): stream for stream in streams}
    records = calls_of(draft, Kind.EVENT_RECORD)
    record_of = {int(events["correlation"][draft["row"][task]]): task for task in records}
    found = []
    for wait in calls_of(draft, Kind.STREAM_WAIT):
        row = int(draft["row"][wait])
        record = record_of.get(int(events["awaits_correlation"][row]), -1)
        if record >= 0:
            device = streams[0].device if streams else 0
            source = by_number.get((device, int(events["awaits"][row])))
            target = by_number.get((device, int(events["stream"][row])))
            if source and target and source is not target:
                found.append((record, source, wait, target))
            continue
        guess = _guess(draft, streams, records, wait)
        if guess is not None:
            found.append(guess)
    return found


def _guess(
    draft: Draft, streams: Sequence[Stream], records: Sequence[int], wait: int
) -> tuple[int, Stream, int, Stream] | None:
    """A stream wait without a record of it.

    The waiting stream is that of the thread's next launch. When the thread launched to another stream before, that one
    is awaited (the framework makes a side stream follow the current one); otherwise the stream whose work, issued
    before the wait, ended last before that next launch's work began (the current stream rejoins a side stream).
    """
    now, lane = int(draft["start_ns"][wait]), int(draft["lane"][wait])
    nearest_before: tuple[int, Stream] | None = None
    nearest_after: tuple[int, Stream, int] | None = None
    for stream in streams:
        place = stream.issued_before(now)
        while place >= 0 and not _launched_on(draft, stream.ids[place], lane):
            place -= 1
        if place >= 0 and (nearest_before is None or stream.launch_ns[place] > nearest_before[0]):
            nearest_before = (stream.launch_ns[place], stream)
        place = stream.issued_before(now) + 1
        while place < len(stream.ids) and not _launched_on(draft, stream.ids[place], lane):
            place += 1
        if place < len(stream.ids) and (nearest_after is None or stream.launch_ns[place] < nearest_after[0]):
            nearest_after = (stream.launch_ns[place], stream, stream.ids[place])
    if nearest_after is None:
        return None
    _, target, first = nearest_after
    begin = int(draft["start_ns"][first]) + TOLERANCE_NS
    record = max((task for task in records if draft["start_ns"][task] < now and draft["lane"][task] == lane),
                 key=lambda task: int(draft["start_ns"][task]), default=-1)  # fmt: skip
    if nearest_before is not None and nearest_before[1] is not target:
        source = nearest_before[1]
        place = source.issued_before(now)
        if record >= 0 and int(source.drained[place]) <= begin:
            return record, source, wait, target
    best: tuple[int, int, Stream] | None = None
    for stream in streams:
        place = stream.issued_before(now)
        if stream is target or place < 0 or int(stream.drained[place]) > begin:
            continue
        launch = int(draft["parent"][stream.ids[place]])
        behind = _record_behind(draft, records, launch, now)
        if behind >= 0 and (best is None or int(stream.drained[place]) > best[0]):
            best = (int(stream.drained[place]), behind, stream)
    return (best[1], best[2], wait, target) if best else None


def _launched_on(draft: Draft, task: int, lane: int) -> bool:
    launch = int(draft["parent"][task])
    return launch >= 0 and int(draft["lane"][launch]) == lane


def _record_behind(draft: Draft, records: Sequence[int], launch: int, until_ns: int) -> int:
    """The first event record after a launch on its thread, before `until_ns`; -1 for none."""
    if launch < 0:
        return -1
    begin, lane = int(draft["start_ns"][launch]), int(draft["lane"][launch])
    for record in records:
        if begin < draft["start_ns"][record] < until_ns and draft["lane"][record] == lane:
            return record
    return -1


def synchronise(draft: Draft, streams: Sequence[Stream]) -> None:
    """Reduce every synchronisation to its own time and say what it waits for."""
    events = draft.trace.events
    disagreeing = 0
    for call in calls_of(draft, Kind.SYNCHRONIZE):
        row = int(draft["row"][call])
        begin, end = int(draft["start_ns"][call]), int(draft["end_ns"][call])
        issued = [(stream, stream.issued_before(begin)) for stream in streams]
        issued = [(stream, place) for stream, place in issued if place >= 0]
        name = draft.trace.name(row)
        awaited: list[tuple[Stream, int]] = []
        if waits_for_device(name):
            awaited = issued
            if name.endswith("Free") and any(int(s.drained[p]) > end + TOLERANCE_NS for s, p in awaited):
                awaited = []  # freed from a pool: it did not wait
        elif issued:
            recorded = int(events["awaits"][row]) if draft.trace.facts.get("has_sync_records") else -1
            named = [(stream, place) for stream, place in issued if stream.number == recorded]
            awaited = named or _most_likely(draft, issued, call)
        if not awaited:
            continue
        until = max(int(stream.drained[place]) for stream, place in awaited)
        disagreeing += until > end + 50_000
        _own_time(draft, call, until)
        for stream, place in awaited:
            if waits_for_event(name) and not waits_for_device(name):
                draft.edge(stream.ids[place], call, EdgeType.SYNC)
            else:
                draft.waits.append((call, stream.lane))
    if disagreeing:
        draft.warnings.append(
            f"{disagreeing} synchronisations returned before the work they should have waited for had ended; "
            "their waits are uncertain"
        )


def _own_time(draft: Draft, call: int, until_ns: int) -> None:
    """Keep of a waiting call only what it took beyond the wait."""
    begin = int(draft["start_ns"][call])
    end = begin + int(draft["duration_ns"][call])
    draft["duration_ns"][call] = max(end - max(begin, until_ns), 0)


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


def split_blocking_copies(draft: Draft, streams: Sequence[Stream]) -> None:
    """A copy from or to pageable memory returns when it is done: issue, and wait for the very copy."""
    usual = draft.facts.get("launch_latency_ns", {})
    for stream in streams:
        for copy in stream.ids:
            call = int(draft["parent"][copy])
            row = int(draft["row"][copy])
            if call < 0 or row < 0 or draft.trace.events["kind"][row] != Kind.COPY:
                continue
            name = draft.trace.name(int(draft["row"][call]))
            begin, done = int(draft["start_ns"][call]), int(draft["end_ns"][copy])
            end = begin + int(draft["duration_ns"][call])
            if not is_blocking_copy(name, draft.trace.name(row)) or done > end + TOLERANCE_NS:
                continue
            issue = min(int(usual.get(name, 0)), int(draft["start_ns"][copy]) - begin, end - begin)
            issue = max(issue, 0)
            wait = int(
                draft.add(
                    1, kind=int(TaskKind.CPU), lane=draft["lane"][call], duration_ns=max(end - max(done, begin + issue), 0),
                    gap_ns=draft["gap_ns"][call], start_ns=begin + issue, end_ns=end, measured_ns=end - begin - issue,
                    name=draft.name_id(f"{name} (wait)"), operator=draft["operator"][call], parent=call,
                    tie=draft["tie"][call] + 0.25,
                )[0]
            )  # fmt: skip
            draft["duration_ns"][call] = issue
            draft["gap_ns"][call] = 0
            draft["measured_ns"][call] = issue
            draft.edge(copy, wait, EdgeType.SYNC)


def explain(draft: Draft, streams: Sequence[Stream], timing: Timing) -> None:
    """Late starts that no call explains: work of another stream that ended just then is taken as the reason."""
    inferred = 0
    for task, late in timing.suspicious:
        start = int(draft["start_ns"][task])
        launch = int(draft["parent"][task])
        lane = int(draft["lane"][task])
        best, best_end = -1, start - _CLOSE_NS
        for stream in streams:
            if stream.lane == lane:
                continue
            place = stream.issued_before(int(draft["start_ns"][launch]))
            if place < 0:
                continue
            at = int(np.searchsorted(stream.drained[: place + 1], start + TOLERANCE_NS, side="right")) - 1
            if at >= 0 and best_end < int(draft["end_ns"][stream.ids[at]]) <= start + TOLERANCE_NS:
                best, best_end = stream.ids[at], int(draft["end_ns"][stream.ids[at]])
        if best < 0:
            draft.unexplained_ns += late
            continue
        inferred += 1
        draft.edge(best, task, EdgeType.STREAM_WAIT, max(start - best_end, 0))
        timing.latency_ns[task] = timing.usual_ns[task]
    if inferred:
        draft.warnings.append(f"{inferred} waits between streams are inferred from observed times only")
