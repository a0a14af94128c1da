"""Which span stands inside which: the compiled answer beside one that looks at every pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline._simulate import nesting

pytestmark = pytest.mark.timeout(60)
MOMENTS = st.integers(0, 12)  # few, so that spans touch, coincide and overlap without nesting


@given(st.lists(st.tuples(MOMENTS, MOMENTS), max_size=12))
def test_a_span_stands_in_the_latest_that_is_still_open(pairs: list[tuple[int, int]]) -> None:
    spans = sorted(((low, low + length) for low, length in pairs), key=lambda span: (span[0], -span[1]))
    start = np.array([low for low, _ in spans], dtype=np.int64)
    end = np.array([high for _, high in spans], dtype=np.int64)
    parent, root = nesting(start, end)
    for row, (low, _) in enumerate(spans):
        still_open = [other for other in range(row) if end[other] > low]
        assert parent[row] == (still_open[-1] if still_open else -1)
        assert root[row] == (row if parent[row] < 0 else root[parent[row]])
