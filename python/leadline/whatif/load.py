"""`load`: a trace file, or all ranks of a job, as one dependency graph."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from leadline.profiles import Profile
from leadline.profiles.reader import open_profile
from leadline.trace.loops import one_loop
from leadline.trace.profile_window import read_profile
from leadline.trace.source import sources
from leadline.trace.steps import Step, Steps, find_steps
from leadline.trace.tables import Trace, TraceError
from leadline.trace.window import chosen, read_window
from leadline.whatif import straggler
from leadline.whatif.build.build import Window, build, drafted, placed
from leadline.whatif.build.ranks import clock_offsets, merge, rendezvous
from leadline.whatif.graph import Graph
from leadline.whatif.tables import OPERATIONS


def load(path: str | Path | Sequence[str | Path], window: tuple[int, int] | None = None) -> Graph:
    """The graph of a trace.

    path: Kineto JSON (.json, .json.gz), a tar of ranks, a directory of ranks, several files, a .leadline profile with
    a trace window, or the operations of a large job (.parquet).
    window: first and last step number, both included; None takes every step (of several ranks: every common step).

    Raises TraceError when the file cannot be read, holds no events, or has no step in the window.
    """
    if isinstance(path, str | Path) and Path(path).suffix == ".parquet":
        return _job(path, window)
    return _graph(_read(path, window))


def _job(path: str | Path, window: tuple[int, int] | None) -> Graph:
    try:
        trace = straggler.read(path)
        steps = chosen(Steps(tuple(Step(number, 0, 0) for number in trace.steps), OPERATIONS), window, str(path))
        return straggler.job_graph(trace.only([step.number for step in steps]), source=Path(path).name).graph
    except straggler.StragglerInputError as error:
        raise TraceError(str(error)) from error


def graph_of(profile: Profile) -> Graph:
    """The graph of every step in the trace window of a profile that is open; raises TraceError when it has none."""
    return _graph([(trace, find_steps(trace)) for trace in read_profile(profile)])


def _graph(read: list[tuple[Trace, Steps]]) -> Graph:
    order, traces = with_ranks([trace for trace, _ in read])
    windows = [Window(read[place][1].steps, read[place][1].found_by, read[place][1].doubt) for place in order]
    if len(traces) == 1:
        return rendezvous(build(traces[0], windows[0]))
    return _load_ranks(traces, windows)


def _read(path: str | Path | Sequence[str | Path], window: tuple[int, int] | None) -> list[tuple[Trace, Steps]]:
    if isinstance(path, str | Path) and Path(path).suffix == ".leadline":
        traces = [one_loop(trace) for trace in read_profile(open_profile(path), Path(path).name)]
        found = [(trace, find_steps(trace)) for trace in traces]
        return [(trace, replace(steps, steps=tuple(chosen(steps, window, trace.source)))) for trace, steps in found]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the compiled reader leaves the interpreter to others
        return list(pool.map(partial(read_window, window=window), sources(path)))


def _load_ranks(traces: Sequence[Trace], windows: Sequence[Window]) -> Graph:
    sizes = sorted({trace.world_size for trace in traces if trace.world_size > 1})
    if len(sizes) > 1:
        jobs = ", ".join(f"one of {size}" for size in sizes)
        raise TraceError(f"the {len(traces)} traces come from different jobs: {jobs} workers; give those of one job")
    common = set.intersection(*({step.number for step in window.steps} for window in windows))
    if not common:
        raise TraceError(
            f"the {len(traces)} traces have no step in common; give the traces of one job over the same steps"
        )
    windows = [replace(window, steps=[step for step in window.steps if step.number in common]) for window in windows]
    begins = [trace.origin_ns + window.range_ns[0] for trace, window in zip(traces, windows, strict=True)]
    drafts = [drafted(trace, window) for trace, window in zip(traces, windows, strict=True)]
    alone = [placed(draft, window, window.range_ns[0]) for draft, window in zip(drafts, windows, strict=True)]
    offsets = clock_offsets(begins, alone)
    corrected = [begin - offset for begin, offset in zip(begins, offsets, strict=True)]
    first = min(corrected)
    graphs = [
        placed(draft, window, window.range_ns[0] - (begin - first))
        for draft, window, begin in zip(drafts, windows, corrected, strict=True)
    ]
    merged = merge(graphs)
    if sizes and sizes[0] > len(traces):
        note = f"only {len(traces)} of the job's {sizes[0]} ranks are here: collectives keep the waits for the others"
        merged.info = replace(merged.info, warnings=(*merged.info.warnings, note))
    if any(offsets):
        worst = max(abs(offset) for offset in offsets)
        note = f"the ranks' clocks disagree by up to {worst / 1e6:.2f} ms; they were aligned by the ends of collectives"
        merged.info = replace(merged.info, warnings=(*merged.info.warnings, note))
    return merged


def with_ranks(traces: Sequence[Trace]) -> tuple[list[int], list[Trace]]:
    """The traces in the order of their ranks, with their places in the input before them; ranks that are unknown or
    given twice are numbered in file order."""
    ranks = [trace.rank for trace in traces]
    places = list(range(len(traces)))
    if len(traces) == 1:
        return places, [replace(traces[0], rank=max(ranks[0], 0))]
    if min(ranks) >= 0 and len(set(ranks)) == len(ranks):
        places.sort(key=lambda place: ranks[place])
        return places, [traces[place] for place in places]
    note = "the files do not name distinct ranks; they are numbered in the order of their names"
    return places, [
        replace(trace, rank=number, warnings=(*trace.warnings, *((note,) if number == 0 else ())))
        for number, trace in enumerate(traces)
    ]
