"""Device work of a trace window, whoever recorded it: what class each event is of, and how wall time splits per device.

A kernel is classed by the innermost operator with a class around the call that launched it (joined by correlation id,
the operator by time on the launching thread), since names mislead; by its own name where no launch is recorded or no
operator tells. The window of a device reaches from the first step's start to the end of the last step or of the last
work that the steps launched, if that is later: a device runs behind the thread that feeds it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.analysis.columns import Rows
from leadline.analysis.overlap import WallSplit, wall_split
from leadline.steps import Step
from leadline.trace.tables import CALL_KINDS, DEVICE_KINDS, Kind, Trace
from leadline.work.kernels import class_of_kernel
from leadline.work.operators import CLASSES, class_of_operator

_COMMUNICATION, _COPY, _OPTIMIZER = (CLASSES.index(name) for name in ("communication", "copy", "optimizer"))
_BECOME_OPTIMIZER = {CLASSES.index(name) for name in ("element-wise", "copy", "other")}


@dataclass(frozen=True)
class DeviceWork:
    """One row per event of device work. `event`: its row in the trace; `found`: row of CLASSES; `by_operator`: whether
    an operator told, else the name did; `operator`: name of the innermost operator around the launch, "" if none."""

    event: Rows
    found: Rows
    by_operator: NDArray[np.bool_]
    operator: tuple[str, ...]


def device_work(trace: Trace) -> DeviceWork:
    """All device work of a trace with its classes."""
    events = trace.events
    rows = trace.of_kind(*DEVICE_KINDS)
    around = _operators_around_calls(trace)
    launches = {
        int(events["correlation"][row]): row
        for row in trace.of_kind(*CALL_KINDS).tolist()
        if int(events["correlation"][row])
    }
    found, told, names = [], [], []
    for row in rows.tolist():
        launch = launches.get(int(events["correlation"][row]), -1)
        operator, decided, updating = around.get(launch, ("", "", False))
        by_name = class_of_kernel(trace.name(row))
        moves = int(events["kind"][row]) in (int(Kind.COPY), int(Kind.SET))
        if by_name == "communication" or decided == "communication":
            number, by_operator = _COMMUNICATION, decided == "communication"
        elif moves:
            number, by_operator = _COPY, False
        elif decided and decided != "other":
            number, by_operator = CLASSES.index(decided), True
        else:
            number, by_operator = CLASSES.index(by_name), False
        if updating and number in _BECOME_OPTIMIZER and not moves:
            number, by_operator = _OPTIMIZER, True
        found.append(number)
        told.append(by_operator)
        names.append(operator)
    return DeviceWork(rows, np.array(found, np.int64), np.array(told, np.bool_), tuple(names))


def device_walls(trace: Trace, steps: Sequence[Step], work: DeviceWork) -> dict[int, WallSplit]:
    """How the time of the steps splits on each device, by its row among the trace's devices."""
    events = trace.events
    device = events["device"][work.event].astype(np.int64)
    begin = events["start_ns"][work.event].astype(np.int64)
    spans = np.stack([begin, trace.end_ns[work.event]], axis=1)
    first, last = min(step.start_ns for step in steps), max(step.end_ns for step in steps)
    launched = _launched_before(trace, work, last)
    kinds = events["kind"][work.event]
    talks = work.found == _COMMUNICATION
    moves = np.isin(kinds, [int(Kind.COPY), int(Kind.SET)]) & ~talks
    walls = {}
    for row in np.unique(device[device >= 0]).tolist():
        here = device == row
        end = max(last, int(spans[here & launched][:, 1].max(initial=last)))
        window = np.array([[first, end]], np.int64)
        walls[row] = wall_split(window, spans[here & ~talks & ~moves], spans[here & talks], spans[here & moves])
    return walls


def _launched_before(trace: Trace, work: DeviceWork, end_ns: int) -> NDArray[np.bool_]:
    """Work of which the launch is recorded before `end_ns`."""
    events = trace.events
    calls = trace.of_kind(*CALL_KINDS)
    early = calls[events["start_ns"][calls] < end_ns]
    known = events["correlation"][early]
    mine = events["correlation"][work.event]
    launched: NDArray[np.bool_] = np.isin(mine, known[known != 0])
    return launched


def _operators_around_calls(trace: Trace) -> dict[int, tuple[str, str, bool]]:
    """For each API call: the innermost operator around it, the class of the innermost that has one, and whether the
    call stands in an optimizer's step."""
    events = trace.events
    asked = (*CALL_KINDS, Kind.OPERATOR, Kind.REGION, Kind.PHASE)
    rows = trace.of_kind(*asked)
    rows = rows[np.lexsort((-events["duration_ns"][rows], events["start_ns"][rows], events["thread"][rows]))]
    kinds = events["kind"]
    calls = {int(kind) for kind in CALL_KINDS}
    found: dict[int, tuple[str, str, bool]] = {}
    stack: list[tuple[int, str, str, bool]] = []
    thread = -1
    for row, of, end in zip(rows.tolist(), events["thread"][rows].tolist(), trace.end_ns[rows].tolist(), strict=True):
        if of != thread:
            thread, stack = of, []
        while stack and stack[-1][0] < end:
            stack.pop()
        _, operator, decided, updating = stack[-1] if stack else (0, "", "", False)
        if int(kinds[row]) in calls:
            found[row] = (operator, decided, updating)
            continue
        name = trace.name(row)
        own = class_of_operator(name)
        if own == "optimizer" and name.startswith("Optimizer.step#"):
            updating, own = True, ""
        elif name == "closure" and int(kinds[row]) == int(Kind.PHASE):
            updating, decided = False, ""  # what the optimizer calls is the program's own work
        if int(kinds[row]) != int(Kind.OPERATOR) and own != "communication":
            own = ""
        known = name if int(kinds[row]) == int(Kind.OPERATOR) else operator
        stack.append((end, known, own if own and (own != "other" or not decided) else decided, updating))
    return found
