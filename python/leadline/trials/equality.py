"""Whether two runs computed the same: the values given to `backward()`, step by step, and the parameters at the end.

Equal to the bit, or as far apart as the baseline is from itself: repeated, with its parameters changed by one rounding
at the start, and with other random numbers (another layout, or a compiler, draws them in another order).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from leadline._dataclass import dataclass
from leadline.trials.model import DIFFERENT, EQUAL, UNKNOWN, WITHIN_SPREAD, Equality
from leadline.trials.run import Run
from leadline.units import percent, size

ROUNDING = {"float32": 2.0**-23, "bfloat16": 2.0**-8, "float16": 2.0**-11}
"""Relative size of one rounding."""
_ROUNDINGS = 16
"""Of a value that many operations make, so many roundings are nothing to speak of; in coarse types four are."""
_NORMS = 1e-9
_TIMES = 5.0
"""One disturbed run shows how far such runs lie apart, not how far they may."""
_TIMES_REDRAWN = 2.0
_TIMES_LENGTH = 3.0
_LARGE = 0.01
"""Rounding alone hardly makes so large a difference in some dozen steps."""
_LEAST_LENGTH = 0.05
"""How far training moves the parameters hardly depends on its random numbers: a learning rate shows there."""


@dataclass(frozen=True)
class Spread:
    """Runs of the baseline: repeated, disturbed by one rounding (`variant` is of which type), with other random
    numbers."""

    repeats: tuple[Run, ...] = ()
    rounded: tuple[Run, ...] = ()
    redrawn: tuple[Run, ...] = ()


def bit_equal(base: Run, other: Run) -> bool:
    """All values, and all bits of the parameters, or of those that are compared."""
    if base.record.get("digest", "") != other.record.get("digest", "") or not _same_norms(base, other):
        return False
    return bool(base.values or base.record.get("digest")) and _same(base.values, other.values)


def equality(base: Run, other: Run, spread: Spread, precision: str) -> Equality:
    """`precision`: the coarsest type that the change brings."""
    last = other.values[-1][1] if other.values else None
    if not base.values and not base.record.get("digest"):
        return Equality(UNKNOWN, "the program calls neither backward() nor a compiled program, so nothing is compared")
    if bit_equal(base, other):
        return Equality(EQUAL, _equal(base), last)
    if len(base.values) != len(other.values):
        return Equality(
            DIFFERENT,
            f"calls backward() {len(other.values)} times in {other.steps} steps, the baseline "
            f"{len(base.values)} times in {base.steps}",
            last,
        )
    if not base.values and _apart(base, other) is None:
        return Equality(UNKNOWN, "its results differ in some bits, and have no numbers to measure by how much", last)
    equals = (*spread.repeats, *(one for one in spread.rounded if one.variant in ("float32", precision)))
    step, apart = _first_beyond(base, other, equals, _TIMES, precision)
    moved, allowed = _movement(base, other, equals, _TIMES, precision)
    if step < 0 and moved <= allowed:
        return Equality(WITHIN_SPREAD, _near(base, other), last)
    apart_in_all = max(moved, _worst(base, other))
    if all(bit_equal(base, one) for one in (*equals, *spread.redrawn)) and apart_in_all < _LARGE:
        said = f"differs by at most {percent(apart_in_all)}; what rounding alone does here is not known"
        return Equality(UNKNOWN, said, last)
    if spread.redrawn:
        again, _ = _first_beyond(base, other, (*spread.repeats, *spread.redrawn), _TIMES_REDRAWN, precision, True)
        moved_again, allowed_again = _movement(base, other, spread.redrawn, _TIMES_REDRAWN, precision)
        if again < 0 and moved_again <= allowed_again and _is_as_far(base, other, spread.redrawn):
            return Equality(WITHIN_SPREAD, "as the baseline with other random numbers", last)
    if step < 0:
        return Equality(DIFFERENT, f"its parameters differ by {percent(moved)} of what training changed in them", last)
    return Equality(DIFFERENT, f"{apart} from step {step} on{_at_end(base, other)}", last, step)


def _same(a: Sequence[tuple[int, float]], b: Sequence[tuple[int, float]]) -> bool:
    return len(a) == len(b) and all(
        one == two or (math.isnan(one) and math.isnan(two)) for (_, one), (_, two) in zip(a, b, strict=True)
    )


def _same_norms(base: Run, other: Run) -> bool:
    """Of parameters that are too large to be compared whole; sums of other threads end in other bits."""
    ours, theirs = base.record.get("norms", ()), other.record.get("norms", ())
    return len(ours) == len(theirs) and bool(np.allclose(ours, theirs, rtol=_NORMS, atol=0.0, equal_nan=True))


def _equal(base: Run) -> str:
    if "norms" not in base.record:
        return "bitwise identical"
    record = base.record
    return (
        f"bitwise identical in {record['compared']:,} of {record['parameters']:,} parameters, and in the norm of each "
        f"tensor; {size(record['bytes'])} are too much to compare whole"
    )


def _floor(precision: str) -> float:
    return ROUNDING[precision] * (_ROUNDINGS if precision == "float32" else 4)


def _first_beyond(
    base: Run, other: Run, references: Sequence[Run], times: float, precision: str, redrawn: bool = False
) -> tuple[int, str]:
    """The first step whose value is further from the baseline's than the references are, and in which way; -1: none.
    Rounding grows from step to step; other random numbers lie as far apart in the first step as in the last."""
    ours = np.array([value for _, value in base.values])
    if not len(ours):
        return -1, ""
    theirs = np.array([value for _, value in other.values])
    allowed = np.abs(ours) * _floor(precision)
    for one in references:
        if len(one.values) == len(ours):
            distance = np.abs(np.array([value for _, value in one.values]) - ours)
            distance = np.nan_to_num(distance)
            usual = np.maximum.accumulate(distance) if not redrawn else np.maximum(distance, np.quantile(distance, 0.9))
            allowed = np.maximum(allowed, times * usual)
    both_nan = np.isnan(ours) & np.isnan(theirs)
    with np.errstate(invalid="ignore"):
        beyond = ~(np.abs(theirs - ours) <= allowed) & ~both_nan
    if not beyond.any():
        return -1, ""
    first = int(np.argmax(beyond))
    way = "not a number" if math.isnan(theirs[first]) else "a different loss"
    return base.values[first][0], way


def _movement(base: Run, other: Run, references: Sequence[Run], times: float, precision: str) -> tuple[float, float]:
    """How far apart the parameters end, as a share of how far the baseline moved them; and how far they may."""
    found = _apart(base, other)
    if found is None or base.end is None:
        return 0.0, 0.0
    moved = _length(base.begin, base.end)
    rounding = _floor(precision) * float(np.linalg.norm(np.asarray(base.end))) / moved if moved else math.inf
    others = [apart for one in references if (apart := _apart(base, one)) is not None]
    return found, max([rounding, *(times * one for one in others)])


def _is_as_far(base: Run, other: Run, references: Sequence[Run]) -> bool:
    """Whether training moved the parameters as far in all as it moves the baseline's with other random numbers."""
    lengths = [_length(one.begin, one.end) for one in (base, other, *references) if one.begin and one.end]
    if len(lengths) < 2 + len(references) or not lengths[0]:
        return True
    ours, *others = (abs(one / lengths[0] - 1) for one in lengths[1:])
    return ours <= max(_TIMES_LENGTH * max(others), _LEAST_LENGTH)


