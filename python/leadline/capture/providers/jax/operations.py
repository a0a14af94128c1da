"""What XLA names on a GPU, as lines of the program.

Where a vendor provider of ours measures the kernels, XLA says by ranges (NVTX, domain TSL) which program and which
operation of it launches them. The tree keeps these titles; here is said what stands for them in files: the call of the
program, and below it the user's lines inside of the compiled function. Nothing is asked of XLA, and what ran before a
program was read is explained as well.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from leadline.capture.providers.jax.programs import Compiled, Programs
from leadline.capture.providers.jax.runs import called
from leadline.xla.parts import Frame, Part, unknown

_BETWEEN_S = 5.0
"""What is written while the program runs has lines for what ran so long ago."""
_WHOLE = 1_000_000
_COMMAND_BUFFER = "command_buffer"
"""XLA's name for operations that it has recorded as one graph, which launches them; it is none of the program's."""


class TitlesNative(Protocol):
    """What is needed of the native module here."""

    def explain_program(self, program: int, frame: Frame) -> None: ...
    def explain_operation(self, program: int, operation: str, parts: Sequence[tuple[Sequence[Frame], int]]) -> None: ...
    def unexplained_operations(self) -> list[tuple[int, str, str]]: ...
    def titled_runs(self) -> dict[int, int]: ...


class Operations:
    """Titles of XLA that have been explained."""

    def __init__(self, native: TitlesNative, programs: Programs) -> None:
        self._native = native
        self._programs = programs
        self._names: dict[int, str] = {}
        self.next_s = time.monotonic() + _BETWEEN_S
        """When, of `time.monotonic`, there is something to `look` at."""

    def poll(self) -> None:
        """Now and then, while the program runs."""
        if time.monotonic() >= self.next_s:
            self.explain()
            self.next_s = time.monotonic() + _BETWEEN_S

    def explain(self) -> None:
        """Say what stands for every title that has come up since the last time."""
        unexplained = self._native.unexplained_operations()
        self._names |= {number: module for number, operation, module in unexplained if not operation}
        for number, operation, _ in unexplained:
            if not operation:
                self._native.explain_program(number, title_frame(self._name(number)))
                continue
            parts = self._parts(number, operation)
            shares = millionths([part.share for part in parts])
            explained = [(part.frames, share) for part, share in zip(parts, shares, strict=True)]
            self._native.explain_operation(number, operation, explained)

    def heard(self) -> dict[str, int]:
        """Runs of programs, as JAX calls them, that stand in the tree by their titles, below what called them."""
        found: dict[str, int] = {}
        for number, runs in self._native.titled_runs().items():
            name = self._name(number)
            found[name] = found.get(name, 0) + runs
        return found

    def _parts(self, number: int, operation: str) -> tuple[Part, ...]:
        if operation.startswith(_COMMAND_BUFFER):
            return (Part((title_frame("command buffer"),), 1.0),)
        compiled = self._compiled(number)
        return (unknown(operation),) if compiled is None else compiled.parts_of(operation)

    def _name(self, number: int) -> str:
        """As JAX calls the program: what its title says is what XLA calls it."""
        return called(self._names.get(number, ""))

    def _compiled(self, number: int) -> Compiled | None:
        """The program that runs have this number of. Plug-ins do not say it; XLA counts up, so programs of one name are
        told apart by their order where as many ran as were compiled, and else the one compiled last stands for them."""
        name = self._names.get(number, "")
        found = self._programs.named(name)
        if not found:
            numbered = self._programs.get(number, name)  # which reads what was compiled before measuring began
            found = self._programs.named(name)
            if not found:  # the number of one behind a plug-in may be any other's
                return numbered if numbered is not None and numbered.name == name else None
        numbers = sorted(each for each, named in self._names.items() if named == name)
        return found[numbers.index(number)] if len(numbers) == len(found) else found[-1]


def title_frame(name: str) -> Frame:
    """What runs kernels that are measured: the call of a program, `jit(f)`, or a graph of its operations."""
    return ("operator", name, "", "", "", 0, 0, 0)


def millionths(shares: Sequence[float]) -> list[int]:
    """Whole numbers that add up to a million, by shares that add up to one."""
    whole = sum(shares) or 1.0
    reached, given, parts = 0.0, 0, []
    for position, share in enumerate(shares):
        reached += share / whole
        until = _WHOLE if position == len(shares) - 1 else min(round(reached * _WHOLE), _WHOLE)
        parts.append(until - given)
        given = until
    return parts
