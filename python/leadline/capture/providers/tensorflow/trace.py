"""TensorFlow's calls in the trace window: what each executed, when, and on which thread.

While the window is open TensorFlow's profiler runs all the time (`tf_windows.py`). Calls from Python have the times
that were read around them; nodes of graphs and stages of tf.data are taken from the profiler, at the places that their
times are booked at. What the graphs say of inputs is kept for the edges between nodes.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from leadline.capture.native import Native
from leadline.capture.providers.booked import Booked
from leadline.capture.providers.tensorflow.booking import call_frames, node_frames, stage_frames
from leadline.capture.providers.tensorflow.graphs import Graphs
from leadline.capture.providers.tensorflow.recorded import Inputs, Line, Span, Step, Window
from leadline.capture.providers.tensorflow.runs import Key, function_name
from leadline.xla.parts import Frame
from leadline.xla.recorded import host_thread, origin_ns

if TYPE_CHECKING:
    from leadline.capture.providers.tensorflow.windows import Windows

FIRST = 1 << 32
"""Number of the first run, so that those of JAX in the same process are others."""
_NO_THREAD = 1 << 62
"""Number of the first lane of nodes that hold no thread."""
MOST_NODES = 20_000
"""Of a function whose inputs are kept."""
MOST_TENSORS = 50_000
"""Ends of tensors that are kept."""
_SENDS, _RECEIVES = ("_Send", "_HostSend"), ("_Recv", "_HostRecv")
_Call = tuple[int, int, Key]
"""Begin and duration in ns."""
_FARTHEST = 8
"""Nodes that TensorFlow's optimizer took out, one behind the other, past which an input is looked for."""


class _Graph:
    """Nodes of a function that were seen running, and which waited for which."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.edges: dict[tuple[int, int], None] = {}
        self.unknown: list[int] = []
        """Nodes that TensorFlow's optimizer and its placer made: what they wait for is not told."""

    def add(self, ran: Collection[str], inputs: Inputs) -> None:
        """What ran in a call; nodes that ran in an earlier one too are known."""
        new = [name for name in ran if name not in self.rows]
        for name in new:
            self.rows[name] = len(self.rows)
        for name in new:
            if inputs(name, ran) is None:
                self.unknown.append(self.rows[name])
            for maker in makers(name, ran, inputs):
                self.edges[self.rows[maker], self.rows[name]] = None

    def facts(self, program: str) -> dict[str, Any]:
        edges = [row for pair in self.edges for row in pair]
        return {"program": program, "calls": list(self.rows), "edges": edges, "unknown": self.unknown}


