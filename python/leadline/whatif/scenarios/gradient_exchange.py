"""What scenarios that exchange gradients share: the network, gradients of a step, buckets, the unrolled window."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, replace
from leadline.whatif.collectives import Network
from leadline.whatif.draws import Draw, technique
from leadline.whatif.graph import EDGE_COLUMNS, TASK_COLUMNS, Graph
from leadline.whatif.kinds import IntArray, Phase, Selection, TaskKind
from leadline.whatif.layerwork import in_lane_order, steps_of, worker_kinds
from leadline.whatif.model import Gradient, gradients
from leadline.whatif.scenarios.base import Parameter, ScenarioError, Values, gpu_of
from leadline.whatif.simulator import simulate
from leadline.whatif.topology import network_of_topology, topologies
from leadline.whatif.units import Unit

NETWORK = (
    Parameter("world_size", Unit.COUNT, "workers, each with a copy of the model"),
    Parameter("bandwidth", Unit.BANDWIDTH, "what one worker can send; default: that of the topology"),
    Parameter("latency", Unit.TIME, "time of one hop; default: that of the topology"),
    Parameter(
        "topology",
        Unit.TEXT,
        "the network; auto: by the number of workers and the devices' links, if the GPU does not state those",
        "auto",
        ("auto", *topologies()),
    ),
    Parameter("gradient_bytes", Unit.SIZE, "size of all gradients, where the trace has no shapes"),
)
BUCKETS = (
    Parameter("bucket_size", Unit.SIZE, "gradients per all-reduce", "25MiB"),
    Parameter("first_bucket_size", Unit.SIZE, "size of the first bucket", "1MiB"),
)
DEFAULT_LATENCY_NS = 5000.0


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


def network_of(graph: Graph, values: Values, draw: Draw) -> tuple[Network, str]:
    """The network of the question and a sentence on where its bandwidth comes from."""
    given, latency = values.optional("bandwidth"), values.optional("latency")
    if given is not None:
        if given <= 0:
            raise ScenarioError("bandwidth must be greater than 0.")
        hop = DEFAULT_LATENCY_NS if latency is None else latency
        return Network(given, hop), f"every worker can send {given / 1e9:g} GB/s, {hop / 1000:g} µs a hop"
    workers = int(values.optional("world_size") or max(graph.info.world_size, 1))
    return network_of_topology(values.text("topology"), workers, gpu_of(graph), latency, draw, graph.info.devices)


def slowest_of(graph: Graph, workers: int, draw: Draw) -> float:
    """How much longer the slowest of many workers takes than the mean one, as a share of a step: the expected largest
    of so many steps whose lengths scatter."""
    if workers <= 1:
        return 0.0
    return technique("worker_jitter", larger_is_faster=False).at(draw) * math.sqrt(2 * math.log(workers))


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


def slow_beside(graph: Graph, collectives: list[int], draw: Draw) -> int:
    """Lengthens compute tasks by the share of their time that a collective runs beside them."""
    factor = technique("overlap_slowdown", larger_is_faster=False).at(draw)
    if factor <= 1 or not collectives:
        return 0
    result = simulate(graph)
    order = np.argsort(result.start_ns[collectives], kind="stable")
    begin = result.start_ns[collectives][order]
    end = np.maximum.accumulate(result.end_ns[collectives][order])
    tasks = graph.select(kind=worker_kinds(graph), phase=Phase.BACKWARD)
    tasks = Selection(tasks.ids[np.isin(graph.column("step")[tasks.ids], graph.column("step")[collectives])])
    covered = _covered(begin, end, result.end_ns[tasks.ids]) - _covered(begin, end, result.start_ns[tasks.ids])
    own = np.maximum(graph.column("duration_ns")[tasks.ids].astype(np.float64), 1.0)
    share = np.minimum(covered / own, 1.0)
    graph.scale(tasks, 1 + share * (factor - 1))
    return int((share > 0).sum())


def _covered(begin: IntArray, end: IntArray, until_ns: IntArray) -> NDArray[np.float64]:
    """Time before each moment that lies inside the intervals, which are in order and do not overlap."""
    whole = np.concatenate(([0], np.cumsum(end - begin)))
    entered = np.searchsorted(begin, until_ns, side="right")
    last = np.maximum(entered - 1, 0)
    cut = np.where(entered > 0, np.maximum(end[last] - until_ns, 0), 0)
    found: NDArray[np.float64] = (whole[entered] - cut).astype(np.float64)
    return found


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
