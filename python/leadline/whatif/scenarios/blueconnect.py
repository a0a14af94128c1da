"""`blueconnect`: each all-reduce as reduce-scatters and all-gathers per network level (Cho et al., MLSys 2019).

World size = workers per machine x machines. A bucket of S bytes is reduce-scattered inside the machine (S), then
across machines (S / workers per machine), then gathered back in reverse. Each level has a channel of its own, so
buckets pipeline: one crosses the network while the next is on the links inside (Daydream 5.2).
"""

from __future__ import annotations

from leadline.units import size
from leadline.whatif.collectives import Collective, Network, ring_ns
from leadline.whatif.draws import Draw
from leadline.whatif.edits import optimizer_starts
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import LaneKind, Phase, TaskKind
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, ScenarioError, Values, count, gpu_of
from leadline.whatif.scenarios.gradient_exchange import (
    BUCKETS,
    NETWORK,
    bucketed,
    collective_overhead,
    has_collectives,
    network_of,
    slow_beside,
    step_gradients,
    why_no_gradients,
    world_size,
)
from leadline.whatif.units import Unit


class BlueConnect(Scenario):
    """Inserts the four stages of every bucket on parallel channels."""

    name = "blueconnect"
    advice = "decompose all-reduces by network level (BlueConnect, hierarchical all-reduce)"
    parameters = (
        *NETWORK,
        Parameter("workers_per_machine", Unit.COUNT, "GPUs that share fast links", "8"),
        Parameter(
            "local_bandwidth", Unit.BANDWIDTH, "what one worker can send inside a machine; default: the GPU's link"
        ),
        *BUCKETS,
    )

    def title(self, values: Values) -> str:
        return f"{self.name} world_size={values.optional('world_size') or 0:g}"

    def applicable(self, graph: Graph, values: Values) -> str | None:
        if values.optional("world_size") is None:
            return "the number of workers is not given (--set world_size=16)"
        if has_collectives(graph):
            return "the trace has collectives already; BlueConnect is predicted from a trace of one worker"
        return why_no_gradients(graph, values)

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        workers = world_size(self.name, values)
        inside = min(int(values.number("workers_per_machine")), workers)
        if inside < 1 or workers % inside:
            raise ScenarioError(f"blueconnect: world_size={workers} is not a multiple of workers_per_machine={inside}.")
        machines = workers // inside
        network, assumed = network_of(graph, values, draw)
        local = Network(_local_bandwidth(graph, values, network), network.latency_ns)
        overhead = collective_overhead(draw)
        links = graph.add_lane("links inside the machine", LaneKind.CHANNEL)
        wire = graph.add_lane("network between machines", LaneKind.CHANNEL)
        inserted = total = 0
        tasks: list[int] = []
        starts = optimizer_starts(graph)
        for step, found in step_gradients(graph, values).items():
            targets = starts.get(step, [])
            buckets = bucketed(found, values.number("bucket_size"), values.number("first_bucket_size"))
            total = sum(bucket.bytes for bucket in buckets)
            for number, bucket in enumerate(buckets):
                part = bucket.bytes / inside
                stages = (
                    ("reduce_scatter inside", links, ring_ns(Collective.REDUCE_SCATTER, bucket.bytes, inside, local)),
                    ("reduce_scatter between", wire, ring_ns(Collective.REDUCE_SCATTER, part, machines, network)),
                    ("all_gather between", wire, ring_ns(Collective.ALL_GATHER, part, machines, network)),
                    ("all_gather inside", links, ring_ns(Collective.ALL_GATHER, bucket.bytes, inside, local)),
                )
                after = list(bucket.ready_after)
                for at, (name, channel, time) in enumerate(stages):
                    last = at == len(stages) - 1
                    task = graph.insert(
                        name, TaskKind.COMM, channel, int(time * overhead), after=after, before=targets if last else (),
                        phase=Phase.BACKWARD, step=step, bytes=bucket.bytes, layer=bucket.layer, priority=float(number),
                    )  # fmt: skip
                    after = [task]
                    tasks.append(task)
                    inserted += 1
        slowed = slow_beside(graph, tasks, draw) if workers > 1 else 0
        return Applied(
            graph,
            (
                f"{size(total)} of gradients per step, {inside} workers on each of {machines} machines",
                assumed,
                f"inside a machine a worker can send {local.bandwidth_bytes_s / 1e9:g} GB/s; levels work in parallel",
                f"a collective takes {overhead:g} of its formula's time",
            ),
            count(stages=inserted, slowed_kernels=slowed),
            samples=float(workers),
        )


def _local_bandwidth(graph: Graph, values: Values, network: Network) -> float:
    given = values.optional("local_bandwidth")
    if given is not None:
        if given <= 0:
            raise ScenarioError("blueconnect: local_bandwidth must be greater than 0.")
        return given
    gpu = gpu_of(graph)
    if gpu is None:
        return network.bandwidth_bytes_s
    return (gpu.link_gb_s or gpu.pcie_gb_s) * 1e9
