"""Which instruction each kernel of a command buffer is of.

On GPUs XLA records stretches of a program into CUDA graphs (command buffers), and its profiler then says of every
kernel which command buffer it was in, and not of which instruction it is. Two things still tell it. XLA names a
kernel after the instruction that it was made for; fusions that compute the same share the kernel of one of them. And
kernels run in the order of the program's schedule: so one that has another's name, or a library's, or that copies, is
of an instruction between those of its neighbours. The assignment sought is the one that fits all names of a launch
best; where several fit equally well, all are told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass

if TYPE_CHECKING:
    from leadline._xla import Program

MOST_CELLS = 8_000_000
"""Kernels of a launch times instructions that they may be of; of larger ones names alone tell."""
MOST_SHARING = 8
"""Instructions that one kernel may be of; more than these tell nothing."""

BY_NAME, BY_ORDER = "its name", "its place in the command buffer"

_Scores = NDArray[np.float64]

# How well a kernel fits an instruction.
_OWN, _SHARED, _LIKELY, _POSSIBLE, _UNLIKELY = 4.0, 3.0, 1.0, 0.5, 0.2
# What it costs to pass by an instruction whose kernel runs elsewhere, or one that may run none; to go on elsewhere.
_MISSING, _SKIPPED, _ELSEWHERE = 1.0, 0.3, 3.0
_ALIKE = 1e-6
"""Sums that differ by less are equal."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
_NUMBER = re.compile(r"(?:_\d+)+$")
_COPIES = re.compile(r"^(?:mem(?:cpy|set)|Mem(?:cpy|set))")
_MOVES = re.compile(r"copy|slice|broadcast|pad|concat")


@dataclass(frozen=True)
class Match:
    """The instruction that a kernel is of; several where it may be of each, none where nothing tells."""

    instructions: tuple[str, ...] = ()
    by: str = ""


def kernel_name(instruction: str) -> str:
    """What XLA calls the kernel of an instruction."""
    return _NOT_IN_NAMES.sub("_", instruction)


