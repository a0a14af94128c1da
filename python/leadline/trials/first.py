"""The run before the first round: how many steps the program has and what marks them, what it does outside of its
directory, and, where it is measured, a profile that suggests remedies.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from leadline._dataclass import dataclass, replace
from leadline.remedies.borders import PROGRAM_CALLS
from leadline.remedies.plan import Plan
from leadline.trials.model import TrialError
from leadline.trials.rounds import failure
from leadline.trials.run import Run, run
from leadline.trials.scratch import Scratch
from leadline.trials.variant import Variant

LEAST_STEPS = 4
STEPS = 30
"""Timed in each run, where the user has not said how many."""
_ENOUGH_NS = 2e9
_MOST_STEPS = 400


@dataclass(frozen=True)
class First:
    """`plan`: for all runs that follow; `notes`: what the user should know before the first round; `profile`: None
    where the run was not measured."""

    run: Run
    plan: Plan
    notes: tuple[str, ...]
    profile: Path | None
    seconds: float

    @property
    def packages(self) -> tuple[str, ...]:
        """That the program has imported, of those that fixes are for: where its steps are calls of a compiled program,
        JAX alone."""
        imported = tuple(self.run.record.get("versions", {}))
        return tuple(one for one in imported if one != "torch" or self.plan.mark != PROGRAM_CALLS)


def first_run(
    variant: Variant,
    steps: int | None,
    warm_up: int,
    scratch: Scratch,
    *,
    measured: bool,
    limit_s: float,
    tell: Callable[[str], None],
) -> First:
    """`steps`: None for as many as are enough. Raises TrialError where the program has no steps, too few, or fails by
    itself."""
    asked, steps = steps, steps or STEPS
    plan = Plan("", steps, warm_up, look=True)
    profile = scratch.base / "first.leadline"
    began = time.monotonic()
    found: Run | None = None
    if measured:
        tell("first run, profiled, to find the steps and the fixes to try")
        found = run(variant, plan, scratch, limit_s=limit_s, measured=lambda argv: _measuring(profile, steps, argv))
    if found is None or not found.steps:
        tell("first run, to find the steps")
        found = run(variant, plan, scratch, limit_s=limit_s)
    if found.steps < warm_up + steps and (found.code or found.timed_out or not found.steps):
        raise TrialError(failure(found, plan))
    plan, notes = _fitting(plan, found)
    if asked is None and plan.steps == steps and found.step_ns:  # a mean over moments of a short step tells nothing
        plan = replace(plan, steps=min(max(steps, round(_ENOUGH_NS / found.step_ns)), _MOST_STEPS))
    return First(
        found,
        plan,
        (*notes, *_outside(found), *scratch.sentences),
        profile if measured and profile.exists() else None,
        time.monotonic() - began,
    )


def _measuring(profile: Path, steps: int, argv: Sequence[str]) -> list[str]:
    window = f"steps={min(steps, 5)},wait=5" if steps > 8 else "steps=2"
    ours = [sys.executable, "-m", "leadline", "run", "-q", "--shapes", "--trace", window, "-o", str(profile)]
    return [*ours, "--", *argv]


def _fitting(plan: Plan, found: Run) -> tuple[Plan, list[str]]:
    """The plan for a program that has fewer steps, by the mark that was found."""
    notes = []
    steps, warm_up = plan.steps, plan.warm_up
    if found.steps < steps + warm_up:
        warm_up = min(warm_up, max(found.steps // 3, 1))
        steps = found.steps - warm_up
        if steps < LEAST_STEPS:
            raise TrialError(
                f"The program ends after {found.steps} steps, too few to compare: it needs {LEAST_STEPS} after a "
                "warm-up of one. Let it train for longer."
            )
        notes.append(f"The program has {found.steps} steps: {steps} are timed, after a warm-up of {warm_up}.")
    if found.processes > 1:
        notes.append(f"{found.processes} ranks train; times are those of the slowest rank, memory is the sum.")
    program = str(found.record.get("facts", {}).get("program", ""))
    return replace(
        plan, steps=steps, warm_up=warm_up, mark=str(found.record["mark"]), program=program, look=False
    ), notes


def _outside(found: Run) -> list[str]:
    notes = []
    ports, files = found.record.get("ports", ()), found.record.get("outside", ())
    if ports:
        notes.append(f"The program opens port {', '.join(ports)} in each run.")
    if found.left:
        one = len(found.left) == 1
        which = f"{'a process' if one else 'processes'} running ({', '.join(found.left[:3])})"
        notes.append(f"The program leaves {which}; a run ends what it has started.")
    if files:
        others = f" and {len(files) - 3} others" if len(files) > 3 else ""
        notes.append(
            f"The program writes outside of its working directory, in each run: {', '.join(files[:3])}{others}."
        )
    return notes
