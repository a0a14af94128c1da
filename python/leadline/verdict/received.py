"""Of what each source should have delivered, the share that arrived: figures of one that lost much are too small."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from leadline._once import once
from leadline.profiles import Profile
from leadline.schema import FrameKind, LossKind
from leadline.units import percent
from leadline.verdict.model import Received

ENOUGH = 0.99


@once
def received(profile: Profile) -> tuple[Received, ...]:
    """Of every source that delivered something, or lost something."""
    made = []
    for name, count, kinds in _SOURCES:
        lost = sum(one.count for one in profile.losses if one.kind in kinds)
        arrived = count(profile)
        if arrived or lost:
            made.append(Received(name, arrived, arrived + lost))
    return tuple(made)


def incomplete(profile: Profile) -> list[str]:
    """`only 90 % of the kernels arrived (900 of 1,000): their figures are too small`, the worst first."""
    short = [one for one in received(profile) if one.share < ENOUGH and one.source != _WINDOW]
    return [_words(one) for one in sorted(short, key=lambda one: one.share)]


def _words(one: Received) -> str:
    whole = f"({one.arrived:,} of {one.expected:,})"
    return f"only {percent(one.share)} of the {one.source} arrived {whole}: their figures are too small"


def _measured(metric: str, *kinds: FrameKind) -> Callable[[Profile], int]:
    """How many measurements of a metric there are, at frames of these kinds (of all where none is named)."""

    def count(profile: Profile) -> int:
        tree = profile.tree
        counts = tree.exclusive(metric).count
        return int(counts[np.isin(tree.kinds, [int(kind) for kind in kinds])].sum() if kinds else counts.sum())

    return count


def _collectives(profile: Profile) -> int:
    from leadline.analysis.workclass import classes_of_nodes
    from leadline.work.operators import CLASSES

    tree = profile.tree
    talks = (classes_of_nodes(tree) == CLASSES.index("communication")) & (tree.kinds == int(FrameKind.OPERATOR))
    return int(tree.exclusive("call_time").count[talks].sum())


_WINDOW = "events of the trace window"
"""Of which sums of the tree need none."""
_DEVICE = (LossKind.GPU_RECORDS_DROPPED, LossKind.GPU_WORK_UNFINISHED, LossKind.GPU_PAUSED)
_SOURCES: tuple[tuple[str, Callable[[Profile], int], tuple[LossKind, ...]], ...] = (
    ("operators", _measured("call_time", FrameKind.OPERATOR), (LossKind.OPERATOR_END_UNMATCHED,)),
    ("collectives", _collectives, ()),
    ("records of the device", _measured("gpu_time"), _DEVICE),
    ("allocations", _measured("alloc_bytes"), (LossKind.MEMORY_EVENTS_DROPPED,)),
    ("CPU samples", _measured("cpu_sample"), (LossKind.SAMPLES_DROPPED,)),
    (_WINDOW, lambda profile: len(profile.events["kind"]), (LossKind.EVENTS_DROPPED,)),
)
"""What it is called, how many measurements of it arrived, and the losses that it counts. Copies and kernels are records
of the device: a vendor's library says how many it dropped, not of which kind."""
