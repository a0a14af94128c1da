"""`distributed`: data-parallel training on `world_size` workers, predicted from the profile of one.

An all-reduce per gradient bucket starts when the bucket's last gradient is complete, one after another on one channel
beside the backward pass; the weight update waits for the last one (Daydream 5.1; buckets as DistributedDataParallel
makes them). Where the trace already holds collectives, their transfers are rescaled instead.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from leadline._dataclass import replace
from leadline.units import size
from leadline.whatif.collectives import Collective, Network, collective_ns
from leadline.whatif.draws import Draw, technique
from leadline.whatif.edits import WAITING, operation_of, optimizer_starts, scale_transfers, transfer_ns
from leadline.whatif.graph import Graph
from leadline.whatif.groups import group_of, grows_with_workers
from leadline.whatif.kinds import LaneKind, Phase, Selection, TaskKind
from leadline.whatif.layerwork import steps_of
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, ScenarioError, Values, count
from leadline.whatif.scenarios.gradient_exchange import (
    BUCKETS,
    DEFAULT_LATENCY_NS,
    NETWORK,
    bucketed,
    collective_overhead,
    has_collectives,
    network_of,
    slow_beside,
    slowest_of,
    step_gradients,
    why_no_gradients,
    world_size,
)
from leadline.whatif.simulator import simulate
from leadline.whatif.units import Unit


class Distributed(Scenario):
    """Inserts bucketed all-reduces, or rescales the collectives of a distributed trace."""

    name = "distributed"
    advice = "train data-parallel on more workers"
    parameters = (
        *NETWORK,
        *BUCKETS,
        Parameter("algorithm", Unit.TEXT, "all-reduce algorithm", "auto", ("auto", "ring", "tree")),
    )

    def title(self, values: Values) -> str:
        return f"{self.name} world_size={values.optional('world_size') or 0:g}"

    def applicable(self, graph: Graph, values: Values) -> str | None:
        if values.optional("world_size") is None:
            return "the number of workers is not given (--set world_size=8)"
        return None if has_collectives(graph) else why_no_gradients(graph, values)

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        workers = world_size(self.name, values)
        if has_collectives(graph):
            return _rescaled(graph, values, workers, draw)
        network, assumed = network_of(graph, values, draw)
        algorithm = values.text("algorithm")
        overhead = collective_overhead(draw)
        late_ns = slowest_of(graph, workers, draw) * simulate(graph).makespan_ns / max(len(steps_of(graph)), 1)
        channel = graph.add_lane("all-reduce", LaneKind.CHANNEL)
        inserted: list[int] = []
        total = 0
        starts = optimizer_starts(graph)
        for step, found in step_gradients(graph, values).items():
            targets = starts.get(step, [])
            buckets = bucketed(found, values.number("bucket_size"), values.number("first_bucket_size"))
            total = sum(bucket.bytes for bucket in buckets)
            for number, bucket in enumerate(buckets):
                time = collective_ns(Collective.ALL_REDUCE, bucket.bytes, workers, network, algorithm) * overhead
                # the last all-reduce of a step ends for nobody before the slowest worker has come to it
                time += late_ns if number == len(buckets) - 1 else 0.0
                inserted.append(
                    graph.insert(
                        "all_reduce", TaskKind.COMM, channel, int(time), after=list(bucket.ready_after),
                        before=targets, phase=Phase.BACKWARD, step=step, bytes=bucket.bytes, layer=bucket.layer,
                        priority=float(number),
                    )
                )  # fmt: skip
        graph.info = replace(graph.info, world_size=workers)
        slowed = slow_beside(graph, inserted, draw) if workers > 1 else 0
        assumptions = (
            f"{size(total)} of gradients per step in {len(inserted)} all-reduces ({algorithm}), {assumed}",
            f"a collective takes {overhead:g} of its formula's time; kernels that run during one are slowed by "
            f"{technique('overlap_slowdown', larger_is_faster=False).at(draw):g}",
            "every worker takes as long as this one on a batch of the same size; the slowest is "
            f"{late_ns / 1e6:.3g} ms later than the mean one in every step",
        )
        applied = count(all_reduces=len(inserted), slowed_kernels=slowed)
        return Applied(graph, assumptions, applied, samples=float(workers))


def _rescaled(graph: Graph, values: Values, workers: int, draw: Draw) -> Applied:
    """Collectives of a distributed trace at another number of workers, by the ratio of their cost formulas."""
    tasks = graph.select(kind=TaskKind.COMM)
    before = max(graph.info.world_size, 1)
    if before == 1:
        raise ScenarioError(
            "distributed: the trace has collectives but does not show how many workers took part; "
            "record it with torch.distributed initialised, so that the file names its world size."
        )
    given = values.optional("bandwidth")
    latency = values.optional("latency")
    latency = DEFAULT_LATENCY_NS if latency is None else latency
    groups = {task: group_of(graph, task) for task in tasks}
    sizes = {
        task: max(round(group.size * workers / before), 1) if grows_with_workers(graph, task, group) else group.size
        for task, group in groups.items()
    }
    own = sum(1 for task, group in groups.items() if not grows_with_workers(graph, task, group))
    if given is not None:
        _over(graph, tasks, sizes, Network(given, latency), values.text("algorithm"), draw)
    else:
        _stretch(graph, tasks, {task: (groups[task].size, size) for task, size in sizes.items()}, latency,
                 values.text("algorithm"), draw)  # fmt: skip
    unsized = int((graph.column("bytes")[tasks.ids] == 0).sum()) if given is not None else 0
    source = "the bandwidth that was measured" if given is None else f"{given / 1e9:g} GB/s"
    return Applied(
        graph,
        (
            f"collectives of {before} workers take the time of their cost formula on {workers}, at {source} speed",
            WAITING,
            *(
                (
                    f"{own} collectives of tensor, pipeline or expert groups, and messages between two workers, keep "
                    "their groups as they are: only the number of copies of the model changes",
                )
                if own
                else ()
            ),
        ),
        count(collectives=len(tasks)),
        (f"the trace does not show the size of {unsized} collectives; they keep their time",) if unsized else (),
        samples=workers / before,
    )


def _stretch(
    graph: Graph, tasks: Selection, sizes: Mapping[int, tuple[int, int]], latency: float, algorithm: str, draw: Draw
) -> None:
    """Transfers at another number of workers on the network that the measured times imply."""
    factors, more = [], False
    for task in tasks:
        before, after = sizes[task]
        more |= after > before
        # the ratio of the two formulas does not depend on the size when the bandwidth follows from it
        size = max(float(graph.column("bytes")[task]), 1.0)
        operation = operation_of(graph, task)
        network = _implied(operation, size, before, latency, float(graph.column("duration_ns")[task]))
        old_ns = collective_ns(operation, size, before, network, algorithm)
        new_ns = collective_ns(operation, size, after, network, algorithm)
        factors.append(new_ns / old_ns if old_ns > 0 else 1.0)
    spread = max(collective_overhead(draw) / collective_overhead(Draw()), 1.0) if more else 1.0
    scale_transfers(graph, tasks, np.array(factors) * spread, draw)


def _over(
    graph: Graph, tasks: Selection, sizes: Mapping[int, int], network: Network, algorithm: str, draw: Draw
) -> None:
    """Transfers of known size take their time on a given network; the wait for the last rank stays."""
    duration = graph.column("duration_ns")[tasks.ids].astype(np.float64)
    size = graph.column("bytes")[tasks.ids].astype(np.float64)
    moving = transfer_ns(graph, tasks, draw, cautious=False)
    new = np.array([collective_ns(operation_of(graph, t), s, sizes[t], network, algorithm)
                    for t, s in zip(tasks, size, strict=True)]) * collective_overhead(draw)  # fmt: skip
    change = np.where(size > 0, new - moving, 0.0)
    if draw.cautious("collective transfer"):
        change = np.maximum(change, 0.0)  # what looks like a transfer may have been waiting: no gain is certain
    graph.set_duration(tasks, np.rint(np.maximum(duration + change, np.where(size > 0, new, 0.0))).astype(np.int64))


def _implied(operation: Collective, size: float, ranks: int, latency_ns: float, measured_ns: float) -> Network:
    """The network on which the formula gives the measured time."""
    unit = collective_ns(operation, size, ranks, Network(1e9, 0.0), "ring")
    hops = collective_ns(operation, 0.0, ranks, Network(1e9, latency_ns), "ring")
    moving = max(measured_ns - hops, measured_ns * 0.1, 1.0)
    return Network(1e9 * unit / moving, latency_ns)
