"""`dgc`: deep gradient compression (Lin et al., ICLR 2018): only the largest gradients travel, the rest accumulates.

Daydream 5.2: communication is scaled, and compression and decompression kernels are inserted. A sent value needs its
index too, and compressed gradients are gathered rather than reduced, so n workers receive n parts.
"""

from __future__ import annotations

import numpy as np

from leadline.units import percent
from leadline.whatif.collectives import Collective
from leadline.whatif.draws import Draw, technique
from leadline.whatif.edits import WAITING, launch_latency_ns, operation_of, scale_transfers
from leadline.whatif.elementwise import nanoseconds_per_byte
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import EdgeType, LaneKind, Phase, Selection, TaskKind
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, ScenarioError, Values, count
from leadline.whatif.units import Unit

_HOPS_NS = 10_000.0
"""What a collective takes however little it sends: its launch and its hops."""


class Dgc(Scenario):
    """Scales the collectives of the graph and inserts kernels around them."""

    name = "dgc"
    advice = "compress gradients (deep gradient compression)"
    parameters = (
        Parameter("ratio", Unit.FACTOR, "share of gradient values sent; default from the factor files, 0.1 %"),
        Parameter("workers", Unit.COUNT, "workers, where the trace does not show"),
    )

    def applicable(self, graph: Graph, values: Values) -> str | None:
        if not _exchanges(graph):
            return "there is no gradient exchange to compress; combine it with --scenario distributed"
        return None

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        ratio = values.optional("ratio")
        if ratio is None:
            ratio = technique("dgc_ratio", larger_is_faster=False).at(draw)
        if not 0 < ratio <= 1:
            raise ScenarioError("dgc: ratio must be greater than 0 and at most 1; 0.001 sends one value of a thousand.")
        exchanges = _exchanges(graph)
        workers = values.optional("workers") or max(graph.info.world_size, 1)
        # value and index are sent; all-reduce of S moves 2 (n-1)/n S, all-gather of n parts moves (n-1) parts
        gathered = max(workers / 2, 1.0) if workers > 1 else 1.0
        scale = min(1.0, ratio * 2 * gathered)
        scale_transfers(graph, exchanges, scale, draw, fixed_ns=_HOPS_NS)
        per_byte, source = nanoseconds_per_byte(graph)
        unsized = int((graph.column("bytes")[exchanges.ids] == 0).sum())
        passes = technique("dgc_passes", larger_is_faster=False).at(draw)
        inserted = sum(_wrap(graph, task, per_byte, ratio, passes) for task in exchanges)
        return Applied(
            graph,
            (
                f"{percent(ratio)} of the values travel, each with its index: transfers take "
                f"{percent(scale)} of their time, "
                f"plus {_HOPS_NS / 1e3:g} µs that do not shrink",
                f"compression passes {passes:g} times over each gradient at the speed of {source}",
                WAITING,
                "accuracy is not predicted",
            ),
            count(collectives=len(exchanges), inserted_kernels=inserted),
            (f"the trace does not show the size of {unsized} collectives; compressing them counts as no work",)
            if unsized
            else (),
        )


def _exchanges(graph: Graph) -> Selection:
    """Collectives that sum gradients; an all-to-all or a broadcast has nothing to leave out."""
    found = graph.select(kind=TaskKind.COMM, phase=(Phase.BACKWARD, Phase.OPTIMIZER, Phase.OTHER))
    sums = (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER)
    return Selection([task for task in found if operation_of(graph, task) in sums])


def _wrap(graph: Graph, exchange: int, per_byte: float, ratio: float, passes: float) -> int:
    """A compression kernel before one collective and a decompression kernel after it; returns how many."""
    size = float(graph.column("bytes")[exchange])
    edges = graph.edges
    before = [int(t) for t in edges["src"][edges["dst"] == exchange] if graph.column("kind")[t] == TaskKind.GPU]
    after = [int(t) for t in edges["dst"][edges["src"] == exchange] if graph.column("kind")[t] == TaskKind.GPU]
    streams = [at for at, lane in enumerate(graph.lanes) if lane.kind == LaneKind.STREAM]
    if not streams or size <= 0:
        return 0
    step = int(graph.column("step")[exchange])
    inserted = 0
    own = int(graph.column("lane")[exchange])
    lane = int(graph.column("lane")[before[-1]]) if before else (own if own in streams else streams[0])
    launches = _launcher(graph, before or ([exchange] if own in streams else []))
    compress = graph.insert(
        "compress gradient", TaskKind.GPU, lane, int(size * per_byte * passes), after=before, before=exchange,
        launch=launches, latency_ns=0 if launches is None else launch_latency_ns(graph), phase=Phase.BACKWARD,
        step=step,
    )  # fmt: skip
    inserted += compress >= 0
    sent = int(size * ratio * per_byte + size * per_byte)
    if after:
        target = min(after, key=lambda task: float(graph.column("order")[task]))
        graph.insert(
            "decompress gradient", TaskKind.GPU, int(graph.column("lane")[target]), sent, after=exchange, before=target,
            launch=_launcher(graph, [target]), phase=Phase.OPTIMIZER, step=step,
        )  # fmt: skip
        inserted += 1
    return inserted


def _launcher(graph: Graph, tasks: list[int]) -> int | None:
    edges = graph.edges
    for task in reversed(tasks):
        found = np.flatnonzero((edges["type"] == EdgeType.LAUNCH) & (edges["dst"] == task))
        if found.size:
            return int(edges["src"][found[0]])
    return None
