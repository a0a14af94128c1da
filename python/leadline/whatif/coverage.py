"""How often the ranges of predictions held where somebody measured both sides, by scenario.

CPU programs: bench/results/whatif-cpu-pairs.md, from both recorders. GPUs: bench/results/gpu_round.md,
gpu_round_h200.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

ON_CPU: Mapping[str, tuple[int, int]] = {
    "fused_optimizer": (28, 34),
    "batch_size": (23, 28),
    "activation_checkpointing": (2, 2),
    "cpu_threads": (14, 16),
    "data_loading": (12, 12),
}
ON_GPU: Mapping[str, tuple[int, int]] = {"amp": (2, 7), "fused_optimizer": (3, 3)}
"""(held, pairs), as predicted before they were measured. With the rules since then, made with these outcomes in hand,
three of the H200's four of `amp` hold (bench/results/whatif_gpu.md)."""


def coverage(names: Iterable[str], *, has_device: bool) -> str:
    """A sentence on how far to trust the ranges of these scenarios; empty without one."""
    asked = sorted({part for name in names for part in name.split("+")})
    if not asked:
        return ""
    measured, where = (
        (ON_GPU, "measured pairs on an H100 and an H200") if has_device else (ON_CPU, "measured pairs of CPU programs")
    )
    known = [name for name in asked if name in measured]
    if not known:
        return "Ranges are not validated on hardware: these predictions have not been compared with measurements."
    held = ", ".join(f"of {name} in {measured[name][0]} of {measured[name][1]}" for name in known)
    others = "; those of the others are not validated on hardware." if len(known) < len(asked) else "."
    return f"Ranges held {held} {where}{others}"