class TracedCalls:
    """Puts calls into the window, and knows which node waited for which."""

    def __init__(self, native: Native, graphs: Graphs, windows: Windows) -> None:
        self._native = native
        self._graphs_of_functions = graphs
        self._windows = windows
        self._booked = Booked(native)
        self._calls: list[_Call] = []
        self._graphs: dict[str, _Graph] = {}
        self._runs: list[int] = []
        """Of each call that was put in its graph; -1 for one whose inputs are not kept."""
        self._unplaced = 0
        self.tensors: list[tuple[int, str, int, int, int]] = []
        """Of what devices and processes handed each other: step, node, 1 for one that sends, begin and end."""
        self.tensors_left_out = 0

    def facts(self) -> dict[str, Any]:
        """For whoever derives edges: `runs` holds the row of `graphs` for each call of a function, whose events have
        its place in the list plus `first` as their correlation. `unplaced`: calls that the profiler saw and that are
        in no window, since nothing tells who made them."""
        if not self._runs and not self._unplaced:
            return {}
        graphs = [one.facts(function_name(name) or name) for name, one in self._graphs.items()]
        return {"first": FIRST, "graphs": graphs, "runs": self._runs, "unplaced": self._unplaced}

    def called(self, key: Key, began_ns: int, took_ns: int) -> None:
        """Python called an operation or a function while the window was open."""
        self._calls.append((began_ns, took_ns, key))

    def add(self, window: Window) -> int:
        """What a session of TensorFlow's profiler recorded. Returns what its times are shifted by, in ns."""
        calls, self._calls = sorted(self._calls), []
        shift_ns = origin_ns(window.planes, window.base_ns) + time.monotonic_ns() - time.time_ns()
        by_name: dict[str, list[_Call]] = {}
        for call in calls:
            by_name.setdefault(call[2][1], []).append(call)
        spans: dict[int, list[Span]] = {}
        for span in in_lanes([Span(*row) for row in window.spans()]):
            spans.setdefault(span.step, []).append(span)
        threads = _Threads(self._native, window.lines)
        run_of: dict[_Call, int] = {}
        for step in sorted((Step(*row) for row in window.steps()), key=lambda one: (one.start, one.line)):
            found = _around(by_name.get(step.function, []), step.start // 1000 + shift_ns)
            if found is None:
                self._unplaced += 1
                continue
            nodes = spans.get(step.number, [])
            threads.of_python(step.line, found[2][0])
            graph = self._graph(step.function, nodes)
            if found not in run_of:
                run_of[found] = FIRST + len(self._runs)
                self._runs.append(graph)
            self._put_nodes(found[2], run_of[found], nodes, threads, shift_ns)
        for call in calls:
            began_ns, took_ns, key = call
            self._put(key[0], call_frames(key[1], self._windows), key[0], run_of.get(call, 0), [(began_ns, took_ns)])
        for stage, seen in _by(spans.get(window.no_step, []), lambda span: (span.kind, span.line)).items():
            self._put(-1, stage_frames(stage[0]), threads.place(stage[1]), 0, _times(seen, shift_ns))
        self._keep_tensors(spans, window.no_step, shift_ns)
        return shift_ns

    def _keep_tensors(self, spans: dict[int, list[Span]], no_step: int, shift_ns: int) -> None:
        for step, nodes in spans.items():
            moved = [one for one in nodes if step != no_step and one.kind in _SENDS + _RECEIVES]
            for one, (begin, took) in zip(moved, _times(moved, shift_ns), strict=True):
                if len(self.tensors) < MOST_TENSORS:
                    self.tensors.append((step, one.node, int(one.kind in _SENDS), begin, begin + took))
                else:
                    self.tensors_left_out += 1

    def _put_nodes(self, key: Key, run: int, spans: Sequence[Span], threads: _Threads, shift_ns: int) -> None:
        top = call_frames(key[1], self._windows)
        for (node, kind, line), seen in _by(spans, lambda span: (span.node, span.kind, span.line)).items():
            frames = (*top, *node_frames(self._graphs_of_functions, key[1], node, kind))
            self._put(key[0], frames, threads.place(line), run, _times(seen, shift_ns))

    def _put(
        self, below: int, frames: tuple[Frame, ...], thread: int, run: int, times: Sequence[tuple[int, int]]
    ) -> None:
        node = self._booked.node(below, frames)
        if node and thread:
            self._native.timed(node, thread, run, [one[0] for one in times], [one[1] for one in times])

    def _graph(self, function: str, spans: Sequence[Span]) -> int:
        ran = {span.node: None for span in spans}
        if len(ran) > MOST_NODES:
            return -1
        graph = self._graphs.setdefault(function, _Graph())
        graph.add(ran, partial(self._graphs_of_functions.inputs, function))
        return list(self._graphs).index(function)


class _Threads:
    """Places of threads by the profiler's lines."""

    def __init__(self, native: Native, lines: Sequence[Line]) -> None:
        self._native = native
        self._threads = [host_thread(line) for line in lines]
        self._places: dict[int, int] = {}

    def of_python(self, line: int, place: int) -> None:
        """The line is that of a thread which called a function at this place; its number need not be the thread's."""
        self._places.setdefault(line, place)

    def place(self, line: int) -> int:
        """0 where the line is none of a thread."""
        known = self._places.get(line)
        if known is None:
            thread = self._threads[line] if line >= 0 else (_NO_THREAD - line, "asynchronous nodes")
            known = self._places[line] = 0 if thread is None else self._native.thread_place(*thread)
        return known


def in_lanes(spans: Sequence[Span]) -> Iterator[Span]:
    """Nodes that hold no thread in lanes (-1, -2 and so on), in which none lies over another; others as they are."""
    free_at: list[int] = []
    for span in sorted(spans, key=lambda one: one.start):
        if span.line >= 0:
            yield span
            continue
        lane = next((lane for lane, free in enumerate(free_at) if free <= span.start), len(free_at))
        free_at[lane : lane + 1] = [span.start + span.duration]
        yield span._replace(line=-1 - lane)


def _around(calls: Sequence[_Call], at_ns: int) -> _Call | None:
    """The call that was under way; `calls` in order."""
    place = bisect_right(calls, at_ns, key=lambda call: call[0]) - 1
    return calls[place] if place >= 0 and at_ns < calls[place][0] + calls[place][1] else None


def _by(spans: Sequence[Span], key: Callable[[Span], Any]) -> dict[Any, list[Span]]:
    found: dict[Any, list[Span]] = {}
    for span in spans:
        found.setdefault(key(span), []).append(span)
    return found


def _times(spans: Sequence[Span], shift_ns: int) -> list[tuple[int, int]]:
    """Begin and duration in ns; the end is rounded, so that what lies in something stays in it."""
    rounded = ((span.start // 1000, (span.start + span.duration) // 1000) for span in spans)
    return [(start + shift_ns, end - start) for start, end in rounded]


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
