"""The part of `synchronisation` that is about JAX: lines that wait for the device to have a value, in its words."""

from __future__ import annotations

import numpy as np

from leadline.analysis.case import Group
from leadline.analysis.functions import METRIC
from leadline.analysis.rules.base import Case, Finding, Severity, Values
from leadline.analysis.threads import main_threads
from leadline.units import duration, how_often, percent

_PER_STEP = 0.5
_READ_LATER = (
    "Keep the value on the device and read it every hundredth step (or collect arrays and read them all at the end: "
    "jax.device_get(losses)); use jax.lax.cond or jax.numpy.where for decisions inside a step."
)
_DECIDES = (
    "Decide for several at once (one call for many states), or inside the compiled program (jax.lax.cond, "
    "jax.numpy.where, jax.random): by this value Python chooses what comes next, and the device waits."
)
_WAITS_ONLY = (
    "Wait once, after the last step, or every hundredth: while Python waits it prepares no next step. To time steps, "
    "divide the time of many."
)
_OF_A_PACKAGE = (
    "A package reads it, to show or to decide something: look for an option that avoids it (no progress bar, no "
    "checks), or one that runs many steps in one program."
)
_CHOICES = ("int()", "bool()", "index()")
"""What reads a number to choose by it; `float()` and `.item()` mostly read one to show it."""
_BASIS = "bound: what Python does while the device has nothing to do; the device's own work remains"
_ON_CORES = "bound: half of what Python does outside of waits, since XLA computes on the same cores"
_USUAL = 0.6
"""Of what can be won at most."""
_IDLE_CORES = 0.5
"""What XLA leaves idle of the cores it computes on, where that is not known: so much of Python runs beside it."""
_WORTH = 0.03
"""Of the step: a remedy that saves less is none."""
_MEASURES = 0.15
"""Of the step: a program with less Python than this waits at the end of each step to measure it."""
_ENOUGH_SAMPLES = 5


def of_jax(case: Case, row: int) -> bool:
    """Whether the wait at a node is one for a value of JAX's: `float()`, `.item()`, `jax.block_until_ready`."""
    name = case.name(row)
    return name.startswith("jax.") or (name.endswith("()") and "::" not in name)


def waiting(case: Case, group: Group, values: Values, learn_more: str) -> Finding | None:
    """The finding on a line that waits in each step. JAX dispatches ahead: a step that is not waited for runs behind
    the Python of the next. What can be won is the smaller of the two, the wait and that Python."""
    count = int(case.tree.exclusive("sync_time").count[group.rows].sum())
    share, often = case.share(group.value), case.per_step(count)
    if often < _PER_STEP or share < values["share"]:
        return None
    every = int(case.tree.exclusive("sync_time").sum[case.loop.inside].sum())
    python = max(0.0, case.loop.step_ns * case.loop.steps - every) if case.loop.measured_by else 0.0
    name, on_cores = case.name(group.row), bool(case.in_pool.any()) and not case.has_device
    if on_cores and case.loop.measured_by:
        python = _on_cores(case, python)
        measures = "block_until_ready" in name and often <= 1 and case.share(python) < _MEASURES
        python *= _IDLE_CORES
        if measures or case.share(_USUAL * min(float(group.value), python)) < min(_WORTH, values["share"]):
            return None
    idles = "XLA's threads idle" if on_cores else "the device idles"
    spared = min(float(group.value), python)
    gain = (
        case.gain(spared, (0, _USUAL, 1), _ON_CORES if on_cores else _BASIS)
        if case.loop.measured_by
        else case.no_gain("Python's time is not known here; mark steps with leadline.step()")
    )
    return Finding(
        "synchronisation",
        Severity.WARNING if case.share(spared) >= values["share"] else Severity.INFO,
        f"{name} waits for the device {how_often(often)} a step, {percent(share)} of its time",
        gain,
        tuple(group.rows[:20].tolist()),
        case.lines([group.row]),
        (
            f"{duration(case.per_step(group.value))} of waiting a step",
            f"the next step is dispatched only after this wait, so {idles} while Python prepares it",
        ),
        _OF_A_PACKAGE if case.made_by(group.row) else _instead(name),
        learn_more,
        max(case.share(spared), 0.02),
    )


def _on_cores(case: Case, outside: float) -> float:
    """Python's time over all steps of a program whose device is the CPU, where `outside` is in no wait: at most what
    the main thread was seen to compute, since it also waits where it calls a compiled program."""
    mains = [thread.node.row for thread in case.profile.threads if thread.row in main_threads(case.profile)]
    mine = np.isin(case.analysis.scopes.thread, mains) & case.loop.inside
    samples = case.tree.exclusive(METRIC)
    if int(samples.count[mine].sum()) < _ENOUGH_SAMPLES:
        return outside
    return min(outside, float(samples.sum[mine].sum()))


def _instead(name: str) -> str:
    """By what the program wrote."""
    if "block_until_ready" in name:
        return _WAITS_ONLY
    return _DECIDES if name in _CHOICES else _READ_LATER
