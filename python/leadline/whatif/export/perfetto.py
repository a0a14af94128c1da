"""A Perfetto trace with the measured timeline and, beside it, the replayed and predicted ones.

Every timeline is a process, every lane a thread track in it; all start at the window's begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from leadline.trace.lanes import lanes
from leadline.trace.perfetto import PerfettoWriter, Spans, Texts
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


def _timeline(writer: PerfettoWriter, title: str, graph: Graph, found: Iterable[Slices]) -> None:
    """A process with one track per lane."""
    process = writer.process(title)
    many = len({item.rank for item in graph.lanes}) > 1
    names, layers, phases = graph.column("name"), graph.column("layer"), graph.column("phase")
    for slices in found:
        lane = graph.lanes[slices.lane]
        label = {LaneKind.THREAD: "CPU", LaneKind.STREAM: "GPU", LaneKind.CHANNEL: "channel"}[lane.kind]
        name = f"{'rank ' + str(lane.rank) + ' ' if many else ''}{label} {lane.name}"
        track = writer.track(process, slices.lane + 1, name)
        nested, _ = lanes(slices.ids, slices.start_ns, slices.end_ns)
        for part in nested:  # they nest already, so there is one
            phase, layer = (column[part.rows].astype(np.int64) for column in (phases, layers))
            notes = {
                "phase": Texts(np.where(phase > 0, phase, -1), PHASE_NAMES),
                "layer": Texts(np.where(layer > 0, layer, -1), graph.layers),
            }
            writer.slices(track, Spans(part, Texts(names[part.rows].astype(np.int64), graph.names), notes=notes))
