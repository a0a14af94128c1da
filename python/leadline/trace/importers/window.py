"""The events of a trace of others as the table `events` of a profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from leadline.schema import TABLES
from leadline.steps import Found
from leadline.steps.completion import issued_ns
from leadline.steps.model import WHOLE_TRACE
from leadline.trace.importers.spans import Rows
from leadline.trace.tables import DEVICE_KINDS, Kind, Trace

_NOTHING = {"correlation": 0, "bytes": 0, "awaits_correlation": 0, "graph_node": 0}
"""What columns hold where there is nothing to say, unless it is -1."""


def event_columns(
    trace: Trace,
    rows: Rows,
    node: Rows,
    forward_thread: Rows,
    steps: Found,
    *,
    threads: Mapping[int, int],
    devices: Mapping[int, int],
    loop: tuple[int, int],
) -> dict[str, Any]:
    """The events of these rows, and one for each step on `loop`: the node and the row of the loop's thread.

    node, forward_thread: of every event of the trace, as a node and as a thread of the trace.
    threads, devices: rows of the profile for the trace's threads and numbers of devices.
    """
    events = trace.events
    found = () if steps.found_by == WHOLE_TRACE else steps.everything
    marks: dict[str, Any] = {
        "start_ns": [step.start_ns for step in found],
        "duration_ns": [step.end_ns - step.start_ns for step in found],
        "step": [step.number for step in found],
        "kind": Kind.STEP,
        "node": loop[0],
        "thread": loop[1],
    }
    made: dict[str, Callable[[], Any]] = {
        "thread": lambda: _renumbered(events["thread"][rows], threads),
        "device": lambda: _renumbered(events["device"][rows], devices),
        "forward_thread": lambda: _renumbered(forward_thread[rows], threads),
        "awaits_correlation": lambda: np.maximum(events["awaits_correlation"][rows], 0),
        "correlation": lambda: np.maximum(events["correlation"][rows], 0),
        "node": lambda: node[rows],
        "step": lambda: step_numbers(trace, steps)[rows],
        "graph_node": lambda: graph_nodes(events)[rows],
    }
    order = np.argsort(np.concatenate((marks["start_ns"], events["start_ns"][rows])), kind="stable")
    columns = {}
    for column in TABLES["events"].columns:  # one after the other: a large trace is held once beside these
        mark = np.broadcast_to(marks.get(column.name, _NOTHING.get(column.name, -1)), len(found))
        values = made[column.name]() if column.name in made else events[column.name][rows]
        columns[column.name] = np.concatenate((mark, values)).astype(column.dtype)[order]
    return columns


def graph_nodes(events: Mapping[str, Rows]) -> Rows:
    """Of every piece of work that the launch of a captured graph started its number in that launch, from 1 on; else 0.
    Traces of others do not say the nodes themselves, but a graph that is launched again starts the same work."""
    kind, launch = events["kind"], events["correlation"].astype(np.int64)
    graphs = np.unique(launch[(kind == int(Kind.GRAPH_LAUNCH)) & (launch > 0)])
    work = np.flatnonzero(np.isin(kind, [int(one) for one in DEVICE_KINDS]) & np.isin(launch, graphs))
    found = np.zeros(len(kind), np.int64)
    if len(work):
        order = work[np.lexsort((events["start_ns"][work], launch[work]))]
        first = np.flatnonzero(np.diff(launch[order], prepend=-1))
        found[order] = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order))) + 1
    return found


def step_numbers(trace: Trace, steps: Found) -> Rows:
    """Of every event the number of the step in which it began, device work that in which it was launched; else -1."""
    at = issued_ns(trace.events)
    begins = np.array([step.start_ns for step in steps.everything])
    place = np.searchsorted(begins, at, side="right") - 1
    ends, numbers = (
        np.array(column, dtype=np.int64)[np.maximum(place, 0)]
        for column in zip(*((step.end_ns, step.number) for step in steps.everything), strict=True)
    )
    inside: Rows = np.where((place >= 0) & (at < ends), numbers, -1)
    return inside


def _renumbered(values: Rows, rows: Mapping[int, int]) -> Rows:
    numbers, place = np.unique(values, return_inverse=True)
    found: Rows = np.array([rows.get(number, -1) for number in numbers.tolist()], dtype=np.int64)[place]
    return found
