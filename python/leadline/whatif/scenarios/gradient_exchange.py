"""What scenarios that exchange gradients share: the network, gradients of a step, buckets, the unrolled window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from leadline.whatif.collectives import Network
from leadline.whatif.gpus import Draw, technique
from leadline.whatif.graph import EDGE_COLUMNS, TASK_COLUMNS, Graph
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.layerwork import in_lane_order, steps_of, worker_kinds
from leadline.whatif.model import Gradient, gradients
from leadline.whatif.scenarios.base import Parameter, ScenarioError, Values, gpu_of
from leadline.whatif.units import Unit

NETWORK = (
    Parameter("world_size", Unit.COUNT, "workers, each with a copy of the model"),
    Parameter(
        "bandwidth", Unit.BANDWIDTH, "what one worker can send; default: the GPU's own link, else 12.5GB/s (100 Gb/s)"
    ),
    Parameter("latency", Unit.TIME, "time of one hop", "5us"),
    Parameter("gradient_bytes", Unit.SIZE, "size of all gradients, where the trace has no shapes"),
)
DEFAULT_BANDWIDTH = 12.5e9


@dataclass(frozen=True)
class Bucket:
    """Gradients that travel together."""

    bytes: int
    ready_after: tuple[int, ...]
    layer: str


def world_size(scenario: str, values: Values) -> int:
    """Raises ScenarioError when it is missing or 0."""
    size = values.optional("world_size")
    if size is None:
        raise ScenarioError(f"{scenario} needs the number of workers: add --set world_size=8.")
    if size < 1 or not np.isfinite(size):
        raise ScenarioError(f"{scenario}: world_size must be a number of at least 1.")
    return int(size)


def network_of(graph: Graph, values: Values) -> tuple[Network, str]:
    """The network of the question and a sentence on where its bandwidth comes from."""
    latency = values.number("latency")
    given = values.optional("bandwidth")
    if given is not None:
        if given <= 0:
            raise ScenarioError("bandwidth must be greater than 0.")
        return Network(given, latency), f"every worker can send {given / 1e9:g} GB/s, {latency / 1000:g} µs a hop"
    gpu = gpu_of(graph)
    if gpu is not None and gpu.link_gb_s:
        return Network(gpu.link_gb_s * 1e9, latency), (
            f"bandwidth is not given: the {gpu.name}'s own link, {gpu.link_gb_s:g} GB/s, is assumed (one machine)"
        )
    return Network(DEFAULT_BANDWIDTH, latency), "bandwidth is not given: 12.5 GB/s (100 Gb/s) is assumed"


def step_gradients(graph: Graph, values: Values) -> dict[int, list[Gradient]]:
    """Gradients by step, in the order of readiness; from shapes, else from `gradient_bytes` spread over backward."""
    size = values.optional("gradient_bytes")
    backward = graph.select(kind=worker_kinds(graph), phase=Phase.BACKWARD)
    numbers = graph.column("step")[backward.ids]
    if size is None:
        trained = set(numbers.tolist())
        return {step: known for step, known in gradients(graph).items() if step in trained}
    found: dict[int, list[Gradient]] = {}
    orders = graph.column("order")
    for step in steps_of(graph):
        mine = in_lane_order(graph, Selection(backward.ids[numbers == step]))
        if mine.size:
            pieces = min(8, mine.size)
            ends = [int(part[-1]) for part in np.array_split(mine, pieces)]
            found[step] = [Gradient(int(size / pieces), (task,), "", float(orders[task])) for task in ends]
    return found


def why_no_gradients(graph: Graph, values: Values) -> str | None:
    """None when gradients can be placed, else the reason."""
    if not graph.select(phase=Phase.BACKWARD):
        return "the window has no backward pass"
    if values.optional("gradient_bytes") is None and not step_gradients(graph, values):
        return (
            "the trace has no shapes to size the gradients with; "
            "record with record_shapes or add --set gradient_bytes=100MB"
        )
    return None


def bucketed(found: Sequence[Gradient], limit_bytes: float, first_bytes: float) -> list[Bucket]:
    """Consecutive gradients up to a size; the first bucket is smaller, so that communication starts early.

    A bucket is closed as soon as it has reached its limit (torch DistributedDataParallel, `bucket_cap_mb`).
    """
    buckets: list[Bucket] = []
    size, ready, layer = 0, (), ""  # type: tuple[int, tuple[int, ...], str]
    for gradient in found:
        size, ready, layer = size + gradient.bytes, gradient.ready_after, gradient.layer
        if size >= (limit_bytes if buckets else first_bytes):
            buckets.append(Bucket(size, ready, layer))
            size = 0
    if size:
        buckets.append(Bucket(size, ready, layer))
    return buckets


def collective_overhead(draw: Draw) -> float:
    """Real over theoretical time of a collective."""
    return technique("collective_overhead", larger_is_faster=False).at(draw)


def unrolled(graph: Graph) -> Graph:
    """The window twice, one after another on every lane, so that edges can lead from one step into the next.

    The second half's steps are numbered on; both halves share names, layers and details.
    """
    count = len(graph)
    result = graph.copy()
    tasks = graph.tasks
    numbers = steps_of(graph)
    shift = (max(numbers) - min(numbers) + 1) if numbers else 1
    orders = graph.column("order")
    span = float(orders.max(initial=0.0) - orders.min(initial=0.0)) + 1.0
    rows = {name: tasks[name].copy() for name in TASK_COLUMNS}
    rows["order"] = rows["order"] + span
    rows["step"] = rows["step"] + shift
    rows["parent"] = np.where(rows["parent"] >= 0, rows["parent"] + count, -1)
    groups = int(rows["group"].max(initial=-1)) + 1
    rows["group"] = np.where(rows["group"] >= 0, rows["group"] + groups, -1)
    rows["earliest_ns"] = np.zeros_like(rows["earliest_ns"])
    result.tasks.append(**rows)
    edges = {name: graph.edges[name].copy() for name in EDGE_COLUMNS}
    if len(graph.edges):
        result.edges.append(**{**edges, "src": edges["src"] + count, "dst": edges["dst"] + count})
    if len(graph.waits):
        result.waits.append(task=graph.waits["task"] + count, lane=graph.waits["lane"].copy())
    later = tuple(step + shift for step in numbers)
    measured = tuple(graph.info.step_ns) * 2
    result.info = replace(
        graph.info, steps=(*numbers, *later), step_ns=measured, measured_ns=graph.info.measured_ns * 2
    )
    return result


def has_collectives(graph: Graph) -> bool:
    return bool((graph.column("kind")[graph.alive] == TaskKind.COMM).any())
