"""A Perfetto trace with the measured timeline and, beside it, the replayed and predicted ones.

Every timeline is a process, every lane a thread track in it; all start at the window's begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from leadline.trace.perfetto import PerfettoWriter, Slice
from leadline.whatif.export.spans import Slices, measured_slices, simulated_slices
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import PHASE_NAMES, LaneKind
from leadline.whatif.simulator import Result


def perfetto_trace(
    measured: Graph, replay: Result | None = None, predictions: Mapping[str, tuple[Graph, Result]] | None = None
) -> bytes:
    """The trace file's bytes. `predictions` maps a title to the edited graph and its simulation."""
    chunks: list[bytes] = []
    writer = PerfettoWriter(chunks.append)
    _timeline(writer, "measured", measured, measured_slices(measured))
    if replay is not None:
        _timeline(writer, "replayed", measured, simulated_slices(measured, replay))
    for title, (graph, result) in (predictions or {}).items():
        _timeline(writer, f"predicted: {title}", graph, simulated_slices(graph, result))
    return b"".join(chunks)


def _timeline(writer: PerfettoWriter, title: str, graph: Graph, lanes: Iterable[Slices]) -> None:
    """A process with one track per lane."""
    process = writer.process(title)
    many = len({item.rank for item in graph.lanes}) > 1
    names, layers, phases = graph.column("name"), graph.column("layer"), graph.column("phase")
    for slices in lanes:
        lane = graph.lanes[slices.lane]
        label = {LaneKind.THREAD: "CPU", LaneKind.STREAM: "GPU", LaneKind.CHANNEL: "channel"}[lane.kind]
        name = f"{'rank ' + str(lane.rank) + ' ' if many else ''}{label} {lane.name}"
        track = writer.track(process, slices.lane + 1, name)
        made = []
        for task, start, end in zip(slices.ids.tolist(), slices.start_ns.tolist(), slices.end_ns.tolist(), strict=True):
            notes = {"phase": PHASE_NAMES[phases[task]]} if phases[task] else {}
            if layers[task]:
                notes["layer"] = graph.layers[layers[task]]
            made.append(Slice(start, end, graph.names[names[task]], notes))
        writer.slices(track, made)
