"""`build`: the dependency graph of one rank's window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline._dataclass import dataclass, replace
from leadline.steps import Step
from leadline.steps.model import OPTIMIZER, PROFILER, REPETITION, WHOLE_TRACE
from leadline.steps.of_events import main_thread
from leadline.trace.tables import Trace
from leadline.units import duration, percent
from leadline.whatif.build import cpu, device, late, layers, messages, queue, splits, threads, waits
from leadline.whatif.build.draft import Draft
from leadline.whatif.build.whole import doubt_parts
from leadline.whatif.graph import DeviceInfo, Graph, GraphInfo
from leadline.whatif.groups import contradicts
from leadline.whatif.kinds import TaskKind
from leadline.whatif.simulator import step_completions

_NEGLIGIBLE = 0.0005  # of the window; idle time below this is counted in the graph but not worth a warning


@dataclass(frozen=True)
class Window:
    """Steps to look at; the window reaches from the first one's start to the last one's end on the CPU."""

    steps: Sequence[Step]
    found_by: str = PROFILER
    doubt: str = ""

    @property
    def range_ns(self) -> tuple[int, int]:
        return self.steps[0].start_ns, self.steps[-1].end_ns


def build(trace: Trace, window: Window) -> Graph:
    """The graph of a window of one rank, which counts from the window's start."""
    return placed(drafted(trace, window), window, window.range_ns[0])


def drafted(trace: Trace, window: Window) -> Draft:
    """All that the graph of a window of one rank holds, in times of the trace."""
    draft = Draft(trace, window.range_ns, has_steps=window.found_by != WHOLE_TRACE)
    main = main_thread(trace)
    timelines = cpu.lay_out(draft, main)
    streams = device.lay_out(draft)
    threads.connect(draft, timelines, main)
    queue.limit(draft, streams)
    marks = waits.add_marks(draft, streams)
    timing = device.time_streams(draft, streams, marks)
    late.explain(draft, streams, timing)
    device.launch_edges(draft, timing)
    waits.synchronise(draft, streams)
    splits.issue_behind_waits(draft, streams)
    splits.split_blocking_copies(draft, streams)
    messages.fill(draft)
    layers.assign(draft, timelines, window.steps, main)
    _warn(draft, window)
    return draft


def placed(draft: Draft, window: Window, origin_ns: int, drift: float = 0.0) -> Graph:
    """The graph of a draft. `origin_ns`: time 0 of the graph on the trace's clock, which gains `drift` on it from there
    for every nanosecond."""
    trace = draft.trace
    tasks, edges, awaited = draft.tables(origin_ns, drift)
    info = GraphInfo(
        source=trace.source,
        window_ns=draft.window_ns,
        steps=tuple(step.number for step in window.steps),
        ranks=(trace.rank,),
        world_size=max(trace.world_size, 1),
        devices=tuple(
            DeviceInfo(item.name, item.memory_bytes, item.compute_capability, item.multiprocessors, item.links)
            for item in trace.devices
        ),
        unexplained_ns=draft.unexplained_ns,
        warnings=(*trace.warnings, *draft.warnings),
        facts={**trace.facts, **draft.facts, "steps_found_by": window.found_by, "steps_doubt": window.doubt},
    )
    graph = Graph(tasks, edges, awaited, draft.lanes, list(draft.names), list(draft.layers), trace.details, info)
    return with_measured(graph)


def with_measured(graph: Graph) -> Graph:
    """The graph with the measured time of its steps in `info`."""
    ends = graph.column("start_ns") + graph.column("measured_ns")
    completed, begun = step_completions(graph, np.arange(len(graph)), ends, graph.info.steps)
    steps = tuple(np.diff(completed, prepend=begun).tolist())
    graph.info = replace(graph.info, step_ns=steps, measured_ns=sum(steps))
    return graph


def _warn(draft: Draft, window: Window) -> None:
    kinds = draft["kind"]
    if not np.isin(kinds, [TaskKind.GPU, TaskKind.COMM]).any():
        draft.warnings.append("there is no device work in the window; only CPU changes can be predicted")
    if window.found_by == WHOLE_TRACE:
        why = (
            f"no step marks were found; {window.doubt}"
            if window.doubt
            else "no step marks and no repetition were found"
        )
        draft.warnings.append(f"{why}; the whole trace counts as one step")
    elif window.found_by == REPETITION:
        draft.warnings.append("steps carry no marks; they were found by the repetition of a sequence of operators")
    elif window.found_by == OPTIMIZER and window.doubt:
        draft.warnings.append(window.doubt)
    wrong = sum(contradicts(detail, draft.trace.world_size) for detail in draft.trace.details)
    if wrong:
        draft.warnings.append(
            f"the sizes of {wrong} process groups or collectives contradict their members or the job's "
            f"{draft.trace.world_size} workers; predictions use the members, or else all workers: load all ranks, "
            "or do not trust predictions about the network"
        )
    doubt_parts(draft, window.found_by)
    total = max(draft.window_ns[1] - draft.window_ns[0], 1)
    if draft.unexplained_ns > _NEGLIGIBLE * total:
        draft.warnings.append(
            f"{duration(draft.unexplained_ns)} of device idle time ({percent(draft.unexplained_ns / total)} of the "
            "window) has no known reason; it stays unchanged in every prediction"
        )
