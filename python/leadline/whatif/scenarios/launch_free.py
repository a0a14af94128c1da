"""`launch_free`: kernels of a step replayed as CUDA graphs (torch.compile mode="reduce-overhead", torch.cuda.graphs).

The CPU tasks that launch kernels go away; one graph launch per stretch between two synchronisations takes their place.
"""

from __future__ import annotations

import re

import numpy as np

from leadline.units import percent
from leadline.whatif.draws import Draw, technique
from leadline.whatif.edits import launch_latency_ns
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelTable, is_device_copy
from leadline.whatif.kinds import EdgeType, IntArray, Phase, Selection, TaskKind
from leadline.whatif.layerwork import in_lane_order
from leadline.whatif.scenarios.base import Applied, Scenario, Values, count, makers_words
from leadline.whatif.selftime import PYTHON
from leadline.work.kernels import KernelClass

_LONG_NS, _LONG = 1_000_000, 20.0  # and as many times the usual
_MOST_CHANGING = 0.05
"""Share of operators with changing shapes from which on a step is no static one."""


class LaunchFree(Scenario):
    """Replaces launching calls by graph launches; synchronisations, copies to and from the host, and loading stay."""

    name = "launch_free"
    advice = "replay the step as CUDA graphs (torch.compile with mode='reduce-overhead')"

    def applicable(self, graph: Graph, values: Values) -> str | None:
        kernels = _capturable(graph)
        if not kernels:
            return "no kernel of the trace is launched by a call in it"
        share = _changing_share(graph, kernels)
        if share > _MOST_CHANGING:
            return makers_words(
                graph,
                f"the shapes of {percent(share)} of the operators change from step to step, "
                "which a CUDA graph cannot follow",
            )
        return None

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        launch_ns = int(technique("graph_launch_ns", larger_is_faster=False).at(draw))
        gap_ns = int(technique("graph_gap_ns", larger_is_faster=False).at(draw))
        breaks = technique("graph_breaks", larger_is_faster=False).at(draw)
        kernels = _capturable(graph)
        latency = launch_latency_ns(graph)
        gone: list[int] = []
        segments = _segments(graph, kernels)
        order = graph.column("order").copy()
        previous: list[tuple[float, int]] = []
        for calls in segments:
            launched = kernels & graph.launched_by(Selection(calls))
            first = calls[0]
            step, phase = int(graph.column("step")[first]), Phase(int(graph.column("phase")[first]))
            lane = int(graph.column("lane")[first])
            spent = graph.column("duration_ns")[calls] + np.maximum(graph.column("gap_ns")[calls], 0)
            call_ns = launch_ns + int(spent.sum() * breaks)
            replay = graph.insert("graph launch", TaskKind.CPU, lane, call_ns, after=first, phase=phase, step=step)
            graph.disconnect(EdgeType.LAUNCH, launched)
            for task in launched:
                graph.connect(replay, task, EdgeType.LAUNCH, latency)
            # a graph spaces its kernels itself: pauses that the stream had while it was busy are gone too
            graph.set_gap(launched, np.full(len(launched), gap_ns))
            previous.append((float(order[first]), replay))
            gone += calls
        graph.remove(Selection(gone))
        _keep_order(graph, previous)
        return Applied(
            graph,
            (
                f"one graph launch of {launch_ns / 1000:g} µs between two synchronisations replaces all launches",
                f"{percent(breaks)} of the replaced host time stays (guards, graph breaks, copying of inputs)",
                f"kernels of a graph follow one another after {gap_ns / 1000:g} µs",
                "shapes are static and nothing inside the step needs the CPU; synchronisations and host copies stay",
            ),
            count(kernels=len(kernels), removed_calls=len(gone), graph_launches=len(segments)),
        )


def _changing_share(graph: Graph, kernels: Selection) -> float:
    """Share of the kernels whose operator has inputs of another shape than its counterpart in the step before; 0 where
    the trace has no shapes, or one step."""
    shaped = graph.shaped_operators()[kernels.ids]
    step, name = graph.column("step")[kernels.ids], graph.column("name")
    seen: dict[tuple[int, int], str] = {}
    count: dict[tuple[int, int], int] = {}
    told = changing = 0
    for operator, number in zip(shaped.tolist(), step.tolist(), strict=True):
        if operator < 0:
            continue
        key = (number, int(name[operator]))
        place = count[key] = count.get(key, 0) + 1
        shapes = str(graph.shapes(operator))
        before = seen.setdefault((key[1], place), shapes)
        told, changing = told + 1, changing + (before != shapes)
    return changing / told if told else 0.0


