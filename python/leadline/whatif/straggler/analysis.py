"""From an operation trace to slowdown factors: overall, by worker, stage, kind of operation and step."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass

from . import operations as ops
from . import pipeline
from .jobgraph import job_graph
from .operations import FloatArray, OperationTrace

WORST_WORKERS_SHARE = 0.03
"""Share of the workers that `worst_workers` holds, rounded up (the paper's M_W)."""


@dataclass(frozen=True)
class Explanation:
    """How much of the slowdown some operations explain, measured from both ends."""

    removed_ns: float
    """Mean step time when these operations become ideal and the others stay as measured."""
    added_ns: float
    """Mean step time when these operations stay as measured and the others become ideal."""
    removed_share: float
    """Share of the slowdown that goes away when they become ideal."""
    added_share: float
    """Share of the slowdown that they cause alone."""


@dataclass(frozen=True)
class StragglerReport:
    """Times are nanoseconds per step, in the order of `steps`; a slowdown of 1 means no loss."""

    steps: tuple[int, ...]
    measured_ns: FloatArray
    replayed_ns: FloatArray
    """Simulated with measured durations and the unexplained delays before each operation."""
    simulated_ns: FloatArray
    """Simulated with measured durations, without those delays: the base of `slowdown`."""
    ideal_ns: FloatArray
    ideal_start_ns: FloatArray
    ideal_end_ns: FloatArray
    launch_slowdown: float
    slowdown: float
    slowdown_per_step: dict[int, float]
    by_dp_rank: dict[int, float]
    by_stage: dict[int, float]
    by_kind: dict[str, float]
    worker_slowdown: dict[int, float]
    """By global rank: the smaller of its stage's and its data-parallel rank's slowdown."""
    worst_workers: tuple[int, ...]
    last_stage: Explanation
    worst: Explanation

    @property
    def replay_error(self) -> float:
        """Signed: replayed / measured - 1."""
        return float(self.replayed_ns.mean() / self.measured_ns.mean() - 1)


def analyse(trace: OperationTrace) -> StragglerReport:
    """Computes every slowdown of the trace. Raises StragglerInputError when its operations contradict one another."""
    model = pipeline.build(trace)
    job = job_graph(trace, model)
    work = pipeline.transfer_ns(trace, model)
    ideal_work = _ideal(trace, work)
    step_time = job.step_ns
    simulated, ideal = step_time(work), step_time(ideal_work)
    ideal_start, ideal_end = job.times(ideal_work)

    def slowdown_of(mask: NDArray[np.bool_]) -> float:
        return float(step_time(np.where(mask, work, ideal_work)).mean() / ideal.mean())

    def explain(mask: NDArray[np.bool_]) -> Explanation:
        return _explain(mask, work, ideal_work, float(simulated.mean()), float(ideal.mean()), step_time)

    stage_of = np.array([op.stage for op in trace.operations])[:, None, None]
    kind_of = np.array([_reported_kind(op.kind) for op in trace.operations])[:, None, None]
    dp_of = np.arange(trace.dp_size)[None, None, :]
    by_dp = {rank: slowdown_of(np.broadcast_to(dp_of == rank, work.shape)) for rank in range(trace.dp_size)}
    by_stage = {stage: slowdown_of(np.broadcast_to(stage_of == stage, work.shape)) for stage in range(trace.pp_size)}
    by_kind = {str(kind): slowdown_of(np.broadcast_to(kind_of == kind, work.shape)) for kind in np.unique(kind_of)}
    workers = {
        int(trace.worker[stage, rank]): min(by_dp[rank], by_stage[stage])
        for stage in range(trace.pp_size)
        for rank in range(trace.dp_size)
    }
    ranked = sorted(workers, key=lambda worker: (-workers[worker], worker))
    worst = tuple(ranked[: math.ceil(len(ranked) * WORST_WORKERS_SHARE)])
    in_worst = np.isin(trace.worker[stage_of[:, :, 0], np.arange(trace.dp_size)[None, :]], worst)[:, None, :]
    return StragglerReport(
        steps=trace.steps,
        measured_ns=trace.step_time_ns,
        replayed_ns=job.step_ns(work, delays=True),
        simulated_ns=simulated,
        ideal_ns=ideal,
        ideal_start_ns=ideal_start,
        ideal_end_ns=ideal_end,
        launch_slowdown=float(trace.step_time_ns.mean() / simulated.mean()),
        slowdown=float(simulated.mean() / ideal.mean()),
        slowdown_per_step={step: float(ratio) for step, ratio in zip(trace.steps, simulated / ideal, strict=True)},
        by_dp_rank=by_dp,
        by_stage=by_stage,
        by_kind=by_kind,
        worker_slowdown=workers,
        worst_workers=worst,
        last_stage=explain(np.broadcast_to(stage_of == trace.pp_size - 1, work.shape)),
        worst=explain(np.broadcast_to(in_worst, work.shape)),
    )


def _ideal(trace: OperationTrace, work: FloatArray) -> FloatArray:
    """Mean of a computation's kind, median of a communication's kind (one slow link must not move the ideal)."""
    result = np.empty_like(work)
    for kind in {op.kind for op in trace.operations}:
        members = [i for i, op in enumerate(trace.operations) if op.kind == kind]
        result[members] = np.median(work[members]) if kind in ops.COMMUNICATION else work[members].mean()
    return result


def _reported_kind(kind: str) -> str:
    """Both ends of a transfer are reported as one: `forward-send` and `forward-recv` are `forward-pp-comm`."""
    return f"{kind.split('-')[0]}-pp-comm" if kind in ops.P2P else kind


def _explain(
    mask: NDArray[np.bool_],
    work: FloatArray,
    ideal_work: FloatArray,
    simulated_ns: float,
    ideal_ns: float,
    step_time: Callable[[FloatArray], FloatArray],
) -> Explanation:
    removed = float(step_time(np.where(mask, ideal_work, work)).mean())
    added = float(step_time(np.where(mask, work, ideal_work)).mean())
    lost = simulated_ns - ideal_ns
    if lost <= 0:
        return Explanation(removed, added, 0.0, 0.0)
    return Explanation(removed, added, (simulated_ns - removed) / lost, (added - ideal_ns) / lost)
