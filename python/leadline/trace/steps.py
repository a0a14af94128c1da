"""Finds the training steps of a trace: by the profiler's marks, by the optimizer's, or by repetition."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from leadline.trace.meaning import is_optimizer_step, phase_of
from leadline.trace.tables import Kind, Trace

_NUMBER = re.compile(r"\d+")
_SIMILAR = 0.9
_FEW = 4  # periods below which an operator that only one of them has says nothing
_RARE_SHARE = 0.1  # of the operators' time
_WHOLE = 0.9  # of a step's usual number of operators
_UNSTEADY = 2.5  # longest over median


@dataclass(frozen=True)
class Step:
    """A training step on the CPU's side: [start_ns, end_ns)."""

    number: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Steps:
    """Steps in time order and how they were found: `profiler`, `optimizer`, `repetition` or `whole trace`. `doubt`: a
    sentence on what speaks against them, empty where nothing does."""

    steps: tuple[Step, ...]
    found_by: str
    doubt: str = ""


def find_steps(trace: Trace) -> Steps:
    """The steps of a trace; never none: without any mark the whole trace is one step."""
    if steps := _profiler_steps(trace):
        return Steps(tuple(steps), "profiler")
    if steps := _optimizer_steps(trace):
        cut = _begins_inside(trace, steps)
        return Steps(tuple(steps[1:] if cut else steps), "optimizer", cut)
    steps = _repeated(trace)
    doubt = _looks_like_layers(trace, steps) if steps else ""
    if steps and not doubt:
        return Steps(tuple(steps), "repetition", _unsteady(steps))
    start = trace.events["start_ns"]
    cpu = trace.events["thread"] >= 0
    begin = int(start[cpu].min(initial=int(start.min(initial=0)))) if cpu.any() else int(start.min(initial=0))
    end = int(trace.end_ns.max(initial=0)) + 1
    return Steps((Step(0, begin, end),), "whole trace", doubt)


def _looks_like_layers(trace: Trace, steps: list[Step]) -> str:
    """Why a period is more likely a layer than a step: other modules are called in each, or a good part of the time
    goes into operators that only few of the periods have. Empty where neither holds."""
    bounds = np.array([step.start_ns for step in steps], dtype=np.int64)
    modules = trace.of_kind(Kind.MODULE)
    thread = main_thread(trace)
    modules = modules[trace.events["thread"][modules] == thread]
    period = np.searchsorted(bounds, trace.events["start_ns"][modules], side="right") - 1
    pairs = np.unique(np.stack((trace.events["name"][modules], period)), axis=1)
    _, seen = np.unique(pairs[0], return_counts=True)
    held = int(np.unique(period).size)
    numbered = f"the operators repeat {len(steps)} times, but "
    if held > 1 and np.unique(pairs[0]).size >= held and float((seen == 1).mean()) > _SIMILAR / 2:
        return numbered + "each time in other modules: these are the layers of one step"
    rows = trace.of_kind(Kind.OPERATOR)
    rows = rows[trace.events["thread"][rows] == thread]
    start, ends = trace.events["start_ns"][rows], trace.end_ns[rows]
    outer = np.concatenate(([True], start[1:] >= np.maximum.accumulate(ends)[:-1]))
    rows, start = rows[outer], start[outer]
    period = np.searchsorted(bounds, start, side="right") - 1
    names = trace.events["name"][rows]
    pairs = np.unique(np.stack((names, period)), axis=1)
    held_in = np.bincount(pairs[0], minlength=len(trace.strings))
    rare = held_in[names] < max(2, len(steps) / 4)
    spent = trace.events["duration_ns"][rows]
    if len(steps) >= _FEW and float(spent[rare].sum()) > _RARE_SHARE * max(float(spent.sum()), 1.0):
        return numbered + "a good part of the time goes into operators that only few of the repetitions have"
    return ""


def _unsteady(steps: list[Step]) -> str:
    """What speaks against steps of very different lengths."""
    lengths = np.array([step.end_ns - step.start_ns for step in steps])
    middle = float(np.median(lengths))
    if len(steps) < 2 or float(lengths.max()) < _UNSTEADY * middle:
        return ""
    return f"they last from {lengths.min() / 1e6:.3g} to {lengths.max() / 1e6:.3g} ms, so they may be no training steps"


def main_thread(trace: Trace) -> int:
    """Row of the thread that runs the training loop: what the reader says, else it holds the marks, else most
    operators; -1 without threads."""
    if "main_thread" in trace.facts:
        return int(trace.facts["main_thread"])
    for kind in (Kind.STEP, Kind.REGION, Kind.OPERATOR, Kind.API):
        rows = trace.of_kind(kind)
        threads = trace.events["thread"][rows]
        if kind == Kind.OPERATOR and rows.size:
            # backward operators name a forward thread that is not their own; the loop's thread has the others
            plain = threads[trace.events["sequence"][rows] < 0]
            threads = plain if plain.size else threads
        if kind == Kind.REGION and rows.size:
            loop = ("optimizer", "zero_grad", "data loading")
            marks = np.array([phase_of(name) in loop for name in trace.strings], dtype=np.bool_)
            threads = threads[marks[trace.events["name"][rows]]]
        threads = threads[threads >= 0]  # steps that only a device tells are on no thread
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
    marked = [row for row in rows.tolist() if is_optimizer_step(trace.name(row))]
    if not marked:
        return []
    # several optimizers per step: the one that ends a step is the last before the longest pause; take the rarest name
    names = [trace.name(row) for row in marked]
    rarest = min(set(names), key=names.count)
    ends = [int(trace.end_ns[row]) for row, name in zip(marked, names, strict=True) if name == rarest]
    cpu = trace.events["thread"] >= 0
    begin = int(trace.events["start_ns"][cpu].min())
    return [Step(number, low, high) for number, (low, high) in enumerate(zip([begin, *ends[:-1]], ends, strict=True))]


def _begins_inside(trace: Trace, steps: list[Step]) -> str:
    """A sentence where the first step has fewer operators than the others have, since it began before the trace did."""
    thread = main_thread(trace)
    rows = trace.of_kind(Kind.OPERATOR)
    begins = trace.events["start_ns"][rows[trace.events["thread"][rows] == thread]]
    held = np.diff(np.searchsorted(begins, [steps[0].start_ns, *(step.end_ns for step in steps)]))
    if len(steps) < 2 or held[0] >= _WHOLE * float(np.median(held[1:])):
        return ""
    return (
        f"the trace begins inside a step ({held[0]} operators of {np.median(held[1:]):.0f} before its weight update), "
        "which is left out"
    )


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
