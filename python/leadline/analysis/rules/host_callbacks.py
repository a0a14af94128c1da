"""`host_callbacks`: compiled programs of JAX call Python (`pure_callback`, `io_callback`, `jax.debug.print`)."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.jaxwork import programs
from leadline.schema import FrameKind
from leadline.units import duration, how_often, percent

_CALLBACKS = ("pure_callback", "io_callback", "debug_callback", "debug_print", "outside_call")
_TO_LOOK = ("debug_callback", "debug_print")


class HostCallbacks(Rule):
    name = "host_callbacks"
    asks = "Do compiled programs of JAX call back into Python?"
    options = (
        Option("per_step", 0.5, "1", "printing every tenth step is fine"),
        Option("share", 5, "%", "of the step; a warning above this, because the program waits meanwhile"),
        Option("info", 1, "%", "of the step; a rare print takes less"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        called = case.named(FrameKind.OPERATOR, *_CALLBACKS) & case.below(programs(case))
        steps = _steps(case)
        inside = called & case.loop.inside if steps else called
        counts, times_ns = case.tree.exclusive("call_time").count, case.tree.exclusive("time").sum
        whole = case.total_ns if steps else int(times_ns.sum())
        made = []
        for group in case.by_line(inside, np.maximum(times_ns, 1)):
            number = int(counts[group.rows].sum())
            share = min(1.0, group.value / max(whole, 1))
            often = number / steps if steps else 0
            if share < values["info"] and often < values["per_step"]:
                continue
            name = case.name(group.row)
            repeated = f"{how_often(often)} a step" if steps else f"{number:,} times"
            basis = "bound: the callbacks; JAX has to do their computation instead"
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING if share >= values["share"] else Severity.INFO,
                    f"A compiled program calls back into Python {repeated} ({name}), "
                    f"{percent(share)} of {'the step' if steps else 'the run'}",
                    case.gain(group.value, (0.2, 0.8, 1), basis) if steps else case.no_gain("no step is known"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (
                        f"{duration(group.value / number)} each; on a GPU the program waits for the copy to the host, "
                        "for Python, and for the copy back",
                    ),
                    _remedy(name),
                    self.learn_more,
                    share,
                )
            )
        return made[:3]


def _steps(case: Case) -> int:
    """Steps of the loop; 0 where nothing repeats outside of a program."""
    try:
        return case.loop.steps
    except CannotTell:
        return 0


def _remedy(name: str) -> str:
    if name in _TO_LOOK:
        return (
            "Remove it when you no longer need it, return the value from the function and print it every hundredth "
            "step, or run it under jax.lax.cond only as often as you need it."
        )
    return (
        "Write it with jax.numpy, so that it is compiled with the rest; where it must be NumPy, call it with whole "
        "batches, and outside of loops in the program (pure_callback's vmap_method='expand_dims' or 'broadcast_all')."
    )
