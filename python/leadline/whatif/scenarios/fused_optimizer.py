"""`fused_optimizer`: the whole weight update as one kernel (FusedAdam, torch.optim fused=True).

Daydream 5.1 removes all tasks of the update phase and inserts one GPU task as long as the removed compute kernels
together. That is the pessimistic end here. A fused kernel reads and writes each state once, so the expected time is the
removed time scaled by memory accesses: Adam needs 7 (read p, g, m, v; write p, m, v) where separate kernels need 18.

On a CPU most of the removed time may be the system's: it hands out the pages of every temporary tensor anew, and a
fused kernel has none. What stays is to bring the parameter, its gradient and its states into the cache and back, and
the arithmetic. Where operators go through the tensors one by one, those that change a parameter or a state in place do
just that: the first to touch one waits for memory, later ones find it in the cache and only calculate. So their time is
the expected one. Where they go through lists of tensors each of them waits for memory, and a fused step takes its share
of accesses of their time. The least is that share, the most all of the removed time, as above.
"""

from __future__ import annotations

import re

import numpy as np

from leadline.units import percent
from leadline.whatif.draws import Draw, Range, technique
from leadline.whatif.edits import launch_latency_ns, main_lane, on_lane, step_parts
from leadline.whatif.elementwise import changing_ns, first_operand_bytes, in_place_nanoseconds_per_byte
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.model import ACCUMULATE, work_ns
from leadline.whatif.scenarios.base import Applied, Scenario, ScenarioError, Values, count
from leadline.whatif.scenarios.optimizers import Algorithm, algorithm_of
from leadline.whatif.selftime import PYTHON, SelfTimes


class FusedOptimizer(Scenario):
    """Removes the update phase and inserts one call and one kernel per step."""

    name = "fused_optimizer"
    advice = "use the fused optimizer (fused=True)"

    def applicable(self, graph: Graph, values: Values) -> str | None:
        update = _update(graph)
        if not update:
            return (
                "no task of the window belongs to the weight update (record a whole step, with the optimizer's marks)"
            )
        if any(
            re.search(r"fused_?(adam|sgd|adagrad|lamb)", graph.names[row], re.IGNORECASE)
            for row in _names(graph, update)
        ):
            return "the optimizer is fused already"
        found = algorithm_of(graph, update)
        return found if isinstance(found, str) else None

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        algorithm = algorithm_of(graph, _update(graph))
        if isinstance(algorithm, str):
            raise ScenarioError(f"fused_optimizer: {algorithm}.")
        traffic_range = technique("fused_optimizer_traffic", larger_is_faster=False)
        traffic = traffic_range.at(draw)
        least = min(1.0, algorithm.fused / algorithm.separate * traffic)
        scale = Range(least, least, 1.0, name="fused_optimizer_traffic").at(draw)
        per_tensor = technique("fused_optimizer_tensor_ns", larger_is_faster=False).at(draw)
        per_call = technique("fused_optimizer_call_ns", larger_is_faster=False).at(draw)
        by_bytes = False
        removed_gpu = removed_cpu = 0
        per_byte: float | None = None
        gone = Selection([])
        for step, rank, tasks in step_parts(graph, _update(graph)):
            device = tasks & graph.select(kind=TaskKind.GPU)
            host = _between_operators(graph, tasks - device)
            tensors = len(graph.select(name=ACCUMULATE, step=step, rank=rank))
            bookkeeping = int(per_call + per_tensor * tensors)
            moved_ns = None
            if not device:
                per_byte = in_place_nanoseconds_per_byte(graph, host)
                moved_ns = _moving_ns(graph, host, algorithm, per_byte)
            if moved_ns is not None:
                by_bytes = True
                own_ns = _own_ns(graph, host)
                stays_ns = min(max(moved_ns, 0.0 if _in_lists(graph, host) else changing_ns(graph, host)), own_ns)
                fastest = min(moved_ns * traffic_range.optimistic, stays_ns)
                moved_ns = Range(fastest, stays_ns, own_ns, name="fused_optimizer_traffic").at(draw)
            _stand_in(graph, device, host, scale, bookkeeping, step, moved_ns)
            gone = gone | device | host
            removed_gpu, removed_cpu = removed_gpu + len(device), removed_cpu + len(host)
        graph.remove(gone)
        if per_byte is not None and draw.hopeful("cpu_cache_relief"):
            _clear_at(graph, per_byte)
        relief = technique("cpu_cache_relief", larger_is_faster=False).at(draw)
        if by_bytes and relief != 1:
            graph.scale(graph.select(kind=TaskKind.CPU, phase=(Phase.FORWARD, Phase.BACKWARD)), relief, gaps=True)
        where = "removed kernels" if removed_gpu else "removed operators"
        cost = (
            f"one fused step takes {percent(scale)} of the {where}' time: {algorithm.name} moves "
            f"{algorithm.fused} values "
            f"per parameter instead of {algorithm.separate}; the high end is Daydream's estimate, all of it"
        )
        if by_bytes:
            cost = (
                f"one fused step moves {algorithm.fused} values per parameter ({algorithm.name}) instead of "
                f"{algorithm.separate} and makes no temporary tensors: it takes as long as the operators that change "
                "parameters and states in place, in the low end as its share of accesses at their speed, in the high "
                "end as long as all operators. Forward and backward stay; in the low end they find more of their data "
                "in the cache and clear memory faster"
            )
        assumptions = (cost, "Python enters the optimizer and collects parameters as before, and launches once")
        return Applied(graph, assumptions, count(removed_kernels=removed_gpu, removed_calls=removed_cpu))


