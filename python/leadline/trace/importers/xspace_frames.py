"""Which frames an event of a profile of XLA or TensorFlow is.

Operations of compiled programs get theirs from the program. A node of a TensorFlow graph stands in the name scopes that
its name tells, gradients in a phase `backward`. Names of Python functions come without the folder of their file; it is
put back where a compiled program tells the whole path of one file of that name.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leadline.profiles.builder import ProfileBuilder
from leadline.schema import FrameKind
from leadline.trace.event_types import is_collective
from leadline.trace.importers.spans import Mask, Rows
from leadline.trace.importers.xspace_buffers import Buffered
from leadline.trace.tables import Kind, distinct
from leadline.trace.xspace import Space
from leadline.xla.events import Event, Named, graph_scopes, python_frame
from leadline.xla.parts import Frame, parts_of

if TYPE_CHECKING:
    from leadline._xla import Program

_LOADING = (
    "IteratorGetNext",
    "IteratorGetNextSync",
    "IteratorGetNextAsOptional",
    "MultiDeviceIteratorGetNextFromShard",
)
_SILENT = 1
"""A key: what is inside stands below what is around."""
UNTOLD = (
    "Kernels in command buffers (CUDA graphs) that neither their name nor their place there binds to an operation have "
    "no lines; with XLA_FLAGS=--xla_gpu_enable_command_buffer= XLA launches each by itself."
)
_ALONE = -2
"""In place of a pool: the call of the program is not in the profile."""


def is_loading(one: Named) -> bool:
    """Whether a span makes or takes a batch."""
    return one.event == Event.PIPELINE or (one.event == Event.NODE and one.name in _LOADING)


class Frames:
    """Makes the nodes of a profile's events. Events that make the same frames have one key."""

    def __init__(
        self, builder: ProfileBuilder, space: Space, programs: Mapping[int, Program], buffered: Mapping[int, Buffered]
    ) -> None:
        self._builder = builder
        self._space = space
        self._programs = programs
        self._buffered = buffered
        self._keys: list[tuple[int, int, int, int]] = [(-1, -1, -1, -1)] * (_SILENT + 1)
        """(kind, name, operation, pool) of each key."""
        self._meaning: list[int] = [-1] * (_SILENT + 1)
        self._above: dict[int, tuple[tuple[str, str], ...]] = {}
        self.parent_of: dict[int, int] = {}
        self._whole_paths = self._paths()
        self._without: Counter[str] = Counter()

    def keys(self, crossed: Mask, alone: Mask, silent: Mask) -> Rows:
        """The key of every event. `crossed`: done by a thread for another one; `alone`: by a program whose call is not
        there; `silent`: stands for nothing itself."""
        space, events = self._space, self._space.trace.events
        pools = np.arange(len(space.trace.threads))
        names = [thread.name for thread in space.trace.threads]
        for row, name in enumerate(names):
            pools[row] = names.index(name)
        pool = np.where(crossed, pools[np.maximum(events["thread"], 0)] if pools.size else -1, -1)
        pool = np.where(alone, _ALONE, pool)
        meaning = np.where(space.operation >= 0, -1, space.meaning)
        columns = (events["kind"], events["name"], space.operation, pool, meaning)
        rows, place = distinct(_both(columns[0], columns[1]), _both(columns[2], columns[4]), pool)
        first = len(self._keys)
        keys = [column[rows].tolist() for column in columns]
        self._keys += list(zip(*keys[:4], strict=True))
        self._meaning += keys[4]
        return np.where(silent, _SILENT, place + first)

    def losses(self) -> dict[str, int]:
        """Sentences on what the profile lacks, with how often."""
        return dict(self._without)

    # ------------------------------------------------------------------ nodes

    def below(self, key: int, node: int) -> list[tuple[int, float]]:
        """See `levels.Below`."""
        kind, name, operation, pool = self._keys[key]
        if kind < 0:
            return []
        start = node
        if pool >= 0:
            detail = json.dumps({"pool": self._space.trace.threads[pool].name or "threads"})
            start = self._child(node, self._builder.frame(FrameKind.PHASE, "on another thread", detail=detail))
        if pool == _ALONE:
            start = self._child(node, self._builder.frame(FrameKind.REGION, self._program_name(operation)))
        if operation >= 0:
            return self._operation(start, Kind(kind), name, operation)
        return self._plain(start, Kind(kind), name, self._meaning[key])

    def _plain(self, node: int, kind: Kind, name: int, meaning: int) -> list[tuple[int, float]]:
        text = self._space.trace.strings[name]
        builder = self._builder
        if kind in (Kind.OVERHEAD, Kind.ALLOCATE, Kind.STEP):
            return [] if node < 0 else [(node, 1.0)]
        if kind in (Kind.KERNEL, Kind.COPY, Kind.SET):
            return [(self._child(node, self._work(kind, text)), 1.0)]
        one = self._space.meanings[meaning] if meaning >= 0 else Named(Event.RUNTIME, text)
        if kind == Kind.PYTHON:
            if one.event == Event.BUILTIN:
                return [(node, 1.0)]
            file, line, function = python_frame(text)
            path = self._whole_paths.get(file, file)
            frame = builder.frame(FrameKind.PYTHON, function, file=path, line=line, first_line=line)
            made = self._child(node, frame)
            self._above[made] = (*self._above.get(node, ()), (path, function))
            return [(made, 1.0)]
        if kind == Kind.REGION:
            return [(self._child(node, builder.frame(FrameKind.REGION, text)), 1.0)]
        if kind != Kind.OPERATOR:
            return [(self._child(node, builder.frame(FrameKind.API, text)), 1.0)]
        if is_loading(one):
            node = self._once(node, "data loading")
        for frame_kind, part in graph_scopes(one.scope):
            node = self._child(node, builder.frame(FrameKind[frame_kind.upper()], part))
        return [(self._child(node, builder.frame(FrameKind.OPERATOR, text)), 1.0)]

    def _once(self, node: int, phase: str) -> int:
        """The node of that phase; the innermost that is open already where there is one."""
        frame = self._builder.frame(FrameKind.PHASE, phase)
        around = node
        while around in self.parent_of:
            if self._frame_of.get(around) == frame:
                return node
            around = self.parent_of[around]
        return self._child(node, frame)

    _frame_of: dict[int, int]

    def _operation(self, node: int, kind: Kind, name: int, operation: int) -> list[tuple[int, float]]:
        number, instruction = self._space.operations[operation]
        program = self._programs.get(number)
        on_device = kind in (Kind.KERNEL, Kind.COPY, Kind.SET)
        work = [self._work(kind, self._space.trace.strings[name])] if on_device else []
        if program is None:
            self._without["Operations of compiled programs that are not in the profile have no lines."] += 1
            detail = json.dumps({"hlo": instruction})
            frames = [self._builder.frame(FrameKind.OPERATOR, instruction.partition(".")[0], detail=detail), *work]
            return [(self._path(node, frames), 1.0)]
        buffered = self._buffered.get(operation)
        if buffered is not None and not buffered.match.instructions:
            self._without[UNTOLD] += 1
            detail = json.dumps({"command_buffer": buffered.name})
            frames = [self._builder.frame(FrameKind.OPERATOR, "command buffer", detail=detail), *work]
            return [(self._path(node, frames), 1.0)]
        found = []
        instructions = buffered.match.instructions if buffered is not None else (instruction,)
        for one in instructions:
            for part in parts_of(program, one, self._stack_of(node)):
                told = part.frames if buffered is None else (*part.frames[:-1], _noted(part.frames[-1], buffered))
                frames = [*map(self._frame, told), *work]
                found.append((self._path(node, frames), part.share / len(instructions)))
        return found

    def _program_name(self, operation: int) -> str:
        name = self._space.programs.get(self._space.operations[operation][0], ("program", b""))[0].partition("(")[0]
        return f"jit({name.removeprefix('jit_')})"

    def _stack_of(self, node: int) -> tuple[tuple[str, str], ...]:
        """(file, function) of the Python frames above a node."""
        while node not in self._above and node in self.parent_of:
            node = self.parent_of[node]
        return self._above.get(node, ())

    def _work(self, kind: Kind, name: str) -> int:
        if kind in (Kind.COPY, Kind.SET):
            parts = name.split(" ")
            detail = json.dumps({"direction": parts[1]}) if kind == Kind.COPY and len(parts) > 1 else ""
            return self._builder.frame(FrameKind.COPY, name, detail=detail)
        return self._builder.frame(FrameKind.COLLECTIVE if is_collective(name) else FrameKind.KERNEL, name)

    def _frame(self, frame: Frame) -> int:
        kind, name, module, file, detail, line, first_line, address = frame
        return self._builder.frame(
            kind, name, module=module, file=file, detail=detail, line=line, first_line=first_line, address=address
        )

    def _path(self, node: int, frames: list[int]) -> int:
        for frame in frames:
            node = self._child(node, frame)
        return node

    def _child(self, node: int, frame: int) -> int:
        made = self._builder.child(node, frame)
        self.parent_of[made] = node
        self._frame_of[made] = frame
        return made

    def _paths(self) -> dict[str, str]:
        """The whole path of each file whose name one file alone has among those of the programs."""
        self._frame_of = {}
        found: dict[str, set[str]] = {}
        for program in self._programs.values():
            for file in program.files:
                found.setdefault(PurePosixPath(file).name, set()).add(file)
        return {name: next(iter(paths)) for name, paths in found.items() if len(paths) == 1}


def _noted(operator: Frame, buffered: Buffered) -> Frame:
    """The operation of a kernel in a command buffer, with what told that it is of it."""
    kind, name, module, file, detail, line, first_line, address = operator
    told: dict[str, Any] = {"command_buffer": buffered.name, "told_by": buffered.match.by}
    if len(buffered.match.instructions) > 1:
        told["one_of"] = list(buffered.match.instructions)
    noted = json.dumps({**json.loads(detail), **told}, sort_keys=True)
    return (kind, name, module, file, noted, line, first_line, address)


def _both(one: NDArray[Any], other: NDArray[Any]) -> Rows:
    """Two columns of 32 bits as one."""
    both: Rows = (one.astype(np.int64) << 32) + other
    return both