class Schedule:
    """What a program executes, in order. `seen`: names of all kernels of it that were seen in any launch."""

    def __init__(self, program: Program, seen: Sequence[str]) -> None:
        listed = program.schedules()
        self._names = [name for computation in listed for name, _ in computation]
        self._opcodes = [opcode for computation in listed for _, opcode in computation]
        self._kernels = [kernel_name(name) for name in self._names]
        sizes = [len(computation) for computation in listed]
        self._computation = np.repeat(np.arange(len(sizes)), sizes)
        self._place: dict[str, int] = {}
        for place, name in enumerate(self._kernels):
            self._place.setdefault(name, place)
        self._stems = [_NUMBER.sub("", name) for name in self._kernels]
        known = {name for name in seen if name in self._place}
        self._is_seen = np.array([name in known for name in self._kernels], np.bool_)
        self._cells = 0

    def of(self, kernels: Sequence[str]) -> list[Match]:
        """What each kernel of one launch is of; in the order in which they began."""
        by_name = [self._by_name(name) for name in kernels]
        places = self._candidates(kernels)
        self._cells += places.size * len(kernels)
        if not places.size or self._cells > MOST_CELLS:
            return by_name
        found = []
        for name, alone, fits in zip(kernels, by_name, self._fits(kernels, places), strict=True):
            names = tuple(self._names[place] for place in places[fits].tolist())
            if not names or len(names) > MOST_SHARING:
                found.append(alone)
            else:
                found.append(Match(names, BY_NAME if [kernel_name(one) for one in names] == [name] else BY_ORDER))
        return found

    def _by_name(self, kernel: str) -> Match:
        place = self._place.get(kernel)
        return Match() if place is None else Match((self._names[place],), BY_NAME)

    def _candidates(self, kernels: Sequence[str]) -> NDArray[np.int64]:
        """Instructions around those that the names tell: a command buffer is a stretch of a computation."""
        told = sorted({self._place[name] for name in kernels if name in self._place})
        kept = np.zeros(len(self._names), np.bool_)
        for number in np.unique(self._computation[told]).tolist():
            inside = np.flatnonzero(self._computation == number)
            mine = [place for place in told if self._computation[place] == number]
            first, last = max(inside[0], mine[0] - len(kernels)), min(inside[-1], mine[-1] + len(kernels))
            kept[first : last + 1] = True
        return np.flatnonzero(kept)

    def _fits(self, kernels: Sequence[str], places: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """For every kernel the rows of `places` that it has in any best assignment."""
        paths = _Paths(np.where(self._is_seen[places], _MISSING, _SKIPPED), self._computation[places])
        scores = {name: self._score(name, places) for name in dict.fromkeys(kernels)}
        arrives, stays = [scores[name][0] for name in kernels], [scores[name][1] for name in kernels]
        here = [arrives[0]]  # a command buffer may begin anywhere
        before = [here[0]]
        for arrive, stay in zip(arrives[1:], stays[1:], strict=True):
            here.append(np.maximum(arrive + paths.onward(before[-1]), stay + before[-1]))
            before.append(np.maximum(here[-1], before[-1]))  # it may also be of none of these
        after = np.zeros(places.size)
        best = float(before[-1].max())
        found = []
        for row in range(len(kernels) - 1, -1, -1):
            found.append(np.flatnonzero(here[row] + after >= best - _ALIKE))
            if row:
                after = np.maximum.reduce([paths.back(arrives[row] + after), stays[row] + after, after])
        return found[::-1]

    def _score(self, kernel: str, places: NDArray[np.int64]) -> tuple[_Scores, _Scores]:
        """How well a kernel fits each instruction as its first, and as a further one of it."""
        arrive, stay = np.full(places.size, -np.inf), np.full(places.size, -np.inf)
        named, stem, copies = kernel in self._place, _NUMBER.sub("", kernel), _COPIES.match(kernel) is not None
        for row, place in enumerate(places.tolist()):
            if self._kernels[place] == kernel:
                arrive[row], stay[row] = _OWN, _POSSIBLE
            elif self._is_seen[place]:
                continue
            elif named:
                if self._stems[place] == stem:
                    arrive[row] = _SHARED
            elif copies:
                moves = _MOVES.search(self._names[place]) or _MOVES.search(self._opcodes[place])
                arrive[row] = _LIKELY if moves else _UNLIKELY
            else:
                arrive[row] = _LIKELY if self._opcodes[place] == "custom-call" else _POSSIBLE
                stay[row] = _UNLIKELY  # libraries often run several
        return arrive, stay


class _Paths:
    """Ways from one instruction to a later one of the same computation, or to any other computation: what it costs to
    pass by those between. A computation may be executed again."""

    def __init__(self, cost: _Scores, computation: NDArray[np.int64]) -> None:
        self._up_to = np.concatenate(([0.0], np.cumsum(cost)))
        first = np.flatnonzero(np.concatenate(([True], computation[1:] != computation[:-1])))
        self._parts = list(zip(first.tolist(), [*first[1:].tolist(), computation.size], strict=True))
        begins = np.repeat(first, [end - start for start, end in self._parts])
        self._from_begin = self._up_to[:-1] - self._up_to[begins]

    def onward(self, before: _Scores) -> _Scores:
        """The best way to every instruction, from where one was before; or from nowhere yet."""
        way = np.maximum(0.0, float(before.max()) - _ELSEWHERE - self._from_begin)
        left = before + self._up_to[1:]
        for start, end in self._parts:
            best = np.maximum.accumulate(left[start : end - 1]) - self._up_to[start + 1 : end]
            way[start + 1 : end] = np.maximum(way[start + 1 : end], best)
        return way

    def back(self, after: _Scores) -> _Scores:
        """The best of what may follow every instruction."""
        way = np.full(after.size, float((after - self._from_begin).max()) - _ELSEWHERE)
        left = after - self._up_to[:-1]
        for start, end in self._parts:
            best = np.maximum.accumulate(left[start + 1 : end][::-1])[::-1] + self._up_to[start + 1 : end]
            way[start : end - 1] = np.maximum(way[start : end - 1], best)
        return way
