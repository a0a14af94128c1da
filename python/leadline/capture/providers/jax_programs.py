"""Compiled programs of XLA: what each operation was made from, where it was compiled, and with which arguments.

Reads a program when JAX says that one was compiled or loaded from its cache; programs from before are read when they
are seen running. Keeps copies only, never an executable of JAX. Raises nothing into the program.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leadline.capture.providers import jax_places, xla_scopes

if TYPE_CHECKING:
    from leadline._xla import Program

Frame = tuple[str, str, str, str, str, int, int, int]
"""A frame as `Native.book` takes it."""
MODULE_SYSTEMS = ("flax", "haiku", "equinox", "keras", "penzai")
"""Packages whose calls open a scope for each module."""


_MODULE = re.compile(r"[A-Za-z_][\w.]*")
"""Names of modules; the formula of an einsum is a scope too, and no module."""
_CALL = ".__call__"
_DOES = {
    "dot": ("dot_general", "ragged_dot_general", "ragged_dot", "einsum"),
    "convolution": ("conv_general_dilated",),
}
"""Instructions that take time by their nature, and the primitives that they are of; the first where none fits."""
_MOVES = frozenset(
    ["copy", "transpose", "reshape", "bitcast", "bitcast-convert", "broadcast", "slice", "pad", "convert"]
)


@dataclass(frozen=True)
class Part:
    """One of the operations that an executed one was made from: its frames below the call of the program, outermost
    first, and its share of the time."""

    frames: tuple[Frame, ...]
    share: float


@dataclass
class Compiled:
    """A program. `above`: (file, function) of the Python frames that the call of the program stood on."""

    program: Program
    above: tuple[tuple[str, str], ...]
    change: str = ""
    """Which argument is another one than when a program of this name was last compiled; empty for the first."""
    parts: dict[str, tuple[Part, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As XLA calls it, such as `jit_train_step`."""
        return self.program.name

    def parts_of(self, operation: str) -> tuple[Part, ...]:
        """What an executed operation was made from; one part without a stack where nothing is known."""
        known = self.parts.get(operation)
        if known is None:
            known = self.parts[operation] = tuple(_parts(self, operation))
        return known


class Programs:
    """Every program seen, by the number that profiles of XLA know it by."""

    def __init__(self, loss: Callable[[str], None]) -> None:
        self._loss = loss
        self._known: dict[int, Compiled] = {}
        self._latest: dict[str, list[tuple[str, str]]] = {}
        self._missing: set[int] = set()
        self.unread = 0

    def learn_newest(self, above: Sequence[tuple[str, str]]) -> Compiled | None:
        """To be called when a program has been compiled: the newest one that is not known yet."""
        for client in jax_places.clients():
            for executable in client.live_executables()[:4]:
                compiled = self._read(executable, tuple(above))
                if compiled is not None:
                    return compiled
        return None

    def get(self, number: int) -> Compiled | None:
        """The program of that number; one that was compiled before measuring began is looked for now."""
        found = self._known.get(number)
        if found is None and number not in self._missing:
            self._look_for(number)
            found = self._known.get(number)
            if found is None:
                self._missing.add(number)
        return found

    def control_flow(self) -> dict[int, list[str]]:
        """Operations that run others, by program."""
        return {number: names for number, known in self._known.items() if (names := known.program.control_flow)}

    def _look_for(self, number: int) -> None:
        for client in jax_places.clients():
            for executable in client.live_executables():
                self._read(executable, ())
                if number in self._known:
                    return

    def _read(self, executable: Any, above: tuple[tuple[str, str], ...]) -> Compiled | None:
        native = importlib.import_module("leadline._xla")
        try:
            modules = executable.hlo_modules()
            program = native.Program(modules[0].as_serialized_hlo_module_proto())
        except Exception as error:  # of a client that keeps no program, or of another release
            self.unread += 1
            self._loss(f"A compiled program could not be read, so its operations have no lines ({error}).")
            return None
        if program.id in self._known:
            return None
        compiled = Compiled(program, above, changed(self._latest.get(program.name), program.parameters))
        self._known[program.id] = compiled
        self._latest[program.name] = program.parameters
        return compiled


