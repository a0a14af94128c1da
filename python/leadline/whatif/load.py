"""`load`: a trace file, or all ranks of a job, as one dependency graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from leadline.trace.kineto import read_kineto
from leadline.trace.source import sources
from leadline.trace.steps import Steps, find_steps
from leadline.trace.tables import Trace, TraceError
from leadline.whatif.build.build import Window, build
from leadline.whatif.build.ranks import clock_offsets, merge, rendezvous
from leadline.whatif.graph import Graph


def load(path: str | Path | Sequence[str | Path], window: tuple[int, int] | None = None) -> Graph:
    """The graph of a trace.

    path: Kineto JSON (.json, .json.gz), a tar of ranks, a directory of ranks, or several files.
    window: first and last step number, both included; None takes every step (of several ranks: every common step).

    Raises TraceError when the file cannot be read, holds no events, or has no step in the window.
    """
    traces = with_ranks([read_kineto(source) for source in sources(path)])
    windows = [choose_window(trace, window) for trace in traces]
    if len(traces) == 1:
        return rendezvous(build(traces[0], windows[0]))
    return _load_ranks(traces, windows)


def _load_ranks(traces: Sequence[Trace], windows: Sequence[Window]) -> Graph:
    common = set.intersection(*({step.number for step in window.steps} for window in windows))
    if not common:
        raise TraceError(
            f"the {len(traces)} traces have no step in common; give the traces of one job over the same steps"
        )
    windows = [replace(window, steps=[step for step in window.steps if step.number in common]) for window in windows]
    begins = [trace.origin_ns + window.range_ns[0] for trace, window in zip(traces, windows, strict=True)]
    alone = [build(trace, window) for trace, window in zip(traces, windows, strict=True)]
    offsets = clock_offsets(begins, alone)
    corrected = [begin - offset for begin, offset in zip(begins, offsets, strict=True)]
    first = min(corrected)
    graphs = [
        build(trace, window, window.range_ns[0] - (begin - first))
        for trace, window, begin in zip(traces, windows, corrected, strict=True)
    ]
    merged = merge(graphs)
    if any(offsets):
        worst = max(abs(offset) for offset in offsets)
        note = f"the ranks' clocks disagree by up to {worst / 1e6:.2f} ms; they were aligned by the ends of collectives"
        merged.info = replace(merged.info, warnings=(*merged.info.warnings, note))
    return merged


def with_ranks(traces: Sequence[Trace]) -> list[Trace]:
    """The traces in the order of their ranks; ranks that are unknown or given twice are numbered in file order."""
    ranks = [trace.rank for trace in traces]
    if len(traces) == 1:
        return [replace(traces[0], rank=max(ranks[0], 0))]
    if min(ranks) >= 0 and len(set(ranks)) == len(ranks):
        return sorted(traces, key=lambda trace: trace.rank)
    note = "the files do not name distinct ranks; they are numbered in the order of their names"
    return [
        replace(trace, rank=number, warnings=(*trace.warnings, *((note,) if number == 0 else ())))
        for number, trace in enumerate(traces)
    ]


def choose_window(trace: Trace, window: tuple[int, int] | None) -> Window:
    """The asked steps of a trace."""
    found: Steps = find_steps(trace)
    steps = [step for step in found.steps if window is None or window[0] <= step.number <= window[1]]
    if not steps:
        numbers = [step.number for step in found.steps]
        raise TraceError(
            f"no step between {window[0] if window else 0} and {window[1] if window else 0} in {trace.source}; "
            f"it has steps {numbers[0]} to {numbers[-1]}"
        )
    return Window(steps, found.found_by)
