"""Kernels in command buffers of XLA as operations of their programs; `command_buffers.py` says what tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from leadline._dataclass import dataclass, replace
from leadline.trace.importers.command_buffers import Match, Schedule
from leadline.trace.importers.spans import Rows
from leadline.trace.xspace import Space

if TYPE_CHECKING:
    from leadline._xla import Program


@dataclass(frozen=True)
class Buffered:
    """What a kernel of a command buffer is of, and what the profile calls that."""

    name: str
    match: Match


def unbuffered(space: Space, programs: Mapping[int, Program]) -> tuple[Space, dict[int, Buffered]]:
    """The profile with kernels of command buffers as events of their instructions, and what told each of these rows of
    its operations."""
    buffers = [
        row
        for row, (number, name) in enumerate(space.operations)
        if number in programs and _is_buffer(programs[number], name)
    ]
    events = space.trace.events
    mine = np.isin(space.operation, buffers) & (events["device"] >= 0) & (events["thread"] < 0)
    rows = np.flatnonzero(mine)
    if not rows.size:
        return space, {}
    names = np.array(space.trace.strings, dtype=object)[events["name"][rows]]
    program = np.array([number for number, _ in space.operations], np.int64)[space.operation[rows]]
    operations, operation = list(space.operations), space.operation.copy()
    known: dict[tuple[int, Match], int] = {}
    found: dict[int, Buffered] = {}
    for number in np.unique(program).tolist():
        of_program = program == number
        schedule = Schedule(programs[number], np.unique(names[of_program]).tolist())
        told: dict[tuple[str, ...], list[Match]] = {}
        for launch in _launches(space, rows[of_program]):
            kernels = tuple(space.trace.strings[name] for name in events["name"][launch].tolist())
            if kernels not in told:
                told[kernels] = schedule.of(kernels)
            for event, one in zip(launch.tolist(), told[kernels], strict=True):
                buffer = int(space.operation[event])
                row = known.setdefault((buffer, one), len(operations))
                if row == len(operations):
                    name = operations[buffer][1]
                    operations.append((number, one.instructions[0] if one.instructions else name))
                    found[row] = Buffered(name, one)
                operation[event] = row
    return replace(space, operation=operation, operations=operations), found


def _is_buffer(program: Program, name: str) -> bool:
    """Whether that is no instruction, or one that calls those of a command buffer."""
    origins = program.origins(name)
    return origins is None or origins[0] == "call"


def _launches(space: Space, rows: Rows) -> list[Rows]:
    """The work of each launch of a command buffer, in its order."""
    events = space.trace.events
    columns = (events["device"][rows], space.operation[rows], events["correlation"][rows])
    order = np.lexsort((events["start_ns"][rows], *columns))
    rows = rows[order]
    changes = np.zeros(rows.size, np.bool_)
    for column in columns:
        changes[1:] |= column[order][1:] != column[order][:-1]
    return np.split(rows, np.flatnonzero(changes))
