"""Two profiles on one tree, with what `leadline diff` counts at every row of it: what the page draws."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.compare.align import Aligned
from leadline.compare.runs import StepSums
from leadline.profiles import Profile


def compared_tree(aligned: Aligned, before: Profile, after: Profile) -> dict[str, Any]:
    """`parent`: of every aligned row. `rows`: of each profile the aligned row of every node. `renamed`: rows that have
    another name after, with it. `metrics`: by name what the rows have before and after, exclusive and of one step.
    Columns are little-endian int32 and float64 in base64."""
    sums = [StepSums(aligned, one, rows) for one, rows in zip((before, after), aligned.row_of, strict=True)]
    listed = [str(info.kind) for info in after.tree.measured if info.additive]
    metrics = {}
    for name in ("calls", *listed):
        columns = [side.metric(name) for side in sums]
        if any(column.any() for column in columns):
            metrics[name] = [_text(column, "<f8") for column in columns]
    return {
        "parent": _text(aligned.shape.parent, "<i4"),
        "rows": [_text(rows, "<i4") for rows in aligned.row_of],
        "renamed": [[row, key[1]] for row, key in sorted(aligned.renamed.items())],
        "metrics": metrics,
    }


def _text(column: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(column, dtype).tobytes()).decode()
