"""`load`: a trace file, or all ranks of a job, as one dependency graph."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from leadline._dataclass import replace
from leadline.opening import is_ours, open_any
from leadline.profiles import Profile
from leadline.steps import Found, Step
from leadline.steps.of_events import find_steps
from leadline.trace.importers import import_traces, of_another_format
from leadline.trace.loops import one_loop
from leadline.trace.profile_window import read_profile
from leadline.trace.source import Source, sources
from leadline.trace.tables import Trace, TraceError
from leadline.trace.window import chosen, noted, read_window, text_bytes
from leadline.whatif import straggler
from leadline.whatif.build.build import Window, build
from leadline.whatif.build.helpers import Place, helped
from leadline.whatif.build.job import LocalRank, job_graph
from leadline.whatif.build.ranks import rendezvous
from leadline.whatif.graph import Graph
from leadline.whatif.tables import OPERATIONS

HELPED_BYTES = 200 << 20
"""Of JSON text: traces of several ranks beyond it are read by processes of their own."""


def load(path: str | Path | Sequence[str | Path], window: tuple[int, int] | None = None) -> Graph:
    """The graph of a trace.

    path: Kineto JSON (.json, .json.gz), a tar of ranks, a directory of ranks, several files, a .leadline profile with
    a trace window, anything else that `leadline import` reads, or the operations of a large job (.parquet).
    window: first and last step number, both included; None takes every step (of several ranks: every common step).

    Raises TraceError when the file cannot be read, holds no events, or has no step in the window.
    """
    if isinstance(path, str | Path) and Path(path).suffix == ".parquet":
        return _job(path, window)
    if isinstance(path, str | Path) and is_ours(path):
        return _graph(_read_profile(path, window))
    places, found = _places(path)
    if any(of_another_format(source) for source in found):
        imported = import_traces([path] if isinstance(path, str | Path) else path)
        return _graph(_windows(imported, window, " ".join(source.name for source in found)))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if min(cores, len(found)) > 1 and sum(text_bytes(source) for source in found) > HELPED_BYTES:
        with helped(places, window, min(cores, len(found))) as (ranks, each):
            return job_graph(ranks, each)
    with ThreadPoolExecutor(cores) as pool:  # the compiled reader leaves the interpreter to others
        return _graph(list(pool.map(partial(read_window, window=window), found)))


def _places(path: str | Path | Sequence[str | Path]) -> tuple[list[Place], list[Source]]:
    """The traces behind a path, and where another process finds each."""
    places: list[Place] = []
    found: list[Source] = []
    for item in [path] if isinstance(path, str | Path) else path:
        inside = sources(item)
        places += [(str(Path(item).absolute()), number) for number in range(len(inside))]
        found += inside
    return places, found


def _job(path: str | Path, window: tuple[int, int] | None) -> Graph:
    try:
        trace = straggler.read(path)
        steps = chosen(Found(tuple(Step(number, 0, 0) for number in trace.steps), OPERATIONS), window, str(path))
        return straggler.job_graph(trace.only([step.number for step in steps]), source=Path(path).name).graph
    except straggler.StragglerInputError as error:
        raise TraceError(str(error)) from error


def graph_of(profile: Profile) -> Graph:
    """The graph of every step in the trace window of a profile that is open; raises TraceError when it has none."""
    return _graph(_windows(profile, None, ""))


def _graph(read: list[tuple[Trace, Found]]) -> Graph:
    if len(read) > 1:
        return job_graph([LocalRank(trace, steps) for trace, steps in read])
    (trace, found), *_ = read
    window = Window(found.steps, found.found_by, found.doubt)
    return rendezvous(build(replace(trace, rank=max(trace.rank, 0)), window))


def _read_profile(path: str | Path, window: tuple[int, int] | None) -> list[tuple[Trace, Found]]:
    return _windows(open_any(path), window, Path(path).name)


def _windows(profile: Profile, window: tuple[int, int] | None, name: str) -> list[tuple[Trace, Found]]:
    traces = [one_loop(trace) for trace in read_profile(profile, name)]
    found = [(trace, find_steps(trace)) for trace in traces]
    return [
        (noted(trace, steps), replace(steps, steps=tuple(chosen(steps, window, trace.source))))
        for trace, steps in found
    ]