def _clear_at(graph: Graph, per_byte: float) -> None:
    """Let clearing memory take what writing it takes: without temporary tensors an allocator may keep what it has, and
    the system need not hand out the pages of the gradients anew."""
    clears = graph.select(name=r"^aten::(fill|zero)_$", kind=TaskKind.CPU)
    times = SelfTimes(graph)
    own = np.maximum(times.total_ns()[clears.ids], 1)
    least = np.array([first_operand_bytes(graph, task) * per_byte for task in clears])
    times.scale(clears, np.where(least > 0, np.minimum(least / own, 1.0), 1.0))


def _moving_ns(graph: Graph, host: Selection, algorithm: Algorithm, per_byte: float | None) -> float | None:
    """Time to move what a fused step moves, at the speed of the update's in-place operators; None where the trace has
    no shapes or no tensor that is large enough to tell."""
    once = host & graph.select(name=rf"^aten::(_foreach_)?{algorithm.once}$")
    parameters = sum(first_operand_bytes(graph, task) for task in once)
    return None if per_byte is None or not parameters else algorithm.fused * parameters * per_byte


def _in_lists(graph: Graph, host: Selection) -> bool:
    """Whether each operator of the update goes through all tensors before the next one does."""
    return bool(host & graph.select(name=r"^aten::_foreach_"))


def _own_ns(graph: Graph, host: Selection) -> float:
    """What the operators of an update take themselves, without the Python between them."""
    python = graph.select(name=f"^{re.escape(PYTHON)}$")
    return float(SelfTimes(graph).total_ns()[(host - python).ids].sum())


def _stand_in(
    graph: Graph,
    device: Selection,
    host: Selection,
    scale: float,
    bookkeeping_ns: int,
    step: int,
    moving_ns: float | None,
) -> None:
    """One call and one kernel for the update tasks of one step, behind the last of them."""
    duration = graph.column("duration_ns")
    if not host:
        stream = main_lane(graph, device)
        last = int(on_lane(graph, device, stream)[-1])
        total = int(duration[device.ids].sum() * scale)
        graph.insert("fused optimizer", TaskKind.GPU, stream, total, after=last, phase=Phase.OPTIMIZER, step=step)
        return
    thread = main_lane(graph, host)
    last = int(on_lane(graph, host, thread)[-1])
    host_total = work_ns(graph, host)
    if device:
        call_ns = min(bookkeeping_ns, host_total)
        call = graph.insert(
            "fused optimizer", TaskKind.CPU, thread, call_ns, after=last, phase=Phase.OPTIMIZER, step=step
        )
        stream = main_lane(graph, device)
        anchor = int(on_lane(graph, device, stream)[-1])
        total = int(duration[device.ids].sum() * scale)
        latency = launch_latency_ns(graph)
        graph.insert(
            "fused optimizer", TaskKind.GPU, stream, total, after=anchor, launch=call, latency_ns=latency,
            phase=Phase.OPTIMIZER, step=step,
        )  # fmt: skip
    else:
        work = int(_own_ns(graph, host) * scale if moving_ns is None else moving_ns)
        call_ns = min(bookkeeping_ns + work, host_total)
        graph.insert("fused optimizer", TaskKind.CPU, thread, call_ns, after=last, phase=Phase.OPTIMIZER, step=step)


def _between_operators(graph: Graph, host: Selection) -> Selection:
    """The CPU's part of an update without the Python before its first and behind its last operator: what enters the
    optimizer, collects its parameters and leaves it again is the same for a fused one."""
    ids = host.ids[np.argsort(graph.column("order")[host.ids], kind="stable")]
    python = np.isin(ids, graph.select(name=f"^{re.escape(PYTHON)}$").ids)
    working = np.flatnonzero(~python)
    return Selection(ids[working[0] : working[-1] + 1]) if working.size else host


def _update(graph: Graph) -> Selection:
    return graph.select(phase=Phase.OPTIMIZER, kind=(TaskKind.GPU, TaskKind.CPU))


def _names(graph: Graph, tasks: Selection) -> set[int]:
    return set(graph.column("name")[tasks.ids].tolist()) | set(graph.column("operator")[tasks.ids].tolist())
