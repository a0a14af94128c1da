"""`scratch_memory`: a driver takes scratch memory anew for kernels in every step, and their queues wait for it."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.words import kernel
from leadline.units import duration, percent, size, times


class ScratchMemory(Rule):
    name = "scratch_memory"
    asks = "Do queues of a device wait in every step while the driver takes scratch memory for a kernel?"
    options = (
        Option("again", 0.5, "1", "times a step; each queue needs it once, and keeps it unless it is much"),
        Option("share", 0.5, "%", "of the step; waits as long as that are worth a change"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        taken = case.tree.exclusive("scratch_alloc_bytes")
        if not taken.count.any():
            raise CannotTell(
                "no allocation of scratch memory for a kernel was recorded (needs AMD with ROCm 7 or later)"
            )
        loop = case.loop
        waited = np.where(loop.inside, case.tree.exclusive("scratch_time").sum, 0)
        each = case.tree.exclusive("scratch_bytes")
        made = []
        for group in case.by_line((taken.count > 0) & loop.inside, waited):
            often = case.per_step(int(taken.count[group.rows].sum()))
            if often < values["again"] or case.share(group.value) < values["share"]:
                continue
            row = max(group.rows.tolist(), key=lambda one: int(waited[one]))
            total = int(taken.sum[group.rows].sum())
            evidence = [f"{kernel(case.name(row))}"]
            if each.count[row]:
                evidence[0] += f", {size(int(each.max[row]))} of scratch memory a thread"
            told = f"{size(total / int(taken.count[group.rows].sum()))} each time, " if total else ""
            evidence.append(f"{told}{duration(case.per_step(group.value))} of waiting a step")
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"A queue waits {_how_often(often)} a step for scratch memory: {percent(case.share(group.value))} "
                    "of the step",
                    case.gain(group.value, (0, 0.7, 1), "bound: the waits; work of the CPU hides some of them"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    tuple(evidence),
                    "Let the kernel need less, so that nothing spills (smaller tiles, fewer values alive at once, "
                    "__launch_bounds__ of the block's true size), or let queues keep what they were given: "
                    "HSA_NO_SCRATCH_RECLAIM=1, or HSA_SCRATCH_SINGLE_LIMIT above what one launch needs.",
                    self.learn_more,
                    case.share(group.value),
                )
            )
        return made[:2]


def _how_often(often: float) -> str:
    return "once" if 0.95 <= often < 1.05 else f"{times(often)} times"
