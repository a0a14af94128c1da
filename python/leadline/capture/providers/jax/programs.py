"""Compiled programs of XLA: what each operation was made from, where it was compiled, and with which arguments.

Reads a program when JAX says that one was compiled or loaded from its cache; programs from before are read when they
are seen running. Keeps copies only, never an executable of JAX. Raises nothing into the program.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leadline.capture.providers.jax import places as jax_places
from leadline.capture.providers.jax.cached import Sources
from leadline.xla.parts import Part, parts_of, unknown

if TYPE_CHECKING:
    from leadline._xla import Program


@dataclass
class Compiled:
    """A program. `above`: (file, function) of the Python frames that the call of the program stood on."""

    program: Program | None
    """None once it was let go: see `MOST_BYTES`."""
    name: str
    """As XLA calls it, such as `jit_train_step`."""
    number: int
    above: tuple[tuple[str, str], ...]
    again: Callable[[int], Program | None]
    """Reads the program of a number once more, where it is still loaded."""
    entry: frozenset[str] = frozenset()
    """Operations that run once whenever it does."""
    control_flow: tuple[str, ...] = ()
    """Operations that run others."""
    change: str = ""
    """Which argument is another one than when a program of this name was last compiled; empty for the first."""
    memory: dict[str, int] = field(default_factory=dict)
    """What XLA has planned for one run, in bytes: arguments, results, temporaries, donated, peak; what it tells."""
    held: dict[str, Any] = field(default_factory=dict)
    """The operations whose results take most of its temporary memory: see `held_at_peak`."""
    cached: bool = False
    """Whether it came from JAX's persistent cache, so that its lines may be those of an older source."""
    moved: int = -1
    """How many of its lines are not among those of today's source, of one from the cache; -1 where nothing tells."""
    learned_s: float = 0.0
    """When it was compiled or loaded, on the monotonic clock; 0 for one from before measuring."""
    parts: dict[str, tuple[Part, ...]] = field(default_factory=dict)

    def read(self) -> Program | None:
        """The program, read once more where it was let go and is still loaded."""
        return self.program or self.again(self.number)

    def parts_of(self, operation: str) -> tuple[Part, ...]:
        """What an executed operation was made from; one part without a stack where nothing is known."""
        known = self.parts.get(operation)
        if known is None:
            program = self.read()
            found = [unknown(operation)] if program is None else parts_of(program, operation, self.above)
            known = self.parts[operation] = tuple(found)
        return known


MOST_BYTES = 64 * 2**20
"""Of programs that are kept at hand; of more, those that were read first are let go, and read again when an operation
of theirs is met that was not seen before. In memory a program takes about three times its bytes."""
_LARGE = 20
"""Operations of a program that is worth a window of its own; what JAX runs by itself has a few."""


