"""One window of TensorFlow's profiler as the native reader tells it (`native/xla/graph_window.h`), and what windows add
up to. Times in picoseconds."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from leadline.capture.providers.tensorflow.allocators import AllocatorRecord

Inputs = Callable[[str, Collection[str]], tuple[str, ...] | None]
"""Names of the nodes that a node waits for, given those that ran; None where it is not known."""
Values = tuple[int, int, int, int]
"""Count, sum, smallest, largest."""
Times = tuple[int, int, int, int, int]
"""Count, whole, own, shortest, longest."""
Node = tuple[str, str]
"""Name, and type of the operation."""
NodeSums = tuple[str, str, Times | None, Values | None, Values | None, Values | None]
"""Name, type, what it took, bytes it asked for, what it took without a thread, and in queues."""
Line = tuple[int, int, str, int, int]
"""Of a line of the profile: plane, number, name, device, stream."""


class Step(NamedTuple):
    """A call of a function from Python; the number is TensorFlow's."""

    number: int
    function: str
    start: int
    line: int


class Span(NamedTuple):
    """Of a node, or of a stage of tf.data, whose name is the kind and which has no node and no step."""

    line: int
    """-1 for a node that holds no thread until it is done."""
    step: int
    node: str
    kind: str
    start: int
    duration: int


class Window(Protocol):
    """`leadline._xla.GraphWindow`."""

    problem: str
    planes: Sequence[tuple[str, Mapping[str, str]]]
    lines: Sequence[Line]
    base_ns: int
    no_step: int

    def functions(self) -> list[tuple[str, int, list[NodeSums]]]: ...
    def waits(
        self, function: int, inputs: Callable[[str], tuple[str, ...] | None]
    ) -> list[tuple[str, str, Values]]: ...
    def stages(self) -> list[tuple[str, Times]]: ...
    def steps(self) -> list[tuple[int, str, int, int]]: ...
    def spans(self) -> list[tuple[int, int, str, str, int, int]]: ...
    def allocators(self, most: int) -> list[AllocatorRecord]: ...


def read(data: bytes, *, keep: bool) -> Window:
    """`keep`: spans are wanted one by one."""
    window: Window = importlib.import_module("leadline._xla").GraphWindow(data, keep)
    return window


@dataclass
class Sums:
    """Of a function, over all windows."""

    runs: int = 0
    early: bool = True
    """From the second call of the function only, which still makes what later calls find made."""
    nodes: dict[Node, list[int]] = field(default_factory=dict)
    """What they took: count, whole, own, shortest, longest; the others have count, sum, smallest, largest."""
    taken: dict[Node, list[int]] = field(default_factory=dict)
    """Memory that nodes took from the allocator, in bytes."""
    elsewhere: dict[Node, list[int]] = field(default_factory=dict)
    """What nodes took that hold no thread until they are done (collectives, tensors that are received)."""
    queued: dict[Node, list[int]] = field(default_factory=dict)
    """Of runs that were put into a pool of threads: until one of these began."""
    waits: dict[Node, list[int]] = field(default_factory=dict)
    """From the end of a node's last input to its start."""

    def add(self, runs: int, nodes: Sequence[NodeSums], waits: Sequence[tuple[str, str, Values]]) -> None:
        """What a window has of the function."""
        self.runs += runs
        for name, kind, times, taken, elsewhere, queued in nodes:
            key = (name, kind)
            if times is not None:
                add_times(self.nodes, key, times)
            for sums, values in ((self.taken, taken), (self.elsewhere, elsewhere), (self.queued, queued)):
                if values is not None:
                    add_values(sums, key, values)
        for name, kind, waited in waits:
            add_values(self.waits, (name, kind), waited)


def add_values(sums: dict[Any, list[int]], key: Any, values: Values) -> None:
    """On top of what is known of the key."""
    held = sums.setdefault(key, [0, 0, values[2], values[3]])
    held[0] += values[0]
    held[1] += values[1]
    held[2] = min(held[2], values[2])
    held[3] = max(held[3], values[3])


def add_times(sums: dict[Any, list[int]], key: Any, values: Times) -> None:
    """On top of what is known of the key."""
    held = sums.setdefault(key, [0, 0, 0, values[3], values[4]])
    for place in range(3):
        held[place] += values[place]
    held[3] = min(held[3], values[3])
    held[4] = max(held[4], values[4])
