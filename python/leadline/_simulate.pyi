from typing import Any

from numpy.typing import NDArray

def run(
    lane: NDArray[Any],
    duration_ns: NDArray[Any],
    gap_ns: NDArray[Any],
    earliest_ns: NDArray[Any],
    group: NDArray[Any],
    priority: NDArray[Any],
    next_on_lane: NDArray[Any],
    launches: NDArray[Any],
    pending: NDArray[Any],
    initial: NDArray[Any],
    discipline: NDArray[Any],
    edge_offset: NDArray[Any],
    edge_dst: NDArray[Any],
    edge_type: NDArray[Any],
    edge_latency_ns: NDArray[Any],
    wait_offset: NDArray[Any],
    wait_lane: NDArray[Any],
    group_size: NDArray[Any],
    by_priority: bool,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], int]: ...
def flatten(
    alive: NDArray[Any],
    lane: NDArray[Any],
    order: NDArray[Any],
    discipline: NDArray[Any],
    edge_src: NDArray[Any],
    edge_dst: NDArray[Any],
    edge_type: NDArray[Any],
    edge_latency_ns: NDArray[Any],
    wait_task: NDArray[Any],
    wait_lane: NDArray[Any],
) -> tuple[
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
]: ...
def nesting(start: NDArray[Any], end: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]: ...
