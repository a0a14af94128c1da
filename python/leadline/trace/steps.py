"""Finds the training steps of a trace: by the profiler's marks, by the optimizer's, or by repetition."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from leadline.trace.tables import Kind, Trace

_NUMBER = re.compile(r"\d+")
_OPTIMIZER_STEP = re.compile(r"^Optimizer\.step#")
_SIMILAR = 0.9


@dataclass(frozen=True)
class Step:
    """A training step on the CPU's side: [start_ns, end_ns)."""

    number: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Steps:
    """Steps in time order and how they were found: `profiler`, `optimizer`, `repetition` or `whole trace`."""

    steps: tuple[Step, ...]
    found_by: str


def find_steps(trace: Trace) -> Steps:
    """The steps of a trace; never none: without any mark the whole trace is one step."""
    for found_by, steps in (
        ("profiler", _profiler_steps(trace)),
        ("optimizer", _optimizer_steps(trace)),
        ("repetition", _repeated(trace)),
    ):
        if steps:
            return Steps(tuple(steps), found_by)
    start = trace.events["start_ns"]
    cpu = trace.events["thread"] >= 0
    begin = int(start[cpu].min(initial=int(start.min(initial=0)))) if cpu.any() else int(start.min(initial=0))
    end = int(trace.end_ns.max(initial=0)) + 1
    return Steps((Step(0, begin, end),), "whole trace")


def main_thread(trace: Trace) -> int:
    """Row of the thread that runs the training loop: it holds the marks, else most operators; -1 without threads."""
    for kind in (Kind.STEP, Kind.REGION, Kind.OPERATOR, Kind.API):
        rows = trace.of_kind(kind)
        threads = trace.events["thread"][rows]
        if kind == Kind.OPERATOR and rows.size:
            # backward operators name a forward thread that is not their own; the loop's thread has the others
            plain = threads[trace.events["sequence"][rows] < 0]
            threads = plain if plain.size else threads
        if kind == Kind.REGION and rows.size:
            marks = np.array([name.startswith(("Optimizer.", "enumerate(DataLoader)")) for name in trace.strings])
            threads = threads[marks[trace.events["name"][rows]]] if marks.size else threads
        if threads.size:
            return int(np.bincount(threads).argmax())
    return -1


def _profiler_steps(trace: Trace) -> list[Step]:
    rows = trace.of_kind(Kind.STEP)
    if not rows.size:
        return []
    start, end = trace.events["start_ns"], trace.end_ns
    found: dict[int, Step] = {}
    for position, row in enumerate(rows.tolist()):
        digits = _NUMBER.findall(trace.name(row))
        number = int(digits[-1]) if digits else position
        found.setdefault(number, Step(number, int(start[row]), int(end[row])))
    ordered = sorted(found.values(), key=lambda step: step.start_ns)
    # what lies between two marks belongs to the step before
    closed = [
        Step(step.number, step.start_ns, max(step.end_ns, following.start_ns) if following else step.end_ns)
        for step, following in zip(ordered, [*ordered[1:], None], strict=True)
    ]
    return closed


def _optimizer_steps(trace: Trace) -> list[Step]:
    rows = trace.of_kind(Kind.REGION)
    marked = [row for row in rows.tolist() if _OPTIMIZER_STEP.match(trace.name(row))]
    if not marked:
        return []
    # several optimizers per step: the one that ends a step is the last before the longest pause; take the rarest name
    names = [trace.name(row) for row in marked]
    rarest = min(set(names), key=names.count)
    ends = [int(trace.end_ns[row]) for row, name in zip(marked, names, strict=True) if name == rarest]
    cpu = trace.events["thread"] >= 0
    begin = int(trace.events["start_ns"][cpu].min())
    return [Step(number, low, high) for number, (low, high) in enumerate(zip([begin, *ends[:-1]], ends, strict=True))]


def _repeated(trace: Trace) -> list[Step]:
    """Steps from the period of the main thread's sequence of operators."""
    thread = main_thread(trace)
    rows = trace.of_kind(Kind.OPERATOR)
    rows = rows[trace.events["thread"][rows] == thread]
    names = trace.events["name"][rows]
    if names.size < 4:
        return []
    counts = np.bincount(names)
    for name in np.flatnonzero(counts >= 2)[np.argsort(counts[counts >= 2], kind="stable")][:16].tolist():
        at = np.flatnonzero(names == name)
        lag = int(np.median(np.diff(at)))
        if lag < 2 or names.size < 2 * lag:
            continue
        if float((names[lag:] == names[:-lag]).mean()) >= _SIMILAR:
            start = trace.events["start_ns"][rows]
            bounds = [int(start[place]) for place in range(0, names.size - lag // 2, lag)]
            # the loop may end with a call outside of operators, such as a synchronisation
            everything = np.flatnonzero(trace.events["thread"] == thread)
            last = int(trace.end_ns[everything].max()) + 1
            return [Step(k, low, high) for k, (low, high) in enumerate(zip(bounds, [*bounds[1:], last], strict=True))]
    return []
