"""Calls that are two tasks: a synchronisation behind which unrecorded launches lie, a copy that waits for itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline.trace.event_types import is_blocking_copy
from leadline.trace.tables import Kind
from leadline.whatif.build.device import Stream, calls_of
from leadline.whatif.build.draft import Draft
from leadline.whatif.kinds import EdgeType, TaskKind
from leadline.whatif.tables import UNSEEN_LAUNCH


def issue_behind_waits(draft: Draft, streams: Sequence[Stream]) -> None:
    """Work without a recorded launch is given to its stream with what stands before it, except where a synchronisation
    in between was over before it began (`Stream.launch_ns`): then behind that call, by a mark of no length."""
    calls = np.array(calls_of(draft, Kind.SYNCHRONIZE), dtype=np.int64)
    at = {int(begin): int(call) for begin, call in zip(draft["start_ns"][calls], calls, strict=True)}
    marks: dict[int, list[int]] = {}
    for stream in streams:
        before = np.concatenate(([np.iinfo(np.int64).min], stream.launched[:-1]))
        later = (draft["parent"][stream.ids] < 0) & (stream.launch_ns > before)
        for place in np.flatnonzero(later).tolist():
            call = at.get(int(stream.launch_ns[place]), -1)
            if call >= 0:
                marks.setdefault(call, []).append(int(stream.ids[place]))
    if not marks:
        return
    behind = np.array(list(marks), dtype=np.int64)
    added = draft.add(
        behind.size, kind=int(TaskKind.CPU), lane=draft["lane"][behind], gap_ns=draft["gap_ns"][behind],
        gap_level=draft["gap_level"][behind] + 1, start_ns=draft["end_ns"][behind], end_ns=draft["end_ns"][behind],
        name=draft.name_id(UNSEEN_LAUNCH), operator=draft["operator"][behind], parent=behind,
        tie=draft["tie"][behind] + 0.25,
    )  # fmt: skip
    draft["gap_ns"][behind] = 0
    for mark, work in zip(added.tolist(), marks.values(), strict=True):
        for task in work:
            draft.edge(mark, task, EdgeType.LAUNCH)


def split_blocking_copies(draft: Draft, streams: Sequence[Stream]) -> None:
    """A copy from or to pageable memory returns when it is done: issue, and wait for the very copy."""
    usual = draft.facts.get("launch_latency_ns", {})
    copies, calls, issues, ends, names = [], [], [], [], []
    every = np.concatenate([np.zeros(0, dtype=np.int64), *(stream.ids for stream in streams)])
    known = (draft["parent"][every] >= 0) & (draft["row"][every] >= 0)
    known[known] &= draft.trace.events["kind"][draft["row"][every[known]]] == Kind.COPY
    for copy in every[known].tolist():
        call, row = int(draft["parent"][copy]), int(draft["row"][copy])
        name = draft.trace.name(int(draft["row"][call]))
        begin = int(draft["start_ns"][call])
        end = begin + int(draft["duration_ns"][call])
        # a call that returned before the copy began had staged the data and did not wait
        if is_blocking_copy(name, draft.trace.name(row)) and end >= int(draft["start_ns"][copy]):
            issue = min(int(usual.get(name, 0)), int(draft["start_ns"][copy]) - begin, end - begin)
            copies.append(copy)
            calls.append(call)
            issues.append(begin + max(issue, 0))
            ends.append(end)
            names.append(draft.name_id(f"{name} (wait)"))
    if not copies:
        return
    of, begin_ns, end_ns = np.array(calls), np.array(issues), np.array(ends)
    own = np.maximum(end_ns - np.maximum(draft["end_ns"][np.array(copies)], begin_ns), 0)
    waits = draft.add(
        of.size, kind=int(TaskKind.CPU), lane=draft["lane"][of], duration_ns=own, gap_ns=draft["gap_ns"][of],
        gap_level=draft["gap_level"][of] + 1, start_ns=begin_ns, end_ns=end_ns, measured_ns=end_ns - begin_ns,
        name=names, operator=draft["operator"][of], parent=of, tie=draft["tie"][of] + 0.25,
    )  # fmt: skip
    draft["duration_ns"][of] = draft["measured_ns"][of] = begin_ns - draft["start_ns"][of]
    draft["gap_ns"][of] = 0
    # from pageable memory the call returns when the last piece is staged, a little before the copy ends
    early = np.minimum(end_ns - draft["end_ns"][np.array(copies)], 0)
    draft.edges(np.array(copies), waits, EdgeType.SYNC, early)
