"""Adds up one window of TensorFlow's profiler: what nodes of graphs and stages of tf.data took, by their step,
what memory nodes asked for, and how long they lay ready before a thread took them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.capture.providers.tf_runs import FUNCTION
from leadline.xla.events import Event, Named

NOT_SAID = -(2**63)
_LOCAL = "EagerLocalExecute: "
_PROCESS = "ExecutorState::Process"
_FARTHEST = 8
"""Nodes that TensorFlow's optimizer took out, one behind the other, past which an input is looked for."""

Inputs = Callable[[str, Collection[str]], tuple[str, ...] | None]
"""Names of the nodes that a node waits for, given those that ran; None where it is not known."""
Node = tuple[int, str, str]
"""Number of the step, name, type of the operation."""


@dataclass
class _Ran:
    """A node in one step."""

    kind: str
    start: int
    end: int
    times: int = 1


@dataclass(frozen=True)
class Span:
    """Of a node, or of a stage of tf.data, which has no step and no node. Times in picoseconds."""

    line: int
    """-1 for a node that holds no thread until it is done."""
    step: int
    node: str
    kind: str
    start: int
    duration: int


class Sweep:
    """Spans of all lines are to come ordered by line and start, outer first. Times in picoseconds."""

    def __init__(self, strings: list[str], meanings: list[Named], *, keep: bool = False) -> None:
        """`keep`: each span of a node or stage is wanted by itself, in `spans`."""
        self._strings = strings
        self._meanings = meanings
        self._line = -1
        self._open: list[tuple[int, str, int, list[int] | None, Node | None]] = []
        """End, function called from Python or empty, number of the step, sums and name of the node."""
        self._ran: dict[int, dict[str, _Ran]] = {}
        self._begun: dict[Node, list[int]] = {}
        self._done: dict[Node, list[int]] = {}
        self.steps: dict[int, str] = {}
        """The function that Python called, by the number of the step."""
        self.began: dict[int, tuple[int, int]] = {}
        """When the step began, and on which line."""
        self.spans: list[Span] = []
        self._keep = keep
        self.nodes: dict[Node, list[int]] = {}
        """Count, whole, own, shortest, longest."""
        self.taken: dict[Node, list[int]] = {}
        """Count, sum, smallest, largest in bytes."""
        self.elsewhere: dict[Node, list[int]] = {}
        """Of nodes that hold no thread: count, sum, shortest, longest."""
        self.stages: dict[str, list[int]] = {}

    def span(self, line: int, name: int, start: int, duration: int, step: int) -> None:
        """Something that ran."""
        self._move_to(line, start)
        _, function, around, holder, inside = self._open[-1] if self._open else (0, "", NOT_SAID, None, None)
        text, one = self._strings[name], self._meanings[name]
        if text.startswith(_LOCAL) and FUNCTION.match(text.removeprefix(_LOCAL)):
            function = text.removeprefix(_LOCAL)
        elif text == "FunctionRun" and function and step != NOT_SAID:
            if self.steps.setdefault(step, function) == function:
                self.began.setdefault(step, (start, line))
        elif text == _PROCESS:
            around = step
        elif one.event == Event.NODE and one.scope and around != NOT_SAID:
            inside = (around, one.scope, one.name)
            holder = _count(self.nodes, inside, duration, holder)
            if self._keep:
                self.spans.append(Span(line, around, one.scope, one.name, start, duration))
            ran = self._ran.setdefault(around, {})
            known = ran.get(one.scope)
            if known is None:
                ran[one.scope] = _Ran(one.name, start, start + duration)
            else:
                known.times += 1
        elif one.event == Event.PIPELINE and text.startswith("Iterator::"):
            holder, inside = _count(self.stages, text, duration, holder), None
            if self._keep:
                self.spans.append(Span(line, NOT_SAID, "", text, start, duration))
        self._open.append((start + duration, function, around, holder, inside))

    def asynchronous(self, event: str, node: Node, start: int) -> None:
        """A node that holds no thread began (`...::Start`) or was done, on whatever threads."""
        if event.endswith("Async::Start"):
            self._begun.setdefault(node, []).append(start)
        elif event.endswith("Async::Done"):
            self._done.setdefault(node, []).append(start)  # what waited for it runs inside of this

    def finish(self) -> None:
        """All spans have come."""
        for node, begun in self._begun.items():
            step, name, kind = node
            if self.nodes.pop(node, None) is not None:  # before 2.20 its begin has a span on the thread that asked
                self.spans = [one for one in self.spans if (one.step, one.node, one.kind) != node]
            for start, end in zip(sorted(begun), sorted(self._done.get(node, [])), strict=False):
                if end < start:
                    continue
                took = end - start
                add_values(self.elsewhere, node, (1, took, took, took))
                if self._keep:
                    self.spans.append(Span(-1, step, name, kind, start, took))
                self._ran.setdefault(step, {})[name] = _Ran(kind, start, end, len(begun))

    def taken_by_node(self, line: int, start: int, size: int) -> None:
        """Memory was asked for."""
        self._move_to(line, start)
        inside = self._open[-1][4] if self._open else None
        if inside is not None and size > 0:
            add_values(self.taken, inside, (1, size, size, size))

    def waits(self, step: int, inputs: Inputs) -> Iterator[tuple[tuple[str, str], int]]:
        """Nodes of a step and how long after the end of their last input they began. Nodes that ran several times (in
        loops) are left out, since nothing tells which run had which input, and nodes that no input is known of."""
        ran = self._ran.get(step, {})
        known: dict[str, int | None] = {}
        for name, one in ran.items():
            if one.times > 1:
                continue
            ready = _ready(name, ran, inputs, known, _FARTHEST)
            if ready is not None and ready <= one.start:
                yield (name, one.kind), one.start - ready

    def _move_to(self, line: int, start: int) -> None:
        if line != self._line:
            self._line = line
            self._open.clear()
        while self._open and self._open[-1][0] <= start:
            self._open.pop()


