"""Edits that several scenarios share, built from the graph's primitives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from leadline.whatif.collectives import Collective, kind_of
from leadline.whatif.draws import Draw
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import EdgeType, IntArray, LaneKind, Phase, Selection, TaskKind
from leadline.whatif.layerwork import in_lane_order

WAITING = (
    "only the transfer of a collective changes, not the wait for its last rank; from one rank's trace the transfer is "
    "known between nothing and all of it"
)


def calls_of(graph: Graph, device: Selection) -> Selection:
    """CPU tasks that exist only to launch this device work: the launches, and operators all of whose work it is."""
    edges = graph.edges
    launch = edges["type"] == EdgeType.LAUNCH
    alive = graph.alive
    source, target = edges["src"][launch], edges["dst"][launch]
    living = alive[source] & alive[target]
    source, target = source[living], target[living]
    chosen = device.mask(len(graph))[target]
    parent = graph.column("parent")
    total = np.zeros(len(graph), dtype=np.int64)
    ours = np.zeros(len(graph), dtype=np.int64)
    at, mine = source.copy(), chosen
    while at.size:
        total += np.bincount(at, minlength=total.size)
        ours += np.bincount(at[mine], minlength=ours.size)
        at = parent[at]
        up = at >= 0
        at, mine = at[up], mine[up]
    return Selection((ours > 0) & (ours == total) & alive & (graph.column("kind") == TaskKind.CPU))


def main_lane(graph: Graph, tasks: Selection) -> int:
    """The lane that holds most of the tasks."""
    lanes = graph.column("lane")[tasks.ids]
    return int(np.bincount(lanes).argmax())


def launcher_of(graph: Graph) -> IntArray:
    """For every task the first call that launches it, -1 for none; by task id."""
    launch = graph.edges["type"] == EdgeType.LAUNCH
    found = np.full(len(graph), -1, dtype=np.int64)
    found[graph.edges["dst"][launch][::-1]] = graph.edges["src"][launch][::-1]
    return found


def previous_on_lane(graph: Graph) -> IntArray:
    """For every living task the one before it on its lane, -1 for none; by task id."""
    ids = np.flatnonzero(graph.alive)
    ids = ids[np.lexsort((graph.column("order")[ids], graph.column("lane")[ids]))]
    same = graph.column("lane")[ids[1:]] == graph.column("lane")[ids[:-1]]
    found = np.full(len(graph), -1, dtype=np.int64)
    found[ids[1:][same]] = ids[:-1][same]
    return found


def on_lane(graph: Graph, tasks: Selection, lane: int) -> IntArray:
    """Those tasks that are on the lane, in order."""
    return in_lane_order(graph, Selection(tasks.ids[graph.column("lane")[tasks.ids] == lane]))


def launch_latency_ns(graph: Graph) -> int:
    """Typical time from the start of a launch to the start of its kernel on a free stream; 5 us without launches."""
    latency = graph.edges["latency_ns"][graph.edges["type"] == EdgeType.LAUNCH]
    return int(np.median(latency)) if latency.size else 5000


def launch_cost_ns(graph: Graph, fallback_ns: float) -> int:
    """Median CPU time of a launch call in this graph, gap included; `fallback_ns` when it has none."""
    launch = graph.edges["type"] == EdgeType.LAUNCH
    source = np.unique(graph.edges["src"][launch])
    if not source.size:
        return int(fallback_ns)
    return int(np.median(graph.column("duration_ns")[source] + np.maximum(graph.column("gap_ns")[source], 0)))


def cost_per_kernel_ns(graph: Graph) -> float:
    """CPU time that the framework spends per kernel of forward and backward in this trace, waiting left out.

    The dearest hundredth of the kernels is left out: before these a module was loaded or memory was taken from the
    driver, which another kernel would not do again.
    """
    region = (Phase.FORWARD, Phase.BACKWARD)
    calls = in_lane_order(graph, graph.select(kind=TaskKind.CPU, phase=region))
    kernels = graph.select(kind=TaskKind.GPU, phase=region)
    launches = graph.launchers_of(kernels).mask(len(graph))[calls]
    if not launches.any():
        return 0.0
    spent = graph.column("duration_ns")[calls] + np.maximum(graph.column("gap_ns")[calls], 0)
    until = np.cumsum(spent)[launches]
    each = np.sort(np.diff(until, prepend=0))
    kept = each[: max(1, int(each.size * 0.99))]
    return float(kept.sum()) / kept.size * each.size / len(kernels)


def operation_of(graph: Graph, task: int) -> Collective:
    """Which collective a task is: by what torch.distributed recorded, else by its operator and its name."""
    recorded = graph.detail(task).get("Collective name")
    if isinstance(recorded, str) and recorded:
        return kind_of(recorded)
    names, row = graph.names, graph.tasks
    return kind_of(f"{names[row['operator'][task]]} {names[row['name'][task]]}")


def transfer_ns(graph: Graph, collectives: Selection, draw: Draw, *, cautious: bool = True) -> NDArray[np.float64]:
    """The part of each collective in which data moves; the rest is waiting for other ranks and depends on them.

    Where all ranks are loaded, and for inserted collectives, that is all of it. In one rank's trace only the shortest
    of the same kind and size has certainly not waited longer than it moved: it is the expectation for all of them, the
    optimistic end takes everything for transfer, the pessimistic end nothing (not below the expectation without
    `cautious`).
    """
    duration = graph.column("duration_ns")[collectives.ids].astype(np.float64)
    traced = graph.column("start_ns")[collectives.ids] >= 0
    if len({lane.rank for lane in graph.lanes}) > 1 or graph.info.world_size <= 1:
        return duration
    keys = np.stack((graph.column("name")[collectives.ids], graph.column("bytes")[collectives.ids]), axis=1)
    _, which = np.unique(keys, axis=0, return_inverse=True)
    shortest = np.full(int(which.max(initial=-1)) + 1, np.inf)
    np.minimum.at(shortest, which.reshape(-1), duration)
    place = draw.place("collective transfer")
    certain = shortest[which.reshape(-1)]
    if place <= 0.5:
        certain = duration + (certain - duration) * place * 2
    elif cautious:
        certain = certain * (1 - place) * 2
    result: NDArray[np.float64] = np.where(traced, certain, duration)
    return result


def scale_transfers(
    graph: Graph, collectives: Selection, factor: float | NDArray[np.float64], draw: Draw, *, fixed_ns: float = 0.0
) -> None:
    """Multiply the transfers of collectives; waiting stays, and so do `fixed_ns` of each, its hops."""
    moving = np.maximum(transfer_ns(graph, collectives, draw) - fixed_ns, 0.0)
    duration = graph.column("duration_ns")[collectives.ids]
    graph.set_duration(collectives, np.rint(duration - moving * (1 - np.asarray(factor))).astype(np.int64))


def step_parts(graph: Graph, tasks: Selection) -> Iterator[tuple[int, int, Selection]]:
    """(step, rank, tasks of that step and rank), ordered."""
    step = graph.column("step")[tasks.ids]
    rank = graph.rank_of_tasks()[tasks.ids]
    for pair in np.unique(np.stack((step, rank), axis=1), axis=0).tolist():
        yield pair[0], pair[1], Selection(tasks.ids[(step == pair[0]) & (rank == pair[1])])


def stream_runs(graph: Graph, tasks: Selection) -> Iterator[IntArray]:
    """Maximal runs of the chosen tasks that follow one another on a lane, within one step and phase."""
    living = graph.alive
    chosen = tasks.mask(len(graph))
    lane, order = graph.column("lane"), graph.column("order")
    step, phase = graph.column("step"), graph.column("phase")
    streams = [at for at, item in enumerate(graph.lanes) if item.kind == LaneKind.STREAM]
    for stream in streams:
        ids = np.flatnonzero(living & (lane == stream))
        ids = ids[np.argsort(order[ids], kind="stable")]
        if not ids.size:
            continue
        same = (step[ids][1:] == step[ids][:-1]) & (phase[ids][1:] == phase[ids][:-1])
        linked = chosen[ids][1:] & chosen[ids][:-1] & same
        for run in np.split(ids, np.flatnonzero(~linked) + 1):
            if chosen[run[0]]:
                yield run


def optimizer_starts(graph: Graph) -> dict[int, list[int]]:
    """By step, the first task of the weight update on each lane of the devices, of the CPU where there is none."""
    update = graph.select(phase=Phase.OPTIMIZER, kind=TaskKind.GPU)
    update = update or graph.select(phase=Phase.OPTIMIZER, kind=TaskKind.CPU)
    ids = in_lane_order(graph, update)
    first: dict[tuple[int, int], int] = {}
    for task, step, lane in zip(
        ids.tolist(), graph.column("step")[ids].tolist(), graph.column("lane")[ids].tolist(), strict=True
    ):
        first.setdefault((step, lane), task)
    found: dict[int, list[int]] = {}
    for (step, _), task in first.items():
        found.setdefault(step, []).append(task)
    return found
