"""The steps of an event table of one process: by the profiler's marks, the optimizer's, or repeated calls.

How often some operator was called is never a mark: where the modules are known, the outermost one's calls are; else
only a sequence of operators that as a whole repeats steadily, which `doubt` speaks against where it is layers.
"""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import replace
from leadline.schema import EventKind as Kind
from leadline.steps.completion import LONG_AGO, behind_ns, done_ns
from leadline.steps.gaps import without_holes
from leadline.steps.model import MODULE_CALLS, OPTIMIZER, PROFILER, REPETITION, WHOLE_TRACE, Found, Step
from leadline.steps.names import is_optimizer_step, phase_of
from leadline.steps.protocol import Events
from leadline.steps.recorded import STEADY, WARM

_NUMBER = re.compile(r"\d+")
_SIMILAR = 0.9
_FEW = 4  # periods below which an operator that only one of them has says nothing
_RARE_SHARE = 0.1  # of the operators' time
_WHOLE = 0.9  # of a step's usual number of operators
_UNSTEADY = 2.5  # longest over median
_MARKS_OF_ONE = 64  # of one step: a thread or device each


def find_steps(trace: Events) -> Found:
    """The steps of a trace; never none: without any mark the whole trace is one step, found by `WHOLE_TRACE`."""
    found = _marked(trace)
    steps = found.steps
    done = done_ns(trace.events, [step.start_ns for step in steps], [step.end_ns for step in steps])
    ended = tuple(replace(step, done_ns=int(at)) for step, at in zip(steps, done, strict=True))
    behind = behind_ns(trace.events, steps[0].start_ns, int(done[0])) if found.found_by != WHOLE_TRACE else LONG_AGO
    return without_warm_up(without_holes(trace, replace(found, steps=ended, behind_ns=behind)))


def _marked(trace: Events) -> Found:
    if steps := _profiler_steps(trace):
        return Found(tuple(steps), PROFILER)
    if steps := _optimizer_steps(trace):
        cut = _begins_inside(trace, steps)
        return Found(tuple(steps[1:] if cut else steps), OPTIMIZER, cut)
    if steps := _module_calls(trace):
        return Found(tuple(steps), MODULE_CALLS)
    steps = _repeated(trace)
    doubt = (_looks_like_layers(trace, steps) or _unsteady(steps)) if steps else ""
    if steps and not doubt:
        return Found(tuple(steps), REPETITION)
    start = trace.events["start_ns"]
    cpu = _at_work(trace)
    begin = int(start[cpu].min()) if cpu.any() else int(start.min(initial=0))
    end = int(trace.end_ns.max(initial=0)) + 1
    return Found((Step(0, begin, end),), WHOLE_TRACE, doubt)


def _at_work(trace: Events) -> NDArray[np.bool_]:
    """Events of threads without the frames of functions, which begin with the program."""
    found: NDArray[np.bool_] = (trace.events["thread"] >= 0) & (trace.events["kind"] != int(Kind.PYTHON))
    return found


def without_warm_up(found: Found) -> Found:
    """Without the steps at the beginning that took much longer than those behind them: caches, workers, algorithms."""
    walls = found.walls_ns
    first = 0
    while len(walls) - first - 1 >= STEADY and first < len(walls) // 2:
        if walls[first] < WARM * float(np.median(walls[first + 1 :])):
            break
        first += 1
    if not first:
        return found
    low, high = found.steps[0].number, found.steps[first - 1].number
    which = f"step {low}" if first == 1 else f"steps {low} to {high}"
    longest, usual = max(walls[:first]) / 1e9, float(np.median(walls[first:])) / 1e9
    note = f"{which} took up to {longest:.3g} s, the others {usual:.3g} s each: warm-up, left out"
    left_out = "; ".join(filter(None, (found.left_out, note)))
    return replace(found, steps=found.steps[first:], warm_up=found.steps[:first], left_out=left_out)


def _profiler_steps(trace: Events) -> list[Step]:
    rows = trace.of_kind(Kind.STEP)
    if not rows.size:
        return []
    start, end = trace.events["start_ns"], trace.end_ns
    found: list[Step] = []
    for position, row in enumerate(rows[np.argsort(start[rows], kind="stable")].tolist()):
        digits = _NUMBER.findall(trace.name(row))
        one = Step(int(digits[-1]) if digits else position, int(start[row]), int(end[row]))
        if not any(one.number == other.number and one.start_ns < other.end_ns for other in found[-_MARKS_OF_ONE:]):
            found.append(one)  # else several threads or devices mark one step
    ordered = _numbered(found)
    # what lies between two marks belongs to the step before
    return [
        Step(step.number, step.start_ns, max(step.end_ns, following.start_ns) if following else step.end_ns)
        for step, following in zip(ordered, [*ordered[1:], None], strict=True)
    ]