class Programs:
    """Every program seen, by the number that profiles of XLA know it by. `large`: names of those of many operations;
    `fresh`: names of those compiled that were not seen to run since."""

    def __init__(self, loss: Callable[[str], None]) -> None:
        self._loss = loss
        self._known: dict[int, Compiled] = {}
        self._latest: dict[str, list[tuple[str, str]]] = {}
        self._missing: set[int] = set()
        self._unnumbered: dict[tuple[Any, ...], Compiled] = {}
        """Those of plug-ins, which give a program another number whenever it is read, by what they are."""
        self._at_hand: dict[int, int] = {}
        """Bytes of the programs that are held, the one read first in front."""
        self.large: set[str] = set()
        self.fresh: set[str] = set()
        self.unread = 0

    def learn_newest(
        self, above: Sequence[tuple[str, str]], *, cached: bool, today: frozenset[tuple[str, int]] | None = None
    ) -> Compiled | None:
        """To be called when a program has been compiled, or found in the cache: the newest that is not known yet.
        `today`: of one from the cache the lines that it would have now."""
        for client in jax_places.clients():
            for executable in client.live_executables()[:4]:
                compiled = self._read(executable, tuple(above))
                if compiled is not None:
                    compiled.cached = cached
                    compiled.learned_s = time.monotonic()
                    self.fresh.add(compiled.name)
                    if today is not None:
                        compiled.moved = len({(file, line) for file, _, line in _lines_of(compiled)} - today)
                    return compiled
        return None

    def stale(self) -> tuple[int, int]:
        """How many programs came from the persistent cache, and how many lines of theirs are not where the source has
        them now; of the operations that were seen running where only the source tells."""
        cached = list({id(one): one for one in self._known.values() if one.cached}.values())
        unsure = {frame for one in cached if one.moved < 0 for frame in _lines_of(one, of_all=False)}
        return len(cached), len(Sources().stale(unsure)) + sum(max(one.moved, 0) for one in cached)

    def get(self, number: int, name: str = "") -> Compiled | None:
        """The program of that number; one that was compiled before measuring began is looked for now. One from the
        persistent cache runs under another number than it says of itself, so there the `name` decides."""
        found = self._known.get(number)
        if found is None and number not in self._missing:
            self._look_for(number)
            found = self._known.get(number) or self._from_cache(name)
            if found is None:
                self._missing.add(number)
            else:
                self._known[number] = found
        return found

    def named(self, name: str) -> list[Compiled]:
        """Programs of plug-ins with that name, in the order of compiling: which number their runs have is not known."""
        return [one for one in self._unnumbered.values() if one.name == name]

    def name(self, number: int) -> str:
        """Of the program of that number; empty where it is not known."""
        found = self._known.get(number)
        return "" if found is None else found.name

    def _from_cache(self, name: str) -> Compiled | None:
        """The first program of that name from the cache that no other number stands for."""
        taken = {id(one) for number, one in self._known.items() if number != one.number}
        found = [one for one in self._known.values() if one.cached and one.name == name and id(one) not in taken]
        return found[0] if found else None

    def control_flow(self) -> dict[int, list[str]]:
        """Operations that run others, by program."""
        return {number: list(known.control_flow) for number, known in self._known.items() if known.control_flow}

    def bytes_at_hand(self) -> int:
        """Of all programs that are held."""
        return sum(self._at_hand.values())

    def _look_for(self, number: int) -> None:
        for client in jax_places.clients():
            for executable in client.live_executables():
                self._read(executable, None)
                if number in self._at_hand:
                    return

    def _again(self, number: int) -> Program | None:
        if number not in self._missing:
            self._look_for(number)
        program = self._known[number].program
        if program is None:
            self._missing.add(number)
        return program

    def _read(self, executable: Any, above: tuple[tuple[str, str], ...] | None) -> Compiled | None:
        """A program that was not known. Without `above` what it was compiled on tells, in words of JAX's."""
        native = importlib.import_module("leadline._xla")
        try:
            modules = executable.hlo_modules()
            read: bytes = modules[0].as_serialized_hlo_module_proto()
            program: Program = native.Program(read)
        except Exception as error:  # of a client that keeps no program, or of another release
            self.unread += 1
            self._loss(f"A compiled program could not be read, so its operations have no lines ({error}).")
            return None
        known = self._known.get(program.id)
        signature = (program.name, tuple(program.parameters), program.instructions, tuple(program.entry))
        if known is None and not _numbered(executable):
            known = self._unnumbered.get(signature)
        if known is not None:
            if known.program is None:
                self._hold(known, program, len(read))
            return None
        planned, assignment = planned_memory(executable)
        compiled = Compiled(
            None,
            program.name,
            program.id,
            tuple(jax_places.callers(executable)) if above is None else above,
            self._again,
            frozenset(program.entry),
            tuple(program.control_flow),
            changed(self._latest.get(program.name), program.parameters),
            planned,
            held_at_peak(program, assignment),
        )
        self._known[program.id] = compiled
        if not _numbered(executable):
            self._unnumbered[signature] = compiled
        self._hold(compiled, program, len(read))
        if len(program.entry) >= _LARGE:
            self.large.add(program.name)
        self._latest[program.name] = program.parameters
        return compiled

    def _hold(self, compiled: Compiled, program: Program, size: int) -> None:
        compiled.program = program
        self._at_hand[compiled.number] = size
        while len(self._at_hand) > 1 and self.bytes_at_hand() > MOST_BYTES:
            oldest = next(iter(self._at_hand))
            del self._at_hand[oldest]
            self._known[oldest].program = None


def _numbered(executable: Any) -> bool:
    """Whether a program says the number that its runs have: one behind a plug-in's table of functions does not."""
    try:
        return str(executable.local_devices()[0].platform) == "cpu"
    except Exception:  # of a client that does not tell
        return True


def _lines_of(compiled: Compiled, *, of_all: bool = True) -> set[tuple[str, str, int]]:
    """(file, function, line) below the call of a program: of its entry, or of what was seen running."""
    parts = [compiled.parts_of(one) for one in compiled.entry] if of_all else compiled.parts.values()
    return {
        (frame[3], frame[1], frame[5])
        for some in parts
        for part in some
        for frame in part.frames
        if frame[0] == "python"
    }


_MOST_HELD = 8
_WORTH_BYTES = 64 << 10
_PLANNED = {
    "argument_size_in_bytes": "arguments",
    "output_size_in_bytes": "results",
    "temp_size_in_bytes": "temporaries",
    "alias_size_in_bytes": "donated",
    "peak_memory_in_bytes": "peak",
}


def planned_memory(executable: Any) -> tuple[dict[str, int], bytes]:
    """Bytes of one run of a program by what they are for, as XLA's buffer assignment has them, and that itself (since
    0.8); empty where it does not tell."""
    try:
        told = executable.get_compiled_memory_stats()
        found = {name: getattr(told, key, None) for key, name in _PLANNED.items()}
        assignment = getattr(told, "serialized_buffer_assignment_proto", b"")
    except Exception:  # of a client that keeps no assignment
        return {}, b""
    kept = {name: value for name, value in found.items() if isinstance(value, int) and value >= 0}
    return kept, assignment if isinstance(assignment, bytes) else b""


def held_at_peak(program: Program, assignment: bytes) -> dict[str, Any]:
    """Of temporary memory worth a line `largest`, [operation, bytes] of each, and `at_peak`: whether these are alive
    together when it is fullest. Else empty."""
    if not assignment:
        return {}
    whole, at_peak, largest = program.temporaries(assignment, _MOST_HELD)
    worth = [[name, size] for name, size in largest if size >= whole // 100]
    if whole < _WORTH_BYTES or not worth:
        return {}
    return {"at_peak": at_peak, "largest": worth}


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
