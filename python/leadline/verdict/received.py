"""Of what each source should have delivered, the share that arrived: figures of one that lost much are too small."""

from __future__ import annotations

from leadline.profiles import Profile
from leadline.schema import LossKind
from leadline.units import percent

ENOUGH = 0.99
_SOURCES = (
    ("records of the device", "gpu_time", (LossKind.GPU_RECORDS_DROPPED,)),
    ("allocations", "alloc_bytes", (LossKind.MEMORY_EVENTS_DROPPED,)),
    ("CPU samples", "cpu_sample", (LossKind.SAMPLES_DROPPED,)),
)
"""What it is called, the metric whose measurements it makes, and the losses that it counts."""


def incomplete(profile: Profile) -> list[str]:
    """`only 90 % of the records of the device arrived (900 of 1,000): their figures are too small`, the worst first."""
    found = []
    for name, metric, kinds in _SOURCES:
        lost = sum(one.count for one in profile.losses if one.kind in kinds)
        arrived = int(profile.tree.exclusive(metric).count.sum()) if lost else 0
        share = arrived / (arrived + lost) if lost else 1.0
        if share < ENOUGH:
            whole = f"({arrived:,} of {arrived + lost:,})"
            found.append((share, f"only {percent(share)} of the {name} arrived {whole}: their figures are too small"))
    return [text for _, text in sorted(found)]
