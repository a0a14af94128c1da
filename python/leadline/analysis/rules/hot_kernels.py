"""What rules about the shapes of launches share: kernels of which a number was recorded, and lines that leave a part of
the device unused in them. No rule of its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.analysis.case import CannotTell, Case, Group
from leadline.analysis.columns import Mask, Rows
from leadline.schema import FrameKind


@dataclass(frozen=True)
class HotKernels:
    """Of one line: `share` of the device time; `row`: the kernel that takes most of it; `unused`: 0 to 1, the mean over
    their time."""

    group: Group
    share: float
    row: int
    unused: float

    @property
    def unused_ns(self) -> int:
        return int(self.group.value * self.unused)


def recorded_kernels(case: Case, numbers: Rows, what: str) -> Mask:
    """Kernels of the loop for which there are `numbers`; raises CannotTell where there is none."""
    case.need_device()
    kernels: Mask = (case.tree.kinds == int(FrameKind.KERNEL)) & case.loop.inside & (numbers > 0)
    if not kernels.any():
        raise CannotTell(f"{what} were not recorded")
    return kernels


def hot_kernels(case: Case, wrong: Mask, unused: NDArray[np.float64], least: float) -> Iterator[HotKernels]:
    """By line, those with most time first, down to `least` of the device time."""
    for group in case.by_line(wrong, case.gpu_time):
        share = group.value / max(case.cost_of_all, 1)
        if share < least:
            return
        row = max(group.rows.tolist(), key=lambda one: int(case.gpu_time[one]))
        yield HotKernels(group, share, row, float((unused * case.gpu_time)[group.rows].sum()) / group.value)
