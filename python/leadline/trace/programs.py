"""Edges inside of programs that XLA compiled, and of TensorFlow's graphs: which operation needed the result of which.

The process recorded what each program says of its operands (`dataflow` of the provider), and for each run of one that
is in the window, to which the events' correlation leads, which program it was. An operation may run often in one run of
a program, in a loop: it then needed what its makers did last.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.schema import EventKind

Numbers = NDArray[np.int64]
_WORK = (EventKind.KERNEL, EventKind.COPY, EventKind.SET, EventKind.COLLECTIVE)


def program_edges(
    events: Mapping[str, NDArray[Any]], rows: Numbers, operations: Sequence[str], told: Mapping[str, Any]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """(source, target) rows of events: of operations, and from the call of a program to what waited for nothing else
    in its run, when it first ran. `rows`: those of one process, `operations`: the names of the operations that
    they execute, empty for events that execute none; `told`: graphs, runs, and `first`, the number of the first run;
    of imported profiles also `called`, by run that whose number its call has, and `launched`, by launches whose work
    is which run's."""
    graphs, graph_of = _listed(told, "graphs"), _listed(told, "runs")
    begins = events["start_ns"][rows]
    runs = _runs(events, rows, told)
    calls: dict[int, int] = {}
    inside: dict[int, dict[str, list[tuple[int, int]]]] = {}
    for at in np.lexsort((begins, runs)).tolist():
        run = int(runs[at])
        if 0 <= run < len(graph_of) and not operations[at]:
            calls.setdefault(run, int(rows[at]))
        elif 0 <= run < len(graph_of):
            inside.setdefault(run, {}).setdefault(operations[at], []).append((int(begins[at]), int(rows[at])))
    found: list[tuple[int, int]] = []
    launched: list[tuple[int, int]] = []
    called = _listed(told, "called")
    for run, executed in inside.items():
        graph = graphs[graph_of[run]] if 0 <= graph_of[run] < len(graphs) else {}
        names, pairs = _listed(graph, "calls"), _listed(graph, "edges")
        fed: set[int] = set()
        for maker, user in zip(pairs[::2], pairs[1::2], strict=False):
            made, used = executed.get(names[maker], []), executed.get(names[user], [])
            for begin, row in used:
                before = bisect.bisect_left(made, (begin, -1))
                if before:
                    found.append((made[before - 1][1], row))
                    fed.add(row)
        asked = called[run] if run < len(called) else run
        if asked in calls:
            untold = {names[row] for row in _listed(graph, "unknown")}
            # what runs again, in a later turn of a loop, waited for something that is not told
            first_times = (min(times)[1] for name, times in executed.items() if name not in untold)
            launched += [(calls[asked], row) for row in first_times if row not in fed]
    return found, launched


def _runs(events: Mapping[str, NDArray[Any]], rows: Numbers, told: Mapping[str, Any]) -> Numbers:
    """The run of every event, -1 where it belongs to none: its correlation counts runs, or it was launched for one."""
    first = told.get("first", 1) if isinstance(told, Mapping) else 1
    kind, correlation = events["kind"][rows], events["correlation"][rows].astype(np.int64)
    works = np.isin(kind, _WORK)
    runs: Numbers = np.where((kind == EventKind.OPERATOR) | (works & (correlation >= first)), correlation - first, -1)
    launches = np.array(_listed(told, "launched"), np.int64)
    launches = launches[: launches.size // 2 * 2].reshape(-1, 2)
    launched = np.flatnonzero(works & (correlation > 0) & (correlation < first)) if launches.size else launches[:0, 0]
    place = np.searchsorted(launches[:, 0], correlation[launched], side="right") - 1
    runs[launched] = np.where(place >= 0, launches[place, 1], -1)
    return runs


def _listed(told: Any, name: str) -> list[Any]:
    found = told.get(name) if isinstance(told, Mapping) else None
    return found if isinstance(found, list) else []
