"""From runs to rows: the change of time in pairs, what was computed, memory, and one verdict for each variant."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from leadline._dataclass import asdict
from leadline.compare.statistics import paired_change
from leadline.trials.equality import Spread, equality
from leadline.trials.model import (
    CANNOT_COMPARE,
    COMPUTES_ELSE,
    DIFFERENT,
    FAILED,
    FASTER,
    MEASURED,
    NO_DIFFERENCE,
    NOT_APPLIED,
    SLOWER,
    UNKNOWN,
    Change,
    Equality,
    Predicted,
    Row,
    has_held,
)
from leadline.trials.run import Run
from leadline.trials.variant import Variant
from leadline.units import percent

LEAST_ROUNDS = 5
LEAST_TO_TELL = 3
TOO_NOISY = 0.15
"""An interval that leaves open so large a change either way says nothing."""
NARROW = 0.01
"""Half an interval: narrow enough to stop."""


def baseline_row(variant: Variant, runs: Sequence[Run]) -> Row:
    first = runs[0]
    last = first.values[-1][1] if first.values else None
    return Row(
        variant.name,
        "baseline",
        "",
        statistics.median(one.step_ns for one in runs),
        equality=Equality("baseline", "", last),
        memory=memory(runs),
        first_steps_ns=float(first.record.get("before_ns", 0)),
    )


def change(base: Sequence[Run | None], other: Sequence[Run | None], samples: float = 1.0) -> Change | None:
    """Of rounds in which both sides ran; None where there is none."""
    ratios = [
        b.step_ns / samples / a.step_ns
        for a, b in zip(base, other, strict=False)
        if a is not None and b is not None and a.step_ns and b.step_ns
    ]
    if not ratios:
        return None
    return Change(*paired_change(ratios), len(ratios))


def noise(runs: Sequence[Run]) -> float:
    """Spread of the runs of one variant, as a share: half the width of the middle half."""
    times = [one.step_ns for one in runs if one.step_ns]
    if len(times) < 2:
        return 0.0
    low, _, high = statistics.quantiles(times, n=4, method="inclusive")
    return (high - low) / 2 / statistics.median(times)


def memory(runs: Sequence[Run]) -> dict[str, int]:
    """Median peak in bytes by what it is of: "process", and "tensors" on GPUs."""
    names = {name for one in runs for name in one.memory}
    return {name: int(statistics.median(one.memory.get(name, 0) for one in runs)) for name in sorted(names)}


def judged(
    variant: Variant,
    base: Sequence[Run | None],
    runs: Sequence[Run | None],
    spread: Spread,
    predicted: Predicted | None,
    refused: str,
) -> Row:
    """`refused`: why it was not applied."""
    there = [one for one in runs if one is not None]
    if refused:
        return Row(variant.name, NOT_APPLIED, f"not applied: {refused}", predicted=predicted, reason=refused)
    good = [one for one in there if one.step_ns]
    first_base = next((one for one in base if one is not None), None)
    if not good or first_base is None:
        return _without_time(variant, there, predicted)
    found = change(base, runs, variant.samples)
    computed = computed_by(variant, first_base, good[0], spread)
    verdict, sentence = _verdict(variant, found, computed)
    held = None
    if predicted is not None and found is not None and verdict in MEASURED:
        held = has_held(asdict(found), asdict(predicted))
    return Row(
        variant.name,
        verdict,
        sentence,
        statistics.median(one.step_ns for one in good) / variant.samples,
        found,
        computed,
        memory(good),
        predicted,
        held,
        first_steps_ns=float(good[0].record.get("before_ns", 0)),
    )


def outcome(runs: Sequence[Run | None], variant: Variant) -> str:
    """Why a remedy changed nothing, by what it said of itself in its first run; empty where it took effect."""
    for one in runs:
        if one is not None and one.outcomes:
            said = {title: reason for title, reason in one.outcomes.items() if reason}
            if len(said) == len(variant.remedies):
                return "; ".join(said.values())
            return ""
    return ""


def _without_time(variant: Variant, runs: Sequence[Run], predicted: Predicted | None) -> Row:
    last = runs[-1] if runs else None
    if last is None:
        return Row(variant.name, CANNOT_COMPARE, "cannot be compared: there was no time to run it", predicted=predicted)
    lines = "\n".join(last.tail)
    if last.timed_out:
        return Row(
            variant.name, CANNOT_COMPARE, "cannot be compared: it took too long", predicted=predicted, reason=lines
        )
    if last.code:
        return Row(variant.name, FAILED, f"failed with exit code {last.code}", predicted=predicted, reason=lines)
    said = f"it ended after {last.steps} steps" if last.steps else "no step of it was seen"
    return Row(variant.name, CANNOT_COMPARE, f"cannot be compared: {said}", predicted=predicted, reason=lines)


def computed_by(variant: Variant, base: Run, other: Run, spread: Spread) -> Equality:
    """Whether a run computed what the baseline did."""
    if variant.samples != 1:
        last = other.values[-1][1] if other.values else None
        return Equality(UNKNOWN, "batches differ, so losses are not compared", last)
    if base.steps != other.steps:
        return Equality(UNKNOWN, f"it ended after {other.steps} steps, the baseline after {base.steps}")
    kinds = (variant.precision, str(base.record.get("precision")), str(other.record.get("precision")))
    precision = next((kind for kind in kinds if kind in ("bfloat16", "float16")), "float32")
    return equality(base, other, spread, precision)


def _verdict(variant: Variant, found: Change | None, computed: Equality) -> tuple[str, str]:
    if computed.kind == DIFFERENT:
        why = f"on purpose ({variant.computes_else})" if variant.computes_else else computed.sentence
        return COMPUTES_ELSE, f"computes something else: {why}"
    if found is None:
        return CANNOT_COMPARE, "cannot be compared: no round has both it and the baseline"
    of = " a sample" if variant.samples != 1 else ""
    if found.rounds < LEAST_TO_TELL:
        return (
            CANNOT_COMPARE,
            f"cannot be compared: there was time for {found.rounds} of at least {LEAST_TO_TELL} rounds",
        )
    if found.high < 0:
        return FASTER, f"faster{of} by {_between(-found.high, -found.low)}"
    if found.low > 0:
        return SLOWER, f"slower{of} by {_between(found.low, found.high)}"
    if found.smallest > TOO_NOISY:
        return CANNOT_COMPARE, (
            f"cannot be compared: the machine is too noisy for changes below {percent(found.smallest)}"
        )
    return NO_DIFFERENCE, f"no difference{of} larger than {percent(found.smallest)}"


def _between(low: float, high: float) -> str:
    return f"{percent(low)} to {percent(high)}"