def _apart(base: Run, other: Run) -> float | None:
    if base.end is None or other.end is None or base.begin is None or len(base.end) != len(other.end):
        return None
    moved = _length(base.begin, base.end)
    apart = _length(base.end, other.end)
    return apart / moved if moved else (0.0 if apart == 0 else math.inf)


def _length(a: object, b: object) -> float:
    return float(np.linalg.norm(np.asarray(b) - np.asarray(a)))


def _worst(base: Run, other: Run) -> float:
    """The largest distance of two values, as a share of the baseline's; without end where one is no number."""
    pairs = zip(base.values, other.values, strict=True)
    return max((abs(b - a) / abs(a) if b == b else math.inf for (_, a), (_, b) in pairs if a and a == a), default=0.0)


def _near(base: Run, other: Run) -> str:
    worst = _worst(base, other)
    return f"as the baseline, at most {percent(worst)} apart" if worst else "as the baseline"


def _at_end(base: Run, other: Run) -> str:
    a, b = base.values[-1][1], other.values[-1][1]
    if not (math.isfinite(a) and math.isfinite(b)):
        return f"; {b:.4g} instead of {a:.4g} at the end"
    return f"; {b:.5g} instead of {a:.5g} at the end" + (f" ({percent(abs(b - a) / abs(a))} apart)" if a else "")
