"""What the page's model says of real files is what Python says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import leadline
from leadline.trace.dataflow import edges

UI = Path(__file__).parents[2] / "ui"


@pytest.fixture(scope="module", autouse=True)
def tools():
    if not (UI / "node_modules").exists():
        pytest.skip("Bundling the model needs `npm ci` in ui.")


def test_edges_of_backward_passes(profiles, browse):
    _, before, _ = profiles
    found = edges(leadline.open(before))
    expected = sorted(zip(found.source.tolist(), found.target.tolist(), strict=True))
    assert len(expected) >= 3 * 5
    assert sorted(map(tuple, browse("model.mjs", "edges", before))) == expected
