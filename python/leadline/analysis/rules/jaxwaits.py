"""The part of `synchronisation` that is about JAX: lines that wait for the device to have a value, in its words."""

from __future__ import annotations

from leadline.analysis.case import Group
from leadline.analysis.rules.base import Case, Finding, Severity, Values
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
    spared = min(float(group.value), python)
    gain = (
        case.gain(spared, (0, 0.6, 1), _BASIS)
        if case.loop.measured_by
        else case.no_gain("Python's time is not known here; mark steps with leadline.step()")
    )
    return Finding(
        "synchronisation",
        Severity.WARNING if case.share(spared) >= values["share"] else Severity.INFO,
        f"{case.name(group.row)} waits for the device {how_often(often)} a step, {percent(share)} of its time",
        gain,
        tuple(group.rows[:20].tolist()),
        case.lines([group.row]),
        (
            f"{duration(case.per_step(group.value))} of waiting a step",
            "the next step is dispatched only after this wait, so the device idles while Python prepares it",
        ),
        _OF_A_PACKAGE if case.made_by(group.row) else _instead(case.name(group.row)),
        learn_more,
        max(case.share(spared), 0.02),
    )


def _instead(name: str) -> str:
    """By what the program wrote."""
    if "block_until_ready" in name:
        return _WAITS_ONLY
    return _DECIDES if name in _CHOICES else _READ_LATER