def _keep_order(graph: Graph, replays: list[tuple[float, int]]) -> None:
    """One thread replays the graphs one after another, and not before the calls that stay between them."""
    order, lane = graph.column("order"), graph.column("lane")
    stays = in_lane_order(graph, graph.select(kind=(TaskKind.CPU, TaskKind.DATA)) - Selection([t for _, t in replays]))
    positions = order[stays]
    threads = sorted(set(lane[stays].tolist()))
    for at, (position, replay) in enumerate(replays):
        if at and graph.lanes[int(lane[replay])].rank == graph.lanes[int(lane[replays[at - 1][1]])].rank:
            graph.connect(replays[at - 1][1], replay, EdgeType.THREAD)
        for thread in threads:
            mine = lane[stays] == thread
            before = int(np.searchsorted(positions[mine], position)) - 1
            if graph.lanes[thread].rank != graph.lanes[int(lane[replay])].rank:
                continue
            if thread != lane[replay] and before >= 0:
                graph.connect(int(stays[mine][before]), replay, EdgeType.THREAD)
            if thread != lane[replay] and before + 1 < int(mine.sum()):
                graph.connect(replay, int(stays[mine][before + 1]), EdgeType.THREAD)


def _capturable(graph: Graph) -> Selection:
    """Launched device work of the training phases, without copies between host and device and collectives."""
    table = KernelTable(graph)
    names = graph.column("name")
    host_copies = [t for t in table.all(KernelClass.COPY) if not is_device_copy(graph.names[names[t]])]
    launched = np.zeros(len(graph), dtype=np.bool_)
    launched[graph.edges["dst"][graph.edges["type"] == EdgeType.LAUNCH]] = True
    loading = graph.select(phase=Phase.DATA_LOADING)
    return (Selection(launched) & table.device) - Selection(host_copies) - table.all(KernelClass.COLLECTIVE) - loading


def _long_python(graph: Graph) -> IntArray:
    """Python that runs so much longer than it does between two launches that it is doing something else."""
    rows = graph.select(name=f"^{re.escape(PYTHON)}$").ids
    spent = graph.column("duration_ns")[rows]
    if not rows.size:
        return rows
    found: IntArray = rows[spent > max(_LONG_NS, _LONG * float(np.median(spent)))]
    return found


def _segments(graph: Graph, kernels: Selection) -> list[list[int]]:
    """Calls that one graph launch replaces, in order: all CPU tasks of a step between two that must stay."""
    launchers = graph.launchers_of(kernels)
    stays = np.zeros(len(graph), dtype=np.bool_)
    stays[graph.waits["task"]] = True
    stays[graph.edges["dst"][graph.edges["type"] == EdgeType.SYNC]] = True
    others = KernelTable(graph).device - kernels
    stays[graph.launchers_of(others).ids] = True
    cpu = graph.select(kind=(TaskKind.CPU, TaskKind.DATA))
    stays[graph.select(kind=TaskKind.DATA).ids] = True
    launcher = launchers.mask(len(graph))
    stays[_long_python(graph)] = True
    step = graph.column("step")
    found: list[list[int]] = []
    current: list[int] = []
    rank = graph.rank_of_tasks()
    ordered = in_lane_order(graph, cpu)
    ordered = ordered[np.argsort(rank[ordered], kind="stable")]
    for task in ordered.tolist():
        if current and rank[task] != rank[current[0]]:
            found.append(current)
            current = []
        if stays[task] or (current and step[task] != step[current[0]]):
            found.append(current)
            current = []
        if not stays[task]:
            current.append(task)
    found.append(current)
    result = []
    for calls in found:
        positions = [at for at, task in enumerate(calls) if launcher[task]]
        if positions:
            result.append(calls[positions[0] : positions[-1] + 1])
    return result
