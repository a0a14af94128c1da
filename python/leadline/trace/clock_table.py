"""The relations of clocks that a profile holds, as a table.

Every process reads CLOCK_MONOTONIC and CLOCK_REALTIME at one moment when it starts; the uncertainty is half the time
that the tightest reading took. That is good within a machine. Between machines CLOCK_REALTIME is as good as their time
service; messages between them (`leadline clock-sync`) say how good that is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.profiles.lineage import clock_of, record_of_rows
from leadline.profiles.profile import Profile

_READINGS = 16  # of which the tightest counts, see capture/process_info.py


def clocks(profile: Profile) -> dict[str, NDArray[Any]]:
    """Columns process, offset_ns, drift, half_width_ns, method and pairs; a row per process that said."""
    rows = []
    for process, record in enumerate(record_of_rows(profile)):
        offset = clock_of(record)
        if offset is None:
            continue
        width = record["clock"].get("uncertainty_ns")
        known = isinstance(width, int | float) and not isinstance(width, bool)
        rows.append(
            (
                process,
                offset,
                0.0,
                float(width) if known else np.nan,
                record["clock"].get("method", "readings"),
                _READINGS,
            )
        )
    names = ("process", "offset_ns", "drift", "half_width_ns", "method", "pairs")
    types = ("i8", "i8", "f8", "f8", "O", "i8")
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return {name: np.array(list(one), dtype=kind) for name, one, kind in zip(names, columns, types, strict=True)}
