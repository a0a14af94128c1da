"""How many bytes a collective moves, from what torch.distributed records with it.

Newer traces carry `In msg nelems` and `dtype` on the kernel or on the operator that launched it; older ones at least
the shapes of `record_param_comms` or of the c10d operator around the launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline.whatif.build.draft import Draft
from leadline.whatif.kinds import TaskKind
from leadline.whatif.layerwork import bytes_of
from leadline.whatif.reading import dtypes_in, shapes_in

_ELEMENT_BYTES = {
    "double": 8, "long": 8, "float": 4, "int": 4, "half": 2, "bfloat16": 2, "short": 2, "byte": 1, "char": 1, "bool": 1,
}  # fmt: skip
_LARGEST = 2**48


def fill(draft: Draft) -> None:
    """Set the bytes of every collective that has none; 0 stays where the trace does not show."""
    wanted = np.flatnonzero((draft["kind"] == TaskKind.COMM) & (draft["bytes"] == 0))
    parents, details = draft["parent"], draft["detail"]
    known: dict[int, int] = {-1: 0}
    for task in wanted.tolist():
        at, size = task, 0
        while at >= 0 and not size:
            row = int(details[at])
            if row not in known:
                known[row] = message_bytes(draft.trace.details[row])
            size = known[row]
            at = int(parents[at])
        draft["bytes"][task] = size


def message_bytes(detail: Mapping[str, Any]) -> int:
    """Bytes of the larger side of a collective among the arguments of a kernel or an operator; 0 for none."""
    counts = [value for key in ("In msg nelems", "Out msg nelems") if type(value := detail.get(key)) is int]
    if counts and 0 < max(counts) < _LARGEST:
        return max(counts) * _ELEMENT_BYTES.get(str(detail.get("dtype", "float")).lower(), 4)
    shapes, dtypes = shapes_in(detail), dtypes_in(detail)
    if shapes and shapes[0]:
        return min(bytes_of(shapes[0], dtypes[0] if dtypes else "float"), _LARGEST)
    return 0
