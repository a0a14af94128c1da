"""The steps of a profile as a report shows them: one object, the same figures as every other verb."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline._dataclass import dataclass
from leadline.profiles import Profile
from leadline.steps import RankSteps, Steps
from leadline.steps.model import COUNTED
from leadline.steps.of_profile import steps_of
from leadline.units import counted, duration, number

_COLUMNS = (
    *("wall_ns", "running_ns", "core_wait_ns", "operator_ns", "backward_ns", "data_ns", "optimizer_ns"),
    *("compile_ns", "collection_ns", "saving_ns", "device_wait_ns"),
)


@dataclass(frozen=True)
class ShownSteps:
    """`mean_ns`: of a step, warm-up left out; `low_ns`, `high_ns`: where the mean lies in 19 cases of 20, -1 where
    nobody knows; `thirds_ns`: the mean of the first, middle and last third; `slowest`: single steps; `mean`: of a step
    by what was counted in it, -1 where that is not known. Times are 0 where no clock measured a step, `median_ns` and
    `p95_ns` also where only sums of them are kept."""

    number: int
    rests_on: str
    timed_by: str
    warm_up: int
    mean_ns: float
    low_ns: float
    high_ns: float
    median_ns: float
    p95_ns: float
    min_ns: int
    max_ns: int
    thirds_ns: tuple[float, ...]
    slowest: tuple[Mapping[str, int], ...]
    mean: Mapping[str, float]
    histogram: tuple[tuple[int, int], ...]
    """(bin, steps), as the table step_walls has them."""


def shown_steps(profile: Profile) -> ShownSteps | None:
    """None where nothing marks a step."""
    found = steps_of(profile)
    return _shown(found.main, found.mean_ns) if isinstance(found, Steps) else None


def _shown(one: RankSteps, mean_ns: float) -> ShownSteps:
    low, high = one.interval_ns
    recorded = one.recorded
    known = 0 < high < float("inf")
    return ShownSteps(
        number=one.number,
        rests_on=COUNTED.get(one.rests_on, one.rests_on),
        timed_by=one.timed_by,
        warm_up=one.warm_up,
        mean_ns=mean_ns,
        low_ns=low if known else -1.0,
        high_ns=high if known else -1.0,
        median_ns=one.median_ns,
        p95_ns=recorded.quantile_ns(0.95) if recorded is not None else 0.0,
        min_ns=one.min_ns,
        max_ns=one.max_ns,
        thirds_ns=tuple(part["wall_ns"] / part["count"] for part in recorded.thirds) if recorded is not None else (),
        slowest=tuple(
            {"number": step["first"], **{name: step[name] for name in _COLUMNS}} for step in recorded.rows.slowest
        )
        if recorded is not None
        else (),
        mean={name: recorded.mean_of(name) for name in _COLUMNS[1:]} if recorded is not None else {},
        histogram=tuple(sorted(recorded.rows.walls.items())) if recorded is not None else (),
    )


def as_json(steps: ShownSteps | None) -> dict[str, Any] | None:
    """As the report's JSON has it."""
    if steps is None:
        return None
    return {
        **vars(steps),
        "thirds_ns": list(steps.thirds_ns),
        "slowest": [dict(one) for one in steps.slowest],
        "mean": dict(steps.mean),
        "histogram": [list(one) for one in steps.histogram],
    }


def sentences(steps: ShownSteps) -> list[str]:
    """Lines of text; none where no clock measured a step."""
    if not steps.mean_ns:
        return []
    within = f" (95 % interval {duration(steps.low_ns)} to {duration(steps.high_ns)})" if steps.low_ns >= 0 else ""
    warm = f"; {number(steps.warm_up)} of warm-up left out" if steps.warm_up else ""
    lines = [
        f"{counted(steps.number, 'step')} ({steps.rests_on} were counted): mean {duration(steps.mean_ns)}{within}{warm}"
    ]
    spread = [f"min {duration(steps.min_ns)}", f"max {duration(steps.max_ns)}"]
    if steps.median_ns:  # of batches and calls only sums are kept
        spread.insert(0, f"median {duration(steps.median_ns)}")
    if steps.p95_ns:
        spread.insert(1, f"95 % within {duration(steps.p95_ns)}")
    lines.append(", ".join(spread))
    if len(steps.thirds_ns) == 3:
        lines.append(f"first, middle and last third: {', '.join(duration(one) for one in steps.thirds_ns)}")
    slow = [one for one in steps.slowest if one["wall_ns"] > 1.5 * steps.median_ns][:3]
    if slow:
        lines.append("slowest: " + ", ".join(f"step {one['number']} ({duration(one['wall_ns'])})" for one in slow))
    return lines