def _ready(
    name: str,
    ran: dict[str, _Ran],
    inputs: Inputs,
    known: dict[str, int | None],
    farthest: int,
) -> int | None:
    """When the last input of a node was there; None where none of them ran in this step. Of inputs that did not run,
    their own inputs count: TensorFlow's optimizer took them out."""
    if name in known:
        return known[name]
    known[name] = None  # of a node that waits for itself nothing is known
    latest: int | None = None
    for one in inputs(name, ran) or ():
        found = ran.get(one)
        if found is not None and found.times > 1:
            return None
        if found is not None:
            end: int | None = found.end
        else:
            end = _ready(one, ran, inputs, known, farthest - 1) if farthest else None
        if end is not None and (latest is None or end > latest):
            latest = end
    known[name] = latest
    return latest


def makers(name: str, ran: Collection[str], inputs: Inputs) -> list[str]:
    """What a node waited for, of what ran. Of inputs that did not run their own inputs count: TensorFlow's optimizer
    took them out."""
    found: dict[str, None] = {}
    passed: set[str] = set()
    at = [name]
    for _ in range(_FARTHEST + 1):
        before = dict.fromkeys(one for node in at for one in inputs(node, ran) or () if one not in passed)
        passed.update(before)
        found.update((one, None) for one in before if one in ran)
        at = [one for one in before if one not in ran]
    return list(found)


def add_values(sums: dict[Any, list[int]], key: Any, values: Sequence[int]) -> None:
    """Count, sum, smallest and largest on top of what is known of the key."""
    held = sums.setdefault(key, [0, 0, values[2], values[3]])
    held[0] += values[0]
    held[1] += values[1]
    held[2] = min(held[2], values[2])
    held[3] = max(held[3], values[3])


def add_times(sums: dict[Any, list[int]], key: Any, values: Sequence[int]) -> list[int]:
    """Count, whole, own, shortest and longest on top of what is known of the key."""
    held = sums.setdefault(key, [0, 0, 0, values[3], values[4]])
    for place in range(3):
        held[place] += values[place]
    held[3] = min(held[3], values[3])
    held[4] = max(held[4], values[4])
    return held


def _count(sums: dict[Any, list[int]], key: Any, duration: int, holder: list[int] | None) -> list[int]:
    if holder is not None:
        holder[2] -= duration
    return add_times(sums, key, (1, duration, duration, duration, duration))
