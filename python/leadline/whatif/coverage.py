"""How often the ranges of predictions held where somebody measured both sides: bench/results/whatif-cpu-pairs.md."""

from __future__ import annotations

from collections.abc import Iterable

MEASURED = frozenset(("fused_optimizer", "batch_size", "activation_checkpointing", "cpu_threads", "data_loading"))
"""Scenarios with measured pairs, all of CPU programs."""
_HELD, _PAIRS = 85, 100


def coverage(names: Iterable[str], *, has_device: bool) -> str:
    """A sentence on how far to trust the ranges of these scenarios; empty without one."""
    asked = {part for name in names for part in name.split("+")}
    if not asked:
        return ""
    known = sorted(asked & MEASURED) if not has_device else []
    if not known:
        return "Ranges are not validated on hardware: for these predictions nobody has measured both sides yet."
    held = f"Ranges of {', '.join(known)} held in {_HELD} of {_PAIRS} measured pairs of CPU programs"
    return held + ("." if asked <= MEASURED else "; those of the others are not validated on hardware.")