def _parts(compiled: Compiled, operation: str) -> list[Part]:
    found = compiled.program.origins(operation)
    if found is None:
        return [Part((_operator(operation, {"hlo": operation}),), 1.0)]
    opcode, _, parts = found
    made = []
    for stack, op_name, part_opcode, share in parts:
        scope = xla_scopes.parse(op_name)
        detail: dict[str, Any] = {"hlo": operation}
        if len(parts) > 1 or part_opcode != opcode:
            detail["part"] = part_opcode
        if scope.transforms:
            detail["transforms"] = list(scope.transforms)
        python = below(stack, compiled.above)
        frames = [("python", function, "", file, "", line, 0, 0) for file, function, line in python]
        kind = "module" if any(_of_module_system(file) for file, _, _ in python) else "region"
        path = ""
        for name in scope.scopes:
            if kind == "module" and name.endswith(_CALL):  # the class and its method, after or instead of the instance
                if path:
                    continue
                name = name.removesuffix(_CALL)
            if kind == "module" and _MODULE.fullmatch(name) is not None:
                path = f"{path}.{name}" if path else name
                frames.append(("module", path, "", "", "", 0, 0, 0))
            else:
                frames.append(("region", name, "", "", "", 0, 0, 0))
        if scope.differentiated:
            frames.insert(0, ("phase", "forward", "", "", "", 0, 0, 0))
        if scope.backward:
            frames.append(("phase", "backward", "", "", "", 0, 0, 0))
        frames.append(_operator(named(scope.primitive, part_opcode), detail))
        made.append(Part(tuple(frames), share))
    return made or [Part((_operator(opcode, {"hlo": operation}),), 1.0)]


def changed(before: Sequence[tuple[str, str]] | None, now: Sequence[tuple[str, str]]) -> str:
    """What is different in the arguments of a program that is compiled again: `x: f32[8,4], was f32[16,4]`."""
    if before is None:
        return ""
    if len(before) != len(now):
        return f"{len(now)} arguments, {len(before)} before"
    pairs = [
        (position, old, new) for position, (old, new) in enumerate(zip(before, now, strict=True)) if old[1] != new[1]
    ]
    if not pairs:
        return "the same shapes of arguments: other static arguments, another function of this name, or other settings"
    position, old, new = pairs[0]
    more = f" and {len(pairs) - 1} more" if len(pairs) > 1 else ""
    return f"{new[0] or f'argument {position}'}: {new[1]}, was {old[1]}{more}"


def named(primitive: str, opcode: str) -> str:
    """The primitive that an instruction does. XLA rewrites instructions and lets them keep names of their neighbours: a
    product of a transposed matrix may be called `transpose`, and a copy of its result `dot_general`."""
    does = _DOES.get(opcode)
    if does is not None:
        return primitive if primitive in does else does[0]
    if not primitive or (opcode in _MOVES and any(primitive in does for does in _DOES.values())):
        return opcode
    return primitive


def _operator(name: str, detail: dict[str, Any]) -> Frame:
    return ("operator", name, "", "", json.dumps(detail, sort_keys=True), 0, 0, 0)


def _of_module_system(file: str) -> bool:
    return any(f"/{package}/" in file for package in MODULE_SYSTEMS)


def below(stack: Sequence[tuple[str, str, int]], above: Sequence[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """The frames of a stack that lie below the call of the program: those of the caller are left out, wherever
    inlining has put them."""
    start = 0
    for (file, function, _), (above_file, above_function) in zip(stack, above, strict=False):
        if file != above_file or function.rpartition(".")[2] != above_function.rpartition(".")[2]:
            break
        start += 1
    callers = {(file, function.rpartition(".")[2]) for file, function in above[:start]}
    return [
        frame
        for position, frame in enumerate(stack)
        if position >= start and (frame[0], frame[1].rpartition(".")[2]) not in callers
    ]
