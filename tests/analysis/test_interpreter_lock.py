"""What a thread costs that holds the interpreter."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import MS
from tests.verdict.drawn import held

from leadline.analysis.analyze import analyze


@pytest.mark.parametrize(("core_ms", "most_ms"), [(0, 4), (3, 7), (6, 9)])
def test_a_thread_that_gives_up_the_interpreter_gives_up_its_core_too(core_ms, most_ms):
    """It runs 5 ms of a step of 10, so that no more than that of the waits for a core can be for it."""
    (found,) = analyze(held(4, 5, core_ms), ["interpreter_lock"])
    assert found.gain.high_ns == pytest.approx(most_ms * MS, rel=0.01)
    assert ("its core" in found.gain.basis) == (core_ms > 0)
