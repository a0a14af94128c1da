"""Part of `data_loading`: what the loop gains where its batches come faster."""

from __future__ import annotations

from leadline.analysis.functions import METRIC
from leadline.analysis.rules.base import Case, Gain

_BASIS = "bound: time in data loading on the loop's path (Amdahl)"
CROWDING = "bound: waits for cores that workers use"
_SPARED = 0.9
"""Of the time of a place whose remedy is known."""
_AT_LEAST = 0.3


def loading_gain(case: Case, ns: int, *, cheaper: float, workers: int, cpus: int) -> Gain:
    """`ns`: of all steps, what the loop waits for its data; `cheaper`: of the CPU time of loading what a known remedy
    spares nearly all of, 0 where none is known."""
    if not cheaper:
        return case.gain(ns, _fractions(workers, cpus), _BASIS)
    if not workers:
        return case.gain(ns, (_AT_LEAST * cheaper, _SPARED * cheaper, 1), _BASIS)
    # the loop waits for what a batch takes longer than a step, so the wait is gone before all of making it is
    total = case.loop.step_ns * case.loop.steps
    spared = min(float(ns), _SPARED * cheaper * total)
    in_line = max(case.loop.of.main.core_wait_ns, 0.0) * case.loop.steps
    making = float(case.tree.exclusive(METRIC).sum[case.in_phase("data loading")].sum())
    freed = in_line * min(1.0, _SPARED * cheaper * making / (max(cpus, 1) * total)) if total > 0 else 0.0
    more = ", and the waits for cores that workers use" if in_line >= 0.05 * total else ""
    return case.gain_sums((_AT_LEAST * spared, spared + freed, ns + in_line), _BASIS + more)


def crowding_gain(case: Case, in_line: float, spared: float) -> Gain:
    """`in_line`: of all steps, what training waits for a core; `spared`: work of workers that need not be done."""
    most = min(in_line, spared)
    return case.gain_sums((_AT_LEAST * most, 0.8 * most, in_line), CROWDING)


def _fractions(workers: int, cpus: int) -> tuple[float, float, float]:
    """Workers overlap loading with the step as far as there are cores for both."""
    if workers:
        return 0.0, 0.3, 1.0
    return (0.0, 0.5, 1.0) if cpus and cpus <= 2 else (0.3, 0.85, 1.0)
