"""Which gradients are expensive for their operator."""

from __future__ import annotations

import pytest
from tests.analysis.test_every_rule import backward_of

from leadline.analysis.analyze import analyze


@pytest.mark.parametrize(("backward", "found"), [(60, 0), (110, 1)])
def test_a_gradient_that_solves_systems_of_its_own_is_expensive_by_nature(backward: int, found: int) -> None:
    made = backward_of("aten::linalg_cholesky_ex", 8, backward, "LinalgCholeskyExBackward0")()
    assert len(list(analyze(made, ["forward_backward"]))) == found
