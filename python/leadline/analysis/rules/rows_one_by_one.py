"""Part of `data_loading`: samples that are rows of tensors in memory, taken one by one and put together again."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import Mask
from leadline.analysis.rules.base import Case

AT_ONCE = (
    "Take all rows of a batch with one index: DataLoader(dataset, batch_size=None, sampler=BatchSampler("
    "RandomSampler(dataset), batch_size, drop_last=False)), which asks the dataset for a list of rows, or index the "
    "tensors in the loop (x[rows])."
)
_TAKES = ("aten::select", "aten::stack", "aten::cat", "aten::unbind", "aten::as_strided")
"""A row, and the batch of them; `as_strided` is what both call."""
_FEWEST = 64
"""Of a batch."""
_MOSTLY = 0.7
"""Of the operators' time in loading."""


def one_by_one(case: Case, loading: Mask) -> int:
    """Calls of `aten::select` below the loading of batches, where rows are taken by little else; 0 elsewhere."""
    below = case.below(loading) & case.loop.inside & (case.calls > 0)
    selects = below & case.operators("aten::select")
    calls = int(case.calls[selects].sum())
    asked = int(case.calls[case.first_of(loading)].sum())
    spent = int(case.time[below & ~loading].sum())
    by_taking = int(case.time[below & case.operators(*_TAKES)].sum())
    many = calls >= _FEWEST * max(asked, 1)
    return calls if many and by_taking >= _MOSTLY * max(spent, 1) and np.any(selects) else 0
