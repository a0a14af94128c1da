"""Runs in turns: each round runs every variant once, the next in reverse order, so that a drift of the machine hits all
alike. At least five rounds; more until the intervals are narrow or the time is up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from leadline._dataclass import dataclass, field, replace
from leadline.remedies.plan import Plan
from leadline.trials.equality import ROUNDING, Spread, bit_equal
from leadline.trials.judge import LEAST_ROUNDS, LEAST_TO_TELL, NARROW, change, computed_by, outcome
from leadline.trials.model import DIFFERENT, ScratchFull, TrialError
from leadline.trials.run import Run, run
from leadline.trials.scratch import Scratch
from leadline.trials.variant import Variant

_MOST_ROUNDS = 30
_PATIENCE = 6.0
_LEAST_S = 120.0

Tell = Callable[[str], None]


@dataclass
class Rounds:
    """`runs`: by variant, one for each round (None where it did not run); `refused`: why a variant was not applied."""

    variants: Sequence[Variant]
    plan: Plan
    runs: list[list[Run | None]]
    refused: list[str]
    spread: Spread = field(default_factory=Spread)
    seconds: list[float] = field(default_factory=list)
    interrupted: bool = False
    stopped: str = ""
    """Why no more rounds could run; empty where nothing stopped them."""
    out_of_time: bool = False
    left_out: set[int] = field(default_factory=set)
    """Variants that the time does not allow."""

    @property
    def base(self) -> list[Run | None]:
        return self.runs[0]

    @property
    def is_decided(self) -> bool:
        """No variant is left whose time could be compared."""
        others = range(1, len(self.variants))
        return bool(self.base) and all(
            self.refused[one] or one in self.left_out or _hopeless(self.runs[one]) for one in others
        )

    @property
    def number(self) -> int:
        return sum(one is not None and one.step_ns > 0 for one in self.base)


def take_turns(
    variants: Sequence[Variant],
    plan: Plan,
    scratch: Scratch,
    *,
    limit_s: float,
    least: int = LEAST_ROUNDS,
    tell: Tell,
) -> Rounds:
    """The first variant is the baseline. Ctrl-C ends it with the rounds so far. Raises TrialError where the baseline
    fails."""
    found = Rounds(variants, plan, [[] for _ in variants], [one.refused() for one in variants])
    until_s = time.monotonic() + limit_s
    try:
        while _goes_on(found, until_s, least):
            _one_round(found, scratch, until_s, tell)
        _disturbed(found, scratch, tell)
    except KeyboardInterrupt:
        found.interrupted = True
    except ScratchFull as error:
        if not found.number:
            raise
        found.stopped = str(error)
    return found


def _one_round(found: Rounds, scratch: Scratch, until_s: float, tell: Tell) -> None:
    number = len(found.base)
    order = list(range(len(found.variants)))
    for runs in found.runs:
        runs.append(None)
    for place in order if number % 2 == 0 else reversed(order):
        variant = found.variants[place]
        if found.refused[place] or place in found.left_out or (number and _hopeless(found.runs[place])):
            continue
        if time.monotonic() + _reserve_s(found) > until_s and number >= 1:
            found.out_of_time = True
            return
        tell(f"round {number + 1}: {variant.name}{_left(found, until_s)}")
        began = time.monotonic()
        longest = max(found.seconds, default=0.0)
        patience_s = min(_PATIENCE * longest, until_s - began)
        one = run(variant, found.plan, scratch, limit_s=max(patience_s, _LEAST_S))
        if one.step_ns:
            found.seconds.append(time.monotonic() - began)
        found.runs[place][number] = one
        if place == 0 and not one.step_ns:
            raise TrialError(failure(one, found.plan))
        if place == 0 and number == 0:
            _as_long_as(found, one)
            _leave_out(found, until_s)
        if place and number == 0:
            found.refused[place] = outcome(found.runs[place], variant)


def _as_long_as(found: Rounds, one: Run) -> None:
    """More steps were planned than the first run had looked for, and the program ends before."""
    if one.steps < found.plan.warm_up + found.plan.steps:
        found.plan = replace(found.plan, steps=one.steps - found.plan.warm_up)


def _leave_out(found: Rounds, until_s: float) -> None:
    """The last variants, where the time allows too few rounds of all: few with an answer are worth more than many
    without one."""
    runs = (until_s - time.monotonic()) / max(found.seconds[0], 1e-3)
    fit = int((runs - LEAST_TO_TELL + 1) / LEAST_TO_TELL)
    waiting = [place for place in range(1, len(found.variants)) if not found.refused[place]]
    found.left_out.update(waiting[max(fit, 1) :])


def failure(one: Run, plan: Plan) -> str:
    """Why a run without a change cannot be used, in a sentence, with the last lines of the program."""
    lines = "".join(f"\n    {line}" for line in one.tail)
    if any("EOFError" in line for line in one.tail):
        return f"The program reads from the terminal, which a trial does not have; its last lines:{lines}"
    if one.timed_out:
        return (
            f"The program did not reach step {plan.warm_up + plan.steps} in time; use a larger --limit or a smaller "
            f"--steps. Its last lines:{lines}"
        )
    if one.code:
        return f"The program failed with exit code {one.code} without any fix; its last lines:{lines}"
    if not one.steps:
        return (
            "The program has no step: no optimizer step, no batch of a DataLoader, no call of a module or a compiled "
            "program repeats. Call leadline.step() at the end of each step."
        )
    return f"The program ended after {one.steps} steps; {plan.warm_up + 4} are needed, or a smaller --warm-up."


def _goes_on(found: Rounds, until_s: float, least: int) -> bool:
    number = len(found.base)
    if found.out_of_time or number >= _MOST_ROUNDS or found.is_decided:
        return False
    left_s = until_s - time.monotonic() - _reserve_s(found)
    if number < least:
        return number < 2 or left_s > 0
    if _round_s(found) > left_s:
        return False
    return not all(
        _is_narrow(found, place)
        for place in range(1, len(found.variants))
        if not (found.refused[place] or place in found.left_out or _hopeless(found.runs[place]))
    )


def _is_narrow(found: Rounds, place: int) -> bool:
    known = change(found.base, found.runs[place], found.variants[place].samples)
    if known is None:
        return True
    half = (known.high - known.low) / 2
    decided = known.high < -0.002 or known.low > 0.002
    return half <= NARROW or (decided and half <= abs(known.median) / 4)


def _hopeless(runs: Sequence[Run | None]) -> bool:
    """It ran and gave no time: it would not the next time."""
    there = [one for one in runs if one is not None]
    return bool(there) and not any(one.step_ns for one in there)


def _round_s(found: Rounds) -> float:
    per_run = sorted(found.seconds)[len(found.seconds) // 2] if found.seconds else 0.0
    return per_run * sum(not reason and place not in found.left_out for place, reason in enumerate(found.refused))


def _reserve_s(found: Rounds) -> float:
    """For the runs that show how far apart equal computations may be, where they will be needed."""
    first = found.base[0] if found.base else None
    there = [runs[0] for runs in found.runs[1:] if runs and runs[0] is not None and runs[0].step_ns]
    if first is None or all(bit_equal(first, one) for one in there):
        return 0.0
    return 2 * sorted(found.seconds)[len(found.seconds) // 2]


def _left(found: Rounds, until_s: float) -> str:
    left = until_s - time.monotonic()
    return f", at most {left:.0f} s left" if found.seconds and left > 0 else ""


def _disturbed(found: Rounds, scratch: Scratch, tell: Tell) -> None:
    """Runs of the baseline that show how far apart equal computations may be; only where a variant needs them."""
    base = [one for one in found.base if one is not None and one.step_ns]
    if not base:
        return
    repeats = tuple(one for one in base[1:] if not bit_equal(base[0], one))
    others = [
        (variant, next((one for one in runs if one is not None and one.step_ns), None))
        for variant, runs in zip(found.variants[1:], found.runs[1:], strict=True)
    ]
    apart = [(variant, one) for variant, one in others if one is not None and not bit_equal(base[0], one)]
    found.spread = Spread(repeats)
    if not apart:
        return
    kinds = {
        kind
        for variant, one in apart
        for kind in (variant.precision, str(one.record.get("precision", "float32")))
        if kind in ROUNDING
    }
    longest = max(_PATIENCE * max(found.seconds), _LEAST_S)
    rounded: list[Run] = []
    for kind in sorted(kinds | {"float32"}):
        tell(f"baseline with parameters changed by one rounding of {kind}, to measure the effect on the loss")
        one = run(found.variants[0], replace(found.plan, rounding=ROUNDING[kind]), scratch, limit_s=longest)
        if one.step_ns:
            rounded.append(replace(one, variant=kind))
    redrawn: list[Run] = []
    found.spread = Spread(repeats, tuple(rounded))
    if any(
        not variant.computes_else and computed_by(variant, base[0], one, found.spread).kind == DIFFERENT
        for variant, one in apart
    ):
        for number in (1, 2):
            tell("baseline with other random numbers, to measure the effect on the loss")
            one = run(found.variants[0], replace(found.plan, redraw=number), scratch, limit_s=longest)
            if not one.step_ns or bit_equal(base[0], one):
                break  # the program draws none
            redrawn.append(one)
    found.spread = Spread(repeats, tuple(rounded), tuple(redrawn))
