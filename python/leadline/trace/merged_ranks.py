"""One trace for each program: ranks that were merged into one file are processes of their own.

A process is a program where it launched device work or runs a training loop. The other processes (workers of a loader)
stay with the first program.
"""

from __future__ import annotations

import re

import numpy as np

from leadline._dataclass import replace
from leadline.steps.names import is_optimizer_step
from leadline.trace.tables import CALL_KINDS, DEVICE_KINDS, Kind, Trace

_RANK = re.compile(r"\brank[ _:=-]*(\d+)\b", re.IGNORECASE)


def programs(trace: Trace) -> list[Trace]:
    """The traces of the programs in a trace; the trace itself where there are not several."""
    process = [thread.process for thread in trace.threads]
    owners = [one for one in dict.fromkeys(process) if one in _programs(trace)]
    if len(owners) < 2:
        return [trace]
    place = np.array([owners.index(one) if one in owners else 0 for one in process], np.int64)
    events = trace.events
    on_cpu = events["thread"] >= 0
    owner = np.where(on_cpu, place[np.maximum(events["thread"], 0)], -1)
    _give_device_work(trace, owner)
    return [_part(trace, owner == number, one, number) for number, one in enumerate(owners)]


def _programs(trace: Trace) -> set[int | str]:
    events = trace.events
    work = events["correlation"][trace.of_kind(*DEVICE_KINDS)]
    calls = trace.of_kind(*CALL_KINDS)
    launches = calls[(events["correlation"][calls] != 0) & np.isin(events["correlation"][calls], work)]
    marks = trace.of_kind(Kind.STEP, Kind.REGION)
    updates = np.array([is_optimizer_step(name) for name in trace.strings], dtype=np.bool_)
    marks = marks[(events["kind"][marks] == Kind.STEP) | updates[events["name"][marks]]]
    threads = np.unique(events["thread"][np.concatenate((launches, marks))])
    return {trace.threads[row].process for row in threads.tolist() if row >= 0}


def _give_device_work(trace: Trace, owner: np.ndarray) -> None:
    """Device work goes with its launch; without one, with the program that alone launched work on that device."""
    events = trace.events
    rows = np.flatnonzero(owner < 0)
    calls = trace.of_kind(*CALL_KINDS)
    calls = calls[(events["correlation"][calls] != 0) & (events["thread"][calls] >= 0)]
    launch_of = dict(zip(events["correlation"][calls].tolist(), owner[calls].tolist(), strict=True))
    owner[rows] = [launch_of.get(one, -1) for one in events["correlation"][rows].tolist()]
    for device in np.unique(events["device"][rows]).tolist():
        mine = rows[events["device"][rows] == device]
        known = np.unique(owner[mine][owner[mine] >= 0])
        owner[mine[owner[mine] < 0]] = int(known[0]) if known.size == 1 else 0


def _part(trace: Trace, mine: np.ndarray, process: int | str, number: int) -> Trace:
    kept = np.flatnonzero(mine)
    told = _RANK.search(process) if isinstance(process, str) else None
    theirs = [thread.process == process or number == 0 for thread in trace.threads]
    facts = {name: value for name, value in trace.facts.items() if name != "main_thread"}
    if "samples" in facts:
        facts["samples"] = [one for one in facts["samples"] if theirs[one[0]]]
    return replace(
        trace,
        events={name: values[kept] for name, values in trace.events.items()},
        flows=[flow for flow in trace.flows if theirs[flow.forward_thread]],
        rank=int(told[1]) if told else -1,
        source=f"{trace.source} process {process}",
        warnings=trace.warnings if number == 0 else (),
        unread=trace.unread if number == 0 else {},
        facts=facts,
    )
