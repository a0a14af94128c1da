"""`load`: a trace file, or all ranks of a job, as one dependency graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leadline.trace.kineto import read_kineto
from leadline.trace.source import sources
from leadline.trace.steps import Steps, find_steps
from leadline.trace.tables import Trace, TraceError
from leadline.whatif.build.build import Window, build
from leadline.whatif.graph import Graph


def load(path: str | Path | Sequence[str | Path], window: tuple[int, int] | None = None) -> Graph:
    """The graph of a trace.

    path: Kineto JSON (.json, .json.gz), a tar of ranks, a directory of ranks, or several files.
    window: first and last step number, both included; None takes every step.

    Raises TraceError when the file cannot be read, holds no events, or has no step in the window.
    """
    traces = [read_kineto(source) for source in sources(path)]
    return build(traces[0], choose_window(traces[0], window))


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
