"""Time of collective operations from size, ranks, bandwidth and latency.

S bytes per rank, n ranks, B bytes per second that one rank can send, a latency per hop.

| operation | ring | tree |
|---|---|---|
| all-reduce | 2 (n-1)/n S/B + 2 (n-1) a | 2 S/B + 2 log2(n) a |
| reduce-scatter, all-gather | (n-1)/n S/B + (n-1) a | as ring |
| broadcast, reduce | S/B + (n-1) a | S/B + log2(n) a |
| all-to-all | (n-1)/n S/B + (n-1) a | as ring |
| point to point | S/B + a | as ring |

Thakur, Rabenseifner, Gropp: "Optimization of Collective Communication Operations in MPICH" (2005), and the bandwidth
factors in the performance notes of nccl-tests.
"""

from __future__ import annotations

import math
import re
from enum import Enum

from leadline._dataclass import dataclass

_POINT = re.compile(r"(^|[^a-z])(isend|irecv|send|recv)([^a-z]|$)")


class Collective(Enum):
    ALL_REDUCE = "all_reduce"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_GATHER = "all_gather"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    ALL_TO_ALL = "all_to_all"
    POINT_TO_POINT = "point_to_point"


@dataclass(frozen=True)
class Network:
    """What one rank gets: bandwidth it can send with, and time of one hop."""

    bandwidth_bytes_s: float
    latency_ns: float = 0.0


def ring_ns(operation: Collective, size_bytes: float, ranks: int, network: Network) -> float:
    """Time of a ring algorithm; 0 for a single rank."""
    if ranks <= 1:
        return 0.0
    whole = size_bytes / network.bandwidth_bytes_s * 1e9
    share = (ranks - 1) / ranks
    hops = ranks - 1
    if operation is Collective.POINT_TO_POINT:
        return whole + network.latency_ns
    if operation is Collective.ALL_REDUCE:
        return 2 * share * whole + 2 * hops * network.latency_ns
    if operation in (Collective.BROADCAST, Collective.REDUCE):
        return whole + hops * network.latency_ns
    return share * whole + hops * network.latency_ns


def tree_ns(operation: Collective, size_bytes: float, ranks: int, network: Network) -> float:
    """Time of a (double binary) tree; operations without a tree form take the ring."""
    if ranks <= 1:
        return 0.0
    whole = size_bytes / network.bandwidth_bytes_s * 1e9
    depth = math.log2(ranks)
    if operation is Collective.ALL_REDUCE:
        return 2 * whole + 2 * depth * network.latency_ns
    if operation in (Collective.BROADCAST, Collective.REDUCE):
        return whole + depth * network.latency_ns
    return ring_ns(operation, size_bytes, ranks, network)


def collective_ns(
    operation: Collective, size_bytes: float, ranks: int, network: Network, algorithm: str = "auto"
) -> float:
    """Time by `ring`, `tree`, or the faster of both (`auto`, as NCCL chooses). Raises ValueError for another name."""
    if algorithm == "ring":
        return ring_ns(operation, size_bytes, ranks, network)
    if algorithm == "tree":
        return tree_ns(operation, size_bytes, ranks, network)
    if algorithm == "auto":
        return min(ring_ns(operation, size_bytes, ranks, network), tree_ns(operation, size_bytes, ranks, network))
    raise ValueError(f"algorithm={algorithm} is unknown; choose ring, tree or auto.")


def kind_of(name: str) -> Collective:
    """The collective that a kernel or trace name speaks of; all-reduce when it says none."""
    text = name.lower().replace("_", "").replace("-", "")
    for operation in Collective:
        if operation.value.replace("_", "") in text:
            return operation
    if "alltoall" in text:
        return Collective.ALL_TO_ALL
    # the kernel of both is called SendRecv: an all-to-all says so in its operator or its record
    point = "sendrecv" in text or _POINT.search(name.lower()) is not None
    return Collective.POINT_TO_POINT if point else Collective.ALL_REDUCE