def _numbered(steps: list[Step]) -> list[Step]:
    """Steps in time order with numbers of their own: a program may profile several loops, each of which counts anew."""
    if len({step.number for step in steps}) == len(steps):
        return steps
    return [replace(step, number=place) for place, step in enumerate(steps)]


def _optimizer_steps(trace: Events) -> list[Step]:
    rows = trace.of_kind(Kind.REGION, Kind.PHASE)
    update = np.array([is_optimizer_step(name) for name in trace.strings], dtype=np.bool_)
    marked = rows[update[trace.events["name"][rows]]]
    if not marked.size:
        return []
    # several optimizers end one step: of each run of them without a backward pass between, the last; and of those with
    # names of their own the rarest, which the others take turns before
    names = trace.events["name"][marked].tolist()
    rarest = min(set(names), key=names.count)
    ends = np.sort(trace.end_ns[marked[trace.events["name"][marked] == rarest]])
    ends = _one_of_each_run(trace, marked, ends)
    begin = int(trace.events["start_ns"][_at_work(trace)].min())
    return [
        Step(number, low, high)
        for number, (low, high) in enumerate(zip([begin, *ends[:-1].tolist()], ends.tolist(), strict=True))
    ]


def _one_of_each_run(trace: Events, marked: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last end of each run of optimizers' ends that no operator outside of an optimizer's range lies between."""
    rows = trace.of_kind(Kind.OPERATOR)
    start = trace.events["start_ns"][rows]
    begins, over = trace.events["start_ns"][marked], trace.end_ns[marked]
    inside = _within(start, begins, over)
    zeroing = np.array([phase_of(name) == "zero_grad" for name in trace.strings], dtype=np.bool_)
    ranges = trace.of_kind(Kind.REGION, Kind.PHASE)
    ranges = ranges[zeroing[trace.events["name"][ranges]]]
    inside |= _within(start, trace.events["start_ns"][ranges], trace.end_ns[ranges])
    work = np.sort(start[~inside])
    if not work.size:
        return ends
    before = np.searchsorted(work, ends)
    last = np.append(np.diff(before) > 0, True)
    found: NDArray[np.int64] = ends[last]
    return found


def _within(at: NDArray[np.int64], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each time lies in one of the ranges."""
    if not begins.size:
        return np.zeros(at.size, np.bool_)
    order = np.argsort(begins, kind="stable")
    place = np.searchsorted(begins[order], at, side="right") - 1
    found: NDArray[np.bool_] = (place >= 0) & (at < np.maximum.accumulate(ends[order])[np.maximum(place, 0)])
    return found


def _begins_inside(trace: Events, steps: list[Step]) -> str:
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


def _module_calls(trace: Events) -> list[Step]:
    """From call to call of the module that stands outermost on the loop's thread, where it is called again and again
    and takes most of the modules' time."""
    thread = main_thread(trace)
    rows = trace.of_kind(Kind.MODULE)
    rows = rows[trace.events["thread"][rows] == thread]
    if rows.size < 2:
        return []
    start, end = trace.events["start_ns"][rows], trace.end_ns[rows]
    outer = np.concatenate(([True], start[1:] >= np.maximum.accumulate(end)[:-1]))
    names, spent = trace.events["name"][rows[outer]], (end - start)[outer]
    most = int(np.argmax(np.bincount(names, weights=spent)))
    calls = start[outer][names == most]
    if calls.size < 2 or float(spent[names == most].sum()) < _SIMILAR * float(spent.sum()):
        return []
    last = int(trace.end_ns[trace.events["thread"] == thread].max()) + 1
    bounds = [*calls.tolist(), last]
    return [Step(number, low, high) for number, (low, high) in enumerate(pairwise(bounds))]


def _looks_like_layers(trace: Events, steps: list[Step]) -> str:
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


def main_thread(trace: Events) -> int:
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


def _repeated(trace: Events) -> list[Step]:
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
