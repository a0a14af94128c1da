"""Which nodes are communication between ranks. No rule of its own."""

from __future__ import annotations

from leadline.analysis.case import Case
from leadline.analysis.columns import Mask
from leadline.schema import FrameKind

_NAMES = r"^(c10d::|_c10d_functional::|c10d_functional::|record_param_comms)"


def collectives(case: Case) -> Mask:
    """Operators and device work of collectives."""
    found: Mask = case.matching(FrameKind.OPERATOR, _NAMES) | (case.tree.kinds == int(FrameKind.COLLECTIVE))
    return found | case.matching(FrameKind.KERNEL, r"^nccl")
