"""The row of steps of a summary where no side file of a training loop tells them: as every other verb counts them."""

from __future__ import annotations

from leadline.report.training.model import Steps
from leadline.steps import RankSteps

NONE = Steps(0, 0, None, None, (), 0.0, 0.0, 0.0, 0, 0, 0.0, 0)


def steps_row(one: RankSteps, mean_ns: float, recorded: tuple[int, ...]) -> Steps:
    """`mean_ns`: of a step of the whole job, where ranks are one; `recorded`: numbers of those in a trace window."""
    numbers = _numbers(one, recorded)
    if one.walls_ns:
        ordered = sorted(one.walls_ns)
        p95 = float(ordered[min(int(0.95 * len(ordered)), len(ordered) - 1)])
    else:
        p95 = one.recorded.quantile_ns(0.95) if one.recorded is not None else 0.0
    return Steps(
        count=one.number,
        measured=one.number,
        first=numbers[0],
        last=numbers[1],
        recorded=recorded,
        mean_ns=mean_ns,
        median_ns=one.median_ns,
        p95_ns=p95,
        min_ns=one.min_ns,
        max_ns=one.max_ns,
        std_ns=one.deviation_ns,
        between_ns=0,
    )


def _numbers(one: RankSteps, recorded: tuple[int, ...]) -> tuple[int, int]:
    first = recorded[0] if recorded else 0
    if one.recorded is not None:
        first = min(first, one.recorded.rows.spans[0]["first"]) if recorded else one.recorded.rows.spans[0]["first"]
        first = max(first - max(one.number - one.recorded.count, 0), 0)  # those before it have no length
    return first, first + one.number - 1
