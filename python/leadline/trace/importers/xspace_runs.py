"""What runs of compiled programs a profile of XLA holds, and what the operations of one waited for.

Profiles say of every operation which run of its program it belongs to, except those of JAX before 0.8: there an
operation that every run has once tells by how often it came before. What waited for what is kept as the process of a
profile of ours would have: the operands of each program, the program of each run, and the run of each event as its
correlation (`trace/programs.py`). A program that ran on several devices has a run on each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leadline.trace.importers.spans import Mask, Rows
from leadline.trace.tables import distinct
from leadline.trace.xspace import Space

if TYPE_CHECKING:
    from leadline._xla import Program

MOST_OPERATIONS = 20_000
"""Of one program; those of larger ones have no edges."""
MOST_EDGES = 1_000_000
"""Of all programs together."""
MOST_RUNS = 500_000
"""A profile of more has no edges."""
_LARGEST = 2**62
"""Numbers that profiles give to launches; what is larger is damage."""


def reported_runs(space: Space, programs: Mapping[int, Program], executes: Mask) -> NDArray[np.int32]:
    """The run of every event as any number, -1 where nothing tells. `executes`: events of one operation each."""
    untold = np.flatnonzero(executes & (space.run < 0))
    if not untold.size:
        return space.run
    run = space.run.copy()
    events = space.trace.events
    start, operation = events["start_ns"], space.operation
    program = np.array([number for number, _ in space.operations], np.int64)[operation[untold]]
    following = int(run.max(initial=-1)) + 1
    for number in np.unique(program).tolist():
        if number not in programs:
            continue
        rows = untold[program == number]
        rows = rows[np.argsort(start[rows], kind="stable")]
        once = set(programs[number].entry)
        listed = [row for row, (owner, name) in enumerate(space.operations) if owner == number and name in once]
        times = [np.flatnonzero(operation[rows] == row) for row in listed]
        times = [places for places in times if places.size]
        if not times or len({places.size for places in times}) > 1:
            continue  # the profile began or ended within a run: which operations are one run's cannot be told
        begins = np.minimum.reduce([start[rows][places] for places in times])
        mine = np.maximum(np.searchsorted(np.maximum.accumulate(begins), start[rows], side="right") - 1, 0)
        for places in times:
            mine[places] = np.arange(places.size)
        run[rows] = following + mine
        following += begins.size
    return run


class Dataflow:
    """What the operations of the runs needed. `record`: as a process tells it, empty where nothing is known.
    `correlation`: of every event, where its run is known the number of that, else what it had.

    `run`: of every event. `call_of_run`: by run the event that called the program, -1 where it is not there.
    """

    def __init__(
        self, space: Space, programs: Mapping[int, Program], executes: Mask, run: NDArray[np.int32], call_of_run: Rows
    ) -> None:
        events = space.trace.events
        self.record: dict[str, Any] = {}
        self.correlation: Rows = events["correlation"]
        rows = np.flatnonzero(executes & (run >= 0))
        first = int(self.correlation.max(initial=0)) + 1
        if not rows.size or first > _LARGEST:
            return
        owners = np.array([number for number, _ in space.operations], np.int64)
        on_device = events["thread"][rows] < 0
        place = np.where(on_device, events["device"][rows], space.ordinal[rows]).astype(np.int64) + 1
        numbers, owner = np.unique(owners, return_inverse=True)
        key = owner.reshape(-1)[space.operation[rows]] * (int(run.max()) + 1) + run[rows]
        key = key * (int(place.max()) + 1) + place  # one column, since a large profile has millions of rows
        of_each, number = distinct(key)
        del key, place
        if of_each.size > MOST_RUNS:
            return
        program = numbers[owner.reshape(-1)[space.operation[rows[of_each]]]]
        graphs, graph_of = _graphs(programs, program)
        if not graphs:
            return
        self.correlation = self.correlation.astype(np.int64)  # a copy
        launched = on_device & (self.correlation[rows] > 0)  # these keep the number of their launch
        self.correlation[rows[~launched]] = first + number[~launched]
        call = call_of_run[run[rows][of_each]]
        called = np.full(call.size, -1, np.int64)
        known = np.flatnonzero(call >= 0)
        _, first_of, of_call = np.unique(call[known], return_index=True, return_inverse=True)
        called[known] = known[first_of][of_call.reshape(-1)]
        self.correlation[call[called[known]]] = first + called[known]
        self.record = {
            "first": first,
            "graphs": graphs,
            "runs": [graph_of.get(one, -1) for one in program.tolist()],
            "called": called.tolist(),
        }
        if launched.any():
            self.record["launched"] = _stretches(self.correlation[rows[launched]], number[launched].astype(np.int64))


def _graphs(programs: Mapping[int, Program], ran: Rows) -> tuple[list[dict[str, Any]], dict[int, int]]:
    """Operands of the programs that ran, and which is whose."""
    graphs: list[dict[str, Any]] = []
    graph_of: dict[int, int] = {}
    room = MOST_EDGES
    for number in np.unique(ran).tolist():
        if number not in programs:
            continue
        calls, edges = programs[number].dataflow()
        room -= len(edges) // 2
        if 0 < len(calls) <= MOST_OPERATIONS and room >= 0:
            graph_of[number] = len(graphs)
            graphs.append({"program": programs[number].name, "calls": calls, "edges": edges})
    return graphs, graph_of


def _stretches(correlation: Rows, number: Rows) -> list[int]:
    """Launch, run, launch, run and so on: the work of a launch with that number, and of those up to the next one that
    is named, belongs to that run."""
    order = np.argsort(correlation, kind="stable")
    correlation, number = correlation[order], number[order]
    begins = np.concatenate(([True], number[1:] != number[:-1]))
    return np.stack((correlation[begins], number[begins]), axis=1).reshape(-1).tolist()
